"""Ways in which one class can buy a GPU-hour, and which of them no best plan ever needs.

An option is a second-stage column before it has hours: its price, what a bought GPU-hour is
worth, and the limits that it counts against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.problem import ClassKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.problem import Offer, Problem, ProblemClass

_TINY_SHARE = 1e-12


class Use(StrEnum):
    """How a GPU-hour is had."""

    RESERVED = "reserved"
    ON_DEMAND = "on_demand"
    SAVINGS_PLAN = "savings_plan"
    SPOT = "spot"
    SHORTAGE = "shortage"


@dataclass(frozen=True, slots=True)
class Option:
    """One way to buy: USD per bought GPU-hour, and useful GPU-hours per bought one.

    `quota` is the (provider, region) whose limit it counts against, `plan_rate` the value at
    which the provider's savings plan takes it, `cap` the largest share of demand on it (spot of
    firm classes), `size` the GPUs of one purchase where only whole instances are sold.
    """

    use: Use
    offer: str
    price: float
    useful: float = 1.0
    quota: tuple[str, str] | None = None
    plan: str = ""
    plan_rate: float = 0.0
    cap: float | None = None
    size: int | None = None

    @property
    def unit_price(self) -> float:
        """USD per useful GPU-hour."""
        return self.price / self.useful


@dataclass(frozen=True, slots=True)
class Menu:
    """The options of one class. `spot_share` bounds their spot together; None: bounded alone.

    `ceiling` is the least price at which any amount can be had (shortage, or on demand outside
    every quota): nothing dearer is ever used.
    """

    options: tuple[Option, ...]
    spot_share: float | None
    ceiling: float


def menu(problem: Problem, one: ProblemClass, quotas: set[tuple[str, str]], reduce: bool) -> Menu:
    """The options of a class; with `reduce` only those that some best plan may need."""
    on_demand, covered, spot = _sold(problem, one, quotas)
    shortage = Option(Use.SHORTAGE, "", one.shortage_penalty)
    share = 1 - one.min_firm_share if one.kind is ClassKind.FIRM else None
    if not reduce:
        kept = [*on_demand, *covered, *spot, shortage]
        return Menu(tuple(kept), share if spot else None, math.inf)
    free = [o.price for o in on_demand if o.quota is None and o.size is None]
    ceiling = min([one.shortage_penalty, *free])
    bought = _on_demand(on_demand, ceiling, one.shortage_penalty)
    spots, share = _needed_spot([o for o in spot if o.unit_price < ceiling], share)
    needed = [*bought, *_undominated(covered, ceiling), *spots]
    if not free or one.shortage_penalty < min(free):
        needed.append(shortage)
    return Menu(tuple(needed), share, ceiling)


def _sold(
    problem: Problem, one: ProblemClass, quotas: set[tuple[str, str]]
) -> tuple[list[Option], list[Option], list[Option]]:
    """Everything sold to a class: on demand, covered by savings plans, and spot."""
    offers = {offer.id: offer for offer in problem.offers}
    plans = {plan.provider for plan in problem.savings_plans}
    on_demand: list[Option] = []
    covered: list[Option] = []
    spot: list[Option] = []
    for name in sorted(one.offers):
        offer = offers[name]
        egress = offer.egress.get(one.id, 0.0)
        pair = (offer.provider, offer.region)
        quota = pair if pair in quotas else None
        if offer.on_demand is not None:
            size = offer.gpus if problem.on_demand_integer else None
            price = offer.on_demand + egress
            on_demand.append(Option(Use.ON_DEMAND, name, price, quota=quota, size=size))
        if offer.sp_rate is not None and offer.provider in plans:
            option = Option(
                Use.SAVINGS_PLAN,
                name,
                egress,
                quota=quota,
                plan=offer.provider,
                plan_rate=offer.sp_rate,
            )
            covered.append(option)
        if offer.spot is not None:
            spot.append(_spot(offer, one, offer.spot + egress, quota))
    return on_demand, covered, spot


def _spot(offer: Offer, one: ProblemClass, price: float, quota: tuple[str, str] | None) -> Option:
    cap = one.spot_max_share_per_offer if one.kind is ClassKind.FIRM else None
    return Option(Use.SPOT, offer.id, price, offer.spot_throughput, quota, cap=cap)


def _on_demand(options: Sequence[Option], ceiling: float, penalty: float) -> list[Option]:
    """On demand without the dearer of two that count against the same limits.

    Among whole instances one is dearer only if its size is a multiple of the other's. Nothing at
    the ceiling or above is needed, but for the one purchase that makes the ceiling.
    """
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.price, o.size or 0, o.quota is not None)):
        rivals = (o for o in kept if o.quota in (None, option.quota))
        if option.price <= penalty and not any(
            option.size is None or option.size % (rival.size or 1) == 0 for rival in rivals
        ):
            kept.append(option)
    return [o for o in kept if o.price < ceiling or (o.price == ceiling and o.quota is None)]


def _undominated(options: Sequence[Option], ceiling: float) -> list[Option]:
    """Plan-covered options without those that cost the plan and the class no less than another."""
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.plan_rate, o.price, o.quota is not None)):
        rivals = (o for o in kept if o.plan == option.plan and o.quota in (None, option.quota))
        if option.price < ceiling and not any(rival.price <= option.price for rival in rivals):
            kept.append(option)
    return kept


def _needed_spot(
    options: Sequence[Option], share: float | None
) -> tuple[list[Option], float | None]:
    """Spot in merit order, without pools that enough better ones make needless.

    Where no pool counts against a quota, the shares are filled in order of price, so that bounds
    alone say what the joint limit would: then the second answer is None.
    """
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.unit_price, -o.useful, o.offer)):
        better = [
            o
            for o in kept
            if o.quota is None or (o.quota == option.quota and o.useful >= option.useful)
        ]
        enough = bool(better) if share is None else _capacity(better) >= share - _TINY_SHARE
        if not enough and option.cap != 0:
            kept.append(option)
    if share is None or any(option.quota is not None for option in kept):
        return kept, share if kept else None
    filled: list[Option] = []
    for option in kept:
        cap = min(1.0 if option.cap is None else option.cap, share)
        filled.append(_capped(option, cap))
        share -= cap
    return filled, None


def _capacity(options: Sequence[Option]) -> float:
    return math.fsum(1.0 if option.cap is None else option.cap for option in options)


def _capped(option: Option, cap: float) -> Option:
    return Option(option.use, option.offer, option.price, option.useful, cap=cap)
