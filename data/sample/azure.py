"""The made fleet as Azure Cost Management writes it: FOCUS 1.2, daily rows, a manifest a month.

Each month holds its newest run only: month to date for the open month, the last run for a
closed one.
"""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from data.sample import machines, writing
from data.sample.activity import hour_start
from data.sample.charges import charges, reserved_rate, unused_reservation
from data.sample.machines import digest, list_price
from data.sample.writing import number, zulu

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from data.sample.activity import Activity
    from data.sample.charges import Charge
    from data.sample.machines import Machine

EXPORT = "h100-fleet-focus"
ROOT = "exports/focuscost"
COLUMNS = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType",
    "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass",
    "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName",
    "CommitmentDiscountStatus", "CommitmentDiscountType", "ConsumedQuantity", "ConsumedUnit",
    "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceId", "InvoiceIssuerName",
    "ListCost", "ListUnitPrice", "PricingCategory", "PricingCurrency", "PricingQuantity",
    "PricingUnit", "ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceId",
    "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "ServiceSubcategory",
    "SkuId", "SkuMeter", "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags",
    "x_AmortizationClass", "x_BillingAccountId", "x_EffectiveUnitPrice", "x_PricingBlockSize",
    "x_PricingUnitDescription", "x_ResourceGroupName", "x_SkuDetails", "x_SkuMeterCategory",
    "x_SkuMeterId", "x_SkuMeterName", "x_SkuMeterSubcategory", "x_SkuRegion", "x_SkuTerm",
)  # fmt: skip
_METERS = {
    "Standard_ND96isr_H100_v5": "ND96isr H100 v5",
    "Standard_NC40ads_H100_v5": "NC40ads H100 v5",
}
_VCPUS = {"Standard_ND96isr_H100_v5": 96, "Standard_NC40ads_H100_v5": 40}
_DISK_USD_PER_DAY = Decimal("4.8624")
_TRAFFIC_USD_PER_DAY = Decimal("7.308")
_DAY = timedelta(days=1)
Row = dict[str, str]


def write(folder: Path, activities: Iterable[Activity], hours: range) -> None:
    """Writes the newest run of each month, with its manifest."""
    found = charges(writing.named(activities, "azure"), hours)
    first, end = hour_start(hours.start), hour_start(hours.stop)
    for start, after in writing.months(first, end):
        inside = [hour for hour in hours if start <= hour_start(hour) < after]
        span = range(inside[0], inside[-1] + 1)
        rows = _month([charge for charge in found if charge.hour in span], span, start)
        final = after < end
        for row in rows:
            _dress(row, start, after, final)
        submitted = after + timedelta(days=4, hours=6) if final else end + timedelta(hours=6)
        _deliver(folder / EXPORT, start, submitted, rows)


def monthly_payment() -> Decimal:
    """What the reservation takes each month: a twelfth of the year's hours at its rate."""
    return machines.RESERVED_NODES * reserved_rate() * 8760 / 12


def _deliver(root: Path, start: datetime, submitted: datetime, rows: list[Row]) -> None:
    last = (start + timedelta(days=31)).replace(day=1) - _DAY
    period = f"{start:%Y%m%d}-{last:%Y%m%d}"
    made = digest(f"{EXPORT} {period}")
    run = "-".join((made[:8], made[8:12], made[12:16], made[16:20], made[20:32]))
    # Not compressed: the manifest states the size, which must not hang on a build of zlib.
    size = writing.plain(root / period / run / "part_0_0001.csv", writing.table(COLUMNS, rows))
    manifest = {
        "manifestVersion": "2024-04-01",
        "byteCount": size,
        "blobCount": 1,
        "dataRowCount": len(rows),
        "exportConfig": {
            "exportName": EXPORT,
            "resourceId": f"/providers/Microsoft.Billing/billingAccounts/"
            f"{machines.AZURE_BILLING_ACCOUNT}/providers/Microsoft.CostManagement/exports/{EXPORT}",
            "dataVersion": "1.2-preview",
            "apiVersion": "2023-07-01-preview",
            "type": "FocusCost",
            "timeFrame": "MonthToDate",
            "granularity": "Daily",
        },
        "deliveryConfig": {
            "partitionData": True,
            "dataOverwriteBehavior": "OverwritePreviousReport",
            "fileFormat": "Csv",
            "compressionMode": "None",
            "containerUri": "/subscriptions/" + machines.AZURE_SUBSCRIPTION,
            "rootFolderPath": ROOT,
        },
        "runInfo": {
            "executionType": "Scheduled",
            "submittedTime": submitted.strftime("%Y-%m-%dT%H:%M:%S.0000000Z"),
            "runId": run,
            "startDate": f"{start:%Y-%m-%dT00:00:00}",
            "endDate": f"{last:%Y-%m-%dT00:00:00}",
        },
        "blobs": [
            {
                "blobName": f"{ROOT}/{EXPORT}/{period}/{run}/part_0_0001.csv",
                "byteCount": size,
                "dataRowCount": len(rows),
                "headerRowCount": 1,
            }
        ],
    }
    writing.document(root / period / run / "manifest.json", manifest)


