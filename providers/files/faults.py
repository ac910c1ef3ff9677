"""Which cells of a delivery cannot be read: row, column and value, all at once.

Casts are strict, so the engine stops at the first bad cell and says little of it. Here the casts
of the delivery's own expression are found again, and every cell that fails one is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis.expr.operations as ops

from data.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_SHOWN = 10
_REMEDY = {
    "decimal": "an amount must be a finite number of at most 12 integer digits",
    "timestamp": "a time must be an ISO 8601 date and time",
}


def cell_faults(connection: Any, rows: Any) -> list[Problem]:
    """One problem per cell that a strict cast of the rows cannot read, a few per column."""
    problems: list[Problem] = []
    for relation, value, kind in _strict_casts(rows):
        bad = relation.filter(value.notnull() & value.try_cast(kind).isnull())
        found = bad.select(row=bad.source_row_no, cell=value).order_by("row")
        records = connection.to_pyarrow(found.limit(_MOST_SHOWN)).to_pylist()
        name = _columns(value)
        for record in records:
            what = f"{record['cell']!r} is no {_word(kind)}"
            remedy = _REMEDY.get(_family(kind), "")
            problems.append(Problem(f"row {record['row']}, column {name}", what, remedy))
        if len(records) == _MOST_SHOWN:
            problems.append(Problem(f"column {name}", f"shown are the first {_MOST_SHOWN}"))
    return sorted(set(problems))


def cell_error(connection: Any, rows: Any, error: Exception) -> DataError:
    """The engine's conversion error as ours, with every bad cell named."""
    problems = cell_faults(connection, rows)
    if not problems:
        first = str(error).splitlines()[0]
        return DataError(f"a cell cannot be read: {first}")
    one = problems[0]
    rest = len(problems) - 1
    more = f" (and {rest} more)" if rest else ""
    return DataError(f"cells that cannot be read: {one.where}: {one.what}{more}", problems)


def _strict_casts(rows: Any) -> Iterator[tuple[Any, Any, Any]]:
    seen = set()
    for node in rows.op().find(ops.Cast):
        text, kind = node.arg, node.to
        if not text.dtype.is_string() or _family(kind) not in _REMEDY:
            continue
        relations = {field.rel for field in text.find(ops.Field)}
        if len(relations) != 1 or (text, kind) in seen:
            continue
        seen.add((text, kind))
        relation = next(iter(relations)).to_expr()
        if "source_row_no" in relation.columns:
            yield relation, text.to_expr(), kind


def _columns(value: Any) -> str:
    names = dict.fromkeys(field.name for field in value.op().find(ops.Field))
    return " or ".join(sorted(names))


def _family(kind: Any) -> str:
    return str(kind).split("(", 1)[0]


def _word(kind: Any) -> str:
    return {"decimal": "number", "timestamp": "time"}.get(_family(kind), str(kind))
