"""The command `solve`: the optimiser alone, on a problem file."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from planner.answers import DONE, FAILED, WITH_WARNINGS, Answer

if TYPE_CHECKING:
    import argparse

    from planner.outcome import Result

log = logging.getLogger("loadfactor")
_STATUS_CODES = {"optimal": DONE, "feasible": WITH_WARNINGS}
_NEARLY = 0.9  # of the time limit: a search that took so long was stopped by it


def solve(options: argparse.Namespace) -> Answer:
    """The best plan of a problem file, with what it proves; exit 4 where it is not proven."""
    from planner.previous_file import Previous
    from planner.previous_file import read as read_previous
    from planner.problem_file import read
    from planner.solve import solve as solve_problem
    from reports.solved import solved_text

    problem = read(options.problem)
    former = None
    if options.previous is not None:
        former = read_previous(options.previous, problem)
    result = solve_problem(
        problem,
        gap=options.gap,
        time_limit=options.time_limit,
        solver=options.solver,
        method=options.method,
        previous=None if former is None else former.plan,
        tolerance=options.tolerance,
        with_why=options.why,
    )
    warnings = [*(former or Previous(result.plan)).warnings, *result.warnings]
    for warning in warnings:
        log.warning("warning: %s", warning)
    stopped = _stopped(result, options)
    if stopped:
        log.warning("%s", stopped)
    document = result.as_json()
    if warnings:
        document["warnings"] = warnings
    code = _STATUS_CODES.get(result.status, FAILED)
    return Answer(solved_text(document), document, max(code, WITH_WARNINGS) if warnings else code)


def _stopped(result: Result, options: argparse.Namespace) -> str:
    """Why the answer is less than asked for, in a sentence; nothing where it is not."""
    from reports.numbers import gap

    if result.status == "optimal":
        return ""
    if result.status == "infeasible":
        return "no plan meets the limits of the problem"
    late = result.seconds >= _NEARLY * options.time_limit
    ending = f"stopped at its time limit of {options.time_limit:g} seconds" if late else "ended"
    if result.gap is None:
        return f"the search {ending} before it found a plan: give it more time (--time-limit)"
    if result.gap <= options.gap or result.warnings:  # which tell why
        return ""
    advice = "give it more time (--time-limit)" if late else "ask for a larger gap (--gap)"
    return (
        f"the search {ending} before the gap of {gap(options.gap)} was proven: the plan is within "
        f"{gap(result.gap)} of the best; {advice} for more"
    )
