"""Demand: the GPUs that plans must serve, hour by hour, beside those that were billed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from data.frames import conform, empty
from data.schema import DEMAND, STATES

if TYPE_CHECKING:
    from data.hours import Window

UNKNOWN_FAMILY = "unknown"
_GROUP = ["workload_class", "gpu_family"]


def demand(
    fleet: pd.DataFrame,
    window: Window,
    covered: pd.DatetimeIndex | None = None,
    managed: bool = False,
) -> pd.DataFrame:
    """Frame of DEMAND: every covered hour of the window for each class and GPU family of the fleet.

    GPUs are means over the hour (GPU-hours of that hour). An hour in which a class had no GPU
    billed is 0; an hour without any data (not in `covered`; None takes the whole window as
    covered) is left out, for nobody knows what it needed. Managed services are planned apart, so
    their hours are in the frame only where `managed` asks for them and nothing else. GPUs of
    which the family is not known are family 'unknown'. Corrections that make an hour negative
    count as 0.
    """
    hours = window.grid() if covered is None else covered
    hours = hours[(hours >= pd.Timestamp(window.start)) & (hours < pd.Timestamp(window.end))]
    rows = fleet[fleet["managed_service"].astype(bool) == managed]
    if not len(rows) or not len(hours):
        return empty(DEMAND)
    plain = pd.DataFrame(
        {
            "hour_start": rows["hour_start"],
            "workload_class": rows["workload_class"].astype(object),
            "gpu_family": rows["gpu_family"].astype(object).fillna(UNKNOWN_FAMILY),
            "needed_gpus": rows["needed_gpu_hours"].astype("float64"),
            "billed_gpus": rows["gpu_hours"].astype("float64"),
        }
    )
    for state in STATES:
        plain[f"{state}_gpus"] = plain["billed_gpus"].where(rows["state"] == state, 0.0)
    # Sums of floats depend on the order of the rows; a fixed order makes them repeatable.
    values = [name for name in plain.columns if name.endswith("_gpus")]
    plain = plain.sort_values(["hour_start", *_GROUP, *values])
    sums = plain.groupby(["hour_start", *_GROUP], sort=True)[values].sum()
    pairs = plain[_GROUP].drop_duplicates().sort_values(_GROUP)
    grid = pd.DataFrame({"hour_start": hours.as_unit("us")}).merge(pairs, how="cross")
    full = grid.merge(sums.reset_index(), on=["hour_start", *_GROUP], how="left")
    full[values] = full[values].fillna(0.0).clip(lower=0.0).round(9)
    return conform(full.sort_values(["hour_start", *_GROUP]), DEMAND)
