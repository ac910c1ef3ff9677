"""From a solved model back to the problem: the plan, and each class's use by offer and hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.model.options import Use
from planner.model.reductions import demand_of, owned_gpus
from planner.outcome import (
    BlockCount,
    Commitment,
    Plan,
    ReservedCount,
    empty_dispatch,
)
from planner.problem import active

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pulp

    from planner.model.columns import Columns, Series
    from planner.model.reductions import Group, Pool, Reduced

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]
    Row = tuple[str, "Part", Places, Places, Array]

_NOTHING = 1e-9  # GPUs or USD an hour; less is a solver's rounding


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Use of one kind on one offer by one group or class, scenarios x hours of GPUs."""

    offer: str
    kind: str
    gpus: Array
    useful: float


def plan_of(made: Columns) -> Plan:
    """The first stage of the solved model, counts rounded to whole numbers."""
    reservations = []
    for (number, position), column in made.counts.items():
        offer, way = made.reduced.pools[number].reservations[position]
        if count := round(_value(column)):
            reservations.append(ReservedCount(offer.id, way.id, count))
    spends = {provider: _value(column) for provider, column in made.commitments.items()}
    blocks = {name: round(_value(column)) for name, column in made.blocks.items()}
    return Plan(
        tuple(sorted(reservations)),
        tuple(Commitment(name, usd) for name, usd in sorted(spends.items()) if usd > _NOTHING),
        tuple(BlockCount(name, count) for name, count in sorted(blocks.items()) if count),
    )


def dispatch_of(made: Columns, plan: Plan) -> pd.DataFrame:
    """Frame of one row per (scenario, hour, class, offer, kind) with use, in that order."""
    rows = []
    remaining = [capacities(made.reduced, pool, plan) for pool in made.reduced.pools]
    for index, group in enumerate(made.reduced.groups):
        parts = [*_reserved(made, index, remaining), *_bought(made, index)]
        rows += rows_of(made.reduced, group, parts)
    return frame(rows)


def rows_of(reduced: Reduced, group: Group, parts: list[Part]) -> list[Row]:
    """The parts of a group's use, split among its classes."""
    rows = []
    for name, share in _shares(reduced, group, parts):
        for part in parts:
            gpus = part.gpus if share is None else part.gpus * share
            scenario, hour = np.nonzero(gpus > _NOTHING)
            if len(hour):
                rows.append((name, part, scenario, hour, gpus[scenario, hour]))
    return rows


def _value(column: pulp.LpVariable) -> float:
    value = column.varValue
    return 0.0 if value is None else float(value)


def _spread(made: Columns, series: Series) -> Array:
    """The values of a series of cells at every scenario and hour."""
    values = np.array([0.0 if column is None else _value(column) for column in series])
    spread: Array = np.maximum(values, 0.0)[made.reduced.cells.of]
    return spread


def capacities(reduced: Reduced, pool: Pool, plan: Plan) -> list[Array]:
    """GPUs of each offer of the pool, scenarios x hours."""
    hours = reduced.problem.hours
    blocks = {one.id: one.count for one in plan.blocks}
    found = []
    for offer in pool.offers:
        there = owned_gpus(offer, hours)
        ways = {way.id: way for way in offer.reservations}
        for one in plan.reservations:
            if one.offer == offer.id:
                start, end = active(ways[one.id].start, ways[one.id].term, hours)
                there[start:end] += offer.gpus * one.count
        for block in pool.blocks:
            if block.offer == offer.id:
                end = block.start + block.length
                there[block.start : end] += block.gpus * blocks.get(block.id, 0)
        found.append(np.tile(there, (len(reduced.problem.scenarios), 1)))
    return found


def _reserved(made: Columns, index: int, remaining: list[list[Array]]) -> Iterator[Part]:
    """Use of pools by a group, dealt out to their offers in order; `remaining` goes down."""
    for (group, number), series in made.reserved.items():
        if group != index:
            continue
        pool = made.reduced.pools[number]
        yield from deal(pool, _spread(made, series), remaining[number])


def deal(pool: Pool, gpus: Array, remaining: list[Array]) -> Iterator[Part]:
    """Use of a pool dealt out to its offers in order; what remains of them goes down."""
    left = gpus
    for position, offer in enumerate(pool.offers):
        there = remaining[position]
        last = position == len(pool.offers) - 1
        taken = left if last else np.minimum(left, there)
        remaining[position] = np.maximum(there - taken, 0.0)
        left = left - taken
        yield Part(offer.id, Use.RESERVED, taken, 1.0)


def _bought(made: Columns, index: int) -> Iterator[Part]:
    for position, option in enumerate(made.reduced.groups[index].menu.options):
        gpus = _spread(made, made.bought[index, position])
        if option.size is not None:
            gpus = np.round(gpus) * option.size
        yield Part(option.offer, option.use, gpus, option.useful)


def _shares(
    reduced: Reduced, group: Group, parts: list[Part]
) -> Iterator[tuple[str, Array | None]]:
    """Each class of the group with its share of the group's use; None is all of it.

    A firm class takes by its demand. Work that may wait is served in the order of its release,
    and each class's share is what the served work holds of its own.
    """
    if len(group.members) == 1:
        yield group.rules.id, None
        return
    problem = reduced.problem
    if group.firm:
        for one in group.members:
            own = demand_of(problem, one)
            yield one.id, np.divide(own, group.demand, where=group.demand > 0, out=own * 0)
        return
    served: Array = np.sum([part.gpus * part.useful for part in parts], axis=0)
    upto = np.cumsum(served, axis=1)
    for one in group.members:
        own = np.stack(
            [
                np.interp(done, np.cumsum(whole), np.cumsum(part), left=0.0)
                if whole.any()
                else done * 0
                for done, whole, part in zip(
                    upto, _from_zero(group.demand), _from_zero(demand_of(problem, one)), strict=True
                )
            ]
        )
        step = np.diff(own, axis=1, prepend=0.0)
        yield one.id, np.divide(step, served, where=served > _NOTHING, out=step * 0)


def _from_zero(work: Array) -> Array:
    """The series with a zero before its first hour, for cumulative curves that begin at none."""
    return np.pad(work, ((0, 0), (1, 0)))


def frame(rows: list[Row]) -> pd.DataFrame:
    """The frame of the rows, sorted."""
    if not rows:
        return empty_dispatch()
    sizes = [len(row[4]) for row in rows]

    def column(values: list[str]) -> pd.Categorical:
        names = sorted(set(values))
        codes = np.repeat([names.index(value) for value in values], sizes)
        return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype="str"))

    found = pd.DataFrame(
        {
            "scenario": np.concatenate([row[2] for row in rows]),
            "hour": np.concatenate([row[3] for row in rows]),
            "class": column([row[0] for row in rows]),
            "offer": column([row[1].offer for row in rows]),
            "kind": column([str(row[1].kind) for row in rows]),
            "gpus": np.concatenate([row[4] for row in rows]),
            "useful_gpus": np.concatenate([row[4] * row[1].useful for row in rows]),
        }
    )
    keys = ["scenario", "hour", "class", "offer", "kind"]
    found = found.sort_values(keys, kind="stable", ignore_index=True)
    return found.astype({"class": "str", "offer": "str", "kind": "str"})
