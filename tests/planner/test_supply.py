"""Offers and owned capacity, from prices, the bill and the table of commitments."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from planner.horizon import horizon_of
from planner.owned import owned_from
from planner.supply import offers_from
from tests import bills

P5 = "aws/us-east-1/p5.48xlarge"


def test_prices_become_dollars_per_gpu_hour() -> None:
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(2))))
    prices = bills.offers(
        bills.price("on_demand", 6.88), bills.price("spot", 2.5), bills.price("reserved_1y", 4.3)
    )
    offer = offers_from(prices, bills.shapes(), bill, ["1y"])[P5]
    assert (offer.on_demand, offer.spot, offer.gpus) == (6.88, 2.5, 8)
    assert [(term.name, term.rate, term.upfront) for term in offer.terms] == [
        ("reserved_1y", 4.3, 0.0)
    ]


def test_a_three_year_term_is_not_offered_unless_allowed() -> None:
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(2))))
    prices = bills.offers(bills.price("on_demand", 6.88), bills.price("reserved_3y", 3.0))
    assert offers_from(prices, bills.shapes(), bill, ["1y"])[P5].terms == ()
    assert len(offers_from(prices, bills.shapes(), bill, ["1y", "3y"])[P5].terms) == 1


def test_an_all_upfront_price_is_due_for_the_whole_term() -> None:
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(2))))
    row = bills.price("reserved_1y", 4.0, payment_option="all_upfront")
    offer = offers_from(bills.offers(row), bills.shapes(), bill, ["1y"])[P5]
    assert offer.terms[0].upfront == pytest.approx(4.0 * 8760)


def test_rejected_and_stale_prices_are_no_offers_and_the_bill_serves_instead() -> None:
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(2), rate="7.00")))
    prices = bills.offers(
        bills.price("on_demand", 0.0, status="rejected", reason="zero"),
        bills.price("spot", 2.5, status="stale", reason="old"),
    )
    offer = offers_from(prices, bills.shapes(), bill, ["1y"])[P5]
    assert offer.on_demand == pytest.approx(7.0)
    assert offer.spot is None
    assert offer.from_bill


PLAN = {
    "id": "sp-1",
    "kind": "savings_plan",
    "usd_per_hour": "1000",
    "start": datetime(2026, 1, 1, tzinfo=UTC),
    "end": datetime(2027, 1, 1, tzinfo=UTC),
}


def covered(instance: str = "i-1", **more: Any) -> list[dict[str, Any]]:
    return bills.node_hours(
        instance, range(24), rate="4.00", purchase_option="savings_plan", commitment_id="sp-1",
        **more,
    )  # fmt: skip


def test_a_savings_plan_is_as_many_gpus_as_it_covered_and_could_have_covered() -> None:
    # It covered 8 GPUs at 4.00 and left 68 USD an hour unused, worth 17 more: 25 GPUs. What else
    # the plan of 1,000 USD an hour covers is no matter of GPUs.
    unused = [
        {**row, "gpu_hours": Decimal(0), "needed_gpu_hours": Decimal(0), "cost": Decimal(68)}
        for row in covered("commitment:sp-1", state="free", reason="unused_commitment")
    ]
    bill = bills.as_numbers(bills.fleet(covered(), unused))
    offers = offers_from(bills.offers(bills.price("on_demand", 6.88)), bills.shapes(), bill, ["1y"])
    horizon = horizon_of(bills.window().end, 24)
    owned, notes = owned_from(bills.commitments(PLAN), bill, offers, horizon)
    assert notes == ()
    assert [(one.offer, one.gpus) for one in owned] == [(P5, 25.0)]
    # 100 USD an hour of the GPU bill, 730 hours a month.
    assert owned[0].usd_per_month == pytest.approx(73_000)
    # From 2026-09-02 to 2027-01-01 there are 121 days of 24 hours.
    assert owned[0].until_hour == 121 * 24


def test_a_savings_plan_over_two_machine_types_is_owned_on_both() -> None:
    bill = bills.as_numbers(
        bills.fleet(covered(), covered("i-2", instance_type="p5.4xlarge", gpus=1, gpu_count=1))
    )
    offers = offers_from(bills.offers(bills.price("on_demand", 6.88)), bills.shapes(), bill, ["1y"])
    horizon = horizon_of(bills.window().end, 24)
    owned, _ = owned_from(bills.commitments(PLAN), bill, offers, horizon)
    assert [(one.offer, one.gpus) for one in owned] == [
        ("aws/us-east-1/p5.48xlarge", 8.0),
        ("aws/us-east-1/p5.4xlarge", 1.0),
    ]


def test_a_commitment_that_starts_later_is_not_counted_yet() -> None:
    later = {**PLAN, "start": datetime(2026, 12, 1, tzinfo=UTC)}
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24))))
    horizon = horizon_of(bills.window().end, 24)
    owned, notes = owned_from(bills.commitments(later), bill, {}, horizon)
    assert owned == ()
    assert notes == ("commitment sp-1 starts on 2026-12-01: it is not counted yet",)


def test_a_reservation_bought_after_the_window_is_owned_before_a_bill_shows_it() -> None:
    # The window ends on 2026-09-02; bought the next day, planned for the day after that.
    bought = {
        "id": "ri-9", "kind": "reserved", "instance_type": "p5.48xlarge", "region": "us-east-1",
        "count": 2, "usd_per_instance_hour": Decimal("34.40"),
        "start": datetime(2026, 9, 3, tzinfo=UTC), "end": datetime(2027, 9, 3, tzinfo=UTC),
    }  # fmt: skip
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24))))
    offers = offers_from(bills.offers(bills.price("on_demand", 6.88)), bills.shapes(), bill, ["1y"])
    horizon = horizon_of(bills.window().end, 24)
    now = datetime(2026, 9, 4, tzinfo=UTC)
    (one,), (note,) = owned_from(bills.commitments(bought), bill, offers, horizon, now)
    assert (one.offer, one.gpus, one.until_hour, one.begins) == (P5, 16.0, 8760, True)
    assert (one.usd_per_month, one.ahead_usd_per_month) == (0.0, pytest.approx(2 * 34.40 * 730))
    assert note == "commitment ri-9 began on 2026-09-03: no bill shows it yet"
    # A day earlier nobody could know of it.
    assert owned_from(bills.commitments(bought), bill, offers, horizon)[0] == ()


def test_a_savings_plan_bought_after_the_window_pays_for_what_is_on_demand() -> None:
    # 8 GPUs of one type and 1 of another on demand; 20 dollars an hour at 4.00 are 5 GPUs of the
    # first, 40 are all 8 of it and 1 of the second (at 5.00), and 3 dollars that nothing uses.
    bill = bills.as_numbers(
        bills.fleet(
            bills.node_hours("i-1", range(24)),
            bills.node_hours("i-2", range(24), instance_type="p5.4xlarge", gpus=1, gpu_count=1),
        )
    )
    small = {"instance_type": "p5.4xlarge", "gpus": 1}
    prices = bills.offers(
        bills.price("savings_plan_1y", 4.0), bills.price("savings_plan_1y", 5.0, **small)
    )
    offers = offers_from(prices, bills.shapes(), bill, ["1y"])
    horizon = horizon_of(bills.window().end, 24)
    now = datetime(2026, 9, 4, tzinfo=UTC)
    for spend, gpus, month in ((20, [5.0], 20 * 730), (40, [8.0, 1.0], 40 * 730)):
        plan = {**PLAN, "usd_per_hour": spend, "start": datetime(2026, 9, 3, tzinfo=UTC)}
        owned, notes = owned_from(bills.commitments(plan), bill, offers, horizon, now)
        assert [one.gpus for one in owned] == gpus
        assert sum(one.ahead_usd_per_month for one in owned) == pytest.approx(month)
        assert len(notes) == 1


def test_a_commitment_that_ended_is_not_owned_and_an_unnamed_one_is_told() -> None:
    held = bills.node_hours(
        "i-1", range(24), rate="4.00", purchase_option="reserved", commitment_id="ri-9"
    )
    bill = bills.as_numbers(bills.fleet(held))
    offers = offers_from(bills.offers(bills.price("on_demand", 6.88)), bills.shapes(), bill, ["1y"])
    ended = {
        "id": "ri-1",
        "kind": "reserved",
        "instance_type": "p5.48xlarge",
        "region": "us-east-1",
        "count": 2,
        "start": datetime(2025, 1, 1, tzinfo=UTC),
        "end": datetime(2026, 1, 1, tzinfo=UTC),
    }
    horizon = horizon_of(bills.window().end, 24)
    owned, notes = owned_from(bills.commitments(ended), bill, offers, horizon)
    assert [(one.id, one.gpus, one.until_hour) for one in owned] == [("ri-9", 8.0, 8760)]
    assert len(notes) == 1
    assert "ri-9" in notes[0]


def test_a_plan_that_began_inside_the_window_costs_more_ahead_than_it_did() -> None:
    # It began at noon of the one day: 8 GPUs at 4.00 in 12 of 24 hours, and in all hours from now.
    noon = {**PLAN, "start": datetime(2026, 9, 1, 12, tzinfo=UTC)}
    half = bills.node_hours(
        "i-1", range(12, 24), rate="4.00", purchase_option="savings_plan", commitment_id="sp-1"
    )
    bill = bills.as_numbers(bills.fleet(half))
    offers = offers_from(bills.offers(bills.price("on_demand", 6.88)), bills.shapes(), bill, ["1y"])
    owned, _ = owned_from(bills.commitments(noon), bill, offers, horizon_of(bills.window().end, 24))
    assert owned[0].gpus == pytest.approx(8.0)
    assert owned[0].usd_per_month == pytest.approx(8 * 4.00 * 730 / 2)
    assert owned[0].ahead_usd_per_month == pytest.approx(8 * 4.00 * 730)
