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
from planner.model.units import far_apart, units_of
from planner.optimise import engine
from planner.optimise.buy_nothing import buy_nothing
from planner.optimise.certify import certified, confirmed, moved
from planner.optimise.explain import Explanation, explain

if TYPE_CHECKING:
    from planner.model.columns import Columns
    from planner.model.reductions import Reduced
    from planner.outcome import Result
    from planner.problem import Problem

OPTIMAL, FEASIBLE, INFEASIBLE, NO_SOLUTION = "optimal", "feasible", "infeasible", "no_solution"
METHODS = ("decomposition", "direct")
MOST_COLUMNS = 1_000_000  # of a direct model: 1.2 GiB and half a minute before the solver begins
_BUILT = 1e-5  # seconds a column to build the direct model
_HANDED = 2e-5  # to hand it to the solver and read the answer
_MOST_TO_DISPATCH = 100_000  # columns; a dispatch of more takes a part of the solver's time
_WITHOUT_PLAN = (
    "the time ended before the direct model had a plan: this one buys nothing ahead and serves by "
    "a quick dispatch; give it more time, or use --method decomposition"
)
_SAME = 1e-12  # relative; a bound so near is the objective itself
_SOLVER_TOLERANCE = 2e-6  # USD per hour weight; HiGHS leaves out branches that gain less than 1e-6
_LEAST_ROUNDING = 1e-9  # USD per hour weight; a cost so small is none
_CONTRADICTION = 1e-6  # relative; a lower bound that far above a plan's cost is a fault of ours
_NEAR = 1e-6  # relative, of the cost of a plan whose explanation is wanted
_ROUNDING = 1e-9  # relative; sums of floats differ by so much in another order


def solve(
    problem: Problem,
    *,
    gap: float = 1e-4,
    time_limit: float = 600.0,
    solver: str = "highs",
    method: str = "direct",
    previous: outcome.Plan | None = None,
    tolerance: float = 0.001,
    with_dispatch: bool | None = None,
    with_why: bool = False,
) -> Result:
    """The best plan found for the problem within `time_limit` seconds, building included.

    `optimal` only where the bound proves it within the relative `gap`. `method` direct builds the
    whole hourly model at once; it also serves whole-instance billing, which the decomposition
    does not know. With a `previous` plan the answer is the nearest to it that costs at most
    `tolerance` (a share) more than the best, and optimal means within gap and tolerance together;
    `with_why` explains the plan: both need the decomposition. With `with_dispatch` None the
    decomposition leaves the dispatch of a very large problem, or of a run that its time ended,
    empty.

    Raises UsageError for settings out of range or not of the method, and for a model too large for
    the direct one; SolveError where the solver cannot be run or the answer fails its audit.
    """
    begin = time.perf_counter()
    _check(gap, time_limit, solver)
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise UsageError(f"the tolerance must be a number >= 0, is {tolerance}")
    wanted = (("previous", previous is not None), ("why", with_why))
    asked = [name for name, there in wanted if there]
    units = units_of(problem)
    scaled = units.problem(problem)
    if method == "direct" or problem.on_demand_integer:
        _refuse_options(asked, problem)
        found = _direct(scaled, gap, time_limit, solver, MOST_COLUMNS)
        return _audited(problem, _doubted(problem, units.back(found)))
    near = None if previous is None else units.plan(previous)
    limits = engine.Limits(gap, solver, begin + time_limit, near, tolerance)
    result = units.back(_by_decomposition(scaled, limits, with_dispatch, with_why and units.same))
    if with_why and not units.same:
        result = replace(result, why=_explained(problem, result.plan, limits))
    result = _doubted(problem, result)
    assert result.objective is not None
    distance = None
    if previous is not None:
        distance = moved(previous, result.plan, result.objective, result.extra_share)
    certificate = confirmed(problem, result)
    seconds = time.perf_counter() - begin
    return replace(result, audited=certificate, moved=distance, seconds=seconds)


