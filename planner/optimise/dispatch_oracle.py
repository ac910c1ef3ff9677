"""Recourse cost by linear programs, where savings plans, quotas or waiting work rule out a formula.

Each scenario is one block of hours, or (all firm) cells of equal hours in several blocks. Blocks
are solved side by side in threads: HiGHS lets go of the interpreter, and each block keeps its
own basis, so that the answer does not depend on which thread takes which block.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from planner.model.columns import due_and_released
from planner.optimise.blocks import Block, Hours
from planner.optimise.recourse import KINDS, Evaluation
from planner.optimise.template import template

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.reductions import Reduced
    from planner.optimise.first_stage import FirstStage

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_CELLS = 168  # in a block of cells
_NEAR = 0.05  # USD per GPU-hour; a column so near to being used in the sample is kept
_SLACK = 1e-7  # USD per GPU-hour by which a column must be worth it


class DispatchOracle:
    """The oracle: parts are blocks."""

    def __init__(self, reduced: Reduced, first: FirstStage, keep: Places | None = None) -> None:
        self._reduced, self._first = reduced, first
        self._template = template(reduced)
        self._merged = not reduced.risk and not len(self._template.deferrable)
        every = np.arange(len(self._template))
        keep = every if keep is None else keep
        self._left_out = np.setdiff1d(every, keep)
        self._blocks = [Block(hours, self._template, keep) for hours in self._hours()]
        self._pool = np.array([source.pool for source in first.sources], dtype=np.intp)
        self._workers = ThreadPoolExecutor(os.cpu_count() or 1)

    @property
    def scenario_of(self) -> Places:
        """The scenario of each part."""
        return np.array([block.hours.scenario for block in self._blocks], dtype=np.intp)

    @property
    def merged(self) -> bool:
        """Whether parts are means over scenarios."""
        return self._merged

    def evaluate(self, u: Array, until: float) -> Evaluation | None:
        """Recourse cost and slopes at u, by every block's dual."""
        if not self._solve(u, until):
            return None
        while self._widen():
            if not self._solve(u, until):
                return None
        value = np.array([block.objective for block in self._blocks])
        slope = np.array([self._slopes(block) for block in self._blocks])
        cost = np.bincount(self.scenario_of, value)
        return Evaluation(u, value, slope, cost)

    def by_kind(self, u: Array) -> Array:
        """USD per (scenario, kind of KINDS), per hour weight."""
        self._solve(u, np.inf)
        form = self._template
        found = np.zeros((int(self.scenario_of.max()) + 1, len(KINDS)))
        for block in self._blocks:
            values, _ = block.values()
            gpus = block.hours.weight @ values
            keep = block.keep
            surcharge = float(gpus @ form.egress[keep])
            found[block.hours.scenario, KINDS.index("egress")] += surcharge
            own = gpus * (form.cost[keep] - form.egress[keep])
            kinds = np.where(form.kind[keep] < 0, KINDS.index("egress"), form.kind[keep])
            found[block.hours.scenario] += np.bincount(kinds, own, len(KINDS))
        return found

    def promising(self) -> Places:
        """Columns of the template that some hour's latest dispatch uses, or nearly would."""
        form = self._template
        best = np.full(len(form), np.inf)
        every = np.arange(len(form))
        for block in self._blocks:
            duals = block.duals() / block.hours.weight[:, None]
            np.minimum(best, form.reduced_costs(duals, every).min(axis=0), out=best)
        return np.flatnonzero((best < _NEAR) | form.unlimited)

    def _widen(self) -> bool:
        """Take in columns left out that would lower the cost; whether there were any."""
        if not len(self._left_out):
            return False
        wanted = np.zeros(len(self._left_out), dtype=bool)
        for block in self._blocks:
            duals = block.duals() / block.hours.weight[:, None]
            costs = self._template.reduced_costs(duals, self._left_out)
            wanted |= (costs < -_SLACK).any(axis=0)
        if not wanted.any():
            return False
        fresh = self._left_out[wanted]
        self._left_out = self._left_out[~wanted]
        for block in self._blocks:
            block.widen(fresh)
        return True

    def _solve(self, u: Array, until: float) -> bool:
        commitment = u[self._pool < 0]

        def solve(block: Block) -> bool:
            return block.solve(self._capacity(block.hours, u), commitment, until)

        first, *others = self._blocks
        if not first.solved:
            if not solve(first):
                return False
            for other in others:
                if len(other.hours) == len(first.hours):
                    other.start_from(first)
            return all(self._workers.map(solve, others))
        return all(self._workers.map(solve, self._blocks))

    def _capacity(self, hours: Hours, u: Array) -> Array:
        capacity = hours.owned.copy()
        for source, pool in enumerate(self._pool.tolist()):
            if pool >= 0:
                capacity[:, pool] += hours.active[:, source] * u[source]
        return capacity

    def _slopes(self, block: Block) -> Array:
        rows = self._template.rows
        duals = block.duals()
        found = np.empty(len(self._pool))
        found[self._pool < 0] = duals[:, rows.plan : rows.quota].sum(axis=0)
        real = self._pool >= 0
        pools = duals[:, rows.pool + self._pool[real]]
        found[real] = (block.hours.active[:, real] * pools).sum(axis=0)
        return np.minimum(found, 0.0)

    def _hours(self) -> list[Hours]:
        reduced = self._reduced
        cells = reduced.cells
        weights = cells.mean_hours if self._merged else cells.hours
        if len(self._template.deferrable):
            hours = reduced.problem.hours
            every = np.arange(hours)
            ones = np.ones(hours)
            return [self._take(s, every, ones, s) for s in range(len(reduced.problem.scenarios))]
        found = []
        for scenario in [None] if self._merged else range(len(reduced.problem.scenarios)):
            own = np.flatnonzero(
                np.ones_like(cells.hour) if scenario is None else cells.scenario == scenario
            )
            pieces = np.array_split(own, max(1, round(len(own) / _CELLS)))
            found += [
                self._take(cells.scenario[piece], cells.hour[piece], weights[piece], scenario or 0)
                for piece in pieces
            ]
        return found

    def _take(
        self, scenarios: int | Places, hours: Places, weight: Array, scenario: int
    ) -> Hours:
        reduced = self._reduced
        demand = np.stack([g.demand[scenarios, hours] for g in reduced.groups], axis=1)
        owned = np.stack(
            [np.zeros(len(hours)), *(pool.owned[hours] for pool in reduced.pools)], axis=1
        )[:, 1:]
        active = np.stack(
            [(hours >= one.start) & (hours < one.end) for one in self._first.sources], axis=1
        ).astype(float)
        limits = [due_and_released(reduced.groups[g]) for g in self._template.deferrable]
        none = np.zeros((len(hours), 0))
        due = np.stack([d[scenario, hours] for d, _ in limits], axis=1) if limits else none
        released = np.stack([r[scenario, hours] for _, r in limits], axis=1) if limits else none
        return Hours(
            scenario, int(hours[0]), demand, owned, active, weight, due, released, len(hours)
        )
