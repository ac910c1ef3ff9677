"""When commitments lose money, on problems small enough to dispatch by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.loses_if import Saved, _price_share, loses_if, saved_at
from planner.outcome import Commitment, Plan, ReservedCount
from planner.problem import Cvar, SavingsPlan
from planner.supply import Supply, offers_from
from tests import bills
from tests.planner.test_waterfall import ON_DEMAND, work_out
from tests.problems import firm, offer, problem

BOUGHT = Plan((ReservedCount("a", "1y", 2),))
MONTHS = 12


def asked(demand, **more):
    """Two hours; on demand 4, reserved 2 USD per GPU-hour, one GPU an instance."""
    return problem([firm("t|H100", ["a"])], [offer("a", 4.0, 2.0)], demand, **more)


def test_what_purchases_save_is_what_they_serve_at_the_price_on_demand():
    """Of 1 and 3 GPUs two reserved ones serve 1 and 2: 3 x 4 USD saved, 2 x 2 x 2 USD paid."""
    now = saved_at(asked({"t|H100": [1, 3]}), BOUGHT, 1.0)
    assert (now.saves * MONTHS, now.costs * MONTHS) == pytest.approx((12.0, 8.0))


def test_at_half_the_demand_they_just_pay():
    """Of 0.5 and 1.5 GPUs they serve all: 2 x 4 USD saved."""
    now = saved_at(asked({"t|H100": [1, 3]}), BOUGHT, 0.5)
    assert now.net * MONTHS == pytest.approx(0.0, abs=1e-6)


def test_without_demand_they_cost_all_they_cost():
    now = saved_at(asked({"t|H100": [1, 3]}), BOUGHT, 0.0)
    assert (now.saves, now.costs * MONTHS) == pytest.approx((0.0, 8.0))


def test_scenarios_count_by_their_probability_and_risk_is_no_money():
    """1 and 3 GPUs in a quarter of the cases (12 USD saved), nothing in the others: 3 USD."""
    futures = [(0.25, {"t|H100": [1, 3]}), (0.75, {"t|H100": [0, 0]})]
    now = saved_at(asked(futures, cvar=Cvar(0.5, 0.5)), BOUGHT, 1.0)
    assert now.saves * MONTHS == pytest.approx(3.0)


def test_a_penalty_for_hours_that_nothing_serves_is_no_saving():
    """Nothing is sold by the hour: what the two serve would otherwise not run, and costs nothing.

    Its penalty would be 3 x 100 USD.
    """
    case = problem([firm("t|H100", ["a"])], [offer("a", None, 2.0)], {"t|H100": [1, 3]})
    assert saved_at(case, BOUGHT, 1.0).saves == pytest.approx(0.0, abs=1e-9)


def test_a_savings_plan_is_weighed_by_what_it_covers():
    """4 USD an hour at 2 USD a GPU-hour cover two GPUs: as two reserved ones."""
    case = problem(
        [firm("t|H100", ["a"])], [offer("a", 4.0, sp_rate=2.0)], {"t|H100": [1, 3]},
        savings_plans=(SavingsPlan("aws"),),
    )  # fmt: skip
    now = saved_at(case, Plan(savings_plans=(Commitment("aws", 4.0),)), 1.0)
    assert (now.saves * MONTHS, now.costs * MONTHS) == pytest.approx((12.0, 8.0))


def test_a_node_at_work_18_of_24_hours_bears_a_fall_of_a_sixth():
    """It replaces 18 / 24 x 6.88 = 5.16 USD an hour and costs 4.30: 0.8333 of it, and 10 months."""
    fleet = bills.fleet(bills.node_hours("i-busy", range(18)))
    prices = bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30))
    supply = Supply(offers_from(prices, bills.shapes(), bills.as_numbers(fleet), ["1y"]), ())
    found = loses_if(work_out(fleet, prices).plan, supply)
    assert found is not None
    assert found.saves_per_month == Decimal("30134.4")  # 8 x 5.16 x 730
    assert found.costs_per_month == Decimal("25112")  # 8 x 4.30 x 730
    assert found.demand_share == pytest.approx(5 / 6, abs=0.002)
    assert (found.price_share, found.months) == (0.8333, 10.0)


def test_only_the_price_on_demand_falls_and_a_promise_of_three_years_is_told_as_one():
    """Of 8 GPUs a quarter may use spot at 3.44, half the price on demand of 6.88.

    A node at 3.01 for three years replaces 6 x 6.88 + 2 x 3.44 = 48.16 USD an hour and costs 24.08.
    The price on demand must fall by 24.08 / 41.28 to undo that: to 41.67 % of itself.
    """
    now = Saved(saves=48.16, costs=24.08, on_demand=41.28)
    assert _price_share(now) == pytest.approx(1 - 24.08 / 41.28)
    assert _price_share(Saved(48.16, 24.08, 20.0)) == 0.0
    assert _price_share(Saved(48.16, 50.0, 41.28)) == 1.0
    fleet = bills.fleet(bills.node_hours("i-busy", range(24)))
    prices = bills.offers(ON_DEMAND, bills.price("reserved_3y", 3.01))
    sold = offers_from(prices, bills.shapes(), bills.as_numbers(fleet), ["3y"])
    found = loses_if(work_out(fleet, prices, terms=("3y",)).plan, Supply(sold, ()))
    assert found is not None
    assert (found.least_term_months, found.most_term_months) == (36, 36)
    assert found.price_share == pytest.approx(3.01 / 6.88, abs=1e-4)
    # 36 months at 3.01 are repaid by 15.75 at 6.88.
    assert found.months == pytest.approx(36 * 3.01 / 6.88, abs=0.05)


def test_where_nothing_is_bought_nothing_can_be_lost():
    fleet = bills.fleet(bills.node_hours("i-busy", range(14)))
    prices = bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30))
    supply = Supply(offers_from(prices, bills.shapes(), bills.as_numbers(fleet), ["1y"]), ())
    assert loses_if(work_out(fleet, prices).plan, supply) is None
