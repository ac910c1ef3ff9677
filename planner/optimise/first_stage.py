"""What is decided here and now, as arrays: reservations, blocks and savings-plan commitments.

A plan is a vector z over the columns. What recourse sees of it is the vector u over *sources*:
the GPUs added to each pool for all hours, the GPUs of each block in its hours, and each
savings plan's USD an hour. Several columns may feed one source, so cuts live in u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import Use
from planner.model.reductions import most_at_once, most_instances
from planner.outcome import BlockCount, Commitment, Plan, ReservedCount
from planner.problem import active, paid_hours

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.model.reductions import Reduced
    from planner.problem import CommitmentLimit, Problem

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_NOTHING = 1e-9  # USD an hour; less is a solver's rounding
_ROUNDING = 1e-12  # of what a limit leaves
UPFRONT_BUDGET, COMMITMENT_LIMIT = "upfront_budget", "commitment_limit"


@dataclass(frozen=True, slots=True)
class Source:
    """Capacity of a pool in hours `start` to `end - 1`, or (pool -1) a provider's savings plan."""

    pool: int
    start: int
    end: int
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Bought:
    """What a column buys: a reservation (offer, id), a block (id), or a plan (provider)."""

    kind: str
    offer: str
    id: str


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """A row weights.z <= most: the upfront budget (USD), or a limit of commitments (GPUs)."""

    kind: str
    name: str
    weights: Array
    most: float

    @property
    def label(self) -> str:
        """Kind and name."""
        return f"{self.kind} {self.name}".rstrip()


@dataclass(frozen=True, slots=True, eq=False)
class FirstStage:
    """Columns z with bounds and cost (USD per hour weight), and the sources u that they feed.

    The cost holds the weight of the risk term where that is of all cost. u[source] += amount * z;
    `limits` are rows over z.
    """

    bought: tuple[Bought, ...]
    cost: Array
    upper: Array
    whole: npt.NDArray[np.bool_]
    source: Places
    amount: Array
    limits: tuple[Limit, ...]
    sources: tuple[Source, ...]

    def __len__(self) -> int:
        return len(self.bought)

    def feed(self, z: Array) -> Array:
        """The sources u of a plan z."""
        fed: Array = np.bincount(self.source, self.amount * z, len(self.sources)).astype(float)
        return fed

    def spread(self, slopes: Array) -> Array:
        """Slopes per unit of u (last axis) as slopes per unit of z."""
        spread: Array = slopes[..., self.source] * self.amount
        return spread

    def counts_fit(self, z: Array) -> bool:
        """Whether the whole counts alone keep every limit."""
        counts = np.where(self.whole, z, 0.0)
        return all(limit.weights @ counts <= limit.most for limit in self.limits)

    def within(self, z: Array) -> Array:
        """The plan with its savings plans lowered to what its counts leave of each limit."""
        for limit in self.limits:
            used = limit.weights * z
            left = max(limit.most - float(used[self.whole].sum()), 0.0)
            spent = float(used[~self.whole].sum())
            if spent > left * (1 + _ROUNDING):
                z = np.where(~self.whole & (limit.weights > 0), z * (left / spent), z)
        return z

    def plan(self, z: Array) -> Plan:
        """The plan as records, counts rounded to whole numbers."""
        reservations, spends, blocks = [], [], []
        for one, value in zip(self.bought, z.tolist(), strict=True):
            if one.kind == "plan":
                if value > _NOTHING:
                    spends.append(Commitment(one.id, value))
            elif count := round(value):
                if one.kind == "block":
                    blocks.append(BlockCount(one.id, count))
                else:
                    reservations.append(ReservedCount(one.offer, one.id, count))
        return Plan(tuple(sorted(reservations)), tuple(sorted(spends)), tuple(sorted(blocks)))

    def vector(self, plan: Plan) -> Array:
        """The plan z of records; what the reduced problem does not sell is left out."""
        known: dict[Bought, float] = {}
        for one in plan.reservations:
            known[Bought("reservation", one.offer, one.id)] = float(one.count)
        for spend in plan.savings_plans:
            known[Bought("plan", "", spend.provider)] = spend.usd_per_hour
        for block in plan.blocks:
            known[Bought("block", "", block.id)] = float(block.count)
        return np.array([known.get(one, 0.0) for one in self.bought])


