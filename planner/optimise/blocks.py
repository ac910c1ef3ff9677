"""Blocks of hours as linear programs, re-solved by dual simplex from their former basis.

A block is a run of hours of one scenario (or of cells of equal hours). Only right-hand sides
change from one evaluation to the next: pool and plan rows with the first stage, and the backlog
at the block's first hour. Between solves a block keeps its basis and its solution alone; HiGHS,
which takes far more memory, is lent by `Solvers` for the time of a solve.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import highspy
import numpy as np

from data.errors import SolveError
from planner.optimise.master import silent_highs

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.optimise.block_form import Bounds, Form

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]


_LARGE = 10_000  # columns, from which presolve is worth it
_DUAL, _PRIMAL = 1, 4  # simplex: bounds changed, or columns came in at a basis that is feasible


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """The data of a block: rows are its hours, in order.

    `demand` hours x groups (work released, for groups that wait), `owned` hours x pools,
    `active` hours x sources, `weight` hours each stands for, `cells` their places among the
    cells of the reduced problem, `due` and `released` hours x
    waiting groups (cumulative GPU-hours), `hourly` hours x columns with caps by the hour, `offered`
    hours x limit rows (shares). The first `inner` hours are its own; the rest it
    shares with the next block. `start` is its first hour.
    """

    scenario: int
    cells: Places
    start: int
    inner: int
    demand: Array
    owned: Array
    active: Array
    weight: Array
    due: Array
    released: Array
    hourly: Array
    offered: Array

    def __len__(self) -> int:
        return len(self.demand)


@dataclass(slots=True, eq=False)
class _Ends:
    """Work with windows across an end: releases that may be done before, then those after.

    `low` and `high` bound what of each release is done outside, at `cost`; `amounts` are the
    releases before the first hour per waiting group, `done` the GPU-hours due before it.
    """

    amounts: list[Array]
    done: Array
    low: Array
    high: Array
    cost: Array


class Solvers:
    """HiGHS objects, each lent to one solve at a time: as many as solve side by side."""

    def __init__(self) -> None:
        self._free: SimpleQueue[highspy.Highs] = SimpleQueue()

    def take(self) -> highspy.Highs:
        """One that no other has."""
        try:
            return self._free.get_nowait()
        except Empty:
            return silent_highs()

    def give(self, highs: highspy.Highs) -> None:
        """Back, for the next."""
        self._free.put(highs)


class Block:
    """One block's linear program."""

    def __init__(self, hours: Hours, form: Form, pool: Places, solvers: Solvers) -> None:
        self.hours, self.form = hours, form
        self._pool, self._solvers = pool, solvers
        self._basis: highspy.HighsBasis | None = None
        self._strategy = _DUAL
        self._dual = np.empty(0)
        self._value = np.empty(0)
        self.objective = math.nan
        self._ends: _Ends | None = None

    @property
    def solved(self) -> bool:
        """Whether it has a solution."""
        return bool(len(self._dual))

    @property
    def keep(self) -> Places:
        """Its columns among those of the template."""
        return self.form.keep

    @property
    def start(self) -> int:
        """The first hour."""
        return self.hours.start

    def solve(self, u: Array, until: float) -> bool:
        """Solve with the sources u; False where the time is over."""
        highs = self._solvers.take()
        try:
            return self._solve(highs, u, until)
        finally:
            self._solvers.give(highs)

    def start_from(self, other: Block) -> None:
        """Begin at the basis of a block of the same form."""
        assert self.form is other.form
        self._basis = other._basis

    def widen(self, form: Form) -> None:
        """Take over a form of more columns, from the present basis on."""
        if self._basis is not None:
            self._basis = form.widened(self._basis, self.form)
            self._strategy = _PRIMAL
        self.form = form

    def open_ends(self, released: Array) -> None:
        """Let work with windows across an end be done outside, at prices given later.

        One column a release: before the first hour (it adds to y there), or after the last.
        `released` is scenario hours x waiting groups.
        """
        windows = self.form.windows
        first, end = self.start, self.start + len(self.hours)
        last = end >= len(released)
        before = [_between(released[:, g], first - w, first) for g, w in enumerate(windows)]
        after = [_between(released[:, g], end - w, end) * (not last) for g, w in enumerate(windows)]
        done = np.array([released[: max(first - w, 0), g].sum() for g, w in enumerate(windows)])
        high = np.concatenate([*before, *after])
        self._ends = _Ends(before, done, np.zeros(len(high)), high, np.zeros(len(high)))

    def price_outside(self, prices: Array, worth: Array) -> None:
        """Set what work done outside costs, from the prices of all hours x waiting groups.

        `worth` is what waiting until the end of each hour is worth so far: such prices hold it.
        """
        assert self._ends is not None
        first, end = self.start, self.start + len(self.hours)
        costs = []
        for number, window in enumerate(self.form.windows):
            inside = _between(prices[:, number], first - window, first)
            before = worth[first - 1, number] if first else 0.0
            costs.append(np.minimum.accumulate(inside[::-1])[::-1] - before)
        for number, window in enumerate(self.form.windows):
            ahead = _between(prices[:, number], end, end + window, np.inf)
            least = np.minimum.accumulate(ahead) - worth[end - 1, number]
            costs.append(np.where(np.isfinite(least), least, 0.0))
        self._ends.cost = np.concatenate(costs)

    def begin_with(self, served: Array) -> None:
        """Fix what was served before the first hour: earliest released, earliest done."""
        assert self._ends is not None
        parts = []
        for have, amounts in zip(served - self._ends.done, self._ends.amounts, strict=True):
            upto = np.cumsum(amounts)
            parts.append(np.clip(have - (upto - amounts), 0.0, amounts))
        fixed = np.concatenate(parts)
        self._bound_before(fixed, fixed)

    def begin_anyhow(self) -> None:
        """Let what is served before the first hour be chosen again."""
        assert self._ends is not None
        top = np.concatenate(self._ends.amounts)
        self._bound_before(np.zeros(len(top)), top)

    def slopes(self) -> Array:
        """Slopes of the optimum in the sources u."""
        return self.slopes_of(self.duals())

    def slopes_of(self, duals: Array) -> Array:
        """Slopes in the sources u that row duals of the first hours give."""
        rows, pool = self.form.template.rows, self._pool
        real = pool >= 0
        found = np.empty(len(pool))
        active = self.hours.active[: len(duals)]
        found[~real] = (active[:, ~real] * duals[:, rows.plan : rows.quota]).sum(axis=0)
        found[real] = (active[:, real] * duals[:, rows.pool + pool[real]]).sum(axis=0)
        return np.minimum(found, 0.0)

    def duals(self) -> Array:
        """Row duals, hours x rows of the template."""
        size = self.form.template.rows.size
        return self._dual[: len(self.hours) * size].reshape(len(self.hours), size)

    def values(self) -> tuple[Array, Array]:
        """Columns kept, hours x columns; and cumulative GPU-hours served, hours x waiting."""
        hours, used, waiting = len(self.hours), len(self.keep), len(self.form.template.deferrable)
        end = hours * (used + waiting)
        served = self._value[hours * used : end].reshape(hours, waiting)
        return self._value[: hours * used].reshape(hours, used), served

    def _bound_before(self, low: Array, high: Array) -> None:
        assert self._ends is not None
        self._ends.low[: len(low)], self._ends.high[: len(high)] = low, high

    def _bounds(self, u: Array) -> Bounds:
        """Costs and bounds of this block's columns and rows with the sources u."""
        hours, real = self.hours, self._pool >= 0
        capacity = hours.owned.copy()
        for source in np.flatnonzero(real & (u != 0.0)):
            capacity[:, self._pool[source]] += hours.active[:, source] * u[source]
        bounds = self.form.bounds(hours, capacity, hours.active[:, ~real] * u[~real])
        if self._ends is not None:
            bounds.open(self._ends.cost, self._ends.low, self._ends.high)
            form = self.form.template
            bounds.begin(form.deferrable, -self._ends.done)
            done = np.zeros(form.rows.pool)
            done[form.deferrable] = self._ends.done
            limits = np.arange(form.rows.limit, form.rows.size)
            bounds.wait_less(limits, hours.offered[0] * done[form.limited])
        return bounds

    def _solve(self, highs: highspy.Highs, u: Array, until: float) -> bool:
        left = until - time.perf_counter()
        if left <= 0:
            return False
        with self.form.lent(self._bounds(u)) as lp:
            highs.passModel(lp)
        fresh = self._basis is None and self.form.columns > _LARGE
        highs.setOptionValue("presolve", "on" if fresh else "off")
        highs.setOptionValue("simplex_strategy", self._strategy)
        if self._basis is not None:
            highs.setBasis(self._basis)
        highs.setOptionValue("time_limit", highs.getRunTime() + left)
        highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            return False
        if status != highspy.HighsModelStatus.kOptimal:
            highs.clearSolver()
            highs.run()
            if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise SolveError("a dispatch problem was not solved")
        self._basis, self._strategy = highs.getBasis(), _DUAL
        solution = highs.getSolution()
        self._dual, self._value = np.array(solution.row_dual), np.array(solution.col_value)
        self.objective = float(highs.getInfo().objective_function_value)
        return True


def _between(series: Array, start: int, end: int, outside: float = 0.0) -> Array:
    """Entries `start` to `end - 1` of a series, `outside` where there are none."""
    at = np.arange(start, end)
    there = (at >= 0) & (at < len(series))
    found: Array = np.where(there, series[np.clip(at, 0, len(series) - 1)], outside)
    return found
