"""What a store gives back: its rows, its faults, and what readers and writers see."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from data.errors import StoreError
from data.schema import BILLING
from data.store import Status, Store, steps
from tests.staged import Charges, publish_utilization, total

A = Charges(("10", "5"), name="a.csv")
B = Charges(("10", "6"), name="b.csv")


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store")


def test_a_store_that_does_not_exist_reads_as_empty_tables_and_is_not_made(tmp_path):
    store = Store.open(tmp_path / "none")
    table = store.table("billing")
    assert list(table.columns) == BILLING.names
    assert table.count().to_pyarrow().as_py() == 0
    assert store.deliveries() == []
    assert not (tmp_path / "none").exists()


def test_a_published_delivery_is_read_back(store):
    result = A.publish(store)
    assert result.status is Status.LOADED
    assert result.replaced == ()
    assert total(store) == Decimal(15)  # 10 + 5
    assert [(one.path, one.rows) for one in store.deliveries()] == [("a.csv", 2)]
    assert total(Store.open(store.path)) == Decimal(15)


def test_the_result_has_the_shape_of_the_contract(store):
    result = A.publish(store).as_json()
    wanted = {
        "path": "a.csv",
        "source": "aws",
        "dataset": "cur",
        "billing_periods": ["2026-11"],
        "rows": 2,
        "status": "loaded",
        "reason": None,
        "warnings": [],
    }
    assert {name: result[name] for name in wanted} == wanted
    assert isinstance(result["delivery_id"], str)
    json.dumps(result)


def test_a_store_of_a_newer_version_is_refused_with_both_versions_and_the_remedy(store):
    A.publish(store)
    path = store.path / "catalogue.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 7}))
    with pytest.raises(StoreError, match=r"version is 7.*up to version 2.*Upgrade loadfactor"):
        Store.open(store.path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": "other"}',
        '{"format": "loadfactor-store", "version": "1"}',
        '{"format": "loadfactor-store", "version": 1}',
        '{"format": "loadfactor-store", "version": 1, "sequence": 1, "deliveries": {}, '
        '"active": {"aws|1|cur|2026-11": "gone"}, "superseded": []}',
    ],
)
def test_a_damaged_catalogue_is_named_with_the_remedy(store, text):
    A.publish(store)
    (store.path / "catalogue.json").write_text(text)
    with pytest.raises(StoreError, match=r"catalogue\.json cannot be read.*load the exports again"):
        Store.open(store.path)


def test_a_missing_delivery_folder_is_named_and_loading_the_file_again_repairs_it(store):
    A.publish(store)
    Charges(("1",), account="2", name="other.csv").publish(store)
    record = next(one for one in store.deliveries() if one.path == "a.csv")
    folder = store.path / "deliveries" / record.folder
    (folder / "billing.parquet").unlink()
    opened = Store.open(store.path)
    with pytest.raises(StoreError, match=rf"{record.folder}: the rows of a\.csv"):
        opened.table("billing")
    assert A.publish(opened).status is Status.LOADED
    assert total(opened) == Decimal(16)


def test_a_column_that_an_older_file_lacks_reads_as_missing(store):
    A.publish(store)
    Charges(("1",), account="2").publish(store)
    for record in store.deliveries():
        path = store.path / "deliveries" / record.folder / "billing.parquet"
        pq.write_table(pq.read_table(path).drop_columns(["list_cost", "tags"]), path)
    table = store.table("billing")
    assert list(table.columns) == BILLING.names
    assert table.list_cost.sum().to_pyarrow().as_py() is None
    assert total(store) == Decimal(16)


def test_a_file_in_the_place_of_the_store_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        Store.open(tmp_path / "file")


def test_an_unknown_table_is_an_error_that_names_the_known(store):
    with pytest.raises(StoreError, match=r"'bills'.*billing, .*utilization"):
        store.table("bills")


def test_a_staged_file_that_is_not_what_it_says_is_refused(store):
    with store.staging() as folder:
        staged = A.stage(folder)
        with pytest.raises(StoreError, match="other rows than stated"):
            store.publish(replace(staged, rows=3))
        with pytest.raises(StoreError, match="nothing was staged"):
            store.publish(replace(staged, table="utilization", dataset="utilization"))
    assert total(store) is None


def test_what_is_staged_and_not_published_is_removed(store):
    with store.staging() as folder:
        A.stage(folder)
    assert list((store.path / "deliveries").iterdir()) == []


def test_a_published_folder_holds_the_rows_and_their_record_alone(store):
    with store.staging() as folder:
        (folder / "unpacked").mkdir()
        (folder / "raw.csv").write_text("left over")
        store.publish(A.stage(folder))
    (published,) = (store.path / "deliveries").iterdir()
    assert sorted(path.name for path in published.iterdir()) == ["billing.parquet", "delivery.json"]


def test_an_open_reader_keeps_the_rows_that_a_writer_replaces(store):
    A.publish(store)
    reader = Store.open(store.path)
    rows = reader.table("billing")
    writer = Store.open(store.path)
    B.publish(writer)
    publish_utilization(writer, {"2026-11-01": 1}, "more")
    assert rows.effective_cost.sum().to_pyarrow().as_py() == Decimal(15)
    reader.refresh()
    assert total(reader) == Decimal(16)
    reader.close()
    store.close()
    Charges(("17",)).publish(writer)
    folders = {path.name for path in (store.path / "deliveries").iterdir()}
    assert folders == {record.folder for record in writer.deliveries()}


def test_a_second_writer_waits_for_the_first(store):
    Store.open(store.path)
    A.publish(store)
    started = threading.Event()
    results = []

    def write():
        started.set()
        results.append(B.publish(Store.open(store.path)).status)

    with steps.writer_lock(store.path / ".lock", 1):
        writer = threading.Thread(target=write)
        writer.start()
        started.wait()
        writer.join(0.3)
        assert results == []
    writer.join(10)
    assert results == ["loaded"]


def test_a_writer_that_waits_too_long_names_the_lock_and_its_holder(store):
    A.publish(store)
    other = Store.open(store.path)
    other.wait_s = 0.1
    lock = store.path / ".lock"
    with steps.writer_lock(lock, 1), pytest.raises(StoreError, match=r"process \(\d+\).*\.lock"):
        B.publish(other)


def test_a_store_that_cannot_be_written_is_an_error(tmp_path):
    store = Store.open(tmp_path / "taken" / "store")
    (tmp_path / "taken").write_text("a file where the folder should be made")
    with pytest.raises(StoreError, match="cannot write to the store"), store.staging():
        pass


def test_quality_findings_of_active_deliveries_are_kept(store):
    finding = {
        "check": "bad_telemetry_rows", "scope": "utilization", "severity": "warning", "count": 2,
        "amount": None, "currency": None, "detail": "2 of 40 rows dropped",
    }  # fmt: skip
    with store.staging() as folder:
        store.publish(replace(A.stage(folder), quality=(finding,)))
    frame = Store.open(store.path).quality()
    assert frame[["check", "count"]].to_numpy().tolist() == [["bad_telemetry_rows", 2]]
    B.publish(store)
    assert store.quality().empty
