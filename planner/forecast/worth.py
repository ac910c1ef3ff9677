"""What one more reserved instance would have been worth, under several memories of the past.

A memory weighs the hours of the history: a short one knows where demand stands now, a long one
how far it strays. No single one is right for all demand (a steady service moves slowly and is
best judged by its last days, a research cluster comes back to its mean), so the advice rests on
several, and on how much the demand has been seen to fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.forecast.days import days_of
from planner.forecast.known import DAY, FEWEST_HOURS, WEEK, together, without_tail

if TYPE_CHECKING:
    from planner.forecast.inputs import FloatArray, History, Terms
    from planner.forecast.known import Known

# One setting for all demand, chosen on public traces at many cuts and windows: results are flat
# around it. Half-lives are days; None forgets nothing.
_RECENT: tuple[float, ...] = (0.7, 7.0)
_VIEWS: tuple[float | None, ...] = (1.0, None)
_LONG = 168.0  # days; what the hope of a return rests on: demand of a year ago says little
_CAUTION = 6.0  # how fast trust in the recent level goes as demand is seen to fall
_MARGIN = 0.06  # worth asked for above the price where the recent level is not trusted at all
_FALL_LAGS = 7  # days
_LEAST_LEVEL = 0.05  # of the mean; a day below counts as this
_PRIOR_FALL, _PRIOR_DAYS = 0.07, 3.0  # what a history of no days is taken to have fallen by
_HOPE_FROM, _HOPE_SLOPE = 1 / 3, 3.25


@dataclass(frozen=True, slots=True)
class Worth:
    """What reserved GPUs save in an hour, by the memories that the advice rests on.

    Attributes:
        firm: GPUs that must run in their hour.
        total: GPUs of both kinds.
        weights: memories x hours, each summing to 1; recent first, long last.
        later: USD that a deferrable GPU-hour costs where no reserved GPU is free.
        doubt: share, 0 to 1, by which the recent memory is distrusted.
        hope: share, 0 to 1, of the long memory against the worst view.
        terms: prices and rules.
    """

    firm: FloatArray
    total: FloatArray
    weights: FloatArray
    later: float
    doubt: float
    hope: float
    terms: Terms

    def of_next(self, gpus: float) -> float:
        """USD an hour per GPU that one instance on top of `gpus` is taken to save."""
        size = self.terms.gpus_per_instance
        used = np.clip(self.firm - gpus, 0.0, size) * (self.terms.on_demand - self.later)
        used = (used + np.clip(self.total - gpus, 0.0, size) * self.later) / size
        views = self.weights @ used
        recent, long, worst = float(views[0]), float(views[-1]), float(views[:-1].min())
        doubtful = (1 - self.hope) * worst + self.hope * long
        return (1 - self.doubt) * recent + self.doubt * doubtful

    def asked(self) -> float:
        """USD an hour that a reserved GPU must save to be bought."""
        return price_per_useful_hour(self.terms) * (1 + _MARGIN * self.doubt)


def worth_of(history: History, known: Known, terms: Terms) -> Worth:
    """What reserved GPUs would have saved in the known hours."""
    deferrable = known.deferrable
    later = price_of_waiting(history, terms)
    if later >= terms.on_demand:
        # It runs in the reserved GPUs that fall idle while it may wait.
        deferrable = _spread_out(deferrable, terms.max_delay_hours)
    weekly, levels = _week(history, known)
    whole = WEEK if weekly else DAY  # so that no memory holds more nights than days
    return Worth(
        firm=known.firm,
        total=known.firm + deferrable,
        weights=_memories(known.age // whole * whole),
        later=later,
        doubt=1 - math.exp(-_CAUTION * fall(levels)),
        hope=0.0 if has_ended(known) else _hope(terms),
        terms=terms,
    )


def price_per_useful_hour(terms: Terms) -> float:
    """USD per hour in which a reservation can be of use; dearer where the need ends before it."""
    if terms.hours_left is None or terms.hours_left >= terms.term_hours:
        return terms.reserved
    if terms.hours_left <= 0:
        return math.inf
    return terms.reserved * terms.term_hours / terms.hours_left


def price_of_waiting(history: History, terms: Terms) -> float:
    """USD per useful GPU-hour of deferrable work beside reserved GPUs: spot, else on demand.

    Spot counts for the share of hours that see a whole hour of it before the deadline.
    """
    if terms.spot_useful >= terms.on_demand:
        return terms.on_demand
    available = history.spot_available
    if available is None or not len(available):
        return terms.spot_useful
    seen = np.cumsum(np.concatenate([[0.0], available]))
    until = np.minimum(np.arange(len(available)) + 1 + terms.max_delay_hours, len(available))
    share = float(np.minimum(seen[until] - seen[:-1], 1.0).mean())
    return share * terms.spot_useful + (1 - share) * terms.on_demand


def _week(history: History, known: Known) -> tuple[bool, FloatArray]:
    """Whether demand follows the week, and the level of each day, the week taken out if so.

    A week that comes back is no fall, and its weekend no level: memories then keep whole weeks.
    """
    if len(known.firm) >= FEWEST_HOURS and history.hours >= 2 * WEEK:
        days = days_of(without_tail(together(history)))
        if days.weekly[0]:
            return True, np.exp(days.level[:, 0])
    return False, known.daily()


def fall(days: FloatArray) -> float:
    """How far demand has fallen within a week: root mean square of the logarithm, 0 for never.

    `days` are GPUs by day, NaN without a reading. Rises count as 0: what rises can be bought
    later, what was bought cannot be given back. A short history is mixed with a small fall, as it
    shows few of its own.
    """
    if not np.isfinite(days).any() or np.nanmean(days) <= 0:
        return _PRIOR_FALL
    level = np.log(np.maximum(days, _LEAST_LEVEL * float(np.nanmean(days))))
    lags = range(1, min(_FALL_LAGS, len(days) - 1) + 1)
    falls = [np.minimum(level[lag:] - level[:-lag], 0.0) for lag in lags]
    seen = np.concatenate([np.zeros(0), *falls])
    seen = seen[np.isfinite(seen)]
    if not len(seen):
        return _PRIOR_FALL
    count = len(seen) / len(lags)
    squares = count * float((seen**2).mean()) + _PRIOR_DAYS * _PRIOR_FALL**2
    return math.sqrt(squares / (count + _PRIOR_DAYS))


def has_ended(known: Known) -> bool:
    """Whether demand is away for a week or more, and twice as long as it ever was before."""
    busy = known.age[known.total > 0]
    if not len(busy) or busy[-1] < WEEK:
        return False
    longest = float((busy[:-1] - busy[1:]).max()) if len(busy) > 1 else 0.0
    return bool(busy[-1] > 2 * longest)


def best_instances(worth: Worth, held: float) -> int:
    """Instances that each are worth their price on top of `held` GPUs.

    Worth falls with every instance, so the last that pays is found by halving.
    """
    size, asked = worth.terms.gpus_per_instance, worth.asked()
    low, high = 0, math.ceil(max(float(worth.total.max()) - held, 0.0) / size)
    while low < high:
        middle = (low + high) // 2
        if worth.of_next(held + middle * size) > asked:
            low = middle + 1
        else:
            high = middle
    return low


def _hope(terms: Terms) -> float:
    """The more a reservation saves, the less sure its use must be."""
    saved = 1 - terms.reserved / terms.on_demand
    return min(max(_HOPE_SLOPE * (saved - _HOPE_FROM), 0.0), 1.0)


def _memories(age: FloatArray) -> FloatArray:
    recent = np.mean([_memory(age, days) for days in _RECENT], axis=0)
    return np.vstack([recent, *(_memory(age, days) for days in (*_VIEWS, _LONG))])


def _memory(age: FloatArray, half_life_days: float | None) -> FloatArray:
    """Weights of the hours, summing to 1, halved with each half-life of age."""
    if half_life_days is None:
        return np.full(len(age), 1 / len(age))
    weights = 0.5 ** ((age - age.min()) / (DAY * half_life_days))
    return np.asarray(weights / weights.sum())


def _spread_out(gpus: FloatArray, delay: int) -> FloatArray:
    """The mean of each hour and the `delay` before it."""
    sums = np.cumsum(np.concatenate([[0.0], gpus]))
    start = np.maximum(np.arange(len(gpus)) - delay, 0)
    hours = np.arange(1, len(gpus) + 1) - start
    return np.asarray((sums[1:] - sums[start]) / hours)
