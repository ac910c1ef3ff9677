"""The rules that the planner is measured against: simple levels, and what the clouds advise.

Each answers, at a planning step, with the GPUs to buy beside those held.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from planner.backtest.foresight import best_level
from planner.backtest.simulate import use

if TYPE_CHECKING:
    from planner.backtest.simulate import Load
    from planner.forecast.inputs import FloatArray, Terms

REPLAY_HOURS = 720  # 30 days, a look-back that AWS, Azure and Google Cloud all offer


@dataclass(frozen=True, slots=True)
class Step:
    """What a rule knows at a planning step.

    Attributes:
        training: load of the training half.
        past: load of every hour before the step.
        held: reserved GPUs already held at the step.
        terms: prices and rules.
    """

    training: Load
    past: Load
    held: float
    terms: Terms


class Rule(Protocol):
    """GPUs to buy at a planning step, a multiple of the instance."""

    def __call__(self, step: Step) -> int:
        """The GPUs to buy beside those held."""
        ...


def all_on_demand(step: Step) -> int:
    """Nothing, ever; deferrable work uses spot as under every policy."""
    return 0


def peak(step: Step) -> int:
    """Up to the highest hour of the training half."""
    size = step.terms.gpus_per_instance
    return _up_to(size * math.ceil(float(step.training.total.max()) / size), step)


def mean(step: Step) -> int:
    """Up to the mean of the training half."""
    return _up_to(float(step.training.total.mean()), step)


def quantile(step: Step) -> int:
    """Up to the level above which a GPU was busy too rarely to pay in the training half."""
    return _up_to(_critical(step.training.total, step.terms), step)


def quantile_firm_spot_defer(step: Step) -> int:
    """The same for firm demand alone; deferrable work is left to idle GPUs and spot."""
    return _up_to(_critical(step.training.firm, step.terms), step)


def lp_on_history(step: Step) -> int:
    """Up to the level that was optimal for the training half."""
    return _up_to(best_level(step.training, step.terms), step)


def cloud_replay(step: Step) -> int:
    """What would have saved most on the on-demand hours of the last 30 days.

    The hours that would be billed on demand beside what is held now; the k-th GPU more saves
    where it would have stood on the bill in more than the share reserved / on demand of them.
    """
    window = step.past.part(max(step.past.hours - REPLAY_HOURS, 0))
    billed = use(window, np.full((1, 1), step.held), step.terms).on_demand[:, 0]
    size = step.terms.gpus_per_instance
    # The saving is concave in the number of instances: the first that adds nothing is one too many.
    low, high = 0, math.ceil(float(billed.max()) / size)
    while low < high:
        middle = (low + high) // 2
        if _adds(billed, middle * size, step.terms):
            low = middle + 1
        else:
            high = middle
    return low * size


RULES: dict[str, Rule] = {
    "all_on_demand": all_on_demand,
    "peak": peak,
    "mean": mean,
    "quantile": quantile,
    "quantile_firm_spot_defer": quantile_firm_spot_defer,
    "lp_on_history": lp_on_history,
    "cloud_replay": cloud_replay,
}


def _adds(billed: FloatArray, gpus: float, terms: Terms) -> bool:
    """Whether one instance above `gpus` would have saved money on the billed hours."""
    size = terms.gpus_per_instance
    used = np.clip(billed - gpus, 0.0, size).sum()
    return bool(terms.on_demand * used > terms.reserved * size * len(billed))


def _critical(gpus: FloatArray, terms: Terms) -> float:
    share = min(max(1 - terms.reserved / terms.on_demand, 0.0), 1.0)
    return float(np.quantile(gpus, share)) if share > 0 else 0.0


def _up_to(level: float, step: Step) -> int:
    """GPUs that bring what is held to the multiple of the instance nearest to `level`."""
    size = step.terms.gpus_per_instance
    target = size * math.floor(level / size + 0.5)
    return max(target - round(step.held), 0)
