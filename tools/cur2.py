"""Writes CUR 2.0 exports of any size as AWS does: Parquet files of hourly rows, made in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from pathlib import Path

HOURS = 744  # of October 2026
# Of 40 rows of an hour so many are of each kind: what a bill of machines, disks and traffic holds.
_KINDS = """CASE WHEN slot < 12 THEN 'box' WHEN slot < 17 THEN 'plan' WHEN slot < 22 THEN 'negation'
  WHEN slot < 23 THEN 'reserved' WHEN slot < 24 THEN 'spot' WHEN slot < 34 THEN 'disk'
  WHEN slot < 37 THEN 'traffic' WHEN slot < 39 THEN 'requests'
  WHEN machine % 50 = 0 THEN 'fee' ELSE 'credit' END"""
# A negation takes back what the machine five before it would have cost on demand.
_PAIR = "(CASE WHEN slot BETWEEN 17 AND 21 THEN machine - 5 ELSE machine END % 10)"
_SHAPE = f"""CASE WHEN {_PAIR} < 2 THEN 'p5.48xlarge' WHEN {_PAIR} < 5 THEN 'g5.xlarge'
  ELSE 'm5.large' END"""
_RATE = """CASE shape WHEN 'p5.48xlarge' THEN 55.04 WHEN 'g5.xlarge' THEN 1.006 ELSE 0.096 END"""
_MACHINE = "kind IN ('box', 'plan', 'negation', 'reserved', 'spot')"
_TYPE = """CASE kind WHEN 'plan' THEN 'SavingsPlanCoveredUsage'
  WHEN 'reserved' THEN 'DiscountedUsage'
  WHEN 'negation' THEN 'SavingsPlanNegation' WHEN 'fee' THEN 'SavingsPlanRecurringFee'
  WHEN 'credit' THEN 'Credit' ELSE 'Usage' END"""
_USAGE_TYPE = """CASE kind WHEN 'spot' THEN 'SpotUsage:' || shape
  WHEN 'disk' THEN 'EBS:VolumeUsage.gp3'
  WHEN 'traffic' THEN 'USW2-DataTransfer-Out-Bytes' WHEN 'requests' THEN 'Requests-Tier1'
  WHEN 'fee' THEN 'ComputeSP:1yrNoUpfront' WHEN 'credit' THEN 'Credit'
  ELSE 'BoxUsage:' || shape END"""
_COST = f"""CASE WHEN kind = 'negation' THEN -rate WHEN kind = 'credit' THEN -0.25
  WHEN {_MACHINE} THEN CASE kind WHEN 'spot' THEN rate * 0.37 WHEN 'reserved' THEN 0 ELSE rate END
  WHEN kind = 'fee' THEN 40.0 ELSE (machine * 7919 + hour * 104729) % 1000003 / 123456789.0 END"""
_PLAN = "kind IN ('plan', 'negation', 'fee')"
_TEXTS = {
    "bill_bill_type": "'Anniversary'",
    "bill_billing_entity": "'AWS'",
    "bill_invoice_id": "'1234567890'",
    "bill_invoicing_entity": "'Amazon Web Services, Inc.'",
    "bill_payer_account_id": "'111122223333'",
    "bill_payer_account_name": "'payer'",
    "identity_line_item_id": "md5(i::VARCHAR)",
    "identity_time_interval": "strftime(t, '%Y-%m-%dT%H:00:00Z') || '/' || "
    "strftime(t + INTERVAL 1 HOUR, '%Y-%m-%dT%H:00:00Z')",
    "line_item_availability_zone": f"CASE WHEN {_MACHINE} THEN 'us-west-2b' END",
    "line_item_currency_code": "'USD'",
    "line_item_legal_entity": "'Amazon Web Services, Inc.'",
    "line_item_line_item_description": "'$' || rate || ' per ' || kind || ' ' || shape || ' hour'",
    "line_item_line_item_type": _TYPE,
    "line_item_operation": f"CASE WHEN {_MACHINE} THEN 'RunInstances' ELSE kind END",
    "line_item_product_code": "CASE kind WHEN 'requests' THEN 'AmazonS3' WHEN 'fee' "
    "THEN 'ComputeSavingsPlans' ELSE 'AmazonEC2' END",
    "line_item_resource_id": f"CASE WHEN {_MACHINE} THEN 'i-' || lpad(to_hex(machine), 17, '0') "
    "WHEN kind = 'disk' THEN 'vol-' || lpad(to_hex(machine), 17, '0') "
    "WHEN kind = 'requests' THEN 'bucket-' || machine % 97 END",
    "line_item_usage_account_id": "'44445555666' || machine % 7",
    "line_item_usage_account_name": "'account ' || machine % 7",
    "line_item_usage_type": _USAGE_TYPE,
    "line_item_unblended_rate": "rate::VARCHAR",
    "pricing_currency": "'USD'",
    "pricing_public_on_demand_rate": "rate::VARCHAR",
    "pricing_lease_contract_length": "CASE WHEN kind = 'reserved' THEN '1yr' END",
    "pricing_purchase_option": "CASE WHEN kind = 'reserved' THEN 'No Upfront' END",
    "pricing_rate_code": "'AB12' || machine % 60 || '.JRTCKXETXF.6YS6EN2CT7'",
    "pricing_rate_id": "(4000000 + machine % 60)::VARCHAR",
    "pricing_term": "CASE WHEN kind = 'reserved' THEN 'Reserved' ELSE 'OnDemand' END",
    "pricing_unit": f"CASE WHEN {_MACHINE} THEN 'Hrs' WHEN kind = 'disk' THEN 'GB-Mo' "
    "WHEN kind = 'traffic' THEN 'GB' WHEN kind = 'requests' THEN 'Requests' END",
    "product_from_location": "CASE WHEN kind = 'traffic' THEN 'US West (Oregon)' END",
    "product_instance_family": f"CASE WHEN {_MACHINE} THEN 'GPU instance' END",
    "product_instance_type": f"CASE WHEN {_MACHINE} THEN shape END",
    "product_location": "'US West (Oregon)'",
    "product_operation": "'RunInstances'",
    "product_product_family": f"CASE WHEN {_MACHINE} THEN 'Compute Instance' ELSE 'Storage' END",
    "product_region_code": "'us-west-2'",
    "product_servicecode": "'AmazonEC2'",
    "product_sku": "'SKU' || machine % 60",
    "reservation_reservation_a_r_n": "CASE WHEN kind = 'reserved' THEN "
    "'arn:aws:ec2:us-west-2:111122223333:reserved-instances/' || machine % 11 END",
    "savings_plan_offering_type": f"CASE WHEN {_PLAN} THEN 'ComputeSavingsPlans' END",
    "savings_plan_savings_plan_a_r_n": f"CASE WHEN {_PLAN} THEN "
    "'arn:aws:savingsplans::111122223333:savingsplan/' || machine % 5 END",
}
_EMPTY = (
    "bill_line_item_tax_type", "line_item_tax_type", "pricing_offering_class", "product_comment",
    "product_fee_code", "product_fee_description", "product_from_location_type",
    "product_from_region_code", "product_instancesku", "product_to_location",
    "product_to_location_type", "product_to_region_code", "product_usagetype",
    "reservation_availability_zone", "reservation_end_time", "reservation_modification_status",
    "reservation_start_time", "reservation_subscription_id", "savings_plan_end_time",
    "savings_plan_instance_type_family", "savings_plan_payment_option",
    "savings_plan_purchase_term", "savings_plan_region", "savings_plan_start_time",
    "capacity_reservation_capacity_reservation_arn",
    "capacity_reservation_capacity_reservation_status",
    "capacity_reservation_capacity_reservation_type", "split_line_item_parent_resource_id",
)  # fmt: skip
_AMOUNTS = {
    "line_item_normalization_factor": "CASE WHEN kind = 'box' THEN 4.0 END",
    "line_item_unblended_cost": "cost",
    "line_item_blended_cost": "cost",
    "line_item_usage_amount": "CASE kind WHEN 'disk' THEN 100 / 744.0 WHEN 'traffic' "
    "THEN (machine * 31 + hour) % 977 / 1000.0 ELSE 1.0 END",
    "pricing_public_on_demand_cost": "CASE WHEN kind IN ('negation', 'fee', 'credit') THEN 0.0 "
    "ELSE greatest(cost, rate / 3) END",
    "reservation_effective_cost": "CASE WHEN kind = 'reserved' THEN rate * 0.61 ELSE 0.0 END",
    "reservation_unused_amortized_upfront_fee_for_billing_period": "0.0",
    "reservation_unused_recurring_fee": "0.0",
    "reservation_amortized_upfront_cost_for_usage": "0.0",
    "savings_plan_savings_plan_effective_cost": "CASE WHEN kind = 'plan' THEN rate * 0.72 "
    "ELSE 0.0 END",
    "savings_plan_savings_plan_rate": "CASE WHEN kind = 'plan' THEN rate * 0.72 ELSE 0.0 END",
    "savings_plan_total_commitment_to_date": "CASE WHEN kind = 'fee' THEN 40.0 ELSE 0.0 END",
    "savings_plan_used_commitment": "CASE WHEN kind = 'fee' THEN 38.6417 ELSE 0.0 END",
}
_TIMES = {
    "bill_billing_period_start_date": "TIMESTAMP '2026-10-01'",
    "bill_billing_period_end_date": "TIMESTAMP '2026-11-01'",
    "line_item_usage_start_date": "t",
    "line_item_usage_end_date": "t + INTERVAL 1 HOUR",
}
_MAPS = {
    "product": f"CASE WHEN {_MACHINE} THEN MAP {{'vcpu': '192', 'instance_type': shape, "
    "'operating_system': 'Linux', 'tenancy': 'Shared', 'region_code': 'us-west-2', "
    "'product_name': 'Amazon Elastic Compute Cloud'} ELSE MAP {'product_name': kind, "
    "'volume_api_name': 'gp3'} END",
    "resource_tags": "MAP {'user_team': 'team' || machine % 11, 'user_workload': 'class-' || "
    "machine % 50, 'aws_created_by': 'AssumedRole:AROA:deploy'}",
    "cost_category": "MAP {'CostCenter': 'cc' || machine % 9}",
    "discount": "MAP {'total_discount': 0.0::DOUBLE}",
}
_FLOATS = {name: f"({sql})::DOUBLE" for name, sql in _AMOUNTS.items()}
COLUMNS = {**_TEXTS, **dict.fromkeys(_EMPTY, "NULL::VARCHAR"), **_FLOATS, **_TIMES, **_MAPS}


def write_cur2(folder: Path, rows: int, files: int) -> list[Path]:
    """Writes so many rows into so many Parquet files of the folder, and gives their paths.

    The rows are those of one payer and month: per hour and machine on demand, under a savings plan
    (and its negation), reserved, on spot, with disks, traffic, requests, fees and credits. Amounts
    are floats, times are timestamps, tags and products maps, as AWS writes them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    picked = ", ".join(f'{sql} AS "{name}"' for name, sql in sorted(COLUMNS.items()))
    paths = []
    # A month of so many rows an hour; a machine has one row in it. A small export ends early, so
    # that it holds every kind of row.
    an_hour = max(80, -(-rows // HOURS // 40) * 40)
    with duckdb.connect(config={"memory_limit": "512MiB"}) as connection:
        connection.execute("SET enable_progress_bar = false")
        for number in range(files):
            first, end = rows * number // files, rows * (number + 1) // files
            path = folder / f"export-{number + 1:05}.snappy.parquet"
            connection.execute(
                f"""COPY (SELECT {picked} FROM (SELECT *, {_COST} AS cost FROM (
                SELECT *, {_RATE} AS rate FROM (SELECT *, {_SHAPE} AS shape, {_KINDS} AS kind,
                TIMESTAMP '2026-10-01' + INTERVAL 1 HOUR * hour AS t FROM (
                SELECT i, i // {an_hour} AS hour, i % {an_hour} AS machine, i % {an_hour} % 40
                AS slot FROM range({first}, {end}) AS numbers(i))))))
                TO '{path}' (FORMAT parquet, COMPRESSION snappy)"""
            )
            paths.append(path)
    return paths
