"""The made fleet as an AWS export writes it: CUR 2.0, hourly, gzip CSV, a manifest a month."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from data.sample import machines, writing
from data.sample.activity import hour_start
from data.sample.charges import charges, plan_rate, unused_plan
from data.sample.machines import digest, list_price, spot_price
from data.sample.writing import number, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from data.sample.activity import Activity
    from data.sample.charges import Charge

EXPORT = "h100-fleet-cur2"
COLUMNS = (
    "identity_line_item_id", "identity_time_interval", "bill_bill_type", "bill_billing_entity",
    "bill_billing_period_start_date", "bill_billing_period_end_date", "bill_invoice_id",
    "bill_invoicing_entity", "bill_payer_account_id", "line_item_usage_account_id",
    "line_item_line_item_type", "line_item_usage_start_date", "line_item_usage_end_date",
    "line_item_product_code", "line_item_usage_type", "line_item_operation",
    "line_item_availability_zone", "line_item_resource_id", "line_item_usage_amount",
    "line_item_normalization_factor", "line_item_normalized_usage_amount",
    "line_item_currency_code", "line_item_unblended_rate", "line_item_unblended_cost",
    "line_item_line_item_description", "line_item_tax_type", "line_item_legal_entity",
    "cost_category", "discount", "product", "product_instance_type", "product_instance_family",
    "product_product_family", "product_region_code", "product_servicecode", "product_sku",
    "product_usagetype", "pricing_currency", "pricing_lease_contract_length",
    "pricing_offering_class", "pricing_public_on_demand_cost", "pricing_public_on_demand_rate",
    "pricing_purchase_option", "pricing_term", "pricing_unit", "reservation_reservation_a_r_n",
    "reservation_effective_cost", "reservation_unused_quantity",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_recurring_fee", "savings_plan_savings_plan_a_r_n",
    "savings_plan_savings_plan_effective_cost", "savings_plan_savings_plan_rate",
    "savings_plan_total_commitment_to_date", "savings_plan_used_commitment",
    "savings_plan_recurring_commitment_for_billing_period",
    "savings_plan_amortized_upfront_commitment_for_billing_period", "savings_plan_offering_type",
    "savings_plan_payment_option", "savings_plan_purchase_term", "savings_plan_region",
    "savings_plan_instance_type_family", "savings_plan_start_time", "savings_plan_end_time",
    "capacity_reservation_capacity_reservation_arn",
    "capacity_reservation_capacity_reservation_status",
    "capacity_reservation_capacity_reservation_type", "resource_tags",
)  # fmt: skip

# The three calm rows of every bill, made: a volume, a NAT gateway, a bucket.
_VOLUME_USD = Decimal("0.2192")
_NAT_USD = Decimal("0.045")
_BUCKET_USD = Decimal("31.74")

_REGION_PREFIX = {"us-east-1": "", "us-east-2": "USE2-"}
_PLAN = {
    "savings_plan_savings_plan_a_r_n": machines.SAVINGS_PLAN_ID,
    "savings_plan_offering_type": "EC2InstanceSavingsPlans",
    "savings_plan_payment_option": "No Upfront",
    "savings_plan_purchase_term": "1yr",
    "savings_plan_region": "us-east-1",
    "savings_plan_instance_type_family": "p5",
    "savings_plan_start_time": "2026-03-01T00:00:00.000Z",
    "savings_plan_end_time": "2027-02-28T23:59:59.000Z",
}
Row = dict[str, str]


def write(folder: Path, activities: Iterable[Activity], hours: range) -> None:
    """Writes the export of each month: data and metadata, as `overwrite` delivers them."""
    lives = writing.named(activities, "aws")
    found = charges(lives, hours)
    first, end = hour_start(hours.start), hour_start(hours.stop)
    for start, after in writing.months(first, end):
        inside = [hour for hour in hours if start <= hour_start(hour) < after]
        rows = _month(found, range(inside[0], inside[-1] + 1))
        final = after < end
        for row in rows:
            _dress(row, start, after, final)
        _deliver(folder / EXPORT, start, rows)


def _deliver(root: Path, start: datetime, rows: list[Row]) -> None:
    part = f"BILLING_PERIOD={start:%Y-%m}"
    name = f"{EXPORT}-00001.csv.gz"
    writing.gz(root / "data" / part / name, writing.table(COLUMNS, rows))
    made = digest(f"{EXPORT} {part}")
    run = "-".join((made[:8], made[8:12], made[12:16], made[16:20], made[20:32]))
    manifest = {
        "executionId": run,
        "exportArn": f"arn:aws:bcm-data-exports:us-east-1:{machines.AWS_PAYER}:export/{EXPORT}-"
        "6a1f0c2e-93d7-4f0a-8a55-1e0c7b9d4a01",
        "columns": [{"name": column, "type": "string"} for column in COLUMNS],
        "dataFiles": [f"s3://example-billing/exports/{EXPORT}/data/{part}/{name}"],
        "additionalOutputFiles": [],
    }
    writing.document(root / "metadata" / part / f"{EXPORT}-Manifest.json", manifest)


def _month(found: list[Charge], hours: range) -> list[Row]:
    rows: list[Row] = []
    by_hour: dict[int, list[Charge]] = {hour: [] for hour in hours}
    for charge in found:
        if charge.hour in hours:
            by_hour[charge.hour].append(charge)
    left = unused_plan((charge for hour in hours for charge in by_hour[hour]), hours)
    for hour in hours:
        rows += [_machine(charge) for charge in by_hour[hour]]
        covered = [charge for charge in by_hour[hour] if charge.option == "savings_plan"]
        if covered:
            rows.append(_negation(covered))
        rows.append(_fee(hour, left[hour]))
        rows += _calm(hour)
    rows += _monthly(hours)
    return rows


def _machine(charge: Charge) -> Row:
    machine = charge.machine
    covered, spot = charge.option == "savings_plan", charge.option == "spot"
    kind = "SpotUsage" if spot else "BoxUsage"
    rate = spot_price(machine) if spot else list_price(machine)
    row = {
        "line_item_line_item_type": "SavingsPlanCoveredUsage" if covered else "Usage",
        "line_item_usage_account_id": machine.account,
        "line_item_product_code": "AmazonEC2",
        "line_item_usage_type": f"{_REGION_PREFIX[machine.region]}{kind}:{machine.instance_type}",
        "line_item_operation": "RunInstances:SV001" if spot else "RunInstances",
        "line_item_availability_zone": machine.zone,
        "line_item_resource_id": machine.resource_id,
        "line_item_usage_amount": number(charge.instance_hours),
        "line_item_unblended_rate": number(rate),
        "line_item_unblended_cost": number(charge.list_cost if covered else charge.effective_cost),
        "line_item_line_item_description": f"${number(rate)} per {'Spot' if spot else 'On Demand'}"
        f" Linux {machine.instance_type} Instance Hour",
        "product": json.dumps(
            {"operating_system": "Linux", "region": machine.region, "tenancy": "Shared"}
        ),
        "product_instance_type": machine.instance_type,
        "product_instance_family": "GPU instance",
        "product_product_family": "Compute Instance",
        "product_region_code": machine.region,
        "product_servicecode": "AmazonEC2",
        "product_sku": digest(machine.region + machine.instance_type)[:12].upper(),
        "pricing_public_on_demand_cost": number(charge.list_cost),
        "pricing_public_on_demand_rate": number(list_price(machine)),
        "pricing_term": "Spot" if spot else "OnDemand",
        "pricing_unit": "Hrs",
        "resource_tags": json.dumps(
            {
                "user_env": machine.env,
                "user_name": machine.name,
                "user_owner": machine.owner,
                "user_team": machine.team,
            }
        ),
    }
    if covered:
        row |= _PLAN | {
            "savings_plan_savings_plan_effective_cost": number(charge.effective_cost),
            "savings_plan_savings_plan_rate": number(plan_rate()),
        }
    return _timed(row, charge.hour, f"{machine.name} {charge.option}")


def _negation(covered: list[Charge]) -> Row:
    """The row that takes the on-demand price of an hour's covered usage off the bill again."""
    machine = covered[0].machine
    row = {
        "line_item_line_item_type": "SavingsPlanNegation",
        "line_item_usage_account_id": machine.account,
        "line_item_product_code": "AmazonEC2",
        "line_item_usage_type": "BoxUsage:p5.48xlarge",
        "line_item_operation": "RunInstances",
        "line_item_usage_amount": number(sum(c.instance_hours for c in covered) + Decimal(0)),
        "line_item_unblended_rate": number(-list_price(machine)),
        "line_item_unblended_cost": number(-sum(c.list_cost for c in covered) + Decimal(0)),
        "line_item_line_item_description": f"SavingsPlanNegation used by AccountId : "
        f"{machine.account}",
        "product_instance_type": machine.instance_type,
        "product_region_code": machine.region,
        "product_servicecode": "AmazonEC2",
        "savings_plan_savings_plan_a_r_n": machines.SAVINGS_PLAN_ID,
    }
    return _timed(row, covered[0].hour, "negation")


