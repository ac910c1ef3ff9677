"""Why a plan is what it is: what each line is worth, what binds, and why other offers lost.

All worths are marginal: of one more or one fewer instance, GPU or USD, at the plan, in USD a month
of 730 hours. They come from the duals of the dispatch, weighted as the objective weighs scenarios.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.money import HOURS_PER_MONTH
from planner.model.options import Use, quota_name
from planner.model.reductions import demand_of
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import UPFRONT_BUDGET
from planner.optimise.shortages import Shortage, shortages
from planner.problem import ClassKind, active, paid_hours

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from planner.optimise.engine import Found
    from planner.optimise.first_stage import Limit as Row
    from planner.optimise.recourse import Evaluation, Risk
    from planner.problem import Offer, Problem, Reservation

    Array = npt.NDArray[np.float64]

_FOREVER = float("inf")
_WEIGHED = 8  # rejected lines whose first is priced exactly; of others a bound is told
_WORTH = 1e-6  # USD a month; less is a solver's rounding
_LITTLE = 1e-3  # USD an hour more of a savings plan; where a limit has less room, it binds


@dataclass(frozen=True, slots=True)
class Line:
    """One bought line. Shares are of its hours; None where the dispatch or a price is missing.

    `one_fewer` is what the plan would cost more a month with one unit less of it (a savings plan:
    1 USD an hour), `instead` how the work would then be served.
    """

    kind: str
    offer: str
    id: str
    count: float
    break_even_share: float | None
    expected_share: float | None
    binding: str
    one_fewer_usd_per_month: float
    instead: str


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota, commitment limit or the budget: what one more GPU (or USD) of it saves a month."""

    kind: str
    name: str
    usd_per_month: float


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reservation, block or savings plan that was not bought, and why.

    What the first of it would save (at most, where the reason says so) and would cost a month; of a
    savings plan 1 USD an hour.
    """

    kind: str
    offer: str
    id: str
    reason: str
    saves_usd_per_month: float
    costs_usd_per_month: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything said about a plan, in a fixed order."""

    lines: tuple[Line, ...] = ()
    limits: tuple[Limit, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    shortages: tuple[Shortage, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The explanation as plain records."""
        return asdict(self)


def explain(problem: Problem, found: Found, dispatch: pd.DataFrame) -> Explanation:
    """The explanation of a plan that a search found; `dispatch` is its dispatch, or empty."""
    z = found.first.vector(found.plan)
    u = found.first.feed(z)
    evaluation = found.oracle.evaluate(u, _FOREVER)
    assert evaluation is not None
    facts = _Facts(problem, found, z, _worth(found, evaluation), dispatch)
    limits = facts.limits()
    return Explanation(
        lines=facts.lines(),
        limits=limits,
        rejected=facts.rejected(),
        shortages=shortages(problem, dispatch),
    )


def _worth(found: Found, evaluation: Evaluation) -> Array:
    """Saving a month per unit more of each source, as the objective weighs scenarios."""
    risk: Risk = found.search.risk
    per_part = _tail(risk, evaluation.cost)[found.oracle.scenario_of]
    saved: Array = -(per_part @ evaluation.slope)
    return saved * _per_month(found)


def _tail(risk: Risk, q: Array) -> Array:
    """Weight of each scenario in the objective: p, and lambda times its part of the tail."""
    if not risk.weight:
        return risk.p
    order = np.argsort(-q, kind="stable")
    before = np.cumsum(risk.p[order]) - risk.p[order]
    part = np.zeros(len(q))
    part[order] = np.clip(1 - risk.beta - before, 0.0, risk.p[order])
    weights: Array = risk.p + risk.weight * part / (1 - risk.beta)
    return weights


def _per_month(found: Found) -> float:
    """USD a month per USD per hour weight of the whole file.

    Where the risk term is of all cost, its weight is taken off what is bought and what that saves.
    """
    cvar = found.reduced.problem.cvar
    risk = 1.0 if cvar is None else 1.0 + cvar.on_commitments
    return float(HOURS_PER_MONTH) / found.reduced.problem.hours / risk


class _Facts:
    """What is known at the plan."""

    def __init__(
        self, problem: Problem, found: Found, z: Array, worth: Array, dispatch: pd.DataFrame
    ) -> None:
        self._problem, self._found, self._z = problem, found, z
        self._worth = worth  # a month, per GPU more of each pool first
        self._saves = found.first.spread(worth)  # a month, per unit more of each column
        self._costs = found.first.cost * _per_month(found)
        self._offers = {offer.id: offer for offer in problem.offers}
        used = dispatch[dispatch["kind"] == str(Use.RESERVED)]
        self._used = used.groupby("offer", sort=True)["gpus"].sum().to_dict()
        self._known = bool(len(dispatch))

    def lines(self) -> tuple[Line, ...]:
        """Every bought line, in the order of the first stage."""
        first, found = self._found.first, []
        here = self._total(self._z)
        for number, one in enumerate(first.bought):
            if self._z[number] <= 0:
                continue
            offer = self._offers.get(one.offer)
            unit = "USD an hour" if one.kind == "plan" else "instance"
            found.append(
                Line(
                    kind=one.kind,
                    offer=one.offer,
                    id=one.id,
                    count=float(self._z[number]),
                    break_even_share=self._break_even(number, offer),
                    expected_share=None if offer is None else self._expected(offer),
                    binding=self._binding(number),
                    one_fewer_usd_per_month=self._one_fewer(number) - here,
                    instead=self._instead(offer, unit),
                )
            )
        return tuple(found)

    def limits(self) -> tuple[Limit, ...]:
        """Quotas and limits with what one more unit would save, the dearest first."""
        pairs = sorted(self._found.reduced.quotas)
        found = []
        oracle = self._found.oracle
        if isinstance(oracle, DispatchOracle):  # the closed form knows no quotas
            duals = oracle.quota_duals()
            weights = _tail(self._found.search.risk, self._recourse(oracle))
            weights = weights if len(weights) == len(duals) else np.ones(len(duals))
            worth = -(weights @ duals) * _per_month(self._found)
            found += [
                Limit("quota", " ".join([*pair, *self._unit_of(pair)]), float(value) + 0.0)  # -0.0
                for pair, value in zip(pairs, worth.tolist(), strict=True)
            ]
        prices = self._found.search.master.limit_prices()
        for limit, price in zip(self._found.first.limits, prices, strict=True):
            found.append(Limit(limit.kind, limit.name, price * _per_month(self._found) + 0.0))
        return tuple(sorted(found, key=lambda limit: (-limit.usd_per_month, limit.name)))

    def _unit_of(self, name: tuple[str, ...]) -> list[str]:
        """The unit of a quota where it is not GPUs."""
        units = {quota_name(quota): quota.unit for quota in self._problem.quotas}
        return [] if units[name] == "GPUs" else [units[name]]

    def rejected(self) -> tuple[Rejected, ...]:
        """Everything sold for the whole file and not bought."""
        first, found = self._found.first, []
        here = self._total(self._z)
        known = {one: number for number, one in enumerate(first.bought)}
        in_model = {(one.kind, one.offer, one.id) for one in known}
        for offer in self._problem.offers:
            for way in offer.reservations:
                if ("reservation", offer.id, way.id) not in in_model:
                    saves = self._first_of(offer)
                    costs = way.rate * offer.gpus * HOURS_PER_MONTH * self._paid_share(way)
                    reason = self._left_out(offer)
                    found.append(Rejected("reservation", offer.id, way.id, reason, saves, costs))
        left = np.flatnonzero(self._z <= 0)
        nearest = left[np.argsort((self._costs - self._saves)[left], kind="stable")]
        for rank, number in enumerate(nearest.tolist()):
            one, costs = first.bought[number], float(self._costs[number])
            saves, exact = float(self._saves[number]), rank < _WEIGHED
            if exact or saves > costs:
                # A slope is of the first GPU, and of all of an instance the most: weigh it.
                saves = costs + here - self._total(self._z + self._unit(number))
                exact = True
            reason = self._reason(number, (saves, costs), exact)
            found.append(Rejected(one.kind, one.offer, one.id, reason, saves, costs))
        return tuple(sorted(found, key=lambda r: (r.kind, r.offer, r.id)))

    def _one_fewer(self, number: int) -> float:
        fewer = self._z.copy()
        fewer[number] = max(0.0, fewer[number] - 1.0)
        return self._total(fewer)

    def _total(self, z: Array) -> float:
        """USD a month of a plan with its best dispatch, by the oracle that the search had."""
        found = self._found.oracle.evaluate(self._found.first.feed(z), _FOREVER)
        assert found is not None
        cost = float(self._found.first.cost @ z) + self._found.search.risk.cost(found.cost)
        return cost * _per_month(self._found)

    def _recourse(self, oracle: DispatchOracle) -> Array:
        cost: Array = oracle.by_kind(self._found.first.feed(self._z)).sum(axis=1)
        return cost

    def _unit(self, number: int) -> Array:
        unit = np.zeros(len(self._z))
        unit[number] = 1.0
        return unit

    def _reason(self, number: int, month: tuple[float, float], exact: bool) -> str:
        saves, costs = month
        if saves <= _WORTH:
            return "no hour would use it: what it serves is served at no more cost already"
        if saves <= costs:
            most = "" if exact else "at most "
            return f"the first saves {most}${saves:,.0f} a month and costs ${costs:,.0f}"
        limit = self._held_by(number)
        if limit is not None:
            return f"the {limit.label.replace('_', ' ', 1)} does not allow it"
        return (
            f"the first saves ${saves:,.0f} a month, within the gap of the ${costs:,.0f} it costs"
        )

    def _first_of(self, offer: Offer) -> float:
        """What one more instance in the offer's pool would save a month."""
        for number, pool in enumerate(self._found.reduced.pools):
            if any(one.id == offer.id for one in pool.offers):
                return float(self._worth[number]) * offer.gpus
        return 0.0

    def _left_out(self, offer: Offer) -> str:
        users = [one for one in self._problem.classes if offer.id in one.offers]
        if not any(demand_of(self._problem, one).any() for one in users):
            return "no class with demand may use it"
        return "another reservation that the same classes may use costs no more"

    def _held_by(self, number: int) -> Row | None:
        """The first limit that one more of the column (of a savings plan: a little) breaks."""
        first = self._found.first
        step = 1.0 if first.whole[number] else _LITTLE
        for limit in first.limits:
            more = float(limit.weights[number]) * step
            if more and float(limit.weights @ self._z + more) > limit.most:
                return limit
        return None

    def _paid_share(self, way: Reservation) -> float:
        """Hours that a reservation is paid for, as a share of the file's."""
        return paid_hours(way.start, way.term, self._problem.hours) / self._problem.hours

    def _break_even(self, number: int, offer: Offer | None) -> float | None:
        """Busy share of its hours at which the line pays against the cheapest on demand."""
        one = self._found.first.bought[number]
        if one.kind != "reservation" or offer is None:
            return None
        way = next(way for way in offer.reservations if way.id == one.id)
        start, end = active(way.start, way.term, self._problem.hours)
        rate = way.rate * (paid_hours(way.start, way.term, self._problem.hours) / (end - start))
        users = [c for c in self._problem.classes if offer.id in c.offers]
        prices = [
            price
            for c in users
            for name in c.offers
            if (price := self._offers[name].on_demand) is not None
        ]
        return rate / min(prices) if prices else None

    def _expected(self, offer: Offer) -> float | None:
        """Share of the offer's reserved and owned GPU-hours that the dispatch uses."""
        if not self._known:
            return None
        hours, scenarios = self._problem.hours, len(self._problem.scenarios)
        there = sum(e.gpus * min(e.until_hour, hours) for e in offer.existing)
        counts = {(one.offer, one.id): one.count for one in self._found.plan.reservations}
        for way in offer.reservations:
            start, end = active(way.start, way.term, hours)
            there += offer.gpus * counts.get((offer.id, way.id), 0) * (end - start)
        return float(self._used.get(offer.id, 0.0)) / (there * scenarios) if there else None

    def _binding(self, number: int) -> str:
        first, limit = self._found.first, self._held_by(number)
        pays = self._saves[number] > self._costs[number]
        if limit is not None and (pays or limit.kind == UPFRONT_BUDGET):
            return limit.label
        if self._z[number] >= first.upper[number]:
            return "as many as are sold" if first.bought[number].kind == "block" else "peak demand"
        return "whole instances" if pays else "break-even"

    def _instead(self, offer: Offer | None, unit: str) -> str:
        if offer is None:
            return f"one {unit} less: the same use at on-demand and spot prices"
        users = [c for c in self._problem.classes if offer.id in c.offers]
        firm = [c.id for c in users if c.kind is ClassKind.FIRM]
        choices = sorted(
            (price, name)
            for c in users
            for name in c.offers
            if (price := self._offers[name].on_demand) is not None
        )
        where = f"on demand on {choices[0][1]} at {choices[0][0]:g}" if choices else "not at all"
        return (
            f"one {unit} less: {', '.join(firm[:3]) or users[0].id} would run {where}, or on spot"
        )
