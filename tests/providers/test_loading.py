"""Loading files into a store: whole or not at all, the right one of two, and every refusal said."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from data.errors import DataError, UsageError
from data.quality import unknown_types
from data.store import Status, Store
from data.totals import totals
from providers.files.loading import load
from tests.exports import csv_file, json_lines

if TYPE_CHECKING:
    from pathlib import Path

CUR = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "BoxUsage:p5.48xlarge",
    "line_item_product_code": "AmazonEC2", "bill_payer_account_id": "0011",
    "bill_billing_period_start_date": "2026-11-01T00:00:00Z", "bill_invoice_id": "",
    "line_item_currency_code": "USD", "line_item_resource_id": "i-1",
    "line_item_usage_start_date": "2026-11-02T03:00:00Z",
    "line_item_usage_end_date": "2026-11-02T04:00:00Z", "line_item_usage_amount": "1",
    "pricing_unit": "Hrs", "line_item_unblended_cost": "100",
}  # fmt: skip
AZURE = {
    "BillingAccountId": "86115", "SubscriptionId": "s1", "Date": "11/02/2026",
    "BillingPeriodStartDate": "11/01/2026", "BillingPeriodEndDate": "11/30/2026",
    "MeterCategory": "Virtual Machines", "MeterName": "ND96isr H100 v5", "MeterId": "m",
    "UnitOfMeasure": "1 Hour", "Quantity": "24", "CostInBillingCurrency": "768",
    "BillingCurrency": "USD", "ChargeType": "Usage", "PricingModel": "OnDemand",
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def cur(path: Path, *costs: object, **change: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {**CUR, "line_item_resource_id": f"i-{number}", **change,
         "line_item_unblended_cost": str(cost)}
        for number, cost in enumerate(costs)
    ]  # fmt: skip
    return csv_file(path, rows)


def cost(store: Store) -> list[Any]:
    return list(totals(store.table("billing"), ["source"])["effective_cost"])


def reason_of(store: Store, *paths: Path, **more: Any) -> str:
    (result,) = load(paths, store, **more)
    assert result.status is Status.REJECTED
    assert result.reason is not None
    return result.reason


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


def test_a_month_to_date_file_replaces_the_former_and_is_not_added(
    tmp_path: Path, store: Store
) -> None:
    for name, costs in (("1", [100]), ("2", [100, 110]), ("3", [100, 110, 90])):
        load([cur(tmp_path / f"{name}.csv", *costs)], store)
    assert cost(store) == [300]  # not 100 + 210 + 300 = 610
    load([tmp_path / "3.csv"], store)
    assert cost(store) == [300]


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


def test_an_empty_file_and_one_with_a_header_alone_are_rejected(
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


def test_of_deliveries_given_together_only_the_newest_complete_one_is_read(
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


def test_rows_of_another_month_belong_to_the_delivery_and_leave_with_it(
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


def _azure(folder: Path, run: str, day: int, rows: int, stated: int | None) -> Path:
    part = folder / run / "part_0.csv"
    part.parent.mkdir(parents=True)
    csv_file(part, [AZURE] * rows)
    document = {
        "blobs": [{"blobName": f"root/{run}/part_0.csv", "byteCount": part.stat().st_size,
                   "dataRowCount": stated}],
        "exportConfig": {"exportName": "e", "type": "ActualCost",
                         "resourceId": "providers/Microsoft.Billing/billingAccounts/86115"},
        "runInfo": {"runId": run, "submittedTime": f"2026-11-0{day}T00:00:00Z",
                    "startDate": "2026-11-01T00:00:00"},
    }  # fmt: skip
    path = folder / run / "manifest.json"
    path.write_text(json.dumps(document))
    return path


def test_a_row_count_that_differs_from_the_manifest_rejects_the_delivery(
    tmp_path: Path, store: Store
) -> None:
    reason = reason_of(store, _azure(tmp_path, "r1", 2, rows=3, stated=4))
    assert "3 rows in its files, 4 by the manifest" in reason


def test_azure_runs_of_one_month_are_versions_and_not_added(tmp_path: Path, store: Store) -> None:
    _azure(tmp_path / "in", "r9", 2, rows=1, stated=1)
    _azure(tmp_path / "in", "r1", 3, rows=2, stated=2)
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
