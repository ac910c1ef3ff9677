"""The made fleet as a BigQuery extract of Google's detailed export: JSON Lines, gzip, no manifest.

One VM-hour is four rows (GPU, core, RAM, SSD), as Google bills it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.sample import machines, writing
from data.sample.activity import hour_start
from data.sample.charges import A3_SKUS, sku_cost
from data.sample.machines import GCP_PROJECT_NUMBERS, digest
from data.sample.writing import number

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from data.sample.activity import Activity
    from data.sample.charges import Sku
    from data.sample.machines import Machine

TABLE = "gcp_billing_export_resource_v1_" + machines.GCP_BILLING_ACCOUNT.replace("-", "_")
ROWS_PER_PART = 12_000
# Google's month follows US Pacific time; the fleet's 60 days lie within daylight saving time.
_PACIFIC = timedelta(hours=-7)
_GIB = 1024**3

_TEXTS = {
    "on_demand": {
        "gpu": "Nvidia H100 80GB GPU running in Americas",
        "core": "A3 Instance Core running in Americas",
        "ram": "A3 Instance Ram running in Americas",
        "ssd": "SSD backed Local Storage in Iowa",
    },
    "spot": {
        "gpu": "Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas",
        "core": "Spot Preemptible A3 Instance Core running in Americas",
        "ram": "Spot Preemptible A3 Instance Ram running in Americas",
        "ssd": "SSD backed Local Storage attached to Spot Preemptible VMs in Iowa",
    },
}
_UNITS = {
    "gpu": ("seconds", 3600, "hour"),
    "core": ("seconds", 3600, "hour"),
    "ram": ("byte-seconds", 3600 * _GIB, "gibibyte hour"),
    "ssd": ("byte-seconds", 3600 * _GIB, "gibibyte hour"),
}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plain:
    """A row without GPUs: what it is called, for what, how much and for how many hours."""

    service: tuple[str, str]
    sku: str
    resource: str
    cost: Decimal
    hours: int = 1
    free: bool = False


def write(folder: Path, activities: Iterable[Activity], hours: range) -> None:
    """Writes the extract in parts, each a file of JSON Lines."""
    lives = writing.named(activities, "gcp")
    lines = [json.dumps(row, separators=(",", ":")) for row in _rows(lives, hours)]
    for part, first in enumerate(range(0, len(lines), ROWS_PER_PART)):
        text = "\n".join(lines[first : first + ROWS_PER_PART]) + "\n"
        writing.gz(folder / TABLE / f"{TABLE}-{part:012d}.json.gz", text)


def _rows(lives: list[Activity], hours: range) -> list[Json]:
    rows: list[Json] = []
    for hour in hours:
        for life in lives:
            if life.seconds[hour]:
                for sku in A3_SKUS[life.machine.option]:
                    rows.append(_sku_row(life.machine, sku, hour, life.seconds[hour]))
        rows += _calm(hour)
    rows += _monthly(hours)
    return rows


def _sku_row(machine: Machine, sku: Sku, hour: int, seconds: int) -> Json:
    unit, base, pricing_unit = _UNITS[sku.part]
    text = _TEXTS[machine.option][sku.part]
    listed = next(other for other in A3_SKUS["on_demand"] if other.part == sku.part)
    row = _frame(hour, 1, "Compute Engine", text)
    row |= {
        "project": _project(machine.account),
        "labels": [
            {"key": "env", "value": machine.env},
            {"key": "team", "value": machine.team},
            {"key": "workload", "value": machine.workload_class},
        ],
        "system_labels": [
            {"key": "compute.googleapis.com/cores", "value": "208"},
            {"key": "compute.googleapis.com/machine_spec", "value": machine.instance_type},
            {"key": "compute.googleapis.com/memory", "value": str(1872 * 1024)},
        ],
        "location": {
            "location": machine.region,
            "country": "US",
            "region": machine.region,
            "zone": machine.zone,
        },
        "resource": {"name": machine.name, "global_name": machine.resource_id},
        "usage": {
            "amount": float(sku.units * seconds * base // 3600),
            "unit": unit,
            "amount_in_pricing_units": float(sku.units * writing.hours(seconds)),
            "pricing_unit": pricing_unit,
        },
        "cost": float(sku_cost(sku, seconds)),
        "cost_at_list": float(sku_cost(listed, seconds)),
        "price": {
            "list_price": number(listed.usd),
            "effective_price": number(sku.usd),
            "effective_price_default": number(sku.usd),
            "tier_start_amount": "0",
            "unit": pricing_unit,
            "pricing_unit_quantity": "1",
        },
    }
    return row


def _frame(hour: int, length: int, service: str, sku: str) -> Json:
    """What every row has."""
    start = hour_start(hour)
    end = start + timedelta(hours=length)
    numbers = {"Compute Engine": "6F81-5844-456A", "Cloud Storage": "95FF-2EF5-5EA1"}
    return {
        "billing_account_id": machines.GCP_BILLING_ACCOUNT,
        "service": {"id": numbers.get(service, "0000-0000-0000"), "description": service},
        "sku": {"id": _sku_id(sku), "description": sku},
        "usage_start_time": _bigquery(start),
        "usage_end_time": _bigquery(end),
        "export_time": _bigquery(end + timedelta(hours=5)),
        "currency": "USD",
        "currency_conversion_rate": 1.0,
        "credits": [],
        "invoice": {"month": f"{start + _PACIFIC:%Y%m}"},
        "cost_type": "regular",
        "transaction_type": "GOOGLE",
        "seller_name": "Google",
    }


def _calm(hour: int) -> list[Json]:
    """Rows without GPUs: a disk every hour, a bucket's downloads once a day, half of it free."""
    disk = "//compute.googleapis.com/projects/410000000002/zones/us-central1-a/disk/" + str(
        int(digest("disk")[:14], 16) + 10**18
    )
    rows = [
        _plain_row(
            hour,
            Plain(("Compute Engine", "GCE"), "SSD backed PD Capacity", disk, Decimal("0.2329")),
        )
    ]
    if hour % 24 == 0:
        bucket = "//storage.googleapis.com/projects/_/buckets/example-datasets"
        sku = "Download Worldwide Destinations"
        cost = Decimal("1.20") + Decimal("0.12") * (hour // 24 % 7)
        rows.append(_plain_row(hour, Plain(("Cloud Storage", "GCS"), sku, bucket, cost, 24, True)))
    return rows


def _plain_row(hour: int, plain: Plain) -> Json:
    row = _frame(hour, plain.hours, plain.service[0], plain.sku)
    row |= {
        "project": _project("example-ml-serving"),
        "labels": [],
        "system_labels": [],
        "location": {"location": "us-central1", "country": "US", "region": "us-central1"},
        "resource": {
            "name": plain.resource.rsplit("/", 1)[-1],
            "global_name": plain.resource,
        },
        "usage": {
            "amount": float(plain.cost * 10),
            "unit": "gibibyte",
            "amount_in_pricing_units": float(plain.cost * 10),
            "pricing_unit": "gibibyte",
        },
        "cost": float(plain.cost),
        "cost_at_list": float(plain.cost),
    }
    if plain.free:
        row["credits"] = [
            {
                "id": "made-free-tier",
                "full_name": "Free tier of the made fleet",
                "type": "FREE_TIER",
                "name": "Free tier",
                "amount": -0.6,
            }
        ]
    return row


def _monthly(hours: range) -> list[Json]:
    """The tax of each invoice month and a rounding row; no project, as such charges have none."""
    rows = []
    first, end = hour_start(hours.start) + _PACIFIC, hour_start(hours.stop) + _PACIFIC
    for start, after in writing.months(first, end):
        if after >= end:
            continue  # an open month is not taxed yet
        last = int((after - _PACIFIC - hour_start(0)) / timedelta(hours=1)) - 1
        for kind, text, cost in (("tax", "Tax", 41.3), ("rounding_error", "Rounding error", 0.01)):
            row = _frame(last, 1, "Invoice", text)
            row |= {
                "invoice": {"month": f"{start:%Y%m}"},
                "cost_type": kind,
                "cost": cost,
                "labels": [],
                "system_labels": [],
                "location": {},
                "usage": {"amount": 0.0, "unit": "requests", "amount_in_pricing_units": 0.0},
            }
            rows.append(row)
    return rows


def _project(name: str) -> Json:
    return {"id": name, "number": GCP_PROJECT_NUMBERS[name], "name": name, "labels": []}


def _sku_id(text: str) -> str:
    made = digest("sku " + text).upper()
    return f"{made[:4]}-{made[4:8]}-{made[8:12]}"


def _bigquery(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
