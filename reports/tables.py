"""The CSV files of a night: written, and read back to the same frames.

A text cell that a spreadsheet would run as a formula is neutralised by a leading apostrophe, which
`read_csv` takes off again.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import money
from data.errors import DataError, Problem
from data.frames import conform
from data.hours import iso
from data.schema import (
    COMMITMENTS_OUT,
    IDLE,
    LIMITS,
    QUALITY,
    RECOMMENDATIONS,
    Column,
    Dtype,
    Table,
)

if TYPE_CHECKING:
    from pathlib import Path

FILES: dict[str, Table] = {
    "recommendations.csv": RECOMMENDATIONS,
    "commitments.csv": COMMITMENTS_OUT,
    "limits.csv": LIMITS,
    "idle.csv": IDLE,
    "quality.csv": QUALITY,
}

# OWASP, "CSV Injection" (read 2026-11-30): = + - @, tab, return and line feed start a formula.
# Apostrophes before them are counted in, so that taking one off undoes putting one on.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NEEDS_QUOTES = re.compile(r'[",\r\n]')
_TEXTS = (Dtype.TEXT, Dtype.JSON)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one night, each a frame of its declaration."""

    recommendations: pd.DataFrame
    commitments: pd.DataFrame
    limits: pd.DataFrame
    idle: pd.DataFrame
    quality: pd.DataFrame


def csv_text(frame: pd.DataFrame, table: Table) -> str:
    """The frame as CSV in the table's column order: UTF-8, line feeds, empty where missing."""
    lines = [",".join(table.names)]
    columns = [_cells(frame[column.name].tolist(), column) for column in table.columns]
    lines += [",".join(cells) for cells in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def read_csv(path: Path, table: Table) -> pd.DataFrame:
    """Frame of the table as `csv_text` wrote it. DataError if the file is not one of its kind."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    if not lines or lines[0] != table.names:
        seen = ",".join(lines[0]) if lines else "an empty file"
        problem = Problem(f"{path} line 1", f"expected {','.join(table.names)}, found {seen}")
        raise DataError(f"{path} is no table {table.name}", [problem])
    short = [
        Problem(f"{path} row {number}", f"{len(cells)} cells, expected {len(table.names)}")
        for number, cells in enumerate(lines[1:], start=1)
        if len(cells) != len(table.names)
    ]
    if short:
        raise DataError(f"{path} is no table {table.name}", short)
    cells = zip(*lines[1:], strict=True) if len(lines) > 1 else ([] for _ in table.columns)
    frame = pd.DataFrame(
        {
            column.name: pd.Series([_value(cell, column) for cell in column_cells], dtype=object)
            for column, column_cells in zip(table.columns, cells, strict=True)
        }
    )
    return conform(frame, table)


def read_tables(folder: Path) -> Tables:
    """The tables of a past night, read from its folder."""
    frames = [read_csv(folder / name, table) for name, table in FILES.items()]
    return Tables(*frames)


def missing(value: object) -> bool:
    """Whether a cell holds no value: None, NaN, NaT or NA."""
    return value is None or value is pd.NA or value is pd.NaT or value != value


def _cells(values: list[Any], column: Column) -> list[str]:
    """The cells of a column; a value that comes again is written once."""
    written: dict[Any, str] = {}
    cells = []
    for value in values:
        cell = written.get(value)
        if cell is None:
            cell = written[value] = _cell(value, column)
        cells.append(cell)
    return cells


def _cell(value: Any, column: Column) -> str:
    if missing(value):
        return ""
    kind = column.dtype
    if kind in _TEXTS:
        text = str(value)
        text = f"'{text}" if _FORMULA.match(text) else text
    elif kind is Dtype.BOOL:
        text = "true" if value else "false"
    elif kind is Dtype.TIME:
        text = iso(_moment(value))
    elif kind is Dtype.DATE:
        text = str(value)[:10]
    else:
        text = _number(value)
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else pd.Timestamp(value, tz=UTC).to_pydatetime()


def _number(value: Any) -> str:
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    return money.text(number) or ""


def _value(cell: str, column: Column) -> object:
    if cell == "":
        return None
    if column.dtype in _TEXTS:
        return cell[1:] if cell[0] == "'" and _FORMULA.match(cell) else cell
    if column.dtype is Dtype.BOOL:
        return {"true": True, "false": False}.get(cell, cell)
    return cell
