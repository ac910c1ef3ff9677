"""Runs of Azure exports as Cost Management writes them, put into any container, and pulled.

Made by us in the public layout: no public container of exports exists.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from data.store import DeliveryResult, Store
from data.totals import totals
from providers.azure.fetch import fetch
from providers.fetch.contract import Fetched, FetchTask

if TYPE_CHECKING:
    from pathlib import Path

SUBSCRIPTION = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
VM = (f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute"
      "/virtualMachines/train-1")  # fmt: skip
SCOPE = "/providers/Microsoft.Billing/billingAccounts/0086115"
TYPES = {"actual": "ActualCost", "amortized": "AmortizedCost", "focus": "FocusCost"}
# One VM-day of an H100 node on demand in the layout of an Enterprise Agreement.
EA = {
    "BillingAccountId": "0086115", "BillingPeriodStartDate": "11/01/2026",
    "BillingPeriodEndDate": "11/30/2026", "SubscriptionId": SUBSCRIPTION, "Date": "11/01/2026",
    "MeterId": "m-1", "MeterCategory": "Virtual Machines", "MeterName": "ND96isr H100 v5",
    "MeterSubCategory": "NDsr H100 v5 Series", "Quantity": "24", "UnitOfMeasure": "1 Hour",
    "CostInBillingCurrency": "100", "PayGPrice": "98.32", "BillingCurrency": "USD",
    "ResourceLocation": "EastUS", "ConsumedService": "Microsoft.Compute", "ResourceId": VM,
    "AdditionalInfo": '{"ServiceType":"Standard_ND96isr_H100_v5"}', "ChargeType": "Usage",
    "PricingModel": "OnDemand", "ReservationId": "",
}  # fmt: skip
# The same in the layout of a Microsoft Customer Agreement.
MCA = {
    "billingAccountId": "0086115", "billingPeriodStartDate": "11/01/2026",
    "billingPeriodEndDate": "11/30/2026", "SubscriptionId": SUBSCRIPTION, "date": "11/01/2026",
    "meterId": "m-1", "meterCategory": "Virtual Machines", "meterName": "ND96isr H100 v5",
    "quantity": "24", "unitOfMeasure": "1 Hour", "costInBillingCurrency": "100",
    "billingCurrency": "USD", "resourceLocation": "EastUS", "InstanceName": VM,
    "additionalInfo": '{"ServiceType":"Standard_ND96isr_H100_v5"}', "chargeType": "Usage",
    "pricingModel": "OnDemand",
}  # fmt: skip
FOCUS = {
    "ProviderName": "Microsoft", "BillingAccountId": SCOPE, "BillingCurrency": "USD",
    "SubAccountId": f"/subscriptions/{SUBSCRIPTION}", "BillingPeriodStart": "2026-11-01T00:00:00Z",
    "BillingPeriodEnd": "2026-12-01T00:00:00Z", "ChargePeriodStart": "2026-11-01T00:00:00Z",
    "ChargePeriodEnd": "2026-11-02T00:00:00Z", "ChargeCategory": "Usage", "ChargeClass": "",
    "ChargeDescription": "", "RegionId": "eastus", "ResourceId": VM.lower(), "ServiceName":
    "Virtual Machines", "x_SkuMeterName": "ND96isr H100 v5", "ConsumedQuantity": "24",
    "ConsumedUnit": "Hours", "PricingCategory": "Standard", "CommitmentDiscountId": "",
    "CommitmentDiscountCategory": "", "CommitmentDiscountType": "", "CommitmentDiscountStatus": "",
    "BilledCost": "100", "EffectiveCost": "100", "ListCost": "100", "Tags": "",
}  # fmt: skip


class Bucket(Protocol):
    """A container that is written to as the exports write, and its address."""

    address: str

    def put(self, name: str, content: bytes) -> None: ...


@dataclass(frozen=True)
class Run:
    """One run of one export over one month; `rows` in parts, `form` csv, csv.gz or parquet."""

    run: str
    submitted: str
    parts: tuple[tuple[dict[str, Any], ...], ...]
    export: str = "gpu-actual"
    view: str = "actual"
    form: str = "csv"
    month: str = "20261101-20261130"
    root: str = "daily"
    folder: str | None = None
    leave_out: tuple[int, ...] = field(default=())

    def put(self, bucket: Bucket) -> Run:
        """Write parts, then the manifest, which comes last; `leave_out` parts never come."""
        home = f"{self.root}/{self.export}/{self.month}/{self.folder or self.run}"
        blobs = []
        for number, rows in enumerate(self.parts, start=1):
            name, content = f"{home}/part_1_{number:04}.{self.form}", encoded(rows, self.form)
            blobs.append({"blobName": name, "byteCount": len(content), "dataRowCount": len(rows),
                          "headerRowCount": 1})  # fmt: skip
            if number not in self.leave_out:
                bucket.put(name, content)
        bucket.put(f"{home}/manifest.json", json.dumps(self._manifest(blobs)).encode("utf-8-sig"))
        return self

    def _manifest(self, blobs: list[dict[str, Any]]) -> dict[str, Any]:
        first, last = (f"{d[:4]}-{d[4:6]}-{d[6:]}T00:00:00" for d in self.month.split("-"))
        return {
            "manifestVersion": "2024-04-01",
            "byteCount": sum(one["byteCount"] for one in blobs),
            "blobCount": len(blobs),
            "dataRowCount": sum(one["dataRowCount"] for one in blobs),
            "exportConfig": {
                "exportName": self.export, "dataVersion": "2023-05-01",
                "resourceId": f"{SCOPE}/providers/Microsoft.CostManagement/exports/{self.export}",
                "apiVersion": "2023-07-01-preview", "type": TYPES.get(self.view, self.view),
                "timeFrame": "MonthToDate", "granularity": "Daily",
            },
            "deliveryConfig": {
                "partitionData": True, "dataOverwriteBehavior": "CreateNewReport",
                "fileFormat": "Parquet" if self.form == "parquet" else "Csv",
                "compressionMode": {"csv.gz": "Gzip", "parquet": "Snappy"}.get(self.form, "None"),
                "rootFolderPath": self.root,
            },
            "runInfo": {"executionType": "Scheduled", "submittedTime": self.submitted,
                        "runId": self.run, "startDate": first, "endDate": last},
            "blobs": blobs,
        }  # fmt: skip


def days(*costs: str, base: dict[str, str] = EA, **more: str) -> tuple[dict[str, str], ...]:
    """One row a day from 1 November on, at these costs."""
    cost = next(name for name in base if name.lower() in ("costinbillingcurrency", "cost"))
    at = next(name for name in base if name.lower() == "date")
    return tuple(
        {**base, at: f"11/{number:02}/2026", cost: value, **more}
        for number, value in enumerate(costs, start=1)
    )


def encoded(rows: tuple[dict[str, Any], ...], form: str) -> bytes:
    """The rows as a file of the form; Parquet has typed days and decimals, as Azure writes it."""
    if form == "parquet":
        columns = {name: [_typed(name, row[name]) for row in rows] for name in rows[0]}
        target = io.BytesIO()
        pq.write_table(pa.table(columns), target, compression="snappy")
        return target.getvalue()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    content = text.getvalue().encode("utf-8-sig")
    return gzip.compress(content, mtime=0) if form == "csv.gz" else content


def _typed(name: str, cell: str) -> Any:
    if name in ("Date", "BillingPeriodStartDate", "BillingPeriodEndDate"):
        month, day, year = map(int, cell.split("/"))
        return date(year, month, day)
    if name in ("Quantity", "CostInBillingCurrency", "PayGPrice"):
        return Decimal(cell).quantize(Decimal("0.000000000001"))
    return cell


@dataclass
class Puller:
    """A store that the container is pulled into, again and again."""

    bucket: Bucket
    folder: Path
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Store.open(self.folder / "store")

    def pull(self, **options: Any) -> Fetched:
        told = {"kind": "azure", "billing": f"{self.bucket.address}/daily", **self.options}
        landing = self.folder / "landing"
        task = FetchTask("az", {**told, **options}, self.store, landing, date(2026, 11, 30))
        return fetch(task)

    def sums(self, *by: str) -> list[list[Any]]:
        """Source rows, billed and effective cost and GPU-hours by the columns."""
        by = by or ("source",)
        self.store.refresh()
        frame = totals(self.store.table("billing"), list(by))
        names = [*by, "source_rows", "billed_cost", "effective_cost", "gpu_hours"]
        return [[row[name] for name in names] for row in frame.to_dict("records")]


def told(fetched: Fetched) -> list[tuple[str, str]]:
    """Status and dataset of each delivery."""
    return [(str(one.status), one.dataset) for one in fetched.deliveries]


def reasons(fetched: Fetched) -> str:
    return "; ".join(str(one.reason) for one in fetched.deliveries)


def month_to_date_runs_are_versions(pull: Puller) -> DeliveryResult:
    """BL-01: three nights of one month-to-date export, pulled each night, then again."""
    day1 = Run("r1", "2026-11-02T03:00:00Z", (days("100"),))
    nights = (day1, replace(day1, run="r2", submitted="2026-11-03T03:00:00Z",
                            parts=(days("100", "110"),)),
              replace(day1, run="r3", submitted="2026-11-04T03:00:00.1234567Z",
                      parts=(days("100", "110"), days("100", "110", "90")[2:])))  # fmt: skip
    for night, cost in zip(nights, (100, 210, 300), strict=True):
        night.put(pull.bucket)
        fetched = pull.pull()
        loaded = [one for one in fetched.deliveries if str(one.status) == "loaded"]
        assert len(loaded) == 1, reasons(fetched)
        assert pull.sums() == [["azure", len([r for p in night.parts for r in p]), cost, None,
                                sum(192 for p in night.parts for _ in p)]]  # fmt: skip
    again = pull.pull()
    assert (again.objects, again.bytes) == (0, 0)
    assert told(again) == [("unchanged", "actual")]
    # 100 + 110 + 90, not 100 + 210 + 300 = 610; three days of 24 hours and 8 GPUs.
    assert pull.sums() == [["azure", 3, Decimal(300), None, Decimal(576)]]
    return loaded[0]
