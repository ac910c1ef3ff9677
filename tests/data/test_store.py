from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from data.errors import StoreError
from data.schema import BILLING
from data.store import Status, Store, UnitFacts, steps
from tests.staged import Charges, publish_utilization, total

A = Charges(("10", "5"), name="a.csv")
B = Charges(("10", "6"), name="b.csv")
MORNING = datetime(2026, 11, 20, 6, tzinfo=UTC)
EVENING = datetime(2026, 11, 20, 18, tzinfo=UTC)


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


def test_loading_the_same_content_twice_changes_nothing(store):
    A.publish(store)
    before = (store.path / "catalogue.json").read_bytes()
    again = replace(A, name="copy.csv").publish(store)
    assert again.status is Status.UNCHANGED
    assert (store.path / "catalogue.json").read_bytes() == before
    assert total(store) == Decimal(15)


def test_loading_a_b_a_b_ends_in_b(store):
    statuses = [one.publish(store).status for one in (A, B, A, B)]
    assert statuses == ["loaded", "loaded", "ignored_older", "unchanged"]
    assert total(store) == Decimal(16)  # 10 + 6


def test_a_later_load_says_what_it_replaced(store):
    first = A.publish(store)
    (replaced,) = B.publish(store).replaced
    assert (replaced.unit, replaced.delivery_id) == ("aws|1|cur|2026-11", first.delivery_id)
    assert (replaced.path, replaced.before.cost, replaced.after.cost) == (
        "a.csv",
        Decimal(15),
        Decimal(16),
    )


def test_force_brings_back_a_content_that_was_replaced(store):
    A.publish(store)
    B.publish(store)
    assert A.publish(store, force=True).status is Status.LOADED
    assert total(store) == Decimal(15)
    assert B.publish(store).status is Status.IGNORED_OLDER


def test_force_writes_an_unchanged_content_anew(store):
    A.publish(store)
    assert A.publish(store, force=True).status is Status.LOADED
    assert total(store) == Decimal(15)
    assert len(store.deliveries()) == 1


@pytest.mark.parametrize("final_first", [True, False])
def test_a_file_with_invoice_ids_outranks_one_without_in_either_order(store, final_first):
    open_month = Charges(("30",), name="not-final.csv")
    final = Charges(("0.3",), name="final.csv", invoiced=True)
    order = [final, open_month] if final_first else [open_month, final]
    statuses = [one.publish(store).status for one in order]
    assert statuses == ["loaded", "ignored_older" if final_first else "loaded"]
    assert total(store) == Decimal("0.3")


@pytest.mark.parametrize("newer_first", [True, False])
def test_a_newer_manifest_outranks_an_older_one_in_either_order(store, newer_first):
    older = Charges(("10",), made=MORNING, delivery="run-1-2026-11")
    newer = Charges(("12",), made=EVENING, delivery="run-2-2026-11")
    order = [newer, older] if newer_first else [older, newer]
    statuses = [one.publish(store).status for one in order]
    assert statuses == ["loaded", "ignored_older" if newer_first else "loaded"]
    assert total(store) == Decimal(12)


def test_force_does_not_put_an_older_manifest_before_a_newer_one(store):
    Charges(("12",), made=EVENING).publish(store)
    result = Charges(("10",), made=MORNING).publish(store, force=True)
    assert result.status is Status.IGNORED_OLDER
    assert "2026-11-20T06:00:00Z" in result.reason
    assert total(store) == Decimal(12)


def test_the_same_delivery_id_is_the_same_delivery(store):
    Charges(("10",), delivery="assembly-2026-11").publish(store)
    result = Charges(("11",), delivery="assembly-2026-11").publish(store)
    assert result.status is Status.UNCHANGED


def test_a_replacement_that_loses_more_than_half_of_the_cost_is_refused_unless_forced(store):
    Charges(("60", "40")).publish(store)
    smaller = Charges(("49.99",), name="small.csv")  # below 100 x 0.5
    result = smaller.publish(store)
    assert result.status is Status.REJECTED
    assert "aws|1|cur|2026-11" in result.reason
    assert "--force" in result.reason
    assert total(store) == Decimal(100)
    assert smaller.publish(store, force=True).status is Status.LOADED
    assert total(store) == Decimal("49.99")


def test_a_replacement_of_exactly_half_the_cost_is_taken(store):
    Charges(("60", "40")).publish(store)
    assert Charges(("50",)).publish(store).status is Status.LOADED


def test_a_delivery_without_rows_is_refused(store):
    A.publish(store)
    result = Charges((), name="empty.csv").publish(store)
    assert result.status is Status.REJECTED
    assert "no rows" in result.reason
    assert total(store) == Decimal(15)


def test_a_unit_that_a_replacement_leaves_without_rows_is_refused(store):
    A.publish(store)
    with store.staging() as folder:
        staged = Charges(("1",), periods=("2026-12",)).stage(folder)
        units = {**staged.units, "aws|1|cur|2026-11": UnitFacts(0, False, Decimal(0))}
        result = store.publish(replace(staged, units=units))
    assert result.status is Status.REJECTED
    assert "no rows where 2 were loaded before" in result.reason


