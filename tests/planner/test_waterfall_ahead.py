"""The steps where demand is to come in more than one way, small enough to price by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.assemble import PlanRules, Stage
from planner.future import Future, year_ahead
from planner.horizon import horizon_of
from planner.needs import needs_from
from planner.problem import CommitmentLimit, Cvar
from planner.settings import Settings, WorkloadClass
from planner.stage_solver import StageSolver
from planner.supply import Supply, offers_from
from planner.waterfall import Basis, Waterfall, run
from tests import bills
from tests.planner.test_waterfall import MONTH, identity

NODE = 8 * MONTH  # GPU-hours a month
PLACE = "aws/us-east-1/p5.48xlarge"


def work_out(
    ways: tuple[float, ...], on_demand: float, cvar: Cvar | None = None,
    limit: float | None = None, level: float | None = None,
) -> Waterfall:  # fmt: skip
    """A node at work all day, and so many GPUs in each way in which demand may come."""
    window = bills.window()
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24), rate=str(on_demand))))
    prices = bills.offers(bills.price("on_demand", on_demand), bills.price("reserved_1y", 4.30))
    supply = Supply(offers_from(prices, bills.shapes(), bill, ["1y"]), ())
    horizon = horizon_of(window.end, window.hours)

    def everywhere(_rule: WorkloadClass, _family: str) -> set[str]:
        return {PLACE}

    year = year_ahead(horizon)
    demand = np.array(ways)[:, None] * np.ones((1, year.hours))
    limits = () if limit is None else (CommitmentLimit("aws H100", (PLACE,), limit),)
    basis = Basis(
        needs=needs_from(bill, window.grid(), Settings(), supply, everywhere),
        supply=supply,
        horizon=horizon,
        rules=PlanRules(upfront_budget=0.0, cvar=cvar, limits=limits, service_level=level),
        solve_stage=StageSolver(1e-6, 60.0, "highs"),
        future=Future(
            year, {"training|H100": demand}, (1 / len(ways),) * len(ways),
            {"training|H100": demand.mean(axis=0)},
        ),
    )  # fmt: skip
    return run(bill, basis)


def reserved(made: Waterfall) -> int:
    return sum(one.count for one in made.plan.result.reservations)


def test_growth_is_what_the_demand_to_come_costs_more() -> None:
    made = work_out((8.0, 24.0), on_demand=5.0)
    # 16 GPUs on the mean against 8, before anything is bought.
    assert made.steps.growth == pytest.approx(NODE * 5.0)
    assert made.stages[Stage.EXPIRY].by_scenario == pytest.approx((NODE * 5.0, 3 * NODE * 5.0))
    assert identity(made.steps) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("on_demand", "count"),
    [
        # The first node is always at work, the others in half of the ways: they pay where
        # 4.30 is less than half of the price on demand.
        pytest.param(8.5, 1, id="50.6 percent"),
        pytest.param(8.7, 3, id="49.4 percent"),
    ],
)
def test_a_node_that_half_of_the_ways_need_pays_below_half_the_price(
    on_demand: float, count: int
) -> None:
    made = work_out((8.0, 24.0), on_demand)
    assert reserved(made) == count
    saved = NODE * (on_demand - 4.30) + (count - 1) * NODE * (on_demand / 2 - 4.30)
    assert made.steps.buy == pytest.approx(saved, rel=1e-4)
    assert made.plan.usd_per_month == pytest.approx(sum(made.plan.by_scenario) / 2)
    assert identity(made.steps) == pytest.approx(0, abs=0.01)


def test_what_differs_by_scenario_is_told_scenario_by_scenario() -> None:
    made = work_out((8.0, 24.0), on_demand=8.7)
    # Three nodes are paid in both ways; no other is needed in either.
    assert made.plan.by_scenario == pytest.approx((3 * NODE * 4.30, 3 * NODE * 4.30))
    one = work_out((8.0, 24.0), on_demand=8.5)
    assert one.plan.by_scenario == pytest.approx(
        (NODE * 4.30, NODE * 4.30 + 2 * NODE * 8.5)
    )  # fmt: skip
    assert one.plan.used["gpu_hours"].sum() == pytest.approx(2 * NODE)  # means over the ways


def test_running_on_as_today_is_priced_in_each_way() -> None:
    made = work_out((8.0, 24.0), on_demand=8.5)
    # All on demand: what the one node that is bought saves, it saves in both ways.
    assert made.as_now == pytest.approx((NODE * 8.5, 3 * NODE * 8.5))
    saved = np.subtract(made.as_now, made.plan.by_scenario)
    assert saved == pytest.approx([NODE * (8.5 - 4.30)] * 2)


def test_caution_buys_insurance_while_it_costs_less_than_all_that_is_saved() -> None:
    # The dearest half counts ten times more: what half of the ways need is bought too.
    cautious = Cvar(10.0, 0.5, of_all=True)
    made = work_out((8.0, 24.0), on_demand=8.5, cvar=cautious)
    assert reserved(made) == 3
    # 8.5 - 4.30 saved by the first, 0.05 lost on each of the others.
    assert made.steps.buy == pytest.approx(NODE * (4.20 - 2 * 0.05), rel=1e-4)
    assert made.plan.result.costs["cvar"] > 0
    assert identity(made.steps) == pytest.approx(0, abs=0.01)


def test_insurance_that_costs_more_than_purchases_save_is_not_bought() -> None:
    # No node is always at work: each loses 0.05 on the mean, and caution alone would buy it.
    made = work_out((0.0, 16.0), on_demand=8.5, cvar=Cvar(10.0, 0.5, of_all=True))
    assert reserved(made) == 0
    assert made.steps.buy == pytest.approx(0, abs=0.01)
    assert made.plan.result.costs["cvar"] == 0
    assert made.plan.audited == pytest.approx(made.plan.result.objective)
    assert made.status == "optimal"


def test_the_ladder_limits_what_is_bought_and_tells_what_would_be() -> None:
    made = work_out((24.0, 24.0), on_demand=8.5, limit=16.0)
    assert reserved(made) == 2
    assert [one.count for one in made.unlimited.reservations] == [3]
    assert made.steps.buy == pytest.approx(2 * NODE * (8.5 - 4.30), rel=1e-4)


def test_without_a_forecast_the_demand_does_not_change() -> None:
    window = bills.window()
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24))))
    prices = bills.offers(bills.price("on_demand", 6.88))
    supply = Supply(offers_from(prices, bills.shapes(), bill, ["1y"]), ())
    needs = needs_from(
        bill, window.grid(), Settings(), supply, lambda _rule, _family: {PLACE}
    )  # fmt: skip
    basis = Basis(
        needs, supply, horizon_of(window.end, window.hours), PlanRules(0.0),
        StageSolver(1e-6, 60.0, "highs"),
    )  # fmt: skip
    made = run(pd.DataFrame(bill), basis)
    assert made.steps.growth == 0
    assert made.stages[Stage.DEMAND].problem is made.stages[Stage.MOVE].problem
