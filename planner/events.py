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

MOST_PARTED = 2  # events that may come or not; each doubles the ways in which demand may come
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
    """The demand with every event, exactly as likely as it is stated, and notes on the others.

    An event that may come parts each way in which demand may come in two, with it and without,
    that share its probability by the chance. Beyond the first `MOST_PARTED` such events the ways
    would be too many: a further one counts at its mean in every way. `recent` are mean GPUs by
    class id (class|family): GPUs that an event adds are shared out by them. The event named
    `without` does not happen.
    """
    made, notes = future, []
    effects: list[tuple[KnownEvent, bool]] = []
    parted = 0
    for rule in rules:
        span = span_of(rule, future.horizon)
        names = [name for name in future.demand if rule.workload_class in (None, _class_of(name))]
        told = _unused(rule, span, names)
        if told:
            notes.append(f"the event {rule.name} is left out: {told}")
        if span is None or told:
            continue
        parted += rule.chance < 1
        parts = rule.chance < 1 and parted <= MOST_PARTED
        if rule.name == without:
            continue
        change = _Change(rule, span, _shares(rule.gpus, names, recent))
        before, made = made, change.of_future(made, parts)
        found = _effects(change, (before, made), names)
        effects += [(one, parts) for one in found]
    ways = len(made.probabilities)
    events = tuple(
        replace(one, happens_in=ways // 2 if parts else ways, scenarios=ways)
        for one, parts in effects
    )
    return replace(made, warnings=(*future.warnings, *notes), events=events)


@dataclass(frozen=True, slots=True)
class _Change:
    """What an event does, while it lasts, to the demand of each class id in `added` (GPUs)."""

    rule: EventRule
    span: Span
    added: Mapping[str, float]

    def of_future(self, future: Future, parts: bool) -> Future:
        """The future with it: in ways of its own, or at its mean in every way."""
        chance = self.rule.chance
        point = self._on(future.point, chance)
        if not parts:
            return replace(future, demand=self._on(future.demand, chance), point=point)
        happened = self._on(future.demand, 1.0)
        pairs = {
            name: np.stack([paths, happened[name]], axis=1).reshape(-1, paths.shape[1])
            for name, paths in future.demand.items()
        }
        weights = tuple(p * share for p in future.probabilities for share in (1 - chance, chance))
        return replace(future, demand=pairs, point=point, probabilities=weights)

    def _on(self, demand: Mapping[str, Array], chance: float) -> dict[str, Array]:
        """Demand, hours last, with the change to the share `chance`."""
        made = dict(demand)
        for name, gpus in self.added.items():
            made[name] = demand[name].copy()
            hours = made[name][..., self.span.start : self.span.end]
            hours += chance * (hours * (self.rule.factor - 1) + gpus)
        return made


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
    change: _Change, futures: tuple[Future, Future], names: Sequence[str]
) -> list[KnownEvent]:
    """What an event changes, class by class; `futures` are those before and after it."""
    return [
        _effect(change, workload_class, futures)
        for workload_class in sorted({_class_of(name) for name in names})
    ]


def _effect(change: _Change, workload_class: str, futures: tuple[Future, Future]) -> KnownEvent:
    """What an event changes of a class, as a mean over all ways."""
    rule, span = change.rule, change.span
    year = futures[0].horizon.hours
    lasts = slice(span.start, span.end)
    before, after = (
        sum(
            float(np.dot(one.probabilities, paths[:, lasts].mean(axis=1)))
            for name, paths in one.demand.items()
            if _class_of(name) == workload_class
        )
        for one in futures
    )
    share = (span.end - span.start) / year
    ways = len(futures[1].probabilities)
    return KnownEvent(
        name=rule.name,
        workload_class=workload_class,
        first=rule.from_date.isoformat(),
        until=None if rule.until is None else rule.until.isoformat(),
        factor=rule.factor,
        gpus=rule.gpus,
        chance=rule.chance,
        happens_in=ways,
        scenarios=ways,
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


def _unused(rule: EventRule, span: Span | None, names: Sequence[str]) -> str:
    if span is None:
        return (
            "it does not begin in the coming year; what began earlier shows in the history already"
        )
    if not names:
        return f"nothing of class {rule.workload_class} ran in the window"
    return "" if rule.chance > 0 else "its chance is 0"


def _shares(gpus: float, names: Sequence[str], recent: Mapping[str, float]) -> dict[str, float]:
    total = sum(recent[name] for name in names)
    if total <= 0:
        return {name: gpus / len(names) for name in names}
    return {name: gpus * recent[name] / total for name in names}
