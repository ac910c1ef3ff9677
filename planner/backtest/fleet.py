"""The same back-test on the user's own demand: one a GPU family."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data.errors import ConfigError
from planner.backtest.demand import Demand, gap_notes
from planner.backtest.run import backtest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.backtest.result import Backtest
    from planner.backtest.run import Adviser
    from planner.forecast.inputs import Terms


def demand_of(
    frame: pd.DataFrame, family: str, deferrable: Mapping[str, float] | None = None
) -> Demand:
    """The needed GPUs of one family of a DEMAND frame, by class.

    `deferrable` are shares of the classes that may wait or use spot; the others may not. Hours that
    the frame leaves out are gaps.
    """
    rows = frame[frame["gpu_family"] == family]
    table = rows.pivot_table(
        index="hour_start", columns="workload_class", values="needed_gpus", aggfunc="sum"
    ).sort_index(axis=1)
    start = table.index.min()
    table = table.reindex(pd.date_range(start, table.index.max(), freq="h"))
    gpus = table.to_numpy(dtype=float)
    may_wait = np.array([(deferrable or {}).get(str(name), 0.0) for name in table.columns])
    found = Demand(
        gpus,
        np.where(np.isnan(gpus), np.nan, gpus * may_wait),
        tuple(str(name) for name in table.columns),
        start.to_pydatetime(),
    )
    return dataclasses.replace(found, notes=tuple(gap_notes(found)))


def backtest_families(
    frame: pd.DataFrame,
    terms: Mapping[str, Terms],
    adviser: Adviser,
    deferrable: Mapping[str, float] | None = None,
    train_share: float = 0.5,
) -> tuple[dict[str, Backtest], tuple[str, ...]]:
    """The back-test of each GPU family of a DEMAND frame, and what a reader must know of them.

    A family whose history cannot be parted, or that has no terms, has none, and a sentence says
    so.
    """
    made: dict[str, Backtest] = {}
    notes: list[str] = []
    for family in sorted(frame["gpu_family"].astype(str).unique()):
        if family not in terms:
            notes.append(f"{family}: no prices, so no back-test")
            continue
        try:
            found = backtest(
                demand_of(frame, family, deferrable), terms[family], train_share, adviser
            )
        except ConfigError as error:
            notes += [f"{family}: no back-test: {one}" for one in error.problems]
            continue
        notes += [f"{family}: {text}" for text in found.warnings]
        made[family] = found
    return made, tuple(notes)
