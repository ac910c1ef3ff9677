"""What a planning step knows, the prices it plans with, and what it answers.

The back-test and the nightly plan hand the same `History` and `Terms` to one policy. Neither
tells how long demand will go on to be observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from datetime import datetime

    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    BoolArray = npt.NDArray[np.bool_]


class Held(NamedTuple):
    """Reserved GPUs that are held in the hours [from_hour, until_hour) of the file."""

    from_hour: int
    until_hour: int
    gpus: float


@dataclass(frozen=True, slots=True)
class History:
    """Hourly demand that is known at a planning step; nothing of a later hour.

    Attributes:
        firm: GPUs, hours x classes, that must run in their hour; NaN where no hour was recorded.
        deferrable: GPUs, hours x classes, released in the hour that may wait or use spot; NaN
            where no hour was recorded. The demand of a class is firm + deferrable.
        classes: names of the columns, sorted.
        start_hour: number of the first row, counted on the hours of the file.
        start_time: UTC time of the first row; None where hours are numbers.
        spot_available: share of each hour, 0 to 1, in which spot could be had; None: always.
        at_capacity: hours x classes, true where the pool was full, so that demand is a lower
            bound; None: nowhere known.
    """

    firm: FloatArray
    deferrable: FloatArray
    classes: tuple[str, ...]
    start_hour: int = 0
    start_time: datetime | None = None
    spot_available: FloatArray | None = None
    at_capacity: BoolArray | None = None

    @property
    def hours(self) -> int:
        """Number of hours known."""
        return int(self.firm.shape[0])

    @property
    def next_hour(self) -> int:
        """The hour of the file at which the planning step stands: the first one not known."""
        return self.start_hour + self.hours

    def head(self, hours: int) -> History:
        """The first hours of this history, as an earlier planning step knew it."""
        return History(
            firm=self.firm[:hours],
            deferrable=self.deferrable[:hours],
            classes=self.classes,
            start_hour=self.start_hour,
            start_time=self.start_time,
            spot_available=None if self.spot_available is None else self.spot_available[:hours],
            at_capacity=None if self.at_capacity is None else self.at_capacity[:hours],
        )


@dataclass(frozen=True, slots=True)
class Terms:
    """Prices and rules of a planning step.

    Attributes:
        on_demand: USD per GPU-hour.
        reserved: USD per GPU-hour held, used or not.
        spot: USD per paid GPU-hour; None: no spot.
        spot_throughput: useful GPU-hours per paid spot GPU-hour, over 0 to 1.
        term_hours: hours for which a reservation is held and charged.
        gpus_per_instance: reservations come in multiples of it.
        replan_hours: hours until the next planning step may buy more.
        max_delay_hours: hours that deferrable work may start after its own hour.
        held: what was bought earlier; hours count as `History.next_hour` does.
        hours_left: hours until a known end of the need; None: no end is known.
    """

    on_demand: float
    reserved: float
    spot: float | None = None
    spot_throughput: float = 1.0
    term_hours: int = 8_760
    gpus_per_instance: int = 1
    replan_hours: int = 672
    max_delay_hours: int = 24
    held: tuple[Held, ...] = ()
    hours_left: int | None = None

    @property
    def spot_useful(self) -> float:
        """USD per useful GPU-hour on spot; infinite where there is none."""
        return np.inf if self.spot is None else self.spot / self.spot_throughput

    def held_in(self, hour: int) -> float:
        """Reserved GPUs held in one hour of the file."""
        return sum(one.gpus for one in self.held if one.from_hour <= hour < one.until_hour)


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of the total demand of all classes, GPUs, for the hours from the step on.

    Attributes:
        share: probability that the demand of one hour lies within, such as 0.8.
        low: GPUs per hour, first entry: the hour of the planning step.
        high: GPUs per hour, as long as `low`.
    """

    share: float
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer of a planning step.

    Attributes:
        gpus: GPUs to reserve now, on top of what is held; a multiple of the instance, 0 or more.
        reason: one sentence that says why so many, or why none yet.
        warnings: what the user must know about the history, one sentence each.
        interval: the range of demand that was planned for; None where none can be given.
    """

    gpus: int
    reason: str
    warnings: tuple[str, ...] = ()
    interval: Interval | None = None
