"""The active rows of a table out of the Parquet files, and the check of a staged one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import ibis

from data import engines, spark
from data.engines import quoted
from data.errors import Problem, StoreError
from data.schema import TABLES, Table

if TYPE_CHECKING:
    from pathlib import Path

    from data.store.catalogue_file import Catalogue
    from data.store.records import DeliveryRecord, StagedDelivery

LINEAGE = ("unit", "export_id", "source_row_no")
STORED = {table.name: table for table in TABLES if set(LINEAGE) <= set(table.names)}
_MOST_NAMED = 5
_numbers = itertools.count(1)


def declared(name: str) -> Table:
    """The declaration of a table that the store keeps; StoreError for any other name."""
    try:
        return STORED[name]
    except KeyError:
        kept = ", ".join(sorted(STORED))
        raise StoreError(f"the store keeps no table {name!r}; it keeps {kept}") from None


def active_rows(folder: Path, catalogue: Catalogue, table: Table, connection: Any) -> Any:
    """The rows of the table that are active, as an Ibis table of the connection.

    Files whose units are all active are read as they are; of the others only the active units.
    Raises StoreError naming every delivery whose file is gone.
    """
    records = [one for _, one in sorted(catalogue.deliveries.items()) if one.table == table.name]
    _check_present(folder, records)
    whole, parted, pairs = [], [], []
    for record in records:
        units = [unit for unit in record.units if catalogue.active.get(unit) == record.delivery_id]
        path = folder / record.folder / f"{table.name}.parquet"
        if len(units) == len(record.units):
            whole.append(path)
        else:
            parted.append(path)
            pairs += [(unit, record.delivery_id) for unit in units]
    if spark.is_spark(connection):
        return _on_spark(connection, table, whole, parted, pairs)
    view = f"{table.name}_rows_{next(_numbers)}"
    # The empty select gives a file of an older version the columns that it lacks, as nulls.
    selects = [_no_rows(table)]
    if whole:
        selects.append(f"SELECT * FROM {_files(whole)}")
    if parted:
        active = f"{view}_active"
        listed = ", ".join(f"({quoted(unit)}, {quoted(delivery)})" for unit, delivery in pairs)
        engines.run(
            connection,
            f'CREATE TABLE "{active}" AS SELECT * FROM (VALUES {listed}) AS _ (unit, export_id)',
        )
        selects.append(
            f'SELECT * FROM {_files(parted)} SEMI JOIN "{active}" USING (unit, export_id)'
        )
    columns = ", ".join(f'"{name}"' for name in table.names)
    body = " UNION ALL BY NAME ".join(selects)
    engines.run(connection, f'CREATE VIEW "{view}" AS SELECT {columns} FROM ({body})')
    return connection.table(view)


def _on_spark(
    connection: Any,
    table: Table,
    whole: list[Path],
    parted: list[Path],
    pairs: list[tuple[str, str]],
) -> Any:
    rows = spark.stored_rows(connection, whole, table)
    if not parted:
        return rows
    some = spark.stored_rows(connection, parted, table)
    kept = [(some.unit == unit) & (some.export_id == delivery) for unit, delivery in pairs]
    return rows.union(some.filter(ibis.or_(*kept)))


def _no_rows(table: Table) -> str:
    nulls = ", ".join(
        f'CAST(NULL AS {engines.SQL_TYPES[column.dtype]}) AS "{column.name}"'
        for column in table.columns
    )
    return f"SELECT {nulls} WHERE false"


def _files(paths: list[Path]) -> str:
    return (
        f"read_parquet({engines.path_list(paths)}, union_by_name = true, hive_partitioning = false)"
    )


def _check_present(folder: Path, records: list[DeliveryRecord]) -> None:
    problems = [
        Problem(
            str(folder / record.folder),
            f"the rows of {record.path} ({record.delivery_id}) are gone",
            "put the folder back, or load that export again",
        )
        for record in records
        if not (folder / record.folder / f"{record.table}.parquet").is_file()
    ]
    if problems:
        message = f"the store {folder.parent} lacks files that its catalogue names"
        raise StoreError(message, problems)


def check_staged(staged: StagedDelivery, connection: Any) -> None:
    """Nothing; StoreError where the staged file is not what the delivery says of it."""
    table = declared(staged.table)
    path = staged.folder / f"{table.name}.parquet"
    if not path.is_file():
        raise StoreError(f"nothing was staged for {staged.path}: {path} is not there")
    source = _files([path])
    found = {row[0]: row[1] for row in engines.run(connection, f"DESCRIBE SELECT * FROM {source}")}
    wanted = {column.name: engines.SQL_TYPES[column.dtype] for column in table.columns}
    wrong = [
        Problem(f"{table.name}.{name}", f"staged as {found.get(name)}, declared as {kind}")
        for name, kind in wanted.items()
        if found.get(name) != kind
    ]
    if wrong:
        raise StoreError(f"{staged.path} was staged with other columns than declared", wrong)
    query = f"SELECT unit, export_id, count(*) FROM {source} GROUP BY ALL"
    counted = {(unit, export): rows for unit, export, rows in engines.run(connection, query)}
    stated = {(u, staged.delivery_id): f.rows for u, f in staged.units.items() if f.rows}
    if counted != stated or sum(counted.values()) != staged.rows:
        differing = sorted(
            (key for key in {*counted, *stated} if counted.get(key) != stated.get(key)), key=str
        )
        problems = [
            Problem(f"{unit} of {export}", f"{counted.get((unit, export), 0)} rows staged, "
                    f"{stated.get((unit, export), 0)} stated")
            for unit, export in differing[:_MOST_NAMED]
        ]  # fmt: skip
        raise StoreError(f"{staged.path} was staged with other rows than stated", problems)