def _month(found: list[Charge], hours: range, start: datetime) -> list[Row]:
    rows = [_purchase(start)]
    left = unused_reservation(found, hours)
    for first in range(hours.start, hours.stop, 24):
        day: dict[str, list[Charge]] = {}
        for charge in found:
            if first <= charge.hour < first + 24:
                day.setdefault(charge.machine.name, []).append(charge)
        for group in day.values():
            rows += [_machine(group, first), _disk(group[0].machine, first)]
        unused = left[first // 24]
        if unused:
            rows.append(_unused(unused, first))
        rows.append(_traffic(first))
    return rows


def _machine(group: list[Charge], first: int) -> Row:
    machine = group[0].machine
    reserved = machine.option == "reserved"
    quantity = sum((charge.instance_hours for charge in group), Decimal(0))
    cost = sum((charge.effective_cost for charge in group), Decimal(0))
    price = list_price(machine)
    row = _vm(machine) | {
        "BilledCost": "0" if reserved else number(cost),
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{_METERS[machine.instance_type]} - US East",
        "ChargeFrequency": "Usage-Based",
        "ConsumedQuantity": number(quantity),
        "ConsumedUnit": "Hours",
        "ContractedCost": number(price * quantity),
        "ContractedUnitPrice": number(price),
        "EffectiveCost": number(cost),
        "ListCost": number(price * quantity),
        "ListUnitPrice": number(price),
        "PricingCategory": "Committed" if reserved else "Standard",
        "PricingQuantity": number(quantity),
        "PricingUnit": "Hours",
        "x_EffectiveUnitPrice": number(reserved_rate() if reserved else price),
        "Tags": json.dumps(
            {
                "env": machine.env,
                "owner": machine.owner,
                "team": machine.team,
                "workload": machine.workload_class,
            }
        ),
    }
    if reserved:
        row |= _commitment("Used") | {"x_AmortizationClass": "Amortized Charge"}
    return _day_of(row, first)


def _vm(machine: Machine) -> Row:
    details = {
        "UsageType": "ComputeHR",
        "ServiceType": machine.instance_type,
        "VMName": machine.name,
        "VCPUs": _VCPUS[machine.instance_type],
    }
    meter = _METERS[machine.instance_type]
    return {
        "ResourceId": machine.resource_id,
        "ResourceName": machine.name,
        "ResourceType": "Virtual machine",
        "ServiceCategory": "Compute",
        "ServiceName": "Virtual Machines",
        "ServiceSubcategory": "Virtual Machines",
        "SkuId": "DZH318Z0" + digest(meter)[:4].upper(),
        "SkuMeter": meter,
        "SkuPriceId": "DZH318Z0" + digest(meter)[:8].upper(),
        "x_PricingBlockSize": "1",
        "x_PricingUnitDescription": "1 Hour",
        "x_ResourceGroupName": f"rg-{machine.team}",
        "x_SkuDetails": json.dumps(details, separators=(",", ":")),
        "x_SkuMeterCategory": "Virtual Machines",
        "x_SkuMeterId": digest("meter " + meter)[:32],
        "x_SkuMeterName": meter,
        "x_SkuMeterSubcategory": meter.split()[0][:2] + "srH100v5 Series",
        "x_SkuRegion": "EastUS",
    }


def _commitment(status: str) -> Row:
    return {
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountId": machines.RESERVATION_ID,
        "CommitmentDiscountName": "nd-serve-1y",
        "CommitmentDiscountStatus": status,
        "CommitmentDiscountType": "Reservation",
        "x_SkuTerm": "12",
    }


def _unused(quantity: Decimal, first: int) -> Row:
    row = _commitment("Unused") | {
        "BilledCost": "0",
        "ChargeCategory": "Usage",
        "ChargeDescription": "Unused part of reservation nd-serve-1y",
        "ChargeFrequency": "Usage-Based",
        "ContractedCost": "0",
        "EffectiveCost": number(quantity * reserved_rate()),
        "ListCost": "0",
        "PricingCategory": "Committed",
        "PricingQuantity": number(quantity),
        "PricingUnit": "Hours",
        "ResourceId": machines.RESERVATION_ID,
        "ResourceName": "nd-serve-1y",
        "ResourceType": "Reservation",
        "ServiceCategory": "Compute",
        "ServiceName": "Virtual Machines",
        "SkuMeter": "ND96isr H100 v5",
        "x_AmortizationClass": "Amortized Charge",
        "x_SkuDetails": '{"ServiceType":"Standard_ND96isr_H100_v5"}',
        "x_SkuMeterName": "ND96isr H100 v5",
        "Tags": "{}",
    }
    return _day_of(row, first)


def _purchase(start: datetime) -> Row:
    """The month's payment for the reservation; its cost is in the used and unused rows."""
    cost = number(monthly_payment())
    row = _commitment("") | {
        "BilledCost": cost,
        "ChargeCategory": "Purchase",
        "ChargeDescription": "Reserved VM Instance, Standard_ND96isr_H100_v5, US East, 1 Year",
        "ChargeFrequency": "Recurring",
        "ContractedCost": cost,
        "ContractedUnitPrice": number(monthly_payment() / machines.RESERVED_NODES),
        "EffectiveCost": "0",
        "ListCost": cost,
        "ListUnitPrice": number(monthly_payment() / machines.RESERVED_NODES),
        "PricingCategory": "Standard",
        "PricingQuantity": str(machines.RESERVED_NODES),
        "PricingUnit": "Reservations",
        "ResourceId": machines.RESERVATION_ID,
        "ResourceName": "nd-serve-1y",
        "ResourceType": "Reservation",
        "ServiceCategory": "Compute",
        "ServiceName": "Virtual Machines",
        "x_AmortizationClass": "Principal",
        "Tags": "{}",
        "ChargePeriodStart": zulu(start),
        "ChargePeriodEnd": zulu(start + _DAY),
    }
    return row


def _disk(machine: Machine, first: int) -> Row:
    disk = machine.resource_id.replace("virtualmachines", "disks") + "-osdisk"
    kind = ("Storage", "Azure Disk Storage", "Disk", "P30 LRS Disk", _DISK_USD_PER_DAY)
    tags = json.dumps({"env": machine.env, "team": machine.team})
    return _plain(disk, kind, first) | {"Tags": tags}


def _traffic(first: int) -> Row:
    gateway = (
        f"/subscriptions/{machines.AZURE_SUBSCRIPTION}/resourcegroups/rg-serving"
        "/providers/microsoft.network/natgateways/nat-serving"
    )
    kind = ("Networking", "NAT Gateway", "NAT gateway", "Standard Data Processed")
    return _plain(gateway, (*kind, _TRAFFIC_USD_PER_DAY), first)


def _plain(resource: str, kind: tuple[str, str, str, str, Decimal], first: int) -> Row:
    """A row without GPUs, at its list price."""
    category, service, resource_type, meter, usd = kind
    cost = number(usd)
    row = dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), cost) | {
        "ChargeCategory": "Usage",
        "ChargeDescription": meter,
        "ChargeFrequency": "Usage-Based",
        "ConsumedQuantity": "1",
        "ConsumedUnit": "Units",
        "ContractedUnitPrice": cost,
        "ListUnitPrice": cost,
        "PricingCategory": "Standard",
        "PricingQuantity": "1",
        "PricingUnit": "Units",
        "ResourceId": resource,
        "ResourceName": resource.rsplit("/", 1)[-1],
        "ResourceType": resource_type,
        "ServiceCategory": category,
        "ServiceName": service,
        "SkuMeter": meter,
        "x_SkuMeterName": meter,
        "x_SkuMeterCategory": service,
        "Tags": "{}",
    }
    return _day_of(row, first)


def _day_of(row: Row, first: int) -> Row:
    start = hour_start(first)
    return row | {"ChargePeriodStart": zulu(start), "ChargePeriodEnd": zulu(start + _DAY)}


def _dress(row: Row, start: datetime, after: datetime, final: bool) -> None:
    """Adds what every row of a month has; an invoice id only once the month is closed."""
    row.update(
        BillingAccountId=f"/providers/Microsoft.Billing/billingAccounts/"
        f"{machines.AZURE_BILLING_ACCOUNT}",
        BillingAccountName="Example",
        BillingAccountType="Billing Account",
        BillingCurrency="USD",
        BillingPeriodStart=zulu(start),
        BillingPeriodEnd=zulu(after),
        InvoiceId=f"E{start:%Y%m}0042" if final else "",
        InvoiceIssuerName="Microsoft",
        PricingCurrency="USD",
        ProviderName="Microsoft",
        PublisherName="Microsoft",
        RegionId="eastus",
        RegionName="East US",
        SubAccountId=f"/subscriptions/{machines.AZURE_SUBSCRIPTION}",
        SubAccountName="example-ml",
        SubAccountType="Subscription",
        x_BillingAccountId=machines.AZURE_BILLING_ACCOUNT,
    )
