"""What stands in the way of serving a class that falls short: every limit, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.availability import FAMILY
from planner.model.options import Use
from planner.model.reductions import demand_of, owned_gpus
from planner.model.shares import share_of
from planner.problem import ClassKind, QuotaUse, active, paid_hours

if TYPE_CHECKING:
    from collections.abc import Hashable

    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from planner.outcome import Plan
    from planner.problem import Offer, Problem, ProblemClass, Quota, Reservation

    Array = npt.NDArray[np.float64]

_FULL = 1e-6  # share of a limit by which it may be missed and still bind
_NONE = "none of its offers is sold on demand below the price of a shortage"


@dataclass(frozen=True, slots=True, eq=False)
class Short:
    """A class that falls short: the rows of its shortage, the whole dispatch, and the plan."""

    problem: Problem
    one: ProblemClass
    dispatch: pd.DataFrame
    rows: pd.DataFrame
    plan: Plan | None

    @property
    def offers(self) -> list[Offer]:
        """The offers that the class may use."""
        return [offer for offer in self.problem.offers if offer.id in self.one.offers]

    def sold(self, use: QuotaUse) -> list[Offer]:
        """Offers sold to the class by the hour in one way, below the price of a shortage."""
        plans = {plan.provider for plan in self.problem.savings_plans}
        found = []
        for offer in self.offers:
            prices = [offer.spot and offer.spot / offer.spot_throughput]
            if use is QuotaUse.ON_DEMAND:
                prices = [offer.on_demand, offer.sp_rate if offer.provider in plans else None]
            surcharge = offer.egress.get(self.one.id, 0.0)
            if any(p is not None and p + surcharge < self.one.shortage_penalty for p in prices):
                found.append(offer)
        return found

    @property
    def off_spot(self) -> bool:
        """Whether the class may not run on spot at all."""
        one = self.one
        firm = one.kind is ClassKind.FIRM
        return firm and (one.min_firm_share >= 1 or one.spot_max_share_per_offer == 0)

    def at_short(self) -> pd.DataFrame:
        """The dispatch of every class in the hours in which this one falls short."""
        return self.dispatch.merge(self.rows[["scenario", "hour"]], on=["scenario", "hour"])


def reasons_of(case: Short) -> str:
    """Every limit in conflict: by the hour, of spot, of what is owned, of what is bought ahead."""
    found = [*_quotas(case), *_scarce(case), *_spot_shares(case), *_owned(case), *_ahead(case)]
    if found:
        return "; ".join(found)
    return "its demand share limits" if any(case.sold(use) for use in QuotaUse) else _NONE


def _quotas(case: Short) -> list[str]:
    full = [
        _named(case.problem, quota)
        for quota in case.problem.quotas
        if any(
            (o.provider, o.region) == (quota.provider, quota.region)
            for use in quota.uses
            if use is not QuotaUse.SPOT or not case.off_spot
            for o in case.sold(use)
        )
        and _is_full(case, quota)
    ]
    return [f"quotas used up: {', '.join(full)}"] if full else []


def _named(problem: Problem, quota: Quota) -> str:
    """The quota with its limit, and what it counts where there are several of one region."""
    place = quota.provider, quota.region
    several = sum((one.provider, one.region) == place for one in problem.quotas) > 1
    alone = len(quota.uses) == 1 and several
    use = {QuotaUse.ON_DEMAND: " on demand", QuotaUse.SPOT: " as spot"}[quota.uses[0]]
    return f"{quota.provider} {quota.region} ({quota.limit:g} {quota.unit}{use if alone else ''})"


def _is_full(case: Short, quota: Quota) -> bool:
    """Whether purchases reach a quota in some hour in which the class falls short."""
    enough = quota.limit * (1 - _FULL) - _FULL
    if enough <= 0:
        return True
    kinds = [str(kind) for kind, use in FAMILY.items() if use in quota.uses]
    weight = {
        offer.id: quota.per_gpu(offer)
        for offer in case.problem.offers
        if (offer.provider, offer.region) == (quota.provider, quota.region)
    }
    at = case.at_short()
    own = at[at["kind"].isin(kinds) & at["offer"].isin(list(weight))]
    if own.empty:
        return False
    counted = own["gpus"] * own["offer"].map(weight).astype(float)
    return bool(counted.groupby([own["scenario"], own["hour"]]).sum().max() >= enough)


def _scarce(case: Short) -> list[str]:
    """Offers that are not available in full in some of the hours."""
    found = []
    for use in QuotaUse:
        for offer in [] if use is QuotaUse.SPOT and case.off_spot else case.sold(use):
            share = share_of(case.problem, offer, use)
            if share is not None and (share[case.rows["scenario"], case.rows["hour"]] < 1).any():
                found.append(offer.id + (" as spot" if use is QuotaUse.SPOT else ""))
    return [f"not available in full: {', '.join(found)}"] if found else []


def _spot_shares(case: Short) -> list[str]:
    """The class's own limits of spot, where its spot reaches them."""
    one, sold = case.one, case.sold(QuotaUse.SPOT)
    if one.kind is not ClassKind.FIRM or not sold:
        return []
    at = case.at_short()
    own = at[(at["class"] == one.id) & (at["kind"] == str(Use.SPOT))]
    demand = demand_of(case.problem, one)
    found = []
    if one.min_firm_share > 0:
        used = own.groupby(["scenario", "hour"])["useful_gpus"].sum().to_dict()
        if _reached(case, used, demand, 1 - one.min_firm_share):
            found.append(f"min_firm_share {one.min_firm_share:g}: no more of it may run on spot")
    cap = one.spot_max_share_per_offer
    held = []
    for offer in sold if cap is not None else []:
        mine = own[own["offer"] == offer.id]
        used = mine.groupby(["scenario", "hour"])["useful_gpus"].sum().to_dict()
        if cap is not None and _reached(case, used, demand, cap):
            held.append(offer.id)
    if held:
        found.append(f"spot_max_share_per_offer {cap:g} on {', '.join(held)}")
    return found


