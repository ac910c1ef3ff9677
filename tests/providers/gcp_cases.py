"""Rows of GCP exports with H100 machines, made by us: no public file holds any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from providers.gcp.billing import normalise
from tests.exports import Rows, json_lines, normal_form

if TYPE_CHECKING:
    from pathlib import Path

VM = "//compute.googleapis.com/projects/ml/zones/us-central1-a/instances/4711"
ON_DEMAND = "Nvidia H100 80GB GPU running in Americas"
CUD = "COMMITTED_USAGE_DISCOUNT"


def labels(**values: str) -> list[dict[str, str]]:
    return [
        {"key": f"compute.googleapis.com/{key}", "value": value} for key, value in values.items()
    ]


def charge(sku: str, cost: str, **more: Any) -> dict[str, Any]:
    """Made by us: an hour of eight GPUs on an a3-highgpu-8g in the detailed export."""
    row: dict[str, Any] = {
        "billing_account_id": "00F3D8-28D652-3F036F",
        "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
        "sku": {"id": "A-1", "description": sku},
        "usage_start_time": "2026-09-02T10:00:00Z",
        "usage_end_time": "2026-09-02T11:00:00Z",
        "project": {"id": "ml", "number": "42", "name": "ML"},
        "labels": [{"key": "team", "value": "research"}],
        "system_labels": labels(machine_spec="a3-highgpu-8g"),
        "location": {"location": "us-central1", "region": "us-central1", "zone": "us-central1-a"},
        "resource": {"name": "train-1", "global_name": VM},
        "usage": {
            "amount": 28800, "unit": "seconds", "amount_in_pricing_units": 8,
            "pricing_unit": "hour",
        },
        "cost": cost,
        "currency": "USD",
        "credits": [],
        "invoice": {"month": "202609"},
        "cost_type": "regular",
    }  # fmt: skip
    return {**row, **more}


def credit(amount: str | float, kind: str | None = None, name: str = "c") -> dict[str, Any]:
    return {"name": name, "amount": amount, **({"type": kind} if kind else {})}


def read(tmp_path: Path, *rows: dict[str, Any]) -> Rows:
    return normal_form(normalise, json_lines(tmp_path / "export.jsonl", rows), "detailed")
