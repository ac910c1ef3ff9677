"""Exact reductions: a smaller problem with the same optimum, and the way back to the hours.

Classes with equal rules merge (their feasible mixes are shares of demand, and convex); offers
that the same classes may use at the same surcharge merge into one pool; hours in which every
class and pool looks the same merge into one cell. Each keeps what is needed to split a plan again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.availability import Limit, limits_of
from planner.model.options import Menu, menu, quota_name
from planner.problem import ClassKind, QuotaUse, active, paid_hours

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.model.options import Quotas
    from planner.problem import Block, Offer, Problem, ProblemClass, Quota, Reservation

    Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Classes with equal rules, as one. `demand` is scenarios x hours, summed over members.

    `egress` maps each offer whose pool it may use to the surcharge there.
    """

    members: tuple[ProblemClass, ...]
    demand: Array
    menu: Menu
    egress: dict[str, float]

    @property
    def rules(self) -> ProblemClass:
        """A member: of all of them it tells the name, the kind and the window."""
        return self.members[0]

    @property
    def firm(self) -> bool:
        """Whether it is served in its own hour."""
        return self.rules.kind is ClassKind.FIRM


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Offers that share one pool, as one. `egress` maps the index of each group that may use it.

    `owned` is GPUs per hour, `peak` the most GPUs that its groups can ever use (None: not known).
    """

    offers: tuple[Offer, ...]
    egress: dict[int, float]
    owned: Array
    reservations: tuple[tuple[Offer, Reservation], ...]
    blocks: tuple[Block, ...]
    peak: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sets of hours that look the same. `of` is scenarios x hours: the cell of each.

    `scenario` and `hour` are the first of each cell, `mean_hours` its hours times probability,
    `hours` its plain number of hours within its scenario.
    """

    of: npt.NDArray[np.intp]
    scenario: npt.NDArray[np.intp]
    hour: npt.NDArray[np.intp]
    mean_hours: Array
    hours: Array

    def __len__(self) -> int:
        return len(self.hour)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """The problem as the model sees it. `quotas` are limits, in their own unit, by name."""

    problem: Problem
    groups: tuple[Group, ...]
    pools: tuple[Pool, ...]
    cells: Cells
    quotas: dict[tuple[str, ...], float]
    limits: tuple[Limit, ...] = ()

    @property
    def risk(self) -> bool:
        """Whether the risk term needs rows: with one scenario it is a plain factor."""
        cvar = self.problem.cvar
        return cvar is not None and cvar.weight > 0 and len(self.problem.scenarios) > 1


def reduce(problem: Problem, *, exact: bool = True) -> Reduced:
    """The reduced problem; with `exact` False only regrouped, nothing merged or left out."""
    quotas = [*problem.quotas]
    if exact and not problem.on_demand_integer:
        quotas = [quota for quota in quotas if _may_bind(problem, quota)]
    counted = {(q.provider, q.region, use): q for q in quotas for use in q.uses}
    groups = _groups(problem, counted, exact)
    pools = _pools(problem, groups, exact)
    limits = limits_of(problem, groups)
    cells = _cells(problem, groups, pools, limits, exact)
    named = {quota_name(quota): quota.limit for quota in quotas}
    return Reduced(problem, groups, pools, cells, named, limits)


def demand_of(problem: Problem, one: ProblemClass) -> Array:
    """Demand of a class, scenarios x hours."""
    return np.stack([np.asarray(s.demand[one.id], dtype=float) for s in problem.scenarios])


def _may_bind(problem: Problem, quota: Quota) -> bool:
    """Whether firm demand there could ever buy more than a quota, or work that waits is there."""
    offers = {offer.id: offer for offer in problem.offers}
    spot = QuotaUse.SPOT in quota.uses
    most = np.zeros((len(problem.scenarios), problem.hours))
    for one in problem.classes:
        here = [
            offers[name]
            for name in one.offers
            if (offers[name].provider, offers[name].region) == (quota.provider, quota.region)
        ]
        if here:
            counted = max(quota.per_gpu(o) / (o.spot_throughput if spot else 1.0) for o in here)
            waits = one.kind is ClassKind.DEFERRABLE
            work = demand_of(problem, one)
            most += (np.full_like(most, np.inf) if waits and work.any() else work) * counted
    return bool(most.max() > quota.limit)


