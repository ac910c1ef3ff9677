"""Exports brought into normal form on Spark: the same expressions, in Spark's words.

DuckDB reads the files as text, as it does for itself, and hands them over as Parquet; Spark
normalises; DuckDB puts the rows in their order into the file of the store. What DuckDB has as
functions of its own (JSON), Spark gets as functions of the same meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data import spark
from data.engines import PARQUET, path_list, quoted, run
from data.errors import DataError
from providers.files.faults import bad_cells
from providers.files.raw import identifier

if TYPE_CHECKING:
    from pathlib import Path

ROW = "source_row_no"
_PACKED = "FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE 122880"


class Refused(Exception):
    """Cells that a strict cast cannot read: which they are, DuckDB says."""


def errors() -> tuple[type[Exception], ...]:
    """What Spark raises where it cannot bring rows into normal form."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (Refused, PySparkException, Py4JError)


class Engine:
    """Spark for one delivery; `duckdb` reads its files, `folder` takes what passes between."""

    def __init__(self, duckdb: Any, folder: Path) -> None:
        self.connection = spark.connect()
        self.errors = errors()
        self._duckdb = duckdb
        self._folder = folder / "spark"
        # Cells are read one by one in a second try, in the same folder.
        self._folder.mkdir(exist_ok=True)

    def rows_of(self, raw: Any) -> Any:
        """The text table as one of Spark."""
        names = list(raw.columns)
        path = self._folder / "raw.parquet"
        picked = ", ".join(f"{identifier(name)} AS c{n}" for n, name in enumerate(names))
        table = self._duckdb.compile(raw)
        run(self._duckdb, f"COPY (SELECT {picked} FROM ({table})) TO {quoted(path)} ({_PACKED})")
        frame = self.connection._session.read.parquet(str(path)).toDF(*names)
        return spark.view(self.connection, frame, "raw")

    def write(self, rows: Any, target: Path, typed: Any) -> None:
        """Write the rows as one Parquet file, in reading order."""
        if bad_cells(typed):
            raise Refused
        parts = self._folder / "normal"
        sql = self.connection.compile(rows)
        self.connection._session.sql(sql).write.mode("overwrite").parquet(str(parts))
        files = path_list(sorted(parts.glob("*.parquet")))
        ordered = f"SELECT * FROM read_parquet({files}) ORDER BY {ROW}"
        run(self._duckdb, f"COPY ({ordered}) TO {quoted(target)} ({PARQUET})")


def refused(error: Exception) -> DataError:
    """The error of Spark on rows that DuckDB can read."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return DataError(f"Spark cannot bring it into normal form: {first}; load it with duckdb")