def _reached(case: Short, used: dict[Hashable, float], demand: Array, share: float) -> bool:
    """Whether use reaches a share of the demand in some hour in which the class falls short."""
    pairs = zip(case.rows["scenario"].tolist(), case.rows["hour"].tolist(), strict=True)
    return any(
        used.get((s, h), 0.0) >= share * demand[s, h] * (1 - _FULL) - _FULL for s, h in pairs
    )


def _owned(case: Short) -> list[str]:
    """Capacity that is owned and has ended, or does not suffice, in those hours."""
    hours = case.rows["hour"].to_numpy()
    found = []
    for offer in case.offers:
        there = owned_gpus(offer, case.problem.hours)
        if not there.any():
            continue
        ends = sorted({e.until_hour for e in offer.existing if e.gpus and e.until_hour > 0})
        past = [end for end in ends if (hours >= end).any()]
        if past:
            found.append(f"owned capacity on {offer.id} ends at hour {past[0]}")
        elif there[hours].any():
            found.append(f"owned capacity on {offer.id} ({there[hours].max():g} GPUs) is full")
    return found


def _ahead(case: Short) -> list[str]:
    """Limits of what is bought ahead that forbid a reservation which would pay."""
    if case.plan is None:
        return []
    problem, found = case.problem, []
    ways = [(o, way) for o in case.offers for way in o.reservations if _pays(case, o, way)]
    budget = problem.upfront_budget
    left = 0.0 if budget is None else budget - _upfront(problem, case.plan)
    dear = [
        f"{offer.id}/{way.id} takes ${way.upfront * offer.gpus:,.10g}"
        for offer, way in ways
        if budget is not None and way.upfront * offer.gpus > left
    ]
    if dear:
        held = f"the upfront budget (${budget:,.10g}, ${left:,.10g} left)"
        found.append(f"{held}: one more of {', of '.join(dear)}")
    for limit in problem.commitment_limits:
        gpus = _committed(problem, case.plan, limit.id)
        mine = [o for o, _ in ways if o.id in limit.offers]
        if any(gpus + o.gpus > limit.gpus for o in mine):
            found.append(f"the commitment limit {limit.id} ({limit.gpus:g} GPUs, {gpus:g} held)")
    return found


def _pays(case: Short, offer: Offer, way: Reservation) -> bool:
    """Whether an instance more would cost less than the shortage that it alone would serve."""
    problem = case.problem
    start, end = active(way.start, way.term, problem.hours)
    rows = case.rows[(case.rows["hour"] >= start) & (case.rows["hour"] < end)]
    p = [problem.scenarios[int(s)].p for s in rows["scenario"]]
    served = float((rows["gpus"].clip(upper=offer.gpus) * p).sum())
    worth = case.one.shortage_penalty - offer.egress.get(case.one.id, 0.0)
    cost = way.rate * offer.gpus * paid_hours(way.start, way.term, problem.hours)
    return served * worth > cost


def _upfront(problem: Problem, plan: Plan) -> float:
    """USD paid upfront for a plan."""
    ways = {(o.id, w.id): w.upfront * o.gpus for o in problem.offers for w in o.reservations}
    return sum(ways.get((one.offer, one.id), 0.0) * one.count for one in plan.reservations)


def _committed(problem: Problem, plan: Plan, name: str) -> float:
    """GPUs of a plan that count against a limit of commitments."""
    limit = next(one for one in problem.commitment_limits if one.id == name)
    gpus = {offer.id: offer.gpus for offer in problem.offers if offer.id in limit.offers}
    held = sum(one.count * gpus.get(one.offer, 0) for one in plan.reservations)
    rates = limit.plan_gpus(problem.offers)
    return held + sum(one.usd_per_hour * rates.get(one.provider, 0.0) for one in plan.savings_plans)
