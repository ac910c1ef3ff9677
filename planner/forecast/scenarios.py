"""The demand of each class to come, hour by hour: a forecast, and how else it may come.

A scenario is a forecast that goes as wrong as earlier ones went. From a past day, drawn by lot,
all classes take the errors and the hours of the same following days, so what moved together
stays together; at the end of that stretch another day is drawn. On top lies a slow drift, larger
for a short history, for what the past has not shown yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.forecast.days import DAYS_OF_WEEK, days_of
from planner.forecast.inputs import Interval
from planner.forecast.known import DAY, known_of, together, without_tail
from planner.forecast.models import LEADS, choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.forecast.days import Days
    from planner.forecast.inputs import FloatArray, History
    from planner.forecast.models import Choice

    Places = npt.NDArray[np.intp]

# Drift of the logarithm on the first day for no history, its growth with the days ahead, and the
# weeks that halve its square: set once, so that the 80% range of public traces holds 75 to 85%
# of unseen hours at every cut tried.
_DRIFT, _DRIFT_GROWTH, _DRIFT_WEEKS = 0.021, 0.75, 2.0
_COMMON_DRIFT = 0.5  # share of its variance that all classes have in common
# A stretch that rose may as well fall and the other way round, the same for all classes; what
# broke off or burst out, by more than this factor's logarithm, is no mirror image of anything.
_TURNED_BELOW = 0.7
_STRETCH = 1.25  # errors of a short past are smaller than those to come
_RETURNS = 0.2  # chance that a stretch comes back as it was, at its own level
_FIRST_ORIGIN = 2  # days; before it no model has seen anything
_MOST_TIMES = 50.0  # no scenario goes beyond this multiple of the highest hour
_FLAT = 1e-9  # GPUs; a day of no more swing than this has no peak


@dataclass(frozen=True, slots=True)
class Event:
    """Something known to happen: a launch, a team that leaves, a project's end.

    Attributes:
        from_hour: first hour of it, counted on the hours of the history.
        until_hour: first hour after it; None: it lasts.
        workload_class: the class that changes; None: all.
        factor: what demand is multiplied by; 0 ends it.
        gpus: GPUs added after that, per class.
        chance: probability that it happens.
    """

    from_hour: int
    until_hour: int | None = None
    workload_class: str | None = None
    factor: float = 1.0
    gpus: float = 0.0
    chance: float = 1.0


@dataclass(frozen=True, slots=True)
class Method:
    """The model chosen for a class and its error on days that it had not seen.

    `error` is the mean absolute error of the mean of up to 28 coming days, as a share of the mean
    demand; NaN where no day was unseen.
    """

    workload_class: str
    model: str
    error: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Demand to come.

    Attributes:
        point: hours x classes, GPUs.
        scenarios: scenarios x hours x classes, GPUs.
        probabilities: of the scenarios, summing to 1.
        methods: one per class.
        warnings: one sentence each.
    """

    point: FloatArray
    scenarios: FloatArray
    probabilities: FloatArray
    methods: tuple[Method, ...]
    warnings: tuple[str, ...]

    def interval(self, share: float = 0.8) -> Interval:
        """The range that holds the total of all classes with probability `share`, by hour."""
        total = self.scenarios.sum(axis=2)
        tail = (1 - share) / 2
        low, high = np.quantile(total, [tail, 1 - tail], axis=0)
        return Interval(share, low, high)


@dataclass(frozen=True, slots=True)
class _Draw:
    """What every scenario needs."""

    days: Days
    choices: tuple[Choice, ...]
    ahead: int
    random: np.random.Generator


def forecast(
    history: History,
    horizon_hours: int,
    scenarios: int = 50,
    seed: int = 0,
    events: Sequence[Event] = (),
) -> Forecast:
    """The demand of the `horizon_hours` after the history, with `scenarios` ways it may come.

    The model of each class is the one that forecast its own past best. The same arguments give
    the same result.
    """
    return _forecast(history, horizon_hours, scenarios, seed, events=events, with_fits=True)


