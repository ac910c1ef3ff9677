"""Autoscaling limits that the work supports, one pool per class, place and machine type.

The present limits are unknown until a cloud is asked for them; the proposal is a ceiling in nodes
that stops neither what runs today nor what the plan runs there: the most nodes needed in any hour
of the window, or in all but one in a hundred hours of the plan over all ways in which demand may
come, with a stated headroom, and never fewer than ran. Where the plan runs
work and no pool is known, a row says so. The floor is what both need at all hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from data.frames import conform, empty, records
from data.names import UNUSED_PREFIX
from data.plan import Change
from data.schema import LIMITS
from planner.peaks import PEAK_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADROOM_SHARE = 0.1
_KINDS = {"aws": "aws_asg", "gcp": "gcp_mig", "azure": "azure_vmss"}
_POOL = ["cloud", "account", "region", "instance_type", "workload_class"]
_NO_POOL = "new"  # stands for the account of a pool that is not known


@dataclass(frozen=True, slots=True)
class _Seen:
    """Nodes of a pool in the window's hours: most and least needed, and at work in the newest."""

    cloud: str
    account: str
    region: str
    instance_type: str
    workload_class: str
    gpus_per_node: float
    most: int
    least: int
    running: int
    busy: int

    @property
    def place(self) -> tuple[str, str]:
        """The class, and the offer as a plan names it."""
        return self.workload_class, f"{self.cloud}/{self.region}/{self.instance_type}"


def limits(bill: pd.DataFrame, window_hours: int, planned: pd.DataFrame) -> pd.DataFrame:
    """Frame of LIMITS, sorted by pool.

    Args:
        bill: FLEET_HOURS of instances, money as float.
        window_hours: hours of the window that have data.
        planned: GPUs that the plan runs by class and offer, with the columns of PEAKS.
    """
    seen = _pools(bill, window_hours)
    plan = {(str(row["workload_class"]), str(row["offer"])): row for row in records(planned)}
    alike: dict[tuple[str, str], list[_Seen]] = {}
    for pool in seen:
        alike.setdefault(pool.place, []).append(pool)
    rows = [_row(pool, plan.get(pool.place), alike[pool.place]) for pool in seen]
    rows += [
        _new_row(place, row)
        for place, row in plan.items()
        if place not in alike and row["most_gpus"] > 0
    ]
    rows = [row for row in rows if row["cloud"] in _KINDS]
    if not rows:
        return empty(LIMITS)
    return conform(pd.DataFrame(rows).sort_values("pool"), LIMITS)


def _pools(bill: pd.DataFrame, window_hours: int) -> list[_Seen]:
    placed = bill.dropna(subset=["region", "instance_type", "gpu_count"])
    placed = placed[~placed["instance_id"].str.startswith(UNUSED_PREFIX)]
    found = []
    for key, part in placed.groupby(_POOL, sort=True):
        cloud, account, region, instance_type, workload_class = (str(word) for word in key)
        gpus = int(part["gpu_count"].iloc[0])
        hourly = part.groupby("hour_start")[["needed_gpu_hours", "gpu_hours"]].sum() / gpus
        newest = hourly.index.max()
        needed = hourly["needed_gpu_hours"]
        found.append(
            _Seen(
                cloud,
                account,
                region,
                instance_type,
                workload_class,
                gpus_per_node=float(gpus),
                most=_up(float(needed.max())),
                least=_down(float(needed.min())) if len(hourly) == window_hours else 0,
                running=_up(float(hourly.loc[newest, "gpu_hours"])),
                busy=_up(float(hourly.loc[newest, "needed_gpu_hours"])),
            )
        )
    return found


def _row(pool: _Seen, plan: dict[str, Any] | None, alike: list[_Seen]) -> dict[str, Any]:
    """The row of a pool. A plan names no account: pools alike share it as their peaks stand."""
    whole = sum(one.most for one in alike)
    share = pool.most / whole if whole else 1 / len(alike)
    most = least = 0
    if plan is not None:
        most = _up(float(plan["most_gpus"]) * share / pool.gpus_per_node)
        least = _down(float(plan["least_gpus"]) * share / pool.gpus_per_node)
    ceiling = max(_with_headroom(max(pool.most, most)), pool.busy)
    floor = min(pool.least, least, ceiling)
    return _record(pool, (floor, ceiling), pool.running) | {
        "account": pool.account,
        "why": f"where it runs today it needed at most {pool.most} and at least {pool.least} "
        f"nodes in any hour, and the plan runs at least {least} there and in {PEAK_SHARE:.0%} of "
        f"the hours, over all ways in which demand may come, at most {most}; "
        f"{HEADROOM_SHARE:.0%} headroom; the present limits were not read",
    }


def _new_row(place: tuple[str, str], plan: dict[str, Any]) -> dict[str, Any]:
    workload_class, offer = place
    cloud, region, instance_type = offer.split("/", 2)
    per_node = float(plan["gpus_per_node"])
    most = _up(float(plan["most_gpus"]) / per_node)
    named = _Seen(
        cloud, _NO_POOL, region, instance_type, workload_class, per_node, 0, 0, running=0, busy=0
    )
    return _record(named, (0, _with_headroom(most)), 0) | {
        "account": None,
        "why": f"the plan runs work here, at most {most} nodes in {PEAK_SHARE:.0%} of the hours "
        "over all ways in which demand may come: no pool of it is known; "
        f"{HEADROOM_SHARE:.0%} headroom",
    }


def _record(pool: _Seen, proposed: tuple[int, int], running: int) -> dict[str, Any]:
    parts = (pool.cloud, pool.account, pool.region, pool.instance_type, pool.workload_class)
    return {
        "pool": "/".join(parts),
        "kind": _KINDS.get(pool.cloud, ""),
        "unit": "nodes",
        "cloud": pool.cloud,
        "region": pool.region,
        "min_proposed": proposed[0],
        "max_proposed": proposed[1],
        "running": running,
    }


def _up(nodes: float) -> int:
    return math.ceil(round(nodes, 6))


def _down(nodes: float) -> int:
    return math.floor(round(nodes, 6))


def _with_headroom(nodes: int) -> int:
    return _up(nodes * (1 + HEADROOM_SHARE))


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
