"""Demand that a fleet's own hours do not show: what queued for GPUs, and what found no room.

Both belong to the demand to come alone. Nobody paid for GPUs that nobody had, so today's bill and
what is saved of it know nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from data.unmet import UnmetDemand
from planner.full_hours import bounded, full_owned, full_quotas, ran_of
from planner.future import RECENT, shares_of
from planner.waiting import waiting_gpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd

    from planner.assemble import Need
    from planner.full_hours import Place
    from planner.future import Future
    from planner.planning import NightInputs
    from planner.supply import Supply

    Array = npt.NDArray[np.float64]

_DIGITS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Unmet:
    """The needs with what queued and what was full, and what there is to say of it.

    `waits` are GPUs waited for by class id and observed hour, NaN where there is no reading;
    `warnings` are for people to act on, `notes` only to know.
    """

    needs: list[Need]
    places: tuple[Place, ...] = ()
    waits: Mapping[str, Array] | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether anything queued or was full."""
        return any(need.waited or need.full for need in self.needs)


def with_unmet(
    needs: Sequence[Need], bill: pd.DataFrame, supply: Supply, given: NightInputs
) -> Unmet:
    """The needs with GPUs waited for and with the hours in which a place was full.

    `bill` is FLEET_HOURS, planned rows only, hours as float.
    """
    waiting = waiting_gpus(given.waiting, given.jobs, needs, given.covered)
    ran = ran_of(bill, given.covered)
    places = [
        *full_quotas(given.settings.quotas, ran, supply),
        *full_owned(needs, waiting.gpus, supply),
    ]
    made = []
    for need in needs:
        waits = waiting.gpus.get(need.id)
        made.append(
            replace(
                need,
                waited={} if waits is None else _placed(need, np.nan_to_num(waits)),
                read=None if waits is None else ~np.isnan(waits),
                full=bounded(need, places, ran, waits),
            )
        )
    return Unmet(made, tuple(places), waiting.gpus, waiting.notes, waiting.warnings)


def _placed(need: Need, gpus: Array) -> dict[str, Array]:
    """GPUs waited for at the offers of the class, divided as what it had of late."""
    if not gpus.any():
        return {}
    shares = shares_of([need.had(offer) for offer in need.present])
    return {
        offer: gpus * share
        for offer, share in zip(need.present, shares, strict=True)
        if share > 0
    }  # fmt: skip


def unmet_rows(
    unmet: Unmet, planned: Future | None, plain: Future | None
) -> tuple[UnmetDemand, ...]:
    """What queued and what was full, one row a class and GPU family that knew either.

    `planned` is the demand to come with it, `plain` without.
    """
    rows = []
    for need in unmet.needs:
        if not (need.waited or need.full):
            continue
        waited = np.sum([*need.waited.values(), np.zeros(len(need.total))], axis=0)
        full = np.any([*need.full.values(), np.zeros(len(need.total), dtype=bool)], axis=0)
        level = more = None
        if planned is not None and plain is not None:
            level = round(float(planned.point[need.id].mean()), _DIGITS)
            more = round(level - float(plain.point[need.id].mean()), _DIGITS)
        rows.append(
            UnmetDemand(
                workload_class=need.workload_class,
                gpu_family=need.gpu_family,
                hours=len(need.total),
                full_hours=int(full.sum()),
                censored_hours=int(need.bounded_on(need.present).sum()),
                full_places=tuple(one.name for one in unmet.places if _held(one, need)),
                waited_hours=int((waited > 0).sum()),
                waiting_gpu_hours=round(float(waited.sum()), 3),
                recorded_gpus=round(float(need.total.mean()), _DIGITS),
                planned_more=more,
                planned_gpus=level,
                recent_waiting=round(float(waited[-RECENT:].mean()), _DIGITS),
            )
        )
    return tuple(rows)


def _held(place: Place, need: Need) -> bool:
    """Whether a place was full in an hour in which it bounds the class."""
    return any((place.hours & need.full[o]).any() for o in place.offers if o in need.full)
