"""A sample of the hours as a problem of its own: where the search for the full one begins.

Every so many hours one is kept and stands for the others; work that may wait is taken as needed
evenly over its window. The answer proves nothing, but lies near the optimum, and tells which
columns of an hour are of any use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.model.reductions import Cells, Group
from planner.problem import ClassKind

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.reductions import Reduced

    Array = npt.NDArray[np.float64]

_LEAST, _MOST, _SHARE = 120, 480, 0.125


def sample(reduced: Reduced) -> Reduced | None:
    """The sampled problem; None where the whole is small already."""
    cells = reduced.cells
    count = len(cells)
    if count < 2 * _LEAST:
        return None
    wanted = min(max(int(count * _SHARE), _LEAST), _MOST)
    stride = count // wanted
    stride += 1 - stride % 2  # odd, so that every hour of the day comes up
    take = np.arange(stride // 2, count, stride)
    groups = tuple(group if group.firm else _spread(group) for group in reduced.groups)
    factor = _factors(cells, take)
    mine = Cells(
        cells.of,
        cells.scenario[take],
        cells.hour[take],
        cells.mean_hours[take] * factor,
        cells.hours[take] * factor,
    )
    return replace(reduced, groups=groups, cells=mine)


def _factors(cells: Cells, take: npt.NDArray[np.intp]) -> Array:
    """What each sampled cell counts for, so that each scenario's hours add up."""
    size = int(cells.scenario.max()) + 1
    whole = np.bincount(cells.scenario, cells.hours, size)
    part = np.bincount(cells.scenario[take], cells.hours[take], size)
    ratio = np.divide(whole, part, out=np.ones(size), where=part > 0)
    return ratio[cells.scenario[take]]


def _spread(group: Group) -> Group:
    """A group that may wait as one that may not: its work even over the window."""
    total = np.cumsum(group.demand, axis=1)
    span = min(group.rules.window + 1, total.shape[1])
    before = np.pad(total, ((0, 0), (span, 0)))[:, : total.shape[1]]
    members = tuple(
        replace(
            one,
            kind=ClassKind.FIRM,
            window=0,
            min_firm_share=0.0,
            spot_max_share_per_offer=None,
        )
        for one in group.members
    )
    return replace(group, members=members, demand=(total - before) / span)
