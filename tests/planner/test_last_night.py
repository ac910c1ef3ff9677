"""Night after night: what stays as it was advised, what changes, and the reason that is given."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from data.frames import empty
from data.plan import Plan
from data.reasons import OwnedPart, PlanOption, Reasons
from data.schema import QUALITY
from planner.last_night import since_last_night, target
from planner.outcome import Commitment, ReservedCount
from planner.planning import NightInputs, plan_night
from planner.settings import Settings
from tests import bills

if TYPE_CHECKING:
    import pandas as pd

    from data.reasons import LineChange

ON_DEMAND = bills.price("on_demand", 6.88)
RESERVED = bills.price("reserved_1y", 4.30)
PLAN = bills.price("savings_plan_1y", 4.40)


def night(
    fleet: pd.DataFrame, *prices: dict[str, Any], last: Plan | None = None,
    owned: tuple[dict[str, Any], ...] = (), stated: dict[str, Any] | None = None,
) -> Plan:  # fmt: skip
    """The plan of a fleet seen for a day that is forecast to come again, as read from its file."""
    window = bills.window()
    plain = {"min_history_days": 1, "scenarios": 1}
    document = {**(stated or {}), "plan": plain | (stated or {}).get("plan", {})}
    settings = Settings.model_validate(document)
    given = NightInputs(
        as_of=window.end.date(),
        window=window,
        covered=window.grid(),
        fleet=fleet,
        offers=bills.offers(*prices),
        shapes=bills.shapes(),
        commitments=bills.commitments(*owned),
        quality=empty(QUALITY),
        settings=settings,
        deliveries=(),
        freshness=(),
        has_billing=True,
        has_utilization=True,
        last=last,
    )
    return Plan.from_text(plan_night(given).plan.to_text())


def nodes(count: int, hours: int = 24) -> pd.DataFrame:
    return bills.fleet(*(bills.node_hours(f"i-{n}", range(hours)) for n in range(count)))


def bought(plan: Plan) -> dict[str, float]:
    assert plan.summary.reasons is not None
    return {one.kind: one.count for one in plan.summary.reasons.options if one.count > 0}


def changed(plan: Plan) -> tuple[int, tuple[LineChange, ...]]:
    assert plan.summary.reasons is not None
    assert plan.summary.reasons.since is not None
    return plan.summary.reasons.since.unchanged, plan.summary.reasons.since.changes


def test_the_first_night_has_nothing_to_compare_with() -> None:
    plan = night(nodes(1), ON_DEMAND, RESERVED)
    assert bought(plan) == {"reserved": 1.0}
    assert plan.summary.reasons is not None
    assert plan.summary.reasons.since is None


def test_the_same_fleet_is_advised_the_same() -> None:
    first = night(nodes(1), ON_DEMAND, RESERVED)
    assert changed(night(nodes(1), ON_DEMAND, RESERVED, last=first)) == (1, ())


def test_a_plan_within_the_tolerance_stays_as_it_was_advised() -> None:
    # At work in 17 of 24 hours: reserved 24 x 4.30 = 103.20 dollars a GPU and day, by the hour
    # 17 x 6.88 = 116.96, which is 13.3 % more.
    fleet = nodes(1, hours=17)
    none = night(nodes(1, hours=10), ON_DEMAND, RESERVED)
    assert bought(none) == {}
    assert bought(night(fleet, ON_DEMAND, RESERVED)) == {"reserved": 1.0}
    for tolerance, now in ((0.14, {}), (0.13, {"reserved": 1.0})):
        stated = {"plan": {"tolerance": tolerance}}
        assert bought(night(fleet, ON_DEMAND, RESERVED, last=none, stated=stated)) == now


def test_nothing_is_bought_at_a_loss_to_stay_near_the_last_night() -> None:
    # At work in 15 of 24 hours: by the hour 15 x 6.88 = 103.20, as much as reserved.
    advised = night(nodes(1), ON_DEMAND, RESERVED)
    assert bought(advised) == {"reserved": 1.0}
    cheaper = bills.price("on_demand", 6.879)
    assert bought(night(nodes(1, hours=15), cheaper, RESERVED, last=advised)) == {}


def test_a_plan_that_costs_more_than_the_tolerance_does_not_stay() -> None:
    none = night(nodes(1, hours=10), ON_DEMAND, RESERVED)
    assert bought(none) == {}
    now = night(nodes(1), ON_DEMAND, RESERVED, last=none)
    assert bought(now) == {"reserved": 1.0}
    (one,) = changed(now)[1]
    assert (one.line, one.before, one.now) == (
        "p5.48xlarge in us-east-1, 1 year, paid monthly", "none", "1",
    )  # fmt: skip
    # 8 GPUs in 10 of 24 hours are 3.33 on average.
    assert one.why == "demand: its classes need 8.0 GPUs on average, not 3.3"


def test_between_two_equal_ways_the_one_advised_stays() -> None:
    # 8 x 4.30 = 34.40 dollars an hour either way.
    same = bills.price("savings_plan_1y", 4.30)
    as_reserved = night(nodes(1), ON_DEMAND, RESERVED)
    as_plan = night(nodes(1), ON_DEMAND, same)
    assert bought(as_plan) == {"savings_plan": pytest.approx(34.40, rel=1e-4)}
    for last, kind in ((as_reserved, "reserved"), (as_plan, "savings_plan")):
        now = night(nodes(1), ON_DEMAND, RESERVED, same, last=last)
        assert list(bought(now)) == [kind]
        assert changed(now) == (1, ())


def test_a_change_of_price_is_told_as_one() -> None:
    first = night(nodes(1), ON_DEMAND, RESERVED)
    now = night(nodes(1), bills.price("on_demand", 4.0), RESERVED, last=first)
    assert bought(now) == {}
    unchanged, (one,) = changed(now)
    assert (unchanged, one.before, one.now) == (0, "1", "none")
    assert one.why == "price: on demand went from $6.8800 to $4.0000 a GPU-hour"


def test_what_was_bought_since_is_not_advised_again_and_told() -> None:
    first = night(nodes(2), ON_DEMAND, RESERVED)
    assert bought(first) == {"reserved": 2.0}
    owned = {
        "id": "ri-9", "kind": "reserved", "instance_type": "p5.48xlarge", "region": "us-east-1",
        "count": 1, "start": bills.START, "end": bills.START + timedelta(days=366),
        "usd_per_instance_hour": Decimal("34.40"),
    }  # fmt: skip
    fleet = bills.fleet(
        bills.node_hours("i-0", range(24)),
        bills.node_hours(
            "i-1", range(24), rate="4.30", purchase_option="reserved", commitment_id="ri-9"
        ),
    )
    now = night(fleet, ON_DEMAND, RESERVED, last=first, owned=(owned,))
    assert bought(now) == {"reserved": 1.0}
    (one,) = changed(now)[1]
    assert (one.before, one.now, one.why) == ("2", "1", "commitments: ri-9 began")


def test_what_was_bought_after_the_window_is_not_advised_again() -> None:
    first = night(nodes(1), ON_DEMAND, RESERVED)
    owned = {
        "id": "ri-9", "kind": "reserved", "instance_type": "p5.48xlarge", "region": "us-east-1",
        "count": 1, "start": bills.window().end + timedelta(hours=9),
        "end": bills.window().end + timedelta(days=366), "usd_per_instance_hour": Decimal("34.40"),
    }  # fmt: skip
    now = night(nodes(1), ON_DEMAND, RESERVED, last=first, owned=(owned,))
    assert bought(now) == {}
    (one,) = changed(now)[1]
    assert (one.before, one.now, one.why) == ("1", "none", "commitments: ri-9 began")
    # 8 GPUs at 6.88 by the hour become 34.40 an hour already bought: no saving of this plan's.
    bill = now.summary.bill
    assert bill.saving_per_month == 0
    assert bill.expiring_per_month == Decimal(str(round((34.40 - 8 * 6.88) * 730, 2)))
    assert bill.plan_per_month == Decimal("25112.00")


def test_a_night_of_other_accounts_has_no_say() -> None:
    first = night(nodes(1), ON_DEMAND, RESERVED)
    other = bills.fleet(bills.node_hours("i-0", range(24), account="999900001111"))
    now = night(other, ON_DEMAND, RESERVED, last=first)
    assert now.summary.reasons is not None
    assert now.summary.reasons.since is None
    assert "the night of 2026-09-02 is of other accounts: it has no say in this one" in (
        now.summary.notes
    )


def test_a_night_written_without_its_reasons_has_no_say() -> None:
    first = night(nodes(1), ON_DEMAND, RESERVED)
    mute = replace(first, summary=replace(first.summary, reasons=None))
    now = night(nodes(1), ON_DEMAND, RESERVED, last=mute)
    assert "the night of 2026-09-02 does not say what it advised to buy" in now.summary.notes


def option(kind: str, count: float, **more: Any) -> PlanOption:
    standing = PlanOption(
        kind=kind, cloud="aws", region="us-east-1", name="p5.48xlarge", term="reserved_1y/monthly",
        count=count, usd_per_gpu_hour=4.3, hourly_usd_per_gpu_hour=6.88, break_even_share=0.625,
        expected_share=1.0, needed_gpus=8.0, owned_gpus=0.0, binding="demand", why="",
    )  # fmt: skip
    return replace(standing, **more)


def spend(count: float) -> PlanOption:
    return option("savings_plan", count, region=None, name="", term="1y")


def test_the_target_is_last_nights_advice_less_what_was_bought_since() -> None:
    said = Reasons(
        options=(option("reserved", 3.0), spend(40.0), option("on_demand", 0.0)),
        owned=(OwnedPart("old", "aws", "us-east-1", "p5.48xlarge", 2.0, 0.0),),
    )
    known = said.owned
    assert target(said, known).reservations == (
        ReservedCount("aws/us-east-1/p5.48xlarge", "reserved_1y/monthly", 3),
    )
    since = (
        *known,
        OwnedPart("ri", "aws", "us-east-1", "p5.48xlarge", 1.0, 0.0),
        OwnedPart("elsewhere", "aws", "us-west-2", "p5.48xlarge", 1.0, 0.0),
        OwnedPart("sp", "aws", "", "", 0.0, 15.0),
    )
    left = target(said, since)
    assert [one.count for one in left.reservations] == [2]
    assert left.savings_plans == (Commitment("aws", 25.0),)


def test_a_line_that_is_sold_no_more_and_one_that_is_new_are_told() -> None:
    before = Reasons(options=(option("reserved", 1.0),))
    now = Reasons(options=(spend(30.0),))
    found = since_last_night("2026-09-01", 0.001, before, now)
    assert [(one.before, one.now, one.why) for one in found.changes] == [
        ("1", "none", "price: it is not sold any more, or no class may use it"),
        ("none", "$30.00 an hour", "price: it was not sold then, or no class might use it"),
    ]


def test_a_bill_that_was_restated_since_is_named_among_the_reasons() -> None:
    before, now = Reasons(options=(spend(10.0),)), Reasons(options=(spend(30.0),))
    for clouds, why in (
        (frozenset({"aws"}), "data: the bill of aws was restated"),
        (frozenset({"gcp"}), "demand: other hours of the day"),
    ):
        (change,) = since_last_night("2026-09-01", 0.001, before, now, clouds).changes
        assert change.why.startswith(why)


def test_an_amount_that_a_reader_would_see_as_the_same_is_no_change() -> None:
    found = since_last_night(
        "2026-09-01", 0.001, Reasons(options=(spend(30.001),)), Reasons(options=(spend(30.0),))
    )
    assert (found.unchanged, found.changes) == (1, ())
