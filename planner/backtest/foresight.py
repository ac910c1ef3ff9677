"""The constant reserved level that costs least over a window, found exactly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.backtest.simulate import bought_usd, uses_spot

if TYPE_CHECKING:
    from planner.backtest.simulate import Load
    from planner.forecast.inputs import FloatArray, Terms

_FIRST_CUTS, _CUTS = 64, 8
_SAME = 1e-12  # relative; sums of floats differ by more only where costs do


def best_level(load: Load, terms: Terms) -> int:
    """The GPUs, a multiple of the instance, that cost least if held all window long.

    Of levels that cost the same, the lowest. More than the highest hour of demand never pays:
    that much serves everything in its own hour.
    """
    if not load.hours:
        return 0
    size = terms.gpus_per_instance
    fixed = terms.reserved * size * load.hours
    top = math.ceil(float(load.total.max()) / size)
    is_convex = load.spot_available is None or not uses_spot(terms)
    levels = np.unique(np.linspace(0, top, _FIRST_CUTS + 1).round())
    bought = bought_usd(load, levels * size, terms)
    while True:
        cost = fixed * levels + bought
        if is_convex:
            spans = _beside_the_best(cost)
        else:
            spans = _that_may_hold_better(levels, bought, fixed, float(cost.min()))
        new = _inside(levels, spans)
        if not len(new):
            return int(levels[_lowest(cost)]) * size
        bought = np.concatenate([bought, bought_usd(load, new * size, terms)])
        levels = np.concatenate([levels, new])
        order = np.argsort(levels)
        levels, bought = levels[order], bought[order]


def _lowest(cost: FloatArray) -> int:
    """The first of the cheapest."""
    least = float(cost.min())
    return int(np.argmax(cost <= least + _SAME * abs(least)))


def _beside_the_best(cost: FloatArray) -> FloatArray:
    """Spans between neighbouring levels, by their left end, that hold the minimum if convex."""
    at = _lowest(cost)
    return np.array([one for one in (at - 1, at) if 0 <= one < len(cost) - 1], dtype=np.float64)


def _that_may_hold_better(
    levels: FloatArray, bought: FloatArray, fixed: float, least: float
) -> FloatArray:
    """Spans that may hold a cheaper level, by their left end.

    With more reserved, nothing more is bought beside it, so no level inside a span buys less than
    its right end, nor holds less than one instance above its left end.
    """
    bound = bought[1:] + fixed * (levels[:-1] + 1)
    return np.flatnonzero(bound < least - _SAME * abs(least)).astype(np.float64)


def _inside(levels: FloatArray, spans: FloatArray) -> FloatArray:
    """New levels inside the spans, at most `_CUTS` each."""
    found: list[FloatArray] = []
    for left in spans.astype(int):
        low, high = levels[left], levels[left + 1]
        cuts = np.linspace(low, high, _CUTS + 2).round()
        found.append(cuts[(cuts > low) & (cuts < high)])
    return np.unique(np.concatenate(found)) if found else np.zeros(0)
