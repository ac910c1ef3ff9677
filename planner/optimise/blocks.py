"""Blocks of hours as linear programs kept in HiGHS, re-solved by warm dual simplex.

A block is a run of hours of one scenario (or of cells of equal hours). Only right-hand sides
change from one evaluation to the next: pool and plan rows with the first stage, and the backlog
at the block's first hour.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np

from data.errors import SolveError
from planner.optimise.master import silent_highs

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.optimise.template import Template

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """The data of a block: rows are its hours, in order.

    `demand` hours x groups (work released, for groups that wait), `owned` hours x pools,
    `active` hours x sources, `weight` hours each stands for, `cells` their places among the
    cells of the reduced problem, `due` and `released` hours x
    waiting groups (cumulative GPU-hours). The first `inner` hours are its own; the rest it
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

    def __len__(self) -> int:
        return len(self.demand)


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """Work with windows across an end, per waiting group.

    Releases before the first hour that may still wait and those near the last hour that may, the
    GPU-hours due before the first hour, and all released by the last.
    """

    before: list[Array]
    after: list[Array]
    done: Array
    released: Array


class Block:
    """One block's linear program."""

    def __init__(self, hours: Hours, template: Template, keep: Places, pool: Places) -> None:
        self.hours, self._template, self.keep = hours, template, keep
        self._waiting = len(template.deferrable)
        self._highs = silent_highs()
        self._highs.passModel(self._model())
        rows, size = template.rows, template.rows.size
        changing = np.arange(rows.pool, rows.quota)
        at = np.arange(len(hours))[:, None] * size + changing
        self._changing = at.ravel().astype(np.int32)
        self._floor = np.full(self._changing.size, -math.inf)
        self.solved = False
        self._pool = pool
        self._open: _Ends | None = None

    def solve(self, u: Array, until: float) -> bool:
        """Solve with the sources u; False where the time is over."""
        hours, real = self.hours, self._pool >= 0
        capacity = hours.owned.copy()
        for source in np.flatnonzero(real & (u != 0.0)):
            capacity[:, self._pool[source]] += hours.active[:, source] * u[source]
        spend = np.broadcast_to(u[~real], (len(hours), int((~real).sum())))
        top = np.concatenate([capacity, spend], axis=1).ravel()
        self._highs.changeRowsBounds(len(self._changing), self._changing, self._floor, top)
        return self._run(until)

    def start_from(self, other: Block) -> None:
        """Begin at the basis of a block of the same form."""
        self._highs.setBasis(other._highs.getBasis())

    def widen(self, fresh: Places) -> None:
        """Take in more columns of the template, from the present basis on."""
        former, basis = self.keep, self._highs.getBasis()
        self.keep = np.union1d(former, fresh)
        count = len(self.hours)
        status = np.array([int(one) for one in basis.col_status])
        lower = int(highspy.HighsBasisStatus.kLower)
        wider = np.full((count, len(self.keep)), lower)
        known = status[: count * len(former)].reshape(count, len(former))
        wider[:, np.searchsorted(self.keep, former)] = known
        former_lp = self._highs.getLp()
        model = self._model()
        own = count * self._template.rows.size
        low, high = np.array(former_lp.row_lower_), np.array(former_lp.row_upper_)
        model.row_lower_, model.row_upper_ = low[:own], high[:own]
        ends = self._ends_of(former_lp)
        self._highs.passModel(model)
        self._attach(ends)
        statuses = np.append(wider.ravel(), status[count * len(former) :])
        kinds = {int(one): one for one in highspy.HighsBasisStatus.__members__.values()}
        basis.col_status = [kinds[one] for one in statuses.tolist()]
        self._highs.setBasis(basis)

    def like(self, other: Block) -> bool:
        """Whether the other has as many hours and columns, and no cuts as yet in either."""
        same = len(self.hours) == len(other.hours) and len(self.keep) == len(other.keep)
        return same and self._highs.getNumCol() == other._highs.getNumCol()

    def open_ends(self, released: Array, windows: list[int]) -> None:
        """Let work with windows across an end be done outside, at prices given later.

        One column a release: before the first hour (it adds to y there), or after the last.
        `released` is scenario hours x waiting groups.
        """
        first, end = self.start, self.start + len(self.hours)
        last = end >= len(released)
        before = [_between(released[:, g], first - w, first) for g, w in enumerate(windows)]
        after = [_between(released[:, g], end - w, end) * (not last) for g, w in enumerate(windows)]
        done = np.array([released[: max(first - w, 0), g].sum() for g, w in enumerate(windows)])
        self._open = _Ends(before, after, done, self.hours.released[-1])
        self._attach(None)
        rows = self._template.deferrable.astype(np.int32)
        self._highs.changeRowsBounds(len(rows), rows, -done, -done)

    def price_outside(self, prices: Array, windows: list[int]) -> None:
        """Set what work done outside costs, from the prices of all hours x waiting groups."""
        assert self._open is not None
        first, end = self.start, self.start + len(self.hours)
        costs = []
        for number, window in enumerate(windows):
            inside = _between(prices[:, number], first - window, first)
            costs.append(np.minimum.accumulate(inside[::-1])[::-1])
        for number, window in enumerate(windows):
            ahead = _between(prices[:, number], end, end + window, np.inf)
            least = np.minimum.accumulate(ahead)
            costs.append(np.where(np.isfinite(least), least, 0.0))
        cost = np.concatenate(costs)
        at = self._ends_at + np.arange(len(cost), dtype=np.int32)
        self._highs.changeColsCost(len(at), at.astype(np.int32), cost)

    def begin_with(self, served: Array) -> None:
        """Fix what was served before the first hour: earliest released, earliest done."""
        assert self._open is not None
        parts = []
        for have, amounts in zip(served - self._open.done, self._open.before, strict=True):
            upto = np.cumsum(amounts)
            parts.append(np.clip(have - (upto - amounts), 0.0, amounts))
        self._bound_before(np.concatenate(parts), np.concatenate(parts))

    def begin_anyhow(self) -> None:
        """Let what is served before the first hour be chosen again."""
        assert self._open is not None
        top = np.concatenate(self._open.before)
        self._bound_before(np.zeros(len(top)), top)

    def slopes(self) -> Array:
        """Slopes of the optimum in the sources u."""
        return self.slopes_of(self.duals())

    def slopes_of(self, duals: Array) -> Array:
        """Slopes in the sources u that row duals of the first hours give."""
        rows, pool = self._template.rows, self._pool
        real = pool >= 0
        found = np.empty(len(pool))
        found[~real] = duals[:, rows.plan : rows.quota].sum(axis=0)
        active = self.hours.active[: len(duals), real]
        found[real] = (active * duals[:, rows.pool + pool[real]]).sum(axis=0)
        return np.minimum(found, 0.0)

    def duals(self) -> Array:
        """Row duals, hours x rows of the template."""
        own = len(self.hours) * self._template.rows.size
        found = np.array(self._highs.getSolution().row_dual[:own])
        return found.reshape(len(self.hours), self._template.rows.size)

    def values(self) -> tuple[Array, Array]:
        """Columns kept, hours x columns; and cumulative GPU-hours served, hours x waiting."""
        found = np.array(self._highs.getSolution().col_value)
        hours, used = len(self.hours), len(self.keep)
        end = hours * (used + self._waiting)
        served = found[hours * used : end].reshape(hours, self._waiting)
        return found[: hours * used].reshape(hours, used), served

    @property
    def objective(self) -> float:
        """The optimum of the linear program, what comes after included."""
        return float(self._highs.getInfo().objective_function_value)

    @property
    def start(self) -> int:
        """The first hour."""
        return self.hours.start

    def _attach(self, bounds: tuple[Array, Array, Array] | None) -> None:
        """Add the columns and rows of open ends to a model that lacks them."""
        ends, highs = self._open, self._highs
        if ends is None:
            return
        self._ends_at = highs.getNumCol()
        last = self._first_served + (len(self.hours) - 1) * self._waiting
        rows = highs.getNumRow()
        for number, total in enumerate(ends.released.tolist()):
            index = np.array([last + number], dtype=np.int32)
            highs.addRow(total, total, 1, index, np.ones(1))
        for number, amounts in enumerate(ends.before):
            row = np.array([self._template.deferrable[number]], dtype=np.int32)
            for amount in amounts.tolist():
                highs.addCol(0.0, 0.0, amount, 1, row, np.ones(1))
        for number, amounts in enumerate(ends.after):
            row = np.array([rows + number], dtype=np.int32)
            for amount in amounts.tolist():
                highs.addCol(0.0, 0.0, amount, 1, row, np.ones(1))
        if bounds is not None:
            cost, low, high = bounds
            at = np.arange(self._ends_at, self._ends_at + len(cost), dtype=np.int32)
            highs.changeColsCost(len(at), at, cost)
            highs.changeColsBounds(len(at), at, low, high)

    def _ends_of(self, lp: highspy.HighsLp) -> tuple[Array, Array, Array] | None:
        if self._open is None:
            return None
        at = self._ends_at
        fields = lp.col_cost_, lp.col_lower_, lp.col_upper_
        cost, low, high = (np.array(field[at:]) for field in fields)
        return cost, low, high

    def _bound_before(self, low: Array, high: Array) -> None:
        at = self._ends_at + np.arange(len(low))
        self._highs.changeColsBounds(len(at), at.astype(np.int32), low, high)

    @property
    def _first_served(self) -> int:
        return len(self.hours) * len(self.keep)

    def _run(self, until: float) -> bool:
        left = until - time.perf_counter()
        if left <= 0:
            return False
        highs = self._highs
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
        self.solved = True
        return True

    def _model(self) -> highspy.HighsLp:
        hours, form, keep = self.hours, self._template, self.keep
        count, size = len(hours), form.rows.size
        used = form.value[keep] != 0.0
        index = (form.row[keep][used] + size * np.arange(count)[:, None]).ravel()
        value = np.tile(form.value[keep][used], count)
        lengths = np.tile(used.sum(axis=1), count)
        cost = (hours.weight[:, None] * form.cost[keep]).ravel()
        limited = np.isfinite(form.cap[keep])
        upper = np.full((count, len(keep)), math.inf)
        demand = hours.demand[:, form.group[keep][limited]]
        upper[:, limited] = demand * form.cap[keep][limited]
        low, high = self._row_bounds()
        served, served_value, served_lengths = self._served_entries()
        waiting = count * self._waiting
        lp = highspy.HighsLp()
        lp.num_col_ = count * len(keep) + waiting
        lp.num_row_ = count * size
        lp.col_cost_ = np.concatenate([cost, np.zeros(waiting)])
        lp.col_lower_ = np.concatenate([np.zeros(len(cost)), hours.due.ravel()])
        lp.col_upper_ = np.concatenate([upper.ravel(), hours.released.ravel()])
        lp.row_lower_, lp.row_upper_ = low.ravel(), high.ravel()
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        ends = np.cumsum(np.concatenate([[0], lengths, served_lengths]))
        lp.a_matrix_.start_ = ends.astype(np.int32)
        lp.a_matrix_.index_ = np.concatenate([index, served]).astype(np.int32)
        lp.a_matrix_.value_ = np.concatenate([value, served_value])
        return lp

    def _served_entries(self) -> tuple[Places, Array, Places]:
        """Entries of y: -1 in its own hour's balance, +1 in the next hour's."""
        count, size = len(self.hours), self._template.rows.size
        own = self._template.deferrable[None, :] + size * np.arange(count)[:, None]
        both = np.stack([own, own + size], axis=-1)
        there = np.ones(both.shape, dtype=bool)
        there[-1, :, 1] = False
        value = np.broadcast_to([-1.0, 1.0], both.shape)[there]
        return both[there], value, there.sum(axis=-1).ravel()

    def _row_bounds(self) -> tuple[Array, Array]:
        hours, form = self.hours, self._template
        rows = form.rows
        low = np.full((len(hours), rows.size), -math.inf)
        high = np.empty_like(low)
        balance = hours.demand.copy()
        balance[:, form.deferrable] = 0.0
        low[:, : rows.pool] = high[:, : rows.pool] = balance
        high[:, rows.pool : rows.plan] = hours.owned
        high[:, rows.plan : rows.quota] = 0.0
        high[:, rows.quota : rows.share] = form.limits
        high[:, rows.share :] = form.shares * hours.demand[:, form.sharing]
        return low, high


def _between(series: Array, start: int, end: int, outside: float = 0.0) -> Array:
    """Entries `start` to `end - 1` of a series, `outside` where there are none."""
    at = np.arange(start, end)
    there = (at >= 0) & (at < len(series))
    found: Array = np.where(there, series[np.clip(at, 0, len(series) - 1)], outside)
    return found
