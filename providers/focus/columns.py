"""Which columns of a FOCUS dataset are read, by the names of versions 1.0 to 1.4.

Source: FOCUS specification, Cost and Usage dataset, versions 1.0 to 1.4, read 2026-11. Extra
columns of a provider start with `x_`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from providers.files.expressions import first_text, require

if TYPE_CHECKING:
    from collections.abc import Sequence

# Our name -> columns of which the first that is not empty counts.
TEXTS: dict[str, tuple[str, ...]] = {
    "provider": ("ServiceProviderName", "ProviderName", "Provider"),
    "publisher": ("PublisherName",),
    "billing_account": ("BillingAccountId",),
    "account": ("SubAccountId",),
    "currency": ("BillingCurrency",),
    "period": ("BillingPeriodStart",),
    "invoice": ("InvoiceId",),
    "category": ("ChargeCategory",),
    "charge_class": ("ChargeClass",),
    "description": ("ChargeDescription",),
    "region": ("RegionId", "Region", "RegionName"),
    "zone": ("AvailabilityZone",),
    "resource": ("ResourceId",),
    "resource_name": ("ResourceName",),
    "service": ("ServiceName",),
    "sku": ("SkuId",),
    "meter": ("SkuMeter", "x_SkuMeterName", "x_MeterName"),
    "meter_category": ("x_SkuMeterCategory", "x_MeterCategory"),
    "sku_details": ("SkuPriceDetails",),
    "x_details": ("x_SkuDetails", "x_SkuPriceDetails", "x_AdditionalInfo"),
    "x_type": ("x_InstanceType", "x_SkuInstanceType", "x_MachineType", "x_MachineSpec"),
    "x_usage_type": ("x_UsageType",),
    "unit": ("ConsumedUnit",),
    "pricing": ("PricingCategory",),
    "commitment": ("CommitmentDiscountId",),
    "commitment_category": ("CommitmentDiscountCategory",),
    "commitment_type": ("CommitmentDiscountType",),
    "commitment_status": ("CommitmentDiscountStatus",),
    "capacity": ("CapacityReservationId",),
    "capacity_status": ("CapacityReservationStatus",),
    "tags": ("Tags",),
}
# Of these, the ones that hold a JSON object.
DETAILS = ("sku_details", "x_details")
TIMES: dict[str, tuple[str, ...]] = {
    "start": ("ChargePeriodStart",),
    "end": ("ChargePeriodEnd",),
}
AMOUNTS: dict[str, tuple[str, ...]] = {
    "quantity": ("ConsumedQuantity",),
    "billed": ("BilledCost",),
    "effective": ("EffectiveCost",),
    "list": ("ListCost",),
}
REQUIRED = ("category", "start", "end", "billed", "effective")
NAMES = {**TEXTS, **TIMES, **AMOUNTS}


def check_columns(columns: Sequence[str]) -> None:
    """Nothing, if the dataset can be read; else DataError with every missing column."""
    require(columns, {NAMES[ours][0]: NAMES[ours] for ours in REQUIRED}, "FOCUS")


def text_of(raw: Any, ours: str) -> Any:
    """Our column as text; null where the files do not have it."""
    return first_text(raw, *NAMES[ours])
