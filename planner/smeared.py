"""Clouds whose hours are a mean: bills by the day without telemetry say little of any one hour.

A machine that ran a third of its day and was seen by nobody stands as a third of its GPUs in every
hour. A commitment that is sized on such hours is too large by the size of the error (a mean hides
both the peak and the empty hours), so advice that rests on them is of low confidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.names import UNUSED_PREFIX
from planner.fleet_frame import MOST_EVEN

if TYPE_CHECKING:
    import pandas as pd

_HOUR = ["cloud", "instance_id", "hour_start"]
# Of a machine's GPU-hours in an hour, what rounding may leave out.
_SLACK = 1e-6


def smeared_shares(bill: pd.DataFrame) -> dict[str, float]:
    """Share of each cloud's GPU-hours that are parts of machines, spread from a coarser bill.

    `bill` is FLEET_HOURS with numbers as floats. Clouds of which the share is at most MOST_EVEN
    are left out.
    """
    # Hours without a dataset are counted from telemetry: no bill, and nothing spread.
    rows = bill[bill["dataset"].notna() & ~bill["instance_id"].str.startswith(UNUSED_PREFIX)]
    coarse = rows[rows["estimated"].astype(bool) & rows["gpu_count"].notna()]
    if coarse.empty:
        return {}
    hours = coarse.groupby(_HOUR).agg(gpu_hours=("gpu_hours", "sum"), gpus=("gpu_count", "max"))
    partly = hours[hours["gpu_hours"] < hours["gpus"].astype(float) - _SLACK]
    smeared = partly.groupby("cloud")["gpu_hours"].sum()
    every = rows.groupby("cloud")["gpu_hours"].sum()
    shares = {str(cloud): float(smeared[cloud] / every[cloud]) for cloud in smeared.index}
    return {cloud: share for cloud, share in sorted(shares.items()) if share > MOST_EVEN}


def with_confidence(rows: list[dict[str, Any]], shares: dict[str, float]) -> list[dict[str, Any]]:
    """The rows of RECOMMENDATIONS, those of clouds with smeared hours of low confidence."""
    return [
        {
            **row,
            "confidence": "low",
            "risk": f"{row['risk']}; {shares[row['cloud']]:.0%} of {row['cloud']}'s GPU-hours are "
            "billed by the day and spread over it as a mean: load telemetry before acting on it",
        }
        if row["cloud"] in shares
        else row
        for row in rows
    ]