def first_stage(reduced: Reduced) -> FirstStage:
    """The first stage of a reduced problem."""
    hours = reduced.problem.hours
    sources = [Source(number, 0, hours) for number in range(len(reduced.pools))]

    def place(source: Source) -> int:
        """Where the source stands, added if it is not there yet."""
        if source not in sources:
            sources.append(source)
        return sources.index(source)

    rows: list[tuple[Bought, float, float, bool, int, float, float]] = []
    for number, pool in enumerate(reduced.pools):
        for offer, way in pool.reservations:
            most = most_instances(pool.peak, offer.gpus)
            name = Bought("reservation", offer.id, way.id)
            gpus = float(offer.gpus)
            limit = math.inf if most is None else float(most)
            cost = way.rate * gpus * paid_hours(way.start, way.term, hours)
            fed = place(Source(number, *active(way.start, way.term, hours)))
            rows.append((name, cost, limit, True, fed, gpus, way.upfront * gpus))
        for block in pool.blocks:
            sources.append(Source(number, block.start, block.start + block.length))
            name = Bought("block", "", block.id)
            cost = block.price * block.gpus * block.length
            limit = float(block.max)
            rows.append((name, cost, limit, True, len(sources) - 1, float(block.gpus), 0.0))
    held = {plan.provider: plan for plan in reduced.problem.savings_plans}
    for provider in plans(reduced):
        one = held[provider]
        sources.append(Source(-1, *active(one.start, one.term, hours), provider))
        name = Bought("plan", "", provider)
        limit = _largest_commitment(reduced, provider)
        cost = float(paid_hours(one.start, one.term, hours))
        rows.append((name, cost, limit, False, len(sources) - 1, 1.0, 0.0))
    return _as_arrays(rows, reduced.problem, tuple(sources))


def plans(reduced: Reduced) -> tuple[str, ...]:
    """Providers whose savings plan some class may use, sorted."""
    covering = {option.plan for group in reduced.groups for option in group.menu.options}
    return tuple(sorted(covering - {""}))


def _largest_commitment(reduced: Reduced, provider: str) -> float:
    """USD an hour beyond which no commitment is of use: all its classes covered at once."""
    most = 0.0
    for group in reduced.groups:
        rates = [
            option.plan_rate
            for option in group.menu.options
            if option.use is Use.SAVINGS_PLAN and option.plan == provider
        ]
        if rates:
            most += max(rates) * float(most_at_once(group).max())
    return most


def _as_arrays(
    rows: list[tuple[Bought, float, float, bool, int, float, float]],
    problem: Problem,
    sources: tuple[Source, ...],
) -> FirstStage:
    names, *numbers = zip(*rows, strict=True) if rows else ((), (), (), (), (), (), ())
    cost, upper, whole, source, amount, upfront = numbers
    risk = 0.0 if problem.cvar is None else problem.cvar.on_commitments
    bought: tuple[Bought, ...] = tuple(names)
    limits = [_commitment_limit(problem, one, bought, amount) for one in problem.commitment_limits]
    if problem.upfront_budget is not None:
        paid = np.array(upfront, dtype=float)
        limits.insert(0, Limit(UPFRONT_BUDGET, "", paid, problem.upfront_budget))
    return FirstStage(
        bought=bought,
        cost=np.array(cost, dtype=float) * (1.0 + risk),
        upper=np.array(upper, dtype=float),
        whole=np.array(whole, dtype=bool),
        source=np.array(source, dtype=np.intp),
        amount=np.array(amount, dtype=float),
        limits=tuple(limits),
        sources=sources,
    )


def _commitment_limit(
    problem: Problem, limit: CommitmentLimit, bought: Sequence[Bought], amount: Sequence[float]
) -> Limit:
    """GPUs that a unit of each column counts against a limit."""
    held = limit.plan_gpus(problem.offers)
    weights = np.zeros(len(bought))
    for number, one in enumerate(bought):
        if one.kind == "reservation" and one.offer in limit.offers:
            weights[number] = amount[number]
        elif one.kind == "plan":
            weights[number] = held.get(one.id, 0.0)
    return Limit(COMMITMENT_LIMIT, limit.id, weights, limit.gpus)
