"""The closed form of recourse against linear programs of the same dispatch."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.reductions import reduce
from planner.optimise import closed_form
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import first_stage
from planner.problem import Block, Cvar, Existing
from planner.solve import solve
from tests.problems import close, firm, offer, problem


def fleet(seed, *, prices, owned_until, risk=True, owned=5.0, blocks=()):
    """Classes over five pools whose on-demand prices come from a short list, so that they tie."""
    rng = np.random.default_rng(seed)
    sold = [
        offer(
            f"o{n}",
            float(rng.choice(prices)),
            float(rng.uniform(1.0, 2.0)),
            spot=float(rng.choice([1.0, 1.35])),
            spot_throughput=0.9,
            existing=(Existing(owned, owned_until),) if n % 2 else (),
            region=f"r{n}",
        )
        for n in range(5)
    ]
    names = [one.id for one in sold]
    users = []
    for n in range(6):
        where = [name for name in names if rng.random() < 0.4] or names[:2]
        share = float(rng.choice([0.2, 0.5, 1.0]))
        users.append(firm(f"w{n}", where, min_firm_share=share, spot_max_share_per_offer=0.3))
    futures = [(0.5, {one.id: rng.integers(0, 20, 40) for one in users}) for _ in range(2)]
    cvar = Cvar(0.3, 0.5) if risk else None
    return problem(users, sold, futures, cvar=cvar, blocks=blocks)


CASES = {
    "prices that tie": {"prices": [4.0], "owned_until": 40},
    "capacity that ends": {"prices": [3.5, 4.0], "owned_until": 17},
    "a block inside": {
        "prices": [3.5, 4.0],
        "owned_until": 40,
        "blocks": (Block("b", "o1", 8, 10, 20, 2.0, 2),),
    },
    "scenarios as one": {"prices": [3.0, 4.0], "owned_until": 40, "risk": False},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_it_costs_what_linear_programs_cost_and_says_for_what(case, seed):
    reduced = reduce(fleet(seed, **CASES[case]))
    assert closed_form.holds(reduced)
    first = first_stage(reduced)
    formula, programs = closed_form.ClosedForm(reduced, first), DispatchOracle(reduced, first)
    p = np.array([one.p for one in reduced.problem.scenarios])
    rng = np.random.default_rng(seed)
    for most in (0.0, 10.0, 40.0):
        u, there = rng.uniform(0, most, (2, len(first.sources)))
        one, other = formula.evaluate(u, np.inf), programs.evaluate(u, np.inf)
        mean = other.cost.sum() if programs.merged else p @ other.cost
        assert (one.cost.sum() if formula.merged else p @ one.cost) == close(mean)
        assert formula.by_kind(u).sum(axis=1) == pytest.approx(one.cost, rel=1e-9)
        # A slope of a convex function: the cut lies below the cost everywhere.
        cut = one.value + one.slope @ (there - u)
        assert (cut <= formula.evaluate(there, np.inf).value + 1e-6).all()


def test_tiers_of_one_price_are_told_apart_in_what_the_money_is_for():
    # x on demand at 2.0; y on spot at 1.8 with throughput 0.9, 2.0 a useful GPU-hour as well.
    # The 4 GPUs that both may use displace x, the first of the two: 6 * 2.0 on demand and
    # 10 / 0.9 * 1.8 on spot, in each of 3 hours.
    sold = [
        offer("a", 2.0),
        offer("b", 3.0, spot=1.8, spot_throughput=0.9),
        offer("c", None, existing=(Existing(4.0, 3),)),
    ]
    asked = problem(
        [firm("x", ["a", "c"]), firm("y", ["b", "c"])], sold, {c: [10] * 3 for c in "xy"}
    )
    result = solve(asked, method="decomposition")
    assert (result.costs["on_demand"], result.costs["spot"]) == (close(36.0), close(60.0))


def test_without_any_pool_everything_is_bought_as_it_is_needed():
    asked = problem([firm("w", ["a"])], [offer("a", 4.0)], {"w": [5, 7]})
    reduced = reduce(asked)
    formula = closed_form.ClosedForm(reduced, first_stage(reduced))
    assert formula.evaluate(np.zeros(0), np.inf).cost.tolist() == [48.0]


def test_a_run_whose_time_is_over_at_once_still_prices_a_plan_and_bounds_it():
    asked = fleet(2, prices=[3.0, 4.0], owned_until=40)
    best = solve(asked, method="decomposition")
    short = solve(asked, method="decomposition", time_limit=1e-9)
    assert short.status == "feasible"
    assert best.bound <= short.objective
    assert 0 < short.bound <= best.objective


def test_sets_beyond_the_most_leave_the_closed_form(monkeypatch):
    reduced = reduce(fleet(1, prices=[4.0], owned_until=40))
    monkeypatch.setattr(closed_form, "MOST_UNIONS", 4)
    assert not closed_form.holds(reduced)
