"""Offers by the hour, on demand or as spot, that the plan does not use, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.money import HOURS_PER_MONTH
from data.reasons import PlanOption
from planner.assemble import base_name
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    from planner.problem import Offer
    from planner.supply import Supply
    from planner.waterfall import Solved

_SMALLEST = 0.005  # GPU-hours a month
_SAME = 1e-9  # USD per GPU-hour
_PLAIN = ("on_demand", "savings_plan")


def unused_hourly(plan: Solved, supply: Supply) -> list[PlanOption]:
    """Offers of the problem that no class buys by the hour, by offer.

    Each stands beside the dearest that a class which may use it pays by the hour for useful work:
    for a whole instance a month that is what it would save, its own price what it would cost.
    """
    paid = _paid(plan)
    used = {(offer, _kind(kind)) for _, offer, kind in paid}
    found = []
    for offer in plan.problem.offers:
        if offer.spot is not None:
            kind, price = "spot", offer.spot / offer.spot_throughput
        elif offer.on_demand is not None:
            kind, price = "on_demand", offer.on_demand
        else:
            continue
        if (offer.id, kind) not in used:
            found.append(_unused(offer, (kind, price), plan, paid))
    return sorted(found, key=lambda one: one.key)


def _kind(kind: str) -> str:
    return "on_demand" if kind in _PLAIN else kind


def _paid(plan: Solved) -> dict[tuple[str, str, str], float]:
    """USD per useful GPU-hour of every class, offer and way that is bought by the hour."""
    offers = {offer.id: offer for offer in plan.problem.offers}
    prices: dict[tuple[str, str, str], float] = {}
    for name, where, kind, hours in plan.used[["class", "offer", "kind", "gpu_hours"]].itertuples(
        index=False, name=None
    ):
        offer = offers.get(str(where))
        if offer is None or hours <= _SMALLEST:
            continue
        price = {
            "on_demand": offer.on_demand,
            "savings_plan": offer.sp_rate,
            "spot": None if offer.spot is None else offer.spot / offer.spot_throughput,
        }.get(str(kind))
        if price is not None:
            prices[str(name), offer.id, str(kind)] = price
    return prices


def _unused(
    offer: Offer,
    own: tuple[str, float],
    plan: Solved,
    paid: dict[tuple[str, str, str], float],
) -> PlanOption:
    kind, price = own
    users = {one.id for one in plan.problem.classes if offer.id in one.offers}
    dearest = max(
        ((value, who, where, how) for (who, where, how), value in paid.items() if who in users),
        default=None,
    )
    month = offer.gpus * HOURS_PER_MONTH
    demand = plan.problem.scenarios[0].demand
    place = base_name(offer.id).split("/")
    return PlanOption(
        kind=kind,
        cloud=place[0],
        region=place[1],
        name=place[2],
        term="" if offer.spot_throughput == 1.0 else f"useful {offer.spot_throughput:.4f}",
        count=0.0,
        usd_per_gpu_hour=round(offer.spot if kind == "spot" and offer.spot else price, 9),
        hourly_usd_per_gpu_hour=None,
        break_even_share=None,
        expected_share=offer.spot_throughput if kind == "spot" else None,
        needed_gpus=round(sum(float(demand[name].mean()) for name in sorted(users)), 6),
        owned_gpus=0.0,
        binding=None,
        why=_why(kind, price, dearest),
        saves_per_month=None if dearest is None else to_cents(dearest[0] * month),
        costs_per_month=to_cents(price * month),
    )


def _why(kind: str, price: float, dearest: tuple[float, str, str, str] | None) -> str:
    if dearest is None:
        return "the classes that may use it run on what is committed in every hour"
    value, who, where, how = dearest
    name = base_name(who).rsplit("|", 1)[0]
    if price >= value - _SAME:
        what = "a useful GPU-hour" if kind == "spot" else "a GPU-hour"
        place = " ".join(base_name(where).split("/")[1:])
        return (
            f"it costs ${price:.4f} {what}; {name} pays at most ${value:.4f} "
            f"({how.replace('_', ' ')}, {place})"
        )
    if kind == "spot":
        return f"the share of its work that {name} may run on spot is used up elsewhere"
    return f"a quota keeps {name} from it"
