"""Which allowed terms to consider now: a long one only where it beats short ones and waiting.

A term of more than a year is a promise beyond any history. It stays on offer for a pool only where
playing each first move through scenarios of the pool's firm demand, with later steps that may buy
then, would buy some of it now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.forecast.inputs import History
from planner.forecast.ladder import Market, Offer, ladder
from planner.forecast.scenarios import forecast
from planner.ladder import STEP_HOURS, YEAR_HOURS, spoken_term
from planner.supply import Withdrawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.forecast.inputs import FloatArray
    from planner.ladder import Rung
    from planner.supply import Supply

_STEPS = 13
_SCENARIOS = 40
_SEED = 0


def weighed(supply: Supply, rungs: Sequence[Rung], caution: float) -> Supply:
    """The supply without the long terms that no pool should buy now, and a note on each pool.

    `caution`, 0 to 1, is the weight of the worst scenarios.
    """
    keeps: dict[str, set[int]] = {}
    notes: list[str] = []
    told: dict[str, str] = {}
    for rung in rungs:
        offers = _market_offers(rung, supply)
        if all(one.term_hours <= YEAR_HOURS for one in offers):
            continue
        found = ladder(_firm(rung), _market(rung, offers, caution))
        chosen = {one.offer for one in found.rungs}
        lengths = {one.term_hours for one in offers if one.name in chosen}
        for name in rung.pool.offers:
            keeps.setdefault(name, set()).update(lengths)
            told[name] = found.reason
        notes.append(
            f"terms for {rung.pool.name}, weighed over {_SCENARIOS} ways in which its firm demand "
            f"may come: {found.reason[0].lower()}{found.reason[1:].rstrip('.')}"
        )
    kept = {
        name: offer
        if name not in keeps
        else replace(
            offer,
            terms=tuple(
                term
                for term in offer.terms
                if term.term_hours <= YEAR_HOURS or term.term_hours in keeps[name]
            ),
        )
        for name, offer in supply.offers.items()
    }
    withdrawn = tuple(
        Withdrawn(name, term, _not_now(term.term_hours, told[name]))
        for name in sorted(told)
        for term in supply.offers[name].terms
        if term not in kept[name].terms
    )
    return replace(supply, offers=kept, notes=(*supply.notes, *notes), withdrawn=withdrawn)


def _not_now(hours: int, reason: str) -> str:
    """Why a term is not offered, from the answer of the weighing of all terms."""
    plain = reason.removeprefix("Buy nothing yet: ").removeprefix("Buy nothing: ").rstrip(".")
    best = "it is best to " if plain.startswith("Buy ") else ""
    return (
        f"a term of {spoken_term(hours)} is not offered now, since over {_SCENARIOS} ways in which "
        f"its firm demand may come {best}{plain[0].lower()}{plain[1:]}"
    )


def _market_offers(rung: Rung, supply: Supply) -> tuple[Offer, ...]:
    """The cheapest rate of each length of term in the pool, short ones first."""
    rates: dict[int, float] = {}
    for name in rung.pool.offers:
        offer = supply.offers[name]
        ways = [(term.term_hours, term.rate) for term in offer.terms]
        if offer.plan_rate is not None:
            ways.append((YEAR_HOURS, offer.plan_rate))
        for hours, rate in ways:
            rates[hours] = min(rate, rates.get(hours, rate))
    return tuple(Offer(spoken_term(hours), rates[hours], hours) for hours in sorted(rates))


def _market(rung: Rung, offers: tuple[Offer, ...], caution: float) -> Market:
    """The pool's market, with what is held counted from now."""
    now = rung.past.next_hour
    held = tuple(
        one._replace(from_hour=0, until_hour=one.until_hour - now)
        for one in rung.terms.held
        if one.until_hour > now
    )
    return Market(
        on_demand=rung.terms.on_demand,
        offers=offers,
        gpus_per_instance=rung.terms.gpus_per_instance,
        step_hours=STEP_HOURS,
        held=held,
        caution=min(caution, 1.0),
    )


def _firm(rung: Rung) -> FloatArray:
    """Scenarios x hours of the GPUs of the pool that cannot use spot."""
    past = rung.past
    firm = History(
        firm=past.firm,
        deferrable=0.0 * past.firm,
        classes=past.classes,
        start_hour=past.start_hour,
        start_time=past.start_time,
    )
    found = forecast(firm, _STEPS * STEP_HOURS, _SCENARIOS, _SEED)
    total: FloatArray = found.scenarios.sum(axis=2)
    return total
