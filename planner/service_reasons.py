"""Why a class stays below a stated service level: one reason each, found by lifting the limits.

Where nothing is sold to commit to, that is the reason. Else each limit that the plan has is lifted
by itself, and the first without which the class reaches its level is the reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from data.risks import LevelMissed
from planner.assemble import base_name
from planner.service_level import at_level, below_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.outcome import Result
    from planner.problem import Problem
    from planner.waterfall import Solved


def why_below(
    plan: Solved, level: float, solve: Callable[[Problem], Result]
) -> dict[str, LevelMissed]:
    """The reason by class id, of the classes of a plan that stay below the level."""
    problem = plan.problem
    found: dict[str, LevelMissed] = {}
    left = set(below_level(plan.served, level))
    for name in sorted(left):
        if not _is_sold(problem, name):
            found[name] = LevelMissed.NONE_SOLD
    left -= set(found)
    for reason, lifted in _lifted(problem):
        if not left:
            break
        _, shares = at_level(lifted, level, solve)
        reached = {name for name, _ in shares} - below_level(shares, level)
        found |= dict.fromkeys(sorted(left & reached), reason)
        left -= reached
    return found | dict.fromkeys(sorted(left), LevelMissed.SEVERAL)


def _is_sold(problem: Problem, name: str) -> bool:
    """Whether any commitment is sold to a class."""
    offers = {o for one in problem.classes if base_name(one.id) == name for o in one.offers}
    return any(
        one.reservations or one.sp_rate is not None for one in problem.offers if one.id in offers
    )


def _lifted(problem: Problem) -> Iterator[tuple[LevelMissed, Problem]]:
    """The problem without one of its limits, where it has it."""
    if any(way.upfront for offer in problem.offers for way in offer.reservations):
        yield LevelMissed.BUDGET, replace(problem, upfront_budget=None)
    if problem.quotas:
        yield LevelMissed.QUOTA, replace(problem, quotas=())
    if problem.commitment_limits:
        yield LevelMissed.LIMIT, replace(problem, commitment_limits=())
