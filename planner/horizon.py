"""The year that is planned: the observed hours repeated, or hours that stand for those to come.

Until the demand changes, every cycle is the whole observed window, so that the savings and today's
bill stand on the same hours; the hour weight makes up the difference to 8,760 hours. The coming
year is as many modelled hours as its forecast has. Commitments end where their end date falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.errors import DataError
from data.hours import HOUR
from data.money import HOURS_PER_YEAR

if TYPE_CHECKING:
    from datetime import datetime

    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Horizon:
    """A year of `hours` as the model counts them; each stands for `weight` real hours.

    `start` is the end of the observed window, where the planned year begins; `observed_hours` are
    the hours of the window for which there is data. `span_hours` are the real hours that it stands
    for: a year, or the first weeks of it.
    """

    start: datetime
    observed_hours: int
    hours: int
    span_hours: int = HOURS_PER_YEAR

    @property
    def cycles(self) -> int:
        """How often the observed hours are repeated, where the horizon is made of them."""
        return self.hours // self.observed_hours

    @property
    def weight(self) -> float:
        """Real hours that one hour of the horizon stands for; the sum is `span_hours`."""
        return self.span_hours / self.hours

    def repeat(self, series: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """A series over the observed hours, repeated over the horizon."""
        return np.tile(series, self.cycles)

    def until(self, end: datetime) -> int:
        """The horizon hour before which a commitment that ends at `end` is still there."""
        real_hours = (end - self.start) / HOUR
        return int(min(max(0.0, real_hours / self.weight), self.hours))


def horizon_of(start: datetime, observed_hours: int) -> Horizon:
    """The horizon nearest to a year that is made of whole cycles of the observed hours.

    >>> from datetime import date
    >>> from data.hours import day_start
    >>> h = horizon_of(day_start(date(2026, 10, 31)), 60 * 24)
    >>> h.cycles, h.hours, round(h.hours * h.weight, 6)
    (6, 8640, 8760.0)
    """
    if observed_hours < 1:
        raise DataError("there is no hour with data to plan on: load billing or utilization first")
    cycles = max(1, round(HOURS_PER_YEAR / observed_hours))
    return Horizon(start, observed_hours, observed_hours * cycles)
