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
    waiting groups (cumulative GPU-hours).
    """

    scenario: int
    cells: Places
    demand: Array
    owned: Array
    active: Array
    weight: Array
    due: Array
    released: Array

    def __len__(self) -> int:
        return len(self.demand)


@dataclass(frozen=True, slots=True, eq=False)
class _Cuts:
    """What comes after a block: theta >= constants + slopes.u + (the row's part in y)."""

    slopes: Array
    constants: Array


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
        self._after: _Cuts | None = None
        self._theta = -1

    def solve(self, u: Array, until: float) -> bool:
        """Solve with the sources u; False where the time is over."""
        hours, real = self.hours, self._pool >= 0
        capacity = hours.owned.copy()
        for source in np.flatnonzero(real & (u != 0.0)):
            capacity[:, self._pool[source]] += hours.active[:, source] * u[source]
        spend = np.broadcast_to(u[~real], (len(hours), int((~real).sum())))
        top = np.concatenate([capacity, spend], axis=1).ravel()
        self._highs.changeRowsBounds(len(self._changing), self._changing, self._floor, top)
        if self._after is not None and len(self._after.constants):
            low = self._after.constants + self._after.slopes @ u
            at = len(hours) * self._template.rows.size + np.arange(len(low), dtype=np.int32)
            self._highs.changeRowsBounds(len(low), at, low, np.full(len(low), math.inf))
        return self._run(until)

    def start_from(self, other: Block) -> None:
        """Begin at the basis of a block of the same form; the rows of cuts come in as basic."""
        basis = other._highs.getBasis()
        rows = list(basis.row_status)[: len(other.hours) * self._template.rows.size]
        more = self._highs.getNumRow() - len(rows)
        basis.row_status = rows + [highspy.HighsBasisStatus.kBasic] * more
        self._highs.setBasis(basis)

    def widen(self, fresh: Places) -> None:
        """Take in more columns of the template, from the present basis on."""
        former, basis = self.keep, self._highs.getBasis()
        self.keep = np.union1d(former, fresh)
        count = len(self.hours)
        status = np.array([int(one) for one in basis.col_status])
        lower = int(highspy.HighsBasisStatus.kLower)
        wider = np.full((count, len(self.keep)), lower)
        own = status[: count * len(former)].reshape(count, len(former))
        wider[:, np.searchsorted(self.keep, former)] = own
        former_lp = self._highs.getLp()
        model = self._model()
        own = count * self._template.rows.size
        low, high = np.array(former_lp.row_lower_), np.array(former_lp.row_upper_)
        model.row_lower_, model.row_upper_ = low[:own], high[:own]
        tail = self._tail(former_lp, count * (len(self.keep) - len(former)))
        self._highs.passModel(model)
        if self._after is not None:
            self._theta = self._highs.getNumCol()
            self._highs.addCol(1.0, 0.0, math.inf, 0, [], [])
        for at, (index, value) in enumerate(tail):
            self._highs.addRow(low[own + at], high[own + at], len(index), index, value)
        statuses = np.append(wider.ravel(), status[count * len(former) :])
        kinds = {int(one): one for one in highspy.HighsBasisStatus.__members__.values()}
        basis.col_status = [kinds[one] for one in statuses.tolist()]
        self._highs.setBasis(basis)

    def _tail(self, lp: highspy.HighsLp, shift: int) -> list[tuple[npt.NDArray[np.int32], Array]]:
        """The rows of the cuts, with columns moved on by `shift`."""
        if self._after is None:
            return []
        own = len(self.hours) * self._template.rows.size
        found = []
        for number in range(len(self._after.constants)):
            _, index, value = self._highs.getRowEntries(own + number)
            found.append((np.asarray(index, dtype=np.int32) + np.int32(shift), np.array(value)))
        return found

    def like(self, other: Block) -> bool:
        """Whether the other has as many hours and columns, and no cuts as yet in either."""
        same = len(self.hours) == len(other.hours) and len(self.keep) == len(other.keep)
        return same and (self._after is None) == (other._after is None)

    def begin_with(self, served: Array) -> None:
        """Set the GPU-hours that each waiting group has been served before the first hour."""
        rows = self._template.deferrable.astype(np.int32)
        self._highs.changeRowsBounds(len(rows), rows, -served, -served)

    def look_ahead(self, sources: int) -> None:
        """Give the block a column theta for what comes after it, known by cuts."""
        self._after = _Cuts(np.empty((0, sources)), np.empty(0))
        self._theta = self._highs.getNumCol()
        self._highs.addCol(1.0, 0.0, math.inf, 0, [], [])

    def cut(self, constant: float, slope: Array, worth: Array, u: Array) -> None:
        """Add theta >= constant + slope.u + worth.y with y served at the end."""
        assert self._after is not None
        self._after = _Cuts(
            np.vstack([self._after.slopes, slope]), np.append(self._after.constants, constant)
        )
        last = self._first_served + (len(self.hours) - 1) * self._waiting
        index = np.append(last + np.arange(self._waiting), self._theta).astype(np.int32)
        value = np.append(-worth, 1.0)
        self._highs.addRow(constant + float(slope @ u), math.inf, len(index), index, value)

    def slopes(self) -> Array:
        """Slopes of the optimum in the sources u, what comes after included."""
        rows, pool = self._template.rows, self._pool
        dual = np.array(self._highs.getSolution().row_dual)
        own = len(self.hours) * rows.size
        duals = dual[:own].reshape(len(self.hours), rows.size)
        found = np.empty(len(pool))
        found[pool < 0] = duals[:, rows.plan : rows.quota].sum(axis=0)
        real = pool >= 0
        found[real] = (self.hours.active[:, real] * duals[:, rows.pool + pool[real]]).sum(axis=0)
        found = np.minimum(found, 0.0)
        if self._after is not None:
            found += np.maximum(dual[own:], 0.0) @ self._after.slopes
        return found

    def worth_of_served(self) -> Array:
        """Change of the optimum per GPU-hour more that was served before the first hour."""
        dual = np.array(self._highs.getSolution().row_dual[: self._template.rows.pool])
        return -dual[self._template.deferrable]

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
    def own_cost(self) -> float:
        """USD of the block's own hours."""
        if self._after is None:
            return self.objective
        return self.objective - float(self._highs.getSolution().col_value[self._theta])

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
