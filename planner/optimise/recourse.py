"""What every oracle of the recourse cost answers, and how scenarios weigh in the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.reductions import Reduced

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

KINDS = ("on_demand", "spot", "egress", "shortage")


@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """How recourse costs become the objective: sum_s p q_s + lambda * CVaR_beta(q).

    With one scenario, or lambda 0, `weight` is 0 and `p` holds the factor 1 + lambda.
    """

    p: Array
    weight: float
    beta: float

    def cost(self, q: Array) -> float:
        """The risk-weighted mean of scenario costs."""
        mean = float(self.p @ q)
        if not self.weight:
            return mean
        return mean + self.weight * tail_mean(q, self.p, self.beta)


def tail_mean(q: Array, p: Array, beta: float) -> float:
    """CVaR: the mean of the worst `1 - beta` of the costs q with probabilities p."""
    order = np.argsort(-q, kind="stable")
    before = np.cumsum(p[order]) - p[order]
    part = np.clip(1 - beta - before, 0.0, p[order])
    rest = max(1 - beta - float(part.sum()), 0.0)
    return (float(part @ q[order]) + rest * float(q.min())) / (1 - beta)


def risk_of(reduced: Reduced) -> Risk:
    """The risk rule of a problem."""
    problem = reduced.problem
    p = np.array([scenario.p for scenario in problem.scenarios])
    cvar = problem.cvar
    if reduced.risk and cvar is not None:
        return Risk(p, cvar.weight, cvar.beta)
    return Risk(p * (1 + cvar.weight if cvar is not None else 1.0), 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Recourse cost at one u: a cut for each part, and what the dispatch found there costs.

    part >= value + slope . (u' - u) for every u'; `cost` is USD per scenario of a dispatch that
    keeps every rule (all per hour weight), so value and cost bracket the true recourse cost.
    Where parts lose at their borders, `whole` are the slopes of a cut a scenario at `cost`.
    """

    u: Array
    value: Array
    slope: Array
    cost: Array
    whole: Array | None = None


def risk_for(reduced: Reduced, oracle: Oracle) -> Risk:
    """The risk rule for the parts of an oracle."""
    risk = risk_of(reduced)
    if not oracle.merged:
        return risk
    # Probabilities are in the hours' weights already; only the factor of the risk is left.
    cvar = reduced.problem.cvar
    single = cvar is not None and len(reduced.problem.scenarios) == 1
    return Risk(np.array([1.0 + cvar.weight if single and cvar is not None else 1.0]), 0.0, 0.0)


class Oracle(Protocol):
    """Something that evaluates the recourse cost. `scenario_of` tells each part's scenario.

    Where `merged`, the parts are means over all scenarios already, and scenario 0 stands for all.
    """

    @property
    def scenario_of(self) -> Places:
        """The scenario of each part."""

    @property
    def merged(self) -> bool:
        """Whether parts are means over scenarios."""

    @property
    def floor(self) -> float:
        """What a part costs at least."""

    def evaluate(self, u: Array, until: float) -> Evaluation | None:
        """The evaluation at u; None where the clock (time.perf_counter) passed `until`."""

    def exact(self, u: Array, until: float) -> Array | None:
        """USD per scenario, per hour weight, of a dispatch at u that keeps every rule."""

    def by_kind(self, u: Array) -> Array:
        """USD per (scenario, kind of KINDS), per hour weight, of the dispatch last found, at u."""

    def bought(self, u: Array) -> dict[tuple[int, int], Array]:
        """Useful GPU-hours bought at u, per scenario, by group and place in its menu."""
