"""A quick dispatch that keeps every rule: what a plan costs at most, found in one pass.

Groups take turns, dearest first; each uses reserved capacity, then what it may buy, cheapest
first. Waiting work runs evenly over its window. For when the time does not allow the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import Use
from planner.optimise.first_stage import plans
from planner.optimise.recourse import KINDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.options import Option
    from planner.model.reductions import Group, Reduced
    from planner.optimise.first_stage import FirstStage

    Array = npt.NDArray[np.float64]


class Greedy:
    """Costs of plans by the quick dispatch."""

    def __init__(self, reduced: Reduced, first: FirstStage) -> None:
        self._reduced, self._first = reduced, first
        cells = reduced.cells
        at = cells.scenario, cells.hour
        self._needs = [(g.demand if g.firm else _evenly(g))[at] for g in reduced.groups]
        self._order = sorted(range(len(self._needs)), key=lambda n: -_dearest(reduced.groups[n]))

    def by_kind(self, u: Array) -> Array:
        """USD per (scenario, kind of KINDS), per hour weight, not weighted by probability."""
        reduced, cells = self._reduced, self._reduced.cells
        capacity, self._spend, self._left = self._limits(u)
        found = np.zeros((len(reduced.problem.scenarios), len(KINDS)))
        offers = {offer.id: offer for offer in reduced.problem.offers}

        def add(kind: str, gpus: Array, price: float) -> None:
            usd = np.bincount(cells.scenario, cells.hours * gpus * price, len(found))
            found[:, KINDS.index(kind)] += usd

        for number in self._order:
            group, need = reduced.groups[number], self._needs[number].copy()
            uses = [
                (p.egress[number], k) for k, p in enumerate(reduced.pools) if number in p.egress
            ]
            for egress, pool in sorted(uses):
                taken = np.minimum(need, capacity[pool])
                capacity[pool] -= taken
                need -= taken
                add("egress", taken, egress)
            share = group.menu.spot_share if group.firm else None
            spot_left = np.inf if share is None else share * self._needs[number]
            for option in sorted(group.menu.options, key=lambda o: o.unit_price):
                gpus = self._bought(option, need, self._needs[number], spot_left)
                need -= gpus * option.useful
                if option.use is Use.SPOT:
                    spot_left = spot_left - gpus * option.useful
                rules = group.rules.id
                egress = offers[option.offer].egress.get(rules, 0.0) if option.offer else 0.0
                add("egress", gpus, egress)
                if option.use is not Use.SAVINGS_PLAN:
                    add(str(option.use), gpus, option.price - egress)
        return found

    def _limits(self, u: Array) -> tuple[Array, dict[str, Array], dict[tuple[str, str], Array]]:
        reduced, cells = self._reduced, self._reduced.cells
        size = len(cells)
        capacity = np.zeros((len(reduced.pools), size))
        for number, pool in enumerate(reduced.pools):
            capacity[number] = pool.owned[cells.hour]
        spend = {provider: np.zeros(size) for provider in plans(reduced)}
        for source, amount in zip(self._first.sources, u.tolist(), strict=True):
            if source.pool < 0:
                spend[source.provider] += amount
            else:
                there = (cells.hour >= source.start) & (cells.hour < source.end)
                capacity[source.pool] += amount * there
        return capacity, spend, {pair: np.full(size, q) for pair, q in reduced.quotas.items()}

    def _bought(self, option: Option, need: Array, whole: Array, spot_left: Array | float) -> Array:
        gpus = np.maximum(need, 0.0) / option.useful
        if option.cap is not None:
            gpus = np.minimum(gpus, option.cap * whole / option.useful)
        if option.use is Use.SPOT:
            gpus = np.minimum(gpus, np.maximum(spot_left, 0.0) / option.useful)
        if option.plan:
            gpus = np.minimum(gpus, self._spend[option.plan] / option.plan_rate)
            self._spend[option.plan] = self._spend[option.plan] - gpus * option.plan_rate
        if option.quota is not None:
            gpus = np.minimum(gpus, np.maximum(self._left[option.quota], 0.0))
            self._left[option.quota] = self._left[option.quota] - gpus
        return gpus


def _dearest(group: Group) -> float:
    return max(option.unit_price for option in group.menu.options)


def _evenly(group: Group) -> Array:
    """Waiting work, each release run evenly from its hour to the end of its window."""
    hours = group.demand.shape[1]
    span = np.minimum(group.rules.window + 1, hours - np.arange(hours))
    each = group.demand / span
    found: Array = np.zeros_like(each)
    for later in range(min(group.rules.window + 1, hours)):
        found[:, later:] += each[:, : hours - later]
    return found