def _groups(problem: Problem, quotas: Quotas, exact: bool) -> tuple[Group, ...]:
    """Classes that may buy and hold alike, merged; each alone where instances are whole.

    Rules that leave the same menu and the same pools are equal, whatever they say otherwise.
    """
    pooled = {offer.id: offer for offer in problem.offers if _makes_pool(problem, offer)}
    alike: dict[object, list[tuple[ProblemClass, Menu, dict[str, float]]]] = {}
    for one in sorted(problem.classes, key=lambda c: c.id):
        choices = menu(problem, one, quotas, exact)
        egress = {
            name: surcharge
            for name in sorted(set(one.offers) & set(pooled))
            if (surcharge := pooled[name].egress.get(one.id, 0.0)) < choices.ceiling
        }
        key: object = one.id
        if exact and not problem.on_demand_integer:
            mix = (choices.options, choices.spot_share, tuple(egress.items()))
            waits = one.kind is ClassKind.DEFERRABLE
            limited = any(option.limited for option in choices.options)
            # What waits of two classes is not shared out by either's demand.
            key = (one.kind, one.window, mix, one.id if waits and limited else "")
        alike.setdefault(key, []).append((one, choices, egress))
    found = []
    for rows in alike.values():
        members = tuple(one for one, _, _ in rows)
        demand = np.sum([demand_of(problem, one) for one in members], axis=0)
        if demand.any() or not exact:
            found.append(Group(members, demand, rows[0][1], rows[0][2]))
    return tuple(found)


def _makes_pool(problem: Problem, offer: Offer) -> bool:
    """Whether the offer has, or can be given, capacity that its classes share."""
    blocks = any(block.offer == offer.id and block.max for block in problem.blocks)
    return blocks or bool(offer.reservations) or any(one.gpus > 0 for one in offer.existing)


def _pools(problem: Problem, groups: tuple[Group, ...], exact: bool) -> tuple[Pool, ...]:
    alike: dict[object, list[tuple[Offer, dict[int, float]]]] = {}
    for offer in sorted(problem.offers, key=lambda o: o.id):
        egress = {
            index: group.egress[offer.id]
            for index, group in enumerate(groups)
            if offer.id in group.egress
        }
        if egress:
            key: object = tuple(egress.items()) if exact else offer.id
            alike.setdefault(key, []).append((offer, egress))
    return tuple(
        _pool(problem, groups, tuple(offer for offer, _ in members), members[0][1], exact)
        for members in alike.values()
    )


def _pool(
    problem: Problem,
    groups: tuple[Group, ...],
    offers: tuple[Offer, ...],
    egress: dict[int, float],
    exact: bool,
) -> Pool:
    owned = np.zeros(problem.hours)
    for offer in offers:
        owned += owned_gpus(offer, problem.hours)
    names = {offer.id for offer in offers}
    blocks = sorted((b for b in problem.blocks if b.offer in names), key=lambda b: b.id)
    sold = [(offer, way) for offer in offers for way in offer.reservations]
    if exact:
        sold = _undominated(sold, problem)
    peak = None
    if exact:
        peak = float(np.max(sum(most_at_once(groups[index]) for index in egress)))
    return Pool(offers, egress, owned, tuple(sold), tuple(blocks), peak)


def owned_gpus(offer: Offer, hours: int) -> Array:
    """GPUs of the offer that are there already, per hour."""
    there = np.zeros(hours)
    for existing in offer.existing:
        there[: existing.until_hour] += existing.gpus
    return there


def most_at_once(group: Group) -> Array:
    """The most GPUs that the group can use in each hour: for work that waits, all its backlog."""
    if group.firm:
        return group.demand
    released = np.cumsum(group.demand, axis=1)
    most = released.copy()
    gone = group.rules.window + 1
    most[:, gone:] -= released[:, :-gone]
    return most


