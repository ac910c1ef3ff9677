"""A stated service level: the share of hours in which committed capacity serves all firm need.

Committed to that share, a GPU more is at work in the rest of the hours, 1 - level, and costs its
rate in all of them. So it is bought exactly where an hour that nothing committed serves counts
rate / (1 - level): the plan is chosen at that price of what is bought on demand, and paid for at
the true one. What the price is raised by nobody pays; it stands beside the cost, as caution. Of a
whole machine only the last GPU may be lacking, and of a class that needs GPUs in few hours the
level is about these alone: so where a class stays below its level the price is raised by as many
times as a machine has GPUs, and as all hours are those in which it needs any. The penalty of hours
that nothing serves rises with it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from data.frames import records
from planner.assemble import base_name, reachable
from planner.future import shares_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd

    from data.risks import ServiceLevel
    from planner.assemble import Need
    from planner.future import Future
    from planner.outcome import Result
    from planner.problem import CommitmentLimit, Offer, Problem, ProblemClass
    from planner.supply import Supply

    Array = npt.NDArray[np.float64]

_TINY = 1e-6  # GPUs, and shares of hours


def raised(
    problem: Problem, level: float, boost: Mapping[str, float] | None = None
) -> tuple[Problem, dict[str, float]]:
    """The problem at the prices that ask for a service level, and what they are raised by.

    The raise is USD per GPU-hour on demand by offer, one for all offers that share work: the
    largest that any of their commitments asks for. Where hours on demand cost as much already, it
    is 0. `boost` multiplies the price that is asked of an offer.
    """
    sold = {one.id: one for one in problem.offers if one.on_demand is not None}
    group = {name: name for name in sold}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for one in problem.classes:
        shared = [name for name in one.offers if name in sold]
        for name in shared[1:]:
            group[root(name)] = root(shared[0])
    asked: dict[str, float] = {}
    for name, offer in sold.items():
        lacks = _raise(offer, level, (boost or {}).get(name, 1.0))
        asked[root(name)] = max(asked.get(root(name), 0.0), lacks)
    more = {name: asked[root(name)] for name in sold}
    offers = tuple(
        replace(one, on_demand=one.on_demand + more[one.id]) if one.on_demand is not None else one
        for one in problem.offers
    )
    classes = tuple(
        replace(one, shortage_penalty=one.shortage_penalty + _most(one, more))
        for one in problem.classes
    )
    return replace(problem, classes=classes, offers=offers, cvar=None), more


def _most(one: ProblemClass, more: Mapping[str, float]) -> float:
    """What the penalty of a class is raised by, so that buying stays better than lacking."""
    return max((more.get(name, 0.0) for name in one.offers), default=0.0)


def _raise(offer: Offer, level: float, boost: float) -> float:
    """What the price on demand lacks to ask for the level of an offer's cheapest commitment."""
    rates = [way.rate for way in offer.reservations]
    rates += [offer.sp_rate] if offer.sp_rate is not None else []
    if not rates or offer.on_demand is None:
        return 0.0
    return max(0.0, boost * min(rates) / (1 - level) - offer.on_demand)


def at_level(
    problem: Problem, level: float, solve: Callable[[Problem], Result]
) -> tuple[Result, tuple[tuple[str, float], ...]]:
    """The plan at a service level, at true prices, and the share that each class reaches.

    What is not reached at that price either cannot be committed to: `planner.service_reasons` says
    why.
    """
    boost: dict[str, float] = {}
    while True:
        asked, more = raised(problem, level, boost)
        result = solve(asked)
        if result.objective is None:
            return result, ()
        shares = reached(problem, result.dispatch)
        below = below_level(shares, level)
        if not below or boost:
            return repaid(problem, result, more), shares
        sizes = {one.id: float(one.gpus) for one in problem.offers}
        for one in problem.classes:
            name = base_name(one.id)
            if name in below:
                times = problem.hours / _busy_hours(problem, name)
                for offer in one.offers:
                    boost[offer] = max(boost.get(offer, 1.0), sizes[offer] * times)


def below_level(shares: Sequence[tuple[str, float]], level: float) -> frozenset[str]:
    """The class ids that stay below a level."""
    return frozenset(name for name, share in shares if share < level - _TINY)


def repaid(problem: Problem, result: Result, more: Mapping[str, float]) -> Result:
    """The result at true prices: what they were raised by stands under `cvar` alone."""
    short = {one.id: _most(one, more) for one in problem.classes}
    hourly = _raised_usd(problem, result, "on_demand", ("offer", more))
    penalty = _raised_usd(problem, result, "shortage", ("class", short))
    costs = dict(result.costs)
    costs["on_demand"] -= hourly
    costs["shortage"] -= penalty
    costs["cvar"] = hourly + penalty
    return replace(result, costs=costs)


