"""A store that a trap's files are loaded into, and what it then says by the ways that users have.

The rows are made by us from the vendors' public descriptions; no public bill holds an H100.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.store import Status, Store
from data.totals import totals
from planner import session
from providers.files.loading import load
from providers.files.tables import read_table
from tests.exports import csv_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.store import DeliveryResult

RI = "arn:aws:ec2:us-east-1:111122223333:reserved-instances/ri-1"
SP = "arn:aws:savingsplans::111122223333:savingsplan/sp-1"
# An hour of an H100 node on demand in CUR 2.0: 98.32 dollars, 8 GPU-hours.
AWS = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "USE1-BoxUsage:p5.48xlarge",
    "line_item_product_code": "AmazonEC2", "bill_payer_account_id": "000011112222",
    "line_item_usage_account_id": "000033334444", "bill_billing_entity": "AWS",
    "bill_billing_period_start_date": "2026-11-01T00:00:00.000Z", "bill_invoice_id": "",
    "line_item_currency_code": "USD", "line_item_usage_start_date": "2026-11-02T03:00:00.000Z",
    "line_item_usage_end_date": "2026-11-02T04:00:00.000Z", "line_item_resource_id": "i-1",
    "line_item_usage_amount": "1", "pricing_unit": "Hrs", "line_item_unblended_cost": "98.32",
    "pricing_public_on_demand_cost": "98.32", "product_instance_type": "p5.48xlarge",
    "reservation_reservation_a_r_n": "", "reservation_effective_cost": "",
    "reservation_unused_amortized_upfront_fee_for_billing_period": "",
    "reservation_unused_recurring_fee": "", "savings_plan_savings_plan_a_r_n": "",
    "savings_plan_savings_plan_effective_cost": "",
    "savings_plan_total_commitment_to_date": "", "savings_plan_used_commitment": "",
}  # fmt: skip
NO_MACHINE = {"line_item_usage_amount": "1", "pricing_unit": "", "product_instance_type": "",
              "pricing_public_on_demand_cost": "", "line_item_resource_id": ""}  # fmt: skip
SP_COVERED = {"line_item_line_item_type": "SavingsPlanCoveredUsage",
              "savings_plan_savings_plan_a_r_n": SP,
              "savings_plan_savings_plan_effective_cost": "60.00"}  # fmt: skip
SP_NEGATION = {**NO_MACHINE, "line_item_line_item_type": "SavingsPlanNegation",
               "line_item_unblended_cost": "-98.32", "pricing_unit": "Hrs",
               "savings_plan_savings_plan_a_r_n": SP}  # fmt: skip
SP_FEE = {**NO_MACHINE, "line_item_line_item_type": "SavingsPlanRecurringFee",
          "line_item_usage_type": "ComputeSP:1yrNoUpfront", "line_item_unblended_cost": "75",
          "line_item_product_code": "ComputeSavingsPlans", "savings_plan_savings_plan_a_r_n": SP,
          "savings_plan_total_commitment_to_date": "75",
          "savings_plan_used_commitment": "60"}  # fmt: skip
RI_COVERED = {
    "line_item_line_item_type": "DiscountedUsage",
    "line_item_unblended_cost": "0",
    "reservation_reservation_a_r_n": RI,
    "reservation_effective_cost": "61.5",
}
RI_FEE = {**NO_MACHINE, "line_item_line_item_type": "RIFee", "line_item_unblended_cost": "1000",
          "line_item_usage_type": "USE1-HeavyUsage:p5.48xlarge",
          "reservation_reservation_a_r_n": RI,
          "reservation_unused_amortized_upfront_fee_for_billing_period": "12.25",
          "reservation_unused_recurring_fee": "3.5"}  # fmt: skip
BLOCK_FEE = {**NO_MACHINE, "line_item_line_item_type": "Fee",
             "line_item_usage_type": "USE1-CapacityBlockFee:p5.48xlarge",
             "line_item_unblended_cost": "5000"}  # fmt: skip
# An hour of an H100 node on demand in FOCUS 1.2.
FOCUS = {
    "ProviderName": "AWS", "PublisherName": "AWS", "BillingAccountId": "000011112222",
    "SubAccountId": "000033334444", "BillingCurrency": "USD",
    "BillingPeriodStart": "2026-11-01T00:00:00Z", "BillingPeriodEnd": "2026-12-01T00:00:00Z",
    "ChargePeriodStart": "2026-11-02T03:00:00Z", "ChargePeriodEnd": "2026-11-02T04:00:00Z",
    "ChargeCategory": "Usage", "ChargeClass": "", "ChargeDescription": "", "RegionId": "us-east-1",
    "ResourceId": "i-1", "ServiceName": "Amazon EC2", "SkuId": "S1",
    "SkuPriceDetails": '{"InstanceType": "p5.48xlarge", "GpuCount": 8}',
    "ConsumedQuantity": "1", "ConsumedUnit": "Hours", "PricingCategory": "Standard",
    "CommitmentDiscountId": "", "CommitmentDiscountCategory": "", "CommitmentDiscountType": "",
    "CommitmentDiscountStatus": "", "BilledCost": "98.32", "EffectiveCost": "98.32",
    "ListCost": "98.32", "Tags": "",
}  # fmt: skip


def at(hour: int, day: int = 2) -> dict[str, str]:
    """One hour of a day of November in the words of CUR."""
    last = f"2026-11-{day:02}T{hour + 1:02}:00:00Z" if hour < 23 else f"2026-11-{day + 1:02}"
    return {"line_item_usage_start_date": f"2026-11-{day:02}T{hour:02}:00:00Z",
            "line_item_usage_end_date": last}  # fmt: skip


def changed(base: dict[str, str], *changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**base, **change} for change in changes]


def of_account(trap: str, rows: Sequence[dict[str, Any]], **names: str) -> list[dict[str, Any]]:
    """The rows as those of an account of their own, which is named like the trap."""
    return [
        {**row, **{column: name.format(trap) for column, name in names.items()}} for row in rows
    ]


@dataclass
class Books:
    """One store and the folder beside it that the files are written to."""

    folder: Path
    _fleet: Any = None

    def __post_init__(self) -> None:
        self.store = Store.open(self.folder / "store")

    def take(self, *paths: Path, **more: Any) -> list[DeliveryResult]:
        """What became of files; nothing is asserted."""
        return load(paths, self.store, **more)

    def load(self, *paths: Path, **more: Any) -> Books:
        results = self.take(*paths, **more)
        assert {one.status for one in results} <= {Status.LOADED, Status.UNCHANGED}, results
        return self

    def load_rows(
        self, rows: Sequence[dict[str, Any]], name: str = "bill.csv", **more: Any
    ) -> Books:
        return self.load(csv_file(self.folder / name, rows), **more)

    def refused(self, *paths: Path, **more: Any) -> str:
        (result,) = self.take(*paths, **more)
        assert result.status is Status.REJECTED, result
        return str(result.reason)

    def warnings(self, path: Path) -> str:
        (result,) = self.take(path)
        assert result.status is Status.LOADED, result
        return "; ".join(result.warnings)

    def sum(self, name: str = "effective_cost", **where: Any) -> Decimal | None:
        """One sum of `totals` over the groups that have these values; one currency."""
        frame = totals(self.store.table("billing"), list(where) or ["source"])
        for column, value in where.items():
            frame = frame[frame[column].astype(str) == value]
        assert frame["currency"].nunique() <= 1
        stated = [Decimal(value) for value in frame[name] if value is not None]
        return sum(stated, Decimal(0)) if stated else None

    def by(self, column: str, name: str = "effective_cost") -> dict[Any, Any]:
        frame = totals(self.store.table("billing"), [column])
        return dict(zip(frame[column], frame[name], strict=True))

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of BILLING in reading order."""
        table = self.store.table("billing").order_by("source_row_no")
        return [tuple(row[c] for c in columns) for row in table.to_pyarrow().to_pylist()]

    def session(self, day: date = date(2026, 11, 30)) -> Any:
        return session.open_session(None, self.store.path, day, read_table)

    def fleet(self, day: date = date(2026, 11, 30), **where: Any) -> Any:
        """FLEET_HOURS of every hour before the day that has data; built once."""
        if self._fleet is None:
            self._fleet = session.observe(self.session(day), whole_days=False).fleet.hours
        found = self._fleet
        for column, value in where.items():
            found = found[found[column] == value]
        return found

    def checks(self, day: date = date(2026, 11, 30)) -> dict[str, str]:
        """The words of `check` by the name of the check."""
        frame = session.check_findings(self.session(day))
        told: dict[str, str] = {}
        for name, detail in zip(frame["check"], frame["detail"], strict=True):
            told[name] = f"{told.get(name, '')} {detail}".strip()
        return told
