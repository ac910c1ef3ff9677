"""What a solved plan buys, in the terms a buyer needs: rate, term, liability, break-even, use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.money import HOURS_PER_MONTH
from planner.supply import TERM_HOURS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.alternatives import Alternative, Key
    from planner.supply import Supply, SupplyOffer
    from planner.waterfall import Solved

_ASSURED = {"gcp": "yes"}
_SMALLEST = 0.005  # USD a month


@dataclass(frozen=True, slots=True)
class Purchase:
    """One commitment to buy; money in USD, shares 0 to 1, `weight` shares out the saving.

    `key` is its kind, its offer (or provider) and its id in the problem; `binding` what keeps the
    plan from buying more; `instead` the next best without it, where that was worked out.
    """

    key: Key
    kind: str
    cloud: str
    region: str | None
    name: str
    action: str
    what: str
    gpus: float | None
    count: float | None
    usd_per_hour: float
    term_hours: int
    payment: str
    upfront: float
    total_commitment: float
    capacity_assured: str
    break_even_share: float | None
    expected_share: float | None
    why: str
    weight: float
    binding: str = "demand"
    instead: Alternative | None = None


def purchases(
    solved: Solved, supply: Supply, instead: Mapping[Key, Alternative] | None = None
) -> list[Purchase]:
    """Everything the plan buys, reservations first, in order of offer and term."""
    bought = [
        _reservation(supply.offers[one.offer], one.id, one.count, solved)
        for one in sorted(solved.result.reservations, key=lambda one: (one.offer, one.id))
    ]
    bought += [
        _savings_plan(one.provider, one.usd_per_hour, solved, supply)
        for one in sorted(solved.result.savings_plans, key=lambda one: one.provider)
    ]
    return [_explained(one, solved, (instead or {}).get(one.key)) for one in bought]


def _explained(one: Purchase, solved: Solved, instead: Alternative | None) -> Purchase:
    """The purchase with what binds it and what the plan would do without it."""
    bound = replace(one, binding=_binding(one, solved), instead=instead)
    if instead is None:
        return bound
    return replace(
        bound, why=f"{one.why}. Without it the best plan would {alternative_words(instead)}"
    )


def alternative_words(instead: Alternative) -> str:
    """What the best plan without a purchase would do, and what that costs a month."""
    more = instead.usd_per_month
    if abs(more) <= max(instead.within, 1.0):
        cost = "about the same"
    elif more > 0:
        cost = f"${more:,.0f} more a month"
    else:
        cost = f"${-more:,.0f} less a month, within the tolerance"
    return f"{instead.words}, and cost {cost}"


def _binding(one: Purchase, solved: Solved) -> str:
    """What keeps the plan from buying more: the budget, the ladder, a quota, or demand itself.

    Where a quota holds back what is bought by the hour, what is reserved stands in for it.
    """
    why = solved.result.why
    if why is None:
        return "service_level" if solved.served else "demand"
    kind = "plan" if one.kind == "savings_plan" else "reservation"
    name = one.key[1] if kind == "reservation" else ""
    # A limit that is used up, and of which more would save nothing, holds nothing back.
    dear = {f"{limit.kind} {limit.name}" for limit in why.limits if limit.most > _SMALLEST}
    for line in why.lines:
        same = (line.kind, line.offer, line.id) == (kind, name, one.key[2])
        if same and (line.binding == "upfront_budget" or line.binding in dear):
            return line.binding.split(" ")[0]
    scarce = solved.scarce
    if one.region is None:
        scarce = frozenset(name.split(" ")[0] for name in scarce)
    place = one.cloud if one.region is None else f"{one.cloud} {one.region}"
    return "quota" if place in scarce else "demand"


def used_share(solved: Solved, offer: str, bought_gpus: float) -> float | None:
    """Share of the offer's bought GPU-hours at work; what is owned already stands apart."""
    if bought_gpus <= 0:
        return None
    rows = solved.reserved[solved.reserved["offer"] == offer]
    return min(1.0, float(rows["gpus"].sum()) / (bought_gpus * solved.problem.hours))


