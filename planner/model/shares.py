"""What share of a need an offer can serve, hour by hour, as the problem states it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.problem import QuotaUse

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.problem import Offer, Problem

    Array = npt.NDArray[np.float64]


def share_of(problem: Problem, offer: Offer, use: QuotaUse) -> Array | None:
    """Shares of an offer, scenarios x hours; None where all can always be had."""
    spot = use is QuotaUse.SPOT
    own = offer.spot_available if spot else offer.on_demand_available
    given = [s.spot_available if spot else s.on_demand_available for s in problem.scenarios]
    if own is None and not any(offer.id in one for one in given):
        return None
    default = np.ones(problem.hours) if own is None else np.array(own)
    shares = np.stack([np.asarray(one.get(offer.id, default), dtype=float) for one in given])
    return shares if (shares < 1).any() else None
