"""The most and the fewest GPUs that a plan runs of a class on an offer, in any hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from planner.assemble import base_name

if TYPE_CHECKING:
    from planner.problem import Problem

PEAKS = ("workload_class", "offer", "gpus_per_node", "most_gpus", "least_gpus")


def peaks(problem: Problem, dispatch: pd.DataFrame) -> pd.DataFrame:
    """One row per workload class and offer that a plan uses, sorted, with the columns of PEAKS.

    GPUs are those bought or held, of all ways of paying and GPU families of the class together;
    an hour of any scenario without a row counts as 0 GPUs.
    """
    at_work = dispatch[dispatch["kind"] != "shortage"]
    classes = {name: base_name(name).split("|")[0] for name in at_work["class"].unique()}
    offers = {name: base_name(name) for name in at_work["offer"].unique()}
    at_work = at_work.assign(
        workload_class=at_work["class"].astype(str).map(classes),
        offer=at_work["offer"].astype(str).map(offers),
    )
    keys = ["workload_class", "offer", "scenario", "hour"]
    hourly = at_work.groupby(keys, sort=True)["gpus"].sum()
    by_place = hourly.groupby(level=["workload_class", "offer"], sort=True)
    table = by_place.agg(["max", "min", "size"]).reset_index()
    per_node = {base_name(offer.id): offer.gpus for offer in problem.offers}
    always = table["size"] == len(problem.scenarios) * problem.hours
    return pd.DataFrame(
        {
            "workload_class": table["workload_class"],
            "offer": table["offer"],
            "gpus_per_node": table["offer"].map(per_node).astype(float),
            "most_gpus": table["max"].astype(float),
            "least_gpus": table["min"].astype(float).where(always, 0.0),
        },
        columns=list(PEAKS),
    )