def test_two_datasets_of_one_account_and_period_are_refused(store):
    A.publish(store)
    focus = Charges(("15",), dataset="focus", name="focus.csv")
    result = focus.publish(store)
    assert result.status is Status.REJECTED
    assert "aws account 1 has dataset cur for 2026-11" in result.reason
    assert total(store) == Decimal(15)


def test_a_forced_second_dataset_takes_the_place_of_the_first(store):
    A.publish(store)
    Charges(("7",), periods=("2026-10",)).publish(store)
    result = Charges(("14",), dataset="focus").publish(store, force=True)
    assert [one.unit for one in result.replaced] == ["aws|1|cur|2026-11"]
    assert total(store) == Decimal(21)  # 7 of October + 14 of November


def test_actual_and_amortized_stand_side_by_side(store):
    azure = Charges(("3",), source="azure", dataset="actual")
    azure.publish(store)
    assert replace(azure, dataset="amortized").publish(store).status is Status.LOADED
    assert total(store) == Decimal(6)


@pytest.mark.parametrize("lone", ["actual", "amortized"])
def test_an_azure_file_that_fills_both_costs_does_not_stand_beside_the_other(store, lone):
    azure = Charges(("3",), source="azure")
    with store.staging() as folder:
        staged = replace(azure, dataset=lone).stage(folder)
        units = {unit: replace(facts, states_both=True) for unit, facts in staged.units.items()}
        store.publish(replace(staged, units=units))
    other = "amortized" if lone == "actual" else "actual"
    result = replace(azure, dataset=other).publish(store)
    assert result.status is Status.REJECTED
    assert "same money twice" in result.reason
    assert total(store) == Decimal(3)


def test_another_account_or_period_may_use_another_dataset(store):
    A.publish(store)
    assert Charges(("1",), account="2", dataset="focus").publish(store).status is Status.LOADED
    later = Charges(("1",), periods=("2026-12",), dataset="focus")
    assert later.publish(store).status is Status.LOADED
    assert total(store) == Decimal(17)  # 15 + 1 + 1


def test_of_a_file_with_two_periods_one_can_be_replaced(store):
    Charges(("1", "2"), periods=("2026-10", "2026-11"), name="both.csv").publish(store)
    result = Charges(("5",), name="november.csv").publish(store)
    assert [one.unit for one in result.replaced] == ["aws|1|cur|2026-11"]
    assert total(store) == Decimal(6)  # 1 of October + 5 of November
    again = Charges(("1", "2"), periods=("2026-10", "2026-11"), name="both.csv").publish(store)
    assert again.status is Status.UNCHANGED
    assert total(store) == Decimal(6)


def test_a_delivery_is_loaded_for_the_units_where_it_is_newer_and_says_where_not(store):
    Charges(("9",), invoiced=True, name="final.csv").publish(store)
    result = Charges(("1", "2"), periods=("2026-10", "2026-11")).publish(store)
    assert result.status is Status.LOADED
    assert ["final.csv" in warning for warning in result.warnings] == [True]
    assert total(store) == Decimal(10)  # 1 of October + 9 of November


def test_one_content_under_two_ids_never_counts_twice(store):
    both = Charges(("1", "2"), periods=("2026-10", "2026-11"))
    both.publish(store)
    with store.staging() as folder:
        staged = both.stage(folder)
        delivery = Charges(("1", "2"), delivery="run-9-2026-10")
        other = delivery.stage(folder)  # all rows in one unit, as with a manifest
        staged = replace(other, sha256=staged.sha256)
        assert store.publish(staged, force=True).status is Status.LOADED
    assert total(store) == Decimal(3)


def test_days_of_utilization_are_replaced_day_by_day(store):
    publish_utilization(store, {"2026-11-01": 8, "2026-11-02": 8}, "first")
    result = publish_utilization(store, {"2026-11-02": 6, "2026-11-03": 8}, "second")
    assert [one.unit for one in result.replaced] == ["aws|1|utilization|2026-11-02"]
    rows = store.table("utilization").count().to_pyarrow().as_py()
    assert rows == 22  # 8 + 6 + 8


def test_rows_of_many_partly_replaced_deliveries_are_told_apart(store):
    days = [f"2026-11-{day:02d}" for day in range(1, 11)]
    for start in range(9):
        publish_utilization(store, {days[start]: 2, days[start + 1]: 2}, f"load {start}")
    table = store.table("utilization")
    counts = table.group_by("unit").aggregate(rows=table.count()).to_pyarrow().to_pylist()
    assert len(counts) == 10
    assert {row["rows"] for row in counts} == {2}


def test_a_store_of_a_newer_version_is_refused_with_both_versions_and_the_remedy(store):
    A.publish(store)
    path = store.path / "catalogue.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 7}))
    with pytest.raises(StoreError, match=r"version is 7.*up to version 1.*Upgrade loadfactor"):
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
