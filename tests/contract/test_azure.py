"""The contract of billing normalisers for Azure cost exports."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.base import BillingContract

_SAME = {"BillingAccountId": "0086115", "BillingPeriodStartDate": "09/01/2026",
         "BillingPeriodEndDate": "09/30/2026", "SubscriptionId": "s1", "Date": "09/02/2026",
         "MeterCategory": "Virtual Machines", "MeterSubCategory": "NDsr H100 v5 Series",
         "MeterName": "ND96isr H100 v5", "UnitOfMeasure": "1 Hour", "BillingCurrency": "USD",
         "ResourceLocation": "EastUS", "ConsumedService": "Microsoft.Compute",
         "AdditionalInfo": '{"ServiceType":"Standard_ND96isr_H100_v5"}'}  # fmt: skip
# Made by us.
_ROWS = [
    {"ChargeType": "Usage", "PricingModel": "OnDemand", "Quantity": "24", "Cost": "2359.68"},
    {"ChargeType": "Usage", "PricingModel": "Reservation", "Quantity": "24", "Cost": "1.6E-5",
     "ReservationId": "r-1"},
    {"ChargeType": "UnusedReservation", "PricingModel": "Reservation", "Quantity": "1",
     "Cost": "12.123456789012345678", "ReservationId": "r-1"},
    {"ChargeType": "Purchase", "PricingModel": "Reservation", "Quantity": "1", "Cost": "0",
     "ReservationId": "r-1"},
    {"ChargeType": "RoundingAdjustment", "PricingModel": "", "Quantity": "1", "Cost": "-0.01"},
]  # fmt: skip


class TestCostExport(BillingContract):
    datasets: ClassVar = ("actual", "amortized", "azure")
    money: ClassVar = {"billed_cost": "Cost", "effective_cost": "Cost"}

    @staticmethod
    def export_rows(dataset: str) -> list[dict[str, str]]:
        return [{**_SAME, **row} for row in _ROWS]
