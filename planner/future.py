"""The demand of the coming year as the plan takes it: scenarios over weeks that stand for the year.

The history of every class and GPU family is forecast for as long as it is itself, a quarter at
most: further ahead no forecast was tested. Its doubt grows over all that time; its mean is that of
the first weeks, for which models are compared, and stays. Of many ways in which demand may come a
few are kept, alike in probability and spread from low to high, and of the year a few whole weeks,
each standing for the part of the year around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data.money import HOURS_PER_YEAR
from planner.events import with_events
from planner.forecast.inputs import History
from planner.forecast.scenarios import forecast
from planner.holidays import holiday_note, set_aside, with_holidays
from planner.horizon import Horizon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from data.known_events import KnownEvent
    from planner.assemble import Need
    from planner.forecast.scenarios import Forecast
    from planner.settings import EventRule, Settings

    Array = npt.NDArray[np.float64]

WEEKS = 8
WEEK = 168  # hours
MOST_WEEKS_AHEAD = 13
NEAR_WEEKS = 4
RECENT = 672  # hours, by which a class is divided between the places it runs in
_LAST_WEEKS = 4
_PATHS_PER_SCENARIO = 8
_SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class Future:
    """The demand to come.

    Attributes:
        horizon: the year in modelled hours.
        demand: by class id, GPUs, scenarios x modelled hours.
        probabilities: of the scenarios, summing to 1.
        point: by class id, GPUs, modelled hours: the forecast.
        warnings: what a reader must know, one sentence each.
        events: the known events that it counts, and what each changes.
        near: the first weeks hour by hour, in many ways that demand may come; None where the
            caller made none.
    """

    horizon: Horizon
    demand: Mapping[str, Array]
    probabilities: tuple[float, ...]
    point: Mapping[str, Array]
    warnings: tuple[str, ...] = ()
    events: tuple[KnownEvent, ...] = ()
    near: Future | None = None


def history_of(needs: Sequence[Need], covered: pd.DatetimeIndex) -> History:
    """The needed GPUs of each class id in every hour from the first covered one to the last.

    Hours without data are NaN. What queued jobs waited for counts, and hours in which most of a
    class ran in full places are lower bounds. What its rules allow on spot counts as deferrable.
    """
    grid = pd.date_range(covered[0], covered[-1], freq="h")
    place = grid.get_indexer(covered)
    total = np.full((len(grid), len(needs)), np.nan)
    full = np.zeros(total.shape, dtype=bool)
    waiting = np.zeros(len(needs))
    for column, need in enumerate(needs):
        total[place, column] = need.wanted
        full[place, column] = need.bounded_on(need.present)
        waiting[column] = 1 - need.min_firm_share if need.interruptible else 0.0
    return History(
        firm=total * (1 - waiting),
        deferrable=total * waiting,
        classes=tuple(need.id for need in needs),
        start_time=grid[0].to_pydatetime(),
        at_capacity=full if full.any() else None,
    )


def year_ahead(past: Horizon) -> Horizon:
    """The coming year in its modelled hours."""
    return Horizon(past.start, past.observed_hours, WEEKS * WEEK)


def future_for(
    needs: Sequence[Need], covered: pd.DatetimeIndex, year: Horizon, settings: Settings
) -> Future:
    """The coming year of what was needed, with the events that the settings know of."""
    bare = expected(needs, covered, year, settings)
    return counted(bare, needs, settings.events)


def expected(
    needs: Sequence[Need], covered: pd.DatetimeIndex, year: Horizon, settings: Settings
) -> Future:
    """The coming year of what was needed, with its holidays, whatever else is known to come."""
    if not needs:
        return Future(year, {}, (1.0,), {})
    off = settings.plan.holidays
    history, shares = set_aside(history_of(needs, covered), off)
    future = future_of(history, year, settings.plan.scenarios)
    note = holiday_note(off, shares, covered[-1].date())
    told = future.warnings if note is None else (*future.warnings, note)
    return replace(with_holidays(future, off, shares), warnings=told)


def counted(
    bare: Future, needs: Sequence[Need], rules: Sequence[EventRule], without: str | None = None
) -> Future:
    """The coming year with its known events, all but the one named `without`."""
    recent = {need.id: float(need.wanted[-RECENT:].mean()) for need in needs}
    near = None if bare.near is None else with_events(bare.near, rules, recent)
    return replace(with_events(bare, rules, recent, without), near=near)


def future_of(history: History, horizon: Horizon, scenarios: int) -> Future:
    """The coming year of a history; with one scenario the forecast alone."""
    ahead = min(max(history.hours // WEEK, 1), MOST_WEEKS_AHEAD)
    count = max(2, scenarios) * _PATHS_PER_SCENARIO
    found = forecast(history, ahead * WEEK, count, _SEED)
    level = _level(found, history)
    hours = representative_hours(WEEKS, ahead)
    point = balanced(found.point[hours][None], level)[0]
    paths = point[None]
    if scenarios > 1:
        chosen = spread(found.scenarios.sum(axis=(1, 2)), scenarios)
        paths = balanced(found.scenarios[chosen][:, hours], level)
    return Future(
        horizon=horizon,
        demand={name: paths[:, :, place] for place, name in enumerate(history.classes)},
        probabilities=(1 / len(paths),) * len(paths),
        point={name: point[:, place] for place, name in enumerate(history.classes)},
        warnings=found.warnings,
        near=_near(found, level, history, horizon),
    )


def _near(found: Forecast, level: Array, history: History, year: Horizon) -> Future:
    """The first weeks, hour by hour, in all the ways that were drawn."""
    hours = min(NEAR_WEEKS * WEEK, len(found.point))
    paths = balanced(found.scenarios[:, :hours], level)
    point = balanced(found.point[:hours][None], level)[0]
    return Future(
        horizon=Horizon(year.start, year.observed_hours, hours, hours),
        demand={name: paths[:, :, place] for place, name in enumerate(history.classes)},
        probabilities=(1 / len(paths),) * len(paths),
        point={name: point[:, place] for place, name in enumerate(history.classes)},
    )


def _level(found: Forecast, history: History) -> Array:
    """Mean GPUs of the coming weeks by class: the middle one of three ways to tell it.

    They are the model's forecast, the mean of the ways in which it went wrong before, and the last
    weeks as they were: a trend that only one of them sees does not make the plan.
    """
    near = NEAR_WEEKS * WEEK
    recent = np.nanmean((history.firm + history.deferrable)[-near:], axis=0)
    ways = found.point[:near].mean(axis=0), found.scenarios[:, :near].mean(axis=(0, 1)), recent
    return np.asarray(np.median(ways, axis=0))


def representative_hours(weeks: int, known: int) -> npt.NDArray[np.intp]:
    """Hours in `weeks` whole weeks of the `known` forecast ones, for the parts of a year in order.

    Each is in the middle of its part, or one of the last few where the forecast ends before.

    >>> (representative_hours(8, 52)[::168] // 168).tolist()
    [3, 9, 16, 22, 29, 35, 42, 48]
    >>> (representative_hours(8, 13)[::168] // 168).tolist()
    [3, 9, 10, 9, 12, 11, 10, 9]
    """
    middles = (np.arange(weeks) + 0.5) * HOURS_PER_YEAR / weeks
    first = np.rint((middles - WEEK / 2) / WEEK).astype(int)
    late = known - 1 - np.arange(weeks) % min(_LAST_WEEKS, known)
    chosen = np.where(first < known, first, late)
    return np.asarray((chosen[:, None] * WEEK + np.arange(WEEK)[None, :]).ravel())


def spread(totals: Array, count: int) -> list[int]:
    """One path of each `count`-th of the paths by their total: the nearest to its mean.

    >>> spread(np.array([5.0, 1.0, 2.0, 9.0]), 2)
    [1, 0]
    """
    chosen = []
    for group in np.array_split(np.argsort(totals, kind="stable"), count):
        apart = np.abs(totals[group] - totals[group].mean())
        chosen.append(int(group[int(np.argmin(apart))]))
    return chosen


def balanced(paths: Array, middle: Array) -> Array:
    """The paths, each week scaled to have `middle` (GPUs by class) as their median and their mean.

    Errors of demand are errors of its logarithm, so that their mean lies above their median:
    counted as it is, doubt would look like growth. What demand may fall by is kept in full, what it
    may rise by is scaled to the same on the mean. `paths` are scenarios x hours x classes.

    >>> paths = np.array([[[50.0]], [[100.0]], [[300.0]]])
    >>> balanced(paths, np.array([100.0]))[:, 0, 0].tolist()
    [50.0, 100.0, 150.0]
    >>> balanced(paths, np.array([10.0]))[:, 0, 0].tolist()
    [5.0, 10.0, 15.0]
    """
    scaled = paths.copy()
    for start in range(0, paths.shape[1], WEEK):
        hours = slice(start, start + WEEK)
        median = np.median(paths[:, hours].mean(axis=1), axis=0)
        scaled[:, hours] *= np.where(median > 0, middle / np.where(median > 0, median, 1.0), 1.0)
        level = scaled[:, hours].mean(axis=1)
        above = np.maximum(level - middle, 0.0)
        below = np.maximum(middle - level, 0.0).sum(axis=0)
        most = above.sum(axis=0)
        share = np.where(most > 0, below / np.where(most > 0, most, 1.0), 1.0)
        wanted = level - above * (1 - share)
        factor = np.where(level > 0, wanted / np.where(level > 0, level, 1.0), 1.0)
        scaled[:, hours] *= factor[:, None, :]
    return scaled


def shares_of(parts: Sequence[Array]) -> list[float]:
    """How a class divides into its parts: by their recent hours, else by all, else evenly.

    >>> shares_of([np.array([1.0, 3.0]), np.array([1.0, 0.0])])
    [0.8, 0.2]
    """
    for hours in (RECENT, None):
        sums = [float(series[-hours:].sum() if hours else series.sum()) for series in parts]
        if sum(sums) > 0:
            return [one / sum(sums) for one in sums]
    return [1 / len(parts)] * len(parts)
