"""Decomposition from end to end: reduce, choose an oracle, search, and answer with both bounds."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner import outcome
from planner.model.reductions import reduce
from planner.optimise import closed_form
from planner.optimise.coarse import sample
from planner.optimise.dispatch import dispatch_of
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import FirstStage, first_stage
from planner.optimise.greedy import Greedy
from planner.optimise.guess import guess
from planner.optimise.master import Master
from planner.optimise.previous import gpus_per_unit, stay_near, still_sold
from planner.optimise.recourse import KINDS, Evaluation, Oracle, risk_for, risk_of
from planner.optimise.search import Search
from planner.optimise.template import template
from planner.optimise.vertices import VertexCuts

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from planner.model.reductions import Reduced
    from planner.outcome import Plan
    from planner.problem import Problem

    Array = npt.NDArray[np.float64]

_SAMPLE_GAP = 1e-3
_CHAIN_SHARE = 0.8
_CHEAP_ROUNDS = 25
_CHEAP_TIME = 0.15  # share of the time left for cuts from sampled duals
_SAMPLE_TIME = 0.3  # share of the time that a sample may take
_STEP_SHARE = 0.3  # of each step from a start found by sampling
DISPATCH_SIZE = 200_000  # class-hours for which a dispatch is given unasked


@dataclass(frozen=True, slots=True)
class Limits:
    """What a search may take: relative gap, the solver of the master, and the clock's end.

    With a previous plan, the nearest to it that costs at most `tolerance` more than the best.
    """

    gap: float
    solver: str
    until: float
    previous: Plan | None = None
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search found; money in USD. Without a plan, `objective` is infinite."""

    plan: Plan
    objective: float
    bound: float
    costs: dict[str, float]
    solver: str
    oracle: Oracle
    first: FirstStage
    reduced: Reduced
    search: Search
    extra_share: float = 0.0  # over the best, for staying near a previous plan


def decompose(problem: Problem, limits: Limits) -> Found | None:
    """The best plan found and its bound; None where nothing is needed at all."""
    reduced = reduce(problem)
    if not reduced.groups:
        return None
    if limits.previous is not None:
        reduced = still_sold(reduced, limits.previous)
    first = first_stage(reduced)
    if closed_form.holds(reduced):
        oracle: Oracle = closed_form.ClosedForm(reduced, first)
        start = Start(_guessed(reduced, first, limits), None, [])
    else:
        start = _sampled(reduced, first, limits)
        oracle = DispatchOracle(reduced, first, start.keep)
    # The cost of a chain of blocks is its bound until proved: leave room for the difference.
    chained = isinstance(oracle, DispatchOracle) and oracle.chained
    gap = limits.gap * (_CHAIN_SHARE if chained else 1.0)
    search = Search(first, risk_for(reduced, oracle), oracle, limits.solver, gap, limits.until)
    extra = 0.0
    if not oracle.merged:
        for cut in start.cuts:
            search.master.add_sums(cut.u, cut.cost, cut.slope)
    # Whole counts at once, so that there is a plan after one evaluation.
    if search.relax(search.nearest(start.z), _STEP_SHARE if start.z.any() else 1.0):
        if search.round():
            _prove(search, limits)
        if limits.previous is not None:
            target = first.vector(limits.previous)
            weights = gpus_per_unit(first, problem.offers)
            extra = stay_near(search, target, weights, limits.tolerance, limits.until)
    elif isinstance(oracle, closed_form.ClosedForm):
        _price_late(search, start)
    return replace(_found(reduced, first, search, start), extra_share=extra)


