"""The year that is planned: the observed hours, repeated in whole cycles.

Every cycle is the whole observed window, so the plan's year and today's bill stand on the same
hours; the hour weight makes up the difference to 8,760 hours. Commitments end inside the horizon
where their end date falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.hours import HOUR, Window
from data.money import HOURS_PER_YEAR

if TYPE_CHECKING:
    from datetime import datetime

    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Horizon:
    """`cycles` repeats of the window; each hour of it stands for `weight` real hours."""

    window: Window
    cycles: int

    @property
    def hours(self) -> int:
        """Hours of the horizon as the model counts them."""
        return self.window.hours * self.cycles

    @property
    def weight(self) -> float:
        """Real hours that one hour of the horizon stands for; the sum is a year."""
        return HOURS_PER_YEAR / self.hours

    def repeat(self, series: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """A series over the window's hours, repeated over the horizon."""
        return np.tile(series, self.cycles)

    def until(self, end: datetime) -> int:
        """The horizon hour before which a commitment that ends at `end` is still there."""
        real_hours = (end - self.window.end) / HOUR
        return int(min(max(0.0, real_hours / self.weight), self.hours))


def horizon_of(window: Window) -> Horizon:
    """The horizon nearest to a year that is made of whole cycles of the window.

    >>> from datetime import date
    >>> from data.hours import day_start
    >>> h = horizon_of(Window(day_start(date(2026, 9, 1)), day_start(date(2026, 10, 31))))
    >>> h.cycles, h.hours, round(h.hours * h.weight, 6)
    (6, 8640, 8760.0)
    """
    return Horizon(window, max(1, round(HOURS_PER_YEAR / window.hours)))
