"""The objective: what is bought in the first stage, the mean recourse cost, and its risk.

Everything is divided by the hour weight, which multiplies all of it: `scale` is what a solver's
value must be multiplied by to be USD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.problem import paid_hours
from planner.solvers import linear

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt
    import pulp

    from planner.model.columns import Columns


def minimise_cost(made: Columns) -> None:
    """Minimise sum rho g R H + sum price N + sum Y H + sum_s pi_s q_s + lambda CVaR(q)."""
    terms = list(_first_stage(made))
    cvar = made.reduced.problem.cvar
    if made.reduced.risk and cvar is not None and made.value_at_risk is not None:
        scenarios = made.reduced.problem.scenarios
        terms.append((made.value_at_risk, cvar.weight))
        for scenario, cost, excess in zip(scenarios, made.scenario_cost, made.excess, strict=True):
            terms.append((cost, scenario.p))
            terms.append((excess, cvar.weight * scenario.p / (1 - cvar.beta)))
    else:
        alone = 1 + cvar.weight if cvar is not None else 1.0
        terms.extend(recourse_cost(made, made.reduced.cells.mean_hours * alone))
    made.lp.setObjective(linear(terms))


def scale(made: Columns) -> float:
    """USD per unit of the solver's objective."""
    return made.reduced.problem.hour_weight


def recourse_cost(
    made: Columns, hours: npt.NDArray[np.float64]
) -> Iterator[tuple[pulp.LpVariable, float]]:
    """Second-stage columns with their cost: price times the hours that each cell stands for."""
    weights = hours.tolist()
    for (group, pool), series in made.reserved.items():
        yield from _priced(series, weights, made.reduced.pools[pool].egress[group])
    for (group, position), series in made.bought.items():
        option = made.reduced.groups[group].menu.options[position]
        yield from _priced(series, weights, option.price * (option.size or 1))


def _priced(
    series: list[pulp.LpVariable | None], weights: list[float], price: float
) -> Iterator[tuple[pulp.LpVariable, float]]:
    if price:
        for column, weight in zip(series, weights, strict=True):
            if column is not None:
                yield column, price * weight


def _first_stage(made: Columns) -> Iterator[tuple[pulp.LpVariable, float]]:
    hours = made.reduced.problem.hours
    cvar = made.reduced.problem.cvar
    factor = 1.0 if cvar is None else 1.0 + cvar.on_commitments
    for (pool, position), column in made.counts.items():
        offer, way = made.reduced.pools[pool].reservations[position]
        yield column, factor * way.rate * offer.gpus * paid_hours(way.start, way.term, hours)
    blocks = {block.id: block for block in made.reduced.problem.blocks}
    for name, column in made.blocks.items():
        block = blocks[name]
        yield column, factor * block.price * block.gpus * block.length
    plans = {plan.provider: plan for plan in made.reduced.problem.savings_plans}
    for provider, column in made.commitments.items():
        yield column, factor * paid_hours(plans[provider].start, plans[provider].term, hours)
