"""What each workload class needs, where it runs, and where its rules let it run."""

from __future__ import annotations

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
        on_spot = rows["purchase_option"] == "spot"
        spot = _by_offer(rows[on_spot], hour_no)
        firm = _by_offer(rows[~on_spot], hour_no)
        needs.append(
            Need(
                workload_class=name,
                gpu_family=family,
                firm=firm,
                spot={offer: series * throughput for offer, series in spot.items()},
                anywhere=_places({*firm, *spot}, rule, supply, eligible(rule, family)),
                may_move=bool(rule.offers.clouds or rule.offers.regions),
                may_retype=_may_retype(rule),
                interruptible=rule.interruptible,
                min_firm_share=rule.min_firm_share,
                throughput=throughput,
                spot_max_share_per_offer=rule.spot_max_share_per_offer,
            )
        )
    return needs


def _places(
    present: set[str], rule: WorkloadClass, supply: Supply, eligible: set[str]
) -> tuple[str, ...]:
    """Offers on which the class runs or may run, sorted.

    A class stays in the regions where it runs unless its rules name others: data has weight, and
    transfer is not priced. An empty list of regions or clouds means "where it runs today", and
    `regions = ["*"]` anywhere. Only a class whose rules name clouds or regions may move between
    them at all. Without an `interconnect` or `instance_types` rule it stays on the machine types
    it runs on, and on machines with as many GPUs.
    """
    here = {(supply.offers[name].cloud, supply.offers[name].region) for name in present}
    types = {supply.offers[name].instance_type for name in present}
    free_type = _may_retype(rule)
    allowed = {name for name in eligible if free_type or supply.offers[name].instance_type in types}
    opened = {
        name for name in allowed if (supply.offers[name].cloud, supply.offers[name].region) in here
    }
    if rule.offers.regions:
        clouds = set(rule.offers.clouds) or {cloud for cloud, _ in here}
        opened |= {name for name in allowed if "*" in clouds or supply.offers[name].cloud in clouds}
    return tuple(sorted(present | opened))


def _may_retype(rule: WorkloadClass) -> bool:
    return rule.offers.interconnect is not None or bool(rule.offers.instance_types)


def _by_offer(
    rows: pd.DataFrame, hour_no: dict[pd.Timestamp, int]
) -> dict[str, npt.NDArray[np.float64]]:
    """GPUs needed in each hour on each offer; an hour outside the observed ones is left out."""
    found: dict[str, npt.NDArray[np.float64]] = {}
    for key, part in rows.groupby(["cloud", "region", "instance_type"], sort=True):
        series = np.zeros(len(hour_no))
        sums = part.groupby("hour_start")["needed_gpu_hours"].sum()
        for hour, gpus in sums.items():
            if hour in hour_no:
                series[hour_no[hour]] = gpus  # type: ignore[index]  # the index holds timestamps
        found[offer_id(*(str(word) for word in key))] = series
    return found
