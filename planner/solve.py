"""Solves a problem: the cheapest plan with its status, bound and gap told truthfully."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from data.errors import SolveError, UsageError
from planner import outcome, solvers
from planner.model.build import build
from planner.model.dispatch import dispatch_of, plan_of
from planner.model.objective import scale
from planner.model.reductions import most_columns, reduce
from planner.optimise import engine
from planner.optimise.explain import explain

if TYPE_CHECKING:
    from planner.model.columns import Columns
    from planner.outcome import Result
    from planner.problem import Problem

OPTIMAL, FEASIBLE, INFEASIBLE, NO_SOLUTION = "optimal", "feasible", "infeasible", "no_solution"
METHODS = ("decomposition", "direct")
MOST_COLUMNS = 1_500_000  # of a direct model: about 2 GiB and half a minute to build
_SAME = 1e-12  # relative; a bound so near is the objective itself
_SOLVER_TOLERANCE = 2e-6  # USD per hour weight; HiGHS leaves out branches that gain less than 1e-6
_CONTRADICTION = 1e-6  # relative; a lower bound that far above a plan's cost is a fault of ours
_ROUNDING = 1e-9  # relative; sums of floats differ by so much in another order


def solve(
    problem: Problem,
    *,
    gap: float = 1e-4,
    time_limit: float = 600.0,
    solver: str = "highs",
    method: str = "decomposition",
    previous: outcome.Plan | None = None,
    tolerance: float = 0.001,
    with_dispatch: bool | None = None,
    with_why: bool = False,
) -> Result:
    """The best plan found for the problem within `time_limit` seconds, building included.

    `optimal` only where the bound proves it within the relative `gap`. `method` direct builds the
    whole hourly model at once. With a `previous` plan the answer is the nearest to it that costs
    at most `tolerance` (a share) more than the best. With `with_dispatch` None the dispatch of a
    very large problem is left empty; `with_why` explains the plan (decomposition only).

    Raises UsageError for settings out of range and for a model too large for the direct method,
    SolveError where the solver cannot be run.
    """
    begin = time.perf_counter()
    if not (math.isfinite(gap) and gap >= 0):
        raise UsageError(f"the gap must be a number >= 0, is {gap}")
    if not time_limit > 0:
        raise UsageError(f"the time limit must be > 0 seconds, is {time_limit}")
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if solver not in solvers.SOLVERS:
        names = ", ".join(solvers.SOLVERS)
        raise UsageError(f"unknown solver {solver!r}: choose one of {names}")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise UsageError(f"the tolerance must be a number >= 0, is {tolerance}")
    if method == "direct" and previous is not None:
        raise UsageError("a previous plan needs the method decomposition")
    if method == "direct" or problem.on_demand_integer:
        return _direct(problem, gap=gap, time_limit=time_limit, solver=solver)
    limits = engine.Limits(gap, solver, begin + time_limit, previous, tolerance)
    found = engine.decompose(problem, limits)
    if found is None:
        return _nothing_needed(problem, solver, time.perf_counter() - begin)
    size = len(problem.classes) * problem.hours * len(problem.scenarios)
    wanted = size <= engine.DISPATCH_SIZE if with_dispatch is None else with_dispatch
    # Staying near last night's plan may cost up to the tolerance: that is no failure of the search.
    allowed = gap if previous is None else (1 + gap) * (1 + tolerance) - 1
    result = _decomposed(problem, found, allowed, begin, wanted)
    if not with_why or not result.has_plan:
        return result
    dispatch = result.dispatch if wanted else engine.dispatch(found)
    return replace(result, why=explain(problem, found, dispatch))


def _direct(problem: Problem, *, gap: float, time_limit: float, solver: str) -> Result:
    begin = time.perf_counter()
    reduced = reduce(problem)
    if not reduced.groups:
        return _nothing_needed(problem, solver, time.perf_counter() - begin)
    columns = most_columns(reduced)
    if columns > MOST_COLUMNS:
        raise UsageError(
            f"the direct model has about {columns:,} columns, more than the {MOST_COLUMNS:,} "
            "that --method direct takes: use --method decomposition"
        )
    made = build(reduced)
    spent = time.perf_counter() - begin
    run = solvers.run(made.lp, solver=solver, gap=gap, time_limit=time_limit - spent)
    return result_of(made, run, gap, spent)


def _decomposed(
    problem: Problem, found: engine.Found, gap: float, begin: float, wanted: bool
) -> Result:
    bound = max(0.0, found.bound)
    if not math.isfinite(found.objective):
        seconds = time.perf_counter() - begin
        return outcome.Result(NO_SOLUTION, None, bound, None, seconds, found.solver)
    objective = found.objective
    if bound > objective * (1 + _CONTRADICTION) + _SOLVER_TOLERANCE * problem.hour_weight:
        raise SolveError(f"the bounds contradict each other: {bound} above {objective}")
    if objective - bound <= max(_SAME * objective, _SOLVER_TOLERANCE * problem.hour_weight):
        bound = objective
    distance = relative_gap(objective, bound)
    return outcome.Result(
        status=OPTIMAL if distance <= gap + _ROUNDING else FEASIBLE,
        objective=objective,
        bound=bound,
        gap=distance,
        seconds=time.perf_counter() - begin,
        solver=found.solver,
        plan=found.plan,
        costs=found.costs,
        dispatch=engine.dispatch(found) if wanted else outcome.empty_dispatch(),
    )


def result_of(made: Columns, run: solvers.Run, gap: float, spent: float) -> Result:
    """The answer that a solver's run gives; `spent` are the seconds before it.

    Status and objective come from the plan's own cost and the proven bound, not from the solver.
    """
    begin = time.perf_counter() - spent - run.seconds
    # No cost is negative, so zero is a bound that needs no solver.
    bound = max(0.0, (run.bound or 0.0) * scale(made))
    if not run.has_solution:
        status = INFEASIBLE if run.infeasible else NO_SOLUTION
        seconds = time.perf_counter() - begin
        return outcome.Result(status, None, bound, None, seconds, run.solver)
    problem = made.reduced.problem
    plan = plan_of(made)
    dispatch = dispatch_of(made, plan)
    costs = outcome.cost(problem, plan, dispatch)
    objective = math.fsum(costs.values())
    if objective - bound <= max(_SAME * objective, _SOLVER_TOLERANCE * scale(made)):
        bound = objective
    distance = relative_gap(objective, bound)
    return outcome.Result(
        status=OPTIMAL if distance <= gap + _ROUNDING else FEASIBLE,
        objective=objective,
        bound=bound,
        gap=distance,
        seconds=time.perf_counter() - begin,
        solver=run.solver,
        plan=plan,
        costs=costs,
        dispatch=dispatch,
    )


def relative_gap(objective: float, bound: float) -> float:
    """How far the objective may lie above the optimum, as a share of it.

    >>> relative_gap(100.0, 99.0), relative_gap(0.0, 0.0)
    (0.01, 0.0)
    """
    return (objective - bound) / abs(objective) if objective > bound else 0.0


def _nothing_needed(problem: Problem, solver: str, seconds: float) -> Result:
    plan = outcome.Plan()
    dispatch = outcome.empty_dispatch()
    costs = outcome.cost(problem, plan, dispatch)
    return outcome.Result(OPTIMAL, 0.0, 0.0, 0.0, seconds, solver, plan, costs, dispatch)
