"""The search: an L-shaped method that ends with both bounds.

First the relaxation, by the level method: the master's optimum bounds from below, and the next
plan is the nearest to the best so far that the cuts price well below it. Then whole counts: the
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

_LEVEL = 0.3  # of the gap between the bounds, above the lower one, is what a step aims at
_RELAXED_SHARE = 0.25  # of the gap asked for, to which the relaxation is solved
_SLOW = 0.1  # of the gap; a bound that rises by less wants longer steps
_MASTER_SHARE = 0.25  # of the gap asked for, to which the whole master is solved
_LOOSEST = 1e-3  # gap of a whole master, while the bounds are still further apart
_MOST_ROUNDS = 1000
_MOST_PROOFS = 4  # by then passes over the same blocks hardly raise the bound any more
_LEAST_SHARE = 0.1  # of the gap asked for, to which the search goes on where evaluations lose some


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
    regrouped: bool = False

    def __post_init__(self) -> None:
        oracle = self.oracle
        self.master = Master(self.first, self.risk, oracle.scenario_of, oracle.floor)

    def turn_to(self, oracle: Oracle) -> None:
        """Go on with an oracle of the same scenarios, whose parts the master does not know."""
        self.oracle, self.regrouped = oracle, True

    def evaluate(self, z: Array) -> float | None:
        """The cost of a plan, its cuts added; None where the time is over."""
        found: Evaluation | None = self.oracle.evaluate(self.first.feed(z), self.until)
        if found is None:
            return None
        self.evaluations += 1
        if self.regrouped:
            self.master.add_sums(
                found.u, found.cost, found.slope if found.whole is None else found.whole
            )
        else:
            self.master.add(found)
        return float(self.first.cost @ z) + self.risk.cost(found.cost)

    def relax(self, start: Array, share: float = 1.0, tightness: float = _RELAXED_SHARE) -> bool:
        """Solve the relaxation to a part of the gap; False where the time ended it.

        `share` is how far along each step to go at first: less than all from a good start.
        """
        center = start
        value = self.evaluate(center)
        if value is None:
            return False
        self.relaxed, self.relaxed_at = value, center
        if center.any() and np.array_equal(center, self.nearest(center)):  # a plan already
            self.upper, self.best = value, center
        target, former = tightness * self.gap, 0.0
        for _ in range(_MOST_ROUNDS):
            self.lower = max(self.lower, self.master.relaxed().value)
            if value - self.lower <= target * abs(value) + 1e-12:
                break
            level = self.lower + _LEVEL * (value - self.lower)
            if self.lower - former < _SLOW * (value - former):
                share = min(1.0, 1.5 * share)
            former = self.lower
            tried = center + share * (self.master.step(center, level) - center)
            cost = self.evaluate(tried)
            if cost is None:
                return False
            if cost < value:
                center, value = tried, cost
                self.relaxed, self.relaxed_at = value, center
        return True

    def round(self) -> bool:
        """Close the gap with whole counts; False where the time ended it."""
        if self.relaxed_at is None or not self.propose(self.nearest(self.relaxed_at)):
            return False
        self.master.rest()
        return self._close()

    def prove(self, gap: float) -> bool:
        """Close the gap of what the best plan costs, where evaluations tell only a bound of it.

        Each time that it stays open the plan is evaluated again, which raises its bound, and the
        search goes on to half the gap. False where that does not help or the time ended it.
        """
        least, cheapest = math.inf, self.best
        for _ in range(_MOST_PROOFS):
            if self.best is None:
                break
            q = self.oracle.exact(self.first.feed(self.best), self.until)
            if q is None:
                break
            cost = float(self.first.cost @ self.best) + self.risk.cost(q)
            if cost < least:
                least, cheapest = cost, self.best
            if least - self.lower <= gap * abs(least):
                break
            value = self.evaluate(self.best)
            self.gap = max(0.5 * self.gap, _LEAST_SHARE * gap)
            if value is None:
                break
            self.upper = value
            if not self._close():
                break
        self.best = cheapest
        return least - self.lower <= gap * abs(least)

    def _close(self) -> bool:
        seen: set[bytes] = set()
        loosest = _LOOSEST
        for _ in range(_MOST_ROUNDS):
            if self.closed:
                return True
            left = self.until - time.perf_counter()
            if left <= 0:
                return False
            apart = (self.upper - self.lower) / abs(self.upper) if self.upper else 0.0
            point, bound, self.solver_name = self.master.whole(
                self.solver, _MASTER_SHARE * max(self.gap, min(apart, loosest)), left
            )
            self.lower = max(self.lower, bound)
            if point is None:
                return False
            key = point.z.round(9).tobytes()
            if key in seen and loosest <= self.gap:
                return True
            loosest = self.gap if key in seen else loosest
            if key in seen:
                continue
            seen.add(key)
            between = None if self.best is None else 0.5 * (self.best + point.z)
            if not self.propose(point.z):
                return False
            # A cut between the two plans often rules out the neighbours of both.
            if not self.closed and between is not None and self.evaluate(between) is None:
                return False
        return False

    def propose(self, z: Array) -> bool:
        """Evaluate a plan with whole counts and keep it if it is the best."""
        cost = self.evaluate(z)
        if cost is None:
            return False
        if cost < self.upper:
            self.upper, self.best = cost, z
        return True

    @property
    def closed(self) -> bool:
        """Whether the bounds are within the gap."""
        return self.upper - self.lower <= self.gap * abs(self.upper)

    def nearest(self, z: Array) -> Array:
        """Whole counts near z, and savings plans, that the limits allow."""
        first = self.first
        near = np.where(first.whole, np.round(z), z)
        if not first.counts_fit(near):
            near = np.where(first.whole, np.floor(z + 1e-9), z)
        return first.within(near)
