"""Recourse cost by linear programs, where savings plans, quotas or waiting work rule out a formula.

Each scenario is one block of hours, or (all firm) cells of equal hours in several blocks. Blocks
are solved side by side in threads: HiGHS lets go of the interpreter, and each block keeps its
own basis, so that the answer does not depend on which thread takes which block. Blocks of as many
hours share one form, that is one matrix.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from planner.model.columns import due_and_released
from planner.optimise.block_form import Form
from planner.optimise.blocks import Block, Hours, Solvers
from planner.optimise.chain import Chain, pieces
from planner.optimise.recourse import KINDS, Evaluation
from planner.optimise.template import RESERVED, template

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from planner.model.reductions import Reduced
    from planner.optimise.first_stage import FirstStage

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_CELLS = 168  # in a block of cells
_NOTHING = 1e-9  # GPUs
_SLACK = 1e-7  # USD per GPU-hour by which a column must be worth it


class DispatchOracle:
    """The oracle: parts are blocks. Those of a chain are `times` as long as they are at first."""

    def __init__(
        self, reduced: Reduced, first: FirstStage, keep: Places | None = None, times: int = 1
    ) -> None:
        self._reduced, self._first = reduced, first
        self.template = template(reduced)
        self._merged = not reduced.risk and not len(self.template.deferrable)
        self._keep = np.arange(len(self.template)) if keep is None else keep
        self._forms: dict[tuple[int, int], Form] = {}
        self._times = times
        parts = self._hours()
        self._linked = bool(len(self.template.deferrable)) and len(parts) > self._scenarios
        pool = np.array([source.pool for source in first.sources], dtype=np.intp)
        solvers = Solvers()
        self._blocks = [Block(one, self._form(one), pool, solvers) for one in parts]
        self._chains = self._link()
        self._read: list[Array] | None = None
        self._exact: tuple[Array, Array] | None = None
        self._workers = ThreadPoolExecutor(os.cpu_count() or 1)

    @property
    def scenario_of(self) -> Places:
        """The scenario of each part."""
        if self._chains:
            return np.repeat(np.arange(self._scenarios), len(self._chains[0].starts))
        return np.array([block.hours.scenario for block in self._blocks], dtype=np.intp)

    @property
    def merged(self) -> bool:
        """Whether parts are means over scenarios."""
        return self._merged

    @property
    def floor(self) -> float:
        """What a part costs at least: parts of a chain may gain from work of the one before."""
        return -math.inf if self._chains else 0.0

    @property
    def chained(self) -> bool:
        """Whether scenarios are chains of blocks."""
        return bool(self._chains)

    def longer(self) -> DispatchOracle:
        """One of blocks twice as long, which lose less at their ends."""
        return DispatchOracle(self._reduced, self._first, self._keep, 2 * self._times)

    def evaluate(self, u: Array, until: float) -> Evaluation | None:
        """Recourse cost and slopes at u, by every block's dual."""
        found = self._evaluate(u, until)
        while found is not None and self._widen():
            found = self._evaluate(u, until)
        return found

    def _evaluate(self, u: Array, until: float) -> Evaluation | None:
        self._read = self._exact = None
        if self._chains:
            return self._chained(u, until)
        if not self._solve(u, until):
            return None
        value = np.array([block.objective for block in self._blocks])
        slope = np.array([block.slopes() for block in self._blocks])
        return Evaluation(u, value, slope, _sums(self.scenario_of, value))

    def exact(self, u: Array, until: float) -> Array | None:
        """USD per scenario of a dispatch that keeps every rule, also from block to block."""
        if not self._chains:
            found = self.evaluate(u, until)
            return None if found is None else found.cost
        if self._exact is not None and np.array_equal(u, self._exact[0]):
            return self._exact[1]
        self._read = None
        for chain in self._chains:
            if not chain.forward(lambda block: block.solve(u, until)):
                return None
        cost: Array = self.by_kind(u).sum(axis=1)
        self._exact = u, cost
        return cost

    def by_kind(self, u: Array) -> Array:
        """USD per (scenario, kind of KINDS), per hour weight, as last solved."""
        form = self.template
        found = np.zeros((int(self.scenario_of.max()) + 1, len(KINDS)))
        for block, values in zip(self._blocks, self._values(), strict=True):
            inner = block.hours.inner
            gpus = block.hours.weight[:inner] @ values[:inner]
            keep = block.keep
            surcharge = float(gpus @ form.egress[keep])
            found[block.hours.scenario, KINDS.index("egress")] += surcharge
            own = gpus * (form.cost[keep] - form.egress[keep])
            kinds = np.where(form.kind[keep] < 0, KINDS.index("egress"), form.kind[keep])
            found[block.hours.scenario] += np.bincount(kinds, own, len(KINDS))
        return found

    def bought(self, u: Array) -> dict[tuple[int, int], Array]:
        """Useful GPU-hours bought, per scenario, by group and place in its menu, as last solved.

        Where parts are merged they are the mean; `u` is what the dispatch was solved at.
        """
        form, found = self.template, {}
        scenarios = int(self.scenario_of.max()) + 1
        hours = np.zeros((scenarios, len(form)))
        for block, values in zip(self._blocks, self._values(), strict=True):
            inner = block.hours.inner
            gpus = block.hours.weight[:inner] @ np.maximum(values[:inner], 0.0)
            hours[block.hours.scenario, block.keep] += gpus * form.useful[block.keep]
        for column in np.flatnonzero((form.kind != RESERVED) & hours.any(axis=0)).tolist():
            key = int(form.group[column]), int(form.option[column])
            found[key] = hours[:, column]
        return found

    def close(self) -> None:
        """Let the threads go."""
        self._workers.shutdown()

    def series(self, column: int) -> Array:
        """GPUs of one column of the template, scenarios x hours, as last solved."""
        reduced = self._reduced
        cells = np.zeros(len(reduced.cells))
        for block, values in zip(self._blocks, self._values(), strict=True):
            at = np.searchsorted(block.keep, column)
            if at < len(block.keep) and block.keep[at] == column:
                inner = block.hours.inner
                cells[block.hours.cells[:inner]] = values[:inner, at]
        found: Array = cells[reduced.cells.of]
        return found

    def _values(self) -> list[Array]:
        """Columns of every block, read once after a solve."""
        if self._read is None:
            self._read = [block.values()[0] for block in self._blocks]
        return self._read

    def quota_duals(self) -> Array:
        """Sums over hours of the duals of quota rows, scenarios x quotas; 0 or less."""
        rows = self.template.rows
        found = np.zeros((int(self.scenario_of.max()) + 1, rows.share - rows.quota))
        for block in self._blocks:
            duals = block.duals()[: block.hours.inner, rows.quota : rows.share]
            found[block.hours.scenario] += duals.sum(axis=0)
        return found

    def duals_by_hour(self) -> Array:
        """Row duals of every hour solved, per hour of weight one."""
        return np.vstack([b.duals() / b.hours.weight[:, None] for b in self._blocks])

    def promising(self) -> Places:
        """Columns that some hour's latest dispatch uses or might as well, or that serve any."""
        form = self.template
        found = form.unlimited
        for block, values in zip(self._blocks, self._values(), strict=True):
            found[block.keep] |= (values > _NOTHING).any(axis=0)
            duals = block.duals() / block.hours.weight[:, None]
            costs = form.reduced_costs(duals, np.arange(len(form)))
            found |= (costs <= _SLACK).any(axis=0)
        return np.flatnonzero(found)

    def _widen(self) -> bool:
        """Take in columns left out that would lower some block's cost; whether there were any."""
        left_out = np.setdiff1d(np.arange(len(self.template)), self._keep)
        wanted = np.zeros(len(left_out), dtype=bool)
        for block in self._blocks if len(left_out) else []:
            duals = block.duals() / block.hours.weight[:, None]
            costs = self.template.reduced_costs(duals, left_out)
            wanted |= (costs < -_SLACK).any(axis=0)
        if not wanted.any():
            return False
        self._keep = np.union1d(self._keep, left_out[wanted])
        self._forms = {}
        for block in self._blocks:
            block.widen(self._form(block.hours))
        return True

    def _form(self, hours: Hours) -> Form:
        """The form of blocks of so many hours; of one block where waiting work is limited."""
        alone = self.template.waits_limited
        key = (hours.scenario, hours.start) if alone else (len(hours), -1)
        if key not in self._forms:
            groups = self._reduced.groups
            windows = [groups[number].rules.window for number in self.template.deferrable]
            ends = windows if self._linked else []
            offered = hours.offered if alone else None
            self._forms[key] = Form(self.template, self._keep, len(hours), ends, offered)
        return self._forms[key]

    @property
    def _scenarios(self) -> int:
        return len(self._reduced.problem.scenarios)

    def _solve(self, u: Array, until: float) -> bool:
        """Solve every block of scenarios that are not chains."""
        if not self._blocks[0].solved:
            self._warm(u, until)
        return all(self._workers.map(lambda block: block.solve(u, until), self._blocks))

    def _chained(self, u: Array, until: float) -> Evaluation | None:
        """The evaluation where scenarios are chains of blocks; its cost is the bound itself."""

        def solve_all(blocks: Iterable[Block]) -> bool:
            return all(self._workers.map(lambda block: block.solve(u, until), blocks))

        if not self._blocks[0].solved:
            self._warm(u, until)
        bounds = []
        for chain in self._chains:
            found = chain.bound(u, solve_all)
            if found is None:
                return None
            bounds.append(found)
        return Evaluation(
            u,
            value=np.concatenate([bound.values for bound in bounds]),
            slope=np.concatenate([bound.slopes for bound in bounds]),
            cost=np.array([bound.value for bound in bounds]),
            whole=np.array([bound.slope for bound in bounds]),
        )

    def _warm(self, u: Array, until: float) -> None:
        """Solve one block, for its basis to be the first of the others."""
        first, *others = self._blocks
        if first.solve(u, until):
            for other in others:
                if other.form is first.form:
                    other.start_from(first)

    def _link(self) -> list[Chain]:
        """Chains, where some scenario has more than one block with waiting work."""
        if not self._linked:
            return []
        return [
            Chain(
                self._reduced,
                self.template,
                [block for block in self._blocks if block.hours.scenario == scenario],
            )
            for scenario in range(self._scenarios)
        ]

    def _hours(self) -> list[Hours]:
        reduced, cells = self._reduced, self._reduced.cells
        scenarios, hours = len(reduced.problem.scenarios), reduced.problem.hours
        if len(self.template.deferrable):
            window = max(reduced.groups[g].rules.window for g in self.template.deferrable)
            return [
                self._take(np.arange(s * hours + start, s * hours + end), s, own - start)
                for s in range(scenarios)
                for start, own, end in pieces(hours, window, self._times)
            ]
        found = []
        for scenario in range(1 if self._merged else scenarios):
            own = np.flatnonzero(self._merged | (cells.scenario == scenario))
            parts = np.array_split(own, max(1, round(len(own) / _CELLS)))
            found += [self._take(part, scenario) for part in parts]
        return found

    def _take(self, cells: Places, scenario: int, inner: int | None = None) -> Hours:
        """The data of some cells, in order."""
        reduced, every = self._reduced, self._reduced.cells
        scenarios, hours = every.scenario[cells], every.hour[cells]
        weight = (every.mean_hours if self._merged else every.hours)[cells]
        demand = np.stack([g.demand[scenarios, hours] for g in reduced.groups], axis=1)
        none = np.zeros((len(hours), 0))
        owned = [pool.owned[hours, None] for pool in reduced.pools]
        sources = self._first.sources
        active = [((hours >= s.start) & (hours < s.end))[:, None].astype(float) for s in sources]
        limits = [due_and_released(reduced.groups[g]) for g in self.template.deferrable]
        return Hours(
            scenario=scenario,
            cells=cells,
            start=int(hours[0]),
            inner=len(hours) if inner is None else inner,
            demand=demand,
            owned=np.hstack([none, *owned]),
            active=np.hstack([none, *active]),
            weight=weight,
            due=np.hstack([none, *(due[scenarios, hours, None] for due, _ in limits)]),
            released=np.hstack([none, *(done[scenarios, hours, None] for _, done in limits)]),
            hourly=self.template.hourly_caps(scenarios, hours),
            offered=self.template.shares_offered(scenarios, hours),
        )


def _sums(places: Places, values: Array) -> Array:
    found: Array = np.bincount(places, values).astype(float)
    return found
