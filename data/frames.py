"""Frames at the border: `conform(frame, TABLE)` casts, orders and checks, all faults at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from data import money
from data.errors import DataError, Problem
from data.schema import Column, Dtype, Table

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_SHOWN = 5


def empty(table: Table) -> pd.DataFrame:
    """A frame of the table with no rows."""
    return conform(pd.DataFrame({name: [] for name in table.names}), table)


def conform(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The frame cast to the table, its columns in published order, extra columns dropped.

    Raises DataError with every missing column, bad value, null and duplicate key.
    """
    problems: list[Problem] = []
    columns: dict[str, pd.Series] = {}
    for column in table.columns:
        where = f"{table.name}.{column.name}"
        if column.name not in frame.columns:
            if column.nullable:
                columns[column.name] = _cast(pd.Series([None] * len(frame), dtype=object), column)
            else:
                problems.append(Problem(where, "missing column", "add the column"))
            continue
        try:
            cast = _cast(frame[column.name].reset_index(drop=True), column)
        except (ValueError, TypeError, DataError) as error:
            problems.append(Problem(where, f"not {column.dtype}: {error}"))
            continue
        problems.extend(_faults(cast, column, where))
        columns[column.name] = cast
    if not problems and table.key:
        keys = pd.DataFrame({name: columns[name] for name in table.key})
        doubled = keys[keys.duplicated(keep=False)]
        if len(doubled):
            first = doubled.iloc[0].to_dict()
            problems.append(Problem(table.name, f"{len(doubled)} rows share a key, first {first}"))
    if problems:
        raise DataError(f"table {table.name} is not as declared", problems)
    return pd.DataFrame(columns, columns=table.names)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries, missing values as None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]


def _cast(series: pd.Series, column: Column) -> pd.Series:
    kind = column.dtype
    if kind in (Dtype.TEXT, Dtype.JSON):
        return series.astype("str").where(series.notna(), None).astype("str")
    if kind in (Dtype.MONEY, Dtype.HOURS):
        return series.map(_exact_or_none).astype(object)
    if kind in (Dtype.TIME, Dtype.DATE):
        times = pd.to_datetime(series, utc=True)
        return times.dt.floor("D") if kind is Dtype.DATE else times
    if kind is Dtype.INT:
        return pd.to_numeric(series).astype("Int64")
    if kind is Dtype.FLOAT:
        return pd.to_numeric(series).astype("float64")
    return series.astype("boolean" if column.nullable else "bool")


def _exact_or_none(value: object) -> object:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return None
    return money.exact(value)  # type: ignore[arg-type]  # str, float or Decimal; else it raises


def _faults(series: pd.Series, column: Column, where: str) -> list[Problem]:
    found: list[Problem] = []

    def report(mask: pd.Series, what: Callable[[object], str]) -> None:
        rows = series[mask]
        for index, value in list(rows.items())[:_MOST_SHOWN]:
            found.append(Problem(f"{where} row {int(str(index)) + 1}", what(value)))
        if len(rows) > _MOST_SHOWN:
            found.append(Problem(where, f"and {len(rows) - _MOST_SHOWN} more rows"))

    present = series.notna()
    if not column.nullable:
        report(~present, lambda _value: "empty, and must not be")
    if column.low is not None:
        report(present & (series < column.low).fillna(False), lambda v: f"{v} below {column.low}")
    if column.high is not None:
        report(present & (series > column.high).fillna(False), lambda v: f"{v} above {column.high}")
    if column.allowed:
        choices = ", ".join(column.allowed)
        report(present & ~series.isin(column.allowed), lambda v: f"{v!r} is none of {choices}")
    return found
