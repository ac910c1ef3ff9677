"""What is paid for already: owned commitments as GPUs of an offer, until their end.

A reservation is as many GPUs as it has instances. A savings plan, and whatever no table names, is
as many GPUs of each offer as the bill shows it to have covered, and as its unused dollars would
have covered: never more than the GPU bill itself shows, since the same plan may cover other
machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.frames import records
from data.hours import HOUR
from data.money import HOURS_PER_MONTH
from data.names import UNUSED_PREFIX
from data.schema import COMMITTED_OPTIONS
from planner.begun import begun_since
from planner.supply import KEY, Owned, offer_id

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd

    from planner.horizon import Horizon
    from planner.supply import SupplyOffer

_CAPACITY_KINDS = ("reserved", "capacity_block", "owned")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the bill shows of one commitment: covered and unused rows, and the horizon."""

    used: pd.DataFrame
    unused_usd: float
    paid_usd: float
    horizon: Horizon

    @property
    def month(self) -> float:
        """What turns a sum over the window into one over a month."""
        return HOURS_PER_MONTH / self.horizon.observed_hours


def owned_from(
    commitments: pd.DataFrame,
    bill: pd.DataFrame,
    offers: dict[str, SupplyOffer],
    horizon: Horizon,
    now: datetime | None = None,
) -> tuple[tuple[Owned, ...], tuple[str, ...]]:
    """Owned capacity inside the horizon, sorted, and notes on what could not be placed.

    `commitments` is COMMITMENTS, `bill` FLEET_HOURS with money as float. A commitment that ended in
    the window stays as capacity of today that is gone tomorrow; one that started after the window
    and before `now` was bought since, and is there from the first planned hour on; one that starts
    later still is left out.
    A commitment that no table names is kept for the whole horizon, a capacity block not at all.
    """
    owned: list[Owned] = []
    notes: list[str] = []
    seen = {
        str(name): _seen(rows, horizon)
        for name, rows in bill[bill["purchase_option"].isin(COMMITTED_OPTIONS)].groupby(
            "commitment_id"
        )
    }
    table = {str(row["id"]): row for row in records(commitments)}
    until = horizon.start if now is None else max(now, horizon.start)
    for name in sorted(table):
        row = table[name]
        if horizon.start <= row["start"] < until:
            begun, told = begun_since(row, bill, offers, horizon)
            owned.extend(begun)
            notes.extend(told)
            seen.pop(name, None)
            del table[name]
    for name in sorted({*seen, *table}):
        found, note = _one(name, table.get(name), seen.get(name), (offers, horizon))
        owned.extend(found)
        notes.extend(note)
    return tuple(sorted(owned, key=lambda one: (one.id, one.offer))), tuple(notes)


def _one(
    name: str,
    row: dict[str, Any] | None,
    seen: _Seen | None,
    basis: tuple[dict[str, SupplyOffer], Horizon],
) -> tuple[list[Owned], list[str]]:
    offers, horizon = basis
    if row is None:
        if seen is None or seen.used.empty:
            return [], []
        if seen.used["purchase_option"].eq("capacity_block").all():
            # A block ends within months, whatever its end: it must not look free from then on.
            note = f"block {name} has no end date: it is of today alone until a commitments table "
            return _by_cover(name, seen, offers, 0, 1.0), [f"{note}names it"]
        note = f"commitment {name} has no end date: name it in a commitments table"
        return _by_cover(name, seen, offers, horizon.hours, 1.0), [note]
    if row["kind"] == "capacity_reservation":
        return [], []
    if row["start"] >= horizon.start:
        return [], [f"commitment {name} starts on {row['start']:%Y-%m-%d}: it is not counted yet"]
    until = horizon.until(row["end"])
    if seen is None and until == 0:
        return [], []
    place = offer_id(str(row["cloud"]), str(row["region"]), str(row["instance_type"]))
    if row["kind"] in _CAPACITY_KINDS and row["count"] and place in offers:
        return [_by_count(name, row, seen, offers[place], until)], []
    if seen is None or seen.used.empty:
        return [], [f"commitment {name} is left out: no machine type is known that it covers"]
    return _by_cover(name, seen, offers, until, _active_share(row, horizon)), []


def _by_count(
    name: str, row: dict[str, Any], seen: _Seen | None, offer: SupplyOffer, until: int
) -> Owned:
    gpus = float(row["count"]) * offer.gpus
    paid = 0.0 if seen is None else seen.paid_usd * seen.month
    ahead = paid
    if row["usd_per_instance_hour"] is not None and paid > 0:
        ahead = float(row["usd_per_instance_hour"]) * float(row["count"]) * HOURS_PER_MONTH
    return Owned(name, offer.id, gpus, until, paid, ahead)


def _by_cover(
    name: str, seen: _Seen, offers: dict[str, SupplyOffer], until: int, active: float
) -> list[Owned]:
    """One entry per offer that the commitment covered; its unused dollars go to the largest."""
    sums = seen.used.groupby(KEY, sort=True)[["gpu_hours", "cost"]].sum()
    largest = sums["gpu_hours"].idxmax()
    made = []
    for key, row in sums.iterrows():
        hours, cost = float(row["gpu_hours"]), float(row["cost"])
        if key == largest and cost > 0:
            hours += seen.unused_usd / (cost / hours)
            cost += seen.unused_usd
        place = offer_id(*(str(word) for word in key))  # type: ignore[attr-defined]  # three words
        if place in offers:
            gpus = hours / (seen.horizon.observed_hours * active)
            paid = cost * seen.month
            made.append(Owned(name, place, gpus, until, paid, paid / active))
    return made


def _active_share(row: dict[str, Any], horizon: Horizon) -> float:
    """Share of the window's hours in which the commitment was there."""
    first: datetime = horizon.start - horizon.observed_hours * HOUR
    began, ended = max(row["start"], first), min(row["end"], horizon.start)
    return max(float((ended - began) / HOUR) / horizon.observed_hours, 1e-6)


def _seen(rows: pd.DataFrame, horizon: Horizon) -> _Seen:
    is_unused = rows["instance_id"].str.startswith(UNUSED_PREFIX)
    used = rows[~is_unused & (rows["gpu_hours"] > 0)].dropna(subset=KEY)
    unused = float(rows.loc[is_unused, "cost"].sum())
    return _Seen(used, unused, float(rows["cost"].sum()), horizon)
