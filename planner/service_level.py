"""A stated service level: the share of hours in which committed capacity serves all firm need.

Committed to that share, a GPU more is at work in the rest of the hours, 1 - level, and costs its
rate in all of them. So it is bought exactly where an hour that nothing committed serves counts
rate / (1 - level): the plan is chosen at that price of what is bought on demand, and paid for at
the true one. What the price is raised by nobody pays; it stands beside the cost, as caution. Of a
whole machine only the last GPU may be lacking, so where a class stays below its level the price is
raised by as many times as a machine has GPUs. The penalty of hours that nothing serves rises with
it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from data.frames import records
from planner.assemble import base_name
from planner.future import shares_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd

    from planner.future import Future
    from planner.ladder import Rung
    from planner.outcome import Result
    from planner.problem import CommitmentLimit, Offer, Problem, ProblemClass

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

    What is not reached where a machine pays for its last GPU alone cannot be had, or not be
    committed to.
    """
    boost: dict[str, float] = {}
    while True:
        asked, more = raised(problem, level, boost)
        result = solve(asked)
        if result.objective is None:
            return result, ()
        shares = reached(problem, result.dispatch)
        below = {name for name, share in shares if share < level - _TINY}
        if not below or boost:
            return repaid(problem, result, more), shares
        sizes = {one.id: float(one.gpus) for one in problem.offers}
        for one in problem.classes:
            if base_name(one.id) in below:
                boost |= {name: sizes[name] for name in one.offers}


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
        busy = sum(one.p * _busy(one.demand, name) for one in problem.scenarios)
        found.append((name, 1.0 if busy <= 0 else 1.0 - missed.get(name, 0.0) / busy))
    return tuple(found)


def _busy(demand: Mapping[str, Array], name: str) -> int:
    """Hours in which a class needs anything."""
    total = np.sum([one for id_, one in demand.items() if base_name(id_) == name], axis=0)
    return int((np.asarray(total) > _TINY).sum())


def limits_at(
    limits: Sequence[CommitmentLimit], rungs: Sequence[Rung], future: Future, level: float
) -> tuple[CommitmentLimit, ...]:
    """The limits of commitments, each at least at what its pool lacks for the level.

    A stated level is a wish to commit that outranks the rule, which weighs money alone.
    """
    made = []
    for limit, rung in zip(limits, rungs, strict=True):
        firm: Array | float = 0.0
        for one in rung.pool.members:
            need = one.need
            shares = shares_of([need.had(place) for place in need.present])
            share = shares[need.present.index(one.place)] * (1 - one.waiting)
            firm = firm + share * future.demand[need.id]
        size = rung.terms.gpus_per_instance
        lacks = float(np.quantile(firm, level, method="higher")) - rung.held
        gpus = math.ceil(max(lacks, 0.0) / size - _TINY) * size
        made.append(replace(limit, gpus=max(limit.gpus, float(gpus))))
    return tuple(made)


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
