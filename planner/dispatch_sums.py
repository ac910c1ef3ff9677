"""Sums of a solved dispatch over the ways in which demand may come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from planner.problem import Problem


def expected(problem: Problem, dispatch: pd.DataFrame) -> pd.DataFrame:
    """The dispatch with each scenario's GPUs times its probability, so that sums are means."""
    p = np.array([one.p for one in problem.scenarios])
    return dispatch.assign(gpus=dispatch["gpus"] * p[dispatch["scenario"].to_numpy()])


def whole_machines(dispatch: pd.DataFrame, problem: Problem) -> float:
    """USD over the horizon's hours that whole machines would cost more than the GPUs in use.

    What a savings plan covers runs on the same machines as what is on demand beside it.
    """
    hourly = dispatch[dispatch["kind"].isin(["on_demand", "savings_plan", "spot"])]
    ways = hourly["kind"].where(hourly["kind"] == "spot", "on_demand")
    sums = hourly.assign(kind=ways).groupby(["offer", "kind", "scenario"], sort=True)
    extra = 0.0
    for key, part in sums:
        offer = next(one for one in problem.offers if one.id == key[0])
        price = offer.on_demand if key[1] == "on_demand" else offer.spot
        gpus = part.groupby("hour")["gpus"].sum().to_numpy()
        whole = np.ceil(gpus / offer.gpus - 1e-9) * offer.gpus
        p = problem.scenarios[int(part["scenario"].iloc[0])].p
        extra += p * float((whole - gpus).sum()) * (price or 0.0)
    return extra
