"""What to commit to now, what to wait for and what to let go, in the words of the report."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from reports import numbers

if TYPE_CHECKING:
    from data.known_events import EventCost, KnownEvent
    from data.ladder import LadderStep
    from data.plan import BillFigures, SolveFigures
    from data.reasons import Reasons

_ACTIONS = {"renew": "renew", "let_expire": "let it expire"}


def view(reasons: Reasons | None) -> dict[str, Any] | None:
    """Everything the section shows; None for a plan without a ladder."""
    if reasons is None or not (reasons.ladder or reasons.ending):
        return None
    return {
        "pools": reasons.ladder,
        "has_events": bool(reasons.events),
        "sentences": [sentence(one) for one in reasons.ladder],
        "ending": [
            {"one": one, "action": _ACTIONS.get(one.action, one.action)} for one in reasons.ending
        ],
    }


def known_events(reasons: Reasons | None) -> list[dict[str, Any]]:
    """The known events that the plan counts, one row each."""
    return [
        {
            "one": one,
            "change": _change(one),
            "ways": _ways(one),
        }
        for one in (reasons.events if reasons else ())
    ]


def _ways(one: KnownEvent) -> str:
    """In which ways an event happens, and what they weigh.

    >>> from data.known_events import KnownEvent
    >>> _ways(KnownEvent("e", "a", "2027-01-01", None, 3, 0, 0.4, 6, 12, 20, 36, 11680.0))
    '6 of 12, that weigh 40.0%'
    >>> _ways(KnownEvent("e", "a", "2027-01-01", None, 3, 0, 1, 6, 6, 20, 60, 29200.0))
    'all'
    """
    if one.chance >= 1:
        return "all"
    if one.happens_in >= one.scenarios:
        return "all, at its mean"
    return f"{one.happens_in} of {one.scenarios}, that weigh {numbers.share(one.chance)}"


def event_costs(reasons: Reasons | None) -> tuple[EventCost, ...]:
    """What each known event costs, in the order of the configuration."""
    return reasons.event_costs if reasons else ()


def _change(one: KnownEvent) -> str:
    """What an event does to the demand of its class, in words.

    >>> from data.known_events import KnownEvent
    >>> _change(KnownEvent("e", "a", "2027-01-01", None, 0.5, 8, 1, 6, 6, 20, 18, -1460.0))
    'x 0.5, + 8 GPUs'
    """
    parts = [] if one.factor == 1 else [f"x {one.factor:g}"]
    return ", ".join([*parts, f"+ {_gpus(one.gpus)}"] if one.gpus else parts)


def sentence(one: LadderStep) -> str:
    """What to do about a pool now and at the next step, with the reason.

    >>> from data.ladder import LadderStep
    >>> sentence(LadderStep("aws H100", 20, 0, 0, 0, 8, "2026-12-29", 4.3, 6.88, "It fell."))
    'aws H100: buy nothing yet. It fell. 8 GPUs pay if demand holds until 2026-12-29: decide \
then.'
    """
    words = "buy nothing yet" if one.bought <= 0 else f"commit to {_gpus(one.bought)} now"
    if one.bought <= 0 and one.allowed > 0:
        words += f", though {_gpus(one.allowed)} would be allowed: "
        words += one.withdrawn or "other ways cost less"
    text = f"{one.pool}: {words}. {_once(one.reason) if one.bought <= 0 else one.reason}"
    if one.later > 0:
        more = "more " if one.bought > 0 else ""
        gpus = _gpus(one.later, more)
        pays = "pay" if gpus.endswith("s") else "pays"
        text += f" {gpus} {pays} if demand holds until {one.next_step}: decide then."
    return text


def _once(reason: str) -> str:
    """The reason without the advice that stands before it already.

    >>> _once("Buy nothing yet: too little demand is known."), _once("It fell.")
    ('Too little demand is known.', 'It fell.')
    """
    plain = reason.removeprefix("Buy nothing yet: ").removeprefix("Buy nothing: ")
    return f"{plain[:1].upper()}{plain[1:]}"


def _gpus(count: float, more: str = "") -> str:
    text = numbers.quantity(count)
    return f"{text} {more}GPU" if text == "1" else f"{text} {more}GPUs"


def ranges(bill: BillFigures) -> str | None:
    """Between what cost and saving lie as demand may come; None where it was not forecast."""
    low, high = bill.plan_low_per_month, bill.plan_high_per_month
    if low is None or high is None:
        return None
    text = (
        f"In 8 of 10 ways in which demand may come the plan costs between "
        f"{numbers.amount(low, bill.currency)} and {numbers.amount(high, bill.currency)} a month"
    )
    least, most = bill.saving_low_per_month, bill.saving_high_per_month
    if least is None or most is None:
        return f"{text}; what it saves then is not known."
    if numbers.rounded(least) == numbers.rounded(most):
        return f"{text} and saves {numbers.amount(least, bill.currency)} in each."
    return (
        f"{text} and saves between {numbers.amount(least, bill.currency)} and "
        f"{numbers.amount(most, bill.currency)} against running on as today."
    )


def scenarios(solve: SolveFigures) -> str:
    """In how many ways the demand of the planned year may come.

    >>> from data.plan import SolveFigures
    >>> scenarios(SolveFigures("optimal", "highs", 1.0, 1.0, 0.0, 1344, 0.0, scenarios=6))
    ' in 6 ways in which demand may come'
    """
    return f" in {solve.scenarios} ways in which demand may come" if solve.scenarios > 1 else ""


def risk_month(solve: SolveFigures) -> str | None:
    """What the plan weighs for caution and nobody pays, a month; None where there is none."""
    month = Decimal(repr(solve.risk)) / 12
    return numbers.amount(month) if numbers.rounded(month) else None
