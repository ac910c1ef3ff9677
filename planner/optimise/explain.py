"""Why a plan is what it is: what each line is worth, what binds, and why other offers lost.

All worths are marginal: of one more or one fewer instance, GPU or USD, at the plan, in USD a month
of 730 hours, with scenarios weighed as the objective weighs them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from planner.optimise.bought_lines import Line, bought_lines
from planner.optimise.limit_worth import Limit, limits
from planner.optimise.not_bought import Rejected, Unused, rejected, unused
from planner.optimise.shortages import Shortage, shortages
from planner.optimise.worth import Worth

if TYPE_CHECKING:
    import pandas as pd

    from planner.optimise.engine import Found
    from planner.problem import Problem

__all__ = ["Explanation", "Limit", "Line", "Rejected", "Shortage", "Unused", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything said about a plan, in a fixed order."""

    lines: tuple[Line, ...] = ()
    limits: tuple[Limit, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    shortages: tuple[Shortage, ...] = ()
    unused: tuple[Unused, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The explanation as plain records."""
        return asdict(self)


def explain(problem: Problem, found: Found, dispatch: pd.DataFrame) -> Explanation:
    """The explanation of a plan that a search found; `dispatch` is its dispatch."""
    worth = Worth(problem, found)
    return Explanation(
        limits=limits(worth),
        rejected=rejected(worth),
        lines=bought_lines(worth),
        shortages=shortages(problem, dispatch, found.plan),
        unused=unused(problem, dispatch),
    )
