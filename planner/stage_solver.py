"""How the stages of a plan are solved: by the decomposition, within one time limit for all.

The decomposition serves a stage in less time and memory than the direct model whatever its size
(the demo's last stage in 1.4 against 1.7 CPU seconds, 50 classes in 2.8 against 12), so every stage
goes there; each answer is priced again and its rules checked by `planner.optimise.audit`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from data.errors import SolveError
from planner.solve import FEASIBLE, OPTIMAL, relative_gap, solve

if TYPE_CHECKING:
    from planner.outcome import Plan, Result
    from planner.problem import Problem

_LEAST_SECONDS = 1.0
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StageSolver:
    """Solves stages together within `time_limit` seconds, each with what is left of them.

    With `last`, the purchases of the last night, the plan is the nearest to them that costs at
    most `tolerance` (a share) more than the best.
    """

    gap: float
    time_limit: float
    name: str
    last: Plan | None = None
    tolerance: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds left of the time limit; 0 where it is over."""
        return max(0.0, self.time_limit - (time.monotonic() - self.began))

    def stage(self, problem: Problem) -> Result:
        """The best plan of one stage, with its dispatch."""
        return self._solve(problem, with_dispatch=True)

    def plan(self, problem: Problem) -> Result:
        """The plan: as a stage, near to the last night's, and explained."""
        return self._solve(problem, previous=self.last, with_dispatch=True, with_why=True)

    def near(self, problem: Problem) -> Result:
        """As a plan, near to the last night's, but not explained."""
        return self._solve(problem, previous=self.last, with_dispatch=True)

    def rival(self, problem: Problem) -> Result | None:
        """The best plan of a problem asked beside the plan; None where no time is left."""
        if self.left <= 0:
            return None
        found = self._solve(problem, with_dispatch=False)
        return found if found.has_plan else None

    def kept(self, former: Result, tried: Result) -> Result:
        """The former stage's plan as that of a stage whose own came out no better.

        It is allowed there too; how good it is there, the newer stage's bound tells.
        """
        objective = former.objective
        if objective is None:
            raise SolveError("there is no former plan to keep")
        bound = min(tried.bound or 0.0, objective)
        distance = relative_gap(objective, bound)
        # Staying near the last night may cost up to the tolerance.
        most = self.gap if self.last is None else (1 + self.gap) * (1 + self.tolerance) - 1
        status = OPTIMAL if distance <= most * (1 + _ROUNDING) else FEASIBLE
        return replace(former, status=status, bound=bound, gap=distance, why=tried.why)

    def _solve(
        self,
        problem: Problem,
        *,
        previous: Plan | None = None,
        with_dispatch: bool,
        with_why: bool = False,
    ) -> Result:
        return solve(
            problem,
            gap=self.gap,
            time_limit=min(max(self.left, _LEAST_SECONDS), self.time_limit),
            solver=self.name,
            method="decomposition",
            previous=previous,
            tolerance=self.tolerance,
            with_dispatch=with_dispatch,
            with_why=with_why,
        )
