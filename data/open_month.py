"""Months whose bill is not final: what came late in the month before, and is not there yet.

Clouds write reservation fees, discounts and credits into an open month late, and change a closed
one for about two weeks more. Unit rates are taken from usage rows alone, so that none of these
moves them; the money of the month may still change, and that is told.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import ibis

from data.frames import records
from data.quality import Finding

if TYPE_CHECKING:
    from decimal import Decimal

FINAL_AFTER = timedelta(days=14)
_UNUSED = "unused"
# What a month's bill gets late, by charge type, in words.
_LATE = {
    _UNUSED: "unused commitments", "fee": "fees", "discount": "discounts", "credit": "credits",
    "refund": "refunds", "adjustment": "adjustments",
}  # fmt: skip


def findings(billing: Any, as_of: date) -> list[Finding]:
    """One row for each account, currency and open month of the bill as of the day."""
    kind = ibis.ifelse(
        ibis.coalesce(billing.commitment_status, "") == _UNUSED, _UNUSED, billing.charge_type
    )
    rows = billing.select(
        "source",
        "currency",
        "billing_period",
        account=ibis.coalesce(billing.billing_account, "unknown"),
        kind=kind,
        cost=ibis.coalesce(billing.billed_cost, billing.effective_cost),
    )
    sums = rows.group_by(["source", "account", "currency", "billing_period", "kind"]).aggregate(
        cost=rows.cost.sum()
    )
    months: dict[tuple[str, str, str], dict[str, dict[str, Decimal | None]]] = {}
    for row in records(sums.get_backend().to_pandas(sums)):
        key = (row["source"], row["account"], row["currency"])
        months.setdefault(key, {}).setdefault(row["billing_period"], {})[row["kind"]] = row["cost"]
    found = []
    for (source, account, currency), periods in sorted(months.items()):
        for period in sorted(periods):
            if _is_open(period, as_of):
                scope = f"{source}/{account.rpartition('/')[2]}/{period}"
                detail = _detail(periods, period)
                cost = periods[period].get("usage")
                found.append(
                    Finding("open_month", scope, "info", detail, amount=cost, currency=currency)
                )
    return found


def _is_open(period: str, as_of: date) -> bool:
    """True where the month has begun, and ended less than FINAL_AFTER before the day, or not yet.

    >>> _is_open("2026-10", date(2026, 11, 14)), _is_open("2026-10", date(2026, 11, 15))
    (True, False)
    """
    try:
        first = date.fromisoformat(f"{period}-01")
    except ValueError:
        return False
    after = (first + timedelta(days=31)).replace(day=1)
    return first < as_of and as_of < after + FINAL_AFTER


def _detail(periods: dict[str, dict[str, Decimal | None]], period: str) -> str:
    before = max((one for one in periods if one < period), default=None)
    former = {} if before is None else periods[before]
    missing = [
        f"{word} ({former[kind]:,.2f})"
        for kind, word in _LATE.items()
        if former.get(kind) and not periods[period].get(kind)
    ]
    text = "the bill of this month is not final"
    if missing:
        text += f": {', '.join(missing)} of {before} have no counterpart in it yet"
    return f"{text}; rates are those of usage rows alone, which nothing of this moves"
