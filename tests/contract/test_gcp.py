"""The contract of billing normalisers for BigQuery billing exports."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.base import BillingContract

_SAME = {"billing_account_id": "01-02-03", "service.id": "6F81-5844-456A",
         "service.description": "Compute Engine", "sku.id": "S", "project.id": "p1",
         "usage_start_time": "2026-11-02 00:00:00 UTC",
         "usage_end_time": "2026-11-02 01:00:00 UTC", "location.region": "us-central1",
         "usage.pricing_unit": "hour", "usage.unit": "seconds", "currency": "USD",
         "invoice.month": "202611", "cost_type": "regular", "credits": "[]"}  # fmt: skip
_GPU = "Nvidia H100 80GB GPU running in Americas"
# Made by us. Credits are left empty: the sums of costs then stay those of `cost`.
_ROWS = [
    {"sku.description": _GPU, "usage.amount": "28800", "cost": "80.5",
     "usage.amount_in_pricing_units": "8", "cost_at_list": "80.5"},
    {"sku.description": "A3 Instance Core running in Americas", "usage.amount": "748800",
     "usage.amount_in_pricing_units": "208", "cost": "2.3E-5", "cost_at_list": "2.3E-5"},
    {"sku.description": f"Commitment v1: {_GPU} for 1 Year", "usage.amount": "3600",
     "usage.amount_in_pricing_units": "8", "cost": "40.123456789012345678"},
    {"sku.description": "Tax", "cost_type": "tax", "cost": "8"},
]  # fmt: skip


class TestBigQueryExport(BillingContract):
    datasets: ClassVar = ("standard", "detailed")
    money: ClassVar = {"billed_cost": "cost", "effective_cost": "cost", "list_cost": "cost_at_list"}

    @staticmethod
    def export_rows(dataset: str) -> list[dict[str, str]]:
        return [{**_SAME, **row} for row in _ROWS]
