"""What blocks of as many hours have in common: the matrix of their linear programs.

Columns, in this order: the template's columns kept, hour by hour; the GPU-hours y served of each
waiting group up to each hour; and, where ends are open, the work of each release done before the
first hour, then that done after the last. Rows: the template's, hour by hour; and, where ends are
open, all released by the last hour, one a waiting group.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from planner.optimise.blocks import Hours
    from planner.optimise.template import Template

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_STATUSES = {int(one): one for one in highspy.HighsBasisStatus.__members__.values()}


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Cost and bounds of every column, bounds of every row; `served` is the first y."""

    cost: Array
    low: Array
    high: Array
    row_low: Array
    row_high: Array
    ends: int

    def open(self, cost: Array, low: Array, high: Array) -> None:
        """Set the columns of open ends."""
        self.cost[self.ends :], self.low[self.ends :], self.high[self.ends :] = cost, low, high

    def begin(self, rows: Places, amount: Array) -> None:
        """Set what the first hour's balance rows of waiting groups come to."""
        self.row_low[rows] = self.row_high[rows] = amount


class Form:
    """The matrix. `windows` of the waiting groups where ends are open, else empty."""

    def __init__(self, template: Template, keep: Places, count: int, windows: list[int]) -> None:
        self.template, self.keep, self.count = template, keep, count
        self.windows = windows
        self._waiting = len(template.deferrable)
        self._free: SimpleQueue[highspy.HighsLp] = SimpleQueue()
        size = template.rows.size
        used = template.value[keep] != 0.0
        index = (template.row[keep][used] + size * np.arange(count)[:, None]).ravel()
        value = np.tile(template.value[keep][used], count)
        lengths = np.tile(used.sum(axis=1), count)
        served, served_value, served_lengths = self._served()
        before = np.repeat(template.deferrable, windows) if windows else np.empty(0, dtype=np.intp)
        after = count * size + np.repeat(np.arange(len(windows)), windows)
        ends = np.concatenate([before, after]).astype(np.int32)
        self.first_end = count * (len(keep) + self._waiting)
        self.columns = self.first_end + len(ends)
        self.rows = count * size + len(windows)
        every = np.concatenate([[0], lengths, served_lengths, np.ones(len(ends), dtype=np.intp)])
        self._start = np.cumsum(every).astype(np.int32)
        self._index = np.concatenate([index, served, ends]).astype(np.int32)
        self._value = np.concatenate([value, served_value, np.ones(len(ends))])

    @contextmanager
    def lent(self, bounds: Bounds) -> Iterator[highspy.HighsLp]:
        """The linear program, for as long as it takes to pass it on: filling a matrix is slow."""
        try:
            lp = self._free.get_nowait()
        except Empty:
            lp = self._matrix()
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = bounds.cost, bounds.low, bounds.high
        lp.row_lower_, lp.row_upper_ = bounds.row_low, bounds.row_high
        yield lp
        self._free.put(lp)

    def _matrix(self) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, self.rows
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = self._start, self._index
        lp.a_matrix_.value_ = self._value
        return lp

    def bounds(self, hours: Hours, capacity: Array, spend: Array) -> Bounds:
        """Costs and bounds of a block, those of open ends zero: capacity hours x pools."""
        form, keep, count = self.template, self.keep, self.count
        ends, used = self.first_end, count * len(keep)
        cost, low, high = (np.zeros(self.columns) for _ in range(3))
        cost[:used] = (hours.weight[:, None] * form.cost[keep]).ravel()
        limited = np.isfinite(form.cap[keep])
        upper = np.full((count, len(keep)), math.inf)
        demand = hours.demand[:, form.group[keep][limited]]
        upper[:, limited] = demand * form.cap[keep][limited]
        high[:used] = upper.ravel()
        low[used:ends], high[used:ends] = hours.due.ravel(), hours.released.ravel()
        row_low, row_high = self._row_bounds(hours, capacity, spend)
        last = hours.released[-1][: len(self.windows)]
        both = (np.concatenate([rows.ravel(), last]) for rows in (row_low, row_high))
        return Bounds(cost, low, high, *both, ends)

    def widened(self, basis: highspy.HighsBasis, former: Form) -> highspy.HighsBasis:
        """A basis of a form with fewer columns as one of this: the others at zero."""
        status = np.array([int(one) for one in basis.col_status])
        own = self.count * len(former.keep)
        lower = int(highspy.HighsBasisStatus.kLower)
        wider = np.full((self.count, len(self.keep)), lower)
        known = status[:own].reshape(self.count, len(former.keep))
        wider[:, np.searchsorted(self.keep, former.keep)] = known
        statuses = np.append(wider.ravel(), status[own:])
        found = highspy.HighsBasis()
        found.col_status = [_STATUSES[one] for one in statuses.tolist()]
        found.row_status = basis.row_status
        found.valid = True
        return found

    def _served(self) -> tuple[Places, Array, Places]:
        """Entries of y: -1 in its own hour's balance, +1 in the next hour's or the last row."""
        count, size = self.count, self.template.rows.size
        own = self.template.deferrable[None, :] + size * np.arange(count)[:, None]
        both = np.stack([own, own + size], axis=-1)
        there = np.ones(both.shape, dtype=bool)
        there[-1, :, 1] = bool(self.windows)
        both[-1, :, 1] = count * size + np.arange(self._waiting)
        value = np.broadcast_to([-1.0, 1.0], both.shape)[there]
        return both[there], value, there.sum(axis=-1).ravel()

    def _row_bounds(self, hours: Hours, capacity: Array, spend: Array) -> tuple[Array, Array]:
        form = self.template
        rows = form.rows
        low = np.full((len(hours), rows.size), -math.inf)
        high = np.empty_like(low)
        balance = hours.demand.copy()
        balance[:, form.deferrable] = 0.0
        low[:, : rows.pool] = high[:, : rows.pool] = balance
        high[:, rows.pool : rows.plan] = capacity
        high[:, rows.plan : rows.quota] = spend
        high[:, rows.quota : rows.share] = form.limits
        high[:, rows.share :] = form.shares * hours.demand[:, form.sharing]
        return low, high
