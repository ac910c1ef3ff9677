"""A quick dispatch that keeps every rule: what a plan costs at most, found in one pass.

In each cell the groups take turns, and each takes its ways to a GPU-hour in order of their
reduced cost under prices given for the cell: scarce capacity is so left to those who need it.
Waiting work runs evenly over its window. For when the time does not allow the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.optimise.first_stage import plans
from planner.optimise.recourse import KINDS
from planner.optimise.template import RESERVED, template

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.reductions import Group, Reduced
    from planner.optimise.first_stage import FirstStage
    from planner.optimise.template import Template

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_EGRESS = KINDS.index("egress")
_ROUNDING = 1e-9  # instances; a sum of floats that is so little above a whole number is one
_TIGHT = 1e-6  # USD; a reduced cost below it is none


class Greedy:
    """Costs of plans by the quick dispatch, under some vectors of row prices (duals).

    With `whole` each purchase on demand is rounded up to instances.
    """

    def __init__(
        self,
        reduced: Reduced,
        first: FirstStage,
        duals: Array | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self._reduced, self._first, self._form = reduced, first, template(reduced)
        self.merged = not reduced.risk
        self._used = np.zeros((len(self._form), len(reduced.cells)))
        cells = reduced.cells
        at = cells.scenario, cells.hour
        self._needs = np.stack([(g.demand if g.firm else _evenly(g))[at] for g in reduced.groups])
        form = self._form
        self._hourly = form.hourly_caps(*at)
        self._hourly_at = np.full(len(form), -1)
        self._hourly_at[list(form.hourly)] = np.arange(len(form.hourly))
        self._room = self._allowed(form.shares_offered(*at))
        if duals is None:
            duals = np.zeros((1, form.rows.size))
        costs = form.reduced_costs(duals, np.arange(len(form))) / form.useful
        self._columns, self._turns = _ranks(form, costs, len(reduced.groups))
        self._sizes = _sizes(reduced, form) if whole else {}
        pools = form.kind == RESERVED
        self._pools = [np.flatnonzero(pools & (form.group == g)) for g in range(form.rows.pool)]
        dearest = np.argsort(-form.cost / form.useful, kind="stable")
        self._bought = [
            [n for n in dearest.tolist() if not pools[n] and form.group[n] == g]
            for g in range(form.rows.pool)
        ]

    @property
    def template(self) -> Template:
        """The hour whose columns the dispatch fills."""
        return self._form

    def series(self, column: int) -> Array:
        """GPUs of a column as last dispatched, scenarios x hours."""
        gpus: Array = self._used[column][self._reduced.cells.of]
        return gpus

    def by_kind(self, u: Array, chosen: Places | None = None) -> Array:
        """USD per (scenario, kind of KINDS), per hour weight, not weighted by probability.

        Where `merged`, one row: the mean over scenarios, whose equal hours are one cell.
        `chosen` is the number of the prices that hold in each cell; None: the first everywhere.
        """
        size = len(self._reduced.cells)
        chosen = np.zeros(size, dtype=np.intp) if chosen is None else chosen
        left = self._left(u)
        used = np.zeros((len(self._form), size))
        for turn in range(self._turns.shape[1]):
            self._serve(self._turns[chosen, turn], chosen, used, left)
        self._give_back(used, left)
        for column, size in self._sizes.items():
            used[column] = np.ceil(used[column] / size - _ROUNDING) * size
        self._used = used
        return self._money(used)

    def _serve(self, group: Places, chosen: Places, used: Array, left: Array) -> None:
        """One turn: in each cell a group takes its columns as far as rows and caps allow."""
        form, every = self._form, np.arange(len(group))
        for rank in range(self._columns.shape[2]):
            cells = every[left[group, every] > 0.0]
            column = self._columns[chosen[cells], group[cells], rank]
            cells, column = cells[column >= 0], column[column >= 0]
            if not len(cells):
                return
            need = self._needs[group[cells], cells]
            cap = self._caps(column, cells)
            gpus = np.where(np.isinf(cap), np.inf, cap * need)
            rows, values = form.row[column], form.value[column]
            for entry in range(rows.shape[1]):
                held = values[:, entry] > 0.0
                room = left[rows[held, entry], cells[held]] / values[held, entry]
                gpus[held] = np.minimum(gpus[held], np.maximum(room, 0.0))
            for entry in range(rows.shape[1]):
                held = values[:, entry] > 0.0
                left[rows[held, entry], cells[held]] -= gpus[held] * values[held, entry]
            used[column, cells] += gpus

    def _caps(self, column: Places, cells: Places) -> Array:
        """The cap of a column in each cell, per GPU of its group's need."""
        cap = self._form.cap[column]
        at = self._hourly_at[column]
        if (at >= 0).any():
            cap[at >= 0] = self._hourly[cells[at >= 0], at[at >= 0]]
        return cap

    def _allowed(self, offered: Array) -> Array:
        """Useful GPUs that each limit row allows, rows x cells, work that may wait run evenly."""
        reduced, cells = self._reduced, self._reduced.cells
        found = np.zeros((len(self._form.limited), len(cells)))
        for row, number in enumerate(self._form.limited.tolist()):
            group = reduced.groups[number]
            need = group.demand
            if not group.firm:
                run = _evenly(group)
                need = np.cumsum(need, axis=1) - np.cumsum(run, axis=1) + run
            waiting = np.maximum(need, 0.0)[cells.scenario, cells.hour]
            found[row] = offered[:, row] * waiting
        return found

    def _give_back(self, used: Array, left: Array) -> None:
        """Use what is left of pools instead of what was bought, dearest first."""
        form = self._form
        for group, pools in enumerate(self._pools):
            for pool in pools.tolist():
                room = left[form.row[pool, 1]]
                for bought in self._bought[group]:
                    useful = form.useful[bought]
                    if form.cost[bought] / useful <= form.cost[pool] or not room.any():
                        break
                    moved = np.minimum(used[bought] * useful, room)
                    used[pool] += moved
                    room -= moved
                    used[bought] -= moved / useful
                    for row, value in zip(
                        form.row[bought, 1:], form.value[bought, 1:], strict=True
                    ):
                        if value > 0.0:
                            left[row] += moved / useful * value

    def _money(self, used: Array) -> Array:
        form, cells = self._form, self._reduced.cells
        size = 1 if self.merged else len(self._reduced.problem.scenarios)
        scenario = np.zeros_like(cells.scenario) if self.merged else cells.scenario
        weights = cells.mean_hours if self.merged else cells.hours
        found = np.zeros((size, len(KINDS)))
        for column, gpus in enumerate(used):
            hours = np.bincount(scenario, weights * gpus, size)
            if form.kind[column] != RESERVED:
                found[:, form.kind[column]] += hours * (form.cost[column] - form.egress[column])
            found[:, _EGRESS] += hours * form.egress[column]
        return found

    def _left(self, u: Array) -> Array:
        """What each row of the hour allows in each cell, rows x cells."""
        reduced, form, cells = self._reduced, self._form, self._reduced.cells
        rows = form.rows
        left = np.zeros((rows.size, len(cells)))
        left[: rows.pool] = self._needs
        for number, pool in enumerate(reduced.pools):
            left[rows.pool + number] = pool.owned[cells.hour]
        providers = plans(reduced)
        for source, amount in zip(self._first.sources, u.tolist(), strict=True):
            there = (cells.hour >= source.start) & (cells.hour < source.end)
            if source.pool < 0:
                left[rows.plan + providers.index(source.provider)] += amount * there
            else:
                left[rows.pool + source.pool] += amount * there
        left[rows.quota : rows.share] = form.limits[:, None]
        left[rows.share : rows.limit] = form.shares[:, None] * self._needs[form.sharing]
        left[rows.limit :] = self._room
        return left


