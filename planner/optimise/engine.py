"""Decomposition from end to end: reduce, choose an oracle, search, and answer with both bounds."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner import outcome
from planner.model.reductions import reduce
from planner.optimise import closed_form
from planner.optimise.coarse import sample
from planner.optimise.dispatch import dispatch_of
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import FirstStage, first_stage
from planner.optimise.recourse import KINDS, Oracle, Risk, risk_of
from planner.optimise.search import Search

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from planner.model.reductions import Reduced
    from planner.outcome import Plan
    from planner.problem import Problem

    Array = npt.NDArray[np.float64]

_SAMPLE_GAP = 1e-3
_SAMPLE_TIME = 0.3  # share of the time that a sample may take
_STEP_SHARE = 0.3  # of each step from a start found by sampling
DISPATCH_SIZE = 200_000  # class-hours for which a dispatch is given unasked


@dataclass(frozen=True, slots=True)
class Limits:
    """What a search may take: relative gap, the solver of the master, and the clock's end."""

    gap: float
    solver: str
    until: float


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


def decompose(problem: Problem, limits: Limits) -> Found | None:
    """The best plan found and its bound; None where nothing is needed at all."""
    reduced = reduce(problem)
    if not reduced.groups:
        return None
    first = first_stage(reduced)
    oracle, start = choose_oracle(reduced, first, limits)
    risk = _risk(reduced, oracle)
    search = Search(first, risk, oracle, limits.solver, limits.gap, limits.until)
    near = start.any()
    if search.relax(start, _STEP_SHARE if near else 1.0):
        search.round()
    return _found(reduced, first, search)


def choose_oracle(reduced: Reduced, first: FirstStage, limits: Limits) -> tuple[Oracle, Array]:
    """The formula where it holds, else linear programs; and where to start."""
    start = np.zeros(len(first))
    if closed_form.holds(reduced):
        return closed_form.ClosedForm(reduced, first), start
    sampled = sample(reduced)
    if sampled is None:
        return DispatchOracle(reduced, first), start
    oracle = DispatchOracle(sampled, first)
    now = time.perf_counter()
    until = now + _SAMPLE_TIME * max(limits.until - now, 0.0)
    search = Search(first, _risk(sampled, oracle), oracle, "highs", _SAMPLE_GAP, until)
    search.relax(start, tightness=1.0)
    if search.relaxed_at is None:
        return DispatchOracle(reduced, first), start
    keep = oracle.promising()
    oracle.close()
    return DispatchOracle(reduced, first, keep), search.relaxed_at


def dispatch(found: Found) -> pd.DataFrame:
    """The dispatch of the plan that was found."""
    oracle = found.oracle
    u = found.first.feed(found.first.vector(found.plan))
    if not isinstance(oracle, DispatchOracle):
        oracle = DispatchOracle(found.reduced, found.first)
    oracle.exact(u, math.inf)
    return dispatch_of(found.reduced, oracle, found.plan)


def _risk(reduced: Reduced, oracle: Oracle) -> Risk:
    risk = risk_of(reduced)
    if not oracle.merged:
        return risk
    # Probabilities are in the hours' weights already; only the factor of the risk is left.
    cvar = reduced.problem.cvar
    single = cvar is not None and len(reduced.problem.scenarios) == 1
    return Risk(np.array([1.0 + cvar.weight if single and cvar is not None else 1.0]), 0.0, 0.0)


def _found(reduced: Reduced, first: FirstStage, search: Search) -> Found | None:
    problem, oracle = reduced.problem, search.oracle
    scale = problem.hour_weight
    if search.best is None:
        return Found(
            outcome.Plan(), math.inf, search.lower * scale, {}, _name(search), oracle, first,
            reduced, search,
        )  # fmt: skip
    plan = first.plan(search.best)
    u = first.feed(first.vector(plan))
    cost = oracle.exact(u, math.inf)
    assert cost is not None
    costs = _costs(reduced, oracle, plan, u)
    objective = math.fsum(costs.values())
    return Found(
        plan, objective, search.lower * scale, costs, _name(search), oracle, first, reduced, search
    )


def _name(search: Search) -> str:
    return search.solver_name or search.master.solver_name


def _costs(reduced: Reduced, oracle: Oracle, plan: Plan, u: Array) -> dict[str, float]:
    """The eight entries of the answer, in USD, from a dispatch that was just solved."""
    problem = reduced.problem
    kinds = oracle.by_kind(u) * problem.hour_weight
    costs = outcome.commitments(problem, plan)
    p = [1.0] if oracle.merged else [scenario.p for scenario in problem.scenarios]
    for number, kind in enumerate(KINDS):
        costs[kind] = math.fsum(
            share * value for share, value in zip(p, kinds[:, number].tolist(), strict=True)
        )
    costs["cvar"] = 0.0
    if problem.cvar is not None:
        totals = [math.fsum(row) for row in kinds.tolist()]
        risk = outcome.cvar(totals, p, problem.cvar.beta) if not oracle.merged else sum(totals)
        costs["cvar"] = problem.cvar.weight * risk
    return costs
