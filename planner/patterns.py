"""Idle hours that follow a pattern, each counted once: never started, weekends, nights."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pandas as pd

from data import money
from planner.cancelled import EMPTY_RESERVATION
from planner.idle import IDLE_STATES, UNUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

# Hours of the local day that count as night, [start, 24) and [0, end).
NIGHT_START, NIGHT_END = 20, 7
_ALWAYS = ("never_started", "empty_reservation")
_ACTIONS = {
    "never_started": "start work on the reserved capacity, or let it end",
    "empty_reservation": "cancel or shrink the capacity reservations, or start work on them",
    "weekend": "scale to zero over the weekend, or queue deferrable work there",
    "night": "scale to zero at night, or queue deferrable work there",
}


def idle_patterns(
    fleet: pd.DataFrame, window_hours: float, time_zone: str = "UTC"
) -> list[dict[str, Any]]:
    """The patterns of idle hours by class and currency, dearest first, as JSON rows.

    An idle GPU-hour counts in one pattern only, the first of: capacity that was paid and never
    started, with reservations that can be cancelled apart from what is committed; weekends; nights
    (20 to 7 o'clock of `time_zone`). Weekends and nights are listed where the share of idle hours
    is larger than in the working hours of the same class.
    `gpu_hours` are those of the window; `cost_per_month` is a month of 730 hours at its rate.
    """
    if not len(fleet) or not window_hours:
        return []
    local = fleet["hour_start"].dt.tz_convert(ZoneInfo(time_zone))
    is_night = (local.dt.hour >= NIGHT_START) | (local.dt.hour < NIGHT_END)
    kind = pd.Series("day", index=fleet.index, dtype=object)
    kind[is_night] = "night"
    kind[local.dt.day_of_week >= 5] = "weekend"
    kind[fleet["reason"].isin(UNUSED)] = "never_started"
    can_end = fleet["reason"].isin((EMPTY_RESERVATION,)) & fleet["stoppable"].astype(bool)
    kind[can_end] = "empty_reservation"
    plain = pd.DataFrame(
        {
            "scope": fleet["cloud"].astype(object) + "/" + fleet["workload_class"].astype(object),
            "currency": fleet["currency"].astype(object),
            "kind": kind,
            "is_idle": fleet["state"].isin(IDLE_STATES),
            "gpu_hours": fleet["gpu_hours"],
            "cost": fleet["cost"],
        }
    )
    rows = [
        row
        for (scope, currency), part in plain.groupby(["scope", "currency"], sort=True)
        for row in _rows(str(scope), str(currency), part, window_hours)
    ]
    return sorted(
        rows, key=lambda row: (-Decimal(row["cost_per_month"]), row["kind"], row["scope"])
    )


def _rows(
    scope: str, currency: str, part: pd.DataFrame, window_hours: float
) -> Iterator[dict[str, Any]]:
    usual = _idle_share(part[part["kind"] == "day"])
    for kind, action in _ACTIONS.items():
        here = part[part["kind"] == kind]
        idle = here[here["is_idle"]]
        if not len(idle) or (kind not in _ALWAYS and _idle_share(here) <= usual):
            continue
        cost = money.total(idle["cost"].dropna())
        yield {
            "kind": kind,
            "scope": scope,
            "gpu_hours": money.text(money.total(idle["gpu_hours"])),
            "cost_per_month": money.text(money.per_month(cost, window_hours)),
            "currency": currency,
            "action": action,
        }


def _idle_share(rows: pd.DataFrame) -> float:
    """Share of the GPU-hours that were idle; 0 where there are none."""
    total = float(money.total(rows["gpu_hours"]))
    return float(money.total(rows.loc[rows["is_idle"], "gpu_hours"])) / total if total > 0 else 0.0
