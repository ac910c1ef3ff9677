"""Demand that a plan does not serve, and the limit in conflict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.availability import FAMILY
from planner.model.options import Use
from planner.model.shares import share_of
from planner.problem import QuotaUse

if TYPE_CHECKING:
    import pandas as pd

    from planner.problem import Offer, Problem, Quota

_FULL = 1e-6  # share of a limit by which it may be missed and still bind


@dataclass(frozen=True, slots=True)
class Shortage:
    """Demand not served: who, in how many hours, how much at most, and the limit in conflict.

    `gpu_hours` are summed over the hours of every scenario, without their weight.
    """

    workload_class: str
    hours: int
    first_hour: int
    last_hour: int
    gpus: float
    gpu_hours: float
    limit: str


def shortages(problem: Problem, dispatch: pd.DataFrame) -> tuple[Shortage, ...]:
    """Each class that falls short, with the limits that its offers had used up in those hours."""
    short = dispatch[dispatch["kind"] == str(Use.SHORTAGE)]
    found = []
    for name, rows in short.groupby("class", sort=True):
        hours = sorted(set(rows["hour"].tolist()))
        found.append(
            Shortage(
                workload_class=str(name),
                hours=len(rows),
                first_hour=int(hours[0]),
                last_hour=int(hours[-1]),
                gpus=float(rows["gpus"].max()),
                gpu_hours=float(rows["gpus"].sum()),
                limit=_in_conflict(problem, str(name), dispatch, rows),
            )
        )
    return tuple(found)


def _in_conflict(problem: Problem, name: str, dispatch: pd.DataFrame, rows: pd.DataFrame) -> str:
    one = next(c for c in problem.classes if c.id == name)
    offers = [offer for offer in problem.offers if offer.id in one.offers]
    sold = [o for o in offers if o.on_demand is not None and o.on_demand < one.shortage_penalty]
    if not sold:
        return "none of its offers is sold on demand below the price of a shortage"
    at = dispatch.merge(rows[["scenario", "hour"]], on=["scenario", "hour"])
    bought = at[at["kind"].isin(["on_demand", "savings_plan", "spot"])]
    full = [
        f"{quota.provider} {quota.region} ({quota.limit:g} {quota.unit})"
        for quota in problem.quotas
        if QuotaUse.ON_DEMAND in quota.uses
        and any((o.provider, o.region) == (quota.provider, quota.region) for o in sold)
        and _used(problem, quota, bought) / max(len(rows), 1) >= quota.limit * (1 - _FULL) - _FULL
    ]
    if full:
        return f"quotas used up: {', '.join(full)}"
    scarce = [o.id for o in sold if _scarce(problem, o, rows)]
    return f"not available in full: {', '.join(scarce)}" if scarce else "its demand share limits"


def _used(problem: Problem, quota: Quota, bought: pd.DataFrame) -> float:
    """What the purchases count against a quota, in its unit."""
    kinds = [kind for kind, use in FAMILY.items() if use in quota.uses]
    own = bought[bought["kind"].isin([str(kind) for kind in kinds])]
    return sum(
        quota.per_gpu(offer) * float(own[own["offer"] == offer.id]["gpus"].sum())
        for offer in problem.offers
        if (offer.provider, offer.region) == (quota.provider, quota.region)
    )


def _scarce(problem: Problem, offer: Offer, rows: pd.DataFrame) -> bool:
    """Whether an offer is not available in full, on demand, in some of the hours."""
    share = share_of(problem, offer, QuotaUse.ON_DEMAND)
    return share is not None and bool((share[rows["scenario"], rows["hour"]] < 1).any())
