"""How far each class goes with a move: the share at which it pays, that expected, what binds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.assemble import Stage, base_name, owned_offer_id

if TYPE_CHECKING:
    from planner.supply import Supply
    from planner.waterfall import Solved, Waterfall

_SMALLEST = 0.005  # GPU-hours a month
_FULL = 0.999  # of what is owned


def class_shares(
    kind: str, where: tuple[str, str], waterfall: Waterfall, supply: Supply
) -> dict[str, Any]:
    """Break-even share, expected share and binding constraint of one class and offer.

    Of spot the shares are of a paid GPU-hour that does useful work: it pays where that is above
    the price of spot as a share of on demand. Of capacity that is paid for already any use pays;
    the expected share is that of its hours at work.
    """
    name, offer = where
    if kind == "move_to_spot":
        found = _on_spot(waterfall.stages[Stage.SPOT], name, offer, supply)
        if found["binding_constraint"] != "demand" and _region(offer) in waterfall.plan.scarce:
            found["binding_constraint"] = "quota"
        return found
    if kind == "use_idle_commitment":
        return _on_owned(waterfall.stages[Stage.AS_IS], offer, supply)
    scarce = _region(offer) in waterfall.plan.scarce
    return {"binding_constraint": "quota" if scarce else "demand"}


def _on_spot(solved: Solved, name: str, offer: str, supply: Supply) -> dict[str, Any]:
    sold = supply.offers[offer]
    even = sold.spot / sold.on_demand if sold.spot and sold.on_demand else None
    useful = {
        one.spot_throughput
        for one in solved.problem.offers
        for part in solved.problem.classes
        if base_name(part.id) == name and one.id in part.offers
        and base_name(one.id) == offer and one.spot is not None
    }  # fmt: skip
    return {
        "break_even_share": even,
        "expected_share": min(useful, default=None),
        "binding_constraint": _spot_binding(solved, name),
    }


def _spot_binding(solved: Solved, name: str) -> str:
    """What keeps the class from more spot, where it still pays for more by the hour."""
    parts = [one for one in solved.problem.classes if base_name(one.id) == name]
    used = solved.used[solved.used["class"].isin([one.id for one in parts])]
    by_hour = used.loc[used["kind"] == "on_demand", "gpu_hours"].sum()
    if by_hour <= _SMALLEST:
        return "demand"
    firm = max((one.min_firm_share for one in parts), default=0.0)
    for one in parts:
        cap = one.spot_max_share_per_offer
        sold = sum(o.id in one.offers and o.spot is not None for o in solved.problem.offers)
        if cap is not None and cap * sold < 1 - one.min_firm_share:
            return "spot_cap"
    return "min_firm_share" if firm > 0 else "demand"


def _on_owned(solved: Solved, offer: str, supply: Supply) -> dict[str, Any]:
    held = solved.reserved[solved.reserved["offer"] == owned_offer_id(offer)]
    there = (
        sum(o.gpus for o in supply.owned if o.offer == offer and not o.begins)
        * solved.problem.hours
    )
    share = min(1.0, float(held["gpus"].sum()) / there) if there else None
    full = share is not None and share >= _FULL
    return {
        "break_even_share": 0.0,
        "expected_share": share,
        "binding_constraint": "committed_capacity" if full else "demand",
    }


def _region(offer: str) -> str:
    """Cloud and region of an offer, as quotas are named."""
    return " ".join(offer.split("/")[:2])
