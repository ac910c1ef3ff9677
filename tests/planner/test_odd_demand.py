"""Whole plans for demand that is none, short, constant, gone, or full of holes.

A node is 8 GPUs at 6.88 USD on demand and 4.30 reserved; the fleet is watched for 28 days.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pytest

from data.frames import empty
from data.schema import QUALITY
from planner.planning import NightInputs, plan_night
from planner.settings import Settings
from tests import bills

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.planning import NightPlan

DAYS = 28
HOURS = DAYS * 24
PRICES = bills.offers(bills.price("on_demand", 6.88), bills.price("reserved_1y", 4.30))


def planned(busy: Iterable[int], missing: Iterable[int] = ()) -> NightPlan:
    """The plan for one node that is needed in the hours `busy`; hours `missing` have no data.

    A node that is kept and never needed makes the fleet where nothing else does.
    """
    window = bills.window(DAYS)
    gone = set(missing)
    watched = [hour for hour in range(HOURS) if hour not in gone]
    working = [hour for hour in watched if hour in set(busy)]
    fleet = bills.fleet(
        bills.node_hours("i-kept", watched, needed=0, state="free", stoppable=True),
        bills.node_hours("i-work", working),
    )
    return plan_night(
        NightInputs(
            as_of=date(2026, 9, 29),
            window=window,
            covered=window.grid()[watched],
            fleet=fleet,
            offers=PRICES,
            shapes=bills.shapes(),
            commitments=bills.commitments(),
            quality=empty(QUALITY),
            settings=Settings(),
            deliveries=("d",),
            freshness=(),
            has_billing=True,
            has_utilization=True,
        )
    )


CASES = {
    "none": [],
    "one hour": [300],
    "the last hour": [HOURS - 1],
    "a spike of a day": range(300, 324),
    "all hours": range(HOURS),
    "a step down to none": range(HOURS // 2),
    "a step up from none": range(HOURS // 2, HOURS),
}


@pytest.mark.parametrize("name", CASES)
def test_every_dollar_of_a_plan_is_accounted_for(name: str) -> None:
    made = planned(CASES[name])
    bill = made.plan.summary.bill
    changes = bill.repriced_per_month + bill.growth_per_month + bill.expiring_per_month
    assert bill.today_per_month + changes - bill.saving_per_month == bill.plan_per_month
    assert sum(made.recommendations["saving_per_month"]) == bill.saving_per_month
    assert bill.plan_per_month >= 0


def bought(made: NightPlan) -> list[str]:
    rows = made.recommendations
    return rows.loc[rows["kind"].isin(["buy_reserved", "buy_savings_plan"]), "action"].tolist()


@pytest.mark.parametrize("name", ["none", "one hour", "the last hour", "a spike of a day",
                                  "a step down to none"])  # fmt: skip
def test_nothing_is_committed_to_where_little_is_needed_or_nothing_any_more(name: str) -> None:
    made = planned(CASES[name])
    risks = made.plan.summary.risks
    assert bought(made) == []
    assert risks is not None
    assert risks.loses_if is None
    assert risks.held_before == ()


def test_a_node_that_is_always_needed_is_reserved_and_what_it_bears_is_told() -> None:
    """It replaces 6.88 USD an hour for 4.30: it pays down to 62.5% of demand or of the price.

    The back-test reserves it too, and regrets nothing: 8 GPUs x 4.30 USD x 336 unseen hours.
    """
    made = planned(CASES["all hours"])
    assert bought(made) == ["Reserve 1 x p5.48xlarge in us-east-1 for 1 year"]
    risks = made.plan.summary.risks
    assert risks is not None
    (row,) = risks.hoped_for
    # 8 GPUs are needed on the mean; where demand may grow, a little of it is bought on demand.
    assert row.discounted + row.on_demand == pytest.approx(8 * 730)
    assert row.on_demand < 0.05 * row.needed
    assert (row.assured, row.spot, row.unserved) == (0.0, 0.0, 0.0)
    (pool,) = risks.backtests.pools
    assert (pool.usd, pool.foresight_usd) == pytest.approx((8 * 4.30 * 336, 8 * 4.30 * 336))
    (held,) = risks.held_before
    assert (held.used_share, held.weeks, held.weeks_under) == (1.0, 4, 0)
    assert risks.loses_if is not None
    assert risks.loses_if.price_share == pytest.approx(0.625, abs=0.02)
    assert risks.loses_if.demand_share == pytest.approx(0.625, abs=0.005)


def test_a_hundredth_of_the_hours_without_data_changes_no_advice() -> None:
    holes = np.random.default_rng(1).choice(HOURS, HOURS // 100, replace=False).tolist()
    made, whole = planned(CASES["all hours"], holes), planned(CASES["all hours"])
    assert bought(made) == bought(whole)
    risks = made.plan.summary.risks
    assert risks is not None
    assert any("have no reading" in note for note in risks.backtests.notes)
    costs = [float(one.plan.summary.bill.plan_per_month) for one in (made, whole)]
    assert costs[0] == pytest.approx(costs[1], rel=0.02)
