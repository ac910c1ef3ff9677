"""Hourly availability: the share of each class's need that an offer can serve in an hour.

A firm class gets at most that share of its demand; work that may wait at most that share of what
waits at the start of the hour, this hour's releases included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import Use
from planner.model.shares import share_of
from planner.problem import QuotaUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.model.reductions import Group, Reduced
    from planner.problem import Problem

    Array = npt.NDArray[np.float64]

FAMILY = {
    Use.ON_DEMAND: QuotaUse.ON_DEMAND,
    Use.SAVINGS_PLAN: QuotaUse.ON_DEMAND,
    Use.SPOT: QuotaUse.SPOT,
}


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Options of a group (places in its menu) that together get at most `share` of its need.

    `share` is scenarios x hours. Where `row` is not set, it is a bound of one option's column.
    """

    group: int
    offer: str
    use: QuotaUse
    options: tuple[int, ...]
    share: Array
    row: bool


def limits_of(problem: Problem, groups: Sequence[Group]) -> tuple[Limit, ...]:
    """Every limit of every group, in a fixed order."""
    offers = {offer.id: offer for offer in problem.offers}
    found = []
    for index, group in enumerate(groups):
        places: dict[tuple[str, QuotaUse], list[int]] = {}
        for place, option in enumerate(group.menu.options):
            if option.limited:
                places.setdefault((option.offer, FAMILY[option.use]), []).append(place)
        for (name, use), options in sorted(places.items()):
            share = share_of(problem, offers[name], use)
            assert share is not None
            row = len(options) > 1 or not group.firm
            found.append(Limit(index, name, use, tuple(options), share, row))
    return tuple(found)


def most_useful(reduced: Reduced, index: int, place: int) -> Array | float | None:
    """Largest share of demand that one option may serve: a number, or scenarios x hours."""
    cap = reduced.groups[index].menu.options[place].cap
    for limit in reduced.limits:
        if limit.group == index and not limit.row and place in limit.options:
            return limit.share if cap is None else np.minimum(limit.share, cap)
    return cap


def rows_of(reduced: Reduced) -> tuple[Limit, ...]:
    """The limits that are rows of the model."""
    return tuple(limit for limit in reduced.limits if limit.row)
