"""Demand as days: a level for each day, a profile of the week, and what is left of each hour.

A day's 24 hours are level x profile x rest. Days are counted back from the planning step, so the
last one is whole. Gaps, hours at capacity and one-off spikes are settled here, with a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.hours import counted_hours
from planner.forecast.known import DAY, counted_gpus

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.forecast.inputs import BoolArray, FloatArray, History

    Places = npt.NDArray[np.intp]

LEAST_LEVEL = (
    0.02  # of the mean of the class; a day below counts as this where logarithms are taken
)
_LEAST_PROFILE = 0.05
DAYS_OF_WEEK = 7
_WEEKS_TO_TRUST = 1.0  # a weekly profile seen for so many weeks is half believed
_WEEKLY_GAIN = 0.1  # share of the error that a weekly profile must take off unseen days
_LEAST_SWING = 0.05  # standard deviation of the weekdays, share of the mean
_SPIKE_TIMES, _SPIKE_SHARE = 3.0, 0.005  # so few hours, so far above the rest, are a spike


@dataclass(frozen=True, slots=True)
class Days:
    """Days of demand by class; the last day ends at the planning step.

    Attributes:
        level: days x classes, logarithm of the GPUs of the day without the profile.
        profile: 7 x 24 x classes, mean 1; row 0 is the first day after the step.
        rest: days x 24 x classes, what multiplies level and profile to the GPUs of the hour.
        mean: GPUs, classes, over all days.
        weekly: whether the weekday tells something, classes.
        started: first day with demand, classes; the number of days where there was none.
        warnings: one sentence each.
    """

    level: FloatArray
    profile: FloatArray
    rest: FloatArray
    mean: FloatArray
    weekly: BoolArray
    started: Places
    warnings: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of whole days."""
        return len(self.level)

    def profile_ahead(self, days: int) -> FloatArray:
        """Days x 24 x classes: the profile of the days after the step."""
        return self.profile[np.arange(days) % DAYS_OF_WEEK]


def days_of(history: History) -> Days:
    """The whole days of a history since its first reading; there must be one."""
    total = history.firm + history.deferrable
    seen = np.flatnonzero(np.isfinite(total).sum(axis=1) > 0)
    gpus, warnings = _settled(total, history)
    count = (len(gpus) - int(seen[0])) // DAY
    days = gpus[len(gpus) - count * DAY :].reshape(count, DAY, -1)
    mean = days.mean(axis=(0, 1))
    profile, weekly = _profile(days, mean)
    place = np.arange(-count, 0) % DAYS_OF_WEEK
    of_day = profile[place]
    least = np.where(mean > 0, LEAST_LEVEL * mean, 1.0)
    plain = np.maximum(days.mean(axis=1) / of_day.mean(axis=1), least)
    busy = days.max(axis=1) > 0
    return Days(
        level=np.log(plain),
        profile=profile,
        rest=days / (plain[:, None, :] * of_day),
        mean=mean,
        weekly=weekly,
        started=np.where(busy.any(axis=0), busy.argmax(axis=0), count),
        warnings=tuple(warnings),
    )


def _settled(total: FloatArray, history: History) -> tuple[FloatArray, list[str]]:
    """GPUs without gaps, censored hours or lone spikes."""
    warnings: list[str] = []
    recorded = np.isfinite(total)
    gpus = _without_gaps(total, recorded)
    if history.at_capacity is not None:
        gpus = _uncensored(gpus, history.at_capacity)
    for place, name in enumerate(history.classes):
        column = gpus[:, place]
        most = max(int(_SPIKE_SHARE * len(column)), 1)
        cap = _SPIKE_TIMES * float(np.sort(column)[-most - 1]) if len(column) > most else 0.0
        hours = int((column > cap).sum())
        if cap > 0 and hours:
            gpus[:, place] = np.minimum(column, cap)
            verb = "counts" if hours == 1 else "count"
            warnings.append(
                f"{name}: {counted_hours(hours)} far above all others {verb} as "
                f"{counted_gpus(cap)}."
            )
    return gpus, warnings


