"""The constraints, one function each, named as the rows that it makes.

The letters are those of the model in the README: x reserved, z on demand, v plan-covered, f spot,
h shortage, y served, R instances reserved, N blocks, Y commitments, a and A the shares of spot and
on demand that are available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.model.availability import rows_of
from planner.model.columns import SMALLEST_DEMAND
from planner.model.objective import recourse_cost
from planner.model.options import Use
from planner.problem import active
from planner.solvers import linear

if TYPE_CHECKING:
    import pulp

    from planner.model.availability import Limit
    from planner.model.columns import Columns
    from planner.problem import Reservation, SavingsPlan

    Term = tuple[pulp.LpVariable, float]

_WHOLE = 1e-4  # instances; less than this of one more is not bought


def meet_demand(made: Columns) -> None:
    """sum_o ( x + z + v + phi_o f ) + h = d_wst for firm classes (>= with whole instances)."""
    cells = made.reduced.cells
    surplus = made.reduced.problem.on_demand_integer
    for index, group in enumerate(made.reduced.groups):
        if not group.firm:
            continue
        demand = group.demand[cells.scenario, cells.hour].tolist()
        for cell, needed in enumerate(demand):
            if needed > SMALLEST_DEMAND:
                served = linear(made.use_of(index, cell))
                row = served >= needed if surplus else served == needed
                _add(made, row, f"meet_demand[{made.names.groups[index]}", cell)


def serve_deferrable(made: Columns) -> None:
    """sum_o ( x + z + v + phi_o f ) + h = y_wst - y_ws(t-1) for classes that may wait.

    y lies between the work due and the work released, which are its bounds.
    """
    surplus = made.reduced.problem.on_demand_integer
    hour = made.reduced.cells.hour.tolist()
    for index, series in made.served.items():
        for cell, column in enumerate(series):
            terms = [*made.use_of(index, cell), (column, -1.0)]
            if hour[cell] > 0:
                terms.append((series[cell - 1], 1.0))
            row = linear(terms) >= 0 if surplus else linear(terms) == 0
            _add(made, row, f"serve_deferrable[{made.names.groups[index]}", cell)


def share_pool(made: Columns) -> None:
    """sum_w x_wost <= E_ot + g_o sum_k R_ok + sum_b g_b N_b, what is there then, for each pool."""
    cells = made.reduced.cells
    hours = cells.hour.tolist()
    for number, pool in enumerate(made.reduced.pools):
        users = [made.reserved[index, number] for index in pool.egress]
        bought = [
            (made.counts[number, position], -float(offer.gpus), _span(made, way))
            for position, (offer, way) in enumerate(pool.reservations)
        ]
        owned = pool.owned.tolist()
        for cell, hour in enumerate(hours):
            used = [(series[cell], 1.0) for series in users if series[cell] is not None]
            there = [(count, gpus) for count, gpus, (start, end) in bought if start <= hour < end]
            blocks = [
                (made.blocks[block.id], -float(block.gpus))
                for block in pool.blocks
                if block.start <= hour < block.start + block.length
            ]
            if used:
                row = linear([*used, *there, *blocks]) <= owned[hour]
                _add(made, row, f"share_pool[{made.names.pools[number]}", cell)


def cap_spot_share(made: Columns) -> None:
    """sum_o phi_o f_wost <= (1 - alpha_w) d_wst for firm classes, where bounds do not say it."""
    cells = made.reduced.cells
    for index, group in enumerate(made.reduced.groups):
        share = group.menu.spot_share
        if share is None:
            continue
        demand = group.demand[cells.scenario, cells.hour].tolist()
        spot = [
            (made.bought[index, position], option.useful)
            for position, option in enumerate(group.menu.options)
            if option.use is Use.SPOT
        ]
        for cell, needed in enumerate(demand):
            terms = [(series[cell], phi) for series, phi in spot if series[cell] is not None]
            if terms:
                row = linear(terms) <= share * needed
                _add(made, row, f"cap_spot_share[{made.names.groups[index]}", cell)


def cover_by_savings_plan(made: Columns) -> None:
    """sum_{w,o in m} sigma_mo v_wost <= Y_m for each plan (0 where it is not there)."""
    hours = made.reduced.cells.hour.tolist()
    plans = {plan.provider: plan for plan in made.reduced.problem.savings_plans}
    for provider, commitment in made.commitments.items():
        start, end = _span(made, plans[provider])
        covered = [
            (series, option.plan_rate)
            for (group, position), series in made.bought.items()
            if (option := made.reduced.groups[group].menu.options[position]).plan == provider
        ]
        for cell in range(len(made.reduced.cells)):
            terms = [(series[cell], rate) for series, rate in covered if series[cell] is not None]
            if terms:
                there = [(commitment, -1.0)] if start <= hours[cell] < end else []
                row = linear([*terms, *there]) <= 0
                _add(made, row, f"cover_by_savings_plan[{made.names.providers[provider]}", cell)


def cap_quota(made: Columns) -> None:
    """sum_{w,o in q} c_o ( z + v + f ) <= Q_q for each quota; c_o is 1 or vCPUs per GPU."""
    for pair, limit in sorted(made.reduced.quotas.items()):
        counted = [
            (series, (option.size or 1) * option.weight)
            for (group, position), series in made.bought.items()
            if (option := made.reduced.groups[group].menu.options[position]).quota == pair
        ]
        for cell in range(len(made.reduced.cells)):
            terms = [(series[cell], gpus) for series, gpus in counted if series[cell] is not None]
            if terms:
                _add(made, linear(terms) <= limit, f"cap_quota[{made.names.quotas[pair]}", cell)


def cap_availability(made: Columns) -> None:
    """Use of one offer by one class within what is available, where bounds do not say it.

    Firm: z + v <= A_ost d_wst. Work that may wait, with all released by t less y_ws(t-1) waiting:
    phi_o f <= a_ost ( sum_{tau<=t} r_wstau - y_ws(t-1) ), and z + v <= A_ost ( the same ).
    """
    cells = made.reduced.cells
    hour = cells.hour.tolist()
    for limit in rows_of(made.reduced):
        group = made.reduced.groups[limit.group]
        need = group.demand if group.firm else np.cumsum(group.demand, axis=1)
        needs = need[cells.scenario, cells.hour].tolist()
        shares = limit.share[cells.scenario, cells.hour].tolist()
        names = made.names
        label = f"cap_availability[{names.groups[limit.group]},{names.offers[limit.offer]}"
        served = made.served.get(limit.group)
        for cell, share in enumerate(shares):
            if share >= 1:
                continue  # the balance says it already
            waiting = []
            if served is not None and hour[cell] > 0:
                waiting.append((served[cell - 1], share))
            room = share * needs[cell]
            whole, parts = _use_of(made, limit, cell)
            if parts:
                row = linear([*parts, *waiting]) <= room
                _add(made, row, f"{label}.{limit.use}", cell)
            if whole is not None:
                more = whole[1] * (1 - _WHOLE) if share > 0 else 0.0
                row = linear([whole, *parts, *waiting]) <= room + more
                _add(made, row, f"{label}.{limit.use}.whole", cell)


def cap_upfront(made: Columns) -> None:
    """sum_ok u_ok g_o R_ok <= U."""
    budget = made.reduced.problem.upfront_budget
    terms = []
    for (pool, position), column in made.counts.items():
        offer, way = made.reduced.pools[pool].reservations[position]
        if way.upfront:
            terms.append((column, way.upfront * offer.gpus))
    if terms and budget is not None:
        made.lp.addConstraint(linear(terms) <= budget, "cap_upfront")


def cap_commitments(made: Columns) -> None:
    """sum_{o in l, k} g_o R_ok + sum_m Y_m / (least sigma_mo, o in l) <= L_l for each limit."""
    problem = made.reduced.problem
    for limit in problem.commitment_limits:
        terms = []
        for (pool, position), column in made.counts.items():
            offer, _ = made.reduced.pools[pool].reservations[position]
            if offer.id in limit.offers:
                terms.append((column, float(offer.gpus)))
        held = limit.plan_gpus(problem.offers)
        terms += [
            (column, held[provider])
            for provider, column in made.commitments.items()
            if provider in held
        ]
        if terms:
            label = f"cap_commitments[{made.names.limits[limit.id]}]"
            made.lp.addConstraint(linear(terms) <= limit.gpus, label)


def measure_scenario_cost(made: Columns) -> None:
    """q_s >= sum_t omega_t [ recourse cost ], only where the risk term needs it."""
    cells = made.reduced.cells
    for number, cost in enumerate(made.scenario_cost):
        spent = recourse_cost(made, cells.hours * (cells.scenario == number))
        terms = [(cost, 1.0), *((column, -price) for column, price in spent if price)]
        made.lp.addConstraint(linear(terms) >= 0, f"measure_scenario_cost[s{number}]")


def measure_excess(made: Columns) -> None:
    """zeta_s >= q_s - eta, the part of each scenario's cost beyond the value at risk."""
    for number, (cost, excess) in enumerate(zip(made.scenario_cost, made.excess, strict=True)):
        terms = [(excess, 1.0), (cost, -1.0), (made.value_at_risk, 1.0)]
        made.lp.addConstraint(linear(terms) >= 0, f"measure_excess[s{number}]")


def _use_of(made: Columns, limit: Limit, cell: int) -> tuple[Term | None, list[Term]]:
    """The column of whole instances under a limit, if any, and the others, with useful GPUs.

    One more instance is bought for whatever part of it can be had.
    """
    options = made.reduced.groups[limit.group].menu.options
    whole, parts = None, []
    for place in limit.options:
        column, option = made.bought[limit.group, place][cell], options[place]
        if column is not None and option.size is not None:
            whole = (column, option.useful * option.size)
        elif column is not None:
            parts.append((column, option.useful))
    return whole, parts


def _span(made: Columns, held: Reservation | SavingsPlan) -> tuple[int, int]:
    return active(held.start, held.term, made.reduced.problem.hours)


def _add(made: Columns, row: pulp.LpConstraint, label: str, cell: int) -> None:
    made.lp.addConstraint(row, f"{label},{made.names.cells[cell]}]")
