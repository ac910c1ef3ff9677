"""How each commitment would have been used in the observed weeks, against its break-even.

Commitments fill in an order: what is owned first, then what is bought, the lowest break-even share
first. Each stands above those before it that serve the same work, those that are owned for as long
as they last in the planned year, and sees the needed GPUs of the classes that may use it; of work
that runs cheaper as spot, only the part that must be firm.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.money import HOURS_PER_MONTH
from data.risks import HeldBefore
from planner.assemble import Stage, owned_offer_id
from planner.purchases import purchases

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.problem import Problem, ProblemClass
    from planner.supply import Supply
    from planner.waterfall import Waterfall

    Array = npt.NDArray[np.float64]

WEEK = 168
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Layer:
    """GPUs of one commitment, and the offers of the problem that it pays for.

    `lasts` is the share of the planned year until its end, `rate` USD per GPU-hour held,
    `break_even_share` that over the price on demand.
    """

    name: str
    place: str
    is_owned: bool
    gpus: float
    lasts: float
    rate: float
    break_even_share: float
    offers: frozenset[str]


def held_before(waterfall: Waterfall, supply: Supply, hours: int) -> tuple[HeldBefore, ...]:
    """One row a commitment in the `hours` observed, owned ones first, in the order they fill.

    A commitment whose offer has no price on demand has no break-even and no row, but fills.
    """
    problem = waterfall.plan.problem
    history = waterfall.stages[Stage.MOVE].problem.scenarios[0].demand
    rows: list[HeldBefore] = []
    former: list[tuple[Layer, frozenset[str]]] = []
    for layer in [*_owned(supply, problem.hours), *_bought(waterfall, supply, problem)]:
        users = [one for one in problem.classes if layer.offers & set(one.offers)]
        names = frozenset(one.id for one in users)
        need = np.zeros(hours)
        for one in users:
            if one.id in history:
                share = _firm_share(one, layer, problem)
                need += share * history[one.id][:hours]
        below = [(one.gpus, one.lasts) for one, others in former if others & names]
        former.append((layer, names))
        if np.isfinite(layer.break_even_share) and layer.gpus > 0:
            rows.append(_row(layer, used_over(need, layer.gpus, layer.lasts, below)))
    return tuple(rows)


def used_over(
    need: Array, gpus: float, lasts: float, below: Sequence[tuple[float, float]]
) -> Array:
    """Share of `gpus` at work in each hour, above others of (GPUs, share of the year they last).

    The mean over the part of the year that it lasts itself.

    >>> used_over(np.array([10.0, 14.0]), 4.0, 1.0, [(8.0, 1.0), (4.0, 0.25)]).tolist()
    [0.375, 0.875]
    """
    edges = sorted({0.0, lasts, *(min(end, lasts) for _, end in below)})
    used = np.zeros(len(need))
    for start, end in itertools.pairwise(edges):
        base = sum(size for size, until in below if until >= end)
        used += (end - start) / lasts * np.clip(need - base, 0.0, gpus) / gpus
    return used


def weekly(used: Array) -> Array:
    """Means of whole weeks counted back from the end; of all hours where there is no whole one.

    >>> weekly(np.repeat([0.9, 0.2, 0.4], [100, 168, 168])).round(9).tolist()
    [0.2, 0.4]
    """
    weeks = len(used) // WEEK
    if not weeks:
        return np.array([used.mean()])
    return np.asarray(used[len(used) - weeks * WEEK :].reshape(weeks, WEEK).mean(axis=1))


def _row(layer: Layer, used: Array) -> HeldBefore:
    weeks = weekly(used)
    return HeldBefore(
        commitment=layer.name,
        place=layer.place,
        is_owned=layer.is_owned,
        gpus=round(layer.gpus, _DIGITS),
        break_even_share=round(layer.break_even_share, _DIGITS),
        used_share=round(float(used.mean()), _DIGITS),
        lowest_share=round(float(weeks.min()), _DIGITS),
        weeks=len(weeks),
        weeks_under=int((weeks < layer.break_even_share).sum()),
    )


def _owned(supply: Supply, hours: int) -> list[Layer]:
    """What is owned and has not ended; where one commitment covers several offers, one each."""
    layers = []
    for one in supply.owned:
        if one.until_hour <= 0:
            continue
        offer = supply.offers[one.offer]
        rate = one.ahead_usd_per_month / (one.gpus * HOURS_PER_MONTH) if one.gpus else 0.0
        even = rate / offer.on_demand if offer.on_demand and rate else float("inf")
        place = f"{offer.instance_type} in {offer.region}"
        lasts = min(one.until_hour / hours, 1.0)
        offers = frozenset({owned_offer_id(offer.id)})
        layers.append(Layer(one.id, place, True, one.gpus, lasts, rate, even, offers))
    return layers


def _bought(waterfall: Waterfall, supply: Supply, problem: Problem) -> list[Layer]:
    layers = []
    for one in purchases(waterfall.plan, supply):
        if not one.gpus:
            continue
        if one.kind == "savings_plan":
            offers = frozenset(
                o.id for o in problem.offers if o.provider == one.cloud and o.sp_rate is not None
            )
        else:
            offers = frozenset({one.key[1]})
        even = float("inf") if one.break_even_share is None else one.break_even_share
        rate = one.usd_per_hour / one.gpus
        layers.append(Layer(one.action, "", False, one.gpus, 1.0, rate, even, offers))
    return sorted(layers, key=lambda layer: (layer.break_even_share, layer.name))


def _firm_share(one: ProblemClass, layer: Layer, problem: Problem) -> float:
    """The share of a class's demand that has nothing cheaper than the commitment."""
    spot = [
        offer.spot / offer.spot_throughput
        for offer in problem.offers
        if offer.id in one.offers and offer.spot is not None
    ]
    return one.min_firm_share if min(spot, default=np.inf) < layer.rate else 1.0
