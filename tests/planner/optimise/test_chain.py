"""Chains of blocks: every cut that they give lies below what one long block costs."""

import numpy as np
import pytest

from planner.model.reductions import reduce
from planner.optimise import chain
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import first_stage
from planner.solve import solve
from tests.weeks import week


def oracles(seed, monkeypatch):
    """A chain of blocks, two a part, and one block, of the same problem; and its sources."""
    reduced = reduce(week(seed, full=True, hours=240, scenarios=1))
    first = first_stage(reduced)
    whole = DispatchOracle(reduced, first)
    monkeypatch.setattr(chain, "LONGEST", 50)
    monkeypatch.setattr(chain, "INNER", 40)
    monkeypatch.setattr(chain, "BLOCKS", 2)
    linked = DispatchOracle(reduced, first)
    assert linked.chained
    assert not whole.chained
    assert len(linked.scenario_of) > 1
    return linked, whole, len(first.sources)


@pytest.mark.parametrize("seed", range(3))
def test_cuts_of_parts_found_at_different_plans_bound_the_cost_together(seed, monkeypatch):
    linked, whole, sources = oracles(seed, monkeypatch)
    rng = np.random.default_rng(seed)
    found = [linked.evaluate(rng.uniform(0, 30, sources), np.inf) for _ in range(4)]
    for there in rng.uniform(0, 30, (4, sources)):
        parts = np.stack([one.value + one.slope @ (there - one.u) for one in found])
        cost = float(whole.evaluate(there, np.inf).cost[0])
        # Each part takes its cut from the plan that bounds it best.
        assert parts.max(axis=0).sum() <= cost + 1e-6 * abs(cost)


@pytest.mark.parametrize("seed", range(3))
def test_the_cut_of_a_scenario_is_near_its_cost_and_never_above(seed, monkeypatch):
    linked, whole, sources = oracles(seed, monkeypatch)
    u = np.full(sources, 12.0)
    for _ in range(3):
        found = linked.evaluate(u, np.inf)
    cost = float(whole.evaluate(u, np.inf).cost[0])
    assert cost * (1 - 1e-2) <= float(found.cost[0]) <= cost + 1e-6 * cost
    assert found.value.sum() <= found.cost[0] + 1e-6 * cost
    elsewhere = np.full(sources, 5.0)
    cut = float(found.cost[0] + found.whole[0] @ (elsewhere - u))
    assert cut <= float(whole.evaluate(elsewhere, np.inf).cost[0]) * (1 + 1e-6)


def test_a_dispatch_costs_the_same_whatever_was_solved_before(monkeypatch):
    linked, whole, sources = oracles(0, monkeypatch)
    here = np.full(sources, 3.0)
    linked.evaluate(here, np.inf)
    fresh = float(linked.exact(here, np.inf)[0])
    for gpus in (9.0, 0.0, 3.0):
        linked.evaluate(np.full(sources, gpus), np.inf)
    later = float(linked.exact(here, np.inf)[0])
    cost = float(whole.evaluate(here, np.inf).cost[0])
    # Prices around the blocks differ, but no dispatch is cheaper than the optimum.
    assert cost * (1 - 1e-9) <= fresh <= cost * (1 + 1e-2)
    assert cost * (1 - 1e-9) <= later <= cost * (1 + 1e-2)


@pytest.mark.parametrize("seed", range(4))  # the last needs longer blocks than at first
def test_a_chain_is_proved_to_the_gap_asked_for(seed, monkeypatch):
    asked = week(seed, full=True, hours=240, scenarios=1)
    whole = solve(asked, gap=1e-6, method="decomposition")
    monkeypatch.setattr(chain, "LONGEST", 50)
    monkeypatch.setattr(chain, "INNER", 80)
    result = solve(asked, gap=2e-4, method="decomposition")
    assert result.status == "optimal"
    assert result.gap <= 2e-4 * (1 + 1e-9)
    assert result.bound <= whole.objective * (1 + 1e-7)
    assert whole.bound <= result.objective * (1 + 1e-7)
