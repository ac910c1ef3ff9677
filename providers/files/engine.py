"""Where the rows of an export are brought into normal form: DuckDB, or Spark.

An engine takes the text table, on which the normaliser and the last step then build one expression,
and writes what the expression gives. Both give the same file.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import ibis
import pandas as pd
import pyarrow as pa

from data import spark
from data.engines import PARQUET, quoted, run
from providers.files.faults import cell_error

if TYPE_CHECKING:
    from pathlib import Path

DUCKDB, SPARK = "duckdb", "spark"
_VIEWS = itertools.count(1)


class Engine(Protocol):
    """What brings the rows of one delivery into normal form.

    `connection` is the Ibis backend of its expressions; `errors` are what it raises where it
    cannot, and DuckDB is to be asked why.
    """

    connection: Any
    errors: tuple[type[Exception], ...]

    def rows_of(self, raw: Any) -> Any:
        """The text table that DuckDB reads, as a table of this engine."""
        ...

    def write(self, rows: Any, target: Path, typed: Any) -> None:
        """Write the rows as one Parquet file of the store, in reading order.

        `typed` is the normaliser's expression, whose casts tell bad cells.
        """
        ...


class DuckDb:
    """DuckDB: one pass from the files to the file of the store."""

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def rows_of(self, raw: Any) -> Any:
        """The text table as it is."""
        return raw

    def write(self, rows: Any, target: Path, typed: Any) -> None:
        """Write the rows; a cell that cannot be cast is named by the expression that casts it."""
        sql = self.connection.compile(rows)
        try:
            run(self.connection, f"COPY ({sql}) TO {quoted(target)} ({PARQUET})")
        except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise cell_error(self.connection, typed, error) from error


def engine_of(name: str, connection: Any, folder: Path) -> Engine:
    """The engine of that name for one delivery; `connection` is DuckDB's.

    Raises ConfigError where Spark is asked for and is not there.
    """
    if name == DUCKDB:
        return DuckDb(connection)
    spark.session()
    from providers.files.spark import Engine as Spark

    return Spark(connection, folder)


def named(connection: Any, rows: Any) -> Any:
    """The rows as a view of the connection: two small plans compile faster than one."""
    name = f"normalised_{next(_VIEWS)}"
    sql = connection.compile(rows)
    if spark.is_spark(connection):
        return spark.view(connection, connection._session.sql(sql), name)
    run(connection, f"CREATE OR REPLACE TEMP VIEW {name} AS {sql}")
    return connection.table(name)


def reference(connection: Any, name: str, columns: dict[str, pd.Series]) -> Any:
    """A small reference table of the connection, one row per key (its first column)."""
    frame = pd.DataFrame(columns).drop_duplicates(next(iter(columns)))
    if spark.is_spark(connection):
        kinds = ", ".join(
            f"{key} {'BIGINT' if pd.api.types.is_integer_dtype(values) else 'STRING'}"
            for key, values in frame.items()
        )
        rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in
                frame.astype(object).itertuples(index=False)]  # fmt: skip
        return spark.view(connection, connection._session.createDataFrame(rows, kinds), name)
    if run(connection, f"SELECT 1 FROM duckdb_tables() WHERE table_name = {quoted(name)}"):
        return connection.table(name)
    return connection.create_table(
        name, ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False))
    )
