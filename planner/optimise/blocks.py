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
    `active` hours x sources, `weight` hours each stands for, `due` and `released` hours x
    waiting groups (cumulative GPU-hours). The first `inner` hours are its own; the rest only look
    ahead, so that backlog at its end is worth what it should be.
    """

    scenario: int
    start: int
    demand: Array
    owned: Array
    active: Array
    weight: Array
    due: Array
    released: Array
    inner: int

    def __len__(self) -> int:
        return len(self.demand)


class Block:
    """One block's linear program."""

    def __init__(self, hours: Hours, template: Template, keep: Places) -> None:
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

    def solve(self, capacity: Array, commitment: Array, until: float) -> bool:
        """Solve with GPUs per (hour, pool) and USD an hour per plan; False where time is over."""
        spend = np.broadcast_to(commitment, (len(self.hours), len(commitment)))
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
        count, served = len(self.hours), len(self.hours) * self._waiting
        status = np.array([int(one) for one in basis.col_status])
        lower = int(highspy.HighsBasisStatus.kLower)
        wider = np.full((count, len(self.keep)), lower)
        own = status[: count * len(former)].reshape(count, len(former))
        wider[:, np.searchsorted(self.keep, former)] = own
        rows = self._highs.getLp().row_lower_, self._highs.getLp().row_upper_
        costs = np.array(self._highs.getLp().col_cost_)[count * len(former) :]
        model = self._model()
        model.row_lower_, model.row_upper_ = rows
        self._highs.passModel(model)
        if served:
            at = np.arange(self._first_served, self._first_served + served, dtype=np.int32)
            self._highs.changeColsCost(served, at, costs)
        statuses = np.append(wider.ravel(), status[count * len(former) :])
        kinds = {int(one): one for one in highspy.HighsBasisStatus.__members__.values()}
        basis.col_status = [kinds[one] for one in statuses.tolist()]
        self._highs.setBasis(basis)

    def begin_with(self, served: Array) -> None:
        """Set the GPU-hours that each waiting group has been served before the first hour."""
        rows = self._template.deferrable.astype(np.int32)
        self._highs.changeRowsBounds(len(rows), rows, -served, -served)

    def value_backlog(self, worth: Array) -> None:
        """Set what a GPU-hour served before the end saves after it, per waiting group."""
        columns = (self._first_served + (len(self.hours) - 1) * self._waiting) + np.arange(
            self._waiting
        )
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), -worth)

    def duals(self) -> Array:
        """Row duals, hours x rows of the template."""
        found = np.array(self._highs.getSolution().row_dual)
        return found.reshape(len(self.hours), self._template.rows.size)

    def values(self) -> tuple[Array, Array]:
        """Columns kept, hours x columns; and cumulative GPU-hours served, hours x waiting."""
        found = np.array(self._highs.getSolution().col_value)
        hours, used = len(self.hours), len(self.keep)
        served = found[hours * used :].reshape(hours, self._waiting)
        return found[: hours * used].reshape(hours, used), served

    @property
    def objective(self) -> float:
        """The optimum of the linear program."""
        return float(self._highs.getInfo().objective_function_value)

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
