"""The second phase: among plans near enough to the optimum, the one nearest to last night's.

    min  sum |z - z_previous|  (GPUs)   subject to   cost(z) <= (1 + tolerance) * cost of the best

The master with its cuts proposes, the oracle checks, and a plan that costs too much cuts itself
off. Last night's own plan is tried first.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.problem import plan_gpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.model.reductions import Reduced
    from planner.optimise.first_stage import FirstStage
    from planner.optimise.search import Search
    from planner.outcome import Plan
    from planner.problem import Offer

    Array = npt.NDArray[np.float64]

_MOST_ROUNDS = 40
_NOTHING = 1e-9


def still_sold(reduced: Reduced, plan: Plan) -> Reduced:
    """The reduced problem with last night's reservations sold, though others are as good."""
    names = {(one.offer, one.id) for one in plan.reservations}
    pools = []
    for pool in reduced.pools:
        known = {(offer.id, way.id) for offer, way in pool.reservations}
        more = [
            (offer, way)
            for offer in pool.offers
            for way in offer.reservations
            if (offer.id, way.id) in names - known
        ]
        sold = sorted([*pool.reservations, *more], key=lambda one: (one[0].id, one[1].id))
        pools.append(replace(pool, reservations=tuple(sold)))
    return replace(reduced, pools=tuple(pools))


def stay_near(
    search: Search, target: Array, weights: Array, tolerance: float, until: float
) -> float:
    """Replace the search's best plan by the nearest to `target` within tolerance of it.

    `weights` are those of `gpus_per_unit`. Gives what that costs more than the best, as a share of
    the best.
    """
    if search.best is None:
        return 0.0
    cheapest = search.upper
    first, limit = search.first, search.upper * (1 + tolerance)
    target = np.clip(target, 0.0, first.upper)
    best, value = search.best, search.upper
    distance = float(weights @ np.abs(best - target))
    tried = target
    allowed = all(limit.weights @ target <= limit.most + _NOTHING for limit in first.limits)
    for number in range(_MOST_ROUNDS):
        if number or not allowed:
            found = search.master.nearest(
                target, weights, limit, search.solver, until - time.perf_counter()
            )
            if found is None:
                break
            tried = found
        cost = search.evaluate(tried)
        if cost is None:
            break
        moved = float(weights @ np.abs(tried - target))
        if cost <= limit and moved < distance:
            best, value, distance = tried, cost, moved
        if cost <= limit:
            break
    search.best, search.upper = best, value
    return value / cheapest - 1.0 if cheapest > 0 else 0.0


def gpus_per_unit(first: FirstStage, offers: Sequence[Offer]) -> Array:
    """GPUs per unit of each column; a savings plan's USD count by the GPUs they could pay for."""
    covered = plan_gpus(offers)
    pays = [
        covered.get(one.id, 1.0) if one.kind == "plan" else gpus
        for one, gpus in zip(first.bought, first.amount.tolist(), strict=True)
    ]
    return np.array(pays, dtype=float)
