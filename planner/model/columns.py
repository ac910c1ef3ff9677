"""The decisions as PuLP variables, and their names.

First stage: `count[offer,reservation]`, `blocks[block]`, `commitment[provider]`. Second stage,
per cell of equal hours: `reserved`, `on_demand`, `savings_plan`, `spot`, `shortage` (GPUs), and
for work that may wait `served` (GPU-hours since the first hour).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pulp

from planner.model.availability import most_useful
from planner.model.options import Use
from planner.model.reductions import Group, Pool, Reduced, most_at_once, most_instances
from planner.problem import active

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

_ODD = re.compile(r"[^A-Za-z0-9_.]+")
_LONGEST_LABEL = 40
SMALLEST_DEMAND = 1e-12  # GPUs; less is none
_WHOLE = 1e-9  # instances; so little above a whole number is rounding

Series = list[pulp.LpVariable | None]


@dataclass(slots=True)
class Names:
    """Labels of ids, safe in every solver's files and different from one another."""

    groups: list[str]
    pools: list[str]
    offers: dict[str, str]
    blocks: dict[str, str]
    providers: dict[str, str]
    quotas: dict[tuple[str, ...], str]
    limits: dict[str, str]
    cells: list[str]


@dataclass(slots=True, eq=False)
class Columns:
    """The PuLP problem with its variables; each series has one entry per cell, None where unused.

    `reserved` is keyed by (group, pool) and listed by group in `pools_of`, `bought` is keyed by
    (group, option of its menu), `counts` by (pool, position of the reservation in it).
    """

    lp: pulp.LpProblem
    reduced: Reduced
    names: Names
    counts: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    blocks: dict[str, pulp.LpVariable] = field(default_factory=dict)
    commitments: dict[str, pulp.LpVariable] = field(default_factory=dict)
    reserved: dict[tuple[int, int], Series] = field(default_factory=dict)
    pools_of: dict[int, list[Series]] = field(default_factory=dict)
    bought: dict[tuple[int, int], Series] = field(default_factory=dict)
    served: dict[int, Series] = field(default_factory=dict)
    scenario_cost: list[pulp.LpVariable] = field(default_factory=list)
    excess: list[pulp.LpVariable] = field(default_factory=list)
    value_at_risk: pulp.LpVariable | None = None

    def use_of(self, group: int, cell: int) -> Iterator[tuple[pulp.LpVariable, float]]:
        """Columns that serve the group in the cell, each with its useful GPUs per bought one."""
        for series in self.pools_of[group]:
            if series[cell] is not None:
                yield series[cell], 1.0
        for index, option in enumerate(self.reduced.groups[group].menu.options):
            column = self.bought[group, index][cell]
            if column is not None:
                yield column, option.useful * (option.size or 1)


def columns(reduced: Reduced) -> Columns:
    """Every variable of the model, unconstrained but for its bounds."""
    lp = pulp.LpProblem("loadfactor", pulp.LpMinimize)
    made = Columns(lp, reduced, _names(reduced))
    _buy(made)
    for index, group in enumerate(reduced.groups):
        active = _active(group, reduced)
        _reserve(made, index, active)
        for position in range(len(group.menu.options)):
            made.bought[index, position] = cap_spot_share_per_offer(made, index, position, active)
        if not group.firm:
            made.served[index] = _serve(made, index)
    if reduced.risk:
        _risk(made)
    return made


def cap_spot_share_per_offer(
    made: Columns, index: int, position: int, active: npt.NDArray[np.bool_]
) -> Series:
    """Purchase columns of one option; for firm classes bounded, as demand is data.

    phi_o f_wost <= min(delta_w, a_ost) d_wst,  z_wost <= A_ost d_wst (whole instances: rounded up)
    """
    group = made.reduced.groups[index]
    option = group.menu.options[position]
    cells = made.reduced.cells
    label = f"{option.use}[{made.names.groups[index]}"
    if option.use is not Use.SHORTAGE:
        label += f",{made.names.offers[option.offer]}"
    kind = pulp.LpInteger if option.size is not None else pulp.LpContinuous
    limits = None
    share = most_useful(made.reduced, index, position)
    if share is not None:
        share = share if isinstance(share, float) else share[cells.scenario, cells.hour]
        most = share * group.demand[cells.scenario, cells.hour] / option.useful
        if option.size is not None:
            most = np.ceil(most / option.size - _WHOLE)
        limits = most.tolist()
    return [
        made.lp.add_variable(
            f"{label},{made.names.cells[cell]}]", 0, limits[cell] if limits else None, kind
        )
        if on
        else None
        for cell, on in enumerate(active.tolist())
    ]


