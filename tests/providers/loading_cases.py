"""Files to load, and what a store then holds or why it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from data.store import Status, Store
from data.totals import totals
from providers.files.loading import load
from tests.exports import csv_file

if TYPE_CHECKING:
    from pathlib import Path

CUR = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "BoxUsage:p5.48xlarge",
    "line_item_product_code": "AmazonEC2", "bill_payer_account_id": "0011",
    "bill_billing_period_start_date": "2026-11-01T00:00:00Z", "bill_invoice_id": "",
    "line_item_currency_code": "USD", "line_item_resource_id": "i-1",
    "line_item_usage_start_date": "2026-11-02T03:00:00Z",
    "line_item_usage_end_date": "2026-11-02T04:00:00Z", "line_item_usage_amount": "1",
    "pricing_unit": "Hrs", "line_item_unblended_cost": "100",
}  # fmt: skip
AZURE = {
    "BillingAccountId": "86115", "SubscriptionId": "s1", "Date": "11/02/2026",
    "BillingPeriodStartDate": "11/01/2026", "BillingPeriodEndDate": "11/30/2026",
    "MeterCategory": "Virtual Machines", "MeterName": "ND96isr H100 v5", "MeterId": "m",
    "UnitOfMeasure": "1 Hour", "Quantity": "24", "CostInBillingCurrency": "768",
    "BillingCurrency": "USD", "ChargeType": "Usage", "PricingModel": "OnDemand",
}  # fmt: skip


def cur(path: Path, *costs: object, **change: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {**CUR, "line_item_resource_id": f"i-{number}", **change,
         "line_item_unblended_cost": str(cost)}
        for number, cost in enumerate(costs)
    ]  # fmt: skip
    return csv_file(path, rows)


def cost(store: Store) -> list[Any]:
    return list(totals(store.table("billing"), ["source"])["effective_cost"])


def reason_of(store: Store, *paths: Path, **more: Any) -> str:
    (result,) = load(paths, store, **more)
    assert result.status is Status.REJECTED
    assert result.reason is not None
    return result.reason


def azure_run(folder: Path, run: str, day: int, rows: int, stated: int | None) -> Path:
    part = folder / run / "part_0.csv"
    part.parent.mkdir(parents=True)
    csv_file(part, [AZURE] * rows)
    document = {
        "blobs": [{"blobName": f"root/{run}/part_0.csv", "byteCount": part.stat().st_size,
                   "dataRowCount": stated}],
        "exportConfig": {"exportName": "e", "type": "ActualCost",
                         "resourceId": "providers/Microsoft.Billing/billingAccounts/86115"},
        "runInfo": {"runId": run, "submittedTime": f"2026-11-0{day}T00:00:00Z",
                    "startDate": "2026-11-01T00:00:00"},
    }  # fmt: skip
    path = folder / run / "manifest.json"
    path.write_text(json.dumps(document))
    return path
