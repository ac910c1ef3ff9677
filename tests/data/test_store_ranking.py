"""Of two deliveries of one unit: which counts, which is refused, and what is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from data.store import Status, Store, UnitFacts
from tests.staged import Charges, publish_utilization, total

A = Charges(("10", "5"), name="a.csv")
B = Charges(("10", "6"), name="b.csv")
MORNING = datetime(2026, 11, 20, 6, tzinfo=UTC)
EVENING = datetime(2026, 11, 20, 18, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store")


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
