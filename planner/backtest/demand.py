"""Hourly demand with its gaps: what was recorded, what a step may know, what a window ran."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from data.hours import counted_hours, iso
from planner.backtest.simulate import Load
from planner.forecast.inputs import History

if TYPE_CHECKING:
    from datetime import datetime

    from planner.forecast.inputs import BoolArray, FloatArray

# A class without rows for longer than this, while others have some, was not running: 0 GPUs.
# Shorter, its hours were not recorded. Absent classes commonly have no rows in an export.
GONE_AFTER_HOURS = 168


@dataclass(frozen=True, slots=True)
class Demand:
    """GPUs by hour and class as recorded; NaN where there is no reading.

    Attributes:
        gpus: hours x classes, GPUs wanted.
        deferrable: hours x classes, the part of `gpus` that may wait or use spot.
        classes: names of the columns, sorted.
        start: UTC time of the first hour, or its number.
        spot_available: share of each hour in which there is spot; None: all of it.
        notes: what a reader must know of the file, one sentence each.
    """

    gpus: FloatArray
    deferrable: FloatArray
    classes: tuple[str, ...]
    start: datetime | int = 0
    spot_available: FloatArray | None = None
    notes: tuple[str, ...] = ()

    @property
    def hours(self) -> int:
        """Hours from the first to the last, gaps included."""
        return len(self.gpus)

    @property
    def recorded(self) -> BoolArray:
        """For each hour, whether any class has a reading."""
        return _any(np.isfinite(self.gpus), axis=1)

    def name(self, hour: int) -> str:
        """An hour as the file names it."""
        if isinstance(self.start, int):
            return f"hour {self.start + hour}"
        return iso(self.start + timedelta(hours=hour))


def known(demand: Demand, hours: int) -> History:
    """The first hours as a planning step at their end knows them; nothing of a later one.

    Classes that have not shown themselves by then are left out.
    """
    cut = demand.gpus[:hours].copy()
    absent = _absent(cut)
    seen = _any(np.isfinite(cut), axis=0)
    if not seen.any():
        seen[:] = True
    gpus = np.where(absent, 0.0, cut)[:, seen]
    deferrable = np.where(absent, 0.0, demand.deferrable[:hours])[:, seen]
    spot = demand.spot_available
    return History(
        firm=gpus - deferrable,
        deferrable=deferrable,
        classes=tuple(name for name, is_seen in zip(demand.classes, seen, strict=True) if is_seen),
        start_time=None if isinstance(demand.start, int) else demand.start,
        spot_available=None if spot is None else spot[:hours].copy(),
    )


def load(demand: Demand, start: int, stop: int) -> Load:
    """All classes together in the recorded hours of [start, stop); the others are left out.

    A class without a reading in an hour in which others have one is taken on the line between
    its neighbouring readings in the window.
    """
    part = demand.gpus[start:stop]
    absent = _absent(part)
    recorded = demand.recorded[start:stop]
    sums = []
    for values in (demand.gpus, demand.deferrable):
        filled = _filled(np.where(absent, 0.0, values[start:stop]))
        sums.append(filled.sum(axis=1)[recorded])
    total, deferrable = sums
    spot = demand.spot_available
    return Load(
        firm=np.maximum(total - deferrable, 0.0),
        deferrable=deferrable,
        spot_available=None if spot is None else spot[start:stop][recorded],
    )


def gap_notes(demand: Demand) -> list[str]:
    """One sentence for each kind of gap of the demand."""
    notes = []
    empty = ~demand.recorded
    if empty.any():
        notes.append(
            f"{int(empty.sum())} of {demand.hours} hours have no reading, the first "
            f"{demand.name(int(np.argmax(empty)))}: left out of every policy's cost, not taken as 0"
        )
    absent = _absent(demand.gpus)
    missing = np.isnan(demand.gpus) & ~absent & ~empty[:, None]
    for place, name in enumerate(demand.classes):
        gone, holes = absent[:, place], missing[:, place]
        if gone.any():
            notes.append(
                f'class "{name}" has no row in {counted_hours(int(gone.sum()))}, the first '
                f"{demand.name(int(np.argmax(gone)))}, over a week on end: taken as not running"
            )
        if holes.any():
            hours = counted_hours(int(holes.sum()))
            notes.append(
                f'class "{name}" has no reading in {hours} in which others have '
                f"one, the first {demand.name(int(np.argmax(holes)))}: taken between its neighbours"
            )
    return notes


def _any(flags: BoolArray, axis: int) -> BoolArray:
    found: BoolArray = np.logical_or.reduce(flags, axis=axis)
    return found


def _absent(gpus: FloatArray) -> BoolArray:
    """Where a class was not running: over a week on end without a row, while others had rows."""
    missing = np.isnan(gpus)
    recorded = _any(~missing, axis=1)
    absent = np.zeros(gpus.shape, dtype=np.bool_)
    for place in np.flatnonzero(_any(missing[recorded], axis=0)):
        edges = np.flatnonzero(np.diff(np.r_[False, missing[recorded, place], False]))
        hours = np.flatnonzero(recorded)
        for begin, end in edges.reshape(-1, 2):
            if end - begin > GONE_AFTER_HOURS:
                absent[hours[begin:end], place] = True
    return absent


def _filled(values: FloatArray) -> FloatArray:
    """The values with each column's gaps on the line between its neighbours."""
    filled = values.copy()
    hours = np.arange(len(values))
    for place in np.flatnonzero(np.isnan(values).any(axis=0)):
        column = values[:, place]
        has = np.isfinite(column)
        filled[:, place] = np.interp(hours, hours[has], column[has]) if has.any() else 0.0
    return filled
