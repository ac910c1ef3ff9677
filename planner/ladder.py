"""How many GPUs may be committed to now: the tested rule, pool by pool, at the plan's own prices.

A pool is the work of one GPU family that runs on one cloud today: commitments to a cloud serve that
cloud alone, and work that moves there is seen there at the next step. The rule sees the history
alone, so known events that take demand away count before it, and those that bring more count when
they are seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.assemble import reachable
from planner.events import span_of
from planner.forecast.inputs import Held, History, Terms
from planner.forecast.policy import advise, held_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from planner.assemble import Need
    from planner.forecast.inputs import Advice
    from planner.horizon import Horizon
    from planner.settings import EventRule
    from planner.supply import Supply, SupplyOffer

    Array = npt.NDArray[np.float64]

YEAR_HOURS = 8760
STEP_HOURS = 672  # until the next planning step of the ladder
_RECENT = 672


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """What a class needs on an offer that it runs on today, and the offers in reach."""

    need: Need
    place: str
    offers: tuple[SupplyOffer, ...]

    @property
    def series(self) -> Array:
        """GPUs by observed hour, with those that its queued jobs waited for."""
        return self.need.wanted_at(self.place)

    @property
    def waiting(self) -> float:
        """The share of it that may run on spot."""
        has_spot = any(one.spot is not None for one in self.offers)
        return 1 - self.need.min_firm_share if self.need.interruptible and has_spot else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The work of a GPU family on a cloud, and the offers that may be committed to for it."""

    family: str
    cloud: str
    members: tuple[Member, ...]
    offers: tuple[str, ...]

    @property
    def name(self) -> str:
        """Cloud and family, such as "aws H100"."""
        return f"{self.cloud} {self.family}"


@dataclass(frozen=True, slots=True, eq=False)
class Rung:
    """A pool with the prices it was judged by and the answer of the rule.

    `past` is what was needed of it, before events that take demand away are left out; `needed` what
    they leave. `term` is that of the rates in `terms`.
    """

    pool: Pool
    past: History
    terms: Terms
    advice: Advice
    needed: float
    held: float
    term: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Unpriced:
    """The work of a GPU family on a cloud that no commitment of the allowed terms is priced for.

    `needed` and `held` are GPUs as a `LadderStep` has them, `on_demand` USD per GPU-hour.
    """

    family: str
    cloud: str
    needed: float
    held: float
    on_demand: float | None


def ladder(
    needs: Sequence[Need],
    supply: Supply,
    covered: pd.DatetimeIndex,
    planned: Horizon,
    events: Sequence[EventRule] = (),
) -> tuple[Rung, ...]:
    """One rung a pool, by name. `supply` counts what is owned in hours of the planned year."""
    rungs = []
    for pool in pools(needs, supply):
        held = _held(pool, supply, planned, _grid_hours(covered))
        terms = replace(pool_terms(pool), held=held)
        history = _history(pool, covered, _lasting(pool, terms, planned, events))
        total = history.firm + history.deferrable
        rungs.append(
            Rung(
                pool=pool,
                past=_history(pool, covered, {}),
                terms=terms,
                advice=advise(history, terms),
                needed=float(np.nanmean(total.sum(axis=1)[-_RECENT:])),
                held=held_on(terms, history.next_hour),
                term=_term_words(pool, supply),
            )
        )
    return tuple(rungs)


def unpriced(
    needs: Sequence[Need], supply: Supply, covered: pd.DatetimeIndex, planned: Horizon
) -> tuple[Unpriced, ...]:
    """The families and clouds that have work and no pool, by name."""
    priced = {(one.family, one.cloud) for one in pools(needs, supply)}
    found: dict[tuple[str, str], list[Member]] = {}
    for need in needs:
        for place in need.present:
            key = need.gpu_family, supply.offers[place].cloud
            if key not in priced:
                offers = (supply.offers[place],)
                found.setdefault(key, []).append(Member(need, place, offers))
    made = []
    for family, cloud in sorted(found):
        pool = Pool(family, cloud, tuple(found[family, cloud]), ())
        history = _history(pool, covered, {})
        total = (history.firm + history.deferrable).sum(axis=1)
        held = _held(pool, supply, planned, 0)
        made.append(
            Unpriced(
                family=family,
                cloud=cloud,
                needed=float(np.nanmean(total[-_RECENT:])),
                held=sum(one.gpus for one in held if one.until_hour >= STEP_HOURS),
                on_demand=_hourly(pool),
            )
        )
    return tuple(made)


def _hourly(pool: Pool) -> float | None:
    """USD per GPU-hour on demand where the pool's work runs today, on the mean."""
    rates = [one.offers[0].on_demand for one in pool.members]
    gpus = [float(one.series[-_RECENT:].mean()) for one in pool.members]
    known = [(rate, count) for rate, count in zip(rates, gpus, strict=True) if rate is not None]
    total = sum(count for _, count in known)
    return sum(rate * count for rate, count in known) / total if total > 0 else None


def spoken_term(hours: int) -> str:
    """The length of a term in words.

    >>> spoken_term(8760), spoken_term(26280)
    ('1 year', '3 years')
    """
    years = hours / YEAR_HOURS
    return "1 year" if years == 1 else f"{years:g} years"


def _term_words(pool: Pool, supply: Supply) -> str:
    """The terms that the pool's rates are of, as `_ways` takes them."""
    hours = set()
    for offer in (supply.offers[name] for name in pool.offers):
        lengths = {term.term_hours for term in offer.terms}
        if offer.plan_rate is not None or YEAR_HOURS in lengths:
            lengths = {YEAR_HOURS}
        hours |= lengths
    return " or ".join(spoken_term(one) for one in sorted(hours))


