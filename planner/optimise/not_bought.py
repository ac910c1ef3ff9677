"""What is sold and was not bought, and why: ahead (for the whole file) and by the hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.money import HOURS_PER_MONTH
from planner.model.options import Use
from planner.model.reductions import demand_of
from planner.model.shares import share_of
from planner.optimise.first_stage import UPFRONT_BUDGET, Source
from planner.optimise.worth import usd
from planner.problem import ClassKind, QuotaUse, active, paid_hours

if TYPE_CHECKING:
    import pandas as pd

    from planner.optimise.worth import Worth
    from planner.problem import Offer, Problem, ProblemClass, Reservation

_NO_CLASS = "no class with demand may use it"
_NO_HOUR = "no hour would use it: what it serves is served at no more cost already"
_TWIN = "another reservation that the same classes may use costs no more"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reservation, block or savings plan that was not bought, and why.

    What the first of it would save by the hour (where not `exact`: at most) and would cost a month;
    of a savings plan 1 USD an hour.
    """

    kind: str
    offer: str
    id: str
    reason: str
    saves_usd_per_month: float
    costs_usd_per_month: float
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Unused:
    """An offer sold on demand or as spot of which no hour is bought, and why.

    `usd_per_gpu_hour` is its price, of spot per useful GPU-hour.
    """

    kind: str
    offer: str
    usd_per_gpu_hour: float
    reason: str


def rejected(worth: Worth) -> tuple[Rejected, ...]:
    """Everything sold for the whole file and not bought."""
    first, problem = worth.first, worth.problem
    found = []
    left = np.flatnonzero(worth.z <= 0)
    nearest = left[np.argsort((worth.costs - worth.saves)[left], kind="stable")]
    for number in nearest.tolist():
        one, costs = first.bought[number], float(worth.costs[number])
        saves, exact = worth.saved_by(number)
        reason = _reason(worth, number, (saves, costs), exact)
        found.append(Rejected(one.kind, one.offer, one.id, reason, saves, costs, exact))
    known = {(one.kind, one.offer, one.id) for one in first.bought}
    for offer in problem.offers:
        for way in offer.reservations:
            if ("reservation", offer.id, way.id) not in known:
                found.append(_left_out(worth, offer, way))
    for plan in problem.savings_plans:
        if ("plan", "", plan.provider) not in known:
            costs = _month(problem, paid_hours(plan.start, plan.term, problem.hours))
            reason = _plan_reason(problem, plan.provider)
            found.append(Rejected("plan", "", plan.provider, reason, 0.0, costs))
    for block in problem.blocks:
        if block.max and ("block", "", block.id) not in known:
            costs = _month(problem, block.price * block.gpus * block.length)
            found.append(Rejected("block", "", block.id, _NO_CLASS, 0.0, costs))
    return tuple(sorted(found, key=lambda r: (r.kind, r.offer, r.id)))


def unused(problem: Problem, dispatch: pd.DataFrame) -> tuple[Unused, ...]:
    """Every offer sold by the hour of which the dispatch buys none, by offer and kind."""
    pairs = zip(dispatch["kind"].tolist(), dispatch["offer"].tolist(), strict=True)
    used = set(pairs)
    found = []
    for offer in sorted(problem.offers, key=lambda one: one.id):
        for use, rate in ((Use.ON_DEMAND, offer.on_demand), (Use.SPOT, offer.spot)):
            if rate is not None and (str(use), offer.id) not in used:
                price = rate / (offer.spot_throughput if use is Use.SPOT else 1.0)
                reason = _unused_reason(problem, offer, use, price)
                found.append(Unused(str(use), offer.id, price, reason))
    return tuple(found)


def _reason(worth: Worth, number: int, month: tuple[float, float], exact: bool) -> str:
    saves, costs = month
    one = worth.first.bought[number]
    if saves <= worth.least:
        return _plan_reason(worth.problem, one.id) if one.kind == "plan" else _NO_HOUR
    most = "" if exact else "at most "
    if saves <= costs:
        return _compared(saves, costs, most)
    limit = worth.held_by(number)
    if limit is not None:
        return f"the {limit.label.replace('_', ' ', 1)} does not allow it"
    return (
        f"the first saves {most}{usd(saves)} a month, within the gap of the {usd(costs)} it costs"
    )


def _compared(saves: float, costs: float, most: str) -> str:
    digits = 0 if round(saves) < round(costs) else 2
    return f"the first saves {most}{usd(saves, digits)} a month and costs {usd(costs, digits)}"


