"""The bundled fleet's export files summed with csv, json and Decimal: a second way to its totals.

The rules are the vendors': what CUR 2.0 says an amortised cost is, GCP's cost plus credits, and the
columns of FOCUS as they stand. Nothing of the program is used.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("billed_cost", "effective_cost", "list_cost", "instance_hours", "gpu_hours")
AWS_GPUS = {"p5.48xlarge": 8, "p5.4xlarge": 1}
AZURE_GPUS = {"ND96isr H100 v5": 8, "NC40ads H100 v5": 1}


@dataclass(frozen=True)
class Row:
    source: str
    period: str
    currency: str
    amounts: tuple[Decimal | None, ...]


def sums(fleet: Path) -> dict[tuple[str, str, str], dict[str, Decimal | int]]:
    """Rows and sums of NAMES by source, billing period and currency."""
    made: dict[tuple[str, str, str], dict[str, Decimal | int]] = {}
    made = defaultdict(lambda: {"source_rows": 0} | {name: Decimal(0) for name in NAMES})
    for row in [*_aws(fleet / "aws"), *_gcp(fleet / "gcp"), *_azure(fleet / "azure")]:
        group = made[row.source, row.period, row.currency]
        group["source_rows"] += 1
        for name, amount in zip(NAMES, row.amounts, strict=True):
            group[name] += amount or Decimal(0)
    return dict(made)


def _amount(text: str | None) -> Decimal | None:
    return Decimal(text) if text else None


def _aws(folder: Path) -> Iterator[Row]:
    for path in folder.rglob("*.csv.gz"):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                kind, usage = line["line_item_line_item_type"], line["line_item_usage_type"]
                hours, gpus = Decimal(0), 0
                machine = "BoxUsage:" in usage or "SpotUsage:" in usage
                if machine and kind in ("Usage", "SavingsPlanCoveredUsage"):
                    hours = Decimal(line["line_item_usage_amount"])
                    gpus = AWS_GPUS[usage.rpartition(":")[2]]
                yield Row(
                    "aws",
                    line["bill_billing_period_start_date"][:7],
                    line["line_item_currency_code"],
                    (
                        Decimal(line["line_item_unblended_cost"]),
                        _amortised(kind, line),
                        _amount(line["pricing_public_on_demand_cost"]),
                        hours,
                        hours * gpus,
                    ),
                )


def _amortised(kind: str, line: dict[str, str]) -> Decimal:
    if kind == "SavingsPlanCoveredUsage":
        return Decimal(line["savings_plan_savings_plan_effective_cost"])
    if kind == "SavingsPlanNegation":
        return Decimal(0)
    if kind == "SavingsPlanRecurringFee":
        whole = Decimal(line["savings_plan_total_commitment_to_date"])
        return whole - Decimal(line["savings_plan_used_commitment"])
    return Decimal(line["line_item_unblended_cost"])


def _gcp(folder: Path) -> Iterator[Row]:
    for path in folder.rglob("*.json.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for text in file:
                line = json.loads(text, parse_float=Decimal, parse_int=Decimal)
                month = line["invoice"]["month"]
                credit = sum((one["amount"] for one in line["credits"]), Decimal(0))
                net, listed = line["cost"] + credit, line.get("cost_at_list")
                hours, gpus = Decimal(0), 8
                if "H100 80GB GPU" in line["sku"]["description"]:
                    labels = {one["key"]: one["value"] for one in line["system_labels"]}
                    assert labels["compute.googleapis.com/machine_spec"] == "a3-highgpu-8g"
                    hours = line["usage"]["amount_in_pricing_units"]
                yield Row(
                    "gcp",
                    f"{month[:4]}-{month[4:]}",
                    line["currency"],
                    (net, net, listed, hours / gpus, hours),
                )


def _azure(folder: Path) -> Iterator[Row]:
    for path in folder.rglob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in csv.DictReader(file):
                hours, gpus = Decimal(0), 0
                if line["ConsumedUnit"] == "Hours":
                    hours, gpus = (
                        Decimal(line["ConsumedQuantity"]),
                        AZURE_GPUS[line["x_SkuMeterName"]],
                    )
                yield Row(
                    "azure",
                    line["BillingPeriodStart"][:7],
                    line["BillingCurrency"],
                    (
                        _amount(line["BilledCost"]),
                        _amount(line["EffectiveCost"]),
                        _amount(line["ListCost"]),
                        hours,
                        hours * gpus,
                    ),
                )
