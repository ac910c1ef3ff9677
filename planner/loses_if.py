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
from data.risks import LosesIf
from planner import outcome
from planner.model.reductions import reduce
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import first_stage
from planner.optimise.previous import still_sold
from planner.optimise.recourse import KINDS
from planner.purchases import purchases
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.outcome import Plan
    from planner.problem import Problem, Scenario
    from planner.supply import Supply
    from planner.waterfall import Solved

_MONTHS = 12.0
_STEP = 0.002  # share of demand to which the break-even fall is found
_NEAR = 0.002  # of what the purchases cost: so near to nothing is nothing
_MOST_TRIES = 12


@dataclass(frozen=True, slots=True)
class Saved:
    """What commitments save and cost, USD a month of the planned year."""

    saves: float
    costs: float

    @property
    def net(self) -> float:
        """What is left of the saving when they are paid."""
        return self.saves - self.costs


def saved_at(problem: Problem, plan: Plan, factor: float) -> Saved:
    """What the purchases of a plan save where demand is `factor` of the problem's.

    Penalties of hours that nothing serves are no money, and are left out on both sides.
    """
    costs = math.fsum(outcome.commitments(problem, plan).values()) / _MONTHS
    reduced = reduce(replace(problem, scenarios=_scaled(problem, factor), cvar=None))
    if not reduced.groups:
        return Saved(0.0, costs)
    reduced = still_sold(reduced, plan)
    first = first_stage(reduced)
    oracle = DispatchOracle(reduced, first)
    spent = [
        _hourly_usd(problem, oracle, first.feed(first.vector(bought)))
        for bought in (outcome.Plan(), plan)
    ]
    oracle.close()
    return Saved((spent[0] - spent[1]) / _MONTHS, costs)


def loses_if(solved: Solved, supply: Supply) -> LosesIf | None:
    """At which demand or prices the plan's new commitments stop paying; None where it buys none."""
    problem, plan = solved.problem, solved.result.plan
    if plan == outcome.Plan():
        return None
    now = saved_at(problem, plan, 1.0)
    if now.saves <= 0:
        return None
    share = min(now.costs / now.saves, 1.0)
    whole = sum(one.total_commitment for one in purchases(solved, supply))
    return LosesIf(
        saves_per_month=to_cents(now.saves),
        costs_per_month=to_cents(now.costs),
        demand_share=round(_break_even(problem, plan, now), 4),
        price_share=round(share, 4),
        months=round(whole / now.saves, 1),
    )


def _break_even(problem: Problem, plan: Plan, now: Saved) -> float:
    """The share of demand at which the purchases cost as much as they save, by false position.

    Without demand they save nothing, and `now` is what they do at all of it. What they save grows
    with demand, so there is one such share; 1 where they never pay.
    """
    low, high, under, over = 0.0, 1.0, -now.costs, now.net
    kept = 0  # ends kept in turn: the weight of an end that stays is halved (Illinois)
    for _ in range(_MOST_TRIES):
        if over <= 0 or high - low <= _STEP:
            break
        tried = min(max((low * over - high * under) / (over - under), low), high)
        net = saved_at(problem, plan, tried).net
        if abs(net) <= _NEAR * now.costs:
            return tried
        if net < 0:
            low, under, over = tried, net, over / 2 if kept < 0 else over
            kept = -1
        else:
            high, over, under = tried, net, under / 2 if kept > 0 else under
            kept = 1
    return high


def _scaled(problem: Problem, factor: float) -> tuple[Scenario, ...]:
    return tuple(
        replace(one, demand={name: series * factor for name, series in one.demand.items()})
        for one in problem.scenarios
    )


def _hourly_usd(problem: Problem, oracle: DispatchOracle, u: npt.NDArray[np.float64]) -> float:
    """USD over the year of what is bought by the hour beside the sources u, without penalties."""
    if oracle.exact(u, math.inf) is None:
        raise SolveError("the planned year could not be dispatched again")
    kinds = oracle.by_kind(u) * problem.hour_weight
    p = np.array([1.0] if oracle.merged else [one.p for one in problem.scenarios])
    money = [place for place, kind in enumerate(KINDS) if kind != "shortage"]
    return float(p @ kinds[:, money].sum(axis=1))
