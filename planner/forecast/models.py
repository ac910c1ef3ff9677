"""Models of the level of a class: how each would have forecast at the end of every past day.

Exponential smoothing and its damped trend come from statsmodels; its parameters are found on the
first half of the days, so that the errors on the second are honest. Means that forget at several
speeds need no fitting and also serve histories of a few days.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.forecast.inputs import BoolArray, FloatArray

FEWEST_DAYS_TO_FIT = 21
MEANS: dict[str, float | None] = {
    "the last day": 0.5,
    "mean of the last days": 2.0,
    "mean of the last weeks": 7.0,
    "mean of all days": None,
}
SMOOTHING, DAMPED_TREND = "exponential smoothing", "damped trend"
LEADS = 28  # days ahead on which models are compared
_GAIN = 0.02  # share of the error by which a later model of the list must be better
_ZERO_DAYS = 0.2  # share of days without demand above which it counts as intermittent
_AWAY = 0.05  # of the mean; a day below has no demand to speak of
_SAME = 1e-9  # logarithms closer than this are the same


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model of one class, as it stood at the end of each day.

    Attributes:
        name: for the report.
        level: logarithm of GPUs.
        slope: growth of the logarithm on the next day.
        damping: what each day leaves of the growth of the day before it.
    """

    name: str
    level: FloatArray
    slope: FloatArray
    damping: float = 1.0

    def ahead(self, days: int) -> FloatArray:
        """Days of origin x days ahead, logarithm of GPUs."""
        grown = np.cumsum(self.damping ** np.arange(days))
        return self.level[:, None] + self.slope[:, None] * grown[None, :]


@dataclass(frozen=True, slots=True)
class Choice:
    """The model of a class that did best on its own past.

    Attributes:
        past: the model as it would have forecast at the end of each past day.
        now: the same with its parameters found on all days.
        error: mean absolute error of the mean of unseen days, share of the mean demand; NaN: none.
    """

    past: Fitted
    now: Fitted
    error: float

    def ahead(self, days: int) -> FloatArray:
        """Logarithm of GPUs of the coming days."""
        grown = np.cumsum(self.now.damping ** np.arange(days))
        return np.asarray(self.now.level[-1] + self.now.slope[-1] * grown)


def choose(level: FloatArray, *, with_fits: bool = True) -> Choice:
    """The model with the least error on the second half of the days, by rolling origins."""
    candidates = _candidates(level, with_fits)
    best = next(candidates)
    least = _error(best, level)
    for one in candidates:
        error = _error(one, level)
        if error < least * (1 - _GAIN):
            best, least = one, error
    return Choice(best, _refitted(best, level), least)


def _candidates(level: FloatArray, with_fits: bool) -> Iterator[Fitted]:
    for name, half_life in MEANS.items():
        yield _mean(name, level, half_life)
    if len(level) < FEWEST_DAYS_TO_FIT:
        return
    moves = float(np.ptp(level)) > _SAME
    gpus = np.exp(level)
    away = gpus <= _AWAY * gpus.mean()
    if moves and _ZERO_DAYS < away.mean() < 1:
        yield _intermittent(level, ~away)
    elif moves and with_fits:
        half = len(level) // 2
        yield _smoothed(SMOOTHING, level, half)
        yield _smoothed(DAMPED_TREND, level, half)


def _error(model: Fitted, level: FloatArray) -> float:
    """Mean absolute error of the mean of the coming days, share of the mean demand.

    The mean of up to `LEADS` days is what a commitment lives on; the error of single days would
    favour 0 for demand that is 0 on most of them.
    """
    days = len(level)
    leads = min(LEADS, max(days // 2, 1))
    origins = np.arange(max(days // 2 - 1, 0), days - 1)
    if not len(origins):
        return float("nan")
    target = origins[:, None] + 1 + np.arange(leads)[None, :]
    inside = target < days
    forecast = np.exp(np.minimum(model.ahead(leads)[origins], level.max() + 3))
    actual = np.exp(level[np.minimum(target, days - 1)])
    missed = np.where(inside, forecast - actual, 0.0).sum(axis=1) / inside.sum(axis=1)
    return float(np.abs(missed).mean() / np.exp(level).mean())


def _mean(name: str, level: FloatArray, half_life: float | None) -> Fitted:
    keep = 1.0 if half_life is None else 0.5 ** (1 / half_life)
    means, total, weight = np.empty(len(level)), 0.0, 0.0
    for day, value in enumerate(level.tolist()):
        total, weight = total * keep + value, weight * keep + 1
        means[day] = total / weight
    return Fitted(name, means, np.zeros(len(level)))


def _intermittent(level: FloatArray, busy: BoolArray) -> Fitted:
    """Teunter, Syntetos and Babai (2011): chance of a day with demand x its usual size."""
    least, rate = float(level.min()), 0.1
    chance, size = float(busy.mean()), float(np.exp(level[busy]).mean())
    found = np.empty(len(level))
    for day, value in enumerate(level.tolist()):
        chance += rate * (float(busy[day]) - chance)
        if busy[day]:
            size += rate * (np.exp(value) - size)
        found[day] = max(np.log(chance * size), least)
    return Fitted("intermittent demand", found, np.zeros(len(level)))


def _smoothed(name: str, level: FloatArray, fit_days: int) -> Fitted:
    """Smoothing with parameters found on the first `fit_days`, run over all days."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # slow to import

    has_trend = name == DAMPED_TREND
    options = {"trend": "add" if has_trend else None, "damped_trend": has_trend}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that does not converge loses the comparison
        fit = ExponentialSmoothing(
            level[:fit_days], initialization_method="heuristic", **options
        ).fit()
        found = fit.params
        settings = {"smoothing_level": found["smoothing_level"]}
        if has_trend:
            settings["smoothing_trend"] = found["smoothing_trend"]
            settings["damping_trend"] = found["damping_trend"]
        whole = ExponentialSmoothing(level, initialization_method="heuristic", **options).fit(
            optimized=False, **settings
        )
    if not has_trend:
        return Fitted(name, np.asarray(whole.level), np.zeros(len(level)))
    damping = float(found["damping_trend"])
    slope = np.asarray(whole.trend) * damping
    return Fitted(name, np.asarray(whole.level), slope, damping)


def _refitted(model: Fitted, level: FloatArray) -> Fitted:
    """The model with parameters from all days; means and intermittent demand have none."""
    is_fit = model.name in (SMOOTHING, DAMPED_TREND)
    return _smoothed(model.name, level, len(level)) if is_fit else model
