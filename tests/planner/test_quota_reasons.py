"""What a quota of the configuration costs a plan, and what is told of hours it leaves short."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests import bills
from tests.planner.test_last_night import ON_DEMAND, RESERVED, bought, night

HELD: dict[str, Any] = {
    "id": "ri-1",
    "kind": "reserved",
    "instance_type": "p5.48xlarge",
    "region": "us-east-1",
    "count": 1,
    "start": bills.START - timedelta(days=30),
    "end": bills.window().end + timedelta(days=73),
}
NOTHING_BY_THE_HOUR = {"quotas": ({"cloud": "aws", "region": "us-east-1", "gpus": 0},)}


def held_node() -> Any:
    return bills.fleet(
        bills.node_hours(
            "i-1", range(24), rate="4.00", purchase_option="reserved", commitment_id="ri-1"
        )
    )


def test_one_more_machine_within_a_quota_is_worth_what_it_saves() -> None:
    # A node in each of two regions at 6.88 and 9.00; the class may run in both, but the quota of
    # the cheaper one has room for 8 GPUs. One more node there saves 8 x 2.12 x 730 = 12,380.80.
    fleet = bills.fleet(
        bills.node_hours("i-1", range(24)),
        bills.node_hours("i-2", range(24), rate="9.00", region="us-west-2"),
    )
    stated = {
        "quotas": ({"cloud": "aws", "region": "us-east-1", "gpus": 8},),
        "classes": ({"name": "training", "offers": {"regions": ("us-east-1", "us-west-2")}},),
    }
    made = night(fleet, ON_DEMAND, bills.price("on_demand", 9.0, region="us-west-2"), stated=stated)
    assert made.summary.reasons is not None
    limits = [one for one in made.summary.reasons.limits if one.kind == "quota"]
    assert [(one.region, one.unit, one.saves_per_month) for one in limits] == [
        ("us-east-1", "p5.48xlarge", Decimal("12380.80"))
    ]


def test_hours_that_a_quota_leaves_short_are_hours_and_no_dollars() -> None:
    # The reservation ends after 73 days; from then on nothing may be bought by the hour.
    made = night(held_node(), ON_DEMAND, owned=(HELD,), stated=NOTHING_BY_THE_HOUR)
    assert made.summary.reasons is not None
    (short,) = made.summary.reasons.shortages
    assert short.limit == (
        "quotas used up: aws us-east-1 (0 GPUs); owned capacity on p5.48xlarge in us-east-1 ends"
    )
    # The end falls into one of 1,344 modelled hours.
    assert short.gpu_hours == pytest.approx(8 * 0.8 * 8760, rel=1e-3)
    (limit,) = (one for one in made.summary.reasons.limits if one.kind == "quota")
    assert (limit.unit, limit.saves_per_month) == ("p5.48xlarge", None)


def test_the_best_plan_without_a_purchase_tells_what_it_leaves_unserved() -> None:
    soon = HELD | {"end": bills.window().end + timedelta(days=5)}
    made = night(held_node(), ON_DEMAND, RESERVED, owned=(soon,), stated=NOTHING_BY_THE_HOUR)
    assert bought(made) == {"reserved": 1.0}
    assert made.summary.reasons is not None
    one = made.summary.reasons.options[0]
    # It ends after 120 hours, in the 19th of 1,344 modelled ones. Without another, 8 GPUs stand
    # still for 1,326 / 1,344 of the year: 5,762 GPU-hours a month, and the 8 x 4.30 x 730 =
    # 25,112 dollars of the reservation are not paid.
    assert one.alternative is not None
    assert ", leave 5,762 GPU-hours a month unserved, and cost $25,112 less a month" in (
        one.alternative
    )
    assert one.binding == "quota"  # what is reserved stands in for what may not be bought
