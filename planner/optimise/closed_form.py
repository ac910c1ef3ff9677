"""Recourse cost in closed form: spill tiers in merit order over closed sets of pools.

It holds where nothing but pools is shared: no savings plan, quota or waiting work, and reserved
use at no surcharge. Each class's demand splits into tiers by the price at which it is had without
reserved capacity; reserved capacity displaces the dearest tiers first. With prices e_1 > e_2 > ...
and, for a union N of the pool sets of classes, D_j,N the demand of tiers 1..j of classes confined
to N, max-flow/min-cut gives

    Q(C) = sum_t w_t sum_j (e_j - e_{j+1}) max( 0, max_N [ D_j,N,t - C_t(N) ] )

which is convex and piecewise linear in C, with slope -sum_j (e_j - e_{j+1}) w_t 1[o in N*].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import Use
from planner.optimise.recourse import KINDS, Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from planner.model.options import Option
    from planner.model.reductions import Group, Reduced
    from planner.optimise.first_stage import FirstStage

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

MOST_UNIONS = 1024  # more pool sets than this cost more than the LP
_PARTS = 40  # cuts a round, where scenarios merge and each tier may have its own


@dataclass(frozen=True, slots=True)
class Tier:
    """A share of a group's demand that costs `price` a GPU-hour without reserved capacity."""

    price: float
    group: int
    share: float
    option: Option


def holds(reduced: Reduced) -> bool:
    """Whether the closed form gives the exact recourse cost of the problem."""
    problem = reduced.problem
    if problem.on_demand_integer or reduced.quotas or not all(g.firm for g in reduced.groups):
        return False
    options = [option for group in reduced.groups for option in group.menu.options]
    if any(option.use is Use.SAVINGS_PLAN or option.quota is not None for option in options):
        return False
    if any(any(pool.egress.values()) for pool in reduced.pools):
        return False
    return len(_unions(_signatures(reduced))) <= MOST_UNIONS


def _signatures(reduced: Reduced) -> list[frozenset[int]]:
    """The pools that each group may use."""
    return [
        frozenset(number for number, pool in enumerate(reduced.pools) if index in pool.egress)
        for index in range(len(reduced.groups))
    ]


def _unions(signatures: list[frozenset[int]]) -> list[frozenset[int]]:
    """All unions of signatures, the empty one first: the neighbourhoods of closed sets."""
    found: set[frozenset[int]] = {frozenset()}
    for one in sorted(set(signatures), key=sorted):
        found |= {one | other for other in found}
        if len(found) > MOST_UNIONS:
            break
    return sorted(found, key=lambda union: (len(union), sorted(union)))


def tiers_of(groups: tuple[Group, ...]) -> list[Tier]:
    """Tiers of every group, dearest first."""
    found = []
    for index, group in enumerate(groups):
        left = 1.0
        for option in sorted(group.menu.options, key=lambda o: (o.unit_price, o.use != Use.SPOT)):
            share = left if option.cap is None else min(option.cap, left)
            if share > 0:
                found.append(Tier(option.unit_price, index, share, option))
            left -= share
    return sorted(found, key=lambda tier: (-tier.price, tier.group, tier.option.offer))


def surcharge(reduced: Reduced, group: int, option: Option) -> float:
    """USD of egress in the price of an option."""
    if not option.offer:
        return 0.0
    offers = {offer.id: offer for offer in reduced.problem.offers}
    return offers[option.offer].egress.get(reduced.groups[group].rules.id, 0.0)


