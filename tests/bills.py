"""Small FLEET_HOURS frames made by hand, for tests of the planning core."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd

from data.frames import conform
from data.hours import Window, day_start
from data.schema import COMMITMENTS, FLEET_HOURS, GPU_SHAPES, OFFERS

START = datetime(2026, 9, 1, tzinfo=UTC)
NODE = {
    "cloud": "aws",
    "account": "111122223333",
    "region": "us-east-1",
    "instance_type": "p5.48xlarge",
    "gpu_model": "H100-SXM5-80GB",
    "gpu_family": "H100",
    "gpu_count": 8,
    "workload_class": "training",
    "purchase_option": "on_demand",
    "managed_service": False,
    "state": "busy",
    "currency": "USD",
    "stoppable": False,
    "estimated": False,
}


def window(days: int = 1) -> Window:
    first = date(2026, 9, 1)
    return Window(day_start(first), day_start(first + timedelta(days=days)))


def node_hours(
    instance: str,
    hours: range,
    rate: str = "6.88",
    gpus: int = 8,
    needed: float | None = None,
    **more: Any,
) -> list[dict[str, Any]]:
    """One row per hour: `gpus` GPU-hours at `rate` USD each, of which `needed` are needed."""
    rows = []
    for hour in hours:
        row = {**NODE, **more}
        row["instance_id"] = instance
        row["hour_start"] = START + timedelta(hours=hour)
        row["gpu_hours"] = Decimal(gpus)
        row["needed_gpu_hours"] = Decimal(str(gpus if needed is None else needed))
        row["cost"] = Decimal(rate) * gpus
        rows.append(row)
    return rows


def fleet(*parts: list[dict[str, Any]]) -> pd.DataFrame:
    return conform(pd.DataFrame([row for part in parts for row in part]), FLEET_HOURS)


def as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    names = ["gpu_hours", "needed_gpu_hours", "cost"]
    return frame.assign(**{name: frame[name].astype(float) for name in names})


def price(option: str, usd_per_gpu_hour: float, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p5.48xlarge",
        "gpu_model": "H100-SXM5-80GB",
        "gpus": 8,
        "gpu_memory_gib": 80,
        "vcpus": 192,
        "memory_gib": 2048,
        "purchase_option": option,
        "payment_option": "monthly" if option.startswith("reserved") else "none",
        "source": "made for a test",
        "as_of": date(2026, 8, 1),
        "origin": "override",
        "status": "used",
        **more,
    }
    row["usd_per_instance_hour"] = Decimal(str(usd_per_gpu_hour)) * int(row["gpus"])
    return row


def offers(*rows: dict[str, Any]) -> pd.DataFrame:
    return conform(pd.DataFrame(list(rows)), OFFERS)


def shapes() -> pd.DataFrame:
    row = {
        "cloud": "aws",
        "instance_type": "p5.48xlarge",
        "family": "p5",
        "gpu_model": "H100-SXM5-80GB",
        "gpu_family": "H100",
        "gpus": 8,
        "gpu_memory_gib": 80,
        "vcpus": 192,
        "memory_gib": 2048,
        "interconnect": "nvswitch",
        "network_gbps": 3200,
        "orderable_as": "on_demand;spot;reserved",
        "managed_service": False,
        "source": "made for a test",
        "as_of": date(2026, 8, 1),
    }
    return conform(pd.DataFrame([row]), GPU_SHAPES)


def commitments(*rows: dict[str, Any]) -> pd.DataFrame:
    base = {"unit": "u", "cloud": "aws", "account": "111122223333", "export_id": "d"}
    full = [{**base, "source_row_no": n, **row} for n, row in enumerate(rows, start=1)]
    return conform(pd.DataFrame(full, columns=COMMITMENTS.names), COMMITMENTS)