def _fee(hour: int, unused: Decimal) -> Row:
    committed = machines.SAVINGS_PLAN_USD_PER_HOUR
    row = _PLAN | {
        "line_item_line_item_type": "SavingsPlanRecurringFee",
        "line_item_usage_account_id": machines.AWS_RESEARCH,
        "line_item_product_code": "ComputeSavingsPlans",
        "line_item_usage_type": "EC2SP:p5.1yrNoUpfront",
        "line_item_usage_amount": "1",
        "line_item_unblended_cost": number(committed),
        "line_item_line_item_description": "1 year No Upfront p5 EC2 Instance Savings Plan in "
        "us-east-1",
        "product_servicecode": "ComputeSavingsPlans",
        "product_region_code": "us-east-1",
        "pricing_unit": "Hrs",
        "savings_plan_total_commitment_to_date": number(committed),
        "savings_plan_used_commitment": number(committed - unused),
        "savings_plan_recurring_commitment_for_billing_period": number(committed),
        "savings_plan_amortized_upfront_commitment_for_billing_period": "0",
    }
    return _timed(row, hour, "plan fee")


def _calm(hour: int) -> list[Row]:
    """Rows without GPUs: a volume each hour, a NAT gateway every six, a bucket once a day."""
    rows = [_plain(hour, "EBS:VolumeUsage.gp3", "vol-0" + digest("volume")[:16], _VOLUME_USD)]
    if hour % 6 == 0:
        arn = f"arn:aws:ec2:us-east-1:{machines.AWS_RESEARCH}:natgateway/nat-0{digest('nat')[:16]}"
        rows.append(_plain(hour, "NatGateway-Bytes", arn, _NAT_USD * (7 + hour % 5)))
    if hour % 24 == 0:
        row = _plain(hour, "TimedStorage-ByteHrs", "example-checkpoints", _BUCKET_USD)
        end = hour_start(hour) + timedelta(hours=24)
        rows.append(row | {"line_item_usage_end_date": stamp(end)})
    return rows