def _reservation(offer: SupplyOffer, term_id: str, count: int, solved: Solved) -> Purchase:
    term = next(one for one in offer.terms if f"{one.name}/{one.payment}" == term_id)
    gpus = float(count * offer.gpus)
    bought = sum(
        one.count * offer.gpus for one in solved.result.reservations if one.offer == offer.id
    )
    expected = used_share(solved, offer.id, float(bought))
    even = term.rate / offer.on_demand if offer.on_demand else None
    years = term.term_hours // 8760
    per_gpu = (offer.on_demand or 2 * term.rate) - term.rate
    share = "" if expected is None else f", expected at work {expected:.0%} of the hours"
    against = "" if even is None else f"it pays above {even:.0%}"
    return Purchase(
        key=("reserved", offer.id, term_id),
        kind="reserved",
        cloud=offer.cloud,
        region=offer.region,
        name=f"{offer.instance_type} {term.name} {term.payment}",
        action=f"Reserve {count} x {offer.instance_type} in {offer.region} for {years} year"
        + ("s" if years > 1 else ""),
        what=f"{count} instances, {gpus:,.0f} GPUs at ${term.rate:.4f} per GPU-hour",
        gpus=gpus,
        count=float(count),
        usd_per_hour=gpus * term.rate,
        term_hours=term.term_hours,
        payment=term.payment,
        upfront=term.upfront * gpus,
        total_commitment=gpus * term.rate * term.term_hours,
        capacity_assured=_ASSURED.get(offer.cloud, "no"),
        break_even_share=even,
        expected_share=expected,
        why=f"Needed hours fill these GPUs most of the time: {against}{share}",
        weight=gpus * max(per_gpu, 1e-6),
    )


def _savings_plan(cloud: str, usd_per_hour: float, solved: Solved, supply: Supply) -> Purchase:
    offers = [o for o in supply.offers.values() if o.cloud == cloud and o.plan_rate is not None]
    in_problem = {one.id for one in solved.problem.offers}
    offers = [offer for offer in offers if offer.id in in_problem]
    rates = [offer.plan_rate for offer in offers if offer.plan_rate is not None]
    rows = solved.used[solved.used["kind"] == "savings_plan"]
    rate_of = {offer.id: offer.plan_rate or 0.0 for offer in offers}
    spent = float((rows["gpu_hours"] * rows["offer"].map(rate_of).astype(float).fillna(0.0)).sum())
    expected = min(1.0, spent / (usd_per_hour * HOURS_PER_MONTH)) if usd_per_hour else None
    evens = [o.plan_rate / o.on_demand for o in offers if o.plan_rate and o.on_demand]
    even = min(evens, default=None)
    term_hours = TERM_HOURS["reserved_1y"]
    types = ", ".join(sorted({offer.instance_type for offer in offers}))
    return Purchase(
        key=("savings_plan", cloud, cloud),
        kind="savings_plan",
        cloud=cloud,
        region=None,
        name=f"savings plan 1y ({types})",
        action=f"Buy a 1-year {cloud} savings plan of ${usd_per_hour:,.2f} an hour",
        what=f"${usd_per_hour:,.2f} an hour, about {usd_per_hour / min(rates):,.1f} GPUs",
        gpus=usd_per_hour / min(rates),
        count=None,
        usd_per_hour=usd_per_hour,
        term_hours=term_hours,
        payment="monthly",
        upfront=0.0,
        total_commitment=usd_per_hour * term_hours,
        capacity_assured="no",
        break_even_share=even,
        expected_share=expected,
        why="Needed hours use the commitment most of the time"
        + ("" if expected is None else f": expected {expected:.0%}")
        + ("" if even is None else f", it pays above {even:.0%}"),
        weight=usd_per_hour * max((1 / even - 1) if even else 1.0, 1e-6),
    )
