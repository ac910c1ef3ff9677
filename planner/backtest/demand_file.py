"""Reads DEMAND.csv (`hour,class,gpus,deferrable_gpus`): a Demand, or every fault at once."""

from __future__ import annotations

import csv
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data.errors import ConfigError, Problem
from data.hours import counted_hours
from planner.backtest.demand import Demand, gap_notes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from planner.forecast.inputs import BoolArray, FloatArray

NO_READING = frozenset({"", "n/a", "na", "nan", "null", "none"})
_MOST_SHOWN = 20  # rows of one kind of fault
_MOST_HOURS = 200_000  # 22 years; beyond it an hour is mistyped
_MOST_READINGS = 100_000_000  # hours x classes that are held at once
_TOO_MUCH = 1e9  # GPUs
_ROUNDING = 1e-9  # relative, by which the deferrable part may exceed the whole
_LARGEST_HOUR = 999_999_999  # a count of seconds since 1970 is larger
_HOUR = "write a whole number or a UTC time such as 2026-11-30T07:00:00Z"
_FORM = "state the columns hour,class,gpus,deferrable_gpus"


@dataclass(slots=True)
class Table:
    """Cells as text by line of the file, and the faults found in them."""

    cells: pd.DataFrame
    faults: list[Problem]

    def line(self, row: int) -> int:
        """The line of the file on which a row ends."""
        return int(self.cells.index[row])

    def fault(self, rows: BoolArray, what: str, columns: Sequence[str], remedy: str = "") -> None:
        """Notes the rows, the first of them one by one, with the cells that are wrong."""
        places = np.flatnonzero(rows)
        shown = places if len(places) <= _MOST_SHOWN + 1 else places[:_MOST_SHOWN]
        for row in shown:
            cells = ", ".join(f"{name} {self.cells[name].iloc[row]!r}" for name in columns)
            self.faults.append(Problem(f"line {self.line(row)}", f"{what}: {cells}", remedy))
        rest = places[len(shown) :]
        if len(rest):
            where = f"lines {self.line(rest[0])} to {self.line(rest[-1])}"
            self.faults.append(Problem(where, f"{what}: and {len(rest)} more"))


def read_demand(path: Path) -> Demand:
    """The demand of a CSV file, with notes on its gaps.

    Raises ConfigError with every fault of the file, each under its line.
    """
    table = read_table(path, ("hour", "class", "gpus"), _FORM)
    hours, start = hours_of(table)
    names = table.cells["class"].str.strip()
    table.fault((names == "").to_numpy(), "no class", ("class",), "name the class of the row")
    gpus, deferrable, notes = _readings(table)
    _fault_repeats(table, pd.DataFrame({"hour": hours, "class": names}))
    _fault_span(table, hours)
    refuse(table, path)
    classes, columns = np.unique(names.to_numpy(dtype=object).astype(str), return_inverse=True)
    rows = (hours - hours.min()).astype(int)
    shape = int(rows.max()) + 1, len(classes)
    if shape[0] * shape[1] > _MOST_READINGS:
        what = f"{shape[1]} classes in {shape[0]} hours"
        table.faults.append(Problem(str(path), what, "sum classes that are alike"))
        refuse(table, path)
    grids = np.full((2, *shape), np.nan)
    grids[:, rows, columns] = gpus, deferrable
    demand = Demand(grids[0], grids[1], tuple(str(name) for name in classes), start)
    return dataclasses.replace(demand, notes=(*notes, *gap_notes(demand)))


def _readings(table: Table) -> tuple[FloatArray, FloatArray, list[str]]:
    """GPUs, the deferrable part of them, and notes on what was not said; faults are noted."""
    gpus = numbers_of(table, "gpus", _TOO_MUCH)
    notes = []
    if "deferrable_gpus" in table.cells:
        deferrable = numbers_of(table, "deferrable_gpus", _TOO_MUCH)
        over = (gpus >= 0) & (deferrable > gpus * (1 + _ROUNDING))
        table.fault(over, "more may wait than there is", ("gpus", "deferrable_gpus"))
        unsaid = np.isnan(deferrable) & np.isfinite(gpus)
        if unsaid.any():
            notes.append(f"rows without deferrable_gpus, {int(unsaid.sum())}: taken as firm")
            deferrable = np.where(unsaid, 0.0, deferrable)
    else:
        deferrable = np.zeros(len(gpus))
        notes.append("there is no column deferrable_gpus: all demand is taken as firm")
    return gpus, np.where(np.isnan(gpus), np.nan, np.minimum(deferrable, gpus)), notes


def read_spot_availability(path: Path) -> FloatArray:
    """Share of each hour in which there is spot, in the order of the hours.

    Raises ConfigError with every fault of the file, each under its line.
    """
    table = read_table(path, ("hour", "available"), "state the columns hour,available")
    at, _start = hours_of(table)
    share = numbers_of(table, "available", 1.0)
    table.fault(np.isnan(share), "no reading", ("hour", "available"), "state 0 to 1")
    _fault_repeats(table, pd.DataFrame({"hour": at}))
    _fault_span(table, at)
    if not table.faults and int(at.max() - at.min()) + 1 != len(at):
        missing = sorted(set(range(int(at.min()), int(at.max()))) - set(at.astype(int).tolist()))
        what = f"{counted_hours(len(missing))} missing between the first and the last"
        table.faults.append(Problem(str(path), what, "state every hour of the span"))
    refuse(table, path)
    return share[np.argsort(at)]


