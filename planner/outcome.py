"""What a solve answers: the plan, the dispatch of every class, offer and hour, and its cost.

The cost is added up here from the problem's own prices and the returned plan, not taken from the
solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from planner.model.options import Use
from planner.problem import paid_hours

if TYPE_CHECKING:
    from planner.optimise.certify import Certificate, Moved
    from planner.optimise.explain import Explanation
    from planner.problem import Problem, Reservation, SavingsPlan

COSTS = (
    "reserved", "savings_plan", "blocks", "on_demand", "spot", "egress", "shortage", "cvar",
)  # fmt: skip
DISPATCH_COLUMNS = ("scenario", "hour", "class", "offer", "kind", "gpus", "useful_gpus")


@dataclass(frozen=True, slots=True, order=True)
class ReservedCount:
    """New instances of one reservation option."""

    offer: str
    id: str
    count: int


@dataclass(frozen=True, slots=True, order=True)
class Commitment:
    """A savings-plan commitment in USD per hour."""

    provider: str
    usd_per_hour: float


@dataclass(frozen=True, slots=True, order=True)
class BlockCount:
    """Capacity blocks bought."""

    id: str
    count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The first stage: what is bought for the whole file, sorted, nothing with zero."""

    reservations: tuple[ReservedCount, ...] = ()
    savings_plans: tuple[Commitment, ...] = ()
    blocks: tuple[BlockCount, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The answer to a problem. Without a plan, `objective` and `gap` are None.

    `status` is optimal (proven within the gap asked for), feasible, infeasible or no_solution.
    `dispatch` has one row per (scenario, hour, class, offer, kind) with use: `gpus` bought or
    held, `useful_gpus` what they are worth to the class. Its kinds are reserved (also existing
    and blocks), on_demand, savings_plan, spot and shortage; a shortage has no offer.
    `extra_share` is what staying near a previous plan costs, over the best plan found.
    """

    status: str
    objective: float | None
    bound: float | None
    gap: float | None
    seconds: float
    solver: str
    plan: Plan = field(default_factory=Plan)
    costs: dict[str, float] = field(default_factory=dict)
    dispatch: pd.DataFrame = field(default_factory=lambda: empty_dispatch())
    why: Explanation | None = None
    warnings: tuple[str, ...] = ()
    audited: Certificate | None = None
    moved: Moved | None = None
    extra_share: float = 0.0

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan to follow."""
        return self.objective is not None

    @property
    def reservations(self) -> tuple[ReservedCount, ...]:
        """New reservations, by offer and id."""
        return self.plan.reservations

    @property
    def savings_plans(self) -> tuple[Commitment, ...]:
        """New savings-plan commitments, by provider."""
        return self.plan.savings_plans

    @property
    def blocks(self) -> tuple[BlockCount, ...]:
        """Capacity blocks, by id."""
        return self.plan.blocks

    def as_json(self) -> dict[str, object]:
        """The document that `loadfactor solve --json` prints; no plan where there is none."""
        document: dict[str, object] = {
            "status": self.status,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "seconds": round(self.seconds, 3),
            "solver": self.solver,
        }
        if self.warnings:
            document["warnings"] = list(self.warnings)
        if not self.has_plan:
            return document
        return document | {
            "reservations": [
                {"offer": one.offer, "id": one.id, "count": one.count} for one in self.reservations
            ],
            "savings_plans": [
                {"provider": one.provider, "usd_per_hour": one.usd_per_hour}
                for one in self.savings_plans
            ],
            "blocks": [{"id": one.id, "count": one.count} for one in self.blocks],
            "costs": self.costs,
            **({} if self.audited is None else {"audited": self.audited.as_json()}),
            **({} if self.moved is None else {"previous": self.moved.as_json()}),
            **({} if self.why is None else {"why": self.why.as_json()}),
        }


def empty_dispatch() -> pd.DataFrame:
    """A dispatch frame with no rows."""
    text = ("class", "offer", "kind")
    return pd.DataFrame(
        {
            name: pd.Series(
                dtype="str" if name in text else "float64" if "gpus" in name else "int64"
            )
            for name in DISPATCH_COLUMNS
        }
    )


def cost(problem: Problem, plan: Plan, dispatch: pd.DataFrame) -> dict[str, float]:
    """USD by kind of cost, hour weight included: the eight entries add up to the objective.

    Second-stage entries are means over scenarios; `cvar` is lambda times the CVaR of their sum.
    """
    spent = recourse(problem, dispatch)
    probabilities = [scenario.p for scenario in problem.scenarios]
    found = commitments(problem, plan)
    for name in ("on_demand", "spot", "egress", "shortage"):
        found[name] = math.fsum(p * one[name] for p, one in zip(probabilities, spent, strict=True))
    risk = 0.0
    if problem.cvar is not None:
        totals = [math.fsum(one.values()) for one in spent]
        bought = math.fsum(commitments(problem, plan).values())
        risk = problem.cvar.weight * cvar(totals, probabilities, problem.cvar.beta)
        risk += problem.cvar.on_commitments * bought
    found["cvar"] = risk
    return found


def cvar(costs: list[float], probabilities: list[float], beta: float) -> float:
    """Mean of the worst `1 - beta` of the costs.

    >>> cvar([100.0, 200.0], [0.5, 0.5], 0.5), cvar([100.0, 200.0], [0.5, 0.5], 0.0)
    (200.0, 150.0)
    >>> cvar([100.0, 200.0], [0.75, 0.25], 0.5)
    150.0
    """
    left = tail = 1 - beta
    total = 0.0
    for value, p in sorted(zip(costs, probabilities, strict=True), reverse=True):
        part = min(p, left)
        total += part * value
        left -= part
    # Probabilities that sum to a little less than 1 leave a crumb: it falls to the least cost.
    return (total + max(left, 0.0) * min(costs)) / tail


def commitments(problem: Problem, plan: Plan) -> dict[str, float]:
    """USD of what is bought in the first stage, by kind of cost."""

    def span(held: Reservation | SavingsPlan) -> float:
        return paid_hours(held.start, held.term, problem.hours) * problem.hour_weight

    ways = {
        (o.id, way.id): (way.rate * o.gpus, span(way))
        for o in problem.offers
        for way in o.reservations
    }
    spans = {one.provider: span(one) for one in problem.savings_plans}
    blocks = {b.id: b.price * b.gpus * b.length for b in problem.blocks}
    reserved = [(*ways[one.offer, one.id], one.count) for one in plan.reservations]
    return {
        "reserved": math.fsum(rate * count * hours for rate, hours, count in reserved),
        "savings_plan": math.fsum(
            one.usd_per_hour * spans[one.provider] for one in plan.savings_plans
        ),
        "blocks": math.fsum(
            blocks[one.id] * one.count * problem.hour_weight for one in plan.blocks
        ),
    }


def recourse(problem: Problem, dispatch: pd.DataFrame) -> list[dict[str, float]]:
    """USD over the planned hours by kind of cost, for each scenario."""
    offers = {offer.id: offer for offer in problem.offers}
    penalty = {one.id: one.shortage_penalty for one in problem.classes}
    spent: list[dict[str, float]] = [
        {"on_demand": 0.0, "spot": 0.0, "egress": 0.0, "shortage": 0.0} for _ in problem.scenarios
    ]
    keys = ["scenario", "class", "offer", "kind"]
    sums = dispatch.groupby(keys, sort=True)["gpus"].sum().reset_index()
    for scenario, one, name, kind, gpus in sums.itertuples(index=False, name=None):
        gpu_hours = float(gpus) * problem.hour_weight
        entry = spent[int(scenario)]
        if kind == Use.SHORTAGE:
            entry["shortage"] += gpu_hours * penalty[one]
            continue
        offer = offers[name]
        entry["egress"] += gpu_hours * offer.egress.get(one, 0.0)
        if kind == Use.ON_DEMAND:
            entry["on_demand"] += gpu_hours * (offer.on_demand or 0.0)
        elif kind == Use.SPOT:
            entry["spot"] += gpu_hours * (offer.spot or 0.0)
    return spent
