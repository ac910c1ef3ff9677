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

    def wait_less(self, rows: Places, amount: Array) -> None:
        """Lower the first hour's limit rows by what no longer waits."""
        self.row_high[rows] -= amount


class Form:
    """The matrix. `windows` of the waiting groups where ends are open, else empty.

    `offered` are the shares of the limit rows, hours x rows, where work that waits is limited:
    such a form serves its own hours alone.
    """

    def __init__(
        self,
        template: Template,
        keep: Places,
        count: int,
        windows: list[int],
        offered: Array | None = None,
    ) -> None:
        self.template, self.keep, self.count = template, keep, count
        self.windows, self._offered = windows, offered
        self._waiting = len(template.deferrable)
        self._free: SimpleQueue[highspy.HighsLp] = SimpleQueue()
        size = template.rows.size
        used = template.value[keep] != 0.0
        index = (template.row[keep][used] + size * np.arange(count)[:, None]).ravel()
        value = np.tile(template.value[keep][used], count)
        lengths = np.tile(used.sum(axis=1), count)
        served, served_value, served_lengths = self._served()
        before, before_value, before_lengths = self._done_before()
        after = count * size + np.repeat(np.arange(len(windows), dtype=np.intp), windows)
        ends = np.ones(len(after), dtype=np.intp)
        self.first_end = count * (len(keep) + self._waiting)
        self.columns = self.first_end + len(before_lengths) + len(after)
        self.rows = count * size + len(windows)
        every = np.concatenate([[0], lengths, served_lengths, before_lengths, ends])
        self._start = np.cumsum(every).astype(np.int32)
        self._index = np.concatenate([index, served, before, after]).astype(np.int32)
        self._value = np.concatenate([value, served_value, before_value, ends])

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
        for number, column in enumerate(form.hourly):
            at = np.flatnonzero(keep == column)
            upper[:, at] = (hours.demand[:, form.group[column]] * hours.hourly[:, number])[:, None]
        high[:used] = upper.ravel()
        low[used:ends], high[used:ends] = hours.due.ravel(), hours.released.ravel()
        row_low, row_high = self._row_bounds(hours, capacity, spend)
        last = hours.released[-1][: len(self.windows)]
        row_low, row_high = (np.append(rows.ravel(), last) for rows in (row_low, row_high))
        return Bounds(cost, low, high, row_low, row_high, ends)

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
        if self._offered is None:
            return both[there], value, there.sum(axis=-1).ravel()
        served = np.arange(own.size).reshape(own.shape)
        columns = [np.broadcast_to(served[:, :, None], both.shape)[there]]
        rows, values = [both[there]], [value]
        for row, place in self._limits():  # what is served is no longer waiting in the next hour
            columns.append(served[:-1, place])
            rows.append(row + size * np.arange(1, count))
            values.append(self._offered[1:, row - self.template.rows.limit])
        at, below, amount = np.concatenate(columns), np.concatenate(rows), np.concatenate(values)
        order = np.lexsort((below, at))
        return below[order], amount[order], np.bincount(at, minlength=own.size)

    def _done_before(self) -> tuple[Places, Array, Places]:
        """Entries of work done before: in the first hour's balance, and in its limit rows."""
        rows: list[int] = []
        values: list[float] = []
        lengths: list[int] = []
        for place, window in enumerate(self.windows):
            own = [(int(self.template.deferrable[place]), 1.0)]
            if self._offered is not None:
                first = self._offered[0]
                limits = [row for row, waiting in self._limits() if waiting == place]
                own += [(row, float(first[row - self.template.rows.limit])) for row in limits]
            rows += [row for row, _ in own] * window
            values += [value for _, value in own] * window
            lengths += [len(own)] * window
        return np.array(rows, dtype=np.intp), np.array(values), np.array(lengths, dtype=np.intp)

    def _limits(self) -> list[tuple[int, int]]:
        """Limit rows of waiting groups, each with the group's place among them."""
        form = self.template
        places = {group: place for place, group in enumerate(form.deferrable.tolist())}
        limited = enumerate(form.limited.tolist(), start=form.rows.limit)
        return [(row, places[group]) for row, group in limited if group in places]

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
        high[:, rows.share : rows.limit] = form.shares * hours.demand[:, form.sharing]
        need = hours.demand.copy()
        need[:, form.deferrable] = hours.released
        high[:, rows.limit :] = hours.offered * need[:, form.limited]
        return low, high
