"""A made month of bills in every layout, of any size: the same rows for the same count.

Amounts have up to 18 places, some in scientific notation; tags hold quotes and letters of other
alphabets; every layout has commitments, spot, credits or refunds beside plain usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from tools.bench import make_cur
from tools.cur2 import write_cur2

if TYPE_CHECKING:
    from pathlib import Path

# Eighteen places without a float: a text of digits, every ninth amount as a power of ten.
_AMOUNT = """CASE WHEN i % 9 = 0 THEN (i % 977 + 1)::VARCHAR || '.25E-7'
  ELSE (i % 53)::VARCHAR || '.' || lpad((i * 7919 % 1000000007)::VARCHAR, 18, '0') END"""
_TAGS = """'{"team": "team' || i % 11 || '", "note": "a \\\\"q\\\\" é ' || i % 5 || '"}'"""

_FOCUS = {
    "BilledCost": "CASE WHEN kind = 3 THEN '-' ELSE '' END || amount",
    "EffectiveCost": "amount",
    "ListCost": "amount",
    "ContractedCost": "amount",
    "BillingAccountId": "'111122223333'",
    "SubAccountId": "CASE WHEN kind = 1 THEN '/subscriptions/AB-' || i % 7 ELSE '44' || i % 7 END",
    "BillingCurrency": "'USD'",
    "BillingPeriodStart": "'2026-10-01T00:00:00Z'",
    "BillingPeriodEnd": "'2026-11-01T00:00:00Z'",
    "ChargeCategory": "CASE kind WHEN 3 THEN 'Credit' WHEN 4 THEN 'Purchase' ELSE 'Usage' END",
    "ChargeClass": "CASE WHEN i % 101 = 0 THEN 'Correction' END",
    "ChargeDescription": "'$1.6 per On Demand Linux g5.4xlarge Instance Hour'",
    "ChargePeriodStart": "strftime(t, '%Y-%m-%dT%H:%M:%SZ')",
    "ChargePeriodEnd": "strftime(t + INTERVAL 1 HOUR, '%Y-%m-%d %H:%M:%S')",
    "CommitmentDiscountCategory": "CASE WHEN kind = 2 THEN 'Spend' END",
    "CommitmentDiscountId": "CASE WHEN kind = 2 THEN 'plan-' || i % 3 END",
    "CommitmentDiscountStatus": "CASE WHEN kind = 2 THEN "
    "CASE WHEN i % 10 < 7 THEN 'Used' ELSE 'Unused' END END",
    "CommitmentDiscountType": "CASE WHEN kind = 2 THEN 'Savings Plan' END",
    "ConsumedQuantity": "CASE WHEN kind < 3 THEN '0.5' END",
    "ConsumedUnit": "CASE i % 3 WHEN 0 THEN 'Hours' WHEN 1 THEN '10 Hours' ELSE 'GB' END",
    "InvoiceId": "NULL",
    "PricingCategory": "CASE kind WHEN 2 THEN 'Committed' WHEN 5 THEN 'Dynamic' "
    "ELSE 'Standard' END",
    "ProviderName": "CASE kind WHEN 1 THEN 'Microsoft' WHEN 0 THEN 'Google Cloud' ELSE 'AWS' END",
    "RegionId": "CASE kind WHEN 1 THEN 'East US' ELSE 'us-east-1' END",
    "ResourceId": "'res-' || i % 97",
    "ServiceName": "CASE WHEN i % 13 = 0 THEN 'Amazon SageMaker' ELSE 'Compute' END",
    "SkuId": "'SKU' || i % 31",
    "SkuPriceDetails": 'CASE WHEN i % 4 = 0 THEN \'{"InstanceType": "p5.48xlarge", '
    '"GpuCount": 8, "Rate": 0.10}\' WHEN i % 4 = 1 THEN \'{broken\' END',
    "Tags": _TAGS,
    "x_UsageType": "CASE WHEN kind = 5 THEN 'USW2-SpotUsage:p5.48xlarge' END",
}
_AZURE = {
    "BillingAccountId": "'8608480'",
    "BillingPeriodStartDate": "'10/01/2026'",
    "BillingPeriodEndDate": "'10/31/2026'",
    "SubscriptionId": "'00ab-' || i % 7",
    "Date": "strftime(t, '%m/%d/%Y')",
    "MeterCategory": "CASE WHEN kind < 4 THEN 'Virtual Machines' ELSE 'Storage' END",
    "MeterName": "CASE WHEN kind = 1 THEN 'ND96isr H100 v5 Spot' ELSE 'ND96isr H100 v5' END",
    "MeterId": "'meter-' || i % 17",
    "MeterRegion": "'US East'",
    "ResourceLocation": "'EastUS'",
    "Quantity": "CASE WHEN i % 2 = 0 THEN '24' ELSE '2.4' END",
    "UnitOfMeasure": "CASE WHEN i % 2 = 0 THEN '1 Hour' ELSE '10 Hours' END",
    "PayGPrice": "CASE WHEN i % 5 = 0 THEN '0' ELSE '98.32' END",
    "EffectivePrice": "'1'",
    "CostInBillingCurrency": "amount",
    "BillingCurrency": "CASE WHEN i % 2 = 0 THEN 'USD' ELSE 'CAD' END",
    "ConsumedService": "'Microsoft.Compute'",
    "ResourceId": "'/subscriptions/ab/resourceGroups/g/providers/Microsoft.Compute/"
    "virtualMachines/vm' || i % 97",
    "ReservationId": "CASE WHEN kind = 2 THEN 'res-' || i % 3 END",
    "PricingModel": "CASE kind WHEN 1 THEN 'Spot' WHEN 2 THEN 'Reservation' ELSE 'OnDemand' END",
    "ChargeType": "CASE WHEN kind = 2 AND i % 10 > 7 THEN 'UnusedReservation' "
    "WHEN kind = 5 THEN 'Refund' ELSE 'Usage' END",
    "AdditionalInfo": 'CASE i % 3 WHEN 0 THEN \'{"ServiceType":"Standard_ND96isr_H100_v5",'
    "\"VCPUs\":96}' WHEN 1 THEN '{''no'': json}' END",
    "Tags": "CASE i % 3 WHEN 0 THEN '\"team\": \"team' || i % 11 || '\"' "
    "WHEN 1 THEN '\"broken' ELSE '{}' END",
}
_GCP = {
    "billing_account_id": "'01AB-CD'",
    "service": "{'id': '6F81', 'description': 'Compute Engine'}",
    "sku": "{'id': 'SKU-' || i % 31, 'description': CASE kind WHEN 0 THEN "
    "'A3 Mega Nvidia H100 80GB Plus GPU running in Iowa' WHEN 1 THEN "
    "'Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Iowa' WHEN 2 THEN "
    "'Commitment v1: Nvidia H100 80GB Plus GPU in Iowa for 1 Year' WHEN 3 THEN "
    "'A3 Instance Core running in Iowa' ELSE 'Storage PD Capacity' END}",
    "usage_start_time": "strftime(t, '%Y-%m-%d %H:00:00 UTC')",
    "usage_end_time": "strftime(t + INTERVAL 1 HOUR, '%Y-%m-%dT%H:00:00Z')",
    "project": "{'id': 'project-' || i % 7}",
    "labels": "[{'key': 'team', 'value': 'té\"am' || i % 11}, {'key': 'empty', 'value': ''}]",
    "system_labels": "[{'key': 'compute.googleapis.com/machine_spec', 'value': 'a3-megagpu-8g'}, "
    "{'key': 'compute.googleapis.com/is_unused_reservation', "
    "'value': CASE WHEN i % 19 = 0 THEN 'true' ELSE 'false' END}]",
    "location": "{'location': 'us-central1', 'region': 'us-central1', 'zone': 'us-central1-a'}",
    "cost": "amount",
    "currency": "'USD'",
    "currency_conversion_rate": "'1'",
    "usage": "{'amount': '28800', 'unit': 'seconds', 'amount_in_pricing_units': '8', "
    "'pricing_unit': 'hour'}",
    "credits": "CASE WHEN i % 3 = 0 THEN [{'name': 'cud', 'amount': '-' || amount, "
    "'type': 'COMMITTED_USAGE_DISCOUNT'}, {'name': 'promo', 'amount': '-1E-9', "
    "'type': 'PROMOTION'}] ELSE [] END",
    "invoice": "{'month': '202610'}",
    "cost_type": "CASE WHEN i % 97 = 0 THEN 'tax' ELSE 'regular' END",
    "resource": "{'name': 'vm-' || i % 97, 'global_name': '//compute/vm-' || i % 97}",
    "export_time": "'2026-11-02 00:00:00 UTC'",
}


def write_month(folder: Path, rows: int) -> list[Path]:
    """Writes about a fifth of the rows in each layout; the paths of the five exports."""
    folder.mkdir(parents=True, exist_ok=True)
    share = max(1, rows // 5)
    write_cur2(folder / "cur2", share, 2)
    make_cur(folder / "cur_legacy.csv", share)
    _write(folder / "focus.csv", _FOCUS, share, "FORMAT csv, HEADER")
    _write(folder / "azure.csv", _AZURE, share, "FORMAT csv, HEADER")
    _write(folder / "gcp.json", _GCP, share, "FORMAT json")
    names = ("cur2", "cur_legacy.csv", "focus.csv", "azure.csv", "gcp.json")
    return [folder / name for name in names]


def _write(path: Path, columns: dict[str, str], rows: int, options: str) -> None:
    picked = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
    with duckdb.connect(config={"memory_limit": "512MiB"}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"COPY (SELECT {picked} FROM (SELECT i, i % 6 AS kind, {_AMOUNT} AS amount, "
            f"TIMESTAMP '2026-10-01' + INTERVAL 1 HOUR * (i * 744 // {rows}) AS t "
            f"FROM range({rows}) AS numbers(i))) TO '{path}' ({options})"
        )
