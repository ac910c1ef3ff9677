"""What a plan made of the known events of the settings, as it stands in `plan.json`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal  # noqa: TC003  (pydantic reads it)


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An event that the planned demand counts, and what it changes of one class.

    From the day `first` to the day `until` (exclusive; None: for good) demand of the class is
    multiplied by `factor` and `gpus` are added, with probability `chance`: in `happens_in` of
    `scenarios` ways in which demand may come, whose weights sum to it (an uncertain event in all of
    them is there at its mean). `gpus_before` and `gpus_after` are the mean GPUs of
    the class over all ways while it lasts, without and with it; `gpu_hours_per_month` is what it
    adds to the demand of a month, a mean over the planned year. `gpus` are for the whole class.
    Each event counts on top of those before it in the settings.
    """

    name: str
    workload_class: str
    first: str
    until: str | None
    factor: float
    gpus: float
    chance: float
    happens_in: int
    scenarios: int
    gpus_before: float
    gpus_after: float
    gpu_hours_per_month: float


@dataclass(frozen=True, slots=True)
class EventCost:
    """What a known event of all its classes costs, beside what the plan buys ahead anyway.

    `gpu_hours_per_month` are what it adds to the demand of a month, `usd_per_month` what more is
    bought by the hour with it than without (below 0: less), means over the planned year and the
    ways in which demand may come. Hours that nothing serves cost nothing here.
    """

    name: str
    gpu_hours_per_month: float
    usd_per_month: Decimal
