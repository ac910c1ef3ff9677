"""Which cells of a delivery cannot be read: row, column and value, all at once.

Casts are strict, so the engine stops at the first bad cell and says little of it. Here the casts
of the delivery's own expression are found again, and every cell that fails one is named.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ibis.expr.operations as ops

from data.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MOST_SHOWN = 10
_REMEDY = {
    "decimal": "an amount must be a finite number of at most 12 integer digits",
    "timestamp": "a time must be an ISO 8601 date and time",
}
_TOO_LARGE = "a product with it has more than 12 integer digits"
# Amounts that a product may have made too large, from the surely wrong to the odd.
_LARGE = (5e10, 1e9, 1e6)
_OF_ROW = re.compile(r"row (\d+)")
_ENGINE_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: |^Error: ")
# A path of more than one folder, as of a copy that reading needed.
_OTHER_PATH = re.compile(r"/[^\s\"'/]+/[^\s\"']+")


def cell_faults(connection: Any, rows: Any) -> list[Problem]:
    """One problem per cell that a strict cast of the rows cannot read, a few per column."""
    problems: list[Problem] = []
    for relation, value, kind in _strict_casts(rows):
        bad = relation.filter(value.notnull() & value.try_cast(kind).isnull())
        found = bad.select(row=bad.source_row_no, cell=value).order_by("row")
        records = connection.to_pyarrow(found.limit(_MOST_SHOWN)).to_pylist()
        name = _columns(value)
        for record in records:
            what = f"{record['cell']!r} {_fault(str(record['cell']), kind)}"
            remedy = _REMEDY.get(_family(kind), "")
            problems.append(Problem(f"row {record['row']}, column {name}", what, remedy))
        if len(records) == _MOST_SHOWN:
            problems.append(Problem(f"column {name}", f"shown are the first {_MOST_SHOWN}"))
    return sorted(set(problems))


def bad_cells(rows: Any) -> int:
    """How many cells a strict cast of the rows cannot read, by one look at their source."""
    masks: dict[Any, list[Any]] = {}
    for relation, value, kind in _strict_casts(rows):
        mask = value.notnull() & value.try_cast(kind).isnull()
        masks.setdefault(relation, []).append(mask.ifelse(1, 0))
    found = 0
    for relation, ones in masks.items():
        counted = relation.aggregate(**{f"n{n}": one.sum() for n, one in enumerate(ones)})
        (record,) = counted.to_pyarrow().to_pylist()
        found += sum(int(count or 0) for count in record.values())
    return found


def cell_error(connection: Any, rows: Any, error: Exception) -> DataError:
    """The engine's conversion error as ours, with every bad cell named."""
    problems = cell_faults(connection, rows)
    if problems:
        return DataError("cells cannot be read", problems)
    if "overflow" in str(error).lower():
        return DataError("amounts are too large", large_cells(connection, rows))
    return DataError(f"a cell cannot be read: {str(error).splitlines()[0]}")


def large_cells(connection: Any, rows: Any) -> list[Problem]:
    """One problem per cell so large that a product with it overflows, a few per column."""
    casts = [one for one in _strict_casts(rows) if _family(one[2]) == "decimal"]
    for least in _LARGE:
        problems: list[Problem] = []
        for relation, value, _ in casts:
            bad = relation.filter(value.try_cast("float64").abs() >= least)
            found = bad.select(row=bad.source_row_no, cell=value).order_by("row")
            for record in connection.to_pyarrow(found.limit(_MOST_SHOWN)).to_pylist():
                where = f"row {record['row']}, column {_columns(value)}"
                problems.append(Problem(where, f"{record['cell']!r} is too large", _TOO_LARGE))
        if problems:
            return sorted(set(problems))
    return []


def unreadable(error: Exception, shown: str, files: Sequence[Path]) -> DataError:
    """The reader's own error as one of ours: which file of the delivery, and what is wrong there.

    Its first sentences are kept, without the advice on options. Of a bucket's delivery the object
    is named, not where its download lies.

    >>> from pathlib import Path
    >>> error = ValueError('Invalid Error: Malformed JSON in file "/x/0001.json", at byte 8: odd')
    >>> print(unreadable(error, "gs://b/ex/000*", [Path("/x/0001.json")]).problems[0])
    gs://b/ex/0001.json: Malformed JSON, at byte 8: odd (export it again, whole)
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    wanted = [line for line in lines if not line.startswith(("Possible", "*", "  "))][:3]
    text = _ENGINE_KIND.sub("", "; ".join(wanted))
    named = [path for path in files if str(path) in text]
    where = _object_name(shown, named[0]) if named else shown
    for path in files:
        text = re.sub(rf"""( in file| file)? *["']?{re.escape(str(path))}["']?""", "", text)
    what = _OTHER_PATH.sub(lambda path: path[0].rpartition("/")[2], text)
    return DataError("cannot be read", [Problem(where, what, "export it again, whole")])


def _object_name(shown: str, path: Path) -> str:
    """The file for people: as it is on a disk; of a bucket its object, beside what is shown."""
    if "://" not in shown:
        return str(path)
    folder, _, last = shown.rpartition("/")
    if last.endswith("*") or last == path.name:
        return f"{folder}/{path.name}"
    return f"{shown}, file {path.name}"


def is_of_row(problem: Problem) -> bool:
    """Whether the problem names a row of a delivery, counted over all of its files."""
    return _OF_ROW.match(problem.where) is not None


def in_file(problem: Problem, parts: Sequence[tuple[str, int]]) -> Problem:
    """The problem with its row counted within its file; `parts` are file names and their rows.

    >>> in_file(Problem("row 5, column x", "bad"), [("a.csv", 3), ("b.csv", 4)]).where
    'b.csv row 2, column x'
    """
    match = _OF_ROW.match(problem.where)
    if match is None:
        return problem
    row = int(match[1])
    for name, rows in parts:
        if row <= rows:
            rest = problem.where[match.end() :]
            return replace(problem, where=f"{name} row {row}{rest}")
        row -= rows
    return problem


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


def _fault(cell: str, kind: Any) -> str:
    if _family(kind) == "timestamp":
        return "is no time"
    try:
        is_number = math.isfinite(float(cell))
    except ValueError:
        is_number = False
    return "is too large" if is_number else "is no number"
