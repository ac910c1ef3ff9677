"""The dispatch of a plan as the frame of `planner.outcome`: who runs where, hour by hour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from planner.model import dispatch as frames
from planner.model.options import Use
from planner.optimise.template import RESERVED

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from planner.model.reductions import Reduced
    from planner.optimise.template import Template
    from planner.outcome import Plan

    Array = npt.NDArray[np.float64]


class Dispatched(Protocol):
    """What has dispatched the hours of a problem, column by column of its template."""

    @property
    def template(self) -> Template:
        """The hour whose columns the dispatch fills."""

    def series(self, column: int) -> Array:
        """GPUs of a column, scenarios x hours."""


def dispatch_of(reduced: Reduced, oracle: Dispatched, plan: Plan) -> pd.DataFrame:
    """Frame of one row per (scenario, hour, class, offer, kind) with use, as last solved."""
    rows = []
    remaining = [frames.capacities(reduced, pool, plan) for pool in reduced.pools]
    for index, group in enumerate(reduced.groups):
        parts = list(_parts(reduced, oracle, index, remaining))
        rows += frames.rows_of(reduced, group, parts)
    return frames.frame(rows)


def _parts(
    reduced: Reduced, oracle: Dispatched, index: int, remaining: list[list[Array]]
) -> list[frames.Part]:
    form = oracle.template
    found: list[frames.Part] = []
    for column in np.flatnonzero(form.group == index).tolist():
        gpus = np.maximum(oracle.series(column), 0.0)
        if not gpus.any():
            continue
        if form.kind[column] == RESERVED:
            number = int(form.option[column])
            found += frames.deal(reduced.pools[number], gpus, remaining[number])
        else:
            option = reduced.groups[index].menu.options[int(form.option[column])]
            found.append(frames.Part(option.offer, Use(option.use), gpus, option.useful))
    return found
