from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import ibis
import pyarrow.parquet as pq
import pytest

from data.errors import DataError, UsageError
from data.store import Store, UnitFacts
from data.totals import BY, doubled_datasets, totals, totals_json
from tests.staged import Charges, arrow_table

CHARGES = Charges(("1",))


def store_of(tmp_path, *changes):
    """A store of one delivery whose rows are `CHARGES` with the changes, one row each."""
    store = Store.open(tmp_path / "store")
    with store.staging() as folder:
        staged = CHARGES.stage(folder)
        (row,) = CHARGES.rows(staged.delivery_id)
        rows = [row | change | {"source_row_no": n} for n, change in enumerate(changes, 1)]
        pq.write_table(arrow_table(rows), folder / "billing.parquet")
        units = {row["unit"]: UnitFacts(len(rows), False, Decimal(1))}
        store.publish(replace(staged, rows=len(rows), units=units))
    return store


def rows_by(store, *by):
    return totals_json(totals(store.table("billing"), by))["rows"]


def exact(*texts):
    return [{"billed_cost": Decimal(text)} for text in texts]


def test_amounts_sum_exactly(tmp_path):
    written = ["0.1", "0.2", "6.123E-7", "0.123456789012345678901234", "-0.0", "999999999999"]
    store = store_of(tmp_path, *exact(*written[:5]))
    # 0.1 + 0.2 + 0.0000006123 + 0.123456789012345678901234
    assert rows_by(store)[0]["billed_cost"] == "0.423457401312345678901234"


def test_twelve_integer_digits_sum_exactly(tmp_path):
    store = store_of(tmp_path, *exact("900000000000.00000000000000000000000001", "99999999999"))
    assert rows_by(store)[0]["billed_cost"] == "999999999999.00000000000000000000000001"


def test_a_sum_of_thirteen_integer_digits_is_a_clear_error(tmp_path):
    store = store_of(tmp_path, *exact("900000000000", "900000000000"))
    with pytest.raises(DataError, match="more than 12 integer digits"):
        rows_by(store)


def test_a_cost_that_no_row_states_is_null_and_hours_are_zero(tmp_path):
    (row,) = rows_by(store_of(tmp_path, {"effective_cost": None}, {"effective_cost": None}))
    assert row == {
        "currency": "USD", "source_rows": 2, "billed_cost": None, "effective_cost": None,
        "list_cost": None, "instance_hours": "0", "gpu_hours": "0",
    }  # fmt: skip


def test_rows_without_a_cost_do_not_hide_those_with_one(tmp_path):
    store = store_of(tmp_path, {"effective_cost": None}, {"effective_cost": Decimal("0.30")})
    assert rows_by(store)[0]["effective_cost"] == "0.3"


def test_the_example_of_the_contract_has_its_columns_in_order(tmp_path):
    hours = Decimal(1)
    change = {"currency": "NOK", "billed_cost": Decimal(10), "instance_hours": hours}
    store = store_of(tmp_path, change, change, change)
    (row,) = rows_by(store, "source", "dataset", "billing_period", "currency")
    assert list(row) == [
        "source", "dataset", "billing_period", "currency", "source_rows", "billed_cost",
        "effective_cost", "list_cost", "instance_hours", "gpu_hours",
    ]  # fmt: skip
    assert (row["billed_cost"], row["instance_hours"], row["source_rows"]) == ("30", "3", 3)
    json.dumps(row)


def test_currencies_are_never_added(tmp_path):
    store = store_of(tmp_path, {"currency": "USD"}, {"currency": "EUR"}, {"currency": "EUR"})
    rows = rows_by(store, "source")
    assert [(row["currency"], row["effective_cost"]) for row in rows] == [
        ("EUR", "2"), ("USD", "1"),
    ]  # fmt: skip


def test_a_day_is_the_utc_date_of_the_start_of_the_charge(tmp_path):
    late = {"period_start": datetime(2026, 11, 1, 23, 30, tzinfo=UTC)}
    early = {"period_start": datetime(2026, 11, 2, 0, 0, tzinfo=UTC)}
    rows = rows_by(store_of(tmp_path, early, late), "day")
    assert [row["day"] for row in rows] == ["2026-11-01", "2026-11-02"]


def test_groups_are_sorted_and_missing_values_come_last(tmp_path):
    store = store_of(tmp_path, {"region": None}, {"region": "us"}, {"region": "eu"})
    assert [row["region"] for row in rows_by(store, "region")] == ["eu", "us", None]


def test_the_delivery_is_named_by_its_id(tmp_path):
    store = store_of(tmp_path, {})
    (record,) = store.deliveries()
    assert rows_by(store, "delivery_id")[0]["delivery_id"] == record.delivery_id


def test_every_column_but_the_class_can_be_asked_of_the_store(tmp_path):
    store = store_of(tmp_path, {})
    for name in set(BY) - {"workload_class"}:
        assert name in rows_by(store, name)[0]


def test_a_class_column_of_the_table_can_be_asked_for(tmp_path):
    table = store_of(tmp_path, {}).table("billing").mutate(workload_class=ibis.literal("training"))
    assert totals(table, ["workload_class"])["workload_class"].tolist() == ["training"]


def test_an_empty_store_has_no_rows(tmp_path):
    store = Store.open(tmp_path / "none")
    assert rows_by(store) == []
    assert rows_by(store, "source") == []


def test_an_unknown_column_is_a_usage_error_that_names_the_allowed(tmp_path):
    store = store_of(tmp_path, {})
    with pytest.raises(UsageError, match=r"regoin \(did you mean region\?\).*source, dataset"):
        rows_by(store, "source", "regoin")


def test_the_sums_of_the_parts_are_the_sum_of_the_whole(tmp_path):
    costs = [Decimal(n) / 7 for n in range(1, 20)]
    costs = [cost.quantize(Decimal("1E-20")) for cost in costs]
    changes = [{"effective_cost": c, "region": f"r{n % 4}"} for n, c in enumerate(costs)]
    store = store_of(tmp_path, *changes)
    parts = [Decimal(row["effective_cost"]) for row in rows_by(store, "region")]
    assert len(parts) == 4
    assert sum(parts) == sum(costs) == Decimal(rows_by(store)[0]["effective_cost"])


def test_two_views_of_one_bill_are_told_where_an_answer_adds_their_hours(tmp_path):
    view = {"source": "azure", "instance_hours": Decimal(24), "billing_period": "2026-10"}
    actual, amortized = view | {"dataset": "actual"}, view | {"dataset": "amortized"}
    table = store_of(tmp_path, actual, amortized).table("billing")
    (told,) = doubled_datasets(table, ["gpu_model"])
    assert told.startswith("azure: the actual and the amortized export of 1 bill (2026-10) are")
    assert "--by" in told
    assert doubled_datasets(table, ["gpu_model", "dataset"]) == []
    other = amortized | {"billing_period": "2026-11"}
    assert doubled_datasets(store_of(tmp_path / "b", actual, other).table("billing")) == []
    bare = amortized | {"instance_hours": None}
    assert doubled_datasets(store_of(tmp_path / "c", actual, bare).table("billing")) == []
