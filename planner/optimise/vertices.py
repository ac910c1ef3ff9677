"""Cheap cuts for every hour from the duals of a few: dual feasibility knows no hour.

The rows and prices of dispatch are the same in every hour; only right-hand sides differ. So the
duals found in sampled hours bound the cost of every other hour, and the best of them per hour
gives, with the least price of waiting work over each window, a valid cut at no linear program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.optimise.chain import before_each, least_ahead, worth_of_waiting
from planner.optimise.recourse import Evaluation

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.reductions import Reduced
    from planner.optimise.first_stage import FirstStage
    from planner.optimise.template import Template

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_CHUNK = 2048  # cells at a time, which bounds the memory of the scores


class VertexCuts:
    """Cuts of all cells from given duals, vertices x rows of the template."""

    def __init__(
        self, reduced: Reduced, spread: Reduced, first: FirstStage, form: Template, duals: Array
    ) -> None:
        self._reduced, self._first, self._form = reduced, first, form
        rows, cells = form.rows, reduced.cells
        duals = np.unique(duals.round(9), axis=0)
        duals[:, rows.pool :] = np.minimum(duals[:, rows.pool :], 0.0)
        self._duals = duals
        every = np.arange(len(form))
        costs = form.reduced_costs(duals, every)
        free = np.isinf(form.cap)
        good = (costs[:, free] >= -1e-7).all(axis=1)
        self._duals, costs = duals[good], costs[good]
        changing = np.array(list(form.hourly), dtype=np.intp)
        caps = np.where(free, 0.0, form.cap)
        caps[changing] = 0.0
        by_group = np.zeros((len(self._duals), rows.pool))
        for group in range(rows.pool):
            own = (form.group == group) & ~free
            by_group[:, group] = np.minimum(costs[:, own], 0.0) @ caps[own]
        by_group[:, form.sharing] += self._duals[:, rows.share : rows.limit] * form.shares
        self._by_hour = np.hstack([self._duals[:, rows.limit :], np.minimum(costs[:, changing], 0)])
        waiting = form.deferrable
        firm = np.setdiff1d(np.arange(rows.pool), waiting)
        self._per_demand = by_group
        self._per_demand[:, firm] += self._duals[:, firm]
        self._prices = self._duals[:, waiting]
        self._constant = self._duals[:, rows.quota : rows.share] @ form.limits
        at = cells.scenario, cells.hour
        self._demand = np.stack([group.demand[at] for group in reduced.groups])
        self._offered = form.shares_offered(*at)
        even = [spread.groups[number].demand[at] for number in waiting]
        self._even = np.stack(even) if even else np.zeros((0, len(cells)))
        self._room = self._limits(form.hourly_caps(*at), changing)
        owned = [pool.owned[cells.hour] for pool in reduced.pools]
        self._owned = np.stack(owned) if owned else np.zeros((0, len(cells)))
        self._there = np.array(
            [(cells.hour >= s.start) & (cells.hour < s.end) for s in first.sources]
        ).reshape(len(first.sources), len(cells))
        self._weights = cells.hours

    def evaluate(self, u: Array) -> Evaluation:
        """A cut for each scenario; its cost is the bound itself."""
        rows, first = self._form.rows, self._first
        chosen = self.choose(u)
        duals = self._duals[chosen]
        weights, scenario = self._weights, self._reduced.cells.scenario
        scenarios = len(self._reduced.problem.scenarios)
        terms = (self._per_demand[chosen] * self._demand.T).sum(axis=1) + self._constant[chosen]
        terms += (duals[:, rows.pool : rows.plan] * self._owned.T).sum(axis=1)
        if len(self._room):
            firm = ~np.isin(np.arange(len(self._room)), self._waits_in)
            terms += (self._by_hour[chosen] * self._room.T * firm).sum(axis=1)
        constant = np.bincount(scenario, weights * terms, scenarios).astype(float)
        slope = np.zeros((scenarios, len(first.sources)))
        plan = rows.plan
        for number, source in enumerate(first.sources):
            row = rows.pool + source.pool
            if source.pool < 0:
                row, plan = plan, plan + 1
            used = weights * self._there[number] * duals[:, row]
            slope[:, number] = np.bincount(scenario, used, scenarios)
        constant += self._waiting(chosen)
        value = constant + slope @ u
        return Evaluation(u, value, slope, value)

    @property
    def duals(self) -> Array:
        """The vertices, as row prices."""
        return self._duals

    def choose(self, u: Array) -> Places:
        """The vertex that bounds each cell best, work that waits taken as even."""
        rows = self._form.rows
        capacity = self._owned.copy()
        plans = np.array([source.pool < 0 for source in self._first.sources], dtype=bool)
        spend = self._there[plans] * u[plans, None]
        for number, source in enumerate(self._first.sources):
            if source.pool >= 0 and u[number]:
                capacity[source.pool] += self._there[number] * u[number]
        fixed = self._constant
        left = np.hstack(
            [self._per_demand, self._duals[:, rows.pool : rows.quota], self._prices, self._by_hour]
        )
        right = np.vstack([self._demand, capacity, spend, self._even, self._room])
        found = np.empty(right.shape[1], dtype=np.intp)
        for start in range(0, len(found), _CHUNK):
            part = slice(start, start + _CHUNK)
            found[part] = np.argmax(left @ right[:, part] + fixed[:, None], axis=0)
        return found

    def _limits(self, caps: Array, changing: Places) -> Array:
        """GPUs that limit rows and caps by the hour allow, such limits x cells.

        For work that waits, as if it ran evenly: then half of its window's work waits.
        """
        form = self._form
        need = self._demand.copy()
        for place, number in enumerate(form.deferrable.tolist()):
            window = self._reduced.groups[number].rules.window
            need[number] = self._even[place] * (window + 2) / 2
        self._waits_in = np.flatnonzero(np.isin(form.limited, form.deferrable))
        groups = np.concatenate([form.limited, form.group[changing]])
        limits: Array = np.hstack([self._offered, caps]).T * need[groups]
        return limits

    def _waiting(self, chosen: Places) -> Array:
        """USD per scenario of waiting work at the least price in each window."""
        problem = self._reduced.problem
        total = np.zeros(len(problem.scenarios))
        if not len(self._form.deferrable):
            return total
        prices = self._prices[chosen].reshape(len(total), problem.hours, -1)
        worth = np.zeros_like(prices)
        if self._form.waits_limited:
            for scenario, at in enumerate(chosen.reshape(len(total), -1)):
                offered = self._offered[scenario * problem.hours :][: problem.hours]
                worth[scenario] = worth_of_waiting(self._form, self._duals[at], offered)
        for place, number in enumerate(self._form.deferrable.tolist()):
            group = self._reduced.groups[number]
            for scenario in range(len(total)):
                waited = worth[scenario][:, place]
                least = least_ahead(prices[scenario, :, place] + waited, group.rules.window)
                total[scenario] += float(group.demand[scenario] @ (least - before_each(waited)))
        return total
