"""Commitments that were bought after the observed window: no bill shows them yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.money import HOURS_PER_MONTH
from planner.supply import KEY, Owned, offer_id

if TYPE_CHECKING:
    import pandas as pd

    from planner.horizon import Horizon
    from planner.supply import SupplyOffer

_CAPACITY_KINDS = ("reserved", "capacity_block", "owned")


def begun_since(
    row: dict[str, Any], bill: pd.DataFrame, offers: dict[str, SupplyOffer], horizon: Horizon
) -> tuple[list[Owned], list[str]]:
    """What a commitment bought since holds, as its row of COMMITMENTS says, and notes on it.

    A savings plan is as many GPUs as its dollars pay for, on the offers of its cloud that the bill
    shows most on demand, the largest first: no bill tells yet what it covers.
    """
    name, until = str(row["id"]), horizon.until(row["end"])
    place = offer_id(str(row["cloud"]), str(row["region"]), str(row["instance_type"]))
    if row["kind"] in _CAPACITY_KINDS and row["count"] and place in offers:
        gpus = float(row["count"]) * offers[place].gpus
        rate = row["usd_per_instance_hour"]
        month = 0.0 if rate is None else float(rate) * float(row["count"]) * HOURS_PER_MONTH
        cost = "" if rate is not None else "; its cost is not known: state usd_per_instance_hour"
        note = f"commitment {name} began on {row['start']:%Y-%m-%d}: no bill shows it yet{cost}"
        return [Owned(name, place, gpus, until, 0.0, month, begins=True)], [note]
    if row["kind"] == "savings_plan" and row["usd_per_hour"]:
        found = _spread(row, bill, offers, (until, horizon.observed_hours))
        if found:
            return found, [
                f"commitment {name} began on {row['start']:%Y-%m-%d}: no bill shows yet what it "
                "covers; it is counted where most is on demand"
            ]
    return [], [f"commitment {name} is left out: no machine type is known that it covers"]


def _spread(
    row: dict[str, Any],
    bill: pd.DataFrame,
    offers: dict[str, SupplyOffer],
    time: tuple[int, int],
) -> list[Owned]:
    """The plan's dollars an hour as GPUs of the offers it may cover, no more than each needs."""
    until, observed = time
    hourly = bill[(bill["purchase_option"] == "on_demand") & (bill["cloud"] == row["cloud"])]
    sums = hourly.groupby(KEY, sort=True)["needed_gpu_hours"].sum()
    sized = sorted(
        ((float(hours), key) for key, hours in sums.items()), key=lambda o: (-o[0], o[1])
    )
    left, found = float(row["usd_per_hour"]), []
    for hours, key in sized:
        place = offer_id(*(str(word) for word in key))
        rate = offers[place].plan_rate if place in offers else None
        gpus = 0.0 if not rate else min(hours / observed, left / rate)
        if rate and gpus > 0:
            month = gpus * rate * HOURS_PER_MONTH
            found.append(Owned(str(row["id"]), place, gpus, until, 0.0, month, begins=True))
            left -= gpus * rate
    if found and left > 0:  # what nothing could use is paid all the same
        last = found[-1]
        more = last.ahead_usd_per_month + left * HOURS_PER_MONTH
        found[-1] = Owned(last.id, last.offer, last.gpus, until, 0.0, more, begins=True)
    return found
