"""Branch and bound on a few whole-number columns of a large linear program.

In a plan only the commitments are whole numbers, a few among very many hourly columns. One live
HiGHS object re-solved by warm dual simplex after each change of their bounds takes a fraction of
a second and no second copy of the model; a general search copies it several times.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

_LEAST_GAP = 1e-9  # below it, equal values differ by rounding
_WHOLE = 1e-6  # how near a whole number counts as one


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best solution (None: none found) and a bound below every other."""

    values: Array | None
    bound: float
    proven_empty: bool = False


@dataclass(frozen=True, slots=True, order=True)
class _Node:
    """Bounds of the whole columns, and what nothing within them can cost less than."""

    bound: float
    number: int
    low: tuple[float, ...]
    high: tuple[float, ...]

    def child(self, number: int, bound: float, place: int, low: float, high: float) -> _Node:
        """The node with the column at `place` held between `low` and `high`."""
        lows, highs = list(self.low), list(self.high)
        lows[place], highs[place] = low, high
        return _Node(bound, number, tuple(lows), tuple(highs))


class Search:
    """A search over whole columns of a HiGHS model whose relaxation has been solved already."""

    def __init__(self, highs: highspy.Highs, whole: list[int], gap: float, seconds: float) -> None:
        model = highs.getLp()
        self._highs = highs
        self._whole = np.array(whole, dtype=np.int32)
        self._price = np.abs(np.array(model.col_cost_)[self._whole]) + 1e-9
        low = np.array(model.col_lower_)[self._whole]
        high = np.array(model.col_upper_)[self._whole]
        self._root = _Node(-math.inf, 0, tuple(low.tolist()), tuple(high.tolist()))
        self._gap = gap
        self._deadline = time.perf_counter() + seconds
        self._count = 0
        self._best = math.inf
        self._values: Array | None = None
        self._pruned = math.inf
        self._open: list[_Node] = [self._root]

    def run(self) -> Found:
        """The cheapest solution within the gap, or the best at the end of the time."""
        while self._open and self._open[0].bound < self._cutoff():
            if not self._plunge(heapq.heappop(self._open)):
                break
        remaining = min((node.bound for node in self._open), default=math.inf)
        bound = min(self._best, self._pruned, remaining)
        empty = self._values is None and not self._open
        return Found(self._values, bound, empty)

    def _cutoff(self) -> float:
        if self._values is None:
            return math.inf
        return self._best - max(self._gap, _LEAST_GAP) * abs(self._best)

    def _plunge(self, node: _Node) -> bool:
        """Follow the node to a whole solution or to its end. False when the time is over."""
        while True:
            value = self._solve(node)
            if value is None:
                heapq.heappush(self._open, node)
                return False
            if value >= self._cutoff():
                self._pruned = min(self._pruned, value)
                return True
            solution = np.array(self._highs.getSolution().col_value)
            at = solution[self._whole]
            off = np.abs(at - np.round(at))
            off[off <= _WHOLE] = 0.0
            if not off.any():
                self._best, self._values = value, solution
                return True
            node = self._branch(node, value, int(np.argmax(off * self._price)), at)

    def _branch(self, node: _Node, value: float, place: int, at: Array) -> _Node:
        """The nearer of the two halves; the other is left for later."""
        below = math.floor(at[place])
        self._count += 2
        down = node.child(self._count, value, place, node.low[place], below)
        up = node.child(self._count + 1, value, place, below + 1, node.high[place])
        near, far = (down, up) if at[place] - below < 0.5 else (up, down)
        heapq.heappush(self._open, far)
        return near

    def _solve(self, node: _Node) -> float | None:
        """The node's least cost, infinite where it has no solution; None when out of time."""
        left = self._deadline - time.perf_counter()
        if left <= 0:
            return None
        low, high = np.array(node.low), np.array(node.high)
        self._highs.changeColsBounds(len(self._whole), self._whole, low, high)
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return math.inf
        if status != highspy.HighsModelStatus.kOptimal:
            return None
        return max(float(self._highs.getInfo().objective_function_value), node.bound)
