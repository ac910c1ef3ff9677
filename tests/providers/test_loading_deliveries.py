"""Files that are loaded: whole, in order, the right one of two, and what is told of them."""

from __future__ import annotations

import gzip
import json
import os
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from data.quality import unknown_types
from data.store import Status, Store
from data.totals import totals
from providers.files.loading import load
from tests.exports import csv_file, json_lines
from tests.providers.loading_cases import AZURE, CUR, azure_run, cost, cur

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def test_every_source_row_is_stored_once_in_reading_order(tmp_path: Path, store: Store) -> None:
    (result,) = load([cur(tmp_path / "a.csv", 100, 100, 100)], store)  # equal rows stay
    assert (result.status, result.rows, result.source) == (Status.LOADED, 3, "aws")
    rows = store.table("billing").order_by("source_row_no").to_pyarrow().to_pylist()
    assert [row["source_row_no"] for row in rows] == [1, 2, 3]
    assert [row["gpu_hours"] for row in rows] == [8, 8, 8]


def test_rows_lie_in_the_store_in_reading_order_whatever_they_are_joined_to(
    tmp_path: Path, store: Store
) -> None:
    machines, zones = ("p5.48xlarge", "m5.large", "g5.xlarge"), ("us-east-1a", "eu-west-1b", "")
    rows = [
        {**CUR, "line_item_usage_type": f"BoxUsage:{machines[n % 3]}",
         "line_item_availability_zone": zones[n // 3 % 3]}
        for n in range(9_000)
    ]  # fmt: skip
    load([csv_file(tmp_path / "a.csv", rows)], store)
    (file,) = (tmp_path / "store" / "deliveries").glob("*/billing.parquet")
    numbers = pq.read_table(file, columns=["source_row_no"]).column(0).to_pylist()
    assert numbers == list(range(1, 9_001))


def test_bl_01_a_month_to_date_file_replaces_the_former_and_is_not_added(
    tmp_path: Path, store: Store
) -> None:
    for name, costs in (("1", [100]), ("2", [100, 110]), ("3", [100, 110, 90])):
        load([cur(tmp_path / f"{name}.csv", *costs)], store)
    assert cost(store) == [300]  # not 100 + 210 + 300 = 610
    load([tmp_path / "3.csv"], store)
    assert cost(store) == [300]


def test_line_ends_that_change_within_a_file_are_read_all_the_same(
    tmp_path: Path, store: Store
) -> None:
    path = cur(tmp_path / "a.csv", *range(1, 20_001))
    head, _, tail = path.read_text().partition("\n")
    path.write_bytes((head + "\r\n" + tail[:2_000_000].replace("\n", "\r\n") + tail[2_000_000:])
                     .encode())  # fmt: skip
    (result,) = load([path], store)
    assert (result.status, result.rows) == (Status.LOADED, 20_000)
    assert cost(store) == [200_010_000]  # 20,000 x 20,001 / 2


@pytest.mark.parametrize("machine", ["p5x.48xlarge", "ml.p5x.48xlarge", "p9.48xlarge"])
def test_an_unknown_machine_that_looks_like_a_gpu_is_told_and_kept(
    tmp_path: Path, store: Store, machine: str
) -> None:
    path = cur(tmp_path / "a.csv", 90, line_item_usage_type=f"BoxUsage:{machine}")
    (result,) = load([path], store)
    assert result.rows == 1
    (warning,) = result.warnings
    assert machine in warning
    assert ("H100" in warning) == ("p5" in machine)
    # The quality table tells of it once, when the bill is read.
    assert store.quality().empty
    (told,) = unknown_types(store.table("billing"))
    assert (told.scope, told.count, told.amount) == (f"aws/{machine}", 1, 90)
    assert cost(store) == [90]


def test_machines_without_gpus_are_no_news(tmp_path: Path, store: Store) -> None:
    path = cur(tmp_path / "a.csv", 9, line_item_usage_type="BoxUsage:m5.large")
    assert load([path], store)[0].warnings == ()


def test_a_file_without_a_currency_loads_with_a_warning(tmp_path: Path, store: Store) -> None:
    row = {name: value for name, value in CUR.items() if "currency" not in name}
    (result,) = load([csv_file(tmp_path / "a.csv", [row])], store)
    assert result.status is Status.LOADED
    assert any("currency" in text for text in result.warnings)
    assert list(totals(store.table("billing"), ["currency"])["currency"]) == ["unknown"]


def test_equal_line_items_under_two_accounts_are_told(tmp_path: Path, store: Store) -> None:
    load([cur(tmp_path / "a.csv", 100, 200)], store)
    (result,) = load([cur(tmp_path / "b.csv", 100, 300, bill_payer_account_id="0022")], store)
    (warning,) = result.warnings
    assert warning.startswith("1 equal line items stand under two accounts")
    (other,) = load([cur(tmp_path / "c.csv", 5, bill_payer_account_id="0033",
                         line_item_resource_id="i-9")], store)  # fmt: skip
    assert other.warnings == ()


def test_parts_of_an_extract_are_one_delivery(tmp_path: Path, store: Store) -> None:
    row = {"billing_account_id": "01", "service": {"id": "x", "description": "Compute Engine"},
           "sku": {"id": "s", "description": "d"}, "project": {"id": "p"},
           "usage_start_time": "2026-11-02 00:00:00 UTC",
           "usage_end_time": "2026-11-02 01:00:00 UTC", "cost": 10.5, "currency": "USD",
           "invoice": {"month": "202611"}, "cost_type": "regular",
           "credits": [{"name": "c", "amount": -2}, {"name": "d", "amount": -1}]}  # fmt: skip
    folder = tmp_path / "extract"
    folder.mkdir()
    for part, rows in ((0, [row, row]), (1, [{**row, "cost": 20, "credits": []}])):
        plain = json_lines(tmp_path / "plain", rows).read_bytes()
        (folder / f"gcp-00000000000{part}.json.gz").write_bytes(gzip.compress(plain))
    (result,) = load([folder], store)
    assert (result.status, result.dataset, result.rows) == (Status.LOADED, "standard", 3)
    assert cost(store) == [35]  # 2 x (10.5 - 2 - 1) + 20


def _manifest(folder: Path, assembly: str, *costs: object, age_s: int = 0) -> Path:
    part = cur(folder / assembly / "report-1.csv", *costs)
    document = {"assemblyId": assembly, "account": "0011", "reportId": "r",
                "billingPeriod": {"start": "20261101T000000.000Z"},
                "reportKeys": [f"p/{assembly}/{part.name}"]}  # fmt: skip
    path = folder / assembly / "report-Manifest.json"
    path.write_text(json.dumps(document))
    os.utime(path, (1_800_000_000 - age_s,) * 2)
    return path


def test_a_newer_delivery_replaces_and_an_older_one_that_comes_late_is_ignored(
    tmp_path: Path, store: Store
) -> None:
    old, new = _manifest(tmp_path, "a1", 100, age_s=900), _manifest(tmp_path, "a2", 120)
    assert load([new.parent], store)[0].delivery_id == "a2-2026-11"
    (late,) = load([old.parent], store)
    assert late.status is Status.IGNORED_OLDER
    assert cost(store) == [120]
    other = Store.open(tmp_path / "other")
    load([old], other)
    (result,) = load([new], other)
    assert result.status is Status.LOADED
    assert any("time of the manifest" in text for text in result.warnings)
    assert cost(other) == [120]


def test_trap_21_of_deliveries_given_together_only_the_newest_complete_one_is_read(
    tmp_path: Path, store: Store
) -> None:
    for number, age in (("a1", 900), ("a2", 600), ("a3", 0)):
        _manifest(tmp_path / "in", number, 100, 20, age_s=age)
    (tmp_path / "in" / "a3" / "report-1.csv").unlink()
    results = load([tmp_path / "in"], store)
    assert [(r.delivery_id, r.status) for r in results] == [
        ("a3", Status.REJECTED), ("a2-2026-11", Status.LOADED), ("a1", Status.IGNORED_OLDER),
    ]  # fmt: skip
    assert "missing part" in str(results[0].reason)
    assert cost(store) == [120]


def test_trap_20_rows_of_another_month_belong_to_the_delivery_and_leave_with_it(
    tmp_path: Path, store: Store
) -> None:
    path = _manifest(tmp_path, "a1", 100, age_s=900)
    early = {"bill_billing_period_start_date": "2026-10-01T00:00:00Z"}
    csv_file(path.parent / "report-1.csv", [CUR, {**CUR, **early}])
    (result,) = load([path], store)
    assert result.billing_periods == ("2026-10", "2026-11")
    assert "1 of 2 rows are of other billing periods" in result.warnings[0]
    load([_manifest(tmp_path, "a2", 130)], store)
    assert cost(store) == [130]  # the October row went with its delivery


def test_azure_runs_of_one_month_are_versions_and_not_added(tmp_path: Path, store: Store) -> None:
    azure_run(tmp_path / "in", "r9", 2, rows=1, stated=1)
    azure_run(tmp_path / "in", "r1", 3, rows=2, stated=2)
    results = load([tmp_path / "in"], store)
    assert [(r.delivery_id, r.status) for r in results] == [
        ("r1-2026-11", Status.LOADED), ("r9", Status.IGNORED_OLDER),
    ]  # fmt: skip
    billed = totals(store.table("billing"), ["source"])["billed_cost"]
    assert list(billed) == [Decimal(1536)]  # 2 x 768


def test_the_dataset_option_overrules_what_the_file_says(tmp_path: Path, store: Store) -> None:
    path = csv_file(tmp_path / "actual.csv", [AZURE])
    (result,) = load([path], store, dataset="amortized")
    assert (result.dataset, result.source) == ("amortized", "azure")
    frame = totals(store.table("billing"), ["dataset"])
    assert list(frame["effective_cost"]) == [768]
    assert list(frame["billed_cost"].isna()) == [True]


def test_tables_that_users_bring_are_loaded_by_the_same_door(tmp_path: Path, store: Store) -> None:
    path = csv_file(tmp_path / "util.csv", [
        {"hour_start": "2026-11-02T03:00:00Z", "cloud": "aws", "account": "0011",
         "region": "us-east-1", "instance_id": "i-1", "gpu_uuid": "GPU-1", "gpu_util": "70"},
    ])  # fmt: skip
    (result,) = load([path], store)
    assert (result.status, result.dataset, result.rows) == (Status.LOADED, "utilization", 1)
