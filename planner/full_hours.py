"""Hours in which a place was full, so that what ran there is a lower bound on what was wanted.

A place is full where one more machine would not have fitted its quota, or where all that is owned
there was at work and nothing is sold by the hour, or somebody waited all the same. It bounds the
classes that had GPUs there, none of them idle, and of which nobody knows what they waited for:
what is known is counted, and needs no guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.supply import offer_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from planner.assemble import Need
    from planner.settings import QuotaRule
    from planner.supply import Supply, SupplyOffer

    Array = npt.NDArray[np.float64]
    Hours = npt.NDArray[np.bool_]

_OPTIONS = {"on_demand": ("on_demand", "savings_plan"), "spot": ("spot",)}
_NEAR = 1e-6  # of a GPU or vCPU
_IDLE = 1.0  # GPU-hours of its own in an hour: who has them lacks nothing


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A place that was full in some observed hours: its name, its offers, and the hours."""

    name: str
    offers: frozenset[str]
    hours: Hours


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """GPU-hours of the bill by observed hour: of an offer and way of paying, and idle ones.

    `billed` by offer and purchase option, `idle` (billed and not needed) by class id and offer.
    """

    billed: Mapping[tuple[str, str], Array]
    idle: Mapping[tuple[str, str], Array]
    hours: int


def ran_of(bill: pd.DataFrame, covered: pd.DatetimeIndex) -> Ran:
    """What ran in the observed hours. `bill` is FLEET_HOURS, planned rows only, hours as float."""
    rows = bill.dropna(subset=["cloud", "region", "instance_type", "gpu_family"])
    hours = pd.DatetimeIndex(rows["hour_start"]).as_unit(covered.unit)
    place = covered.get_indexer(hours)
    rows = rows.assign(place=place)[place >= 0]
    keys = ["cloud", "region", "instance_type"]
    billed: dict[tuple[str, str], Array] = {}
    for key, part in rows.groupby([*keys, "purchase_option"], sort=True):
        *where, option = (str(word) for word in key)
        billed[offer_id(*where), option] = _by_hour(part, part["gpu_hours"], len(covered))
    idle: dict[tuple[str, str], Array] = {}
    for key, part in rows.groupby([*keys, "workload_class", "gpu_family"], sort=True):
        *where, name, family = (str(word) for word in key)
        unused = part["gpu_hours"] - part["needed_gpu_hours"]
        idle[f"{name}|{family}", offer_id(*where)] = _by_hour(part, unused, len(covered))
    return Ran(billed, idle, len(covered))


def _by_hour(part: pd.DataFrame, values: pd.Series, hours: int) -> Array:
    sums = np.bincount(part["place"], values.to_numpy(dtype=float), minlength=hours)
    return sums.astype(float)


def full_quotas(rules: Iterable[QuotaRule], ran: Ran, supply: Supply) -> list[Place]:
    """The hours in which no further machine would have fitted a stated quota, quota by quota.

    A limit below what ran is not what held: nothing is known of that quota's hours.
    """
    found = []
    for rule in rules:
        here = [
            o for o in supply.offers.values() if (o.cloud, o.region) == (rule.cloud, rule.region)
        ]
        if not here or (rule.vcpus is not None and any(o.vcpus is None for o in here)):
            continue
        options = [option for use in rule.uses for option in _OPTIONS[use]]
        used = np.zeros(ran.hours)
        for offer in here:
            for option in options:
                gpus = ran.billed.get((offer.id, option))
                if gpus is not None:
                    used += gpus * _units(rule, offer) / offer.gpus
        limit = (rule.gpus if rule.vcpus is None else rule.vcpus) or 0.0
        there = [o for o in here if any((o.id, option) in ran.billed for option in options)]
        if not there or float(used.max(initial=0.0)) > limit + _NEAR:
            continue
        step = min(_units(rule, offer) for offer in there)
        unit = "GPUs" if rule.vcpus is None else "vCPUs"
        found.append(
            Place(
                f"the quota of {rule.cloud} {rule.region} ({limit:g} {unit})",
                frozenset(offer.id for offer in there),
                (used > 0) & (used + step > limit + _NEAR),
            )
        )
    return found


def _units(rule: QuotaRule, offer: SupplyOffer) -> float:
    """What one machine of an offer takes of a quota."""
    return float(offer.gpus) if rule.vcpus is None else float(offer.vcpus or 0)


def full_owned(needs: Sequence[Need], waits: Mapping[str, Array], supply: Supply) -> list[Place]:
    """The hours in which all that is owned of an offer was at work and no more was to be had.

    `waits` are GPUs waited for by class id, NaN where there is no reading.
    """
    found = []
    for name, offer in sorted(supply.offers.items()):
        gpus = sum(one.gpus for one in supply.owned if one.offer == name and not one.begins)
        users = [need for need in needs if name in need.firm]
        if gpus <= 0 or not users:
            continue
        hours = np.sum([need.firm[name] for need in users], axis=0) >= gpus - _NEAR
        if offer.on_demand is not None or offer.spot is not None:
            queues = [waits[need.id] for need in users if need.id in waits]
            hours &= np.sum([np.nan_to_num(one) for one in queues] or [0.0 * hours], axis=0) > 0
        found.append(
            Place(f"all that is owned of {offer.instance_type} in {offer.region}",
                  frozenset({name}), hours)
        )  # fmt: skip
    return found


def bounded(need: Need, places: Iterable[Place], ran: Ran, waits: Array | None) -> dict[str, Hours]:
    """The hours in which a class's GPUs on an offer are a lower bound, by offer.

    `waits` are the GPUs that it waited for, NaN where there is no reading; None: nowhere.
    """
    unknown = np.ones(ran.hours, dtype=bool) if waits is None else np.isnan(waits)
    found: dict[str, Hours] = {}
    for place in places:
        for offer in sorted(place.offers & set(need.present)):
            had = need.firm.get(offer, 0.0) + need.spot.get(offer, np.zeros(ran.hours))
            idle = ran.idle.get((need.id, offer), np.zeros(ran.hours))
            hours = place.hours & unknown & (had > 0) & (idle < _IDLE)
            if hours.any():
                found[offer] = found.get(offer, np.zeros(ran.hours, dtype=bool)) | hours
    return found
