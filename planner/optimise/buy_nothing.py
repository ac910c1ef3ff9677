"""The plan that is always there: buy nothing ahead, and serve what can be served by the hour.

For when the time ends before the direct model has a plan. The dispatch is the quick one; where only
whole instances are sold, each purchase is rounded up to them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner import outcome
from planner.model.reductions import reduce
from planner.optimise.dispatch import dispatch_of
from planner.optimise.engine import costs_of
from planner.optimise.first_stage import first_stage
from planner.optimise.greedy import Greedy
from planner.problem import QuotaUse

if TYPE_CHECKING:
    import pandas as pd

    from planner.problem import Offer, Problem


def buy_nothing(problem: Problem, with_dispatch: bool) -> tuple[dict[str, float], pd.DataFrame]:
    """USD by kind of cost of buying nothing ahead, and how the work then runs where asked for."""
    whole = problem.on_demand_integer
    reduced = reduce(_plain(problem), exact=False) if whole else reduce(problem)
    first = first_stage(reduced)
    greedy = Greedy(reduced, first, whole=whole)
    kinds = greedy.by_kind(first.feed(np.zeros(len(first))))
    plan = outcome.Plan()
    if not with_dispatch:
        return costs_of(reduced, kinds, greedy.merged, plan), outcome.empty_dispatch()
    dispatch = dispatch_of(reduced, greedy, plan)
    return outcome.cost(problem, plan, dispatch), dispatch


def _plain(problem: Problem) -> Problem:
    """The problem of fractions in which every purchase on demand may be rounded up.

    Where a quota counts them, or some hours have not all of an offer, nothing is bought on demand.
    """
    counted = {
        (quota.provider, quota.region)
        for quota in problem.quotas
        if QuotaUse.ON_DEMAND in quota.uses and math.isfinite(quota.limit)
    }

    def kept(offer: Offer) -> Offer:
        scarce = offer.on_demand_available is not None or any(
            offer.id in scenario.on_demand_available for scenario in problem.scenarios
        )
        if scarce or (offer.provider, offer.region) in counted:
            return replace(offer, on_demand=None, on_demand_available=None)
        return offer

    scenarios = tuple(replace(one, on_demand_available={}) for one in problem.scenarios)
    return replace(
        problem,
        offers=tuple(kept(offer) for offer in problem.offers),
        scenarios=scenarios,
        on_demand_integer=False,
    )
