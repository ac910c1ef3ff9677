"""Time: UTC, half-open windows, the hourly grid. Naive times are never taken as local."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pandas as pd

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open span of UTC time, `[start, end)`, on whole hours."""

    start: datetime
    end: datetime

    @property
    def hours(self) -> int:
        """Whole hours in the window.

        >>> Window(day_start(date(2026, 11, 1)), day_start(date(2026, 11, 3))).hours
        48
        """
        return int((self.end - self.start) / HOUR)

    def grid(self) -> pd.DatetimeIndex:
        """Every hour of the window, in order."""
        return pd.date_range(self.start, self.end, freq="h", inclusive="left", tz=UTC)


def counted_hours(number: int) -> str:
    """A number of hours in words.

    >>> counted_hours(1), counted_hours(5)
    ('1 hour', '5 hours')
    """
    return f"{number} hour{'' if number == 1 else 's'}"


def day_start(day: date) -> datetime:
    """Midnight UTC at which the day starts."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def iso(moment: datetime) -> str:
    """The moment as ISO 8601 in UTC with a Z.

    >>> iso(day_start(date(2026, 11, 30)))
    '2026-11-30T00:00:00Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
