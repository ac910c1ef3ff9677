"""The year that is planned: the observed hours, repeated in whole cycles.

Every cycle is the whole observed window, so the plan's year and today's bill stand on the same
hours; the hour weight makes up the difference to 8,760 hours. Commitments end inside the horizon
where their end date falls.
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
    """`cycles` repeats of the observed hours; each hour of it stands for `weight` real hours.

    `start` is the end of the observed window, where the planned year begins; `observed_hours` are
    the hours of the window for which there is data.
    """

    start: datetime
    observed_hours: int
    cycles: int

    @property
    def hours(self) -> int:
        """Hours of the horizon as the model counts them."""
        return self.observed_hours * self.cycles

    @property
    def weight(self) -> float:
        """Real hours that one hour of the horizon stands for; the sum is a year."""
        return HOURS_PER_YEAR / self.hours

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
    return Horizon(start, observed_hours, max(1, round(HOURS_PER_YEAR / observed_hours)))
