"""A first guess of a plan, and of prices, by the closed form: as if only pools were shared.

Quotas, hourly availability and the surcharge of pools are left out, and plan-covered hours cost
their rate as if paid as they are used. The plan proves nothing, but lies near; the prices are made
feasible as row duals of the true hour, so that the bound they give holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import Use
from planner.optimise.closed_form import ClosedForm, few_unions
from planner.optimise.recourse import risk_for
from planner.optimise.search import Search
from planner.optimise.template import template

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.options import Menu, Option
    from planner.model.reductions import Reduced
    from planner.optimise.first_stage import FirstStage
    from planner.optimise.template import Template

    Array = npt.NDArray[np.float64]

_GAP = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """A plan z, its counts not whole and without savings plans, and row duals of some hours."""

    z: Array
    duals: Array


def guess(sampled: Reduced, first: FirstStage, until: float) -> Guess:
    """A guess for a problem without waiting work; nothing where the closed form has no place."""
    nothing = Guess(np.zeros(len(first)), np.zeros((0, template(sampled).rows.size)))
    cvar = sampled.problem.cvar
    # Where a plan's cost has no part in the risk term, it weighs less than what it replaces.
    weight = 1.0 if cvar is None else (1.0 + cvar.on_commitments) / (1.0 + cvar.weight)
    plain = _plain(sampled, weight)
    if not few_unions(plain):
        return nothing
    oracle = ClosedForm(plain, first)
    search = Search(first, risk_for(plain, oracle), oracle, "highs", _GAP, until)
    search.relax(nothing.z, tightness=1.0)
    if search.relaxed_at is None:
        return nothing
    z = search.relaxed_at
    return Guess(z, _duals(sampled, oracle.pool_prices(first.feed(z)), weight))


def _plain(reduced: Reduced, weight: float) -> Reduced:
    """The problem as the closed form can price it."""
    groups = tuple(replace(one, menu=_menu(one.menu, weight)) for one in reduced.groups)
    pools = tuple(replace(pool, egress=dict.fromkeys(pool.egress, 0.0)) for pool in reduced.pools)
    return replace(reduced, groups=groups, pools=pools, quotas={}, limits=())


def _menu(menu: Menu, weight: float) -> Menu:
    """Options without quotas and plans, spot capped one by one as its joint share allows."""
    left = 1.0 if menu.spot_share is None else menu.spot_share
    kept: list[Option] = []
    for option in sorted(menu.options, key=lambda o: o.unit_price):
        if option.use is Use.SAVINGS_PLAN:
            price = option.price + option.plan_rate * weight
            kept.append(replace(option, use=Use.ON_DEMAND, price=price, plan="", quota=None))
        elif option.use is Use.SPOT:
            cap = left if option.cap is None else min(option.cap, left)
            left -= cap
            kept.append(replace(option, cap=cap, quota=None))
        else:
            kept.append(replace(option, quota=None))
    return replace(menu, options=tuple(kept), spot_share=None)


def _duals(reduced: Reduced, pool_prices: Array, weight: float) -> Array:
    """Feasible row duals, cells x rows: quotas free, plans at `weight`, all else as it follows."""
    form = template(reduced)
    rows = form.rows
    duals = np.zeros((len(pool_prices), rows.size))
    duals[:, rows.pool : rows.plan] = -pool_prices
    duals[:, rows.plan : rows.quota] = -weight
    # A group's price is what its cheapest way without a cap or a joint share asks for.
    free = np.flatnonzero(np.isinf(form.cap) & ~_in_share(form))
    costs = form.reduced_costs(duals, free) / form.useful[free]
    for group in range(rows.pool):
        duals[:, group] = costs[:, form.group[free] == group].min(axis=1)
    for number, group in enumerate(form.sharing.tolist()):
        price = _marginal_spot(form, group, float(form.shares[number]))
        duals[:, rows.share + number] = np.minimum(price - duals[:, group], 0.0)
    return duals


def _marginal_spot(form: Template, group: int, share: float) -> float:
    """USD per useful GPU-hour of the spot at which the group's joint share is filled."""
    spots = np.flatnonzero((form.group == group) & _in_share(form))
    for column in sorted(spots.tolist(), key=lambda n: float(form.cost[n] / form.useful[n])):
        share -= float(form.cap[column] * form.useful[column])
        if share <= 0.0:
            return float(form.cost[column] / form.useful[column])
    return np.inf


def _in_share(form: Template) -> npt.NDArray[np.bool_]:
    """Columns that count against a joint share of spot."""
    share = (form.row >= form.rows.share) & (form.row < form.rows.limit)
    held = share & (form.value > 0.0)
    inside: npt.NDArray[np.bool_] = np.any(held, axis=1)
    return inside