def pools(needs: Sequence[Need], supply: Supply) -> list[Pool]:
    """The pools of a fleet, by family and cloud; work that no commitment could serve is in none."""
    found: dict[tuple[str, str], list[Member]] = {}
    for need in needs:
        for place in need.present:
            cloud = supply.offers[place].cloud
            reach = [supply.offers[name] for name in reachable(need, place, supply)]
            offers = tuple(one for one in reach if one.cloud == cloud)
            if any(_ways(one) for one in offers) and any(one.on_demand for one in offers):
                member = Member(need, place, offers)
                found.setdefault((need.gpu_family, cloud), []).append(member)
    return [_pool(key, found[key]) for key in sorted(found)]


def _pool(key: tuple[str, str], members: Sequence[Member]) -> Pool:
    offers = {one.id for member in members for one in member.offers if _ways(one)}
    return Pool(*key, tuple(members), tuple(sorted(offers)))


def _ways(offer: SupplyOffer) -> list[tuple[float, int]]:
    """Rate and GPUs at once of what commits to an offer for a year; plans come in any amount.

    Longer terms stand in where an offer has no other.
    """
    years = [term for term in offer.terms if term.term_hours == YEAR_HOURS]
    ways = [(term.rate, offer.gpus) for term in years or offer.terms]
    return ways if offer.plan_rate is None else [*ways, (offer.plan_rate, 1)]


def pool_terms(pool: Pool) -> Terms:
    """The prices of a pool: of every member the cheapest of each kind, weighed by what it needs."""
    gpus = [float(one.series[-_RECENT:].mean()) for one in pool.members]
    total = sum(gpus)
    weights = [one / total if total > 0 else 1 / len(gpus) for one in gpus]
    on_demand = reserved = spot = spotted = 0.0
    sizes = []
    for weight, member in zip(weights, pool.members, strict=True):
        rate, size = min(way for one in member.offers for way in _ways(one))
        sizes.append((weight, size))
        hourly = [one.on_demand for one in member.offers if one.on_demand is not None]
        on_demand += weight * min(hourly)
        reserved += weight * rate
        price = _spot_price(member)
        if price is not None:
            spot, spotted = spot + weight * price, spotted + weight
    return Terms(
        on_demand=on_demand,
        reserved=reserved,
        spot=spot / spotted if spotted else None,
        term_hours=YEAR_HOURS,
        gpus_per_instance=max(sizes)[1],
        replan_hours=STEP_HOURS,
        max_delay_hours=0,
    )


def _spot_price(member: Member) -> float | None:
    """USD per useful GPU-hour as spot, where the class may use it at all."""
    if not member.waiting:
        return None
    prices = [one.spot for one in member.offers if one.spot is not None]
    return min(prices) / member.need.throughput


def _held(pool: Pool, supply: Supply, planned: Horizon, now: int) -> tuple[Held, ...]:
    """What is owned of the pool's family and clouds, in real hours of the history's count."""
    return tuple(
        Held(0, now + round(one.until_hour * planned.weight), one.gpus)
        for one in supply.owned
        if one.until_hour > 0
        and supply.offers[one.offer].gpu_family == pool.family
        and supply.offers[one.offer].cloud == pool.cloud
    )


def _grid_hours(covered: pd.DatetimeIndex) -> int:
    return round((covered[-1] - covered[0]) / pd.Timedelta(hours=1)) + 1


def _history(pool: Pool, covered: pd.DatetimeIndex, lasting: Mapping[str, float]) -> History:
    """The pool's needs by class; `lasting` is the share of each that events leave."""
    place = (covered - covered[0]) // pd.Timedelta(hours=1)
    names = sorted({one.need.workload_class for one in pool.members})
    firm = np.full((_grid_hours(covered), len(names)), np.nan)
    firm[place] = 0.0
    waiting = firm.copy()
    for one in pool.members:
        column = names.index(one.need.workload_class)
        series = one.series * lasting.get(one.need.workload_class, 1.0)
        firm[place, column] += series * (1 - one.waiting)
        waiting[place, column] += series * one.waiting
    full = _bounded(pool, place, firm.shape, names)
    start = covered[0].to_pydatetime()
    return History(firm, waiting, tuple(names), start_time=start, at_capacity=full)


def _bounded(
    pool: Pool, place: pd.Index, shape: tuple[int, ...], names: Sequence[str]
) -> npt.NDArray[np.bool_] | None:
    """The hours in which what ran of a class in the pool is a lower bound; None: in none."""
    full = np.zeros(shape, dtype=bool)
    for need in {one.need.id: one.need for one in pool.members}.values():
        offers = [one.place for one in pool.members if one.need is need]
        full[place, names.index(need.workload_class)] |= need.bounded_on(offers)
    return full if full.any() else None


def _lasting(
    pool: Pool, terms: Terms, planned: Horizon, events: Sequence[EventRule]
) -> dict[str, float]:
    """Share of each class's demand that events leave to commit on.

    What an event takes away is left out where the part of the year in which it would be there is
    too little for a commitment to pay.
    """
    shares = {one.need.workload_class: 1.0 for one in pool.members}
    for event in events:
        span = span_of(event, planned)
        if span is None or event.factor >= 1:
            continue
        away = event.chance * (span.end - span.start) / planned.hours
        if 1 - away < terms.reserved / terms.on_demand:
            for name in shares:
                if event.workload_class in (None, name):
                    shares[name] *= event.factor
    return shares
