"""The tables that users bring or keep by hand: utilization, jobs, commitments, prices and more.

Empty, `N/A`, `NaN` and a missing column mean no reading, never 0. In telemetry bad rows are dropped
and counted; in a table that people keep by hand every fault is named and the table is not taken.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import engines, frames
from data.errors import DataError, Problem
from data.schema import (
    AGREEMENTS,
    BUDGETS,
    COMMITMENTS,
    INVOICES,
    JOBS,
    PRICES,
    UTILIZATION,
    WAITING,
    Column,
    Dtype,
    Table,
)
from data.store import StagedDelivery, UnitFacts, delivery_id, unit_name
from providers.files import telemetry
from providers.files.raw import read_raw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_READ = (UTILIZATION, JOBS, WAITING, COMMITMENTS, PRICES, AGREEMENTS, BUDGETS, INVOICES)
TABLES = {table.name: table for table in _READ}
LINEAGE = ("unit", "export_id", "source_row_no")
# Columns that tell the table, and how many of them must be there: one more may be missing or
# misspelt, and is then named as such.
_TELLING = {
    "utilization": (
        {"hour_start", "time", "instance_id", "gpu_uuid", "gpu_util", "sm_active",
         "memory_used_share", "process_count"}, 3),
    "jobs": ({"id", "class", "gpus", "hours", "release", "deadline", "checkpointable"}, 4),
    "waiting": ({"hour_start", "class", "gpus"}, 3),
    "commitments": (
        {"id", "kind", "start", "end", "usd_per_hour", "usd_per_instance_hour", "payment"}, 4),
    "agreements": ({"cloud", "committed", "counted_so_far", "from", "to"}, 3),
    "budgets": ({"scope", "amount", "from", "to", "kind"}, 4),
    "invoices": ({"cloud", "account", "billing_period", "amount", "currency"}, 4),
    "prices": (
        {"provider", "instance_type", "purchase_option", "usd_per_instance_hour", "as_of"}, 4),
}  # fmt: skip
_DISCOUNT = {"cloud", "discount_share", "from", "to"}
_CAPACITY = {"pool", "purchase_option", "usd_per_gpu_hour"}
_KINDS = ("reserved", "savings_plan", "capacity_block", "capacity_reservation", "owned")
_YES = {"true": "1", "yes": "1", "false": "0", "no": "0"}
_MOST_SHOWN = 20
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Arrived:
    """A user's table as it arrived: the path to show, the hash of its content, its text rows.

    `rows` is an Ibis table of `connection` that holds every cell as text, and `source_row_no`.
    """

    path: str
    sha256: str
    rows: Any
    connection: Any


def recognise(columns: Iterable[str]) -> str | None:
    """The table that a header belongs to, None if it is none of ours.

    >>> recognise(["hour_start", "cloud", "account", "instance_id", "gpu_uuid", "gpu_util"])
    'utilization'
    >>> recognise(["cloud", "family", "region", "from", "to", "discount_share"])
    'prices'
    """
    names = {_plain(column) for column in columns}
    if names >= _CAPACITY:
        return None
    scores = {
        table: len(names & telling)
        for table, (telling, least) in _TELLING.items()
        if len(names & telling) >= least
    }
    if names >= _DISCOUNT and "committed" not in names:
        return "prices"
    return max(sorted(scores), key=lambda table: scores[table]) if scores else None


def stage(arrived: Arrived, table: str, folder: Path) -> StagedDelivery:
    """The table in normal form, written to `folder` and ready to publish.

    Raises DataError with every fault of a table kept by hand, or of telemetry of which too many
    rows are bad.
    """
    export_id = delivery_id(arrived.sha256, table)
    target = folder / f"{table}.parquet"
    warnings: tuple[str, ...] = ()
    quality: tuple[dict[str, Any], ...] = ()
    months: tuple[str, ...] = ()
    if table == UTILIZATION.name:
        columns = _columns(arrived.rows.columns)
        rows = arrived.connection.compile(arrived.rows)
        sampled = telemetry.write_hours(arrived.connection, rows, columns, export_id, target)
        units, sources, months = sampled.units, sampled.sources, sampled.months
        warnings, quality = sampled.warnings, sampled.quality
    else:
        frame = _frame(arrived.rows.to_pyarrow().to_pandas(), TABLES[table], export_id)
        engines.write_frame(frame, TABLES[table], target)
        counted = frame.groupby("unit", sort=True).size()
        units = {str(unit): UnitFacts(rows=int(count)) for unit, count in counted.items()}
        sources = tuple(sorted({unit.split("|")[0] for unit in units}))
    return StagedDelivery(
        path=arrived.path,
        table=table,
        source=sources[0] if len(sources) == 1 else "mixed",
        dataset=table,
        delivery_id=export_id,
        folder=folder,
        sha256=arrived.sha256,
        units=units,
        rows=sum(facts.rows for facts in units.values()),
        billing_periods=months,
        warnings=warnings,
        quality=quality,
    )


def stage_files(paths: Sequence[Path], table: str, folder: Path, shown: str) -> StagedDelivery:
    """As `stage`, from the files themselves (CSV, gzip, zip, Parquet), read as one table."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    connection = engines.connect()
    try:
        rows, _ = read_raw(connection, paths, folder)
        return stage(Arrived(shown, digest.hexdigest(), rows, connection), table, folder)
    finally:
        connection.disconnect()


