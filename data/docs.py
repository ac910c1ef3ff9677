"""The documentation page of the tables, rendered from their declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.schema import TABLES, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD = """# Tables

Every table of loadfactor, as `data.schema` declares it. This page is rendered from the
declarations (`python -m data.docs > docs/tables.md`); a test keeps the two equal.

| dtype | in Parquet | meaning |
|---|---|---|
| `text` | string | text, never a number |
| `int` | int64 | whole number |
| `float` | float64 | reading or ratio; never money |
| `money`, `hours` | decimal(38, 26) | exact; at most 12 integer digits |
| `time` | timestamp, UTC | point in time; spans are half-open |
| `date` | date | day, UTC |
| `bool` | boolean | true or false |
| `json` | string | one JSON object |

A column that may be empty holds *no reading* where it is empty, never 0.
"""


def page(tables: Iterable[Table] = TABLES) -> str:
    """The Markdown page: every table with its columns in published order."""
    return "\n".join([_HEAD, *(_section(table) for table in tables)])


def _section(table: Table) -> str:
    key = f"\nKey: {', '.join(f'`{name}`' for name in table.key)}.\n" if table.key else ""
    rows = "\n".join(_row(column) for column in table.columns)
    return (
        f"## {table.name}\n\n{table.meaning}\n{key}\n"
        "| column | dtype | unit | may be empty | meaning |\n|---|---|---|---|---|\n"
        f"{rows}\n"
    )


def _row(column: Column) -> str:
    bounds = ""
    if column.low is not None and column.high is not None:
        bounds = f"; {column.low:g} to {column.high:g}"
    elif column.low is not None:
        bounds = f"; at least {column.low:g}"
    choices = f"; one of {', '.join(f'`{one}`' for one in column.allowed)}"
    meaning = f"{column.meaning}{choices if column.allowed else ''}{bounds}"
    empty = "yes" if column.nullable else "no"
    cells = (f"`{column.name}`", f"`{column.dtype}`", column.unit, empty, meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
