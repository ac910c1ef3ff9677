"""Fees of commitments and capacity blocks, spread over the hours that they pay for.

Source rows are never rewritten: this is done where charges are brought to hours. What a commitment
covers gets its part of the fee, what nothing used stands as an unused commitment, and the sum is
what was paid. A fee that cannot be spread stays where it is and is told, and the hours that it
covers have no known cost: they never look free.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.frames import records
from data.identities import ADDS_UP
from data.money import exact, total
from data.quality import Finding
from planner.fees.blocks import block_terms, known_blocks, net_fees
from planner.fees.commitments import commitment_terms, has_fees, with_newer_fees
from planner.fees.given import given, joined
from planner.fees.plans import with_ids
from planner.fees.settle import Settled, Unspread, settle

if TYPE_CHECKING:
    import pandas as pd

    from planner.billed_hours import Span
    from planner.scratch import Scratch

_CENT = Decimal("0.01")
# Parts of fees are exact: what differs by more than this share was lost or doubled.
SLACK = Decimal("0.000001")

__all__ = ["Basis", "Spread", "Unspread", "findings", "spread"]


@dataclass(frozen=True, slots=True)
class Basis:
    """What fees are judged by: the whole bill, owned commitments, machine shapes, class order."""

    billing: Any
    commitments: pd.DataFrame
    shapes: pd.DataFrame
    order: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Spread:
    """Charges with their fees in them, fees that stayed on their rows, and what was found.

    `given` has the used and unused parts of fees by commitment (planner.fees.given.COLUMNS).
    """

    rows: Any
    unspread: tuple[Unspread, ...]
    findings: tuple[Finding, ...]
    given: pd.DataFrame


def spread(rows: Any, basis: Basis, tables: Scratch) -> Spread:
    """The charges of the span with the fees of GPU commitments and blocks spread over their hours.

    `rows` come from `billed_hours.charges`. The rows of fees stay among them as they are: they
    bear no GPU-hours, and nothing downstream counts them.
    """
    unspread: tuple[Unspread, ...] = ()
    found: list[Finding] = []
    parts: list[pd.DataFrame] = []
    fees = net_fees(basis.billing, tables)
    blocks = known_blocks(basis.commitments, basis.shapes)
    in_blocks = rows.filter((rows.cloud == "aws") & (rows.option == "capacity_block")).limit(1)
    if len(fees) or tables.connection.execute(in_blocks.count()):
        terms = block_terms(rows, fees, blocks, basis.span, tables)
        settled = settle(terms, basis.order, tables)
        rows, unspread = tables.keep(settled.rows), terms.unspread
        found += [*_unpaid(settled, tables), *_sums(settled, basis.span, tables)]
        parts.append(given(settled, basis.span, tables))
    rows = with_ids(rows, tables)
    if has_fees(rows, tables):
        terms = commitment_terms(with_newer_fees(rows, tables), basis.shapes, tables)
        settled = settle(terms, basis.order, tables)
        rows, unspread = tables.keep(settled.rows), (*unspread, *terms.unspread)
        found += [*_unpaid(settled, tables), *_sums(settled, basis.span, tables)]
        parts.append(given(settled, basis.span, tables))
    return Spread(rows, unspread, (*found, *findings(unspread)), joined(parts))


def findings(unspread: tuple[Unspread, ...]) -> list[Finding]:
    """Warnings of the fees that stay on their own rows: one per account, reason and currency."""
    sums: dict[tuple[str, ...], tuple[int, Decimal]] = {}
    for one in unspread:
        key = (one.check, f"{one.cloud}/{one.account}", one.why, one.currency)
        count, amount = sums.get(key, (0, Decimal(0)))
        sums[key] = (count + one.count, total((amount, one.amount)))
    return [
        Finding(
            check,
            scope,
            "warning",
            f"fees stand on rows of their own and are not spread: {why}; the cost of the hours "
            "that they pay for is not known",
            count,
            amount,
            currency,
        )
        for (check, scope, why, currency), (count, amount) in sorted(sums.items())
    ]


def _unpaid(settled: Settled, tables: Scratch) -> list[Finding]:
    """GPU-hours that a commitment or block covers of which no fee is in the data."""
    sums = settled.unpaid.group_by(["cloud", "option"]).aggregate(
        hours=settled.unpaid.gpu_hours.sum().cast("float64")
    )
    return [
        Finding(
            "covered_without_fee",
            f"{row['cloud']}/{row['option']}",
            "warning",
            f"{row['hours']:,.2f} GPU-hours are paid for by a commitment or block whose fee is not "
            "in the data of the hour: their cost is left empty, never taken as 0; load the bill "
            "that holds the fee",
            round(row["hours"]),
        )
        for row in records(tables.fetch(sums))
        if (row["hours"] or 0) > 0
    ]


def _sums(settled: Settled, span: Span, tables: Scratch) -> list[Finding]:
    """What the hours of the span cost by their fees, against the parts that they were given."""
    paid, parts = (
        rows.filter((rows.hour >= span.first) & (rows.hour < span.end))
        for rows in (settled.paid, settled.parts)
    )
    by = ["cloud", "currency"]
    due = paid.group_by(by).aggregate(due=(paid.amount.cast("float64") * paid.part).sum())
    given = parts.group_by(by).aggregate(
        used=parts.cost.sum(where=parts.is_used), unused=parts.cost.sum(where=~parts.is_used)
    )
    found = []
    for row in records(tables.fetch(due.left_join(given, by).order_by(by))):
        used, unused = (row[name] or Decimal(0) for name in ("used", "unused"))
        expected = exact(round(row["due"], 6))
        difference = used + unused - expected
        detail = (
            f"fees of {expected:,.2f} for the hours of the window: {used:,.2f} went to what they "
            f"cover, {unused:,.2f} stood unused"
        )
        severity = "warning" if abs(difference) > max(_CENT, SLACK * abs(expected)) else "info"
        scope = str(row["cloud"])
        found.append(
            Finding(f"{ADDS_UP}fees", scope, severity, detail, None, difference, row["currency"])
        )
    return found