def read_table(path: Path, table: str) -> pd.DataFrame:
    """Frame of one of the tables kept by hand, as `stage` would write it, without a store.

    Raises DataError with every fault.
    """
    connection = engines.connect()
    try:
        with tempfile.TemporaryDirectory(prefix="loadfactor-") as work:
            rows, _ = read_raw(connection, [path], Path(work))
            texts = rows.to_pyarrow().to_pandas()
    finally:
        connection.disconnect()
    try:
        return _frame(texts, TABLES[table], path.name)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", error.problems) from error


def _plain(column: str) -> str:
    return column.strip().lower()


def _columns(names: Iterable[str]) -> dict[str, str]:
    """Our column names mapped to those of the file, which may differ by case and blanks."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(_plain(name), name)
    return found


def _frame(texts: pd.DataFrame, table: Table, export_id: str) -> pd.DataFrame:
    """Frame of the table out of its text cells; DataError with every fault at once."""
    texts = texts.sort_values("source_row_no").reset_index(drop=True)
    if texts.empty:
        raise DataError(f"the {table.name} table has a header and no rows")
    named = texts.rename(columns={there: ours for ours, there in _columns(texts.columns).items()})
    row_numbers = named["source_row_no"].astype(int)
    cells = _cells(named, table)
    problems: list[Problem] = []
    values: dict[str, pd.Series] = {}
    for column in table.columns:
        if column.name in LINEAGE:
            continue
        where = f"{table.name}.{column.name}"
        if column.name not in cells and not column.nullable:
            problems.append(Problem(where, "missing column", "add the column"))
            continue
        text = cells.get(column.name, pd.Series([None] * len(named), dtype=object))
        values[column.name], faults = _typed(text, column, where, row_numbers)
        problems += faults
    if not problems:
        problems = _cross_faults(pd.DataFrame(values), table, row_numbers)
    if problems:
        shown = sorted(problems)[:_MOST_SHOWN]
        more = len(problems) - len(shown)
        tail = f", of which {len(shown)} are shown" if more else ""
        raise DataError(f"the {table.name} table has {len(problems)} faults{tail}", shown)
    frame = pd.DataFrame(values)
    frame["unit"] = _units(frame, table)
    frame["export_id"] = export_id
    frame["source_row_no"] = row_numbers
    return frames.conform(frame, table)


def _cells(named: pd.DataFrame, table: Table) -> dict[str, pd.Series]:
    """Trimmed text cells by our names, missing ones None; a price's cloud and provider are one."""
    cells = {str(name): _present(named[name]) for name in named.columns if name != "source_row_no"}
    if table is PRICES:
        cloud, provider = cells.get("cloud"), cells.get("provider")
        if provider is None and cloud is not None:
            cells["provider"] = cloud
        elif provider is not None and cloud is not None:
            cells["provider"] = provider.where(provider.notna(), cloud)
    for name in {"cloud", "provider", "region"} & set(cells):
        cells[name] = cells[name].map(lambda cell: cell if cell is None else cell.lower())
    for name in {"gang", "checkpointable"} & set(cells):
        cells[name] = cells[name].map(lambda cell: _YES.get(str(cell).lower(), cell))
    return cells


def _present(series: pd.Series) -> pd.Series:
    def cell(value: object) -> str | None:
        text = "" if value is None or value != value else str(value).strip()
        return None if text.lower() in telemetry.MISSING else text

    return pd.Series([cell(value) for value in series], dtype=object)


