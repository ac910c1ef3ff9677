"""Demand hour by hour for people and their spreadsheets: what was needed, and what may come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data.frames import conform, empty
from data.schema import DEMAND_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.assemble import Need
    from planner.future import Future

    Array = npt.NDArray[np.float64]

_DIGITS = 6
_QUANTILES = (("p10_gpus", 0.1), ("p50_gpus", 0.5), ("p90_gpus", 0.9))
_ORDER = ["hour_start", "workload_class", "gpu_family"]


def demand_hours(
    observed: pd.DataFrame,
    needs: Sequence[Need],
    covered: pd.DatetimeIndex,
    near: Future | None,
) -> pd.DataFrame:
    """Frame of DEMAND_OUT: the observed hours of DEMAND, then those of the first weeks to come.

    `needs` are what is planned for, with what queued and was full, in the `covered` hours; what is
    not planned for has neither, and no forecast. Without `near` nothing is forecast.
    """
    parts = [_observed(observed, needs, covered)]
    if near is not None and near.demand:
        parts.append(_forecast(near))
    filled = [part for part in parts if len(part)]
    if not filled:
        return empty(DEMAND_OUT)
    return conform(pd.concat(filled, ignore_index=True).sort_values(_ORDER), DEMAND_OUT)


def _observed(
    observed: pd.DataFrame, needs: Sequence[Need], covered: pd.DatetimeIndex
) -> pd.DataFrame:
    rows = observed[[*_ORDER, "needed_gpus"]].assign(kind="observed")
    known = [
        pd.DataFrame(
            {
                "hour_start": covered,
                "workload_class": need.workload_class,
                "gpu_family": need.gpu_family,
                "waiting_gpus": need.waiting.round(_DIGITS),
                "at_capacity": need.bounded_on(need.present),
            }
        )
        for need in needs
    ]
    if not known:
        return rows.assign(waiting_gpus=np.nan, at_capacity=None)
    return rows.merge(pd.concat(known, ignore_index=True), on=_ORDER, how="left")


def _forecast(near: Future) -> pd.DataFrame:
    hours = pd.date_range(near.horizon.start, periods=near.horizon.hours, freq="h")
    shares = [share for _, share in _QUANTILES]
    parts = []
    for name, paths in near.demand.items():
        workload_class, family = name.rsplit("|", 1)
        levels = _quantiles(paths, near.probabilities, shares).clip(min=0.0).round(_DIGITS)
        quantiles = {column: level for (column, _), level in zip(_QUANTILES, levels, strict=True)}
        parts.append(
            pd.DataFrame(
                {
                    "hour_start": hours,
                    "workload_class": workload_class,
                    "gpu_family": family,
                    "kind": "forecast",
                    **quantiles,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _quantiles(paths: Array, weights: Sequence[float], shares: Sequence[float]) -> Array:
    """Quantiles of the ways, hour by hour; of ways that are not alike, by their weights."""
    if len(set(weights)) == 1:
        return np.asarray(np.quantile(paths, shares, axis=0))
    apart = np.broadcast_to(np.asarray(weights)[:, None], paths.shape)
    return np.asarray(np.quantile(paths, shares, axis=0, weights=apart, method="inverted_cdf"))
