"""What reserved GPUs, spot and on demand cost over a window, hour by hour.

The rules, the same for every policy: firm demand runs in its hour, on reserved GPUs first and the
rest on demand. Deferrable demand of an hour joins a queue that is served first in, first out
(all of it may wait equally long, so that is earliest deadline first): by the reserved GPUs that
firm demand leaves idle, then by spot in the share of the hour in which there is spot, and on
demand in its last hour. Whatever waits at the end of the window runs in its last hour. Nothing
of a later hour steers an earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.forecast.inputs import FloatArray, Terms

_LEVELS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class Load:
    """Demand of all classes together, one entry an hour, without gaps.

    Attributes:
        firm: GPUs that must run in their hour.
        deferrable: GPUs released in the hour that may wait or use spot.
        spot_available: share of each hour in which there is spot; None: all of it.
    """

    firm: FloatArray
    deferrable: FloatArray
    spot_available: FloatArray | None = None

    @property
    def hours(self) -> int:
        """Length of the window, hours."""
        return len(self.firm)

    @property
    def total(self) -> FloatArray:
        """GPUs of both kinds in each hour."""
        return self.firm + self.deferrable

    def part(self, start: int, stop: int | None = None) -> Load:
        """The hours [start, stop)."""
        spot = None if self.spot_available is None else self.spot_available[start:stop]
        return Load(self.firm[start:stop], self.deferrable[start:stop], spot)


@dataclass(frozen=True, slots=True)
class Use:
    """Useful GPU-hours bought in each hour (rows) at each reserved level (columns)."""

    on_demand: FloatArray
    spot: FloatArray


@dataclass(frozen=True, slots=True)
class Costs:
    """USD of one policy over the window, and the GPU-hours that it ran on demand."""

    reserved: float
    on_demand: float
    spot: float
    on_demand_gpu_hours: float

    @property
    def usd(self) -> float:
        """USD in all."""
        return self.reserved + self.on_demand + self.spot


def uses_spot(terms: Terms) -> bool:
    """Whether a useful GPU-hour on spot is cheaper than one on demand; else spot is left alone."""
    return terms.spot_useful < terms.on_demand


def use(load: Load, reserved: FloatArray, terms: Terms) -> Use:
    """What is bought beside `reserved`: GPUs by hour, or hours x levels, or 1 x levels."""
    held = reserved[:, None] if reserved.ndim == 1 else reserved
    firm, waiting = load.firm[:, None], load.deferrable[:, None]
    short, idle = np.maximum(firm - held, 0.0), np.maximum(held - firm, 0.0)
    if not waiting.any():
        return Use(short, np.zeros_like(short))
    if uses_spot(terms) and load.spot_available is None:
        return Use(short, np.maximum(waiting - idle, 0.0))  # spot takes all at once: none waits
    share = np.zeros(load.hours)
    if uses_spot(terms) and load.spot_available is not None:
        share = load.spot_available
    late, spot = _queue(load.deferrable, idle, share, terms.max_delay_hours)
    return Use(short + late, spot)


def _queue(
    released: FloatArray, idle: FloatArray, share: FloatArray, delay: int
) -> tuple[FloatArray, FloatArray]:
    """GPU-hours that run on demand at their deadline, and on spot; hours x levels.

    In GPU-hours counted from the start, `come` have been released, `gone` have left the queue,
    and `due` must have left it by the end of the hour.
    """
    come = np.cumsum(released)
    due = np.concatenate([np.zeros(delay), come])[: len(come)]
    due[-1] = come[-1]
    late, spot = np.zeros(idle.shape), np.zeros(idle.shape)
    gone = np.zeros(idle.shape[1])
    for hour in range(len(come)):
        gone = gone + np.minimum(idle[hour], come[hour] - gone)
        if share[hour]:
            spot[hour] = share[hour] * (come[hour] - gone)
            gone = gone + spot[hour]
        late[hour] = np.maximum(due[hour] - gone, 0.0)
        gone = np.maximum(gone, due[hour])
    return late, spot


def costs(load: Load, reserved: FloatArray, terms: Terms) -> Costs:
    """USD of a window with `reserved` GPUs held in each hour."""
    bought = use(load, reserved, terms)
    on_demand, spot = float(bought.on_demand.sum()), float(bought.spot.sum())
    return Costs(
        reserved=terms.reserved * float(reserved.sum()),
        on_demand=terms.on_demand * on_demand,
        spot=terms.spot_useful * spot if uses_spot(terms) else 0.0,
        on_demand_gpu_hours=on_demand,
    )


def bought_usd(load: Load, levels: FloatArray, terms: Terms) -> FloatArray:
    """USD of spot and on demand over the window at each constant reserved level."""
    spot_price = terms.spot_useful if uses_spot(terms) else 0.0
    parts = []
    for start in range(0, len(levels), _LEVELS_AT_ONCE):
        bought = use(load, levels[None, start : start + _LEVELS_AT_ONCE], terms)
        parts.append(
            terms.on_demand * bought.on_demand.sum(axis=0) + spot_price * bought.spot.sum(axis=0)
        )
    return np.concatenate(parts)
