"""Plans of demand that a forecast may stumble over: sums hold, and nothing foolish is bought."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from data.frames import empty
from data.schema import FLEET_HOURS, QUALITY
from planner.planning import NightInputs, NightPlan, plan_night
from planner.settings import Settings
from tests import bills

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from data.plan import BillFigures, Plan

DAYS = 21
HOURS = DAYS * 24
PRICES = (bills.price("on_demand", 6.88), bills.price("reserved_1y", 4.30))


def plan_of(
    fleet: pd.DataFrame,
    days: int = DAYS,
    missing: Iterable[int] = (),
    events: tuple[dict[str, Any], ...] = (),
) -> Plan:
    return night_of(fleet, days, missing, {"events": events}).plan


def night_of(
    fleet: pd.DataFrame, days: int, missing: Iterable[int], settings: dict[str, Any],
    offers: pd.DataFrame | None = None,
) -> NightPlan:  # fmt: skip
    window = bills.window(days)
    grid = window.grid()
    given = NightInputs(
        as_of=window.end.date(), window=window, covered=grid.delete(list(missing)), fleet=fleet,
        offers=bills.offers(*PRICES) if offers is None else offers, shapes=bills.shapes(),
        commitments=bills.commitments(), quality=empty(QUALITY),
        settings=Settings.model_validate(settings),
        deliveries=(), freshness=(), has_billing=True, has_utilization=True,
    )  # fmt: skip
    return plan_night(given)


def node(name: str, hours: Iterable[int]) -> list[dict[str, Any]]:
    return [row for hour in hours for row in bills.node_hours(name, range(hour, hour + 1))]


def bought(plan: Plan) -> float:
    assert plan.summary.reasons is not None
    return sum(one.count for one in plan.summary.reasons.options)


def left_over(bill: BillFigures) -> Decimal:
    changes = bill.repriced_per_month + bill.growth_per_month + bill.expiring_per_month
    return bill.today_per_month + changes - bill.saving_per_month - bill.plan_per_month


def test_demand_that_never_changes_is_reserved_and_does_not_grow():
    plan = plan_of(bills.fleet(node("i-0", range(HOURS)), node("i-1", range(HOURS))))
    bill = plan.summary.bill
    assert bought(plan) == 2
    assert left_over(bill) == 0
    # 16 GPUs; a forecast of a constant is that constant, its doubt is even on both sides.
    assert abs(bill.growth_per_month) < Decimal("0.05") * bill.today_per_month
    assert bill.saving_low_per_month is not None
    assert bill.saving_low_per_month <= bill.saving_per_month


@pytest.mark.parametrize(
    "hours",
    [
        pytest.param(range(1), id="one hour"),
        pytest.param(range(300, 303), id="a single spike"),
        pytest.param(range(HOURS // 3), id="gone for two weeks"),
        pytest.param(range(HOURS - 24, HOURS), id="begun yesterday"),
        pytest.param([h for h in range(HOURS) if h % 168 < 8], id="one morning a week"),
    ],
)
def test_demand_seen_for_a_short_time_is_not_committed_to(hours: Iterable[int]):
    plan = plan_of(bills.fleet(node("i-0", hours)))
    assert bought(plan) == 0
    assert left_over(plan.summary.bill) == 0
    assert plan.summary.bill.plan_per_month >= 0
    assert plan.summary.reasons is not None
    assert all(one.bought == 0 and one.reason for one in plan.summary.reasons.ladder)


def test_a_fleet_without_demand_has_a_plan_of_nothing():
    plan = plan_of(empty(FLEET_HOURS))
    assert plan.summary.bill.plan_per_month == 0
    assert bought(plan) == 0
    idle = bills.fleet(
        *(bills.node_hours("i-0", range(HOURS), needed=0, state="free", stoppable=True),)
    )
    assert plan_of(idle).summary.bill.plan_per_month == 0


def test_hours_without_data_are_gaps_and_no_zeros():
    # Five of 504 hours are missing: what is planned is the same 8 GPUs.
    missing = (100, 101, 250, 333, 420)
    there = [hour for hour in range(HOURS) if hour not in missing]
    plan = plan_of(bills.fleet(node("i-0", there)), missing=missing)
    assert bought(plan) == 1
    assert left_over(plan.summary.bill) == 0


def test_below_the_least_history_the_past_is_taken_to_come_again():
    plan = plan_of(bills.fleet(node("i-0", range(72))), days=3)
    bill, solve = plan.summary.bill, plan.summary.solve
    assert bought(plan) == 0
    assert bill.growth_per_month == 0
    assert bill.saving_low_per_month is None
    assert plan.summary.reasons is not None
    assert plan.summary.reasons.ladder == ()
    assert solve is not None
    assert (solve.scenarios, solve.hours_planned) == (1, 72 * 122)


def test_demand_that_has_halved_is_planned_at_about_what_is_left():
    fleet = bills.fleet(node("i-0", range(HOURS)), node("i-1", range(HOURS // 2)))
    bill = plan_of(fleet).summary.bill
    # 16 GPUs for half of the window and 8 since: 12 on the mean, of which a third is gone.
    on_demand = Decimal(str(8 * 6.88 * 730))
    assert left_over(bill) == 0
    assert bill.growth_per_month < -on_demand / 4
    assert bill.plan_per_month < Decimal("1.2") * on_demand


def test_a_project_that_ends_is_not_committed_to_and_costs_nothing_more():
    # It ends on the first planned day: neither the plan nor the ladder counts on it.
    end = {"name": "end", "from": date(2026, 9, 22), "factor": 0.0}
    made = plan_of(bills.fleet(node("i-0", range(HOURS))), events=(end,))
    assert bought(made) == 0
    assert made.summary.bill.plan_per_month == 0
    assert made.summary.bill.growth_per_month == Decimal(str(round(-8 * 6.88 * 730, 2)))


def test_a_launch_is_planned_for_and_bought_when_it_is_seen():
    # 16 GPUs more from the first planned day on: by the hour until the next step.
    launch = {"name": "l", "class": "training", "from": date(2026, 9, 22), "gpus": 16.0}
    made = plan_of(bills.fleet(node("i-0", range(HOURS))), events=(launch,))
    assert bought(made) == 1
    assert made.summary.reasons is not None
    (step,) = made.summary.reasons.ladder
    assert (step.allowed, step.bought, step.later) == (8.0, 8.0, 16.0)


def test_an_event_that_cannot_be_counted_is_told_in_the_notes():
    past = {"name": "past", "from": date(2026, 9, 2), "factor": 2.0}
    made = plan_of(bills.fleet(node("i-0", range(HOURS))), events=(past,))
    assert any(text.startswith("the event past is left out") for text in made.summary.notes)


def test_an_event_is_worth_what_less_is_bought_for_it_and_others_stay():
    """Nothing can be reserved: of 8 GPUs at 6.88 one event takes half, another half of the rest."""
    half = {"name": "h", "from": date(2026, 9, 22), "factor": 0.5}
    again = {**half, "name": "g"}
    prices = bills.offers(bills.price("on_demand", 6.88))
    made = night_of(bills.fleet(node("i-0", range(HOURS))), DAYS, (),
                    {"events": (half, again)}, prices).plan  # fmt: skip
    costs = [float(one.usd_per_month) for one in made.summary.reasons.event_costs]
    # 8 x 730 x 6.88 without either, a quarter of it with both: each alone is worth a quarter.
    assert costs == pytest.approx([-0.25 * 8 * 730 * 6.88] * 2, rel=1e-3)


def test_a_commitment_that_an_event_would_make_idle_is_told_with_its_dollars():
    """A node at work all year is reserved; with a chance of 0.3 its work ends after 91 days.

    Then it replaces 335 of 1,344 modelled hours of 8 GPUs at 6.88, and costs 8 x 4.30 in all.
    """
    exit_ = {"name": "x", "from": date(2026, 12, 22), "factor": 0.0, "chance": 0.3}
    made = plan_of(bills.fleet(node("i-0", range(HOURS))), events=(exit_,))
    assert bought(made) == 1
    assert made.summary.risks is not None
    loses = made.summary.risks.loses_if
    assert loses is not None
    (one,) = loses.events
    assert (one.event, one.comes, one.commitment) == ("x", True, None)
    assert float(one.usd_per_month) == pytest.approx(8 * 730 * (4.30 - 6.88 * 335 / 1344), rel=0.03)


def test_what_an_event_changes_and_which_class_is_unknown_are_told():
    known = {"name": "l", "class": "training", "from": date(2026, 9, 22), "gpus": 16.0}
    slip = {"name": "s", "class": "trainnig", "from": date(2026, 9, 22), "factor": 0.5}
    fleet = bills.fleet(node("i-0", range(HOURS)))
    made = night_of(fleet, DAYS, (), {"events": (known, slip)})
    assert made.plan.summary.reasons is not None
    (event,) = made.plan.summary.reasons.events
    assert event.gpus_after - event.gpus_before == pytest.approx(16.0)
    assert event.gpu_hours_per_month == pytest.approx(16 * 730)
    (cost,) = made.plan.summary.reasons.event_costs
    assert (cost.name, cost.gpu_hours_per_month) == ("l", pytest.approx(16 * 730))
    # 16 GPUs on demand, less what of the 8 reserved ones demand leaves idle without the event.
    assert 15 * 730 * 6.88 < float(cost.usd_per_month) <= 16 * 730 * 6.88
    assert made.warnings == (
        "the event s is left out: nothing of class trainnig ran in the window; did you mean "
        "training? known: training",
    )


@pytest.mark.parametrize(
    ("terms", "reason"),
    [(("3y",), "No price for 3 years."), ((), "The settings allow no term.")],
)
def test_a_pool_without_a_price_for_the_allowed_terms_is_still_told(
    terms: tuple[str, ...], reason: str
):
    fleet = bills.fleet(node("i-0", range(HOURS)))
    plan = night_of(fleet, DAYS, (), {"plan": {"terms": terms}}).plan
    assert bought(plan) == 0
    assert plan.summary.reasons is not None
    (step,) = plan.summary.reasons.ladder
    assert (step.pool, step.needed, step.reserved, step.reason) == ("aws H100", 8.0, None, reason)