class ClosedForm:
    """The oracle. Parts are scenarios, or tiers in bands where scenarios merge."""

    def __init__(self, reduced: Reduced, first: FirstStage) -> None:
        cells = reduced.cells
        self._first = first
        self._tiers = tiers_of(reduced.groups)
        self._prices = np.array([tier.price for tier in self._tiers])
        self._egress = [surcharge(reduced, tier.group, tier.option) for tier in self._tiers]
        self._merged = not reduced.risk
        self._weights = cells.mean_hours if self._merged else cells.hours
        self._scenario = np.zeros_like(cells.scenario) if self._merged else cells.scenario
        self._scenarios = int(self._scenario.max()) + 1
        self._demand = np.stack([g.demand[cells.scenario, cells.hour] for g in reduced.groups])
        signatures = _signatures(reduced)
        unions = _unions(signatures)
        self._inside = np.array([[s <= u for u in unions] for s in signatures])
        self._owned = np.stack(
            [np.zeros(len(cells.hour)), *(pool.owned[cells.hour] for pool in reduced.pools)]
        )[1:]
        self._members = np.array([[n in u for n in range(len(reduced.pools))] for u in unions])
        self._active = [
            (cells.hour >= source.start) & (cells.hour < source.end) for source in first.sources
        ]
        steps = self._prices - np.append(self._prices[1:], 0.0)
        bands = min(_PARTS, len(steps)) if self._merged else 1
        self._steps = steps
        self._band = np.arange(len(steps)) * bands // max(len(steps), 1)
        self._bands = max(bands, 1)

    @property
    def scenario_of(self) -> Places:
        """The scenario of each part."""
        return np.repeat(np.arange(self._scenarios), self._bands)

    @property
    def merged(self) -> bool:
        """Whether parts are means over scenarios."""
        return self._merged

    def evaluate(self, u: Array, until: float) -> Evaluation | None:
        """The exact recourse cost and slopes at u."""
        value = np.zeros((self._scenarios, self._bands))
        slope = np.zeros((self._scenarios, self._bands, len(u)))
        for tier, short, union in self._spills(u):
            step, band = self._steps[tier], self._band[tier]
            if step <= 0:
                continue
            weight = self._weights * (short > 0) * step
            value[:, band] += np.bincount(self._scenario, weight * short, self._scenarios)
            slope[:, band] -= self._use(union, weight)
        parts = self._scenarios * self._bands
        return Evaluation(u, value.ravel(), slope.reshape(parts, len(u)), value.sum(axis=1))

    def exact(self, u: Array, until: float) -> Array | None:
        """USD per scenario at u."""
        found = self.evaluate(u, until)
        return None if found is None else found.cost

    def by_kind(self, u: Array) -> Array:
        """USD per (scenario, kind): each tier's own spill at its own price."""
        found = np.zeros((self._scenarios, len(KINDS)))
        former = np.zeros(self._demand.shape[1])
        for number, short, _ in self._spills(u):
            tier, spill = self._tiers[number], np.maximum(short, 0.0)
            hours = np.bincount(self._scenario, self._weights * (spill - former), self._scenarios)
            former = spill
            gpus = hours / tier.option.useful
            kind, egress = str(tier.option.use), self._egress[number]
            found[:, KINDS.index(kind)] += gpus * (tier.option.price - egress)
            found[:, KINDS.index("egress")] += gpus * egress
        return found

    def _spills(self, u: Array) -> Iterator[tuple[int, Array, Places]]:
        """For each tier, dearest first: D_j,N - C(N) at its largest per cell, and that N."""
        excess = -(self._capacity(u).T @ self._members.T.astype(float))
        for number, tier in enumerate(self._tiers):
            excess[:, self._inside[tier.group]] += (tier.share * self._demand[tier.group])[:, None]
            union = np.argmax(excess, axis=1)
            yield number, np.take_along_axis(excess, union[:, None], 1)[:, 0], union

    def _capacity(self, u: Array) -> Array:
        capacity = self._owned.copy()
        for source, there, gpus in zip(self._first.sources, self._active, u, strict=True):
            if source.pool >= 0 and gpus:
                capacity[source.pool] += gpus * there
        return capacity

    def _use(self, union: Places, weight: Array) -> Array:
        """Weighted hours in which one more GPU of each source would be used, per scenario."""
        size = len(self._members)
        flat = self._scenario * size + union
        whole = np.bincount(flat, weight, self._scenarios * size).reshape(-1, size) @ self._members
        found = np.zeros((self._scenarios, len(self._first.sources)))
        for number, (source, there) in enumerate(
            zip(self._first.sources, self._active, strict=True)
        ):
            if source.pool < 0:
                continue
            if there.all():
                found[:, number] = whole[:, source.pool]
            else:
                inside = weight * there * self._members[union, source.pool]
                found[:, number] = np.bincount(self._scenario, inside, self._scenarios)
        return found
