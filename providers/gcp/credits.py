"""The credits of a row, added up by kind. They stay on their row: no row is joined or doubled.

Types: Cloud Billing data export, `credits.type` (read 2026-11); rows of before 2020-09-10 have
none, and there the name tells.
"""

from __future__ import annotations

from typing import Any

import ibis

from providers.files.expressions import MONEY
from providers.files.nested import is_json
from providers.files.quantities import null_money, quotient, zero_money
from providers.gcp.columns import entries, is_list

_RESOURCE = "COMMITTED_USAGE_DISCOUNT"
_SPEND = "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE"
_OFFSET = "FEE_UTILIZATION_OFFSET"
# Payments, not prices: they stand in cost, and are named so that rates can leave them out.
_PAYMENTS = ("PROMOTION", "RESELLER_MARGIN")


def with_credits(rows: Any) -> Any:
    """The rows with the sums `credit`, `cud_credit`, `spend_credit`, `offset`, `payment`.

    All are 0 where a row has none; the amounts are negative as exported. `credit_fault` is true
    where the cell is no list of amounts, so that money would be lost.
    """
    items = entries(rows.credits, ("type", "name", "amount"))

    def total(chosen: Any) -> Any:
        amounts = chosen.map(lambda credit: credit["amount"].try_cast(MONEY))
        return ibis.coalesce(amounts.sums(), zero_money())

    def of_kind(kind: str) -> Any:
        return total(items.filter(lambda credit: _kind(credit) == kind))

    bad = items.filter(lambda credit: credit["amount"].try_cast(MONEY).isnull()).length() > 0
    unlisted = False if is_list(rows.credits) else ~_is_json_list(rows.credits)
    return rows.mutate(
        credit=total(items),
        cud_credit=of_kind(_RESOURCE),
        spend_credit=of_kind(_SPEND),
        offset=of_kind(_OFFSET),
        payment=total(items.filter(lambda credit: _kind(credit).isin(_PAYMENTS))),
        credit_fault=rows.credits.notnull() & (bad.fill_null(True) | unlisted),
    )


def _is_json_list(text: Any) -> Any:
    return text.strip().startswith("[") & is_json(text)


def covers_half(cost: Any, credit: Any) -> Any:
    """Whether a commitment's credit pays at least half of the cost; both signs may be turned."""
    rest = cost + credit + credit
    paid = ((cost >= 0) & (rest <= 0)) | ((cost < 0) & (rest >= 0))
    return (credit != 0) & paid


def covered_share(rows: Any) -> Any:
    """Share (0 to 1) of the row that a commitment's credits pay, at 10 places; null without any."""
    credit = rows.cud_credit + rows.spend_credit
    share = quotient(-credit, rows.cost)
    one = ibis.literal("1").cast(MONEY)
    return ibis.cases(
        (rows.fee | (credit == 0), null_money()),
        (rows.cost + credit == 0, one),
        (share <= 0, zero_money()),
        (share >= 1, one),
        else_=share,
    )


def _kind(credit: Any) -> Any:
    name = credit["name"].lower().fill_null("")
    by_name = ibis.cases(
        (name.startswith("committed usage discount - dollar"), _SPEND),
        (name.startswith("committed usage discount"), _RESOURCE),
        else_="",
    )
    return ibis.coalesce(credit["type"].upper().nullif(""), by_name)
