"""What changes of a plan are worth, in USD a month of 730 hours, by pricing them again.

Slopes are of the first GPU and only bound what a whole instance saves; what is told as a figure is
priced at the changed plan, by the oracle that the search had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from data.money import HOURS_PER_MONTH
from planner.model.options import Use
from planner.model.reductions import most_columns, reduce
from planner.optimise.closed_form import ClosedForm
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import Bought, first_stage
from planner.optimise.previous import still_sold
from planner.problem import Block

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.options import Option
    from planner.optimise.engine import Found
    from planner.optimise.first_stage import FirstStage, Limit, Source
    from planner.optimise.recourse import Oracle, Risk
    from planner.problem import Problem

    Array = npt.NDArray[np.float64]

_WORTH = 1e-6  # USD a month; less is a solver's rounding
_SHARE = 1e-9  # of the plan's cost, the same where prices are very small
_SMALL = 60_000  # second-stage columns up to which every figure is priced again
_WEIGHED = 8  # changes priced again of a larger problem, beside those of its lines
_FREE = "\0free"  # id of a block that no file can name
_LITTLE = 1e-3  # USD an hour more of a savings plan; where a limit has less room, it binds


@dataclass(frozen=True, slots=True)
class Way:
    """A way to buy by the hour: how, which offer, and USD per useful GPU-hour."""

    use: Use
    offer: str
    usd: float


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """The hourly purchases of a plan: USD a month, and useful GPU-hours a month of each way.

    `usd` weighs scenarios as the objective does, `hours` by their probabilities; `spent` are USD a
    month that each provider's savings plan takes.
    """

    usd: float
    hours: dict[Way, float]
    spent: dict[str, float]

    @property
    def useful(self) -> float:
        """Useful GPU-hours a month that are paid for by the hour, or not served."""
        return math.fsum(v for way, v in self.hours.items() if way.use is not Use.SAVINGS_PLAN)


class Worth:
    """A plan z of a search with what changes of it are worth."""

    def __init__(self, problem: Problem, found: Found) -> None:
        self.problem, self.found = problem, found
        self.first, self.oracle = found.first, found.oracle
        self.z = found.first.vector(found.plan)
        self.u = found.first.feed(self.z)
        self.small = most_columns(found.reduced) <= _SMALL
        cvar = problem.cvar
        # Where the risk term is of all cost, its weight is off what is bought and what it saves.
        risk = 1.0 if cvar is None else 1.0 + cvar.on_commitments
        self._plain = float(HOURS_PER_MONTH) / problem.hours
        self.per_month = self._plain / risk
        self._known: dict[bytes, float] = {}
        self._left = _WEIGHED
        evaluation = found.oracle.evaluate(self.u, math.inf)
        assert evaluation is not None
        weights = tail(found.search.risk, evaluation.cost)
        self.weights = weights
        slope = -(weights[found.oracle.scenario_of] @ evaluation.slope) * self.per_month
        self.slope: Array = slope  # saved per unit more of each source
        self.quota_duals: Array | None = None
        if isinstance(found.oracle, DispatchOracle):
            duals = found.oracle.quota_duals()
            own = weights if len(weights) == len(duals) else np.ones(len(duals))
            self.quota_duals = -(own @ duals) * self.per_month
        self.saves: Array = found.first.spread(slope)  # per unit more of each column
        self.costs: Array = found.first.cost * self.per_month
        self.recourse = self._recourse(evaluation.cost)
        self._known[self.u.tobytes()] = self.recourse
        self.least = min(_WORTH, _SHARE * (self.recourse + float(self.costs @ self.z)))

    def unit(self, number: int) -> Array:
        """One unit of a column."""
        unit = np.zeros(len(self.z))
        unit[number] = 1.0
        return unit

    def saved(self, u: Array) -> float | None:
        """USD a month saved by the hour with sources u; None where pricing it takes too long."""
        key = u.tobytes()
        if key not in self._known:
            if not self.small:
                if not self._left:
                    return None
                self._left -= 1
            evaluation = self.oracle.evaluate(u, math.inf)
            assert evaluation is not None
            self._known[key] = self._recourse(evaluation.cost)
        return self.recourse - self._known[key]

    def saved_by(self, number: int, units: float = 1.0) -> tuple[float, bool]:
        """What more units of a column save a month: the figure, or (False) at most."""
        found = self.saved(self.first.feed(self.z + units * self.unit(number)))
        return (float(self.saves[number]) * units, False) if found is None else (found, True)

    def saved_by_gpus(self, source: Source, gpus: float) -> tuple[float, bool]:
        """What more GPUs of a pool in some hours save a month: the figure, or (False) at most."""
        sources = self.first.sources
        if source not in sources and self.small:
            return self._saved_elsewhen(source, gpus), True
        known = source in sources
        number = sources.index(source) if known else source.pool
        u = self.u.copy()
        u[number] += gpus
        found = self.saved(u)
        if found is None:
            return float(self.slope[number]) * gpus, False
        return found, known

    def _saved_elsewhen(self, source: Source, gpus: float) -> float:
        """What more GPUs save in hours in which nothing else of the pool is sold.

        The programs are built anew with a free block there, as these hours may look like others.
        """
        pool = self.found.reduced.pools[source.pool]
        length = source.end - source.start
        free = Block(_FREE, pool.offers[0].id, 1, source.start, length, 0.0, 1)
        problem = replace(self.problem, blocks=(*self.problem.blocks, free))
        reduced = still_sold(reduce(problem), self.found.plan)
        first = first_stage(reduced)
        z = first.vector(self.found.plan)
        number = first.bought.index(Bought("block", "", _FREE))
        if isinstance(self.oracle, ClosedForm):
            return self._between(ClosedForm(reduced, first), first, z, (number, gpus))
        oracle = DispatchOracle(reduced, first)
        try:
            return self._between(oracle, first, z, (number, gpus))
        finally:
            oracle.close()

    def _between(
        self, oracle: Oracle, first: FirstStage, z: Array, more: tuple[int, float]
    ) -> float:
        """What so much more of one column saves a month, by another oracle."""
        number, amount = more
        before = oracle.evaluate(first.feed(z), math.inf)
        z = z.copy()
        z[number] += amount
        after = oracle.evaluate(first.feed(z), math.inf)
        assert before is not None
        assert after is not None
        return self._recourse(before.cost) - self._recourse(after.cost)

    def saved_by_quota(self, name: tuple[str, ...]) -> tuple[float, bool]:
        """What one more unit of a quota saves a month, or (False) at most."""
        at_most = self.quota_price(name)
        if at_most <= self.least:
            return 0.0, True
        found = self.with_quota(name, self.u)
        return (at_most, False) if found is None else (max(found, 0.0), True)

    def quota_price(self, name: tuple[str, ...]) -> float:
        """The price of a quota in the dispatch: at most what one more unit saves a month."""
        assert self.quota_duals is not None
        price = float(self.quota_duals[sorted(self.found.reduced.quotas).index(name)])
        return max(price, 0.0) + 0.0  # no -0.0

    def with_quota(self, name: tuple[str, ...], u: Array) -> float | None:
        """What one more unit of a quota saves with sources u; None where that is not priced."""
        assert isinstance(self.oracle, DispatchOracle)
        if not self.small or self.oracle.chained:
            return None
        quotas = self.found.reduced.quotas
        more = replace(self.found.reduced, quotas=quotas | {name: quotas[name] + 1.0})
        oracle = DispatchOracle(more, self.first)
        try:
            found = oracle.evaluate(u, math.inf)
        finally:
            oracle.close()
        assert found is not None
        return self.recourse - self._recourse(found.cost)

    def with_plan(self, number: int, name: tuple[str, ...]) -> tuple[float, float]:
        """One more unit of a quota with more of a savings plan (a column) to cover it.

        USD a month saved beyond what the plan costs, and the USD an hour of it; zeros where the
        plan covers nothing under the quota.
        """
        provider, best = self.first.bought[number].id, (0.0, 0.0)
        rates = {
            option.plan_rate / option.weight
            for group in self.found.reduced.groups
            for option in group.menu.options
            if option.plan == provider and option.quota == name and option.weight
        }
        for rate in sorted(rates):
            found = self.with_quota(name, self.first.feed(self.z + rate * self.unit(number)))
            more = (found or 0.0) - rate * float(self.costs[number])
            best = max(best, (more, rate))
        return best

    def priced(self, z: Array) -> Priced:
        """The hourly purchases of a plan, by a dispatch that keeps every rule."""
        u = self.first.feed(z)
        exact = self.oracle.exact(u, math.inf)
        assert exact is not None
        hours: dict[Way, float] = {}
        spent: dict[str, float] = {}
        for (group, place), values in self.oracle.bought(u).items():
            option = self.found.reduced.groups[group].menu.options[place]
            amount = float(_shares(self.oracle, self.problem) @ values) * self._plain
            way = Way(option.use, option.offer, _usd(option))
            hours[way] = hours.get(way, 0.0) + amount
            if option.plan:
                used = amount / option.useful * option.plan_rate
                spent[option.plan] = spent.get(option.plan, 0.0) + used
        return Priced(self._recourse(exact), hours, spent)

    def held_by(self, number: int) -> Limit | None:
        """The first limit that one more of the column (of a savings plan: a little) breaks."""
        step = 1.0 if self.first.whole[number] else _LITTLE
        for limit in self.first.limits:
            more = float(limit.weights[number]) * step
            if more and float(limit.weights @ self.z + more) > limit.most:
                return limit
        return None

    def _recourse(self, cost: Array) -> float:
        """USD a month of costs of scenarios, as the objective weighs them."""
        return self.found.search.risk.cost(cost) * self.per_month


def tail(risk: Risk, q: Array) -> Array:
    """Weight of each scenario in the objective: p, and lambda times its part of the tail."""
    if not risk.weight:
        return risk.p
    order = np.argsort(-q, kind="stable")
    before = np.cumsum(risk.p[order]) - risk.p[order]
    part = np.zeros(len(q))
    part[order] = np.clip(1 - risk.beta - before, 0.0, risk.p[order])
    weights: Array = risk.p + risk.weight * part / (1 - risk.beta)
    return weights


def _shares(oracle: Oracle, problem: Problem) -> Array:
    """Probability of each scenario of an oracle."""
    return np.array([1.0] if oracle.merged else [one.p for one in problem.scenarios])


def _usd(option: Option) -> float:
    """USD per useful GPU-hour that a way takes: of what a plan covers, its rate too."""
    return option.unit_price + option.plan_rate


def usd(amount: float, digits: int = 0) -> str:
    """Dollars in words: whole ones, but of little money the cents.

    >>> usd(14600.4), usd(3.5), usd(0.001)
    ('$14,600', '$3.50', '$0.001')
    """
    if 0 < abs(amount) < 1:
        return f"${amount:.3g}"
    return f"${amount:,.{digits if abs(amount) >= 100 else 2}f}"
