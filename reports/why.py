"""Why a plan is what it is, in the words of the report."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.names import term_words
from reports import numbers

if TYPE_CHECKING:
    from data.plan import SolveFigures
    from data.reasons import PlanLimit, PlanOption, Reasons

_HELD_BACK = {
    "demand": "demand: one more would be at work too little to pay",
    "quota": "a quota on what is bought by the hour there",
    "upfront_budget": "the upfront budget",
    "commitment_limit": 'the rule of "Commit now, or wait" allows no more now',
    "service_level": "the service level needs no more, or no more may be committed to",
}
_WAYS = {"reserved": "reserved", "on_demand": "on demand", "spot": "spot"}
_MONTHS = 12


def purchases(reasons: Reasons | None) -> list[dict[str, Any]]:
    """One entry for each line to buy, as the reasons order them."""
    return [
        {
            "what": line_to_buy(one),
            "one": one,
            "held_back": _HELD_BACK.get(one.binding or "", one.binding),
        }
        for one in ([] if reasons is None else reasons.options)
        if one.count > 0
    ]


def not_chosen(reasons: Reasons | None) -> list[dict[str, Any]]:
    """One entry for each option that was not taken, those nearest to it first."""
    return [
        {
            "one": one,
            "way": "savings plan" if one.kind == "savings_plan" else _WAYS[one.kind],
            "term": _term(one),
            "loses": _loses(one),
        }
        for one in ([] if reasons is None else reasons.options)
        if one.count <= 0
    ]


def _term(one: PlanOption) -> str | None:
    if one.kind == "reserved":
        return term_words(one.term)
    if one.kind == "spot":
        return f"{numbers.share(one.expected_share)} of it useful"
    return "1 year" if one.kind == "savings_plan" else None


def _loses(one: PlanOption) -> Decimal | None:
    if one.saves_per_month is None or one.costs_per_month is None:
        return None
    return one.costs_per_month - one.saves_per_month


def line_to_buy(one: PlanOption) -> str:
    """A line to buy, with how much of it.

    >>> from data.reasons import PlanOption
    >>> line_to_buy(PlanOption("savings_plan", "aws", None, "", "1y", 11.2, 4.4, None, 0.6, 0.9,
    ...                        16, 0, "demand", ""))
    'aws savings plan of $11.20 an hour for 1 year'
    """
    if one.kind == "savings_plan":
        spend = numbers.cents(Decimal(repr(one.count)))
        return f"{one.cloud} savings plan of {spend} an hour for 1 year"
    count = numbers.quantity(one.count)
    return f"{count} x {one.name} in {one.cloud} {one.region} for {term_words(one.term)}"


def limit_sentences(reasons: Reasons | None) -> list[str]:
    """What more of each quota, of the upfront budget and of commitments would save, dearest first.

    Commitments are held back by the rule of the ladder, which tells when to decide again.
    """
    limits = () if reasons is None else reasons.limits
    steps = [] if reasons is None else [step.next_step for step in reasons.ladder]
    worth = [
        _limit(one, min(steps, default=None))
        for one in limits
        if one.saves_per_month is None or numbers.rounded(one.saves_per_month) > 0
    ]
    if worth:
        return worth
    quotas = any(one.kind == "quota" for one in limits)
    budget = any(one.kind == "upfront_budget" for one in limits)
    texts = ["No quota holds the plan back."] if quotas else []
    return texts + (["More upfront budget would save nothing."] if budget else [])


def _limit(one: PlanLimit, day: str | None) -> str:
    """What more of a limit would save; `day` is that of the next decision to commit."""
    saves = numbers.amount(one.saves_per_month)
    if one.kind == "commitment_limit":
        whole = bool(one.region)
        where = (
            f"{one.unit} in {one.cloud} {one.region}" if whole else f"{one.unit}s on {one.cloud}"
        )
        return (
            f'The rule of "Commit now, or wait" allows to commit to no more {where} now: one more '
            f"would save {'' if whole else 'up to '}{saves} a month if demand comes as forecast."
            f"{f' Decide on {day}.' if day else ''}"
        )
    if one.kind == "upfront_budget":
        return (
            f"Each further {one.unit} of upfront budget would save about {saves} a month, "
            "once it pays for a whole instance."
        )
    more = f"One more {one.unit} in {one.cloud} {one.region} within the quota would"
    if one.saves_per_month is None:
        return f"{more} serve hours that nothing serves now."
    return f"{more} save up to {saves} a month."


def proof(solve: SolveFigures) -> str | None:
    """How near to the best the plan is proven to be, and what it costs priced again."""
    if solve.audited is None:
        return None
    text = "The plan is proven to be the best possible."
    if solve.gap > 0:
        text = f"It is proven that no plan can cost more than {numbers.gap(solve.gap)} less."
    month = Decimal(repr(solve.audited)) / _MONTHS
    apart = abs(Decimal(repr(solve.audited)) - Decimal(repr(solve.objective))) / _MONTHS
    return (
        f"{text} Priced again hour by hour, by code that shares nothing with the "
        f"optimiser, it costs {numbers.cents(month)} a month: a difference of "
        f"{numbers.cents(apart)}."
    )


def unproven(solve: SolveFigures) -> list[str]:
    """Stages of the savings that were not solved to the end, in words."""
    return [
        f"{_STAGES.get(one.stage, one.stage)} (within {numbers.gap(one.gap)})"
        for one in solve.stages
        if one.status != "optimal"
    ]


_STAGES = {
    "as_is": "the fleet as it runs",
    "spot": "spot",
    "move": "moves",
    "expiry": "ending commitments",
    "buy": "the plan",
}
