"""The engine that tables are queried on: DuckDB behind Ibis, in memory, UTC, within a limit."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from data.money import PRECISION, SCALE
from data.schema import Dtype, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

_IBIS_TYPES = {
    Dtype.TEXT: "string",
    Dtype.JSON: "string",
    Dtype.INT: "int64",
    Dtype.FLOAT: "float64",
    Dtype.MONEY: f"decimal({PRECISION}, {SCALE})",
    Dtype.HOURS: f"decimal({PRECISION}, {SCALE})",
    Dtype.TIME: "timestamp('UTC')",
    Dtype.DATE: "date",
    Dtype.BOOL: "boolean",
}
# DuckDB's own spelling of the same types, for the SQL of readers.
SQL_TYPES = {
    Dtype.TEXT: "VARCHAR",
    Dtype.JSON: "VARCHAR",
    Dtype.INT: "BIGINT",
    Dtype.FLOAT: "DOUBLE",
    Dtype.MONEY: f"DECIMAL({PRECISION},{SCALE})",
    Dtype.HOURS: f"DECIMAL({PRECISION},{SCALE})",
    Dtype.TIME: "TIMESTAMP WITH TIME ZONE",
    Dtype.DATE: "DATE",
    Dtype.BOOL: "BOOLEAN",
}
_ARROW_TYPES = {
    Dtype.TEXT: pa.string(),
    Dtype.JSON: pa.string(),
    Dtype.INT: pa.int64(),
    Dtype.FLOAT: pa.float64(),
    Dtype.MONEY: pa.decimal128(PRECISION, SCALE),
    Dtype.HOURS: pa.decimal128(PRECISION, SCALE),
    Dtype.TIME: pa.timestamp("us", tz="UTC"),
    Dtype.DATE: pa.date32(),
    Dtype.BOOL: pa.bool_(),
}


def connect(
    memory_limit_mib: int = 384, threads: int | None = None, keep_order: bool = True
) -> Any:
    """An Ibis backend on a DuckDB in memory, its session in UTC.

    `memory_limit_mib` is DuckDB's own limit in MiB; what does not fit spills to the temporary
    folder. `keep_order` keeps rows in reading order, at some memory.
    """
    spill = Path(tempfile.gettempdir()) / f"loadfactor-spill-{os.getpid()}"
    return ibis.duckdb.connect(
        ":memory:",
        memory_limit=f"{memory_limit_mib}MiB",
        temp_directory=str(spill),
        threads=threads or min(os.cpu_count() or 1, 4),
        preserve_insertion_order=keep_order,
        autoinstall_known_extensions=False,
        TimeZone="UTC",
    )


def ibis_type(dtype: Dtype) -> str:
    """The Ibis type in which a column of that dtype is stored.

    >>> ibis_type(Dtype.MONEY)
    'decimal(38, 26)'
    """
    return _IBIS_TYPES[dtype]


def ibis_schema(table: Table) -> Any:
    """The Ibis schema of a declared table, its columns in published order."""
    return ibis.schema({column.name: ibis_type(column.dtype) for column in table.columns})


def as_declared(rows: Any, table: Table) -> Any:
    """The rows with exactly the declared columns, cast and in order; nullable ones may lack."""
    columns = {}
    for column in table.columns:
        kind = ibis_type(column.dtype)
        if column.name in rows.columns:
            columns[column.name] = rows[column.name].cast(kind)
        elif column.nullable:
            columns[column.name] = ibis.null(kind)
        else:
            raise KeyError(column.name)
    return rows.select(**columns)


def quoted(text: object) -> str:
    """The text as an SQL string literal.

    >>> quoted("o'clock")
    "'o''clock'"
    """
    return "'" + str(text).replace("'", "''") + "'"


def path_list(paths: Iterable[Path]) -> str:
    """The paths as an SQL list literal, taken literally: no pattern in them is expanded."""
    return "[" + ", ".join(quoted(_literal(path)) for path in paths) + "]"


def _literal(path: Path) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def run(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    """Every row that the SQL gives, fetched, so that the connection is free for the next.

    DuckDB 2 refuses work on a connection whose last result was not fetched to its end, and Ibis
    12's own `sql` does not know DuckDB 2: use this, views and `table` instead.
    """
    rows: list[tuple[Any, ...]] = connection.raw_sql(sql).fetchall()
    return rows


# How a table of the store is written. What a thread holds before it writes must stay within the
# memory limit. The dictionaries of a row group do most of the packing: the lightest level of zstd
# leaves little behind.
PARQUET = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 122880"


def write_parquet(connection: Any, rows: Any, path: Path) -> None:
    """Write the rows (an Ibis expression of that connection) as one Parquet file."""
    sql = connection.compile(rows)
    run(connection, f"COPY ({sql}) TO {quoted(path)} ({PARQUET})")


def write_frame(frame: pd.DataFrame, table: Table, path: Path) -> None:
    """Write a frame that conforms to the table as one Parquet file of the declared types."""
    columns = {}
    for column in table.columns:
        values = [None if pd.isna(value) else value for value in frame[column.name].tolist()]
        columns[column.name] = pa.array(values, _ARROW_TYPES[column.dtype])
    pq.write_table(pa.table(columns), path, compression="zstd")