def _buy(made: Columns) -> None:
    """R_ok, N_b and Y_m, with the largest count that can be of use as a bound."""
    names = made.names
    for index, pool in enumerate(made.reduced.pools):
        for position, (offer, way) in enumerate(pool.reservations):
            label = f"count[{names.offers[offer.id]},{_label(way.id)}.{position}]"
            most = most_instances(pool.peak, offer.gpus)
            made.counts[index, position] = made.lp.add_variable(label, 0, most, pulp.LpInteger)
        for block in pool.blocks:
            label = f"blocks[{names.blocks[block.id]}]"
            made.blocks[block.id] = made.lp.add_variable(label, 0, block.max, pulp.LpInteger)
    covering = {option.plan for group in made.reduced.groups for option in group.menu.options}
    for provider in sorted(covering - {""}):
        label = f"commitment[{names.providers[provider]}]"
        made.commitments[provider] = made.lp.add_variable(label, 0)


def _reserve(made: Columns, index: int, active: npt.NDArray[np.bool_]) -> None:
    made.pools_of[index] = []
    for number, pool in enumerate(made.reduced.pools):
        if index not in pool.egress:
            continue
        there = active & _may_hold(pool, made.reduced)
        label = f"reserved[{made.names.groups[index]},{made.names.pools[number]}"
        made.reserved[index, number] = [
            made.lp.add_variable(f"{label},{made.names.cells[cell]}]", 0) if on else None
            for cell, on in enumerate(there.tolist())
        ]
        made.pools_of[index].append(made.reserved[index, number])


def _serve(made: Columns, index: int) -> Series:
    """y_wst between the work that is due and the work released so far."""
    group, cells = made.reduced.groups[index], made.reduced.cells
    due, released = due_and_released(group)
    low = due[cells.scenario, cells.hour].tolist()
    high = released[cells.scenario, cells.hour].tolist()
    return [
        made.lp.add_variable(
            f"served[{made.names.groups[index]},{made.names.cells[cell]}]", low[cell], high[cell]
        )
        for cell in range(len(cells))
    ]


def _risk(made: Columns) -> None:
    """q_s, zeta_s and eta of the mean-CVaR objective."""
    for number in range(len(made.reduced.problem.scenarios)):
        made.scenario_cost.append(made.lp.add_variable(f"scenario_cost[s{number}]", 0))
        made.excess.append(made.lp.add_variable(f"excess[s{number}]", 0))
    made.value_at_risk = made.lp.add_variable("value_at_risk")


def due_and_released(group: Group) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Cumulative GPU-hours that must be served, and that may be, by the end of each hour."""
    released = np.cumsum(group.demand, axis=1)
    due = np.zeros_like(released)
    window = group.rules.window
    if window < released.shape[1]:
        due[:, window:] = released[:, : released.shape[1] - window]
    due[:, -1] = released[:, -1]
    return due, released


def _active(group: Group, reduced: Reduced) -> npt.NDArray[np.bool_]:
    """Whether the group can use any GPU, per cell."""
    cells = reduced.cells
    active: npt.NDArray[np.bool_] = (
        most_at_once(group)[cells.scenario, cells.hour] > SMALLEST_DEMAND
    )
    return active


def _may_hold(pool: Pool, reduced: Reduced) -> npt.NDArray[np.bool_]:
    """Whether the pool can have capacity, per cell."""
    hour = reduced.cells.hour
    there: npt.NDArray[np.bool_] = pool.owned[hour] > 0
    for _, way in pool.reservations:
        start, end = active(way.start, way.term, reduced.problem.hours)
        there |= (hour >= start) & (hour < end)
    for block in pool.blocks:
        there |= (hour >= block.start) & (hour < block.start + block.length)
    return there


def _names(reduced: Reduced) -> Names:
    problem = reduced.problem
    offers = labels(offer.id for offer in problem.offers)
    single = len(problem.scenarios) == 1
    cells = zip(reduced.cells.scenario.tolist(), reduced.cells.hour.tolist(), strict=True)
    groups = labels(group.rules.id for group in reduced.groups)
    regions = labels(".".join(pair) for pair in reduced.quotas)
    return Names(
        groups=[groups[group.rules.id] for group in reduced.groups],
        pools=[offers[pool.offers[0].id] for pool in reduced.pools],
        offers=offers,
        blocks=labels(block.id for block in problem.blocks),
        providers=labels(plan.provider for plan in problem.savings_plans),
        quotas={pair: regions[".".join(pair)] for pair in reduced.quotas},
        limits=labels(limit.id for limit in problem.commitment_limits),
        cells=[f"{hour}" if single else f"s{scenario},{hour}" for scenario, hour in cells],
    )


def labels(ids: Iterable[str]) -> dict[str, str]:
    """A label for each id, different even after PuLP has replaced brackets and blanks.

    >>> labels(["a-b", "a b", "c"])
    {'a b': 'a_b', 'a-b': 'a_b.2', 'c': 'c'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for one in sorted(set(ids)):
        label, number = _label(one), 1
        while label in taken:
            number += 1
            label = f"{_label(one)}.{number}"
        taken.add(label)
        found[one] = label
    return found


def _label(one: str) -> str:
    return _ODD.sub("_", one)[:_LONGEST_LABEL] or "_"