def _without_gaps(total: FloatArray, recorded: BoolArray) -> FloatArray:
    """Each missing hour as the day before it; 0 before the first reading of the class."""
    gpus = np.where(recorded, total, 0.0)
    first = np.where(recorded.any(axis=0), recorded.argmax(axis=0), len(total))
    hours, places = np.nonzero(~recorded)
    for hour, place in zip(hours.tolist(), places.tolist(), strict=True):
        if hour >= first[place]:
            gpus[hour, place] = gpus[max(hour - DAY, first[place]), place]
    return gpus


def _uncensored(gpus: FloatArray, full: BoolArray) -> FloatArray:
    """Hours at capacity as the mean of the free hours that wanted more, where there are any."""
    found = gpus.copy()
    for place in np.flatnonzero(full.any(axis=0)).tolist():
        free = np.sort(gpus[~full[:, place], place])
        at = gpus[full[:, place], place]
        above = np.searchsorted(free, at, side="right")
        sums = np.concatenate([np.cumsum(free[::-1])[::-1], [0.0]])
        left = len(free) - above
        found[full[:, place], place] = np.where(left > 0, sums[above] / np.maximum(left, 1), at)
    return found


def _profile(days: FloatArray, mean: FloatArray) -> tuple[FloatArray, BoolArray]:
    """7 x 24 x classes, mean 1: of the hour of the day, and of the week where that is of use.

    It is of use where the first half of the days tells the second half better with it.
    """
    safe = np.where(mean > 0, mean, 1.0)
    shape = days / safe
    daily = _normal(shape.mean(axis=0)[None].repeat(DAYS_OF_WEEK, axis=0))
    weeks = len(days) / DAYS_OF_WEEK
    if weeks < 2:
        return daily, np.zeros(len(mean), dtype=bool)
    half = len(days) // 2 // DAYS_OF_WEEK * DAYS_OF_WEEK
    early, late = _level(shape[:half]), _level(shape[half:])
    place = np.arange(len(days)) - len(days)
    flat = _normal(early.mean(axis=0)[None].repeat(DAYS_OF_WEEK, axis=0))
    seen = _by_weekday(early, place[:half] % DAYS_OF_WEEK)
    weekly = _by_weekday(_level(shape), place % DAYS_OF_WEEK)
    errors = [
        np.abs(late - late.mean(axis=0).mean(axis=0) * one[place[half:] % DAYS_OF_WEEK]).sum((0, 1))
        for one in (flat, seen)
    ]
    swing = weekly.mean(axis=1).std(axis=0)
    is_weekly = (errors[1] < (1 - _WEEKLY_GAIN) * errors[0]) & (swing > _LEAST_SWING)
    trust = weeks / (weeks + _WEEKS_TO_TRUST)
    return np.where(is_weekly, trust * weekly + (1 - trust) * daily, daily), is_weekly


def _level(shape: FloatArray) -> FloatArray:
    """Days without their straight trend, so that a steady rise or fall is no weekly pattern."""
    daily = shape.mean(axis=1)
    time = np.arange(len(daily)) - (len(daily) - 1) / 2
    slope = (time @ (daily - daily.mean(axis=0))) / max(float(time @ time), 1.0)
    trend = daily.mean(axis=0) + time[:, None] * slope
    return np.asarray(shape / np.maximum(trend, _LEAST_PROFILE)[:, None, :])


def _by_weekday(shape: FloatArray, place: Places) -> FloatArray:
    return _normal(np.stack([shape[place == day].mean(axis=0) for day in range(DAYS_OF_WEEK)]))


def _normal(profile: FloatArray) -> FloatArray:
    """Mean 1 over the week, and never near 0."""
    mean = profile.mean(axis=(0, 1))
    scaled = np.where(mean > 0, profile / np.where(mean > 0, mean, 1.0), 1.0)
    safe = np.maximum(scaled, _LEAST_PROFILE)
    return np.asarray(safe / safe.mean(axis=(0, 1)))
