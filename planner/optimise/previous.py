"""The second phase: among plans near enough to the optimum, the one nearest to last night's.

    min  sum |z - z_previous|  (GPUs)   subject to   cost(z) <= (1 + tolerance) * cost of the best

The master with its cuts proposes, the oracle checks, and a plan that costs too much cuts itself
off. Last night's own plan is tried first.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from data.errors import ConfigError, UsageError
from data.errors import Problem as Fault
from planner.outcome import BlockCount, Commitment, Plan, ReservedCount

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from planner.model.reductions import Reduced
    from planner.optimise.first_stage import FirstStage
    from planner.optimise.search import Search

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


def stay_near(search: Search, target: Array, tolerance: float, until: float) -> None:
    """Replace the search's best plan by the nearest to `target` within tolerance of it."""
    if search.best is None:
        return
    first, limit = search.first, search.upper * (1 + tolerance)
    target = np.clip(target, 0.0, first.upper)
    weights = _weights(first)
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


def _weights(first: FirstStage) -> Array:
    """GPUs per unit of each column; a savings plan's USD count by the GPUs they could pay for."""
    plan = np.array([one.kind == "plan" for one in first.bought])
    return np.where(plan, 0.5, first.amount)


def read(path: Path) -> Plan:
    """The plan of a result that `solve --json` wrote.

    Raises UsageError where the file cannot be read, ConfigError where it holds no plan.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the previous result cannot be read: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    try:
        return Plan(
            tuple(
                sorted(
                    ReservedCount(str(one["offer"]), str(one["id"]), int(one["count"]))
                    for one in document["reservations"]
                )
            ),
            tuple(
                sorted(
                    Commitment(str(one["provider"]), _amount(one["usd_per_hour"]))
                    for one in document["savings_plans"]
                )
            ),
            tuple(
                sorted(BlockCount(str(one["id"]), int(one["count"])) for one in document["blocks"])
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        fault = Fault(str(path), f"no plan of `solve --json`: {error!r}", "give such a result")
        raise ConfigError("the previous result holds no plan", [fault]) from error


def _amount(value: object) -> float:
    number = float(str(value))
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"USD per hour must be >= 0, is {value}")
    return number