def read_table(path: Path, required: Sequence[str], remedy: str) -> Table:
    """The cells of a CSV file as text; ConfigError where it cannot be read or lacks columns."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle, skipinitialspace=True, strict=True)
            header = [name.strip() for name in next(reader, [])]
            rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except OSError as error:
        problem = Problem(str(path), error.strerror or "cannot be read")
        raise ConfigError(f"{path} cannot be read", [problem]) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} cannot be read", [_not_utf8(path)]) from None
    except (ValueError, csv.Error) as error:  # such as a quote that does not end
        raise ConfigError(f"{path} is no CSV table", [Problem(str(path), str(error))]) from None
    faults = [
        Problem("line 1", f"column {name} is missing", remedy)
        for name in required
        if name not in header
    ]
    doubled = sorted({name for name in header if name and header.count(name) > 1})
    faults += [Problem("line 1", f"column {name} is there twice", remedy) for name in doubled]
    if not faults and not rows:
        faults = [Problem(str(path), "holds no rows", remedy)]
    for line, row in rows[:_MOST_SHOWN] if faults else rows:
        if len(row) != len(header):
            what = f"has {len(row)} cells, the header has {len(header)}"
            faults.append(Problem(f"line {line}", what))
    if faults:
        raise ConfigError(f"{path} is not the table asked for", faults)
    cells = {name: [row[place] for _line, row in rows] for place, name in enumerate(header)}
    lines = pd.Index([line for line, _row in rows])
    return Table(pd.DataFrame(cells, index=lines, dtype=str), [])


def _not_utf8(path: Path) -> Problem:
    """The fault of a file that is not UTF-8, at the line of its first wrong byte."""
    lines = path.read_bytes().split(b"\n")
    line = next((number for number, text in enumerate(lines, start=1) if not _is_utf8(text)), 1)
    remedy = "save the file as UTF-8"
    return Problem(f"line {line}", "is not UTF-8, perhaps Latin-1 or UTF-16", remedy)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def refuse(table: Table, path: Path) -> None:
    """Raises ConfigError where the table has faults."""
    if table.faults:
        count = len(set(table.faults))
        raise ConfigError(f"{path}: {count} fault{'s' * (count > 1)}", table.faults)


def hours_of(table: Table) -> tuple[FloatArray, datetime | int]:
    """The hour of each row as a number, and what the first of them is; faults are noted.

    Where most rows hold numbers all must be whole numbers, otherwise all must be times.
    """
    text = table.cells["hour"].str.strip()
    is_number = text.str.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?").to_numpy(dtype=bool)
    if 2 * is_number.sum() >= len(text):
        return _numbered_hours(table, text.where(is_number, "nan"))
    times = pd.to_datetime(text.where(~is_number), utc=True, errors="coerce", format="ISO8601")
    wrong = times.isna().to_numpy()
    most = 2 * wrong.sum() < len(text)
    table.fault(wrong, "no UTC time, as most rows have" if most else "no hour", ("hour",), _HOUR)
    odd = ~wrong & (times != times.dt.floor("h")).to_numpy()
    table.fault(odd, "not on the hour", ("hour",), _HOUR)
    if wrong.all():
        return np.full(len(text), np.nan), 0
    start = times.min().floor("h")
    since = (times.dt.floor("h") - start) / pd.Timedelta(hours=1)
    hours = np.where(odd, np.nan, since.to_numpy(dtype=float))
    return hours, start.to_pydatetime()


def _numbered_hours(table: Table, text: pd.Series) -> tuple[FloatArray, int]:
    """Hours that are counted; `text` is nan where a row holds no number."""
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)
    whole = np.isfinite(values) & (values == np.floor(values))
    most = " as most rows have" if 2 * whole.sum() >= len(values) else " nor a UTC time"
    table.fault(~whole, f"no whole number,{most}", ("hour",), _HOUR)
    large = whole & (np.abs(values) > _LARGEST_HOUR)
    remedy = "count hours, not seconds, or write a UTC time such as 2026-11-30T07:00:00Z"
    span = f"outside {-_LARGEST_HOUR:,} to {_LARGEST_HOUR:,}"
    table.fault(large, span, ("hour",), remedy)
    fine = whole & ~large
    if not fine.any():
        return np.full(len(values), np.nan), 0
    return np.where(fine, values, np.nan), int(values[fine].min())


def numbers_of(table: Table, name: str, high: float) -> FloatArray:
    """The numbers of a column, 0 to `high`; NaN where there is no reading. Faults are noted."""
    text = table.cells[name].str.strip()
    empty = text.str.lower().isin(NO_READING).to_numpy(dtype=bool)
    values = pd.to_numeric(text.where(~empty, ""), errors="coerce").to_numpy(dtype=float)
    table.fault(~empty & ~np.isfinite(values), "no number", (name,))
    table.fault(values < 0, "below 0", (name,))
    table.fault(np.isfinite(values) & (values > high), f"above {high:g}", (name,))
    return np.where(empty, np.nan, values)


def _fault_repeats(table: Table, keys: pd.DataFrame) -> None:
    repeats = (keys.duplicated() & keys["hour"].notna()).to_numpy()
    table.fault(repeats, "repeats an earlier row", tuple(keys.columns), "keep one of them")


def _fault_span(table: Table, hours: FloatArray) -> None:
    if not np.isfinite(hours).any():
        return
    span = float(np.nanmax(hours) - np.nanmin(hours)) + 1
    if span > _MOST_HOURS:
        what = f"the first and the last hour lie {span:.0f} hours apart"
        table.faults.append(
            Problem(f"line {table.line(int(np.nanargmax(hours)))}", what, "mend the hour")
        )