def solve_directly(
    problem: Problem, *, gap: float = 1e-4, time_limit: float = 600.0, solver: str = "highs"
) -> Result:
    """The best plan found by the direct model, whatever its size, with its dispatch.

    Raises UsageError for settings out of range, SolveError where the solver cannot be run.
    """
    _check(gap, time_limit, solver)
    units = units_of(problem)
    found = _direct(units.problem(problem), gap, time_limit, solver, None)
    return _doubted(problem, units.back(found))


def _doubted(problem: Problem, found: Result) -> Result:
    """The answer; not called optimal where prices differ too much for any solver to tell."""
    warning = far_apart(problem)
    if warning is None:
        return found
    status = FEASIBLE if found.status == OPTIMAL and found.objective else found.status
    return replace(found, status=status, warnings=(*found.warnings, warning))


def _audited(problem: Problem, found: Result) -> Result:
    """The answer of the direct model with its cost priced again."""
    if not found.has_plan:
        return found
    certificate, faults = certified(problem, found)
    doubts = tuple(f"the plan of the direct model misses a rule: {fault}" for fault in faults)
    return replace(found, audited=certificate, warnings=(*found.warnings, *doubts))


def _explained(problem: Problem, plan: outcome.Plan, limits: engine.Limits) -> Explanation:
    """The explanation, in the units of the file, of a plan that was found in others."""
    limits = replace(limits, previous=plan, tolerance=_NEAR)
    try:
        found = engine.decompose(problem, limits)
    except SolveError:  # its own units are too far from a solver's
        found = None
    if found is None or found.plan != plan:
        found = engine.at_plan(problem, plan, limits.solver)
    if found is None:
        return Explanation()
    return explain(problem, found, engine.dispatch(found))


def _check(gap: float, time_limit: float, solver: str) -> None:
    if not (math.isfinite(gap) and gap >= 0):
        raise UsageError(f"the gap must be a number >= 0, is {gap}")
    if not time_limit > 0:
        raise UsageError(f"the time limit must be > 0 seconds, is {time_limit}")
    if solver not in solvers.SOLVERS:
        names = ", ".join(solvers.SOLVERS)
        raise UsageError(f"unknown solver {solver!r}: choose one of {names}")


def _refuse_options(asked: list[str], problem: Problem) -> None:
    """Raise where options were asked for that only the decomposition has."""
    if not asked:
        return
    options = " and ".join(f"--{name}" for name in asked)
    if problem.on_demand_integer:
        raise UsageError(
            "whole-instance billing (on_demand_integer) is solved by the direct method only, "
            f"which has no {options}: leave it out"
        )
    raise UsageError(f"{options}: only --method decomposition has this")


def _direct(
    problem: Problem, gap: float, time_limit: float, solver: str, most: int | None
) -> Result:
    """The answer of the direct model, refused above `most` columns."""
    begin = time.perf_counter()
    reduced = reduce(problem)
    if not reduced.groups:
        return _nothing_needed(problem, solver, time.perf_counter() - begin)
    columns = most_columns(reduced)
    if most is not None and columns > most:
        advice = "use --method decomposition"
        if problem.on_demand_integer:
            advice = "whole-instance billing (on_demand_integer) has no other method"
        raise UsageError(
            f"the direct model has about {columns:,} columns, more than the {most:,} that "
            f"--method direct takes: {advice}"
        )
    if time_limit <= columns * (_BUILT + _HANDED):
        return _nothing_bought(problem, f"{solver} (not reached)", None, begin)
    made = build(reduced)
    spent = time.perf_counter() - begin
    left = time_limit - spent - columns * _HANDED
    run = solvers.run(made.lp, solver=solver, gap=gap, time_limit=left)
    if not run.has_solution and not run.infeasible:
        bound = None if run.bound is None else run.bound * scale(made)
        return _nothing_bought(problem, run.solver, bound, begin)
    found = result_of(made, run, gap, spent)
    if columns > _MOST_TO_DISPATCH or problem.on_demand_integer or not found.has_plan:
        return found
    return replace(_dispatched(reduced, found, gap), seconds=time.perf_counter() - begin)


