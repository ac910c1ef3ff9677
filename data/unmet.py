"""What the hours of a fleet do not show of its demand, as it stands in `plan.json`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnmetDemand:
    """One class and GPU family: hours that are lower bounds on its demand, and GPUs waited for.

    Of `hours` observed it had GPUs in a full place in `full_hours`, and in `censored_hours` of
    them that place held at least half of what it needed: what it needed then counts as a lower
    bound. `full_places` say what was full. In `waited_hours` queued jobs waited, for
    `waiting_gpu_hours` in all, which count as demand: `recent_waiting` GPUs on the mean of the last
    four weeks. `recorded_gpus` is the mean of what ran, `planned_gpus` that of the planned year and
    `planned_more` what it needs more for both (None where the history is too short to plan ahead).
    The forecast may follow the demand with what waited otherwise than that without, so that it is
    more or less than what waited.
    """

    workload_class: str
    gpu_family: str
    hours: int
    full_hours: int
    censored_hours: int
    full_places: tuple[str, ...]
    waited_hours: int
    waiting_gpu_hours: float
    recorded_gpus: float
    planned_more: float | None = None
    planned_gpus: float | None = None
    recent_waiting: float | None = None
