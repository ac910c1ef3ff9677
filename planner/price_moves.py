"""What each new commitment is worth where prices on demand move after it was made.

List prices move both ways: AWS took up to 44 % off its P5 machines in June 2025, and capacity
blocks have become 15 % dearer. A commitment keeps its rate, so what it replaces is worth less or
more. Nothing but the price on demand moves: work runs as planned, spot and other commitments cost
what they do, and each line is weighed beside all the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from data.money import HOURS_PER_MONTH
from data.risks import PriceMove
from planner.loses_if import hourly_spend
from planner.purchases import purchases
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    from planner.alternatives import Key
    from planner.outcome import Plan
    from planner.purchases import Purchase
    from planner.supply import Supply
    from planner.waterfall import Solved

MOST = 12  # lines, the largest first; each is a dispatch of the planned year
_MONTHS = 12.0
_DIGITS = 4


def price_moves(solved: Solved, supply: Supply) -> tuple[PriceMove, ...]:
    """One row a new commitment, the largest cost first; of many only the largest have one."""
    problem, plan = solved.problem, solved.result.plan
    lines = sorted(purchases(solved, supply), key=lambda one: (-one.usd_per_hour, one.key))[:MOST]
    if not lines:
        return ()
    spent = hourly_spend(problem, [*(_less(plan, one.key) for one in lines), plan])
    now = spent.pop()
    return tuple(
        _row(line, {kind: usd - now[kind] for kind, usd in without.items()})
        for line, without in zip(lines, spent, strict=True)
    )


def _less(plan: Plan, key: Key) -> Plan:
    """The plan without one of its lines."""
    kind, where, name = key
    if kind == "savings_plan":
        kept = tuple(one for one in plan.savings_plans if one.provider != where)
        return replace(plan, savings_plans=kept)
    rest = tuple(one for one in plan.reservations if (one.offer, one.id) != (where, name))
    return replace(plan, reservations=rest)


def _row(line: Purchase, more: dict[str, float]) -> PriceMove:
    """`more` is what a year would cost more by the hour without the line, USD by kind."""
    on_demand = more["on_demand"] / _MONTHS
    other = sum(usd for kind, usd in more.items() if kind != "on_demand") / _MONTHS
    costs = line.usd_per_hour * HOURS_PER_MONTH
    fall = (on_demand + other - costs) / on_demand if on_demand > 0 else None
    return PriceMove(
        commitment=line.action,
        term_months=round(line.term_hours / HOURS_PER_MONTH),
        costs_per_month=to_cents(costs),
        on_demand_per_month=to_cents(on_demand),
        other_per_month=to_cents(other),
        breaking_fall=None if fall is None else round(fall, _DIGITS),
    )