def _plain(hour: int, usage_type: str, resource: str, cost: Decimal) -> Row:
    row = {
        "line_item_line_item_type": "Usage",
        "line_item_usage_account_id": machines.AWS_RESEARCH,
        "line_item_product_code": "AmazonS3" if "Timed" in usage_type else "AmazonEC2",
        "line_item_usage_type": usage_type,
        "line_item_resource_id": resource,
        "line_item_usage_amount": number(cost * 10),
        "line_item_unblended_rate": "0.1",
        "line_item_unblended_cost": number(cost),
        "line_item_line_item_description": f"$0.1 per unit of {usage_type}",
        "product_region_code": "us-east-1",
        "pricing_public_on_demand_cost": number(cost),
        "pricing_public_on_demand_rate": "0.1",
        "pricing_term": "OnDemand",
        "pricing_unit": "GB-Mo" if "Usage.gp3" in usage_type or "Timed" in usage_type else "GB",
    }
    return _timed(row, hour, f"{usage_type} {resource}")


def _monthly(hours: range) -> list[Row]:
    """Tax and support of the month, and in the first one a credit and a refund; made amounts."""
    first, end = hour_start(hours.start), hour_start(hours.stop)
    made = [
        ("Tax", "AmazonS3", "62.51", {"line_item_tax_type": "USSalesTax"}),
        ("Fee", "AWSSupportBusiness", "9800", {}),
    ]
    if first.month == 9:
        made += [
            ("Credit", "AmazonS3", "-500", {}),
            ("Refund", "AmazonEC2", "-38.12", {}),
        ]
    rows = []
    for kind, product, cost, more in made:
        row = {
            "line_item_line_item_type": kind,
            "line_item_usage_account_id": machines.AWS_PAYER,
            "line_item_product_code": product,
            "line_item_usage_type": "",
            "line_item_usage_amount": "1",
            "line_item_unblended_cost": cost,
            "line_item_line_item_description": f"{kind} for product code {product}",
        }
        timed = _timed(row | more, hours.start, f"{kind} {product}")
        rows.append(timed | {"line_item_usage_end_date": stamp(max(end, first))})
    return rows


def _timed(row: Row, hour: int, identity: str) -> Row:
    """The row with its hour, and an id that is the same in every hour, as real ones often are."""
    start = hour_start(hour)
    end = start + timedelta(hours=1)
    return row | {
        "identity_line_item_id": digest(identity),
        "identity_time_interval": f"{writing.zulu(start)}/{writing.zulu(end)}",
        "line_item_usage_start_date": stamp(start),
        "line_item_usage_end_date": stamp(end),
    }


def _dress(row: Row, start: datetime, after: datetime, final: bool) -> None:
    """Adds what every row of a month has; an invoice id only once the month is closed."""
    row.update(
        bill_bill_type="Anniversary",
        bill_billing_entity="AWS",
        bill_billing_period_start_date=stamp(start),
        bill_billing_period_end_date=stamp(after),
        bill_invoice_id=f"{1800000000 + start.month}" if final else "",
        bill_invoicing_entity="Amazon Web Services, Inc.",
        bill_payer_account_id=machines.AWS_PAYER,
        line_item_currency_code="USD",
        line_item_legal_entity="Amazon Web Services, Inc.",
        pricing_currency="USD",
        cost_category="{}",
        discount="{}",
    )
    row.setdefault("product", "{}")
    row.setdefault("resource_tags", "{}")
    row.setdefault("product_usagetype", row["line_item_usage_type"])
