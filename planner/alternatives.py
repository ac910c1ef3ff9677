"""What the best plan without a purchase would do instead, and what that costs more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.money import HOURS_PER_MONTH
from data.names import place, term_words

if TYPE_CHECKING:
    from planner.outcome import Plan
    from planner.problem import Problem
    from planner.stage_solver import StageSolver
    from planner.waterfall import Solved

MOST = 8  # purchases, the largest commitments first; each is a solve of its own
MOST_SIZE = 500_000  # class-hours that these solves may come to, the first apart
_SAME = 0.005  # USD an hour of a savings plan
_LEAST_HOURS = 0.5  # GPU-hours a month
MONTHS = 12.0
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Alternative:
    """The next best to one purchase: what it buys instead, USD a month more, and the doubt.

    `within` are the USD a month by which the proofs of both plans may be apart.
    """

    words: str
    usd_per_month: float
    within: float


def alternatives(plan: Solved, solve_stage: StageSolver) -> dict[Key, Alternative]:
    """By purchase (kind, offer or provider, id) the next best.

    Of a large problem only the largest purchases have one; none has where the time is over.
    """
    found: dict[Key, Alternative] = {}
    size = max(1, len(plan.problem.classes) * plan.problem.hours)
    for key in _purchases(plan)[: max(1, min(MOST, MOST_SIZE // size))]:
        rival = solve_stage.rival(_without(plan.problem, key))
        if rival is None:
            break
        cost, now = rival.objective or 0.0, plan.result.objective or 0.0
        # The penalty of a shortage is no money: it is told in hours.
        unserved = rival.costs["shortage"] - plan.result.costs["shortage"]
        # Neither is the weight of the worst scenarios.
        risk = rival.costs["cvar"] - plan.result.costs["cvar"]
        doubt = max(0.0, cost - (rival.bound or 0.0)) + max(0.0, now - (plan.result.bound or 0.0))
        words = _words(rival.plan, plan.result.plan)
        hours = unserved / MONTHS / max(one.shortage_penalty for one in plan.problem.classes)
        if hours > _LEAST_HOURS:
            words += f", leave {hours:,.0f} GPU-hours a month unserved"
        found[key] = Alternative(words, (cost - now - unserved - risk) / MONTHS, doubt / MONTHS)
    return found


def _purchases(plan: Solved) -> list[Key]:
    """What the plan buys, the largest commitment an hour first."""
    offers = {offer.id: offer for offer in plan.problem.offers}
    sized: list[tuple[float, Key]] = []
    for one in plan.result.reservations:
        offer = offers[one.offer]
        rate = next(way.rate for way in offer.reservations if way.id == one.id)
        key = ("reserved", one.offer, one.id)
        sized.append((one.count * offer.gpus * rate * HOURS_PER_MONTH, key))
    for spend in plan.result.savings_plans:
        key = ("savings_plan", spend.provider, spend.provider)
        sized.append((spend.usd_per_hour * HOURS_PER_MONTH, key))
    return [key for _, key in sorted(sized, key=lambda one: (-one[0], one[1]))]


def _without(problem: Problem, key: Key) -> Problem:
    """The problem in which that purchase is not sold."""
    kind, where, name = key
    if kind == "savings_plan":
        plans = tuple(one for one in problem.savings_plans if one.provider != where)
        return replace(problem, savings_plans=plans)
    offers = tuple(
        replace(offer, reservations=tuple(way for way in offer.reservations if way.id != name))
        if offer.id == where
        else offer
        for offer in problem.offers
    )
    return replace(problem, offers=offers)


def _words(rival: Plan, plan: Plan) -> str:
    """What the rival buys more of; the hour's prices where it buys nothing more."""
    before = {(one.offer, one.id): one.count for one in plan.reservations}
    more = []
    for one in rival.reservations:
        had = before.get((one.offer, one.id), 0)
        if one.count > had:
            what = f"{place(one.offer)} for {term_words(one.id)}"
            more.append(f"reserve {one.count - had} {'more ' if had else ''}x {what}")
    spends = {one.provider: one.usd_per_hour for one in plan.savings_plans}
    more += [
        f"{'raise' if one.provider in spends else 'buy'} the {one.provider} savings plan"
        f" {'to' if one.provider in spends else 'at'} ${one.usd_per_hour:,.2f} an hour"
        for one in rival.savings_plans
        if one.usd_per_hour > spends.get(one.provider, 0.0) + _SAME
    ]
    return ", ".join(more) or "buy these hours on demand or as spot"
