"""Charges brought to the hour: what is summed, and what must never be."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import ibis
import pytest

from data import engines
from data.engines import ibis_schema
from data.hourly import ROWS, descriptions, hourly
from data.schema import BILLING
from tests.staged import arrow_table

TEN = datetime(2026, 11, 3, 10, tzinfo=UTC)
BASE = {
    "unit": "aws|1|cur|2026-11", "source": "aws", "dataset": "cur", "billing_account": "1",
    "billing_period": "2026-11", "managed_service": False, "purchase_option": "on_demand",
    "currency": "USD", "charge_type": "usage", "is_correction": False, "export_id": "d1",
    "resource_id": "i-1",
}  # fmt: skip


def charge(number, minutes, lasting, effective="1", **more):
    start = None if minutes is None else TEN + timedelta(minutes=minutes)
    end = None if start is None or lasting is None else start + timedelta(minutes=lasting)
    cost = None if effective is None else Decimal(effective)
    return {
        **BASE, "source_row_no": number, "period_start": start, "period_end": end,
        "effective_cost": cost, **more,
    }  # fmt: skip


def by_hour(*rows):
    connection = engines.connect()
    try:
        connection.create_table("charges", ibis.memtable(arrow_table(list(rows))))
        summed = hourly(connection.table("charges"))
        return sorted(summed.to_pyarrow().to_pylist(), key=lambda row: (str(row["period_start"]),
                      str(row["period_end"]), str(row["effective_cost"])))  # fmt: skip
    finally:
        connection.disconnect()


def told(rows):
    return [
        (row["period_start"], row["period_end"], row["effective_cost"], row[ROWS]) for row in rows
    ]


def test_parts_of_one_hour_become_one_row_of_that_hour():
    # 20 + 15 + 25 minutes of ten o'clock, 0.1 + 0.2 + 0.00000000000000000000000001 dollars, and a
    # whole hour at eleven.
    rows = by_hour(
        charge(1, 0, 20, "0.1"),
        charge(2, 20, 15, "0.2"),
        charge(3, 35, 25, "0.00000000000000000000000001"),
        charge(4, 60, 60, "7"),
    )
    hour = timedelta(hours=1)
    assert told(rows) == [
        (TEN, TEN + hour, Decimal("0.30000000000000000000000001"), 3),
        (TEN + hour, TEN + 2 * hour, Decimal(7), 1),
    ]


def test_a_charge_of_several_hours_keeps_its_period_and_a_moment_belongs_to_its_hour():
    day = 24 * 60
    rows = by_hour(
        charge(1, 0, day, "3"),
        charge(2, 0, day, "4"),
        charge(3, 30, 60, "5"),
        charge(4, 59, 0, "6"),
        charge(5, 10, None, "8"),
        charge(6, None, None, "9"),
    )
    at = {row["effective_cost"]: (row["period_start"], row["period_end"]) for row in rows}
    assert at == {
        Decimal(7): (TEN, TEN + timedelta(days=1)),
        Decimal(5): (TEN + timedelta(minutes=30), TEN + timedelta(minutes=90)),
        Decimal(6): (TEN, TEN + timedelta(hours=1)),
        Decimal(8): (TEN + timedelta(minutes=10), None),
        Decimal(9): (None, None),
    }


def test_a_missing_amount_is_never_added_to_one_that_is_stated():
    rows = by_hour(
        charge(1, 0, 30, "1"),
        charge(2, 0, 30, "2"),
        charge(3, 0, 30, None),
        charge(4, 30, 30, None),
    )
    assert [(row["effective_cost"], row[ROWS]) for row in rows] == [(Decimal(3), 2), (None, 2)]


OTHER = {
    "is_correction": True, "managed_service": True, "gpu_count": 8, "billing_period": "2026-10",
}  # fmt: skip


@pytest.mark.parametrize("name", descriptions(BILLING.names))
def test_rows_that_differ_in_any_description_stay_apart(name):
    other = OTHER.get(name, "other")
    rows = by_hour(charge(1, 0, 60, "1"), charge(2, 0, 60, "2", **{name: other}))
    assert sorted(row["effective_cost"] for row in rows) == [Decimal(1), Decimal(2)]
    assert {row[name] for row in rows} == {BASE.get(name), other}


def test_sums_of_sums_are_the_sums_of_the_charges():
    charges = [charge(n, 5 * n, 5, f"0.{n}") for n in range(1, 12)]
    connection = engines.connect()
    connection.create_table("charges", ibis.memtable(arrow_table(charges)))
    once = hourly(connection.table("charges"))
    twice = hourly(once)
    assert list(once.columns) == [*(n for n in BILLING.names if n != "source_row_no"), ROWS]
    assert twice.to_pyarrow().to_pylist() == once.to_pyarrow().to_pylist()
    # 0.1 + 0.2 + ... + 0.9 + 0.10 + 0.11 = 4.5 + 0.21
    assert [(row["effective_cost"], row[ROWS]) for row in once.to_pyarrow().to_pylist()] == [
        (Decimal("4.71"), 11)
    ]
    connection.disconnect()


@pytest.mark.parametrize("dialect", ["duckdb", "pyspark", "bigquery"])
def test_the_expression_is_sql_of_every_engine(dialect):
    sql = ibis.to_sql(hourly(ibis.table(ibis_schema(BILLING), name="billing")), dialect=dialect)
    assert "SUM" in sql
