"""Exports brought into normal form on Spark: the same expressions, in Spark's words.

DuckDB reads the files as text, as it does for itself, and hands them over as Parquet; Spark
normalises; DuckDB puts the rows in their order into the file of the store. What DuckDB has as
functions of its own (JSON), Spark gets as functions of the same meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import sqlglot.expressions as sge
from ibis.backends.sql.compilers.pyspark import PySparkCompiler

from data import spark
from data.engines import PARQUET, path_list, quoted, run
from data.errors import DataError
from providers.files import json_texts
from providers.files.faults import bad_cells
from providers.files.raw import identifier

if TYPE_CHECKING:
    from pathlib import Path

ROW = "source_row_no"
# What a text must start with to be a time: Spark alone would take `2026` or `10:30` for one.
_TIME = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_PACKED = "FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE 122880"


class Refused(Exception):
    """Cells that a strict cast cannot read: which they are, DuckDB says."""


def errors() -> tuple[type[Exception], ...]:
    """What Spark raises where it cannot bring rows into normal form."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (Refused, PySparkException, Py4JError)


# DuckDB's function -> ours, and the type of what it gives.
_FUNCTIONS = {
    "to_json": (json_texts.quote, "string"),
    "json_valid": (json_texts.is_json, "boolean"),
    "json_extract_string": (json_texts.text_at, "string"),
}


class Engine:
    """Spark for one delivery; `duckdb` reads its files, `folder` takes what passes between."""

    def __init__(self, duckdb: Any, folder: Path) -> None:
        self.connection = spark.connect()
        self.connection.compiler = _Compiler(self.connection._session)
        self.errors = errors()
        self._duckdb = duckdb
        self._folder = folder / "spark"
        self._folder.mkdir()

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
        self.connection._session.sql(sql).write.parquet(str(parts))
        files = path_list(sorted(parts.glob("*.parquet")))
        ordered = f"SELECT * FROM read_parquet({files}) ORDER BY {ROW}"
        run(self._duckdb, f"COPY ({ordered}) TO {quoted(target)} ({PARQUET})")


def refused(error: Exception) -> DataError:
    """The error of Spark on rows that DuckDB can read."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return DataError(f"Spark cannot bring it into normal form: {first}; load it with duckdb")


class _Compiler(PySparkCompiler):  # type: ignore[misc]  # ibis has no types
    """Ibis's compiler for Spark, with what it leaves to the engine said in Spark's words."""

    def __init__(self, session: Any) -> None:
        super().__init__()
        self._session = session
        self._known: set[str] = set()

    def visit_RegexReplace(self, op: Any, *, arg: Any, pattern: Any, replacement: Any) -> Any:
        """Java writes groups as `$1`, and so must escape a dollar sign."""
        if isinstance(replacement, sge.Literal):
            text = replacement.this.replace("\\", "\0").replace("$", r"\$")
            text = re.sub("\0([0-9])", r"$\1", text).replace("\0\0", r"\\").replace("\0", r"\\")
            replacement = sge.convert(text)
        return self.f.regexp_replace(arg, pattern, replacement)

    def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
        return super().visit_Cast(op, arg=self._strict(op, arg, to), to=to)

    def visit_TryCast(self, op: Any, *, arg: Any, to: Any) -> Any:
        return super().visit_TryCast(op, arg=self._strict(op, arg, to), to=to)

    def _strict(self, op: Any, arg: Any, to: Any) -> Any:
        if not (op.arg.dtype.is_string() and to.is_timestamp()):
            return arg
        is_time = sge.RegexpLike(this=arg, expression=sge.convert(_TIME))
        return self.if_(is_time, arg, self.f.concat("no time: ", arg))

    def visit_ScalarUDF(self, op: Any, **kwargs: Any) -> Any:
        """A function of DuckDB by the one that stands for it here."""
        name = op.__func_name__
        arguments = list(kwargs.values())
        if name in _FUNCTIONS:
            function, kind = _FUNCTIONS[name]
            return self._call(f"loadfactor_{name}", function, kind, arguments)
        if name == "json_transform":
            fields = tuple(op.dtype.value_type.names)
            kind = "array<struct<" + ", ".join(f"`{one}`: string" for one in fields) + ">>"
            function = json_texts.objects_of(fields)
            return self._call(
                f"loadfactor_{name}_{'_'.join(fields)}", function, kind, arguments[:1]
            )
        return super().visit_ScalarUDF(op, **kwargs)

    def _call(self, name: str, function: Any, kind: str, arguments: list[Any]) -> Any:
        if name not in self._known:
            from pyspark import cloudpickle

            cloudpickle.register_pickle_by_value(json_texts)
            self._session.udf.register(name, function, kind)
            self._known.add(name)
        return self.f.anon[name](*arguments)
