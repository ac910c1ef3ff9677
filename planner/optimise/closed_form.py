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

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.model.availability import most_useful
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

MOST_UNIONS = 4096  # more pool sets than this cost more than the LP
_PARTS = 40  # cuts a round, where scenarios merge and each price may have its own
_CHUNK = 65_536  # numbers at a time, so that they stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Tier:
    """A share of a group's demand that costs `price` a GPU-hour without reserved capacity.

    One number, or one for each cell where what is available changes by the hour.
    """

    price: float
    group: int
    share: Array | float
    option: Option


def holds(reduced: Reduced) -> bool:
    """Whether the closed form gives the exact recourse cost of the problem."""
    problem = reduced.problem
    if problem.on_demand_integer or reduced.quotas or not all(g.firm for g in reduced.groups):
        return False
    options = [option for group in reduced.groups for option in group.menu.options]
    if any(option.use is Use.SAVINGS_PLAN or option.quota is not None for option in options):
        return False
    if any(limit.row for limit in reduced.limits):
        return False
    if any(any(pool.egress.values()) for pool in reduced.pools):
        return False
    return few_unions(reduced)


def few_unions(reduced: Reduced) -> bool:
    """Whether the pool sets are few enough for the closed form to be the quicker one."""
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


def tiers_of(reduced: Reduced) -> list[Tier]:
    """Tiers of every group, dearest first."""
    found = []
    for index, group in enumerate(reduced.groups):
        left: Array | float = 1.0
        joint = group.menu.spot_share
        spot: Array | float = np.inf if joint is None else joint
        for place in _merit_order(group):
            option = group.menu.options[place]
            share = _least(left, _at_cells(reduced, most_useful(reduced, index, place)))
            if option.use is Use.SPOT:
                share = _least(share, spot)
                spot = spot - share
            if np.any(share > 0):
                found.append(Tier(option.unit_price, index, share, option))
            left = left - share
    return sorted(found, key=lambda tier: (-tier.price, tier.group, tier.option.offer))


def _merit_order(group: Group) -> list[int]:
    """Places of the options in the menu, cheapest first."""
    options = group.menu.options
    return sorted(
        range(len(options)),
        key=lambda place: (options[place].unit_price, options[place].use != Use.SPOT),
    )


def _at_cells(reduced: Reduced, share: Array | float | None) -> Array | float:
    """A share, or shares of scenarios x hours, at the cells."""
    if share is None or isinstance(share, float):
        return np.inf if share is None else share
    cells = reduced.cells
    return share[cells.scenario, cells.hour]


