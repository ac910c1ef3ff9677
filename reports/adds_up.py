"""Does it add up: the checks of the bill against itself, invoices and commitments, as a table."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.frames import records
from data.identities import ADDS_UP

if TYPE_CHECKING:
    import pandas as pd

_NAMES = {
    "savings_plan_negation": "savings plans against their negation",
    "savings_plan": "savings plans against their commitment",
    "reservation": "reservations against their fees",
    "invoice": "the bill against the invoice",
    "azure_views": "actual against amortized cost",
    "fees": "fees against the hours that bear them",
    "focus_term": "a commitment's usage against its purchase",
    "commitment": "a commitment against its rate",
    "measured": "billed against measured GPU-hours",
}


def is_check(row: dict[str, Any]) -> bool:
    """Whether a finding is a check of this table, which the table of findings then leaves out."""
    return str(row["check"]).startswith(ADDS_UP)


def view(quality: pd.DataFrame, most: int) -> dict[str, Any] | None:
    """What the template shows of QUALITY: the checks, those that differ first; None without any.

    The measured hours are no sum of money that could be wrong: their amount is what the hours
    cost that nobody saw.
    """
    rows = [row for row in records(quality) if is_check(row)]
    if not rows:
        return None
    rows.sort(key=lambda row: (row["severity"] == "info", row["check"], row["scope"]))
    off = [row for row in rows if row["severity"] != "info"]
    return {
        "rows": [_entry(row) for row in rows[:most]],
        "hidden": len(rows) - len(rows[:most]),
        "count": len(rows),
        "off": len(off),
    }


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    name = str(row["check"]).removeprefix(ADDS_UP)
    return {
        "name": _NAMES.get(name, name.replace("_", " ")),
        "scope": row["scope"],
        "holds": row["severity"] == "info",
        "amount": row["amount"] if row["amount"] is not None else Decimal(0),
        "currency": row["currency"] or "unknown",
        "detail": row["detail"],
    }