def _left_out(worth: Worth, offer: Offer, way: Reservation) -> Rejected:
    """A reservation that no best plan needs."""
    problem = worth.problem
    costs = _month(problem, way.rate * offer.gpus * paid_hours(way.start, way.term, problem.hours))
    if not _users(problem, offer):
        return Rejected("reservation", offer.id, way.id, _NO_CLASS, 0.0, costs)
    saves, exact = 0.0, True
    for number, pool in enumerate(worth.found.reduced.pools):
        if any(one.id == offer.id for one in pool.offers):
            source = Source(number, *active(way.start, way.term, problem.hours))
            saves, exact = worth.saved_by_gpus(source, float(offer.gpus))
    reason = _TWIN
    needs = way.upfront * offer.gpus
    spent = sum(float(r.weights @ worth.z) for r in worth.first.limits if r.kind == UPFRONT_BUDGET)
    if problem.upfront_budget is not None and spent + needs > problem.upfront_budget:
        reason = "the upfront budget does not allow it"
    if exact and worth.least < saves <= costs and reason is not _TWIN:
        reason = _compared(saves, costs, "")
    return Rejected("reservation", offer.id, way.id, reason, saves, costs, exact)


def _plan_reason(problem: Problem, provider: str) -> str:
    """Why the first dollar an hour of a savings plan would save nothing."""
    covered = [
        (offer, one)
        for offer in problem.offers
        if offer.provider == provider and offer.sp_rate is not None
        for one in _users(problem, offer)
    ]
    if not covered:
        return _NO_CLASS
    closed = [_closed(problem, offer, QuotaUse.ON_DEMAND) for offer, _ in covered]
    if all(closed):
        return closed[0].replace("allow it", "allow what it would cover")
    open_ = [pair for pair, shut in zip(covered, closed, strict=True) if not shut]
    if all((o.sp_rate or 0.0) + o.egress.get(c.id, 0.0) >= c.shortage_penalty for o, c in open_):
        offer, one = open_[0]
        return (
            f"its rate on {offer.id} (${offer.sp_rate:,.4g}) is not below the price of a shortage "
            f"of {one.id} (${one.shortage_penalty:,.4g})"
        )
    return _NO_HOUR


def _closed(problem: Problem, offer: Offer, use: QuotaUse) -> str:
    """The quota of nothing, or the lack of any, that forbids an offer by the hour; else empty."""
    for quota in problem.quotas:
        here = (quota.provider, quota.region) == (offer.provider, offer.region)
        least = quota.per_gpu(offer)
        if here and use in quota.uses and quota.limit <= 0 and least:
            return (
                f"the quota {quota.provider} {quota.region} ({quota.limit:g} {quota.unit}) does "
                "not allow it"
            )
    share = share_of(problem, offer, use)
    return "it is available in no hour" if share is not None and not share.any() else ""


def _unused_reason(problem: Problem, offer: Offer, use: Use, price: float) -> str:
    users = _users(problem, offer)
    if not users:
        return _NO_CLASS
    shut = _closed(problem, offer, QuotaUse.SPOT if use is Use.SPOT else QuotaUse.ON_DEMAND)
    if shut:
        return shut
    if use is Use.SPOT and not any(_may_run_on_spot(one) for one in users):
        return f"{users[0].id} may not run on spot"
    dear = [one for one in users if price + offer.egress.get(one.id, 0.0) >= one.shortage_penalty]
    if len(dear) == len(users):
        one = users[0]
        return f"a shortage of {one.id} costs ${one.shortage_penalty:,.4g}, no more than this does"
    rival = _cheaper(problem, users, (offer, use, price))
    return rival or "what is owned or bought ahead serves its classes at no more cost"


def _cheaper(
    problem: Problem, users: list[ProblemClass], mine: tuple[Offer, Use, float]
) -> str | None:
    """The cheapest other way by the hour of the classes, where it costs no more."""
    offer, use, price = mine
    ways = []
    for other in problem.offers:
        for one in users:
            surcharge = other.egress.get(one.id, 0.0) - offer.egress.get(one.id, 0.0)
            if other.id not in one.offers:
                continue
            if other.on_demand is not None and (other.id, Use.ON_DEMAND) != (offer.id, use):
                open_ = not _closed(problem, other, QuotaUse.ON_DEMAND)
                ways += [(other.on_demand + surcharge, other.id, "on demand")] if open_ else []
            if other.spot is not None and (other.id, Use.SPOT) != (offer.id, use):
                open_ = not _closed(problem, other, QuotaUse.SPOT) and _may_run_on_spot(one)
                usd = other.spot / other.spot_throughput
                ways += [(usd + surcharge, other.id, "as spot")] if open_ else []
    if not ways or min(ways)[0] > price:
        return None
    usd, name, how = min(ways)
    return f"{name} {how} at ${usd:,.4g} a useful GPU-hour is no dearer"


def _may_run_on_spot(one: ProblemClass) -> bool:
    return one.kind is not ClassKind.FIRM or (
        one.min_firm_share < 1 and one.spot_max_share_per_offer != 0
    )


def _users(problem: Problem, offer: Offer) -> list[ProblemClass]:
    """Classes with demand that may use an offer."""
    named = [one for one in problem.classes if offer.id in one.offers]
    return [one for one in named if demand_of(problem, one).any()]


def _month(problem: Problem, usd_per_hour_weight: float) -> float:
    """USD a month of what costs so much over the file, an hour of it weighing one."""
    return usd_per_hour_weight * float(HOURS_PER_MONTH) / problem.hours
