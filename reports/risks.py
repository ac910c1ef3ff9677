"""How sure a plan is, in the words of the report."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.risks import FAILING_SHARES, PRICE_MOVES, EventLoss, LevelMissed, LosesIf
from reports import numbers

if TYPE_CHECKING:
    from data.risks import (
        BacktestPool,
        Backtests,
        HeldBefore,
        HopedFor,
        PriceMove,
        Risks,
        ServiceLevel,
    )

_POLICIES = {
    "loadfactor": "this planner",
    "all_on_demand": "everything on demand",
    "peak": "reserve the peak of the first half",
    "mean": "reserve the mean of the first half",
    "quantile": "reserve the quantile of the first half that the prices ask for",
    "quantile_firm_spot_defer": "reserve that quantile of the work that cannot use spot",
    "lp_on_history": "reserve what was best for the first half",
    "cloud_replay": "what the clouds recommend: the best of the last 30 days",
    "foresight": "the best constant level, known only afterwards",
}
_MISSED = {
    LevelMissed.NONE_SOLD: "No commitment is sold to it at a known price",
    LevelMissed.BUDGET: "What may be paid upfront is too little for it",
    LevelMissed.QUOTA: "The quotas leave too little room for it",
    LevelMissed.LIMIT: "No more may be committed to",
    LevelMissed.SEVERAL: "No limit by itself stands in the way: several do, or the time ended",
}


def view(risks: Risks | None) -> dict[str, Any] | None:
    """Everything the section shows; None for a plan that does not say."""
    if risks is None:
        return None
    return {
        "capacity": capacity_sentence(risks.hoped_for),
        "failing": FAILING_SHARES,
        "hoped_for": _hoped_for(risks.hoped_for),
        "level": level_view(risks),
        "service": [service_sentence(one) for one in risks.service],
        "regret": regret_sentence(risks.backtests),
        "policies": [
            {"words": _POLICIES.get(one.policy, one.policy), "one": one}
            for one in risks.backtests.policies
        ],
        "found": [*map(pool_sentence, risks.backtests.pools), *risks.backtests.notes],
        "held_before": risks.held_before,
        "held_sentence": held_sentence(risks.held_before),
        "loses_if": loses_sentences(risks.loses_if),
        "moves": PRICE_MOVES,
        "beyond_year": sum((one.beyond_year for one in risks.price_moves), Decimal(0)),
        "price_moves": [
            {
                "one": one,
                "worth": [one.worth(move) for move in (0.0, *PRICE_MOVES)],
                "breaks": breaking_words(one),
            }
            for one in risks.price_moves
        ],
    }


def _hoped_for(rows: tuple[HopedFor, ...]) -> list[dict[str, Any]]:
    """One entry a class, and the sum of several."""
    entries = [
        {"name": one.workload_class, "family": one.gpu_family, "one": one,
         "lost": [one.lost(share) for share in FAILING_SHARES]}
        for one in rows
    ]  # fmt: skip
    if len(rows) > 1:
        total = _total(rows)
        lost = [total.lost(share) for share in FAILING_SHARES]
        entries.append({"name": total.workload_class, "family": "", "one": total, "lost": lost})
    return entries


def _total(rows: tuple[HopedFor, ...]) -> HopedFor:
    parts = ("assured", "discounted", "on_demand", "spot", "unserved")
    sums = (sum(getattr(one, part) for one in rows) for part in parts)
    return type(rows[0])("all classes", "", *sums)


def capacity_sentence(rows: tuple[HopedFor, ...]) -> str:
    """How much of what is needed is assured, and what the rest stands on.

    >>> from data.risks import HopedFor
    >>> capacity_sentence((HopedFor("train", "H100", 500.0, 200.0, 200.0, 100.0, 0.0),))
    'Of 1,000 GPU-hours needed a month, 500 (50.0%) run on machines that are kept for you. 400 \
(40.0%) must be requested on demand and 100 (10.0%) as spot: they are hoped for, since a price is \
no promise of a machine.'
    """
    if not rows:
        return ""
    total = _total(rows)

    def part(hours: float) -> str:
        return f"{numbers.quantity(hours)} ({numbers.share(hours, total.needed)})"

    if not total.needed:
        return ""
    assured = part(total.assured) if total.assured else "none"
    text = (
        f"Of {numbers.gpu_hours(total.needed)} needed a month, {assured} run on machines "
        "that are kept for you."
    )
    hopes = [f"{part(total.requested)} must be requested on demand"] if total.requested else []
    if total.spot:
        hopes.append(f"{part(total.spot)} {'' if hopes else 'must be had '}as spot")
    if hopes:
        text += (
            f" {' and '.join(hopes)}: they are hoped for, since a price is no promise of a machine."
        )
    if total.unserved:
        text += f" {part(total.unserved)} no offer serves at all."
    return text


def service_sentence(one: ServiceLevel) -> str:
    """How far a stated service level is reached for a class.

    >>> from data.risks import ServiceLevel
    >>> service_sentence(ServiceLevel("train", "H100", 0.95, 0.97))
    'train on H100: 97.0% of the hours in which it needs GPUs are served by commitments and spot \
alone; 95.0% are asked for.'
    >>> from data.risks import LevelMissed
    >>> service_sentence(ServiceLevel("train", "H100", 0.95, 0.5, LevelMissed.NONE_SOLD))[-45:]
    'No commitment is sold to it at a known price.'
    """
    text = (
        f"{one.workload_class} on {one.gpu_family}: {numbers.share(one.reached)} of the hours in "
        "which it needs GPUs are served by commitments and spot alone; "
        f"{numbers.share(one.stated)} are asked for."
    )
    return text if one.missed is None else f"{text} {_MISSED[one.missed]}."


def level_view(risks: Risks | None) -> dict[str, Any] | None:
    """What a stated service level costs, and where it is missed; None where none is stated.

    >>> from data.risks import LevelMissed, Risks, ServiceLevel
    >>> rows = (ServiceLevel("train", "H100", 0.95, 0.5, LevelMissed.BUDGET),)
    >>> found = level_view(Risks(service=rows, level_usd_per_month=Decimal(300)))
    >>> found["costs"]
    'The service level of 95.0% costs $300 a month more than the plan without it.'
    >>> found["missed"]
    ['train on H100 reaches 50.0%. What may be paid upfront is too little for it.']
    """
    if risks is None or not risks.service:
        return None
    usd, name = risks.level_usd_per_month, f"level of {numbers.share(risks.service[0].stated)}"
    costs = ""
    if usd is not None:
        more = "less" if usd < 0 else "more"
        costs = (
            f"The service {name} costs {numbers.amount(abs(usd))} a month {more} than the plan "
            "without it."
        )
    missed = [one for one in risks.service if one.reached < one.stated]
    return {"costs": costs, "missed": [_missed_words(one) for one in missed]}


def _missed_words(one: ServiceLevel) -> str:
    why = "" if one.missed is None else f" {_MISSED[one.missed]}."
    return f"{one.workload_class} on {one.gpu_family} reaches {numbers.share(one.reached)}.{why}"


def regret_sentence(tests: Backtests) -> str:
    """What the back-test found, in one or two sentences; nothing where there was none.

    The regret is the cost above the best constant level, which nobody can know beforehand.
    """
    if not tests.pools:
        return ""
    mine = sum(one.usd for one in tests.pools)
    best = sum(one.foresight_usd for one in tests.pools)
    nothing = sum(one.on_demand_usd for one in tests.pools)
    hours = max(one.test_hours for one in tests.pools)
    text = (
        f"Planned as if they were not known yet, the last {numbers.counted(hours, 'hour')} of this "
        f"history would have cost {numbers.plain_amount(mine)} by this planner's rule, at the "
        f"plan's prices{_terms_words(tests)}. {_apart(mine, nothing, 'everything on demand')}"
    )
    if mine < best:
        return f"{text} No constant level, even one known afterwards, would have cost less."
    over = f" ({numbers.share((mine - best) / best)})" if best > 0 else ""
    return (
        f"{text} Against the best constant level, which could be known only afterwards, its "
        f"regret is {numbers.plain_amount(mine - best)}{over}."
    )


def _terms_words(tests: Backtests) -> str:
    """For how long the back-test buys, where it is longer than a year."""
    terms = sorted({one.term_months / 12 for one in tests.pools})
    if terms[-1] <= 1:
        return ""
    many = " and ".join(f"{one:g}" for one in terms)
    return f" and for the terms that the plan buys ({many} years)"


def _apart(mine: float, other: float, words: str) -> str:
    apart = other - mine
    if round(apart) == 0:
        return f"That is what {words} would have cost."
    more = "less" if apart > 0 else "more"
    return f"That is {numbers.plain_amount(abs(apart))} {more} than {words}."


def pool_sentence(one: BacktestPool) -> str:
    """What the planner did with one pool in the back-test, and how often it was wrong.

    >>> from data.risks import BacktestPool
    >>> pool_sentence(BacktestPool("aws H100", 720, 720, 90.0, 80.0, 100.0, "mean", 95.0,
    ...                              2, 1, 0, 16, 1.2, 2.0))
    'aws H100: 1 purchase in 2 planning steps, 16 GPUs committed to at the end; none was at \
work less than its break-even of 60.0% of the unseen hours that followed.'
    """
    steps = numbers.counted(one.steps, "planning step")
    if one.term_months > 12:
        steps = f"{steps}, each for {one.term_months / 12:g} years at ${one.rate:.4f} a GPU-hour"
    if not one.purchases:
        return f"{one.pool}: nothing was bought in {steps}."
    even = numbers.share(one.rate, one.on_demand)
    under = "none" if not one.under_break_even else f"{one.under_break_even:,}"
    return (
        f"{one.pool}: {numbers.counted(one.purchases, 'purchase')} in {steps}, "
        f"{numbers.counted(one.reserved_gpus, 'GPU')} committed to at the end; {under} "
        f"{'was' if one.under_break_even < 2 else 'were'} at work less than its break-even of "
        f"{even} of the unseen hours that followed."
    )


def held_sentence(rows: tuple[HeldBefore, ...]) -> str:
    """How many commitments were below their break-even over the whole window."""
    if not rows:
        return ""
    under = sum(one.used_share < one.break_even_share for one in rows)
    what = numbers.counted(len(rows), "commitment")
    if not under:
        return f"Over the whole window none of {what} would have been under its break-even."
    return f"Over the whole window {under:,} of {what} would have been under break-even."


def loses_sentences(loses: LosesIf | None) -> list[str]:
    """What would have to happen for the new commitments to lose money, one sentence each."""
    if loses is None:
        return []
    costs, saves = numbers.amount(loses.costs_per_month), numbers.amount(loses.saves_per_month)
    first = (
        f"The new commitments cost {costs} a month and replace {saves} of purchases by the hour."
    )
    if loses.price_share >= 1:
        return [f"{first} They do not pay even as planned."]
    fall = numbers.share(1 - loses.demand_share)
    texts = [
        first,
        f"They lose money if demand stays {fall} below the forecast for {_term_words(loses)}: what "
        "is bought must be paid for to the end of its term.",
    ]
    if loses.price_share > 0:
        price = numbers.share(1 - loses.price_share)
        texts.append(
            f"Or if the price on demand falls by {price} at once and stays there, while spot and "
            "what is owned cost what they do."
        )
    months = numbers.quantity(Decimal(repr(loses.months)))
    texts.append(f"Or if all work that uses them ends within about {months} months.")
    return [*texts, *map(_event_words, loses.events)]


def _term_words(loses: LosesIf) -> str:
    """Over which time demand would have to stay below.

    >>> from dataclasses import replace
    >>> year = LosesIf(Decimal(3), Decimal(2), 0.8, 0.7, 20.0)
    >>> _term_words(year)
    'the whole year'
    >>> _term_words(replace(year, least_term_months=36, most_term_months=36))
    'the whole term of 3 years, each year of it as the planned one'
    >>> _term_words(replace(year, most_term_months=36))
    'their whole terms of 1 to 3 years, each year of them as the planned one'
    """
    least, most = (months / 12 for months in (loses.least_term_months, loses.most_term_months))
    if most <= 1:
        return "the whole year"
    if least == most:
        return f"the whole term of {most:g} years, each year of it as the planned one"
    return f"their whole terms of {least:g} to {most:g} years, each year of them as the planned one"


def _event_words(one: EventLoss) -> str:
    """What an event, or its absence, makes of the new commitments.

    >>> _event_words(EventLoss("launch", False, Decimal(1200)))
    'Or if the event launch does not come: they then cost $1,200 a month more than they save.'
    >>> _event_words(EventLoss("exit", True, Decimal(500), "Reserve 1 x p5"))
    'Or if the event exit comes: "Reserve 1 x p5" then costs $500 a month more than it saves.'
    """
    comes = "comes" if one.comes else "does not come"
    what = "they then cost" if one.commitment is None else f'"{one.commitment}" then costs'
    saves = "they save" if one.commitment is None else "it saves"
    usd = numbers.amount(one.usd_per_month)
    return f"Or if the event {one.event} {comes}: {what} {usd} a month more than {saves}."


def breaking_words(one: PriceMove) -> str:
    """How far the price on demand must fall for a commitment to lose, and until when.

    >>> from data.risks import PriceMove
    >>> breaking_words(PriceMove("p5", 12, Decimal(500), Decimal(800), Decimal(0), 0.375))
    '37.5%; a fall of 44% loses only within the first 1.77 months'
    >>> breaking_words(PriceMove("p5", 12, Decimal(900), Decimal(800), Decimal(0), -0.125))
    'does not pay as planned'
    >>> breaking_words(PriceMove("p5", 12, Decimal(200), Decimal(800), Decimal(0), 0.75))
    '75.0%'
    """
    fall = one.breaking_fall
    if fall is None or fall >= 1:
        return "no fall"
    if fall < 0:
        return "does not pay as planned"
    worst = min(PRICE_MOVES)
    months = one.safe_after(worst)
    text = numbers.share(fall)
    if not months:
        return text
    within = numbers.quantity(months)
    unit = "month" if within == "1" else "months"
    return f"{text}; a fall of {-worst:.0%} loses only within the first {within} {unit}"
