"""The most and the fewest GPUs that a plan runs of a class on an offer.

The most is that of nearly all hours: in how few a way of demand comes to its one peak, a ceiling
for every day need not follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.assemble import base_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.problem import Problem

PEAK_SHARE = 0.99  # of the hours, over all ways in which demand may come by their weights
_TINY = 1e-9
PEAKS = ("workload_class", "offer", "gpus_per_node", "most_gpus", "least_gpus")


def peaks(problem: Problem, dispatch: pd.DataFrame) -> pd.DataFrame:
    """One row per workload class and offer that a plan uses, sorted, with the columns of PEAKS.

    GPUs are those bought or held, of all ways of paying and GPU families of the class together;
    an hour of any scenario without a row counts as 0 GPUs. The most are what no more is run than in
    `PEAK_SHARE` of the hours, the least what is run in all.
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
    table = by_place.agg(["min", "size"]).reset_index()
    p = np.array([one.p for one in problem.scenarios])
    most = [_most(part, p / problem.hours) for _, part in by_place]
    per_node = {base_name(offer.id): offer.gpus for offer in problem.offers}
    always = table["size"] == len(problem.scenarios) * problem.hours
    return pd.DataFrame(
        {
            "workload_class": table["workload_class"],
            "offer": table["offer"],
            "gpus_per_node": table["offer"].map(per_node).astype(float),
            "most_gpus": pd.Series(most, dtype=float),
            "least_gpus": table["min"].astype(float).where(always, 0.0),
        },
        columns=list(PEAKS),
    )


def _most(hourly: pd.Series, weights: npt.NDArray[np.float64]) -> float:
    """The GPUs beyond which no more than the rest of the hours go; `weights` of an hour by way."""
    ordered = hourly.sort_values(ascending=False)
    beyond = np.cumsum(weights[ordered.index.get_level_values("scenario").to_numpy()])
    place = int(np.searchsorted(beyond, 1 - PEAK_SHARE + _TINY, side="right"))
    return float(ordered.iloc[place]) if place < len(ordered) else 0.0
