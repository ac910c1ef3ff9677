"""The answer of BigQuery as a delivery of the store: checked, finished as any other, published.

What travels is in normal form and brought to the hour already; GPUs, region and lineage are added
here, by the same last step as for files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from data import engines
from data.engines import path_list, quoted, run
from data.errors import DataError, Problem, ProviderUnavailable
from data.hourly import ROWS
from data.schema import BILLING, Dtype
from data.store import StagedDelivery
from providers.files import staged as contents
from providers.files.expressions import lookup
from providers.files.finish import INVOICE, Lineage, finish
from providers.files.loading import content_hash
from providers.files.raw import ROW, identifier
from providers.gcp.billing import FAULTS, FINDINGS, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from data.store import Store
    from providers.gcp.survey import MonthVersion

_ARRIVED = "arrived.parquet"
_ANSWER = "answer.parquet"
_BILLING = "billing"
# What a normaliser of FOCUS gives beyond BILLING, for the last step.
_BEYOND = {"gpus_stated": "BIGINT", INVOICE: "VARCHAR"}
# Types in which a column travels, where it is no text: the rest is cast from text, exactly.
_TRAVEL = {Dtype.TIME: pa.timestamp("us", tz="UTC"), Dtype.BOOL: pa.bool_()}


@dataclass(frozen=True, slots=True)
class Arriving:
    """One month that is being read: what it is of, and under which id it is to be stored.

    `columns` are those of the export, `export` tells it from others of the store.
    """

    version: MonthVersion
    dataset: str
    delivery_id: str
    shown: str
    export: str
    columns: Sequence[str]


def travelling(rows: Any) -> Any:
    """The rows with every amount as text, so that no digit is lost on the way."""
    return rows.select(
        **{
            name: rows[name].cast("string") if rows[name].type().is_decimal() else rows[name]
            for name in rows.columns
        }
    )


def keep(pages: Iterable[pa.RecordBatch], folder: Path) -> int:
    """Write the pages of an answer to the folder as they come; the number of their rows."""
    count = 0
    writer: pq.ParquetWriter | None = None
    try:
        for page in pages:
            if writer is None:
                writer = pq.ParquetWriter(folder / _ANSWER, _schema(page.schema))
            columns = [page.column(one.name).cast(one.type) for one in writer.schema]
            writer.write_batch(pa.record_batch(columns, schema=writer.schema))
            count += page.num_rows
    finally:
        if writer is not None:
            writer.close()
    return count


def stage(arriving: Arriving, folder: Path, store: Store) -> StagedDelivery:
    """The rows that `keep` wrote to the folder as a staged delivery.

    Raises DataError for amounts or credits that cannot be read, ProviderUnavailable where the rows
    are not as many as the table was said to have.
    """
    connection = engines.connect()
    try:
        return _staged(arriving, folder, store, connection)
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        what = str(error).splitlines()[0]
        problem = Problem(arriving.shown, what, "an amount has at most 12 integer digits")
        raise DataError("an amount of the answer cannot be stored", [problem]) from error
    finally:
        connection.disconnect()


def _staged(arriving: Arriving, folder: Path, store: Store, connection: Any) -> StagedDelivery:
    arrived = folder / _ARRIVED
    _put_in_order(connection, folder / _ANSWER, arrived)
    warnings = _looked_through(connection, arrived, arriving)
    lineage = Lineage(arriving.dataset, arriving.delivery_id)
    rows = finish(connection, _view(connection, arrived), lineage)
    target = folder / f"{_BILLING}.parquet"
    engines.write_parquet(connection, rows, target)
    found = contents.look_into(connection, target, arriving.shown)
    twin = contents.twins(connection, store, target, found)
    bare = contents.unknown_currency(found, arriving.shown)
    return StagedDelivery(
        path=arriving.shown,
        table=_BILLING,
        source=found.sources[0] if len(found.sources) == 1 else "mixed",
        dataset=arriving.dataset,
        delivery_id=arriving.delivery_id,
        folder=folder,
        sha256=content_hash([arrived]),
        units=found.units,
        rows=found.rows,
        billing_periods=tuple(sorted(found.periods)),
        version_time=arriving.version.time,
        warnings=(*warnings, *found.warnings, *([twin] if twin else [])),
        quality=(*found.quality, *([bare[1]] if bare else [])),
        export=arriving.export,
    )


def _put_in_order(connection: Any, answer: Path, arrived: Path) -> None:
    """The answer with its rows in one order, numbered, whatever order they came in."""
    source = f"SELECT * FROM read_parquet({path_list([answer])}) ORDER BY ALL"
    numbered = f"SELECT row_number() OVER () AS {ROW}, * FROM ({source})"
    run(connection, f"COPY ({numbered}) TO {quoted(arrived)} (FORMAT parquet, COMPRESSION zstd)")


def _looked_through(connection: Any, arrived: Path, arriving: Arriving) -> tuple[str, ...]:
    """What a person should know of the rows; raises where they are not what was asked for."""
    marks = ", ".join(f"coalesce(sum({ROWS}) FILTER (WHERE {name}), 0)" for name in FINDINGS)
    source = f"read_parquet({path_list([arrived])})"
    counted, *marked = run(connection, f"SELECT coalesce(sum({ROWS}), 0), {marks} FROM {source}")[0]
    if counted != arriving.version.rows:
        what = f"{counted} charges came, {arriving.version.rows} were counted before"
        problem = Problem(arriving.shown, what, "it changed while it was read: run fetch again")
        raise ProviderUnavailable("gcp: the export cannot be read now", [problem])
    found = {name: int(count) for name, count in zip(FINDINGS, marked, strict=True)}
    if found[FAULTS]:
        what = f"{found[FAULTS]} charges have a credit without an amount"
        remedy = "look for entries of credits whose amount is null"
        raise DataError(
            "GCP billing export: credits that cannot be read",
            [Problem(arriving.shown, what, remedy)],
        )
    if not lookup(arriving.columns, "BillingCurrency"):  # of FOCUS; else as Google names it
        return told(found, arriving.columns)
    return ()


def _view(connection: Any, arrived: Path) -> Any:
    """The rows in the types of BILLING; an amount that does not fit fails when they are read."""
    source = f"read_parquet({path_list([arrived])})"
    there = [row[0] for row in run(connection, f"DESCRIBE SELECT * FROM {source}")]
    kinds = {one.name: engines.SQL_TYPES[one.dtype] for one in BILLING.columns}
    kinds |= {name: kind for name, kind in _BEYOND.items() if name not in kinds}
    cast = ", ".join(
        f"CAST({identifier(name)} AS {kinds[name]}) AS {identifier(name)}"
        for name in there
        if name in kinds
    )
    run(connection, f"CREATE TEMP VIEW arrived AS SELECT {cast} FROM {source}")
    return connection.table("arrived")


def _schema(answer: pa.Schema) -> pa.Schema:
    kinds = {one.name: _TRAVEL.get(one.dtype, pa.string()) for one in BILLING.columns}
    kinds |= {ROWS: pa.int64()} | dict.fromkeys(FINDINGS, pa.bool_())
    return pa.schema([(name, kinds.get(name, pa.string())) for name in answer.names])