def _prove(search: Search, limits: Limits) -> None:
    """Close the gap of a chain's own dispatch too, by longer blocks where it takes them."""
    oracle = search.oracle
    if not isinstance(oracle, DispatchOracle) or not oracle.chained:
        return
    while not search.prove(limits.gap) and oracle.chained:
        if search.best is None or time.perf_counter() >= limits.until:
            return
        former, oracle = oracle, oracle.longer()
        search.turn_to(oracle)
        if not search.propose(search.best):  # no time for these: the others have solved the plan
            search.turn_to(former)
            return
        former.close()


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where a search begins: a plan, the columns of an hour of use, and cuts known already."""

    z: Array
    keep: npt.NDArray[np.intp] | None
    cuts: list[Evaluation]
    cheap: VertexCuts | None = None


def _price_late(search: Search, start: Start) -> None:
    """Price the plan nearest to where the time ended, which takes the closed form a moment."""
    search.until = math.inf
    search.propose(search.nearest(start.z if search.relaxed_at is None else search.relaxed_at))
    search.lower = max(search.lower, search.master.relaxed().value)


def _guessed(reduced: Reduced, first: FirstStage, limits: Limits) -> Array:
    """The optimum of a sample of the hours, where there are many."""
    sampled = sample(reduced)
    return np.zeros(len(first)) if sampled is None else guess(sampled, first, limits.until).z


def _sampled(reduced: Reduced, first: FirstStage, limits: Limits) -> Start:
    """A start from a sample of the hours, where there are many."""
    start = np.zeros(len(first))
    sampled = sample(reduced)
    if sampled is None:
        return Start(start, None, [])
    oracle = DispatchOracle(sampled, first)
    now = time.perf_counter()
    until = now + _SAMPLE_TIME * max(limits.until - now, 0.0)
    search = Search(first, risk_for(sampled, oracle), oracle, "highs", _SAMPLE_GAP, until)
    begin = guess(sampled, first, until)
    search.relax(begin.z, _STEP_SHARE if begin.z.any() else 1.0, tightness=1.0)
    z, keep, duals = begin.z, None, begin.duals
    if search.relaxed_at is not None:
        z, keep = search.relaxed_at, oracle.promising()
        duals = np.vstack([duals, oracle.duals_by_hour()])
    oracle.close()
    if not len(duals) or (oracle.merged and len(reduced.problem.scenarios) > 1):
        return Start(z, keep, [])
    cheap = VertexCuts(reduced, sampled, first, template(reduced), duals)
    return Start(z, keep, _cheap_cuts(reduced, first, cheap, z, limits), cheap)


def _cheap_cuts(
    reduced: Reduced, first: FirstStage, cheap: VertexCuts, start: Array, limits: Limits
) -> list[Evaluation]:
    """Cuts of a search in the bound that sampled duals give, the last rounds of it."""
    scenarios = np.arange(len(reduced.problem.scenarios), dtype=np.intp)
    master = Master(first, risk_of(reduced), scenarios)
    risk = risk_of(reduced)
    cuts: list[Evaluation] = []
    center, value = start, math.inf
    now = time.perf_counter()
    until = now + _CHEAP_TIME * max(limits.until - now, 0.0)
    tried = start
    while len(cuts) < _CHEAP_ROUNDS and time.perf_counter() < until:
        found = cheap.evaluate(first.feed(tried))
        cuts.append(found)
        master.add(found)
        cost = float(first.cost @ tried) + risk.cost(found.cost)
        if cost < value:
            center, value = tried, cost
        lower = master.relaxed().value
        if value - lower <= _SAMPLE_GAP * 0.2 * value:
            break
        tried = master.step(center, lower + 0.3 * (value - lower))
    return cuts


def dispatch(found: Found) -> pd.DataFrame:
    """The dispatch of the plan that was found."""
    oracle = found.oracle
    u = found.first.feed(found.first.vector(found.plan))
    if not isinstance(oracle, DispatchOracle):
        oracle = DispatchOracle(found.reduced, found.first)
    oracle.exact(u, math.inf)
    return dispatch_of(found.reduced, oracle, found.plan)


def at_plan(problem: Problem, plan: Plan, solver: str) -> Found | None:
    """A plan priced in the problem, as a search finds it; None where nothing is needed."""
    reduced = reduce(problem)
    if not reduced.groups:
        return None
    reduced = still_sold(reduced, plan)
    first = first_stage(reduced)
    closed = closed_form.holds(reduced)
    oracle: Oracle = (closed_form.ClosedForm if closed else DispatchOracle)(reduced, first)
    search = Search(first, risk_for(reduced, oracle), oracle, solver, 0.0, math.inf)
    z = first.vector(plan)
    search.propose(z)
    search.lower = search.master.relaxed().value
    return _found(reduced, first, search, Start(z, None, []))


def best_dispatch(reduced: Reduced, plan: Plan) -> pd.DataFrame:
    """The dispatch of a plan, each scenario solved for itself."""
    first = first_stage(reduced)
    oracle = DispatchOracle(reduced, first)
    oracle.exact(first.feed(first.vector(plan)), math.inf)
    found = dispatch_of(reduced, oracle, plan)
    oracle.close()
    return found


def _found(reduced: Reduced, first: FirstStage, search: Search, start: Start) -> Found:
    """The answer of a search; where it evaluated no plan, of a quick dispatch."""
    problem, oracle = reduced.problem, search.oracle
    scale = problem.hour_weight
    if search.best is None:
        return _quick(reduced, first, search, start)
    plan = first.plan(search.best)
    u = first.feed(first.vector(plan))
    if not isinstance(oracle, closed_form.ClosedForm):
        oracle.exact(u, math.inf)
    costs = costs_of(reduced, oracle.by_kind(u), oracle.merged, plan)
    objective = math.fsum(costs.values())
    return Found(
        plan, objective, search.lower * scale, costs, _name(search), oracle, first, reduced, search
    )


def _quick(reduced: Reduced, first: FirstStage, search: Search, start: Start) -> Found:
    """The sampled plan, its counts rounded, at a quick dispatch."""
    cheap, scale = start.cheap, reduced.problem.hour_weight
    plan = first.plan(search.nearest(start.z))
    u = first.feed(first.vector(plan))
    greedy = Greedy(reduced, first, None if cheap is None else cheap.duals)
    kinds = greedy.by_kind(u, None if cheap is None else cheap.choose(u))
    costs = costs_of(reduced, kinds, greedy.merged, plan)
    lower = max(search.lower, search.master.relaxed().value) * scale
    total, name = math.fsum(costs.values()), _name(search)
    return Found(plan, total, lower, costs, name, search.oracle, first, reduced, search)


def _name(search: Search) -> str:
    """The solver of the whole counts; the relaxations are always solved by HiGHS."""
    relaxed = search.master.solver_name
    if relaxed.startswith(search.solver):
        return search.solver_name or relaxed
    if search.solver_name:
        return f"{search.solver_name} (relaxations: {relaxed})"
    reached = "needed" if search.closed else "reached"
    return f"{relaxed} (relaxations; {search.solver} not {reached})"


def costs_of(reduced: Reduced, by_kind: Array, merged: bool, plan: Plan) -> dict[str, float]:
    """The eight entries of the answer, in USD; `by_kind` is USD per hour weight.

    Where `merged`, its one row is the mean over scenarios already.
    """
    problem = reduced.problem
    kinds = by_kind * problem.hour_weight
    costs = outcome.commitments(problem, plan)
    p = [1.0] if merged else [scenario.p for scenario in problem.scenarios]
    for number, kind in enumerate(KINDS):
        costs[kind] = math.fsum(
            share * value for share, value in zip(p, kinds[:, number].tolist(), strict=True)
        )
    costs["cvar"] = 0.0
    if problem.cvar is not None:
        totals = [math.fsum(row) for row in kinds.tolist()]
        risk = outcome.cvar(totals, p, problem.cvar.beta) if not merged else sum(totals)
        bought = math.fsum(outcome.commitments(problem, plan).values())
        costs["cvar"] = problem.cvar.weight * risk + problem.cvar.on_commitments * bought
    return costs
