"""Spark as the engine of a store: its session, and the store's files as tables of it.

Spark is no dependency of the product: `pip install 'loadfactor[spark]'` brings it. The session is
as the user configures it (`SPARK_CONF_DIR`, `PYSPARK_SUBMIT_ARGS`, or a `SPARK_HOME`), else one of
this machine, `local[2]`. A cluster must see the store's folder.
"""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ibis

from data.engines import ibis_schema
from data.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.schema import Table

NAME = "pyspark"
# Where any of these is set, the user says how Spark runs, and no setting of its own is made.
_OWN_SETTINGS = ("SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
_HERE = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}
# What makes Spark count as DuckDB does: UTC, no digit given up, no failed cast let through.
_EXACT = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
}
_VIEWS = itertools.count(1)


def is_spark(connection: Any) -> bool:
    """Whether an Ibis backend is one of Spark."""
    return bool(connection.name == NAME)


def check_installed() -> None:
    """Nothing; ConfigError where Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        where = Problem(
            "store.engine",
            "Spark (pyspark) is not installed",
            "install it with pip install 'loadfactor[spark]' and Java 17, or use duckdb",
        )
        raise ConfigError("the store's engine is spark", [where])


@lru_cache(maxsize=1)
def session() -> Any:
    """The Spark session of this process, with settings of its own; one Spark for all.

    Raises ConfigError where Spark is not installed, or cannot be started.
    """
    check_installed()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("loadfactor")
    if not any(os.environ.get(name) for name in _OWN_SETTINGS):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        for name, value in _HERE.items():
            builder = builder.config(name, value)
    try:
        own = builder.getOrCreate().newSession()
    except Exception as error:  # Py4J and Spark raise errors of many kinds where Java is missing
        first = next(iter(str(error).splitlines()), type(error).__name__)
        remedy = "install Java 17 or newer, see Spark's own messages, or use duckdb"
        where = Problem("store.engine", f"Spark does not start: {first}", remedy)
        raise ConfigError("the store's engine is spark", [where]) from error
    for name, value in _EXACT.items():
        own.conf.set(name, value)
    # Errors are told by whoever meets them; Spark's own account is a page long.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    own.sparkContext.setLogLevel("OFF")
    return own


def connect() -> Any:
    """An Ibis backend on the Spark session, which says everything that DuckDB's does."""
    from data.spark_words import SparkCompiler

    connection = ibis.pyspark.connect(session())
    connection.compiler = SparkCompiler(connection._session)
    return connection


def view(connection: Any, frame: Any, name: str) -> Any:
    """A Spark data frame as an Ibis table under a name of its own that starts with `name`."""
    unique = f"{name}_{next(_VIEWS)}"
    frame.createOrReplaceTempView(unique)
    return connection.table(unique)


def stored_rows(connection: Any, paths: Sequence[Path], table: Table) -> Any:
    """The rows of the store's Parquet files of a table; columns that a file lacks are null."""
    spark = connection._session
    columns = ", ".join(
        f"`{name}` {_SPARK_TYPES[str(kind).split('(')[0]]}"
        for name, kind in ibis_schema(table).items()
    )
    read = spark.read.schema(columns)
    if not paths:
        return view(connection, spark.createDataFrame([], columns), table.name)
    return view(connection, read.parquet(*(str(path) for path in paths)), table.name)


_SPARK_TYPES = {
    "string": "STRING",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "decimal": "DECIMAL(38,26)",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
    "boolean": "BOOLEAN",
}
