"""The dates of an Azure file: month first with slashes, or ISO, decided once per file and column.

EA and MCA files write MM/DD/YYYY or M/D/YYYY, FOCUS-like and Parquet files ISO; `03/04/2023` is
4 March. A cell that does not fit its file's form is an error, never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.errors import Problem
from providers.files.counting import counts

if TYPE_CHECKING:
    from collections.abc import Sequence

_SLASHES = r"^\s*(\d{1,2})/(\d{1,2})/(\d{4})(\s.*)?$"
_ISO = r"^\s*(\d{4}-\d{2}-\d{2})([T ].*)?$"
_MOST_SHOWN = 5


def day(text: Any, slashes: bool) -> Any:
    """The day of the text as a date: null where the text is missing or does not fit the form."""
    if not slashes:
        return text.re_extract(_ISO, 1).nullif("").try_cast("date")
    month = text.re_extract(_SLASHES, 1).lpad(2, "0")
    of_month = text.re_extract(_SLASHES, 2).lpad(2, "0")
    written = text.re_extract(_SLASHES, 3) + "-" + month + "-" + of_month
    return text.re_search(_SLASHES).ifelse(written, ibis.null("string")).try_cast("date")


def forms(raw: Any, texts: dict[str, Any]) -> dict[str, bool]:
    """For every date column whether the file writes it with slashes, month first."""
    found = counts(raw, **{name: text.re_search(_SLASHES) for name, text in texts.items()})
    return {name: found[name] > 0 for name in texts}


def faults(raw: Any, texts: dict[str, Any], days: dict[str, Any], needed: str) -> list[Problem]:
    """Problem per date cell that does not fit its file's form, and per missing `needed` one."""
    wrong = {name: texts[name].notnull() & days[name].isnull() for name in texts}
    wrong[needed] = days[needed].isnull()
    found: list[Problem] = []
    for name, count in counts(raw, **wrong).items():
        if not count:
            continue
        rows = raw.filter(wrong[name]).order_by("source_row_no").limit(_MOST_SHOWN)
        cells = rows.select("source_row_no", cell=texts[name]).to_pyarrow().to_pylist()
        found.extend(_fault(name, cells))
        if count > len(cells):
            found.append(Problem(name, f"and {count - len(cells)} more rows"))
    return found


def _fault(name: str, cells: Sequence[dict[str, Any]]) -> list[Problem]:
    remedy = "one form per file: YYYY-MM-DD, or MM/DD/YYYY with the month first"
    return [
        Problem(f"row {cell['source_row_no']}, {name}", f"not a date: {cell['cell']!r}", remedy)
        for cell in cells
    ]
