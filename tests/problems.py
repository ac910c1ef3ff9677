"""Builders of small problems, and a checker of plans that shares nothing with the model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.problem import (
    ClassKind,
    Offer,
    Problem,
    ProblemClass,
    Quota,
    Reservation,
    SavingsPlan,
    Scenario,
)
from planner.solve import solve

TOLERANCE = 1e-5  # GPUs; solvers meet a row within 1e-6 or so


def firm(name, offers, **rules):
    rules = {"shortage_penalty": 100.0} | rules
    return ProblemClass(name, ClassKind.FIRM, tuple(offers), **rules)


def deferrable(name, offers, window, **rules):
    rules = {"shortage_penalty": 100.0} | rules
    return ProblemClass(name, ClassKind.DEFERRABLE, tuple(offers), window=window, **rules)


def offer(name, on_demand=4.0, rate=None, gpus=1, **more):
    more = {"provider": "aws", "region": "us"} | more
    ways = (Reservation("1y", rate),) if rate is not None else ()
    return Offer(id=name, gpus=gpus, on_demand=on_demand, **({"reservations": ways} | more))


def problem(classes, offers, demand, **more):
    """Demand: class id to a list, or a list of (p, such a mapping) for several scenarios."""
    futures = demand if isinstance(demand, list) else [(1.0, demand)]
    scenarios = tuple(
        Scenario(p, {name: np.array(series, dtype=float) for name, series in one.items()})
        for p, one in futures
    )
    hours = len(next(iter(scenarios[0].demand.values())))
    return Problem(hours, tuple(classes), tuple(offers), scenarios, **more)


def close(value):
    """Equal to within what solvers promise."""
    return pytest.approx(value, rel=1e-6, abs=1e-6)


def checked(asked, **how):
    """The optimal answer, after its rules and sums have been checked by a second method."""
    result = solve(asked, **({"gap": 1e-7} | how))
    assert result.status == "optimal"
    assert broken_rules(asked, result) == []
    assert math.fsum(result.costs.values()) == close(result.objective)
    assert result.bound <= result.objective
    return result


def two_hours(**more):
    """Two hours, two classes, every kind of purchase: the case of the golden files."""
    a = Offer(
        id="a",
        provider="aws",
        region="us",
        gpus=8,
        on_demand=4.0,
        reservations=(Reservation("1y", 2.4, upfront=1000.0),),
        spot=1.5,
        spot_throughput=0.9,
        sp_rate=2.8,
        egress={"prep": 0.1},
    )
    b = Offer(
        id="b", provider="gcp", region="eu", gpus=1, on_demand=3.5, spot=1.8, spot_throughput=0.8
    )
    classes = [
        firm("train", ["a", "b"], min_firm_share=0.5, spot_max_share_per_offer=0.3),
        deferrable("prep", ["a"], window=1),
    ]
    settings = {
        "quotas": (Quota("aws", "us", 16.0),),
        "savings_plans": (SavingsPlan("aws"),),
        "upfront_budget": 20000.0,
    }
    demand = {"train": [10, 20], "prep": [6, 0]}
    return problem(classes, [a, b], more.pop("demand", demand), **(settings | more))


def broken_rules(asked, result):
    """Every rule of the format that the answer breaks, by reading the dispatch row by row."""
    found = []
    offers = {one.id: one for one in asked.offers}
    counts = {(one.offer, one.id): one.count for one in result.reservations}
    spends = {one.provider: one.usd_per_hour for one in result.savings_plans}
    blocks = {one.id: one.count for one in result.blocks}
    found += [f"{key} is {n}" for key, n in counts.items() if n != int(n) or n < 0]
    found += [f"block {b.id}" for b in asked.blocks if not 0 <= blocks.get(b.id, 0) <= b.max]
    upfront = sum(
        way.upfront * one.gpus * counts.get((one.id, way.id), 0)
        for one in asked.offers
        for way in one.reservations
    )
    if asked.upfront_budget is not None and upfront > asked.upfront_budget + TOLERANCE:
        found.append(f"upfront {upfront}")
    for limit in asked.commitment_limits:
        held = committed(asked, limit, result)
        if held > limit.gpus + TOLERANCE:
            found.append(f"commitment limit {limit.id}: {held}")
    table = {}
    for row in result.dispatch.itertuples(index=False):
        scenario, hour, name, where, kind, gpus, useful = row
        if where and where not in next(c for c in asked.classes if c.id == name).offers:
            found.append(f"{name} on {where}")
        if gpus < 0:
            found.append(f"negative {row}")
        worth = gpus * (offers[where].spot_throughput if kind == "spot" else 1.0)
        if abs(worth - useful) > TOLERANCE:
            found.append(f"useful {row}")
        table[scenario, hour, name, where, kind] = gpus
    for s, scenario in enumerate(asked.scenarios):
        for hour in range(asked.hours):
            cell = {key[2:]: gpus for key, gpus in table.items() if key[:2] == (s, hour)}
            found += _broken_limits(asked, cell, hour, (counts, spends, blocks))
            for one in asked.classes:
                if one.kind is ClassKind.FIRM:
                    found += _broken_mix(asked, one, cell, scenario.demand[one.id][hour])
        for one in asked.classes:
            if one.kind is ClassKind.DEFERRABLE:
                found += _broken_waits(asked, one, table, s, scenario.demand[one.id])
    return found


def committed(asked, limit, plan):
    """GPUs that count against a limit of commitments."""
    listed = [one for one in asked.offers if one.id in limit.offers]
    sizes = {one.id: one.gpus for one in listed}
    held = sum(one.count * sizes.get(one.offer, 0) for one in plan.reservations)
    for spend in plan.savings_plans:
        mine = [one.sp_rate for one in listed if one.provider == spend.provider and one.sp_rate]
        held += spend.usd_per_hour / min(mine) if mine else 0.0
    return held


def _useful(asked, name, cell):
    offers = {one.id: one for one in asked.offers}
    return sum(
        gpus * (offers[where].spot_throughput if kind == "spot" else 1.0)
        for (owner, where, kind), gpus in cell.items()
        if owner == name
    )


def _broken_limits(asked, cell, hour, bought):
    counts, spends, blocks = bought
    found = []
    for one in asked.offers:
        pool = sum(e.gpus for e in one.existing if hour < e.until_hour)
        pool += sum(
            one.gpus * counts.get((one.id, way.id), 0)
            for way in one.reservations
            if _is_there(way, hour)
        )
        pool += sum(
            b.gpus * blocks.get(b.id, 0)
            for b in asked.blocks
            if b.offer == one.id and b.start <= hour < b.start + b.length
        )
        used = sum(
            g for (_, where, kind), g in cell.items() if (where, kind) == (one.id, "reserved")
        )
        if used > pool + TOLERANCE:
            found.append(f"hour {hour}: {used} of {pool} in pool {one.id}")
    by_offer = {one.id: one for one in asked.offers}
    for plan in asked.savings_plans:
        spent = sum(
            gpus * by_offer[where].sp_rate
            for (_, where, kind), gpus in cell.items()
            if kind == "savings_plan" and by_offer[where].provider == plan.provider
        )
        limit = spends.get(plan.provider, 0.0) if _is_there(plan, hour) else 0.0
        if spent > limit + TOLERANCE:
            found.append(f"hour {hour}: plan {plan.provider} {spent}")
    for quota in asked.quotas:
        use = {"on_demand": "on_demand", "savings_plan": "on_demand", "spot": "spot"}
        bought_here = sum(
            gpus * (by_offer[where].vcpus / by_offer[where].gpus if quota.gpus is None else 1)
            for (_, where, kind), gpus in cell.items()
            if use.get(kind) in quota.uses
            and (by_offer[where].provider, by_offer[where].region) == (quota.provider, quota.region)
        )
        if bought_here > (quota.vcpus if quota.gpus is None else quota.gpus) + TOLERANCE:
            found.append(f"hour {hour}: quota {quota} {bought_here}")
    return found


def _is_there(held, hour):
    return hour >= held.start and (held.term is None or hour < held.start + held.term)


def _broken_mix(asked, one, cell, demand):
    found = []
    useful = _useful(asked, one.id, cell)
    short = demand - useful
    long = useful - demand if not asked.on_demand_integer else 0.0
    if short > TOLERANCE or long > TOLERANCE:
        found.append(f"{one.id} has {useful} of {demand}")
    offers = {o.id: o for o in asked.offers}
    spot = {
        where: gpus * offers[where].spot_throughput
        for (owner, where, kind), gpus in cell.items()
        if owner == one.id and kind == "spot"
    }
    if sum(spot.values()) > (1 - one.min_firm_share) * demand + TOLERANCE:
        found.append(f"{one.id} spot {spot}")
    cap = one.spot_max_share_per_offer
    if cap is not None and max(spot.values(), default=0.0) > cap * demand + TOLERANCE:
        found.append(f"{one.id} spot on one offer {spot}")
    return found


def _broken_waits(asked, one, table, scenario, released):
    served = np.zeros(asked.hours)
    for (s, hour, name, where, kind), gpus in table.items():
        if (s, name) == (scenario, one.id):
            served[hour] += _useful(asked, name, {(name, where, kind): gpus})
    done, ready = np.cumsum(served), np.cumsum(released)
    found = []
    for hour in range(asked.hours):
        due = ready[hour - one.window] if hour >= one.window else 0.0
        due = ready[-1] if hour == asked.hours - 1 else due
        ahead = done[hour] > ready[hour] + TOLERANCE and not asked.on_demand_integer
        if done[hour] < due - TOLERANCE or ahead:
            found.append(f"{one.id} hour {hour}: {done[hour]} not in {due}..{ready[hour]}")
    return found
