"""The contract of billing normalisers for FOCUS datasets."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.base import BillingContract

_SAME = {"ProviderName": "AWS", "BillingAccountId": "000011112222", "BillingCurrency": "USD",
         "BillingPeriodStart": "2026-11-01T00:00:00Z",
         "ChargePeriodStart": "2026-11-02T00:00:00Z",
         "ChargePeriodEnd": "2026-11-02T01:00:00Z"}  # fmt: skip
# Made by us.
_ROWS = [
    {"ChargeCategory": "Usage", "PricingCategory": "Standard", "ConsumedQuantity": "1",
     "ConsumedUnit": "Hours", "SkuPriceDetails": '{"InstanceType": "p5.48xlarge"}',
     "BilledCost": "98.32", "EffectiveCost": "98.32", "ListCost": "98.32"},
    {"ChargeCategory": "Usage", "PricingCategory": "Committed", "ConsumedQuantity": "1",
     "ConsumedUnit": "Hours", "SkuPriceDetails": '{"InstanceType": "p5.48xlarge"}',
     "CommitmentDiscountId": "c1", "CommitmentDiscountStatus": "Used", "BilledCost": "0",
     "EffectiveCost": "35.2E-7", "ListCost": "98.32", "CommitmentDiscountCategory": "Usage"},
    {"ChargeCategory": "Usage", "PricingCategory": "Committed", "CommitmentDiscountId": "c1",
     "CommitmentDiscountStatus": "Unused", "ConsumedQuantity": "1", "ConsumedUnit": "Hours",
     "SkuPriceDetails": '{"InstanceType": "p5.48xlarge"}', "BilledCost": "0",
     "EffectiveCost": "12.123456789012345678", "ListCost": "0"},
    {"ChargeCategory": "Purchase", "PricingCategory": "Standard", "CommitmentDiscountId": "c1",
     "BilledCost": "100", "EffectiveCost": "0", "ListCost": "100"},
    {"ChargeCategory": "Tax", "BilledCost": "8", "EffectiveCost": "8", "ListCost": "8"},
    {"ChargeCategory": "Credit", "BilledCost": "-5", "EffectiveCost": "-5", "ListCost": "0"},
    {"ChargeCategory": "Adjustment", "BilledCost": "0.5", "EffectiveCost": "0.5"},
]  # fmt: skip


class TestFocus(BillingContract):
    datasets: ClassVar = ("focus",)
    money: ClassVar = {"billed_cost": "BilledCost", "effective_cost": "EffectiveCost",
             "list_cost": "ListCost"}  # fmt: skip

    @staticmethod
    def export_rows(dataset: str) -> list[dict[str, str]]:
        return [{**_SAME, **row} for row in _ROWS]
