"""What a history really says: recorded hours only, with a warning for everything doubtful."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from data.hours import counted_hours

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.forecast.inputs import BoolArray, FloatArray, History

    Places = npt.NDArray[np.intp]

DAY = 24
WEEK = 168
FEWEST_HOURS = 24  # less says nothing about a day, let alone a year
LEFT_OUT = "left out"  # how a warning on hours without a reading ends
_SHORT_DAYS = 14
_SPIKE_SHARE = 0.01  # demand in fewer hours than this is a spike
_STALE_HOURS = 6
_WHOLE_FROM, _LEAST_SHOWN = 100, 0.1  # GPUs, as texts write them


def counted_gpus(number: float) -> str:
    """GPUs for people, whole from 100 on and with one place at most below: 17.03 is `17 GPUs`.

    >>> counted_gpus(17.0331), counted_gpus(1.0), counted_gpus(1234567.8), counted_gpus(0.03)
    ('17 GPUs', '1 GPU', '1,234,568 GPUs', '<0.1 GPUs')
    """
    if 0 < number < _LEAST_SHOWN:
        return f"<{_LEAST_SHOWN} GPUs"
    written = f"{number:,.0f}" if number >= _WHOLE_FROM else f"{number:,.1f}".removesuffix(".0")
    return "1 GPU" if written == "1" else f"{written} GPUs"


@dataclass(frozen=True, slots=True)
class Known:
    """Demand of all classes together in the hours that were recorded, oldest first.

    Attributes:
        firm: GPUs that must run in their hour.
        deferrable: GPUs that may wait or use spot.
        age: hours from each one to the planning step; 0 for the hour just before it.
        span: hours from the first to the planning step, gaps included.
        warnings: what the user must know, one sentence each.
    """

    firm: FloatArray
    deferrable: FloatArray
    age: FloatArray
    span: int
    warnings: tuple[str, ...]

    @property
    def total(self) -> FloatArray:
        """GPUs of both kinds."""
        return self.firm + self.deferrable

    def daily(self) -> FloatArray:
        """Mean GPUs of each 24 hours, counted back from the step, oldest first; NaN: no reading.

        What is left at the old end and fills no day is dropped.
        """
        days = self.span // DAY
        place = (self.age // DAY).astype(int)
        inside = place < days
        hours = np.bincount(place[inside], minlength=days)
        sums = np.bincount(place[inside], self.total[inside], minlength=days)
        means = np.full(days, np.nan)
        np.divide(sums, hours, out=means, where=hours > 0)
        return means[::-1]


def known_of(history: History) -> Known:
    """The recorded demand of a history, without an incomplete tail.

    A class without a reading in an hour that others report keeps its last reading; before its
    first it had not started. An hour without any reading is left out, never taken as 0.
    """
    recorded = np.isfinite(history.firm + history.deferrable)
    firm, deferrable = _filled(history.firm, recorded), _filled(history.deferrable, recorded)
    hours = history.hours
    is_known = np.asarray(recorded.sum(axis=1) > 0)
    places = np.flatnonzero(is_known)
    tail = _unfinished(firm.sum(axis=1)[places] + deferrable.sum(axis=1)[places])
    kept = places[: len(places) - tail]
    total = (firm + deferrable).sum(axis=1)[kept]
    warnings = [
        *_gaps(
            kept, hours, tail, int((is_known & (recorded.sum(axis=1) < recorded.shape[1])).sum())
        ),
        *_doubts(total, hours),
        *_capacity(history),
    ]
    return Known(
        firm=firm.sum(axis=1)[kept],
        deferrable=deferrable.sum(axis=1)[kept],
        age=(hours - 1.0 - kept).astype(np.float64),
        span=hours - int(kept[0]) if len(kept) else 0,
        warnings=tuple(warnings),
    )


def without_tail(history: History) -> History:
    """The history with an incomplete tail as hours without a reading."""
    recorded = np.isfinite(history.firm + history.deferrable)
    places = np.flatnonzero(recorded.sum(axis=1) > 0)
    total = _filled(history.firm + history.deferrable, recorded).sum(axis=1)
    tail = _unfinished(total[places])
    if not tail:
        return history
    firm, deferrable = history.firm.copy(), history.deferrable.copy()
    firm[places[-tail:]] = deferrable[places[-tail:]] = np.nan
    return replace(history, firm=firm, deferrable=deferrable)


def together(history: History) -> History:
    """The history as one class, with the readings of all classes summed."""
    total = history.firm + history.deferrable
    recorded = np.isfinite(total)
    summed = _filled(total, recorded).sum(axis=1)
    summed[recorded.sum(axis=1) == 0] = np.nan
    return replace(
        history,
        firm=summed[:, None],
        deferrable=np.zeros((len(summed), 1)),
        classes=("all",),
        at_capacity=None,
    )


def _filled(gpus: FloatArray, recorded: BoolArray) -> FloatArray:
    """Each class with its last reading carried on; 0 before the first."""
    hour = np.arange(len(gpus))[:, None]
    last = np.maximum.accumulate(np.where(recorded, hour, -1), axis=0)
    carried: FloatArray = np.take_along_axis(gpus, np.maximum(last, 0), axis=0)
    return np.where(last >= 0, np.nan_to_num(carried), 0.0)


def _unfinished(total: FloatArray) -> int:
    """Hours of zeros at the end of a demand that was never 0 in the week before them.

    Up to a day of them is taken as readings that have not arrived; longer is a demand that ended.
    """
    busy = np.flatnonzero(total > 0)
    if not len(busy):
        return 0
    tail = len(total) - 1 - int(busy[-1])
    before = total[max(len(total) - tail - WEEK, 0) : len(total) - tail]
    is_tail = 0 < tail <= DAY and len(before) > DAY and bool((before > 0).all())
    return tail if is_tail else 0


def _gaps(kept: Places, hours: int, tail: int, carried: int) -> list[str]:
    texts: list[str] = []
    if tail:
        texts.append(
            f"The last {tail} recorded hours read 0 after a week without a 0; "
            "they are taken as not yet recorded."
            if tail > 1
            else "The last recorded hour reads 0 after a week without a 0; "
            "it is taken as not yet recorded."
        )
    if not len(kept):
        return texts
    missing = hours - int(kept[0]) - len(kept) - tail
    late = hours - 1 - int(kept[-1])
    if missing > 0:
        share = missing / (hours - int(kept[0]))
        verbs = "has no reading and is" if missing == 1 else "have no reading and are"
        texts.append(f"{counted_hours(missing)} ({share:.1%}) {verbs} {LEFT_OUT}.")
    if late - tail >= _STALE_HOURS:
        texts.append(f"The last {late} hours have no reading; what happened since is not known.")
    if carried:
        texts.append(
            f"In {counted_hours(carried)} a class has no reading; its last one is carried on."
        )
    return texts


def _doubts(total: FloatArray, hours: int) -> list[str]:
    """Warnings about a demand too short, absent, ended, or seen in a few hours only."""
    if len(total) < FEWEST_HOURS:
        verb = "is" if len(total) == 1 else "are"
        known = f"Only {counted_hours(len(total))} of demand {verb} known"
        return [f"{known}; advice needs {FEWEST_HOURS}."]
    texts: list[str] = []
    if hours < _SHORT_DAYS * DAY:
        days = f"{hours / DAY:.3g}"
        known = "day of demand is" if days == "1" else "days of demand are"
        texts.append(f"Only {days} {known} known; a promise of months rests on no more.")
    busy = np.flatnonzero(total > 0)
    if not len(busy):
        return [*texts, "No demand was recorded in any hour."]
    quiet = len(total) - 1 - int(busy[-1])
    if len(busy) <= max(_SPIKE_SHARE * len(total), 1):
        texts.append(f"Demand was recorded in {len(busy)} of {counted_hours(len(total))} only.")
    elif quiet >= DAY:
        texts.append(f"There has been no demand for the last {quiet} hours.")
    return texts


def _capacity(history: History) -> list[str]:
    full = history.at_capacity
    if full is None or not full.any():
        return []
    hours = int(full.any(axis=1).sum())
    return [
        f"In {counted_hours(hours)} a pool was full, so demand may have been higher than recorded."
    ]
