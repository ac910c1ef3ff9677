"""The answer in figures, the same for the page and the terminal: the bill's sum, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from data import money
from reports import numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.plan import BillFigures, IdleFigures, SolveFigures, Summary

# Above this share of the billed hours, what is unknown is the finding, and idle is not.
MOSTLY = Decimal("0.5")


@dataclass(frozen=True, slots=True)
class Step:
    """One amount of the bill's sum: its text with its sign, and what it is."""

    amount: str
    label: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """What was billed in a currency that has no rate, and so is not in the bill."""

    currency: str
    gpu_hours: Decimal
    per_month: Decimal


@dataclass(frozen=True, slots=True)
class Year:
    """How the solver's figure and the plan's month hang together.

    `cycles` is how often the observed hours are repeated, None if not in whole cycles; `owned` are
    dollars a month that the solver does not decide on, None where they cannot be told.
    """

    cycles: int | None
    solved_per_month: Decimal
    owned_per_month: Decimal | None


def bill_steps(bill: BillFigures) -> list[Step]:
    """The sum from today's bill to the plan's, steps that are 0 left out.

    With cents where whole units would not add up.
    """
    shown = numbers.amount if _adds_up(bill, numbers.rounded) else numbers.cents
    changes = [
        (-bill.saving_per_month, "savings: the sum of the recommendations"),
        (bill.repriced_per_month, "the plan's prices, not those billed (no saving)"),
        (bill.growth_per_month, "the demand to come, not that of the past (no saving)"),
        (bill.expiring_per_month, "owned commitments that begin or end (no saving)"),
    ]
    steps = [Step(shown(bill.today_per_month, bill.currency), "today")]
    steps += [
        Step(numbers.signed(shown(amount, bill.currency)), label)
        for amount, label in changes
        if numbers.rounded(amount) != 0
    ]
    return [*steps, Step(shown(bill.plan_per_month, bill.currency), "under the plan")]


def adds_up(bill: BillFigures) -> bool:
    """Whether the amounts of the bill's sum add up as they are shown."""
    return _adds_up(bill, numbers.rounded) or _adds_up(bill, numbers.to_cents)


def _adds_up(bill: BillFigures, rounded: Callable[[Decimal], Decimal]) -> bool:
    changes = (
        -bill.saving_per_month,
        bill.repriced_per_month,
        bill.growth_per_month,
        bill.expiring_per_month,
    )
    shown = sum((rounded(change) for change in changes), rounded(bill.today_per_month))
    return shown == rounded(bill.plan_per_month)


def by_currency(summary: Summary) -> list[IdleFigures]:
    """The idle figures, those of the bill's currency first."""
    return sorted(
        summary.idle, key=lambda one: (one.currency != summary.bill.currency, one.currency)
    )


def unknown_hours(summary: Summary, currency: str) -> Decimal:
    """GPU-hours of which nobody knows what they did."""
    return sum(
        (
            row.gpu_hours
            for row in summary.states
            if (row.state, row.currency) == ("unknown", currency)
        ),
        Decimal(0),
    )


def mostly_unknown(summary: Summary, entry: IdleFigures) -> bool:
    """Whether more than half of the billed hours are unknown."""
    return unknown_hours(summary, entry.currency) > entry.billed_gpu_hours * MOSTLY


def known_idle(summary: Summary, entry: IdleFigures) -> str:
    """What did nothing beside what nobody knows, in one sentence; empty where it cost nothing.

    A commitment that nothing used costs money and has no GPU-hours.
    """
    if not entry.gpu_hours and not entry.cost:
        return ""
    year = numbers.amount(entry.cost_per_year, entry.currency)
    cost = numbers.cents(entry.cost, entry.currency)
    spent = f"{cost} in {numbers.counted(summary.hours_observed, 'hour')}, {year} a year"
    if entry.gpu_hours:
        return f"Of the rest, {numbers.gpu_hours(entry.gpu_hours)} did nothing: {spent}."
    month = numbers.amount(entry.committed_per_month, entry.currency)
    return (
        f"Known to be idle are commitments that nothing used: {spent} ({month} a month committed)."
    )


def foreign(summary: Summary) -> list[Foreign]:
    """What is billed in currencies without a rate, by currency."""
    rated = {summary.bill.currency, *(text.split(" ")[0] for text in summary.rates)}
    found = []
    for currency in sorted({row.currency for row in summary.states} - rated):
        rows = [row for row in summary.states if row.currency == currency]
        cost = sum((row.cost for row in rows), Decimal(0))
        hours = sum((row.gpu_hours for row in rows), Decimal(0))
        found.append(Foreign(currency, hours, money.per_month(cost, summary.hours_observed)))
    return found


def is_short_history(summary: Summary) -> bool:
    """Whether the plan rests on fewer hours than it should."""
    return summary.hours_observed < summary.least_history_hours


def year_of(solve: SolveFigures, summary: Summary) -> Year:
    """How the solver's year makes the plan's month.

    Hours that no offer serves bear a penalty in the objective and none in the bill, so the two
    cannot be set side by side where there are any.
    """
    cycles, rest = divmod(solve.hours_planned, max(summary.hours_observed, 1))
    if solve.scenarios > 1 or (summary.reasons is not None and summary.reasons.ladder):
        cycles = 0  # the hours are those of a forecast
    spent = money.exact(solve.objective) - money.exact(solve.risk)
    solved = money.quotient(spent, money.MONTHS_PER_YEAR)
    owned = summary.bill.plan_per_month - solved
    is_known = solve.short_gpu_hours_per_month == 0 and owned > Decimal("-0.5")
    return Year(cycles if rest == 0 and cycles else None, solved, owned if is_known else None)
