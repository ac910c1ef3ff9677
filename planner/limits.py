"""Autoscaling limits that the observed need supports, one pool per class, place and machine type.

The present limits are unknown until a cloud is asked for them; the proposal is a ceiling in nodes:
the most nodes needed in any hour of the window, with a stated headroom, and never fewer than ran.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from data.frames import conform, empty, records
from data.plan import Change
from data.schema import LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADROOM_SHARE = 0.1
_KINDS = {"aws": "aws_asg", "gcp": "gcp_mig", "azure": "azure_vmss"}
_POOL = ["cloud", "account", "region", "instance_type", "workload_class"]


def limits(bill: pd.DataFrame, window_hours: int) -> pd.DataFrame:
    """Frame of LIMITS, sorted by pool. `bill` is FLEET_HOURS of instances, money as float."""
    rows: list[dict[str, Any]] = []
    placed = bill.dropna(subset=["region", "instance_type", "gpu_count"])
    placed = placed[~placed["instance_id"].str.startswith("commitment:")]
    for key, part in placed.groupby(_POOL, sort=True):
        cloud, account, region, instance_type, workload_class = (str(word) for word in key)
        if cloud not in _KINDS:
            continue
        gpus = int(part["gpu_count"].iloc[0])
        hourly = part.groupby("hour_start")[["needed_gpu_hours", "gpu_hours"]].sum() / gpus
        newest = hourly.index.max()
        running = math.ceil(round(float(hourly.loc[newest, "gpu_hours"]), 6))
        busy = math.ceil(round(float(hourly.loc[newest, "needed_gpu_hours"]), 6))
        peak = math.ceil(round(float(hourly["needed_gpu_hours"].max()), 6))
        ceiling = max(math.ceil(round(peak * (1 + HEADROOM_SHARE), 6)), busy)
        least = float(hourly["needed_gpu_hours"].min()) if len(hourly) == window_hours else 0.0
        floor = math.floor(round(least, 6))
        rows.append(
            {
                "pool": f"{cloud}/{account}/{region}/{instance_type}/{workload_class}",
                "kind": _KINDS[cloud],
                "unit": "nodes",
                "cloud": cloud,
                "account": account,
                "region": region,
                "min_proposed": min(floor, ceiling),
                "max_proposed": ceiling,
                "running": running,
                "why": f"where it runs today it needed at most {peak} and at least {floor} nodes "
                f"in any hour; {HEADROOM_SHARE:.0%} headroom; the present limits were not read",
            }
        )
    return conform(pd.DataFrame(rows), LIMITS) if rows else empty(LIMITS)


def changes(table: pd.DataFrame, currency: str) -> tuple[Change, ...]:
    """The proposed limits as changes of a plan, sorted by pool and field."""
    made: list[Change] = []
    for row in records(table.sort_values("pool")):
        made.extend(_pool_changes(row, ("min", "max"), currency))
    return tuple(made)


def _pool_changes(row: dict[str, Any], fields: Sequence[str], currency: str) -> list[Change]:
    return [
        Change(
            pool=row["pool"],
            kind=row["kind"],
            cloud=row["cloud"],
            account=row["account"] or "",
            region=row["region"] or "",
            name=row["name"] or "",
            unit=row["unit"],
            field=field,
            current=None if row[f"{field}_now"] is None else int(row[f"{field}_now"]),
            proposed=int(row[f"{field}_proposed"]),
            why=row["why"],
            saving_per_month=Decimal(0),
            currency=currency,
        )
        for field in fields
        if row[f"{field}_now"] is None or row[f"{field}_now"] != row[f"{field}_proposed"]
    ]
