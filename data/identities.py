"""What a bill's own rows must add up to: the identities of savings plans and reservations.

AWS states a commitment on several kinds of rows, and they agree with each other (AWS, Cost and
Usage Report guide, "Understanding Savings Plans" and "Understanding reservations", read 2026-11):

    per plan and hour             covered usage at its list price + its negation = 0
    per plan and billing period   covered usage amortised + unused               = commitment
    per reservation and period    covered usage amortised + unused               = fee + upfront

Where one of them fails, rows are missing, doubled or of other accounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import ibis

from data.frames import records
from data.shares import EXACT

if TYPE_CHECKING:
    from collections.abc import Iterable

# How the findings of such checks are called in QUALITY.
ADDS_UP = "adds_up_"
# A difference below this share of what is expected, or below a cent, is rounding.
SLACK = Decimal("0.01")
# The negation is the exact opposite of the covered rows: only the last digits may differ.
NEGATION_SLACK = Decimal("0.0001")
_CENT = Decimal("0.01")
NEGATION, PLAN, RESERVATION = "savings_plan_negation", "savings_plan", "reservation"
_WORDS = {
    NEGATION: "covered usage at list price and its negation leave {difference} over, hour by hour",
    PLAN: "covered and unused parts are {found}, the commitment {expected}",
    RESERVATION: "covered and unused parts are {found}, fees and upfront share {expected}",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity of one commitment and billing period, as the rows show it.

    `is_final` is false for a month that is still open, in which fees run ahead of usage.
    """

    check: str
    source: str
    commitment: str
    billing_period: str
    expected: Decimal
    found: Decimal
    scale: Decimal
    currency: str
    is_final: bool

    @property
    def difference(self) -> Decimal:
        """What is found beyond what is expected."""
        return self.found - self.expected

    @property
    def holds(self) -> bool:
        """Whether the two sides are equal but for rounding."""
        slack = NEGATION_SLACK if self.check == NEGATION else SLACK
        return abs(self.difference) <= max(_CENT, slack * abs(self.scale))

    @property
    def detail(self) -> str:
        """The two sides in words."""
        cents = {
            "found": f"{self.found:,.2f}",
            "expected": f"{self.expected:,.2f}",
            "difference": f"{self.difference:,.2f}",
        }
        return _WORDS[self.check].format(**cents)


def identities(billing: Any) -> list[Identity]:
    """Every identity that the rows of BILLING (an Ibis table) let one check, in a fixed order.

    A period is final once an invoice id stands on its rows (a staged delivery), or where a later
    one is there.
    """
    rows = billing.filter(
        (billing.source == "aws")
        & (billing.dataset != "focus")
        & billing.purchase_option.isin(("savings_plan", "reserved"))
        & billing.commitment_id.notnull()
    )
    sums = records(rows.get_backend().to_pyarrow(_sums(rows)).to_pandas())
    newest = max((row["billing_period"] for row in sums), default="")
    found = []
    for row in sums:
        is_final = bool(row["invoiced"]) or row["billing_period"] < newest
        found += list(_of(row, is_final))
    return found


def broken(found: Iterable[Identity]) -> list[Identity]:
    """Those that do not hold in a month that is final, or whose rows settle by the hour."""
    return [one for one in found if not one.holds and (one.is_final or one.check != RESERVATION)]


def _sums(rows: Any) -> Any:
    is_used = (rows.commitment_status == "used").fill_null(False) & (rows.charge_type == "usage")
    is_unused = (rows.commitment_status == "unused").fill_null(False)
    is_plan = rows.purchase_option == "savings_plan"
    listed = is_plan & (is_used | (rows.charge_type == "adjustment"))
    has_invoice = "invoice_id" in rows.columns
    invoiced = rows.invoice_id.notnull() if has_invoice else rows.source.isnull()
    by = ["source", "purchase_option", "commitment_id", "billing_period", "currency"]
    hourly = rows.group_by([*by, "period_start"]).aggregate(
        left=_money(rows.billed_cost.sum(where=listed)),
        gross=_money(rows.billed_cost.sum(where=is_used)),
        covered=_money(rows.effective_cost.sum(where=is_used | is_unused)),
        committed=_money(rows.committed_cost.sum()),
        negations=(is_plan & (rows.charge_type == "adjustment")).sum(),
        lacking=(
            ((is_used | is_unused) & rows.effective_cost.isnull())
            | (is_unused & (rows.charge_type == "fee") & rows.committed_cost.isnull())
        ).sum(),
        fees=rows.committed_cost.notnull().sum(),
        invoiced=invoiced.any(),
    )
    summed = hourly.group_by(by).aggregate(
        left=_money(hourly.left.abs().sum()),
        gross=_money(hourly.gross.sum()),
        covered=_money(hourly.covered.sum()),
        committed=_money(hourly.committed.sum()),
        negations=hourly.negations.sum(),
        lacking=hourly.lacking.sum(),
        fees=hourly.fees.sum(),
        invoiced=hourly.invoiced.any(),
    )
    return summed.order_by(by)


def _money(amount: Any) -> Any:
    return ibis.coalesce(amount.cast(EXACT), ibis.literal(0).cast(EXACT))


def _of(row: dict[str, Any], is_final: bool) -> Iterable[Identity]:
    def made(check: str, expected: Decimal, found: Decimal, scale: Decimal) -> Identity:
        return Identity(
            check, row["source"], row["commitment_id"], row["billing_period"], expected, found,
            scale, row["currency"], is_final,
        )  # fmt: skip

    is_plan = row["purchase_option"] == "savings_plan"
    if is_plan and (row["gross"] or row["negations"]):
        yield made(NEGATION, Decimal(0), row["left"], row["gross"])
    if row["fees"] and not row["lacking"]:
        check = PLAN if is_plan else RESERVATION
        yield made(check, row["committed"], row["covered"], row["committed"])