def _typed(
    text: pd.Series, column: Column, where: str, row_numbers: pd.Series
) -> tuple[pd.Series, list[Problem]]:
    """The cells as the column's type, and a fault for every cell that is not one or is missing."""
    present = text.notna()
    wrong = pd.Series(False, index=text.index)
    what = "is not a number"
    value = text
    if column.dtype in (Dtype.TIME, Dtype.DATE):
        value = pd.to_datetime(text, utc=True, errors="coerce", format="ISO8601")
        wrong, what = present & value.isna(), "is not an ISO date or time"
    elif column.dtype in (Dtype.INT, Dtype.FLOAT, Dtype.MONEY, Dtype.HOURS):
        number = pd.to_numeric(text, errors="coerce").astype("float64")
        bad = number.isna() | number.abs().eq(float("inf"))
        if column.dtype is Dtype.INT:
            bad |= number % 1 != 0
            what = "is not a whole number"
        wrong = present & bad
        value = text if column.dtype in (Dtype.MONEY, Dtype.HOURS) else number
        outside = pd.Series(False, index=text.index)
        if column.low is not None:
            outside |= present & (number < column.low)
        if column.high is not None:
            outside |= present & (number > column.high)
        low, high = column.low, column.high
        span = f"is out of its range {low if low is not None else ''} to {high or ''}".rstrip()
        faults = _each(outside & ~wrong, text, where, row_numbers, span)
        return value, faults + _each(wrong, text, where, row_numbers, what) + _lacking(
            present, column, where, row_numbers
        )
    elif column.allowed:
        wrong = present & ~text.isin(column.allowed)
        what = f"is none of {', '.join(column.allowed)}"
    return value, _each(wrong, text, where, row_numbers, what) + _lacking(
        present, column, where, row_numbers
    )


def _each(
    mask: pd.Series, text: pd.Series, where: str, row_numbers: pd.Series, what: str
) -> list[Problem]:
    return [
        Problem(f"{where} row {number}", f"{cell!r} {what}")
        for number, cell in zip(row_numbers[mask], text[mask], strict=True)
    ]


def _lacking(
    present: pd.Series, column: Column, where: str, row_numbers: pd.Series
) -> list[Problem]:
    if column.nullable:
        return []
    return [
        Problem(f"{where} row {number}", "empty, and must not be")
        for number in row_numbers[~present]
    ]


def _cross_faults(frame: pd.DataFrame, table: Table, row_numbers: pd.Series) -> list[Problem]:
    """Faults that show only between columns or rows."""
    faults: list[Problem] = []

    def report(mask: pd.Series, what: str) -> None:
        faults.extend(
            Problem(f"{table.name} row {number}", what) for number in row_numbers[mask.to_numpy()]
        )

    if "id" in frame:
        report(frame["id"].duplicated(keep=False), "its id occurs more than once")
    for start, end in (("start", "end"), ("from", "to")):
        if start in frame and end in frame:
            both = frame[start].notna() & frame[end].notna()
            report(both & (frame[start] >= frame[end]), f"`{end}` is not after `{start}`")
    if table is WAITING:
        whole = frame["hour_start"].dt.floor("h") == frame["hour_start"]
        report(~whole, "`hour_start` is not the start of an hour")
    if table is COMMITMENTS:
        report(~frame["kind"].isin(_KINDS), f"`kind` is none of {', '.join(_KINDS)}")
        sized = frame["count"].notna() | frame["usd_per_hour"].notna()
        report(~sized, "it has neither `count` nor `usd_per_hour`")
        plan = frame["kind"] == "savings_plan"
        report(plan & frame["usd_per_hour"].isna(), "a savings plan needs `usd_per_hour`")
        named = frame["instance_type"].notna() | frame["family"].notna()
        report(~plan & ~named, "it has neither `instance_type` nor `family`")
    if table is INVOICES:
        month = frame["billing_period"].str.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])")
        report(~month.astype(bool), "`billing_period` is no month such as 2026-10")
        report(
            frame.duplicated(["cloud", "account", "billing_period", "currency"], keep=False),
            "it states an invoice that another row states too",
        )
    if table is PRICES:
        discount = frame["discount_share"].notna()
        both = discount & frame["usd_per_instance_hour"].notna()
        report(both, "it has a price and a discount; state one")
        report(discount & frame["from"].isna(), "a discount needs `from`")
        for name in ("region", "instance_type", "purchase_option", "as_of"):
            report(~discount & frame[name].isna(), f"a price needs `{name}`")
    return faults


def _units(frame: pd.DataFrame, table: Table) -> list[str]:
    """The unit of each row: what a later file of the same table puts in its place."""
    nobody = ["user"] * len(frame)
    if table is WAITING:
        days = frame["hour_start"].dt.strftime("%Y-%m-%d")
        return [unit_name("user", _ALL, table.name, day) for day in days]
    source = frame["cloud"] if "cloud" in frame else frame.get("provider", nobody)
    account = frame["account"] if "account" in frame else [_ALL] * len(frame)
    return [
        unit_name(str(cloud), str(of), table.name, _ALL)
        for cloud, of in zip(source, account, strict=True)
    ]
