"""The few Ibis expressions that every normaliser needs, from raw text to typed columns.

Casts are strict: a cell that is not a number or a time fails the delivery, and
`providers.files.faults` then names its row and column.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ibis

from data.engines import ibis_type
from data.errors import DataError, Problem
from data.schema import Dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MONEY = ibis_type(Dtype.MONEY)
TIME = ibis_type(Dtype.TIME)
UNKNOWN = "unknown"
# Added to the name of a column: the same cells as a Parquet file holds them, times and maps.
TYPED = " #typed"
_NOTHING = ("{}", "[]")


def plain(name: str) -> str:
    """A column name as names are compared: lower case, no blanks, no ` #2`.

    Of a translated header the original name in its last parentheses counts.

    >>> plain("Kategorie der Messung (MeterCategory)"), plain("Meter Category"), plain("tags #2")
    ('metercategory', 'metercategory', 'tags')
    """
    name = re.sub(r" #\d+$", "", name)
    inner = re.search(r"\(([^()]+)\)\s*$", name)
    return re.sub(r"\s+", "", inner.group(1) if inner else name).lower()


def lookup(columns: Iterable[str], *aliases: str) -> list[str]:
    """The columns that carry one of the aliases, in the order of the aliases.

    >>> lookup(["Tags", "Cost In Billing Currency", "tags #2"], "costinbillingcurrency", "tags")
    ['Cost In Billing Currency', 'Tags', 'tags #2']
    """
    by_name: dict[str, list[str]] = {}
    for column in columns:
        by_name.setdefault(plain(column), []).append(column)
    wanted = dict.fromkeys(plain(alias) for alias in aliases)
    return [column for alias in wanted for column in by_name.get(alias, [])]


def require(columns: Sequence[str], wanted: Mapping[str, Sequence[str]], layout: str) -> None:
    """Nothing, if every wanted column is there; else DataError that lists all that are missing.

    `wanted` maps the name to show to the aliases of which one must be there.
    """
    missing = [name for name, aliases in wanted.items() if not lookup(columns, name, *aliases)]
    if missing:
        message = f"{layout}: required columns are missing"
        remedy = "export the column, or name the layout with --dataset"
        raise DataError(message, [Problem(name, "missing column", remedy) for name in missing])


def first_text(raw: Any, *aliases: str) -> Any:
    """The first of the columns that is not empty in the row; null where there is none.

    The columns are found by `lookup`. A column that is not in the files is null.
    """
    found = [raw[name] for name in lookup(raw.columns, *aliases)]
    if not found:
        return ibis.null("string")
    return found[0] if len(found) == 1 else ibis.coalesce(*found)


def exact(value: Any) -> Any:
    """A text as DECIMAL(38, 26), strictly: what is not a number fails the delivery."""
    return value.cast(MONEY)


def utc(value: Any) -> Any:
    """A text as a UTC time, strictly.

    Reads ISO forms with T or blank, with or without fraction, with Z, UTC, an offset or nothing
    (which means UTC, as every export that writes no zone states).
    """
    return value.cast(TIME)


def typed(raw: Any, column: str) -> Any:
    """The column as its files hold it, a time or a map of texts; None where they hold text."""
    name = f"{column}{TYPED}"
    return raw[name] if name in raw.columns else None


def first_time(raw: Any, *aliases: str) -> Any:
    """The first of the columns that is not empty in the row, as a UTC time; as `first_text`."""
    found = []
    for name in lookup(raw.columns, *aliases):
        stored = typed(raw, name)
        found.append(utc(raw[name]) if stored is None else stored)
    if not found:
        return ibis.null(TIME)
    return found[0] if len(found) == 1 else ibis.coalesce(*found)


def month_of(value: Any) -> Any:
    """The month YYYY-MM of a text that starts with an ISO date (2026-11-...) or YYYYMM."""
    month = value.left(7)
    return month.contains("-").ifelse(month, value.left(4) + "-" + value.substr(4, 2))


def json_map(value: Any) -> Any:
    """A map column as it is, null where it holds an empty map or list."""
    return value.nullif(_NOTHING[0]).nullif(_NOTHING[1])


def json_of(cells: Mapping[str, Any]) -> Any:
    """One JSON object of the texts that are not empty, by key; null where all are empty."""
    if not cells:
        return ibis.null("string")
    parts = [
        cell.isnull().ifelse(ibis.null("string"), ibis.literal(f"{_quote(key)}: ") + to_json(cell))
        for key, cell in cells.items()
    ]
    joined = concat_ws(", ", *parts) if len(parts) > 1 else parts[0].fill_null("")
    return (joined == "").ifelse(ibis.null("string"), ibis.literal("{") + joined + "}")


def _quote(key: str) -> str:
    import json

    return json.dumps(key, ensure_ascii=False)


def concat_ws(separator: str, *parts: Any) -> Any:
    """The parts that are not null, joined by the separator."""
    return ibis.literal(separator).join(parts)


@ibis.udf.scalar.builtin(name="to_json")  # type: ignore[untyped-decorator]  # ibis has no types
def to_json(text: str) -> str:  # type: ignore[empty-body]  # DuckDB's own function
    """The text as a JSON string."""


@ibis.udf.scalar.builtin(name="json_extract_string")  # type: ignore[untyped-decorator]  # ditto
def json_text(document: str, path: str) -> str:  # type: ignore[empty-body]  # DuckDB's own
    """The value at the path of a JSON text, as text; null where there is none."""