def quick_interval(history: History, hours: int, share: float = 0.8) -> Interval | None:
    """The range of the total demand to come from models that need no fitting; None: too short."""
    if history.hours < 2 * DAY or hours < 1:
        return None
    found = _forecast(together(history), hours, 100, 0, events=(), with_fits=False)
    return found.interval(share)


def _forecast(
    history: History,
    hours: int,
    count: int,
    seed: int,
    *,
    events: Sequence[Event],
    with_fits: bool,
) -> Forecast:
    known = known_of(history)
    classes = len(history.classes)
    ahead = -(-hours // DAY)
    if history.hours < DAY or not len(known.firm):
        return _nothing(history, hours, count, known.warnings)
    days = days_of(without_tail(history))
    choices = tuple(
        choose(
            days.level[min(int(days.started[place]), days.count - 1) :, place], with_fits=with_fits
        )
        for place in range(classes)
    )
    draw = _Draw(days, choices, ahead, np.random.default_rng(seed))
    point = _point(draw).reshape(ahead * DAY, classes)[:hours]
    paths = np.stack([_scenario(draw).reshape(ahead * DAY, classes)[:hours] for _ in range(count)])
    for event in events:
        _happen(event, history, point, paths, draw.random)
    return Forecast(
        point=point,
        scenarios=paths,
        probabilities=np.full(count, 1 / count),
        methods=tuple(
            Method(name, one.past.name, one.error)
            for name, one in zip(history.classes, choices, strict=True)
        ),
        warnings=(*known.warnings, *days.warnings),
    )


def _nothing(history: History, hours: int, count: int, warnings: tuple[str, ...]) -> Forecast:
    """A forecast of 0 where less than a day is known."""
    classes = len(history.classes)
    return Forecast(
        point=np.zeros((hours, classes)),
        scenarios=np.zeros((count, hours, classes)),
        probabilities=np.full(count, 1 / count),
        methods=tuple(Method(name, "none", float("nan")) for name in history.classes),
        warnings=(*warnings, "Less than a day of demand is known: the forecast is 0."),
    )


def _levels(draw: _Draw) -> FloatArray:
    """Days ahead x classes, logarithm of GPUs."""
    return np.stack([one.ahead(draw.ahead) for one in draw.choices], axis=1)


def _point(draw: _Draw) -> FloatArray:
    """Days ahead x 24 x classes: level and profile; 0 where a class has never had demand."""
    gpus = np.exp(_levels(draw))[:, None, :] * draw.days.profile_ahead(draw.ahead)
    return _bounded(gpus, draw.days)


def _bounded(gpus: FloatArray, days: Days) -> FloatArray:
    highest = (np.exp(days.level)[:, None, :] * days.rest).max(axis=(0, 1))
    return np.where(days.mean > 0, np.minimum(gpus, _MOST_TIMES * highest), 0.0)


def _scenario(draw: _Draw) -> FloatArray:
    """Days ahead x 24 x classes."""
    days, count = draw.days, draw.days.count
    classes = len(draw.choices)
    error = np.zeros((draw.ahead, classes))
    rest = np.ones((draw.ahead, DAY, classes))
    carried = np.zeros(classes)
    done = 0
    levels = _levels(draw)
    longest = max(min(LEADS, count // 2), 1)
    first = min(_FIRST_ORIGIN, max(count - 2, 0))
    while done < draw.ahead:
        origin = int(draw.random.integers(first, max(count - 1, first + 1)))
        length = max(min(longest, count - 1 - origin, draw.ahead - done), 1)
        until = done + length
        turned = bool(draw.random.random() < 0.5)
        comes_back = bool(draw.random.random() < _RETURNS)
        for place, choice in enumerate(draw.choices):
            wrong, source = _went_wrong(days, choice, place, origin, length)
            wrong = wrong * _STRETCH
            level = levels[done:until, place]
            is_break = bool(np.abs(wrong).max() >= _TURNED_BELOW)
            if comes_back:
                wrong = days.level[source, place] - level - carried[place]
            elif is_break:
                seen = days.level[:, place]
                reached = np.clip(level + carried[place] + wrong, seen.min(), seen.max())
                wrong = reached - level - carried[place]
            elif turned:
                wrong = -wrong
            error[done:until, place] = carried[place] + wrong
            rest[done:until, :, place] = days.rest[source, :, place]
        carried = error[until - 1]
        done = until
    error += _drift(draw)
    gpus = np.exp(np.minimum(levels + error, 700.0))[:, None, :]
    return _bounded(_as_peaked(gpus * days.profile_ahead(draw.ahead) * rest, days), days)


def _as_peaked(gpus: FloatArray, days: Days) -> FloatArray:
    """Days x 24 x classes, each day no more peaked than days of its size were, at its own mean.

    The hours of one day on the level of another may come to a peak that nobody ever saw: all of a
    quiet day in one hour, on a busy one. A day of up to the mean of the busiest one seen keeps to
    the highest hour seen, one beyond it goes beyond in proportion.
    """
    seen = np.exp(days.level)[:, None, :] * days.profile[_weekdays(days.count)] * days.rest
    highest, busiest = seen.max(axis=(0, 1)), seen.mean(axis=1).max(axis=0)
    mean, peak = gpus.mean(axis=1), gpus.max(axis=1)
    times = mean / np.where(busiest > 0, busiest, np.inf)
    most = highest * np.maximum(times, 1.0)
    swing = peak - mean
    share = np.clip((peak - most) / np.where(swing > _FLAT, swing, np.inf), 0.0, 1.0)[:, None, :]
    return np.asarray((1 - share) * gpus + share * mean[:, None, :])


def _weekdays(count: int) -> Places:
    """The row of the profile of each whole day of the past; row 0 is the first day after them."""
    return np.arange(-count, 0) % DAYS_OF_WEEK


def _went_wrong(
    days: Days, choice: Choice, place: int, origin: int, length: int
) -> tuple[FloatArray, Places]:
    """Errors of the logarithm on the days after `origin`, and those days.

    A class that had not started by then takes one of its own days instead.
    """
    started = min(int(days.started[place]), days.count - 1)
    if origin < started:
        origin = started + (origin % max(days.count - 1 - started, 1))
    source = np.minimum(np.arange(origin + 1, origin + 1 + length), days.count - 1)
    grown = np.cumsum(choice.past.damping ** np.arange(length))
    then = choice.past.level[origin - started] + choice.past.slope[origin - started] * grown
    return days.level[source, place] - then, source


def _drift(draw: _Draw) -> FloatArray:
    """Days ahead x classes: a slow departure that the past has not shown, of the logarithm."""
    weeks = draw.days.count / 7
    size = _DRIFT * np.sqrt(_DRIFT_WEEKS / (_DRIFT_WEEKS + weeks))
    common, own = draw.random.standard_normal(), draw.random.standard_normal(len(draw.choices))
    if len(draw.choices) == 1:
        mixed = np.array([common])
    else:
        mixed = np.sqrt(_COMMON_DRIFT) * common + np.sqrt(1 - _COMMON_DRIFT) * own
    return np.asarray(
        size * (np.arange(1, draw.ahead + 1) ** _DRIFT_GROWTH)[:, None] * mixed[None, :]
    )


def _happen(
    event: Event,
    history: History,
    point: FloatArray,
    paths: FloatArray,
    random: np.random.Generator,
) -> None:
    """Applies an event to the forecast, and to the scenarios in which it happens."""
    start = max(event.from_hour - history.next_hour, 0)
    end = len(point)
    if event.until_hour is not None:
        end = min(max(event.until_hour - history.next_hour, 0), end)
    places = [
        place for place, name in enumerate(history.classes) if event.workload_class in (None, name)
    ]
    happens = random.random(len(paths)) < event.chance
    for place in places:
        hours = slice(start, end)
        changed = point[hours, place] * event.factor + event.gpus
        point[hours, place] += event.chance * (changed - point[hours, place])
        paths[happens, hours, place] = paths[happens, hours, place] * event.factor + event.gpus
