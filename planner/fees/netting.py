"""Fees of capacity blocks and their refunds: which refund is of which fee.

A cancelled or failed purchase shows as a refund of the same usage type and day, with or without the
reservation's name: fees are net per usage type and day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from data.frames import records
from data.money import product, quotient, total

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

_SAME = ("account", "region", "instance_type", "day", "currency")


def landed(fees: pd.DataFrame) -> pd.DataFrame:
    """The fees with every refund that names no reservation taken off the fees that name one.

    `fees` has one row per account, region, instance_type, day, currency and reservation ("" for
    none). A refund is of the one fee of the same account, place, type, day and currency that it
    undoes to the cent, else of all of them, by amount. Where none is named, it stays. The sum of
    all amounts stays what it was.
    """
    rows = records(fees)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in _SAME), []).append(row)
    gone: list[int] = []
    for same in groups.values():
        named = [row for row in same if row["reservation"] and row["amount"] > 0]
        for refund in (row for row in same if not row["reservation"] and row["amount"] < 0):
            if named:
                _take_off(refund, named)
                gone.append(id(refund))
    kept = [row for row in rows if id(row) not in gone]
    return pd.DataFrame(kept, columns=fees.columns, dtype=object)


def _take_off(refund: dict[str, Any], named: Sequence[dict[str, Any]]) -> None:
    undone = [row for row in named if row["amount"] == -refund["amount"]]
    takers = undone if len(undone) == 1 else list(named)
    paid = total(row["amount"] for row in takers)
    left: Decimal = refund["amount"]
    for number, row in enumerate(takers, start=1):
        share = quotient(product(refund["amount"], row["amount"]), paid)
        part = left if number == len(takers) else share
        left = total((left, -part))
        row["amount"] = total((row["amount"], part))
        row["count"] = row["count"] + (refund["count"] if number == 1 else 0)
