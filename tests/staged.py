"""Builders of staged deliveries: a few billing rows, said in a line."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from data.schema import BILLING, UTILIZATION, Dtype, Table
from data.store import DeliveryResult, StagedDelivery, Store, UnitFacts, delivery_id, unit_name

if TYPE_CHECKING:
    from pathlib import Path

_ARROW = {
    Dtype.TEXT: pa.string(), Dtype.JSON: pa.string(), Dtype.INT: pa.int64(),
    Dtype.FLOAT: pa.float64(), Dtype.MONEY: pa.decimal128(38, 26),
    Dtype.HOURS: pa.decimal128(38, 26), Dtype.TIME: pa.timestamp("us", tz="UTC"),
    Dtype.DATE: pa.date32(), Dtype.BOOL: pa.bool_(),
}  # fmt: skip


def arrow_table(rows: list[dict[str, object]], table: Table = BILLING) -> pa.Table:
    """The rows as an Arrow table of the declared columns; what a row lacks is null."""
    return pa.table(
        {
            column.name: pa.array([row.get(column.name) for row in rows], _ARROW[column.dtype])
            for column in table.columns
        }
    )


@dataclass(frozen=True)
class Charges:
    """A billing delivery: one row per cost, all of one account; `periods` one per row or one."""

    costs: tuple[str, ...]
    periods: tuple[str, ...] = ("2026-11",)
    name: str = "a.csv"
    source: str = "aws"
    account: str = "1"
    dataset: str = "cur"
    invoiced: bool = False
    made: datetime | None = None
    delivery: str | None = None

    def rows(self, delivery: str) -> list[dict[str, object]]:
        periods = self.periods if len(self.periods) > 1 else self.periods * len(self.costs)
        return [
            {
                "unit": unit_name(self.source, self.account, self.dataset, period),
                "source": self.source, "dataset": self.dataset, "billing_account": self.account,
                "billing_period": period, "managed_service": False, "is_correction": False,
                "purchase_option": "on_demand", "charge_type": "usage", "currency": "USD",
                "period_start": datetime(int(period[:4]), int(period[5:]), 1, tzinfo=UTC),
                "effective_cost": Decimal(cost), "export_id": delivery, "source_row_no": number,
            }
            for number, (cost, period) in enumerate(zip(self.costs, periods, strict=True), 1)
        ]  # fmt: skip

    def publish(self, store: Store, force: bool = False) -> DeliveryResult:
        with store.staging() as folder:
            return store.publish(self.stage(folder), force=force)

    def stage(self, folder: Path) -> StagedDelivery:
        plain = repr(replace(self, name=""))
        sha256 = hashlib.sha256(plain.encode()).hexdigest()
        delivery = self.delivery or delivery_id(sha256, self.dataset)
        rows = self.rows(delivery)
        pq.write_table(arrow_table(rows), folder / "billing.parquet")
        units: dict[str, UnitFacts] = {}
        for row in rows:
            unit = str(row["unit"])
            before = units.get(unit, UnitFacts(0, self.invoiced, Decimal(0)))
            cost = before.cost + abs(Decimal(str(row["effective_cost"])))
            units[unit] = UnitFacts(before.rows + 1, self.invoiced, cost)
        return StagedDelivery(
            path=self.name, table="billing", source=self.source, dataset=self.dataset,
            delivery_id=delivery, folder=folder, sha256=sha256, units=units, rows=len(rows),
            billing_periods=tuple(sorted(set(self.periods))), version_time=self.made,
        )  # fmt: skip


def publish_utilization(store: Store, days: dict[str, int], name: str) -> DeliveryResult:
    """Publish `days[day]` rows of utilization for each day."""
    with store.staging() as folder:
        delivery = delivery_id(hashlib.sha256(name.encode()).hexdigest(), "utilization")
        rows: list[dict[str, object]] = []
        for day, count in days.items():
            unit = unit_name("aws", "1", "utilization", day)
            start = datetime.fromisoformat(f"{day}T00:00:00+00:00")
            rows += [
                {
                    "unit": unit, "hour_start": start, "cloud": "aws", "account": "1",
                    "instance_id": "i-1", "gpu_uuid": f"GPU-{gpu}", "export_id": delivery,
                    "source_row_no": len(rows) + gpu,
                }
                for gpu in range(1, count + 1)
            ]  # fmt: skip
        pq.write_table(arrow_table(rows, UTILIZATION), folder / "utilization.parquet")
        units = {unit_name("aws", "1", "utilization", d): UnitFacts(n) for d, n in days.items()}
        return store.publish(
            StagedDelivery(
                path=name, table="utilization", source="aws", dataset="utilization",
                delivery_id=delivery, folder=folder, sha256=name, units=units, rows=len(rows),
                billing_periods=("2026-11",),
            )
        )  # fmt: skip


def total(store: Store) -> Decimal | None:
    """The sum of effective cost of the active rows, None where there are none."""
    return store.table("billing").effective_cost.sum().to_pyarrow().as_py()
