"""What would have to happen for the new commitments of a plan to cost more than they save.

What is bought is held fixed, and the planned year is dispatched again with and without it at other
levels of demand. The difference of the two is what the commitments save.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from data.errors import SolveError
from data.money import HOURS_PER_MONTH
from data.risks import LosesIf
from planner import outcome
from planner.model.reductions import reduce
from planner.optimise.coarse import sample
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import first_stage
from planner.optimise.previous import still_sold
from planner.optimise.recourse import KINDS
from planner.purchases import purchases
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.outcome import Plan
    from planner.problem import Problem, Scenario
    from planner.supply import Supply
    from planner.waterfall import Solved

_MONTHS = 12.0
_MONEY = tuple(kind for kind in KINDS if kind != "shortage")
_NEAR = 0.005  # of what the purchases cost: so near to it is even
_MOST_TRIES = 12
_ANCHORS = 3  # dispatches of all hours at most


@dataclass(frozen=True, slots=True)
class Saved:
    """What commitments save and cost, USD a month of the planned year.

    `on_demand` is what they save of purchases on demand.
    """

    saves: float
    costs: float
    on_demand: float

    @property
    def net(self) -> float:
        """What is left of the saving when they are paid."""
        return self.saves - self.costs


def saved_at(problem: Problem, plan: Plan, factor: float, quickly: bool = False) -> Saved:
    """What the purchases of a plan save where demand is `factor` of the problem's.

    Penalties of hours that nothing serves are no money, and are left out on both sides. `quickly`
    takes a sample of the hours where there are many.
    """
    costs = math.fsum(outcome.commitments(problem, plan).values()) / _MONTHS
    asked = replace(problem, scenarios=_scaled(problem, factor))
    without, there = hourly_spend(asked, (outcome.Plan(), plan), quickly)
    saves = (math.fsum(without.values()) - math.fsum(there.values())) / _MONTHS
    return Saved(saves, costs, (without["on_demand"] - there["on_demand"]) / _MONTHS)


def hourly_spend(
    problem: Problem, plans: Sequence[Plan], quickly: bool = False
) -> list[dict[str, float]]:
    """USD over the year of what is bought by the hour beside each plan, by kind of purchase.

    The last plan holds all that the others do. A mean over scenarios, without penalties of hours
    that nothing serves, which are no money. `quickly` takes a sample of the hours where there are
    many.
    """
    reduced = reduce(replace(problem, cvar=None))
    if not reduced.groups:
        return [dict.fromkeys(_MONEY, 0.0) for _ in plans]
    if quickly:
        reduced = sample(reduced) or reduced
    reduced = still_sold(reduced, plans[-1])
    first = first_stage(reduced)
    oracle = DispatchOracle(reduced, first)
    spent = [_by_kind(problem, oracle, first.feed(first.vector(plan))) for plan in plans]
    oracle.close()
    return spent


def loses_if(solved: Solved, supply: Supply) -> LosesIf | None:
    """At which demand or prices the plan's new commitments stop paying; None where it buys none."""
    problem, plan = solved.problem, solved.result.plan
    if plan == outcome.Plan():
        return None
    now = saved_at(problem, plan, 1.0)
    if now.saves <= 0:
        return None
    lines = purchases(solved, supply)
    whole = sum(one.total_commitment for one in lines)
    months = [round(one.term_hours / HOURS_PER_MONTH) for one in lines]
    return LosesIf(
        saves_per_month=to_cents(now.saves),
        costs_per_month=to_cents(now.costs),
        demand_share=round(_break_even(problem, plan, now), 4),
        price_share=round(_price_share(now), 4),
        months=round(whole / now.saves, 1),
        least_term_months=min(months),
        most_term_months=max(months),
    )


def _price_share(now: Saved) -> float:
    """The share of the price on demand at which the purchases just pay; 1 where they never do.

    Whatever else they replace costs what it does now; 0 where that alone pays for them.
    """
    if now.net <= 0:
        return 1.0
    return max(1 - now.net / now.on_demand, 0.0) if now.on_demand > 0 else 0.0


def _break_even(problem: Problem, plan: Plan, now: Saved) -> float:
    """The share of demand at which the purchases cost as much as they save; 1 where never.

    A sample of the hours finds it, at what all hours save where it was looked for last: at first
    where all demand is there, then where the sample found the break-even.
    """
    tried, there = 1.0, now
    for _ in range(_ANCHORS):
        part = saved_at(problem, plan, tried, quickly=True).saves
        if now.net <= 0 or part <= 0:
            return 1.0
        scale = there.saves / part
        tried = _even_share(problem, plan, now, scale)
        there = saved_at(problem, plan, tried)
        if abs(there.net) <= _NEAR * now.costs:
            break
    return tried


def _even_share(problem: Problem, plan: Plan, now: Saved, scale: float) -> float:
    """The share at which `scale` times what a sample saves is what the purchases cost.

    By false position: without demand they save nothing, and at all of it `now`.
    """
    low, high, under, over = 0.0, 1.0, -now.costs, now.net
    kept = 0  # ends kept in turn: the weight of an end that stays is halved (Illinois)
    tried = high
    for _ in range(_MOST_TRIES):
        tried = min(max((low * over - high * under) / (over - under), low), high)
        net = scale * saved_at(problem, plan, tried, quickly=True).saves - now.costs
        if abs(net) <= _NEAR * now.costs / 2:
            break
        if net < 0:
            low, under, over = tried, net, over / 2 if kept < 0 else over
            kept = -1
        else:
            high, over, under = tried, net, under / 2 if kept > 0 else under
            kept = 1
    return tried


def _scaled(problem: Problem, factor: float) -> tuple[Scenario, ...]:
    return tuple(
        replace(one, demand={name: series * factor for name, series in one.demand.items()})
        for one in problem.scenarios
    )


def _by_kind(
    problem: Problem, oracle: DispatchOracle, u: npt.NDArray[np.float64]
) -> dict[str, float]:
    """USD over the year of what is bought by the hour beside the sources u, by kind."""
    if oracle.exact(u, math.inf) is None:
        raise SolveError("the planned year could not be dispatched again")
    p = np.array([1.0] if oracle.merged else [one.p for one in problem.scenarios])
    kinds = p @ (oracle.by_kind(u) * problem.hour_weight)
    return {kind: float(kinds[KINDS.index(kind)]) for kind in _MONEY}