def _least(one: Array | float, other: Array | float) -> Array | float:
    if isinstance(one, float) and isinstance(other, float):
        return min(one, other)
    least: Array = np.minimum(one, other)
    return least


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Tiers of one price, and the unions that matter down to it: those of demand so far.

    Any other union holds the same demand as a smaller one, and more capacity.
    """

    tiers: tuple[int, ...]
    unions: Places


def surcharge(reduced: Reduced, group: int, option: Option) -> float:
    """USD of egress in the price of an option."""
    if not option.offer:
        return 0.0
    offers = {offer.id: offer for offer in reduced.problem.offers}
    return offers[option.offer].egress.get(reduced.groups[group].rules.id, 0.0)


class ClosedForm:
    """The oracle. Parts are scenarios, or prices in bands where scenarios merge."""

    def __init__(self, reduced: Reduced, first: FirstStage) -> None:
        cells = reduced.cells
        self._first = first
        self._tiers = tiers_of(reduced)
        self._menus = [group.menu.options for group in reduced.groups]
        self._egress = [surcharge(reduced, tier.group, tier.option) for tier in self._tiers]
        self._merged = not reduced.risk
        self._weights = cells.mean_hours if self._merged else cells.hours
        self._scenario = np.zeros_like(cells.scenario) if self._merged else cells.scenario
        self._scenarios = int(self._scenario.max()) + 1
        self._demand = np.stack([g.demand[cells.scenario, cells.hour] for g in reduced.groups])
        signatures = _signatures(reduced)
        kinds = sorted(set(signatures), key=sorted)
        self._signature = [kinds.index(one) for one in signatures]
        unions = _unions(signatures)
        self._inside = np.array([[s <= u for u in unions] for s in kinds], dtype=float)
        pools = range(len(reduced.pools))
        self._members = np.array([[n in u for n in pools] for u in unions], dtype=float)
        self._numbers = {union: number for number, union in enumerate(unions)}
        self._owned = np.zeros((len(pools), len(cells.hours)))
        for number, pool in enumerate(reduced.pools):
            self._owned[number] = pool.owned[cells.hour]
        self._active = [
            (cells.hour >= source.start) & (cells.hour < source.end) for source in first.sources
        ]
        self._everywhere = [bool(there.all()) for there in self._active]
        prices = np.array([tier.price for tier in self._tiers])
        starts = np.flatnonzero(np.append(True, prices[1:] != prices[:-1]))
        self._levels = self._closed_sets(kinds, np.split(np.arange(len(prices)), starts[1:]))
        self._steps = prices[starts] - np.append(prices[starts[1:]], 0.0)
        self._bands = min(_PARTS, len(starts)) if self._merged else 1
        self._band = np.arange(len(starts)) * self._bands // len(starts)

    @property
    def scenario_of(self) -> Places:
        """The scenario of each part."""
        return np.repeat(np.arange(self._scenarios), self._bands)

    @property
    def merged(self) -> bool:
        """Whether parts are means over scenarios."""
        return self._merged

    @property
    def floor(self) -> float:
        """What a part costs at least."""
        return 0.0

    def evaluate(self, u: Array, until: float) -> Evaluation | None:
        """The exact recourse cost and slopes at u; None where the time is over before."""
        if time.perf_counter() > until:
            return None
        value = np.zeros((self._scenarios, self._bands))
        slope = np.zeros((self._scenarios, self._bands, len(u)))
        spills = self._spills(u, self._levels)
        for step, band, (short, union) in zip(self._steps, self._band, spills, strict=True):
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
        for number, hours in self._tier_hours(u):
            tier, egress = self._tiers[number], self._egress[number]
            gpus = hours / tier.option.useful
            kind = str(tier.option.use)
            found[:, KINDS.index(kind)] += gpus * (tier.option.price - egress)
            found[:, KINDS.index("egress")] += gpus * egress
        return found

    def bought(self, u: Array) -> dict[tuple[int, int], Array]:
        """Useful GPU-hours bought at u, per scenario, by group and place in its menu."""
        found: dict[tuple[int, int], Array] = {}
        for number, hours in self._tier_hours(u):
            tier = self._tiers[number]
            place = self._menus[tier.group].index(tier.option)
            if hours.any():
                found[tier.group, place] = found.get((tier.group, place), 0.0) + hours
        return found

    def _tier_hours(self, u: Array) -> Iterator[tuple[int, Array]]:
        """Each tier, dearest first, with the useful GPU-hours that spill to it per scenario."""
        former = np.zeros(self._demand.shape[1])
        alone = [
            replace(level, tiers=(number,)) for level in self._levels for number in level.tiers
        ]
        for level, (short, _) in zip(alone, self._spills(u, alone), strict=True):
            spill = np.maximum(short, 0.0)
            weights = self._weights * (spill - former)
            former = spill
            yield level.tiers[0], _sums(self._scenario, weights, self._scenarios)

    def pool_prices(self, u: Array) -> Array:
        """What one more GPU of each pool would save in each cell, cells x pools, USD."""
        found = np.zeros((self._demand.shape[1], self._members.shape[1]))
        for step, (short, union) in zip(self._steps, self._spills(u, self._levels), strict=True):
            found += (step * (short > 0))[:, None] * self._members[union]
        return found

    def _closed_sets(self, kinds: list[frozenset[int]], levels: list[Places]) -> list[_Level]:
        """The levels of the tiers given by number, dearest first."""
        found = []
        begun: set[int] = set()
        reached = {frozenset[int]()}
        unions = np.zeros(1, dtype=np.intp)
        for tiers in levels:
            new = {self._signature[self._tiers[number].group] for number in tiers} - begun
            for kind in sorted(new):
                reached |= {kinds[kind] | other for other in reached}
            if new:
                begun |= new
                unions = np.array(sorted(self._numbers[one] for one in reached), dtype=np.intp)
            found.append(_Level(tuple(tiers.tolist()), unions))
        return found

    def _spills(self, u: Array, levels: list[_Level]) -> Iterator[tuple[Array, Places]]:
        """For each level, dearest first: D_j,N - C(N) at its largest per cell, and that N."""
        capacity = self._capacity(u)
        size = capacity.shape[1]
        members = self._members
        if not (capacity != capacity[:, :1]).any():  # alike in all cells: one number a union
            members = members @ capacity[:, :1]
            capacity = np.ones((1, size))
        both = np.vstack([np.zeros((len(self._inside), size)), capacity])
        for level in levels:
            for number in level.tiers:
                tier = self._tiers[number]
                both[self._signature[tier.group]] += tier.share * self._demand[tier.group]
            held = np.vstack([self._inside[:, level.unions], -members[level.unions].T])
            short, union = np.empty(size), np.empty(size, dtype=np.intp)
            stride = max(_CHUNK // len(level.unions), 1)
            for start in range(0, size, stride):
                part = slice(start, start + stride)
                excess = both[:, part].T @ held
                union[part] = excess.argmax(axis=1)
                short[part] = excess[np.arange(len(excess)), union[part]]
            yield short, level.unions[union]

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
        for number, source in enumerate(self._first.sources):
            if source.pool < 0:
                continue
            if self._everywhere[number]:
                found[:, number] = whole[:, source.pool]
            else:
                inside = weight * self._active[number] * self._members[union, source.pool]
                found[:, number] = np.bincount(self._scenario, inside, self._scenarios)
        return found


def _sums(places: Places, values: Array, size: int) -> Array:
    found: Array = np.bincount(places, values, size).astype(float)
    return found
