"""The guess by the closed form and the quick dispatch, against linear programs and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.model.reductions import reduce
from planner.optimise import closed_form, engine
from planner.optimise.coarse import sample
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import first_stage
from planner.optimise.greedy import Greedy
from planner.optimise.guess import guess
from planner.optimise.recourse import risk_for
from planner.optimise.search import Search
from planner.optimise.template import template
from planner.optimise.vertices import VertexCuts
from planner.problem import Existing, Quota
from planner.solve import solve
from tests.problems import close, firm, offer, problem
from tests.weeks import week


def quick(asked, u=(), duals=None):
    """USD of the quick dispatch, plain sum over kinds, of the first scenario."""
    reduced = reduce(asked)
    first = first_stage(reduced)
    u = np.zeros(len(first.sources)) + np.array(u if len(u) else 0.0)
    return float(Greedy(reduced, first, duals).by_kind(u)[0].sum())


def test_a_pool_that_both_may_use_goes_to_the_one_that_has_no_other():
    # p (4 GPUs) serves x and y, q (4 GPUs) only y. y in p would leave x on demand.
    sold = [
        offer("a", 4.0),
        offer("p", None, existing=(Existing(4.0, 2),)),
        offer("q", None, existing=(Existing(4.0, 2),), region="r2"),
    ]
    users = [firm("x", ["a", "p"]), firm("y", ["a", "p", "q"])]
    assert quick(problem(users, sold, {"x": [4, 6], "y": [4, 4]})) == close(2 * 4.0)


def test_quotas_caps_and_joint_shares_are_kept_by_the_quick_dispatch():
    # Of 10 GPUs at most half on spot, 0.3 on each offer: 3 on s1 (price 1.0) and 2 on s2 (1.2),
    # then on demand at 3.0 within the quota of 4, of which spot has taken 3: 1; shortage 4 at 100.
    sold = [
        offer("s1", 3.0, spot=1.0, spot_throughput=1.0),
        offer("s2", None, spot=1.2, spot_throughput=1.0, region="r2"),
    ]
    users = [firm("w", ["s1", "s2"], min_firm_share=0.5, spot_max_share_per_offer=0.3)]
    asked = problem(users, sold, {"w": [10]}, quotas=(Quota("aws", "us", 4.0),))
    assert quick(asked) == close(3 * 1.0 + 2 * 1.2 + 1 * 3.0 + 4 * 100.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("full", [False, True])
def test_the_quick_dispatch_never_undercuts_the_best_one(seed, full):
    reduced = reduce(week(seed, full=full, classes=6, hours=48))
    first = first_stage(reduced)
    best, greedy = DispatchOracle(reduced, first), Greedy(reduced, first)
    rng = np.random.default_rng(seed)
    for most in (0.0, 20.0):
        u = rng.uniform(0, most, len(first.sources))
        assert (greedy.by_kind(u).sum(axis=1) >= best.exact(u, math.inf) - 1e-6).all()


@pytest.mark.parametrize("seed", range(3))
def test_sampled_prices_bring_the_quick_dispatch_nearer_and_their_cuts_stay_below(seed):
    reduced = reduce(week(seed, full=True, classes=8, offers=7, hours=168, scenarios=2))
    first, sampled = first_stage(reduced), sample(reduced)
    u = np.full(len(first.sources), 6.0)
    programs = DispatchOracle(sampled, first)
    programs.evaluate(u, math.inf)
    cheap = VertexCuts(reduced, sampled, first, template(reduced), programs.duals_by_hour())
    best = DispatchOracle(reduced, first).exact(u, math.inf)
    priced = Greedy(reduced, first, cheap.duals).by_kind(u, cheap.choose(u)).sum(axis=1)
    plain = Greedy(reduced, first).by_kind(u).sum(axis=1)
    assert (cheap.evaluate(u).value <= best * (1 + 1e-9)).all()
    assert (priced >= best * (1 - 1e-9)).all()
    assert priced.sum() <= plain.sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_guess_is_the_relaxed_optimum_where_only_pools_are_shared(seed):
    reduced = reduce(week(seed, full=False, classes=6, hours=48))
    first = first_stage(reduced)
    z = guess(reduced, first, math.inf).z
    programs = DispatchOracle(reduced, first)
    search = Search(first, risk_for(reduced, programs), programs, "highs", 1e-4, math.inf)
    search.relax(np.zeros(len(first)))
    assert search.evaluate(z) <= search.relaxed * 1.002


def test_no_guess_is_made_where_the_closed_form_has_too_many_sets(monkeypatch):
    reduced = reduce(week(1, full=True))
    first = first_stage(reduced)
    assert guess(reduced, first, math.inf).z.any()
    monkeypatch.setattr(closed_form, "MOST_UNIONS", 1)
    made = guess(reduced, first, math.inf)
    assert not made.z.any()
    assert not len(made.duals)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("full", [False, True])
def test_the_prices_of_a_guess_bound_the_cost_of_every_plan_from_below(seed, full):
    reduced = reduce(week(seed, full=full, classes=8, offers=7, hours=130, scenarios=2))
    first, sampled = first_stage(reduced), sample(reduced)
    made = guess(sampled, first, math.inf)
    cheap = VertexCuts(reduced, sampled, first, template(reduced), made.duals)
    assert len(cheap.duals) == len(np.unique(made.duals.round(9), axis=0))  # all are feasible
    best = DispatchOracle(reduced, first)
    for u in (first.feed(made.z), np.zeros(len(first.sources)), np.full(len(first.sources), 9.0)):
        found, cost = cheap.evaluate(u), best.exact(u, math.inf)
        assert (found.value <= cost * (1 + 1e-9) + 1e-6).all()
    at = first.feed(made.z)
    assert cheap.evaluate(at).value.sum() >= 0.6 * best.exact(at, math.inf).sum()


def test_the_price_of_a_joint_share_is_that_of_the_spot_which_fills_it():
    # In each hour 10 GPUs, half of which may be spot: 3 at 1.0, then 2 of another at 1.2; the rest
    # on demand at 3.0. No pool, and a quota of 10 that never binds in this hour's prices.
    sold = [
        offer("s1", 3.0, spot=1.0, spot_throughput=1.0),
        offer("s2", None, spot=1.2, spot_throughput=1.0, region="r2"),
    ]
    users = [firm("w", ["s1", "s2"], min_firm_share=0.5, spot_max_share_per_offer=0.3)]
    asked = problem(users, sold, {"w": [10] * 2}, quotas=(Quota("aws", "us", 9.0),))
    reduced = reduce(asked)
    first = first_stage(reduced)
    made = guess(reduced, first, math.inf)
    cheap = VertexCuts(reduced, reduced, first, template(reduced), made.duals)
    assert cheap.evaluate(np.zeros(0)).value == pytest.approx(2 * (3 * 1.0 + 2 * 1.2 + 5 * 3.0))


class OutOfTime(DispatchOracle):
    """An oracle whose time is over before its first evaluation of all the hours."""

    hours = 0

    def __init__(self, reduced, *how):
        super().__init__(reduced, *how)
        self.over = len(reduced.cells) == self.hours

    def evaluate(self, u, until):
        return None if self.over else super().evaluate(u, until)


def test_a_run_that_its_time_ends_after_the_sample_is_near_the_best(monkeypatch):
    asked = week(2, full=True, classes=8, offers=7, hours=168, scenarios=4)
    best = solve(asked, gap=1e-4, method="decomposition")
    monkeypatch.setattr(OutOfTime, "hours", len(reduce(asked).cells))
    monkeypatch.setattr(engine, "DispatchOracle", OutOfTime)
    short = solve(asked, gap=1e-4, method="decomposition", with_dispatch=False)
    assert short.status == "feasible"
    assert best.bound * 0.9 < short.bound <= best.objective
    assert best.bound <= short.objective < best.objective * 1.2
