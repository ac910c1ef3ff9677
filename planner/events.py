"""Known events of the configuration, such as a launch or a project's end, in the demand to come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from data.hours import HOUR, day_start
from data.known_events import KnownEvent
from data.money import HOURS_PER_MONTH
from data.names import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

    import numpy.typing as npt

    from planner.future import Future
    from planner.horizon import Horizon
    from planner.settings import EventRule

    Array = npt.NDArray[np.float64]

_SEED = 1
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Span:
    """Modelled hours [start, end) of an event, at least one."""

    start: int
    end: int


def with_events(
    future: Future,
    rules: Sequence[EventRule],
    recent: Mapping[str, float],
    without: str | None = None,
) -> Future:
    """The demand with every event in as many scenarios as its chance says, and notes on the others.

    `recent` are mean GPUs by class id (class|family): GPUs that an event adds are shared out by
    them. Events of one file happen or not each by itself, by fixed lots. The event named `without`
    does not happen.
    """
    demand = {name: paths.copy() for name, paths in future.demand.items()}
    point = {name: path.copy() for name, path in future.point.items()}
    lots = np.random.default_rng(_SEED)
    notes, effects = [], []
    for rule in rules:
        order = lots.permutation(len(future.probabilities))
        span = span_of(rule, future.horizon)
        names = [name for name in demand if rule.workload_class in (None, _class_of(name))]
        told = _unused(rule, span, names, len(order))
        if told:
            notes.append(f"the event {rule.name} is left out: {told}")
        if span is None or told or rule.name == without:
            continue
        happens = order[: round(rule.chance * len(order))]
        before = dict(demand)
        for name, added in _shares(rule.gpus, names, recent).items():
            hours = slice(span.start, span.end)
            demand[name] = demand[name].copy()
            demand[name][happens, hours] = demand[name][happens, hours] * rule.factor + added
            changed = point[name][hours] * rule.factor + added
            point[name][hours] += rule.chance * (changed - point[name][hours])
        effects += _effects(rule, span, (before, demand), names)
    return replace(
        future,
        demand=demand,
        point=point,
        warnings=(*future.warnings, *notes),
        events=tuple(effects),
    )


def classless(rules: Sequence[EventRule], fleet: Iterable[str], first: date) -> tuple[str, ...]:
    """A warning on each event from the day `first` on of a class that no work of the fleet has."""
    known = sorted(set(fleet))
    return tuple(
        f"the event {rule.name} is left out: nothing of class {rule.workload_class} ran in the "
        f"window; {nearest(rule.workload_class, known)}"
        for rule in rules
        if rule.workload_class is not None
        and rule.workload_class not in known
        and rule.from_date >= first
    )


def _effects(
    rule: EventRule,
    span: Span,
    demands: tuple[Mapping[str, Array], Mapping[str, Array]],
    names: Sequence[str],
) -> list[KnownEvent]:
    """What an event changes, class by class; `demands` are those before and after it."""
    found = []
    for workload_class in sorted({_class_of(name) for name in names}):
        own = [name for name in names if _class_of(name) == workload_class]
        old, new = (np.sum([one[name] for name in own], axis=0) for one in demands)
        found.append(_effect(rule, span, workload_class, (old, new)))
    return found


def _effect(
    rule: EventRule, span: Span, workload_class: str, paths: tuple[Array, Array]
) -> KnownEvent:
    """What an event changes of a class: `paths` are its GPUs without and with it."""
    old, new = paths
    scenarios, year = old.shape
    lasts = slice(span.start, span.end)
    share = (span.end - span.start) / year
    before, after = float(old[:, lasts].mean()), float(new[:, lasts].mean())
    return KnownEvent(
        name=rule.name,
        workload_class=workload_class,
        first=rule.from_date.isoformat(),
        until=None if rule.until is None else rule.until.isoformat(),
        factor=rule.factor,
        gpus=rule.gpus,
        chance=rule.chance,
        happens_in=round(rule.chance * scenarios),
        scenarios=scenarios,
        gpus_before=round(before, _DIGITS),
        gpus_after=round(after, _DIGITS),
        gpu_hours_per_month=round((after - before) * share * HOURS_PER_MONTH, 3),
    )


def span_of(rule: EventRule, horizon: Horizon) -> Span | None:
    """The modelled hours of an event that begins in the planned year; None for others.

    As ends of commitments do, it begins and ends where its dates fall in the year.
    """
    return days_in(rule.from_date, rule.until, horizon)


def days_in(first: date, until: date | None, horizon: Horizon) -> Span | None:
    """The modelled hours of the days [first, until), or for good; None where they begin outside."""
    begin = (day_start(first) - horizon.start) / HOUR / horizon.weight
    end = float(horizon.hours)
    if until is not None:
        end = min((day_start(until) - horizon.start) / HOUR / horizon.weight, end)
    if begin < 0 or begin >= horizon.hours:
        return None
    start = min(round(begin), horizon.hours - 1)
    return Span(start, max(round(end), start + 1))


def _class_of(name: str) -> str:
    return name.rsplit("|", 1)[0]


def _unused(rule: EventRule, span: Span | None, names: Sequence[str], scenarios: int) -> str:
    if span is None:
        return (
            "it does not begin in the coming year; what began earlier shows in the history already"
        )
    if not names:
        return f"nothing of class {rule.workload_class} ran in the window"
    if round(rule.chance * scenarios) == 0:
        return f"its chance of {rule.chance:g} is less than half of one of {scenarios} scenarios"
    return ""


def _shares(gpus: float, names: Sequence[str], recent: Mapping[str, float]) -> dict[str, float]:
    total = sum(recent[name] for name in names)
    if total <= 0:
        return {name: gpus / len(names) for name in names}
    return {name: gpus * recent[name] / total for name in names}
