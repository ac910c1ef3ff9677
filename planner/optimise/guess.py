"""A first guess of a plan by the closed form, as if nothing but pools were shared.

Quotas, hourly availability and the surcharge of pools are left out, and plan-covered hours cost
their rate as if paid as they are used. It proves nothing; the search that begins there needs fewer
steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import Use
from planner.optimise.closed_form import ClosedForm, few_unions
from planner.optimise.recourse import risk_for
from planner.optimise.search import Search

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.options import Menu, Option
    from planner.model.reductions import Reduced
    from planner.optimise.first_stage import FirstStage

    Array = npt.NDArray[np.float64]

_GAP = 1e-3


def guess(sampled: Reduced, first: FirstStage, until: float) -> Array:
    """A plan z for a problem without waiting work; nothing bought where the form has too many sets.

    Counts are not whole; no savings plan is in it.
    """
    start = np.zeros(len(first))
    plain = _plain(sampled)
    if not few_unions(plain):
        return start
    oracle = ClosedForm(plain, first)
    search = Search(first, risk_for(plain, oracle), oracle, "highs", _GAP, until)
    search.relax(start, tightness=1.0)
    return start if search.relaxed_at is None else search.relaxed_at


def _plain(reduced: Reduced) -> Reduced:
    """The problem as the closed form can price it."""
    groups = tuple(replace(group, menu=_menu(group.menu)) for group in reduced.groups)
    pools = tuple(replace(pool, egress=dict.fromkeys(pool.egress, 0.0)) for pool in reduced.pools)
    return replace(reduced, groups=groups, pools=pools, quotas={}, limits=())


def _menu(menu: Menu) -> Menu:
    """Options without quotas and plans, spot capped one by one as its joint share allows."""
    left = 1.0 if menu.spot_share is None else menu.spot_share
    kept: list[Option] = []
    for option in sorted(menu.options, key=lambda o: o.unit_price):
        if option.use is Use.SAVINGS_PLAN:
            price = option.price + option.plan_rate
            kept.append(replace(option, use=Use.ON_DEMAND, price=price, plan="", quota=None))
        elif option.use is Use.SPOT:
            cap = left if option.cap is None else min(option.cap, left)
            left -= cap
            kept.append(replace(option, cap=cap, quota=None))
        else:
            kept.append(replace(option, quota=None))
    return replace(menu, options=tuple(kept), spot_share=None)