def _undominated(
    sold: Sequence[tuple[Offer, Reservation]], problem: Problem
) -> list[tuple[Offer, Reservation]]:
    """Reservations without those that others of the same pool replace at no more money.

    What replaces another counts against no limit of commitments that the other does not.
    """
    hours, budgeted = problem.hours, problem.upfront_budget is not None
    counted = {
        offer.id: {limit.id for limit in problem.commitment_limits if offer.id in limit.offers}
        for offer, _ in sold
    }
    kept: list[tuple[Offer, Reservation]] = []

    def cost(way: Reservation) -> float:
        return way.rate * paid_hours(way.start, way.term, hours)

    def covers(cheap: Reservation, way: Reservation) -> bool:
        first, last = active(way.start, way.term, hours)
        start, end = active(cheap.start, cheap.term, hours)
        return start <= first and last <= end

    for offer, way in sorted(
        sold, key=lambda s: (cost(s[1]), s[1].upfront, s[0].gpus, s[0].id, s[1].id)
    ):
        if not any(
            offer.gpus % rival.gpus == 0
            and (not budgeted or cheap.upfront <= way.upfront)
            and counted[rival.id] <= counted[offer.id]
            and covers(cheap, way)
            for rival, cheap in kept
        ):
            kept.append((offer, way))
    return sorted(kept, key=lambda s: (s[0].id, s[1].id))


def _cells(
    problem: Problem,
    groups: tuple[Group, ...],
    pools: tuple[Pool, ...],
    limits: tuple[Limit, ...],
    exact: bool,
) -> Cells:
    count, hours = len(problem.scenarios), problem.hours
    p = np.array([scenario.p for scenario in problem.scenarios])
    if not exact or not all(group.firm for group in groups):
        of = np.arange(count * hours).reshape(count, hours)
    else:
        apart = bool(problem.cvar and problem.cvar.weight > 0 and count > 1)
        looks = _looks(problem, groups, pools, apart)
        shares = [limit.share.reshape(-1, 1) for limit in limits]
        of = _equal_hours(np.hstack([looks, *shares])).reshape(count, hours)
    first = np.unique(of, return_index=True)[1]
    scenario, hour = np.divmod(first, hours)
    mean_hours = np.asarray(np.bincount(of.ravel(), np.repeat(p, hours)), dtype=float)
    plain_hours = np.asarray(np.bincount(of.ravel()), dtype=float)
    return Cells(of, scenario, hour, mean_hours, plain_hours)


def _looks(
    problem: Problem, groups: tuple[Group, ...], pools: tuple[Pool, ...], apart: bool
) -> Array:
    """One row for each (scenario, hour) with all that tells it from others."""
    count, hours = len(problem.scenarios), problem.hours
    columns = [group.demand.ravel() for group in groups]
    hour = np.arange(hours)
    for pool in pools:
        columns.append(np.tile(pool.owned, count))
        for block in pool.blocks:
            inside = (hour >= block.start) & (hour < block.start + block.length)
            columns.append(np.tile(inside.astype(float), count))
    for start, end in _spans(problem, pools):
        inside = (hour >= start) & (hour < end)
        columns.append(np.tile(inside.astype(float), count))
    if apart or not columns:
        columns.append(np.repeat(np.arange(count, dtype=float), hours))
    return np.stack(columns, axis=1)


def _spans(problem: Problem, pools: tuple[Pool, ...]) -> list[tuple[int, int]]:
    """Hours of the commitments that are not there for the whole file."""
    held = [(way.start, way.term) for pool in pools for _, way in pool.reservations]
    held += [(plan.start, plan.term) for plan in problem.savings_plans]
    spans = {active(start, term, problem.hours) for start, term in held}
    return sorted(spans - {(0, problem.hours)})


def _equal_hours(looks: Array) -> npt.NDArray[np.intp]:
    """The number of each row's set of equal rows, sets numbered in order of first appearance."""
    _, first, inverse = np.unique(looks, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse.ravel()]


def most_instances(peak: float | None, gpus: int) -> int | None:
    """The largest useful count of instances: enough for the peak alone.

    >>> most_instances(20.0, 8), most_instances(None, 8)
    (3, None)
    """
    return None if peak is None else math.ceil(peak / gpus - 1e-9)


def most_columns(reduced: Reduced) -> int:
    """About how many second-stage columns the direct model has."""
    uses = sum(len(pool.egress) for pool in reduced.pools)
    options = sum(len(group.menu.options) + (not group.firm) for group in reduced.groups)
    return len(reduced.cells) * (uses + options)
