"""What every billing normaliser must hold, whatever the layout. One class a cloud inherits it."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from data.engines import connect, ibis_type
from data.frames import conform
from data.money import exact
from data.schema import BILLING
from providers.contract import FINISHED_LATER, TOLD_BY_SOME, DeliveryContext
from providers.files.finish import Lineage, finish
from providers.files.raw import read_raw
from providers.registry import billing_normaliser
from tests.exports import csv_file

if TYPE_CHECKING:
    import pandas as pd


@cache
def _rows_of(suite: type[BillingContract], dataset: str) -> tuple[Any, pd.DataFrame]:
    with tempfile.TemporaryDirectory() as folder:
        path = csv_file(Path(folder) / "export.csv", suite.export_rows(dataset))
        connection = connect(threads=1)
        raw, columns = read_raw(connection, [path], Path(folder))
        context = DeliveryContext(str(path), dataset, "d1", columns, file_name=path.name)
        found = billing_normaliser(dataset)(raw, context)
        schema = found.rows.schema()
        frame = finish(connection, found.rows, Lineage(dataset, "d1")).to_pyarrow().to_pandas()
        connection.disconnect()
    return schema, frame


class BillingContract(ABC):
    """The invariants of a normaliser, over an export that its class makes by hand.

    `datasets` are the registry's names that the class answers for; `money` maps our cost columns
    to those of the export whose sum they must keep.
    """

    datasets: ClassVar[tuple[str, ...]]
    money: ClassVar[dict[str, str]]

    @staticmethod
    @abstractmethod
    def export_rows(dataset: str) -> list[dict[str, str]]:
        """Rows of an export: usage, a covered row, a fee, a credit, and one with little in it."""

    def _each(self) -> list[tuple[str, Any, pd.DataFrame]]:
        return [(dataset, *_rows_of(type(self), dataset)) for dataset in self.datasets]

    def test_no_source_row_is_dropped_or_doubled(self) -> None:
        for dataset, _, frame in self._each():
            rows = len(self.export_rows(dataset))
            assert sorted(frame["source_row_no"]) == list(range(1, rows + 1))

    def test_rows_conform_to_the_declared_table(self) -> None:
        for _, _, frame in self._each():
            assert len(conform(frame, BILLING)) == len(frame)

    def test_a_normaliser_gives_every_column_of_its_share_in_the_declared_type(self) -> None:
        for _, schema, _ in self._each():
            for column in BILLING.columns:
                if column.name not in FINISHED_LATER and column.name in schema:
                    kind = schema[column.name].copy(nullable=True)
                    assert str(kind) in (
                        ibis_type(column.dtype),
                        "null",
                        "timestamp('UTC', 6)",
                    ) or (kind.is_integer() or kind.is_string())
            wanted = {c.name for c in BILLING.columns} - {
                *FINISHED_LATER,
                *TOLD_BY_SOME,
                "gpu_hours",
            }
            assert wanted <= set(schema)

    def test_times_are_utc_and_no_period_ends_before_it_starts(self) -> None:
        for _, _, frame in self._each():
            for name in ("period_start", "period_end"):
                assert str(frame[name].dt.tz) in ("UTC", "Etc/UTC")
            both = frame.dropna(subset=["period_start", "period_end"])
            assert (both["period_start"] <= both["period_end"]).all()

    def test_the_money_of_the_export_is_kept_to_the_last_digit(self) -> None:
        for dataset, _, frame in self._each():
            for ours, theirs in self.money.items():
                cells = [row.get(theirs) for row in self.export_rows(dataset)]
                wanted = sum((exact(cell) for cell in cells if cell), Decimal(0))
                stated = frame[ours].dropna()
                if len(stated):
                    assert sum(stated, Decimal(0)) == wanted

    def test_billing_months_are_months(self) -> None:
        for _, _, frame in self._each():
            assert frame["billing_period"].str.fullmatch(r"\d{4}-\d{2}").all()

    def test_unused_commitments_have_no_gpu_hours(self) -> None:
        for _, _, frame in self._each():
            unused = frame[frame["commitment_status"] == "unused"]
            assert unused["gpu_hours"].isna().all()
            assert unused["instance_hours"].isna().all()

    def test_fees_taxes_and_credits_have_no_hours(self) -> None:
        for _, _, frame in self._each():
            others = frame[frame["charge_type"].isin(["fee", "tax", "credit", "discount"])]
            assert others["instance_hours"].isna().all()
            assert others["gpu_hours"].isna().all()
