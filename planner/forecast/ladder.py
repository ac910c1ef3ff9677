"""Which term to buy now, and what to leave for later steps, weighed over scenarios of demand.

Reserved GPUs are looked at in layers, lowest first. A layer saves, hour by hour, what its work
would have cost beside it. For every layer each first move (wait, or buy one of the offers) is
played through all scenarios: at a later step a layer that is free is bought if it paid in the
step before, which is all that can be known then. So the play buys in steps, renews what expires
only while it pays, and gives waiting its worth. Commitments are charged in full: what reaches
beyond the scenarios is valued at the last step seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.forecast.known import DAY

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.forecast.inputs import FloatArray, Held

    Places = npt.NDArray[np.intp]

YEAR_HOURS = 365 * DAY
_MOST_LAYERS = 60
_TAIL = 0.1  # share of the scenarios, the worst, that caution looks at


@dataclass(frozen=True, slots=True)
class Offer:
    """A reservation that can be bought: USD per GPU-hour held, for `term_hours`."""

    name: str
    usd_per_gpu_hour: float
    term_hours: int


@dataclass(frozen=True, slots=True)
class Market:
    """Prices and rules of the ladder.

    Attributes:
        on_demand: USD per GPU-hour.
        offers: what can be reserved.
        gpus_per_instance: reservations come in multiples of it.
        step_hours: hours between two steps at which may be bought.
        held: what is held already, hours counted from the step.
        caution: weight, 0 to 1, of the mean of the worst tenth of the scenarios against the mean
            of all.
        price_change_per_year: share by which all prices move in a year; what is bought keeps its
            price. -0.2: a fifth cheaper in a year.
    """

    on_demand: float
    offers: tuple[Offer, ...]
    gpus_per_instance: int = 1
    step_hours: int = 672
    held: tuple[Held, ...] = ()
    caution: float = 0.0
    price_change_per_year: float = 0.0


@dataclass(frozen=True, slots=True)
class Rung:
    """GPUs to buy now of one offer.

    Attributes:
        offer: its name.
        gpus: a multiple of the instance.
        saves: USD that they save in all over waiting and buying later, mean of the scenarios.
        pays_in: share of the scenarios in which they save over never buying.
    """

    offer: str
    gpus: int
    saves: float
    pays_in: float


@dataclass(frozen=True, slots=True)
class Ladder:
    """What to buy now.

    Attributes:
        rungs: in the order of the offers; empty: buy nothing yet.
        waiting_gpus: GPUs that would pay on average if bought now, and pay better if waited for.
        worth_of_waiting: USD that waiting is worth for these.
        saves: USD saved over all on demand, mean of the scenarios.
        saves_in_the_tail: the same in the worst tenth of the scenarios.
        reason: one sentence.
    """

    rungs: tuple[Rung, ...]
    waiting_gpus: int
    worth_of_waiting: float
    saves: float
    saves_in_the_tail: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Layers:
    """Layers of reserved GPUs; arrays are scenarios x steps x layers, USD per GPU-hour.

    `saved` is what a GPU of the layer saves if bought, 0 while it is held anyway; `seen` what it
    saves in any case, by which a later step decides.
    """

    gpus: FloatArray
    saved: FloatArray
    seen: FloatArray


def ladder(demand: FloatArray, market: Market) -> Ladder:
    """What to buy now for scenarios x hours of GPUs that all run on demand otherwise."""
    layers = _layers(np.asarray(demand, dtype=np.float64), market)
    if not market.offers or not len(layers.gpus):
        return Ladder((), 0, 0.0, 0.0, 0.0, _reason([], 0))
    hours = float(market.step_hours)
    moves = np.stack([_best_play(layers, market, first) for first in (None, *market.offers)])
    now_or_never = np.stack([_play(layers, market, (one, None), False) for one in market.offers])
    scores = np.stack([_score(one, market) for one in moves])
    best = scores.argmax(axis=0)
    rungs = []
    for number, offer in enumerate(market.offers, start=1):
        mine = best == number
        gpus = layers.gpus[mine]
        if len(gpus):
            over = (moves[number] - moves[0])[:, mine] @ gpus * hours
            pays = now_or_never[number - 1][:, mine] @ gpus > 0
            rungs.append(Rung(offer.name, int(gpus.sum()), float(over.mean()), float(pays.mean())))
    alone = np.max([_score(one, market) for one in now_or_never], axis=0)
    waits = (best == 0) & (alone > 0)
    gain = (scores[0] - scores[1:].max(axis=0))[waits] @ layers.gpus[waits]
    chosen = np.take_along_axis(moves, best[None, None, :], axis=0)[0] @ layers.gpus * hours
    return Ladder(
        rungs=tuple(rungs),
        waiting_gpus=int(layers.gpus[waits].sum()),
        worth_of_waiting=float(gain) * hours,
        saves=float(chosen.mean()),
        saves_in_the_tail=float(_tail_mean(chosen)),
        reason=_reason(rungs, int(layers.gpus[waits].sum())),
    )


def _layers(demand: FloatArray, market: Market) -> _Layers:
    size, step = market.gpus_per_instance, market.step_hours
    instances = math.ceil(float(demand.max()) / size) if demand.size else 0
    width = size * max(math.ceil(instances / _MOST_LAYERS), 1)
    low = np.arange(0, instances * size, width, dtype=np.float64)
    steps = max(demand.shape[1] // step, 1)
    used = np.zeros((len(demand), steps, len(low)))
    for at in range(steps):
        part = demand[:, at * step : (at + 1) * step]
        for place, floor in enumerate(low.tolist()):
            used[:, at, place] = np.clip(part - floor, 0.0, width).mean(axis=1) / width
    seen = used * market.on_demand * _price(np.arange(steps), market)[None, :, None]
    starts = np.arange(steps) * step
    held = np.array(
        [sum(o.gpus for o in market.held if o.from_hour <= h < o.until_hour) for h in starts]
    )
    is_free = low[None, :] >= held[:, None]
    return _Layers(np.full(len(low), float(width)), seen * is_free[None], seen)


def _price(step: Places, market: Market) -> FloatArray:
    """What prices of a step are, as a multiple of those of now."""
    years = np.asarray(step, dtype=np.float64) * market.step_hours / YEAR_HOURS
    return np.asarray((1 + market.price_change_per_year) ** years)


def _best_play(layers: _Layers, market: Market, first: Offer | None) -> FloatArray:
    """Savings, scenarios x layers in USD per GPU-hour x steps, with what is best later."""
    plays = [_play(layers, market, (first, later)) for later in (None, *market.offers)]
    return plays[int(np.argmax([_score(one, market).sum() for one in plays]))]


def _play(
    layers: _Layers,
    market: Market,
    moves: tuple[Offer | None, Offer | None],
    with_others: bool = True,
) -> FloatArray:
    """Savings of a first move, and of buying `later` wherever a free layer paid a step before.

    `with_others`: against plays that go on buying after the scenarios; else against no purchase.
    """
    first, later = moves
    scenarios, steps, count = layers.seen.shape
    saving = np.zeros((scenarios, count))
    until = np.zeros((scenarios, count))
    paid = np.zeros((scenarios, count))
    for step in range(steps):
        offer = first if step == 0 else later
        if offer is not None:
            price = offer.usd_per_gpu_hour * float(_price(np.array([step]), market)[0])
            is_free = (until <= step) & (layers.saved[:, step] == layers.seen[:, step])
            buys = is_free if step == 0 else is_free & (layers.seen[:, step - 1] > price)
            term = offer.term_hours / market.step_hours
            until = np.where(buys, step + term, until)
            paid = np.where(buys, price, paid)
        lasts = np.clip(until - step, 0.0, 1.0)
        saving += lasts * (layers.saved[:, step] - paid)
    # What lasts beyond the scenarios counts against buying there at the best price.
    beyond = np.maximum(until - steps, 0.0)
    after = layers.seen[:, -1] - paid
    if with_others:
        price = min(one.usd_per_gpu_hour for one in market.offers)
        price *= float(_price(np.array([steps]), market)[0])
        after = after - np.maximum(layers.seen[:, -1] - price, 0.0)
    return np.asarray(saving + beyond * after)


def _score(saving: FloatArray, market: Market) -> FloatArray:
    mean: FloatArray = saving.mean(axis=0)
    return (1 - market.caution) * mean + market.caution * _tail_mean(saving)


def _tail_mean(saving: FloatArray) -> FloatArray:
    """Mean of the worst tenth of the scenarios, at least one of them (lower CVaR)."""
    count = max(round(_TAIL * len(saving)), 1)
    return np.asarray(np.sort(saving, axis=0)[:count].mean(axis=0))


def _reason(rungs: list[Rung], waiting: int) -> str:
    if rungs:
        parts = ", ".join(f"{one.gpus} GPUs for {one.offer}" for one in rungs)
        more = f"; {waiting} more are better waited for" if waiting else ""
        return f"Buy {parts}{more}."
    if waiting:
        return f"Buy nothing yet: {waiting} GPUs would pay, and pay better if waited for."
    return "Buy nothing: no layer of the demand pays for a reservation."
