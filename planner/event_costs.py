"""What each known event costs or saves: the planned year dispatched with it and without it.

What the plan buys ahead is held fixed, so an event costs what more is bought by the hour for it,
and saves what less is. All other events stay. What was bought for an event that may stay away, or
for work that one may end, loses money where that comes true.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from data.known_events import EventCost
from data.risks import EventLoss
from planner.assemble import Stage, problem_at
from planner.future import counted
from planner.loses_if import hourly_spend, saved_at
from planner.outcome import Plan
from planner.price_moves import price_moves
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from data.risks import PriceMove
    from planner.future import Future
    from planner.problem import Problem
    from planner.settings import EventRule
    from planner.supply import Supply
    from planner.waterfall import Basis, Solved

MOST = 12  # events of the file; each is a dispatch of the planned year
_MONTHS = 12.0
_DIGITS = 3
_LEAST_USD = 1  # a month; less is even
_NONE = Decimal(0)


def event_costs(
    plan: Solved, basis: Basis, bare: Future | None, rules: Sequence[EventRule]
) -> tuple[EventCost, ...]:
    """One row an event that the demand to come counts, in the order of the file.

    `bare` is the demand to come without any event; None where nothing is forecast.
    """
    future = basis.future
    if future is None or bare is None or not future.events:
        return ()
    told = {one.name for one in future.events}
    shown = [rule for rule in rules if rule.name in told][:MOST]
    bought = plan.result.plan
    now = math.fsum(hourly_spend(plan.problem, [bought])[0].values())
    found = []
    for rule in shown:
        problem = _otherwise(plan, basis, counted(bare, basis.needs, rules, without=rule.name))
        without = math.fsum(hourly_spend(problem, [bought])[0].values())
        hours = sum(one.gpu_hours_per_month for one in future.events if one.name == rule.name)
        usd = to_cents((now - without) / _MONTHS)
        found.append(EventCost(rule.name, round(hours, _DIGITS), usd))
    return tuple(found)


def _otherwise(plan: Solved, basis: Basis, future: Future) -> Problem:
    """The plan's problem in another demand to come."""
    asked = problem_at(Stage.BUY, basis.needs, basis.supply, future, basis.rules)
    return replace(plan.problem, scenarios=asked.scenarios)


def event_losses(
    plan: Solved, basis: Basis, bare: Future | None, rules: Sequence[EventRule]
) -> tuple[EventLoss, ...]:
    """The known events by which the new commitments, or one of them, lose money.

    Each by itself, as it is stated to be sure to come or to stay away. Of commitments that pay as
    planned none else is named.
    """
    if basis.future is None or bare is None or plan.result.plan == Plan():
        return ()
    planned = {one.commitment: _net(one) for one in price_moves(plan, basis.supply)}
    told = {one.name for one in basis.future.events}
    found: list[EventLoss] = []
    for rule in [one for one in rules if one.name in told][:MOST]:
        sure = [one.model_copy(update={"chance": 1.0}) if one is rule else one for one in rules]
        ways = [(False, counted(bare, basis.needs, rules, without=rule.name))]
        if rule.chance < 1:
            ways.append((True, counted(bare, basis.needs, sure)))
        for comes, future in ways:
            solved = replace(plan, problem=_otherwise(plan, basis, future))
            found += _losses(rule.name, comes, (solved, basis.supply), planned)
    return tuple(found)


def _losses(
    event: str, comes: bool, there: tuple[Solved, Supply], planned: Mapping[str, Decimal]
) -> list[EventLoss]:
    """All that the plan buys where it loses together, else each line that only then does."""
    solved, supply = there
    net = saved_at(solved.problem, solved.result.plan, 1.0).net
    if net < -_LEAST_USD:
        return [EventLoss(event, comes, to_cents(-net))] if sum(planned.values()) > 0 else []
    return [
        EventLoss(event, comes, -_net(one), one.commitment)
        for one in price_moves(solved, supply)
        if _net(one) < -_LEAST_USD and planned.get(one.commitment, _NONE) > 0
    ]


def _net(one: PriceMove) -> Decimal:
    """What a commitment saves a month, less what it costs."""
    return one.on_demand_per_month + one.other_per_month - one.costs_per_month
