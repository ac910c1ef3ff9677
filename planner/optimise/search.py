"""The search: an L-shaped method that ends with both bounds.

First the relaxation: the master's optimum bounds from below, and the point that is evaluated lies
between it and the best point so far (in-out), which keeps the steps short. Then whole counts: the
master with all cuts proposes a plan, its evaluation bounds from above and cuts again.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from planner.optimise.master import Master

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.optimise.first_stage import FirstStage
    from planner.optimise.recourse import Evaluation, Oracle, Risk

    Array = npt.NDArray[np.float64]

_STEP = 0.5  # of the way from the best point to the master's
_RELAXED_SHARE = 0.25  # of the gap asked for, to which the relaxation is solved
_MOST_ROUNDS = 1000


@dataclass(slots=True)
class Search:
    """One search. Values are USD per hour weight; `lower` holds for whole counts as well."""

    first: FirstStage
    risk: Risk
    oracle: Oracle
    solver: str
    gap: float
    until: float
    master: Master = field(init=False)
    lower: float = 0.0
    upper: float = math.inf
    best: Array | None = None
    solver_name: str = ""
    evaluations: int = 0
    relaxed: float = 0.0
    relaxed_at: Array | None = None

    def __post_init__(self) -> None:
        self.master = Master(self.first, self.risk, self.oracle.scenario_of)

    def evaluate(self, z: Array) -> float | None:
        """The cost of a plan, its cuts added; None where the time is over."""
        found: Evaluation | None = self.oracle.evaluate(self.first.feed(z), self.until)
        if found is None:
            return None
        self.evaluations += 1
        self.master.add(found)
        return float(self.first.cost @ z) + self.risk.cost(found.cost)

    def relax(self, start: Array) -> bool:
        """Solve the relaxation to a part of the gap; False where the time ended it."""
        center, step = start, _STEP
        value = self.evaluate(center)
        if value is None:
            return False
        target = _RELAXED_SHARE * self.gap
        for _ in range(_MOST_ROUNDS):
            point = self.master.relaxed()
            self.lower = max(self.lower, point.value)
            self.relaxed_at = point.z
            if value - point.value <= target * abs(value) + 1e-12:
                break
            tried = center + step * (point.z - center)
            cost = self.evaluate(tried)
            if cost is None:
                return False
            if cost < value:
                center, value = tried, cost
                step = _STEP
            else:
                step = min(1.0, step * 1.5) if step < 1 else _STEP
        self.relaxed = value
        self.relaxed_at = center
        return True

    def round(self) -> bool:
        """Close the gap with whole counts; False where the time ended it."""
        assert self.relaxed_at is not None
        if not self._try(self._nearest(self.relaxed_at)):
            return False
        seen: set[bytes] = set()
        master_gap = max(self.gap, 1e-4)
        for _ in range(_MOST_ROUNDS):
            if self.closed:
                return True
            left = self.until - time.perf_counter()
            if left <= 0:
                return False
            point, bound, self.solver_name = self.master.whole(
                self.solver, min(master_gap, self.gap) * 0.25, left
            )
            self.lower = max(self.lower, bound)
            if point is None:
                return False
            key = point.z.round(9).tobytes()
            if key in seen:
                return True
            seen.add(key)
            if not self._try(point.z):
                return False
        return False

    @property
    def closed(self) -> bool:
        """Whether the bounds are within the gap."""
        return self.upper - self.lower <= self.gap * abs(self.upper)

    def _try(self, z: Array) -> bool:
        cost = self.evaluate(z)
        if cost is None:
            return False
        if cost < self.upper:
            self.upper, self.best = cost, z
        return True

    def _nearest(self, z: Array) -> Array:
        """Whole counts near z that the budget allows."""
        first = self.first
        near = np.where(first.whole, np.round(z), z)
        if first.budget is not None and first.upfront @ near > first.budget:
            near = np.where(first.whole, np.floor(z + 1e-9), z)
        return near
