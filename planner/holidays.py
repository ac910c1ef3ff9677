"""Stated holidays in the demand: no pattern is learnt from them, and those to come are like them.

Demand of a holiday in the history is set aside for what the same hours of the week needed around
it. How much less, or more, holidays needed than that, class by class, holds for those to come.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.events import days_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    import numpy.typing as npt

    from planner.forecast.inputs import History
    from planner.future import Future

    Array = npt.NDArray[np.float64]

WEEK = 168
_AROUND = 4  # weeks before and after a holiday that tell what a usual day would have needed
_LEAST = 1e-9


def set_aside(history: History, holidays: Sequence[date]) -> tuple[History, dict[str, float]]:
    """The history with usual days in place of its holidays, and what holidays needed of those.

    The share is by class, of all its holidays together; a class that no holiday tells of has none.
    Days are UTC. A history without a clock has no holidays.
    """
    if not holidays or history.start_time is None:
        return history, {}
    hours = pd.date_range(history.start_time, periods=history.hours, freq="h")
    days = pd.DatetimeIndex(pd.to_datetime(list(holidays), utc=True))
    is_off = np.asarray(hours.floor("D").isin(days))
    if not is_off.any():
        return history, {}
    total = history.firm + history.deferrable
    usual = _usual(total, is_off)
    known = is_off[:, None] & np.isfinite(total) & np.isfinite(usual)
    needed, wanted = (np.where(known, one, 0.0).sum(axis=0) for one in (total, usual))
    shares = {
        name: float(off / on)
        for name, off, on in zip(history.classes, needed, wanted, strict=True)
        if on > _LEAST
    }
    parts = (_usual(one, is_off) for one in (history.firm, history.deferrable))
    firm, deferrable = (
        np.where(known, part, was)
        for part, was in zip(parts, (history.firm, history.deferrable), strict=True)
    )
    full = history.at_capacity
    return (
        replace(
            history,
            firm=firm,
            deferrable=deferrable,
            at_capacity=None if full is None else full & ~known,
        ),
        shares,
    )


def _usual(gpus: Array, is_off: npt.NDArray[np.bool_]) -> Array:
    """The mean of the same hour of the weeks around, holidays apart; NaN where none is known.

    >>> off = np.arange(3 * 168) // 24 == 7
    >>> float(_usual(np.repeat([4.0, 0.0, 6.0], 168)[:, None], off)[168, 0])
    5.0
    """
    plain = np.where(is_off[:, None], np.nan, gpus)
    sums, counts = np.zeros(gpus.shape), np.zeros(gpus.shape)
    for week in [*range(-_AROUND, 0), *range(1, _AROUND + 1)]:
        shift = week * WEEK
        if abs(shift) >= len(gpus):
            continue
        there = plain[max(shift, 0) : len(gpus) + min(shift, 0)]
        here = slice(max(-shift, 0), len(gpus) - max(shift, 0))
        sums[here] += np.nan_to_num(there)
        counts[here] += np.isfinite(there)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def with_holidays(future: Future, holidays: Sequence[date], shares: Mapping[str, float]) -> Future:
    """The demand to come with its holidays at what holidays needed before, in every way."""
    if not shares:
        return future
    demand = {name: paths.copy() for name, paths in future.demand.items()}
    point = {name: path.copy() for name, path in future.point.items()}
    for day in sorted(set(holidays)):
        span = days_in(day, day + timedelta(days=1), future.horizon)
        if span is None:
            continue
        hours = slice(span.start, span.end)
        for name, share in shares.items():
            demand[name][:, hours] *= share
            point[name][hours] *= share
    near = None if future.near is None else with_holidays(future.near, holidays, shares)
    return replace(future, demand=demand, point=point, near=near)


def holiday_note(holidays: Sequence[date], shares: Mapping[str, float], last: date) -> str | None:
    """What is made of holidays to come after the day `last`; None where none is to come."""
    ahead = [day for day in holidays if day > last]
    if not ahead:
        return None
    if not shares:
        return (
            f"holidays to come ({len(ahead)}) count as usual days: no holiday of the history tells "
            "what they need"
        )
    told = ", ".join(f"{name.replace('|', ' on ')} {share:.0%}" for name, share in shares.items())
    return f"holidays to come ({len(ahead)}) count at what past ones needed of a usual day: {told}"
