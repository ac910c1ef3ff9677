"""What each known event costs or saves: the planned year dispatched with it and without it.

What the plan buys ahead is held fixed, so an event costs what more is bought by the hour for it,
and saves what less is. All other events stay.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from data.known_events import EventCost
from planner.assemble import Stage, problem_at
from planner.future import counted
from planner.loses_if import hourly_spend
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.future import Future
    from planner.settings import EventRule
    from planner.waterfall import Basis, Solved

MOST = 12  # events of the file; each is a dispatch of the planned year
_MONTHS = 12.0
_DIGITS = 3


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
        other = counted(bare, basis.needs, rules, without=rule.name)
        asked = problem_at(Stage.BUY, basis.needs, basis.supply, other, basis.rules)
        problem = replace(plan.problem, scenarios=asked.scenarios)
        without = math.fsum(hourly_spend(problem, [bought])[0].values())
        hours = sum(one.gpu_hours_per_month for one in future.events if one.name == rule.name)
        usd = to_cents((now - without) / _MONTHS)
        found.append(EventCost(rule.name, round(hours, _DIGITS), usd))
    return tuple(found)