def _sizes(reduced: Reduced, form: Template) -> dict[int, int]:
    """GPUs of an instance for each column of what is bought on demand."""
    gpus = {offer.id: offer.gpus for offer in reduced.problem.offers}
    return {
        column: gpus[reduced.groups[form.group[column]].menu.options[form.option[column]].offer]
        for column in np.flatnonzero(form.kind == KINDS.index("on_demand")).tolist()
    }


def _ranks(form: Template, costs: Array, groups: int) -> tuple[Places, Places]:
    """Columns, prices x groups x rank (-1: no more), and groups, prices x turn.

    A group with fewer ways of no reduced cost comes first; of two alike, the one whose second way
    costs more above its first.
    """
    own = [np.flatnonzero(form.group == group) for group in range(groups)]
    most = max((len(one) for one in own), default=0)
    columns = np.full((len(costs), groups, most), -1, dtype=np.intp)
    regret = np.zeros((len(costs), groups))
    ways = np.zeros((len(costs), groups))
    for group, one in enumerate(own):
        order = np.argsort(costs[:, one], axis=1, kind="stable")
        columns[:, group, : len(one)] = one[order]
        ranked = np.take_along_axis(costs[:, one], order, axis=1)
        ways[:, group] = (ranked < ranked[:, :1] + _TIGHT).sum(axis=1)
        if len(one) > 1:
            regret[:, group] = ranked[:, 1] - ranked[:, 0]
    return columns, np.lexsort((-regret, ways), axis=1)


def _evenly(group: Group) -> Array:
    """Waiting work, each release run evenly from its hour to the end of its window."""
    hours = group.demand.shape[1]
    span = np.minimum(group.rules.window + 1, hours - np.arange(hours))
    each = group.demand / span
    found: Array = np.zeros_like(each)
    for later in range(min(group.rules.window + 1, hours)):
        found[:, later:] += each[:, : hours - later]
    return found
