"""The contract of billing normalisers for Cost and Usage Reports."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.base import BillingContract

# Made by us. Own spellings: the contract reads CUR 2.0 and legacy Parquet names alike.
_ROWS = [
    {"line_item_line_item_type": "Usage", "line_item_usage_type": "BoxUsage:p5.48xlarge",
     "line_item_usage_amount": "1", "line_item_unblended_cost": "98.32",
     "pricing_unit": "Hrs", "pricing_public_on_demand_cost": "98.32"},
    {"line_item_line_item_type": "SavingsPlanCoveredUsage",
     "line_item_usage_type": "BoxUsage:p5.48xlarge", "line_item_usage_amount": "0.5",
     "pricing_unit": "Hrs", "line_item_unblended_cost": "49.16",
     "savings_plan_savings_plan_effective_cost": "30.000000000000001"},
    {"line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": "-49.16",
     "line_item_usage_type": "BoxUsage:p5.48xlarge", "line_item_usage_amount": "0.5"},
    {"line_item_line_item_type": "SavingsPlanRecurringFee", "line_item_unblended_cost": "70",
     "line_item_usage_amount": "1", "savings_plan_total_commitment_to_date": "70",
     "savings_plan_used_commitment": "30.000000000000001"},
    {"line_item_line_item_type": "RIFee", "line_item_unblended_cost": "1.6E-5",
     "line_item_usage_amount": "720", "reservation_unused_recurring_fee": "1.0E-5"},
    {"line_item_line_item_type": "Tax", "line_item_unblended_cost": "8.123456789012345678"},
    {"line_item_line_item_type": "Credit", "line_item_unblended_cost": "-5"},
    {"line_item_line_item_type": "Fee", "line_item_unblended_cost": "5000",
     "line_item_usage_type": "USE1-CapacityBlockFee:p5.48xlarge"},
]  # fmt: skip
_SAME = {"bill_payer_account_id": "000011112222", "line_item_product_code": "AmazonEC2",
         "bill_billing_period_start_date": "2026-11-01T00:00:00Z",
         "line_item_usage_start_date": "2026-11-02T00:00:00Z",
         "line_item_usage_end_date": "2026-11-02T01:00:00Z"}  # fmt: skip


class TestCostAndUsageReport(BillingContract):
    datasets: ClassVar = ("cur", "cur2")
    money: ClassVar = {"billed_cost": "line_item_unblended_cost",
             "list_cost": "pricing_public_on_demand_cost"}  # fmt: skip

    @staticmethod
    def export_rows(dataset: str) -> list[dict[str, str]]:
        return [{**_SAME, **row} for row in _ROWS]
