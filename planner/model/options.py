"""Ways in which one class can buy a GPU-hour, and which of them no best plan ever needs.

An option is a second-stage column before it has hours: its price, what a bought GPU-hour is
worth, and the limits that it counts against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.model.shares import share_of
from planner.problem import ClassKind, QuotaUse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.problem import Offer, Problem, ProblemClass, Quota

    Quotas = Mapping[tuple[str, str, QuotaUse], Quota]

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

    `quota` names the limit that it counts against, with `weight` for each bought GPU. `plan_rate`
    is the value at which the provider's savings plan takes it, `cap` the largest share of demand
    on it (spot of firm classes), `size` the GPUs of one purchase where only whole instances are
    sold; `limited` tells that some hours do not have all of it.
    """

    use: Use
    offer: str
    price: float
    useful: float = 1.0
    quota: tuple[str, ...] | None = None
    weight: float = 1.0
    plan: str = ""
    plan_rate: float = 0.0
    cap: float | None = None
    size: int | None = None
    limited: bool = False

    @property
    def unit_price(self) -> float:
        """USD per useful GPU-hour."""
        return self.price / self.useful


@dataclass(frozen=True, slots=True)
class Menu:
    """The options of one class. `spot_share` bounds their spot together; None: bounded alone.

    `ceiling` is the least price at which any amount can be had (shortage, or on demand outside
    every quota and always available): nothing dearer is ever used.
    """

    options: tuple[Option, ...]
    spot_share: float | None
    ceiling: float


def quota_name(quota: Quota) -> tuple[str, ...]:
    """Provider and region of a quota, and what it counts where that is not everything.

    >>> from planner.problem import Quota
    >>> quota_name(Quota("aws", "us", 8.0)), quota_name(Quota("aws", "us", 8.0, uses=("spot",)))
    (('aws', 'us'), ('aws', 'us', 'spot'))
    """
    uses = () if len(quota.uses) == len(QuotaUse) else tuple(str(use) for use in quota.uses)
    return (quota.provider, quota.region, *uses)


def menu(problem: Problem, one: ProblemClass, quotas: Quotas, reduce: bool) -> Menu:
    """The options of a class; with `reduce` only those that some best plan may need."""
    on_demand, covered, spot = _sold(problem, one, quotas)
    shortage = Option(Use.SHORTAGE, "", one.shortage_penalty)
    share = 1 - one.min_firm_share if one.kind is ClassKind.FIRM else None
    if not reduce:
        kept = [*on_demand, *covered, *spot, shortage]
        return Menu(tuple(kept), share if spot else None, math.inf)
    free = [o.price for o in on_demand if o.quota is None and o.size is None and not o.limited]
    ceiling = min([one.shortage_penalty, *free])
    bought = _on_demand(on_demand, ceiling, one.shortage_penalty)
    spots, share = _needed_spot([o for o in spot if o.unit_price < ceiling], share)
    needed = [*bought, *_undominated(covered, ceiling), *spots]
    if not free or one.shortage_penalty < min(free):
        needed.append(shortage)
    return Menu(tuple(needed), share, ceiling)


def _sold(
    problem: Problem, one: ProblemClass, quotas: Quotas
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
        quota, weight = _counted(quotas, offer, QuotaUse.ON_DEMAND)
        limited = share_of(problem, offer, QuotaUse.ON_DEMAND) is not None
        if offer.on_demand is not None:
            option = Option(
                Use.ON_DEMAND,
                name,
                offer.on_demand + egress,
                quota=quota,
                weight=weight,
                size=offer.gpus if problem.on_demand_integer else None,
                limited=limited,
            )
            on_demand.append(option)
        if offer.sp_rate is not None and offer.provider in plans:
            option = Option(
                Use.SAVINGS_PLAN,
                name,
                egress,
                quota=quota,
                weight=weight,
                plan=offer.provider,
                plan_rate=offer.sp_rate,
                limited=limited,
            )
            covered.append(option)
        if offer.spot is not None:
            price = offer.spot + egress
            quota, weight = _counted(quotas, offer, QuotaUse.SPOT)
            limited = share_of(problem, offer, QuotaUse.SPOT) is not None
            cap = one.spot_max_share_per_offer if one.kind is ClassKind.FIRM else None
            option = Option(
                Use.SPOT,
                name,
                price,
                offer.spot_throughput,
                quota,
                weight,
                cap=cap,
                limited=limited,
            )
            spot.append(option)
    return on_demand, covered, spot


def _counted(quotas: Quotas, offer: Offer, use: QuotaUse) -> tuple[tuple[str, ...] | None, float]:
    """The quota that a purchase counts against, and what each of its GPUs counts there."""
    quota = quotas.get((offer.provider, offer.region, use))
    return (None, 1.0) if quota is None else (quota_name(quota), quota.per_gpu(offer))


def _replaces(rival: Option, option: Option) -> bool:
    """Whether a rival can always be had where the option can, and uses no more of a quota."""
    if rival.limited:
        return False
    # By useful GPU-hour: weight / useful, without the rounding of a division.
    lighter = rival.weight * option.useful <= option.weight * rival.useful
    return rival.quota is None or (rival.quota == option.quota and lighter)


def _last(option: Option) -> tuple[bool, bool, float]:
    """Among equals those that replace others come first."""
    return option.limited, option.quota is not None, option.weight


def _on_demand(options: Sequence[Option], ceiling: float, penalty: float) -> list[Option]:
    """On demand without the dearer of two that count against the same limits.

    Among whole instances one is dearer only if its size is a multiple of the other's. Nothing at
    the ceiling or above is needed, but for the one purchase that makes the ceiling.
    """
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.price, o.size or 0, _last(o))):
        rivals = (o for o in kept if _replaces(o, option))
        if option.price <= penalty and not any(
            option.size is None or option.size % (rival.size or 1) == 0 for rival in rivals
        ):
            kept.append(option)
    free = (o for o in kept if o.quota is None and not o.limited)
    makes = [o for o in free if o.price == ceiling]
    return [o for o in kept if o.price < ceiling or o in makes]


def _undominated(options: Sequence[Option], ceiling: float) -> list[Option]:
    """Plan-covered options without those that cost the plan and the class no less than another."""
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.plan_rate, o.price, _last(o))):
        rivals = (o for o in kept if o.plan == option.plan and _replaces(o, option))
        if option.price < ceiling and not any(rival.price <= option.price for rival in rivals):
            kept.append(option)
    return kept


def _needed_spot(
    options: Sequence[Option], share: float | None
) -> tuple[list[Option], float | None]:
    """Spot in merit order, without pools that enough better ones make needless.

    Where no pool counts against a quota, nor is limited in some hours, the shares are filled in
    order of price, so that bounds alone say what the joint limit would: then the second answer is
    None.
    """
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.unit_price, -o.useful, o.offer)):
        better = [o for o in kept if _replaces(o, option)]
        enough = bool(better) if share is None else _capacity(better) >= share - _TINY_SHARE
        if not enough and option.cap != 0:
            kept.append(option)
    if share is None or any(option.quota is not None or option.limited for option in kept):
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
