"""Which hours the data really covers: whole days before the day asked for, unfinished tails cut."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from data.engines import run
from data.frames import records
from data.hours import HOUR, Window, day_start, iso
from data.quality import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.settled import Tail

DAY = timedelta(days=1)
# A cloud this far behind the others does not hold the window back: its export has stopped.
MAX_LAG = timedelta(days=3)
MISSING_HOURS = 24
# Charges longer than this (monthly fees, spread purchases) do not say how far a bill goes.
_LONGEST_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Extent:
    """First hour and end (exclusive) of what one cloud's table holds before the day asked for."""

    cloud: str
    table: str
    start: datetime
    end: datetime


def extents(billing: Any, utilization: Any, as_of: date) -> list[Extent]:
    """Extent of the GPU-hours of each cloud's bill, and of its telemetry, before `as_of`."""
    run(billing.get_backend(), "SET TimeZone = 'UTC'")
    limit = int(day_start(as_of).timestamp())
    gpu = billing.filter(billing.gpu_hours.notnull() & billing.period_end.notnull())
    starts, ends = gpu.period_start.epoch_seconds(), gpu.period_end.epoch_seconds()
    rows = gpu.select(cloud=gpu.source, start=starts, end=ends)
    fine = rows.filter((rows.end - rows.start <= _LONGEST_SECONDS) & (rows.start < limit))
    found = _bounds(fine, limit, "billing")
    seen = {extent.cloud for extent in found}
    coarse = rows.filter((rows.end - rows.start > _LONGEST_SECONDS) & (rows.start < limit))
    found += [extent for extent in _bounds(coarse, limit, "billing") if extent.cloud not in seen]
    hours = utilization.hour_start.epoch_seconds()
    samples = utilization.select(cloud=utilization.cloud, start=hours, end=hours + 3600)
    found += _bounds(samples.filter(samples.start < limit), limit, "utilization")
    return sorted(found, key=lambda extent: (extent.table, extent.cloud))


def _bounds(rows: Any, limit: int, table: str) -> list[Extent]:
    # A charge within an hour speaks for the whole hour.
    end = ibis.least(((rows.end - 1) // 3600 + 1) * 3600, limit)
    bounds = rows.group_by("cloud").aggregate(start=rows.start.min(), end=end.max())
    frame = rows.get_backend().to_pandas(bounds)
    return [
        Extent(row["cloud"], table, _moment(row["start"] // 3600 * 3600), _moment(row["end"]))
        for row in records(frame)
    ]


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(int(seconds), tz=UTC)


def observed_window(
    billing: Any,
    utilization: Any,
    as_of: date,
    history_days: int,
    tails: Sequence[Tail] | None = (),
) -> Window:
    """The hours to work on: the newest `history_days` before `as_of` for which there is data.

    For plans `tails` says how far each account's bill may be relied on: whole UTC days count, and
    the window ends with the cloud or account that ends first, unless that one lags by more than
    MAX_LAG. Where they are None (for `idle`), or there is no such day, every hour with data counts.
    A window without data is empty, at the day asked for.
    """
    found = extents(billing, utilization, as_of)
    last = day_start(as_of)
    # Telemetry of a cloud that has a bill does not say how far its bill goes.
    billed = {extent.cloud for extent in found if extent.table == "billing"}
    ruling = [row for row in found if row.table == "billing" or row.cloud not in billed]
    if not ruling:
        return Window(last, last)
    oldest, newest = min(row.start for row in ruling), max(row.end for row in ruling)
    first = max(oldest, _days_before(_ceil_day(newest), history_days))
    window = Window(first, newest) if newest > first else Window(last, last)
    if tails is None:
        return window
    ends = [row.end for row in ruling if newest - row.end <= MAX_LAG]
    ends += [one.settled for one in tails if newest - one.end <= MAX_LAG]
    end = _floor_day(min(ends))
    start = max(_ceil_day(oldest), _days_before(end, history_days))
    return Window(start, end) if end > start else window


def _days_before(moment: datetime, days: int) -> datetime:
    """The moment so many days earlier; the first there is where the calendar does not reach."""
    first = datetime.min.replace(tzinfo=UTC)
    return moment - days * DAY if (moment - first).days >= days else first


def _floor_day(moment: datetime) -> datetime:
    return day_start(moment.date())


def _ceil_day(moment: datetime) -> datetime:
    floor = _floor_day(moment)
    is_last = floor.date() == date.max
    return floor if floor == moment or is_last else floor + DAY


def window_findings(extents: Iterable[Extent], window: Window, as_of: date) -> list[Finding]:
    """What the window leaves out: unfinished tails, clouds whose data ends early or is old."""
    found = []
    for row in extents:
        where = f"{row.cloud}/{row.table}"
        if row.end > window.end:
            hours = int((row.end - window.end) / HOUR)
            detail = (
                f"data ends at {iso(row.end)}; the unfinished hours from {iso(window.end)} "
                "feed neither demand nor savings"
            )
            found.append(Finding("late_tail", where, "info", detail, hours))
        elif row.end < window.end:
            hours = int((window.end - row.end) / HOUR)
            detail = f"data ends at {iso(row.end)}, {hours} hours before the end of the window"
            found.append(Finding("late_tail", where, "warning", detail, hours))
        if day_start(as_of) - row.end > MAX_LAG:
            days = (day_start(as_of) - row.end) // DAY
            detail = f"newest hour ends at {iso(row.end)}, {days} days before {as_of.isoformat()}"
            found.append(Finding("stale_data", where, "warning", detail, int(days)))
    return found


def covered_hours(billing: Any, utilization: Any, window: Window) -> pd.DatetimeIndex:
    """The hours of the window that were observed: all but the long gaps in which nothing arrived.

    A gap of MISSING_HOURS or more without any charge or reading, GPUs or not, is missing data:
    nobody knows what ran. In a shorter one the fleet was down to nothing, which is a fact.
    """
    run(billing.get_backend(), "SET TimeZone = 'UTC'")
    first, end = (int(moment.timestamp()) // 3600 for moment in (window.start, window.end))
    dated = billing.filter(billing.period_start.notnull() & billing.period_end.notnull())
    starts, ends = dated.period_start.epoch_seconds(), dated.period_end.epoch_seconds()
    spans = dated.select(a=starts // 3600, b=(ends - 1) // 3600, length=ends - starts)
    spans = spans.filter((spans.length <= _LONGEST_SECONDS) & (spans.a < end) & (spans.b >= first))
    hours = utilization.hour_start.epoch_seconds() // 3600
    samples = utilization.select(a=hours, b=hours)
    samples = samples.filter((samples.a < end) & (samples.b >= first))
    both = spans.select("a", "b").union(samples).distinct()
    touched = {
        hour
        for row in records(billing.get_backend().to_pandas(both))
        for hour in range(row["a"], row["b"] + 1)
        if first <= hour < end
    }
    edges = [first - 1, *sorted(touched), end]
    inside = [
        hour
        for before, after in itertools.pairwise(edges)
        for hour in range(before + 1, after + 1)
        if after - before <= MISSING_HOURS or hour == after
    ]
    moments = [hour * 3600 for hour in inside if hour < end and touched]
    return pd.DatetimeIndex(pd.to_datetime(moments, unit="s", utc=True))
