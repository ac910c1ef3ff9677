"""What each workload class needs, where it runs, and where its rules let it run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.assemble import Need
from planner.supply import offer_id

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pandas as pd

    from planner.settings import Settings, WorkloadClass
    from planner.supply import Supply

LEAST_THROUGHPUT = 0.5


@dataclass(frozen=True, slots=True)
class Places:
    """Offers of one class: where it runs, what its rules allow there, and anywhere."""

    present: tuple[str, ...]
    same_place: tuple[str, ...]
    anywhere: tuple[str, ...]


def spot_throughput(rule: WorkloadClass, interruptions_per_hour: float) -> float:
    """Useful share of a paid spot GPU-hour of this class.

    An interruption loses half a checkpoint interval and the restart. Never below one half, where
    the estimate means nothing any more.

    >>> from planner.settings import WorkloadClass
    >>> rule = WorkloadClass(name="t", checkpoint_minutes=20, restart_minutes=10)
    >>> round(spot_throughput(rule, 0.3), 4)
    0.9
    """
    lost_hours = (rule.checkpoint_minutes / 2 + rule.restart_minutes) / 60
    return max(LEAST_THROUGHPUT, 1 - interruptions_per_hour * lost_hours)


def needs_from(
    bill: pd.DataFrame,
    hours: pd.DatetimeIndex,
    settings: Settings,
    supply: Supply,
    eligible: Callable[[WorkloadClass, str], set[str]],
) -> list[Need]:
    """Needs per class and GPU family, sorted. `bill` is FLEET_HOURS, planned rows only.

    `hours` are the hours with data; a class without a GPU in one of them needed none.
    `eligible` names the offers that a class's rules allow for a GPU family.
    """
    hour_no = {hour: number for number, hour in enumerate(hours)}
    running = bill[bill["needed_gpu_hours"] > 0]
    needs: list[Need] = []
    for key, rows in running.groupby(["workload_class", "gpu_family"], sort=True):
        name, family = (str(word) for word in key)
        rule = settings.workload_class(name)
        throughput = spot_throughput(rule, settings.plan.spot_interruptions_per_hour)
        places = _places(rows, rule, supply, eligible(rule, family))
        if not places.present:
            continue
        on_spot = rows["purchase_option"] == "spot"
        needs.append(
            Need(
                workload_class=name,
                gpu_family=family,
                firm=_series(rows[~on_spot], hour_no),
                spot=_series(rows[on_spot], hour_no) * throughput,
                present=places.present,
                same_place=places.same_place,
                anywhere=places.anywhere,
                interruptible=rule.interruptible,
                min_firm_share=rule.min_firm_share,
                throughput=throughput,
            )
        )
    return needs


def _places(rows: pd.DataFrame, rule: WorkloadClass, supply: Supply, eligible: set[str]) -> Places:
    """A class stays in the regions where it runs unless its rules name others.

    Data has weight, and transfer is not priced: an empty list of regions or clouds means "where it
    runs today"; `regions = ["*"]` means anywhere. Without an `interconnect` rule it also stays on
    the machine types it runs on.
    """
    keys = rows[["cloud", "region", "instance_type"]].drop_duplicates().dropna()
    present = {offer_id(*map(str, key)) for key in keys.itertuples(index=False)}
    present &= set(supply.offers)
    here = {(supply.offers[name].cloud, supply.offers[name].region) for name in present}
    types = {supply.offers[name].instance_type for name in present}
    free_type = rule.offers.interconnect is not None or bool(rule.offers.instance_types)
    allowed = {name for name in eligible if free_type or supply.offers[name].instance_type in types}
    same = present | {
        name for name in allowed if (supply.offers[name].cloud, supply.offers[name].region) in here
    }
    open_clouds = set(rule.offers.clouds) or {cloud for cloud, _ in here}
    anywhere = set(same)
    if rule.offers.regions:
        anywhere |= {name for name in allowed if _open(supply, name, open_clouds)}
    return Places(*(tuple(sorted(names)) for names in (present, same, anywhere)))


def _open(supply: Supply, name: str, clouds: set[str]) -> bool:
    return "*" in clouds or supply.offers[name].cloud in clouds


def _series(rows: pd.DataFrame, hour_no: dict[pd.Timestamp, int]) -> npt.NDArray[np.float64]:
    series = np.zeros(len(hour_no))
    sums = rows.groupby("hour_start")["needed_gpu_hours"].sum()
    for hour, gpus in sums.items():
        series[hour_no[hour]] = gpus  # type: ignore[index]  # the index holds timestamps
    return series
