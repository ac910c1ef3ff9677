"""Azure and GCP exports through the whole way into the store. The rows are made by us."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.store import Store
from providers.files.loading import load
from tests.exports import csv_file, json_lines

if TYPE_CHECKING:
    from pathlib import Path

ND = {
    "BillingAccountId": "0086115", "SubscriptionId": "s1", "Date": "09/02/2026",
    "MeterCategory": "Virtual Machines", "MeterSubCategory": "NDsr H100 v5 Series",
    "MeterName": "ND96isr H100 v5", "MeterId": "m-1", "MeterRegion": "US East",
    "Quantity": "2.4", "UnitOfMeasure": "10 Hours", "CostInBillingCurrency": "2359.68",
    "BillingCurrency": "USD", "ConsumedService": "Microsoft.Compute", "ResourceId": "/x/vm-1",
    "AdditionalInfo": "", "ChargeType": "Usage", "PricingModel": "OnDemand",
}  # fmt: skip
A3 = {
    "billing_account_id": "00F3D8", "cost": "80", "currency": "USD", "credits": [],
    "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
    "sku": {"id": "A-1", "description": "Nvidia H100 80GB GPU running in Americas"},
    "usage_start_time": "2026-09-02T10:00:00Z", "usage_end_time": "2026-09-02T11:00:00Z",
    "project": {"id": "ml"}, "location": {"region": "us-central1"},
    "usage": {"amount": 28800, "unit": "seconds", "amount_in_pricing_units": 8,
              "pricing_unit": "hour"},
    "invoice": {"month": "202609"}, "cost_type": "regular",
}  # fmt: skip
SPEC = [{"key": "compute.googleapis.com/machine_spec", "value": "a3-highgpu-8g"}]


def loaded(tmp_path: Path, path: Path) -> tuple[Any, list[dict[str, Any]]]:
    store = Store.open(tmp_path / "store")
    (result,) = load([path], store)
    rows = store.table("billing").order_by("source_row_no").to_pyarrow().to_pylist()
    return result, rows


def test_an_azure_node_day_in_blocks_of_ten_hours_is_192_gpu_hours(tmp_path: Path) -> None:
    result, (row,) = loaded(tmp_path, csv_file(tmp_path / "daily-actual.csv", [ND]))
    assert (result.status, result.dataset, result.warnings) == ("loaded", "actual", ())
    assert (row["instance_type"], row["region"]) == ("Standard_ND96isr_H100_v5", "eastus")
    assert (row["gpu_model"], row["gpu_count"]) == ("H100-SXM5-80GB", 8)
    assert row["gpu_hours"] == Decimal(192)  # 2.4 x 10 h x 8 GPUs
    assert row["unit"] == "azure|0086115|actual|2026-09"


def test_an_unknown_azure_size_that_looks_like_an_h100_is_reported(tmp_path: Path) -> None:
    odd = {**ND, "MeterName": "ND128isr H100 v9"}
    result, (row,) = loaded(tmp_path, csv_file(tmp_path / "daily-actual.csv", [odd]))
    assert row["gpu_hours"] is None
    assert any("ND128isr_H100_v9" in text for text in result.warnings)


def test_a_bad_azure_cost_rejects_the_delivery_and_names_every_cell(tmp_path: Path) -> None:
    rows = [ND, {**ND, "CostInBillingCurrency": "NaN"}, {**ND, "Quantity": "x"}]
    result, stored = loaded(tmp_path, csv_file(tmp_path / "daily-actual.csv", rows))
    assert (result.status, stored) == ("rejected", [])
    assert "row 2, column CostInBillingCurrency" in result.reason
    assert "row 3, column Quantity" in result.reason


def test_gcp_gpu_rows_count_as_the_export_does_with_and_without_machine_type(
    tmp_path: Path,
) -> None:
    rows = [{**A3, "system_labels": SPEC}, A3]
    result, stored = loaded(tmp_path, json_lines(tmp_path / "bq.json", rows))
    assert (result.status, result.dataset) == ("loaded", "standard")
    assert [row["gpu_hours"] for row in stored] == [8, 8]
    assert [row["instance_hours"] for row in stored] == [1, None]
    assert [row["gpu_model"] for row in stored] == ["H100-SXM5-80GB", "H100-SXM5-80GB"]
    assert [row["unit"] for row in stored] == ["gcp|00F3D8|standard|2026-09"] * 2


def test_a_bad_gcp_cost_rejects_the_delivery_and_names_the_cell(tmp_path: Path) -> None:
    rows = [A3, {**A3, "cost": "NaN"}]
    result, stored = loaded(tmp_path, json_lines(tmp_path / "bq.json", rows))
    assert (result.status, stored) == ("rejected", [])
    assert "row 2, column cost: 'NaN' is no number" in result.reason
