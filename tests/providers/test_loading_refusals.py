"""Files that are not loaded: every refusal is said, and the store stays as it was."""

from __future__ import annotations

import gzip
import zipfile
from typing import TYPE_CHECKING

import pytest

from data.errors import DataError, UsageError
from data.store import Status, Store
from providers.files.loading import load
from tests.exports import csv_file
from tests.providers.loading_cases import CUR, azure_run, cost, cur, reason_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def test_a_file_that_lost_most_of_the_month_is_refused_unless_forced(
    tmp_path: Path, store: Store
) -> None:
    load([cur(tmp_path / "whole.csv", *[768] * 30)], store)
    short = cur(tmp_path / "short.csv", *[768] * 5)
    assert "cost" in reason_of(store, short)
    assert cost(store) == [23040]  # 30 x 768
    assert load([short], store, force=True)[0].status is Status.LOADED
    assert cost(store) == [3840]  # 5 x 768


def test_a_truncated_gzip_is_rejected_and_what_was_loaded_before_stays(
    tmp_path: Path, store: Store
) -> None:
    load([cur(tmp_path / "a.csv", 100)], store)
    whole = gzip.compress(cur(tmp_path / "b.csv", *range(100, 5000)).read_bytes())
    broken = tmp_path / "b.csv.gz"
    for cut in (len(whole) - 5, len(whole) // 2, 30):
        broken.write_bytes(whole[:cut])
        assert "gzip" in reason_of(store, broken).lower()
    assert cost(store) == [100]


def test_trap_21_an_empty_file_and_one_with_a_header_alone_are_rejected(
    tmp_path: Path, store: Store
) -> None:
    empty = tmp_path / "a.csv"
    empty.write_bytes(b"")
    assert "empty" in reason_of(store, empty)
    header = csv_file(tmp_path / "b.csv", [], list(CUR))
    assert "no rows" in reason_of(store, header)


def test_a_header_that_lacks_required_columns_lists_all_of_them(
    tmp_path: Path, store: Store
) -> None:
    gone = ("line_item_unblended_cost", "line_item_usage_end_date")
    row = {name: value for name, value in CUR.items() if name not in gone}
    reason = reason_of(store, csv_file(tmp_path / "a.csv", [row]))
    assert all(name in reason for name in gone)


@pytest.mark.parametrize("cell", ["NaN", "Infinity", "1234567890123.5", "a lot"])
def test_a_cost_that_is_no_amount_is_named_by_row_and_column(
    tmp_path: Path, store: Store, cell: str
) -> None:
    reason = reason_of(store, cur(tmp_path / "a.csv", 100, cell, 5))
    assert "row 2, column line_item_unblended_cost" in reason
    assert cell in reason


def test_every_bad_cell_of_a_file_is_named_at_once(tmp_path: Path, store: Store) -> None:
    path = csv_file(tmp_path / "a.csv", [
        {**CUR, "line_item_unblended_cost": "NaN"},
        {**CUR, "line_item_usage_amount": "inf"},
        {**CUR, "line_item_usage_start_date": "yesterday"},
    ])  # fmt: skip
    reason = reason_of(store, path)
    assert "row 1, column line_item_unblended_cost: 'NaN'" in reason
    assert "row 2, column line_item_usage_amount: 'inf'" in reason
    assert "row 3, column line_item_usage_start_date: 'yesterday'" in reason


def test_a_row_with_a_cell_too_few_is_named_by_its_line(tmp_path: Path, store: Store) -> None:
    path = cur(tmp_path / "a.csv", 100, 200)
    path.write_text(path.read_text() + "Usage,short\n")
    assert "a.csv line 4: 2 cells" in reason_of(store, path)


def test_one_rejected_delivery_does_not_stop_the_others(tmp_path: Path, store: Store) -> None:
    bad, good = cur(tmp_path / "in" / "a.csv", "NaN"), cur(tmp_path / "in" / "b.csv", 7)
    results = load([tmp_path / "in"], store)
    assert [result.status for result in results] == [Status.REJECTED, Status.LOADED]
    assert [result.path for result in results] == [str(bad), str(good)]
    assert cost(store) == [7]


def test_an_unknown_layout_is_rejected_with_what_was_looked_for(
    tmp_path: Path, store: Store
) -> None:
    path = csv_file(tmp_path / "a.csv", [{"foo": "1", "bar": "2"}])
    reason = reason_of(store, path)
    assert "foo, bar" in reason
    assert "lineItem/LineItemType" in reason


def test_a_folder_without_exports_and_an_unknown_dataset_are_errors_of_the_call(
    tmp_path: Path, store: Store
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no exports"):
        load([tmp_path / "empty"], store)
    with pytest.raises(UsageError, match="focus"):
        load([tmp_path], store, dataset="focusx")


def test_trap_21_a_row_count_that_differs_from_the_manifest_rejects_the_delivery(
    tmp_path: Path, store: Store
) -> None:
    reason = reason_of(store, azure_run(tmp_path, "r1", 2, rows=3, stated=4))
    assert "3 rows in its files, 4 by the manifest" in reason


def test_what_cannot_be_loaded_leaves_nothing_in_the_store(tmp_path: Path, store: Store) -> None:
    reason_of(store, cur(tmp_path / "a.csv", "NaN"))
    assert list((tmp_path / "store" / "deliveries").iterdir()) == []


def test_a_second_dataset_of_the_same_account_and_month_is_refused(
    tmp_path: Path, store: Store
) -> None:
    load([cur(tmp_path / "a.csv", 100)], store)
    focus = {"ProviderName": "AWS", "BillingAccountId": "0011", "BillingCurrency": "USD",
             "ChargeCategory": "Usage", "BilledCost": "100", "EffectiveCost": "100",
             "ChargePeriodStart": "2026-11-02T03:00:00Z",
             "ChargePeriodEnd": "2026-11-02T04:00:00Z"}  # fmt: skip
    assert "cur" in reason_of(store, csv_file(tmp_path / "f.csv", [focus]))
    assert cost(store) == [100]


LARGE = {
    # 12 integer digits fit; times the 8 GPUs of a p5.48xlarge they do not.
    "product": ("line_item_usage_amount", "999999999999"),
    "digits": ("line_item_unblended_cost", "1234567890123.5"),
    "exponent": ("line_item_unblended_cost", "1e30"),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_an_amount_that_is_too_large_is_named_by_row_and_column(
    tmp_path: Path, store: Store, name: str
) -> None:
    column, cell = LARGE[name]
    reason = reason_of(store, csv_file(tmp_path / "a.csv", [CUR, {**CUR, column: cell}]))
    assert f"row 2, column {column}: {cell!r} is too large" in reason
    assert reason.count("row 2") == 1
    assert "HUGEINT" not in reason
    assert "DECIMAL" not in reason


def test_amounts_of_12_digits_are_loaded_although_their_sum_has_13(
    tmp_path: Path, store: Store
) -> None:
    row = {**CUR, "line_item_unblended_cost": "999999999999"}
    (result,) = load([csv_file(tmp_path / "a.csv", [row, row])], store)
    assert (result.status, result.rows) == (Status.LOADED, 2)


def test_a_bad_cell_is_named_by_its_file_and_its_row_there(tmp_path: Path, store: Store) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, cells in (("one", "12"), ("two", "3x")):
            rows = [{**CUR, "line_item_unblended_cost": cell} for cell in cells]
            archive.write(csv_file(tmp_path / f"{name}.csv", rows), f"{name}.csv")
    reason = reason_of(store, tmp_path / "a.zip")
    assert "two.csv row 2, column line_item_unblended_cost: 'x' is no number" in reason


def test_a_reason_says_each_thing_once(tmp_path: Path, store: Store) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    assert reason_of(store, tmp_path / "empty.csv") == "empty.csv is empty: export it again"
    (tmp_path / "blank.csv").write_bytes(b"  \n\n")
    assert reason_of(store, tmp_path / "blank.csv").count("blank.csv") == 1
    lacking = [{name: CUR[name] for name in CUR if name != "line_item_unblended_cost"}]
    reason = reason_of(store, csv_file(tmp_path / "a.csv", lacking))
    assert reason.count("line_item_unblended_cost") == 1
