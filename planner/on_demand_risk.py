"""Capacity that a plan may count on against capacity that it hopes for, by class.

A price is no promise of a machine. Only machines that are kept are assured; a savings plan, and a
reservation that is a discount, pay for hours whose machines must be requested on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.frames import records
from data.risks import HopedFor
from planner.assemble import base_name, owned_offer_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.supply import Supply
    from planner.waterfall import Solved

_DIGITS = 3  # of GPU-hours a month
_MONTHS = 12.0
_KEPT = ("owned", "capacity_block", "capacity_reservation")


def keeps_machines(kind: str, cloud: str) -> bool:
    """Whether a commitment keeps machines, and is not a discount only.

    GPU commitments of Google Cloud must have reservations attached; regional reservations of AWS
    and those of Azure are discounts (public documentation of the clouds, read 2026-11).

    >>> keeps_machines("reserved", "gcp"), keeps_machines("reserved", "aws")
    (True, False)
    """
    return kind in _KEPT or (kind == "reserved" and cloud == "gcp")


def hoped_for(plan: Solved, supply: Supply, kinds: Mapping[str, str]) -> tuple[HopedFor, ...]:
    """One row a class and GPU family of the plan's dispatch, by name.

    `kinds` are the kinds of owned commitments by id; what is in it under no kind keeps no machine.
    """
    sums: dict[str, dict[str, float]] = {}
    for name, part, hours in [*_served(plan, supply, kinds), *_short(plan)]:
        entry = sums.setdefault(base_name(name), {})
        entry[part] = entry.get(part, 0.0) + hours
    return tuple(_row(name, sums[name]) for name in sorted(sums))


def _served(plan: Solved, supply: Supply, kinds: Mapping[str, str]) -> list[tuple[str, str, float]]:
    """Class id, part of HopedFor and useful GPU-hours a month of each row of the dispatch."""
    useful = {one.id: one.spot_throughput for one in plan.problem.offers}
    found = []
    for row in records(plan.used):
        name, offer, kind = (str(row[key]) for key in ("class", "offer", "kind"))
        hours = float(row["gpu_hours"])
        if kind == "reserved":
            kept = hours * assured_share(offer, supply, kinds)
            found += [(name, "assured", kept), (name, "discounted", hours - kept)]
        elif kind == "spot":
            found.append((name, "spot", hours * useful[offer]))
        else:
            found.append((name, "discounted" if kind == "savings_plan" else kind, hours))
    return found


def _short(plan: Solved) -> list[tuple[str, str, float]]:
    """The same of what no offer serves, the mean over scenarios."""
    month = plan.problem.hour_weight / _MONTHS
    return [(one.workload_class, "unserved", one.gpu_hours * month) for one in plan.short]


def assured_share(offer: str, supply: Supply, kinds: Mapping[str, str]) -> float:
    """Share of the committed GPU-hours of an offer that stand on machines that are kept for it.

    `kinds` are the kinds of owned commitments by id.
    """
    cloud = offer.split("/", 1)[0]
    place = base_name(offer)
    if offer != owned_offer_id(place):
        return float(keeps_machines("reserved", cloud))
    there = [(one, one.gpus * one.until_hour) for one in supply.owned if one.offer == place]
    total = sum(size for _, size in there)
    kept = sum(size for one, size in there if keeps_machines(kinds.get(one.id, ""), cloud))
    return kept / total if total else 0.0


def _row(name: str, parts: Mapping[str, float]) -> HopedFor:
    workload_class, family = name.rsplit("|", 1)
    hours = ("assured", "discounted", "on_demand", "spot", "unserved")
    return HopedFor(
        workload_class, family, *(round(parts.get(part, 0.0), _DIGITS) for part in hours)
    )
