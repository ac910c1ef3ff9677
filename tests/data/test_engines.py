from __future__ import annotations

import importlib.util
from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import pytest

from data import engines, frames
from data.schema import TABLES, UTILIZATION, Dtype, Table
from data.schema.columns import may, need
from tests.program import FLEET, call

EVERY = Table(
    "every",
    "One column of every dtype.",
    (
        need("text", Dtype.TEXT, ""), may("int", Dtype.INT, ""), may("float", Dtype.FLOAT, ""),
        may("money", Dtype.MONEY, ""), may("hours", Dtype.HOURS, ""), may("time", Dtype.TIME, ""),
        may("date", Dtype.DATE, ""), may("bool", Dtype.BOOL, ""), may("json", Dtype.JSON, ""),
    ),
)  # fmt: skip


@pytest.fixture
def connection():
    made = engines.connect()
    yield made
    made.disconnect()


def test_the_session_is_utc_and_within_its_limits():
    made = engines.connect(memory_limit_mib=300, threads=1)
    wanted = "SELECT current_setting('TimeZone'), current_setting('threads'), "
    rows = engines.run(made, wanted + "current_setting('memory_limit')")
    assert rows == [("UTC", 1, "300.0 MiB")]
    made.disconnect()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_declared_table_has_a_schema(table):
    assert list(engines.ibis_schema(table).names) == table.names


def test_a_frame_written_and_read_has_the_same_values_and_the_declared_types(tmp_path, connection):
    row = {
        "text": "0099", "int": 7, "float": 0.5, "money": "-0.00000000000000000000000001",
        "hours": "1.5", "time": datetime(2026, 11, 1, 5, tzinfo=UTC), "date": "2026-11-30",
        "bool": True, "json": "{}",
    }  # fmt: skip
    frame = frames.conform(pd.DataFrame([row, {"text": "empty"}]), EVERY)
    path = tmp_path / "every.parquet"
    engines.write_frame(frame, EVERY, path)
    source = f"read_parquet({engines.path_list([path])})"
    types = {name: kind for name, kind, *_ in engines.run(connection, f"DESCRIBE FROM {source}")}
    assert types == {c.name: engines.SQL_TYPES[c.dtype] for c in EVERY.columns}
    first, second = engines.run(connection, f"SELECT * FROM {source}")
    assert first[:5] == ("0099", 7, 0.5, Decimal("-1E-26"), Decimal("1.5"))
    assert first[5] == datetime(2026, 11, 1, 5, tzinfo=UTC)
    assert first[6:] == (date(2026, 11, 30), True, "{}")
    assert second == ("empty", *[None] * 8)


def test_rows_are_cast_to_the_declaration_and_nullable_columns_filled(tmp_path, connection):
    engines.run(connection, "CREATE VIEW few AS SELECT 'x' AS text, '0.1' AS money, 9 AS extra")
    rows = engines.as_declared(connection.table("few"), EVERY)
    assert rows.columns == tuple(EVERY.names)
    engines.write_parquet(connection, rows, tmp_path / "every.parquet")
    found = engines.run(connection, f"FROM {engines.quoted(tmp_path / 'every.parquet')}")
    assert found == [("x", None, None, Decimal("0.1"), *[None] * 5)]


def test_a_needed_column_that_is_missing_is_an_error(connection):
    engines.run(connection, "CREATE VIEW none AS SELECT 1 AS gpu_util")
    with pytest.raises(KeyError):
        engines.as_declared(connection.table("none"), UTILIZATION)


def test_a_path_with_pattern_letters_and_quotes_names_that_file_alone(tmp_path, connection):
    odd = tmp_path / "a[1]*b's"
    odd.mkdir()
    for folder in (odd, tmp_path):
        engines.run(connection, f"COPY (SELECT 1) TO {engines.quoted(folder / 'x.parquet')}")
    source = engines.path_list([odd / "x.parquet"])
    assert engines.run(connection, f"SELECT count(*) FROM read_parquet({source})") == [(1,)]


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is not None, reason="Spark is here")
def test_spark_that_is_not_installed_is_told_with_its_remedy_and_nothing_is_made(tmp_path):
    config = tmp_path / "loadfactor.toml"
    config.write_text('[store]\npath = "store"\nengine = "spark"\n')
    for words in (("load", FLEET / "aws"), ("totals",), ("nightly",)):
        done = call(*words, "--config", config, "--json")
        assert done.code == 2
        (problem,) = done.error["problems"]
        assert problem["where"] == "store.engine"
        assert "not installed" in problem["what"]
        assert "pip install 'loadfactor[spark]'" in problem["remedy"]
    assert [path.name for path in tmp_path.iterdir()] == ["loadfactor.toml"]