def _raised_usd(
    problem: Problem, result: Result, kind: str, raises: tuple[str, Mapping[str, float]]
) -> float:
    """USD over the year by which one kind of the dispatch was raised, a mean over scenarios."""
    column, more = raises
    rows = result.dispatch[result.dispatch["kind"] == kind]
    p = np.array([one.p for one in problem.scenarios])
    usd = rows["gpus"] * rows[column].map(more).astype(float) * p[rows["scenario"].to_numpy()]
    return math.fsum(usd.tolist()) * problem.hour_weight


def reached(problem: Problem, dispatch: pd.DataFrame) -> tuple[tuple[str, float], ...]:
    """By class id the share of hours, over all scenarios, in which nothing was needed on demand.

    Only hours with need count. Work on spot is no firm need; what nothing serves is not served.
    """
    lacking = dispatch[dispatch["kind"].isin(["on_demand", "shortage"])]
    keys = ["base", "scenario", "hour"]
    named = lacking.assign(base=lacking["class"].map(base_name))
    sums = named.groupby(keys, sort=True)["gpus"].sum().reset_index()
    missed: dict[str, float] = {}
    for row in records(sums[sums["gpus"] > _TINY]):
        name = str(row["base"])
        missed[name] = missed.get(name, 0.0) + problem.scenarios[int(row["scenario"])].p
    found = []
    for name in sorted({base_name(one.id) for one in problem.classes}):
        busy = _busy_hours(problem, name)
        found.append((name, 1.0 if busy <= 0 else max(0.0, 1.0 - missed.get(name, 0.0) / busy)))
    return tuple(found)


def _busy_hours(problem: Problem, name: str) -> float:
    """Modelled hours in which a class needs anything, a mean over scenarios."""
    return sum(one.p * _busy(one.demand, name) for one in problem.scenarios)


def _busy(demand: Mapping[str, Array], name: str) -> int:
    """Hours in which a class needs anything."""
    total = np.sum([one for id_, one in demand.items() if base_name(id_) == name], axis=0)
    return int((np.asarray(total) > _TINY).sum())


def limits_at(
    limits: Sequence[CommitmentLimit],
    needs: Sequence[Need],
    supply: Supply,
    future: Future,
    level: float,
) -> tuple[CommitmentLimit, ...]:
    """The limits of commitments, each at least at what the level asks for on its offers.

    A stated level is a wish to commit that outranks the rule, which weighs money alone and knows
    the work where it runs today. So all work that may come to a limit's offers counts, and what is
    owned does not: some of it ends within the year, and the plan buys nothing beside what is there.
    """
    made = []
    for limit in limits:
        gpus = sum(_asked(need, set(limit.offers), supply, (future, level)) for need in needs)
        size = max((supply.offers[name].gpus for name in limit.offers), default=1)
        made.append(replace(limit, gpus=max(limit.gpus, _whole(gpus, size))))
    return tuple(made)


def _whole(gpus: float, size: int) -> float:
    """GPUs of as many machines as hold so many.

    >>> _whole(16.0, 8), _whole(16.5, 8)
    (16.0, 24.0)
    """
    return float(math.ceil(gpus / size - _TINY) * size)


def _asked(need: Need, offers: set[str], supply: Supply, asked: tuple[Future, float]) -> float:
    """The firm GPUs that a class may need on some offers in the share `level` of its hours."""
    future, level = asked
    shares = shares_of([need.had(place) for place in need.present])
    firm = 0.0
    for place, share in zip(need.present, shares, strict=True):
        reach = reachable(need, place, supply)
        if offers & set(reach):
            has_spot = any(supply.offers[name].spot is not None for name in reach)
            firm += share * (need.min_firm_share if need.interruptible and has_spot else 1.0)
    gpus = future.demand[need.id]
    weights = np.broadcast_to(np.asarray(future.probabilities)[:, None], gpus.shape)
    busy = gpus > _TINY
    if not firm or not busy.any():
        return 0.0
    high = np.quantile(gpus[busy], level, weights=weights[busy], method="inverted_cdf")
    return firm * float(high)


def level_note(level: float, is_planned: bool) -> str:
    """What a reader of the plan must know of a stated level.

    >>> level_note(0.95, False)
    'the service level of 95% is left out: the history is too short to plan ahead'
    """
    name = f"the service level of {100 * level:.6g}%"
    if not is_planned:
        return f"{name} is left out: the history is too short to plan ahead"
    return (
        f"{name} takes the place of cvar: commitments for it may go beyond what the rule of the "
        "ladder allows, and the plan is chosen at the price that the level puts on hours on "
        "demand, so no alternatives and no limits are priced beside it"
    )


def level_warnings(rows: Sequence[ServiceLevel]) -> tuple[str, ...]:
    """One warning for each class that stays below a stated level.

    >>> from data.risks import LevelMissed, ServiceLevel
    >>> level_warnings([ServiceLevel("train", "H100", 0.95, 0.487, LevelMissed.BUDGET)])
    ('the service level of 95% is missed: train on H100 reaches 48.7%: the report says why',)
    """
    return tuple(
        f"the service level of {100 * one.stated:.6g}% is missed: {one.workload_class} on "
        f"{one.gpu_family} reaches {one.reached:.1%}: the report says why"
        for one in rows
        if one.reached < one.stated
    )
