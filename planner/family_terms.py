"""The prices of a GPU family as a planning step of the forecast takes them, from a plan's problem.

A family runs in parts, each with its own offers. Of every part the cheapest way of each kind
counts, and of the family their means, weighed by what the parts need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.assemble import base_name
from planner.forecast.inputs import Terms

if TYPE_CHECKING:
    from planner.problem import Offer, Problem, ProblemClass

_YEAR = 8760  # hours


@dataclass(frozen=True, slots=True)
class _Prices:
    """Mean GPUs of one part, USD per GPU-hour, and GPUs of the instance that is committed to."""

    gpus: float
    on_demand: float
    reserved: float
    spot: float | None
    size: int


def family_terms(problem: Problem) -> dict[str, Terms]:
    """Terms by GPU family, where a part of it can be had on demand and committed to.

    Nothing waits in a plan, so nothing does here; spot is priced per useful GPU-hour.
    """
    parts: dict[str, list[_Prices]] = {}
    for one in problem.classes:
        found = _prices(one, problem)
        if found is not None:
            family = base_name(one.id).rsplit("|", 1)[1]
            parts.setdefault(family, []).append(found)
    return {name: _mean(parts[name]) for name in sorted(parts)}


def _prices(one: ProblemClass, problem: Problem) -> _Prices | None:
    offers = [offer for offer in problem.offers if offer.id in one.offers]
    hourly = [offer.on_demand for offer in offers if offer.on_demand is not None]
    committed = [way for offer in offers for way in _ways(offer)]
    if not hourly or not committed:
        return None
    spot = [o.spot / o.spot_throughput for o in offers if o.spot is not None]
    rate, size = min(committed)
    gpus = sum(float(s.demand[one.id].mean()) * s.p for s in problem.scenarios)
    return _Prices(gpus, min(hourly), rate, min(spot, default=None), size)


def _ways(offer: Offer) -> list[tuple[float, int]]:
    """Rate and GPUs at once of what commits to an offer for a year: plans come in any amount."""
    ways = [(way.rate, offer.gpus) for way in offer.reservations if "1y" in way.id]
    return ways if offer.sp_rate is None else [*ways, (offer.sp_rate, 1)]


def _mean(parts: list[_Prices]) -> Terms:
    total = sum(one.gpus for one in parts)
    weights = [one.gpus / total if total else 1 / len(parts) for one in parts]
    largest = max(parts, key=lambda one: (one.gpus, -one.reserved))
    with_spot = [(w, one.spot) for w, one in zip(weights, parts, strict=True) if one.spot]
    spotted = sum(weight for weight, _ in with_spot)
    return Terms(
        on_demand=sum(w * one.on_demand for w, one in zip(weights, parts, strict=True)),
        reserved=sum(w * one.reserved for w, one in zip(weights, parts, strict=True)),
        spot=sum(w * price for w, price in with_spot) / spotted if spotted else None,
        term_hours=_YEAR,
        gpus_per_instance=largest.size,
        max_delay_hours=0,
    )