def _nothing_bought(problem: Problem, solver: str, bound: float | None, begin: float) -> Result:
    """The plan that buys nothing, for a run of the direct model that ended without one."""
    size = len(problem.classes) * problem.hours * len(problem.scenarios)
    costs, dispatch = buy_nothing(problem, with_dispatch=size <= engine.DISPATCH_SIZE)
    objective = math.fsum(costs.values())
    proven = min(max(0.0, bound or 0.0), objective)
    return outcome.Result(
        status=FEASIBLE,
        objective=objective,
        bound=proven,
        gap=relative_gap(objective, proven),
        seconds=time.perf_counter() - begin,
        solver=solver,
        costs=costs,
        dispatch=dispatch,
        warnings=(_WITHOUT_PLAN,),
    )


def _dispatched(reduced: Reduced, found: Result, gap: float) -> Result:
    """The answer with the best dispatch of its plan, where the solver's is not.

    There scenarios of small probability count for little; here each is solved for itself.
    """
    assert found.objective is not None
    assert found.bound is not None
    dispatch = engine.best_dispatch(reduced, found.plan)
    costs = outcome.cost(reduced.problem, found.plan, dispatch)
    objective = math.fsum(costs.values())
    if objective >= found.objective:
        return found
    bound = min(found.bound, objective)
    distance = relative_gap(objective, bound)
    status = OPTIMAL if distance <= gap + _ROUNDING else FEASIBLE
    return replace(
        found,
        status=status,
        objective=objective,
        bound=bound,
        gap=distance,
        costs=costs,
        dispatch=dispatch,
    )


def _by_decomposition(
    problem: Problem, limits: engine.Limits, with_dispatch: bool | None, with_why: bool
) -> Result:
    """The answer of the decomposition; seconds are left 0."""
    found = engine.decompose(problem, limits)
    if found is None:
        nothing = _nothing_needed(problem, limits.solver, 0.0)
        return replace(nothing, why=Explanation()) if with_why else nothing
    if with_dispatch is None:
        size = len(problem.classes) * problem.hours * len(problem.scenarios)
        with_dispatch = size <= engine.DISPATCH_SIZE and time.perf_counter() < limits.until
    gap = limits.gap
    if limits.previous is not None:
        # Staying near it may cost up to the tolerance: that is no failure of the search.
        gap = (1 + gap) * (1 + limits.tolerance) - 1
    result = _decomposed(problem, found, gap, with_dispatch)
    if not with_why:
        return result
    dispatch = result.dispatch if with_dispatch else engine.dispatch(found)
    return replace(result, why=explain(problem, found, dispatch))


def _decomposed(problem: Problem, found: engine.Found, gap: float, with_dispatch: bool) -> Result:
    """The answer of the decomposition, not audited yet; seconds are left 0."""
    costs, dispatch = found.costs, outcome.empty_dispatch()
    if with_dispatch:
        dispatch = engine.dispatch(found)
        if found.search.best is None:  # priced by a quick dispatch so far: this one is better
            costs = outcome.cost(problem, found.plan, dispatch)
    objective, bound = math.fsum(costs.values()), max(0.0, found.bound)
    rounding = _SOLVER_TOLERANCE * problem.hour_weight
    if bound > objective * (1 + _CONTRADICTION) + rounding:
        raise SolveError(f"the bounds contradict each other: {bound} above {objective}")
    bound = _met(objective, bound, gap, problem.hour_weight)
    distance = relative_gap(objective, bound)
    return outcome.Result(
        status=OPTIMAL if distance <= gap + _ROUNDING else FEASIBLE,
        objective=objective,
        bound=bound,
        gap=distance,
        seconds=0.0,
        solver=found.solver,
        plan=found.plan,
        costs=costs,
        dispatch=dispatch,
        extra_share=found.extra_share,
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
    bound = _met(objective, bound, gap, scale(made))
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


def _met(objective: float, bound: float, gap: float, weight: float) -> float:
    """The objective where a bound lies no further below it than solvers round, else the bound.

    Of a cost that is small beside the hour weight no more than the gap is taken for rounding.
    """
    most = min(_SOLVER_TOLERANCE * weight, max(gap, _ROUNDING) * objective)
    near = max(_SAME * objective, _LEAST_ROUNDING * weight, most)
    return objective if objective - bound <= near else bound


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
