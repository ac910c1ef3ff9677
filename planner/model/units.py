"""Units in which a problem is solved, so that a solver's absolute tolerances mean the same for all.

Solvers take numbers below 1e-7 or so for zero. A problem whose prices, demand or cost are so small
(or so large) is solved in other units of money and of GPUs: powers of two, so that nothing is
rounded on the way there and back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.outcome import Plan, Result
    from planner.problem import Block, Offer, Problem, Quota, Scenario

_PRICES = (0.125, 4096.0)  # USD per GPU-hour; a typical price in between is left as it is
_LEAST_COST = 2.0**14  # USD per hour weight, about, of all demand; below it money is scaled up
_MOST_UP = 2.0**24  # by which a small cost may raise the prices above the typical one
_LEAST_PEAK = 0.5  # GPUs; a peak of demand below it is scaled up
_UPFRONT = (1e-2, 1e7)  # USD an instance
_APART = 1e9  # times the cheapest price, at which the dearest leaves no digits to tell plans apart


@dataclass(frozen=True, slots=True)
class Units:
    """What numbers are multiplied by: prices per GPU-hour, GPUs, and upfront payments."""

    price: float = 1.0
    gpus: float = 1.0
    upfront: float = 1.0

    @property
    def same(self) -> bool:
        """Whether they are those of the file."""
        return self == Units()

    @property
    def usd(self) -> float:
        """What amounts of money are multiplied by."""
        return self.price * self.gpus

    def problem(self, problem: Problem) -> Problem:
        """The problem in these units."""
        if self.same:
            return problem
        classes = [
            replace(one, shortage_penalty=one.shortage_penalty * self.price)
            for one in problem.classes
        ]
        limits = [replace(one, gpus=one.gpus * self.gpus) for one in problem.commitment_limits]
        budget = problem.upfront_budget
        return replace(
            problem,
            classes=tuple(classes),
            offers=tuple(self._offer(offer) for offer in problem.offers),
            scenarios=tuple(self._scenario(one) for one in problem.scenarios),
            quotas=tuple(self._quota(quota) for quota in problem.quotas),
            blocks=tuple(self._block(block) for block in problem.blocks),
            upfront_budget=None if budget is None else budget * self.upfront * self.gpus,
            commitment_limits=tuple(limits),
        )

    def plan(self, plan: Plan) -> Plan:
        """A plan in these units: counts stay, commitments are money."""
        return _money(plan, self.usd)

    def back(self, found: Result) -> Result:
        """An answer in these units as one in those of the file."""
        if self.same or found.bound is None or found.objective is None:
            return found
        dispatch = found.dispatch
        if self.gpus != 1.0 and len(dispatch):
            own = {name: dispatch[name] / self.gpus for name in ("gpus", "useful_gpus")}
            dispatch = dispatch.assign(**own)
        return replace(
            found,
            objective=found.objective / self.usd,
            bound=found.bound / self.usd,
            plan=_money(found.plan, 1 / self.usd),
            costs={kind: usd / self.usd for kind, usd in found.costs.items()},
            dispatch=dispatch,
        )

    def _offer(self, offer: Offer) -> Offer:
        def priced(price: float | None) -> float | None:
            return None if price is None else price * self.price

        ways = [
            replace(way, rate=way.rate * self.price, upfront=way.upfront * self.upfront)
            for way in offer.reservations
        ]
        return replace(
            offer,
            gpus=self._whole(offer.gpus),
            vcpus=None if offer.vcpus is None else self._whole(offer.vcpus),
            on_demand=priced(offer.on_demand),
            spot=priced(offer.spot),
            sp_rate=priced(offer.sp_rate),
            reservations=tuple(ways),
            existing=tuple(replace(e, gpus=e.gpus * self.gpus) for e in offer.existing),
            egress={name: usd * self.price for name, usd in offer.egress.items()},
        )

    def _whole(self, number: int) -> int:
        """A size of an instance; GPUs are only ever scaled up, so it stays whole."""
        return number * int(self.gpus)

    def _scenario(self, scenario: Scenario) -> Scenario:
        if self.gpus == 1.0:
            return scenario
        demand = {name: np.asarray(d, float) * self.gpus for name, d in scenario.demand.items()}
        return replace(scenario, demand=demand)

    def _quota(self, quota: Quota) -> Quota:
        def scaled(limit: float | None) -> float | None:
            return None if limit is None else limit * self.gpus

        return replace(quota, gpus=scaled(quota.gpus), vcpus=scaled(quota.vcpus))

    def _block(self, block: Block) -> Block:
        return replace(block, gpus=self._whole(block.gpus), price=block.price * self.price)


def units_of(problem: Problem) -> Units:
    """The units in which a problem is solved; those of the file wherever they will do."""
    served = [_mean_demand(scenario) for scenario in problem.scenarios]
    work = math.fsum(s.p * one for s, (one, _) in zip(problem.scenarios, served, strict=True))
    peak = max((most for _, most in served), default=0.0)
    if work <= 0:
        return Units()
    gpus = 1.0 if peak >= _LEAST_PEAK else _power(8.0 / peak)
    typical = _typical(problem)
    price = 1.0 if _PRICES[0] <= typical <= _PRICES[1] else _power(1.0 / typical)
    cost = work * gpus * typical * price
    if cost < _LEAST_COST:
        price *= min(_power(_LEAST_COST / cost), _MOST_UP)
    paid = [way.upfront * offer.gpus for offer in problem.offers for way in offer.reservations]
    most = max(paid, default=0.0) * gpus
    outside = most > 0 and not _UPFRONT[0] <= most <= _UPFRONT[1]
    return Units(price, gpus, _power(1024.0 / most) if outside else 1.0)


def far_apart(problem: Problem) -> str | None:
    """A warning where prices differ so much that no solver tells plans apart; else None."""
    prices = sorted(_prices(problem))
    if not prices or prices[-1] <= _APART * prices[0]:
        return None
    return (
        f"prices from {prices[0]:g} to {prices[-1]:g} USD per GPU-hour differ by more than "
        f"{_APART:g} times: no solver's digits tell the best plan, which is not called optimal"
    )


def _mean_demand(scenario: Scenario) -> tuple[float, float]:
    """GPU-hours of a scenario, and its largest demand of one class in one hour."""
    series = [np.asarray(one, float) for one in scenario.demand.values()]
    total = math.fsum(float(one.sum()) for one in series)
    return total, max((float(one.max()) for one in series if len(one)), default=0.0)


def _typical(problem: Problem) -> float:
    """The median price at which anything is sold; of shortages where nothing is."""
    prices = sorted(_sold(problem)) or sorted(one.shortage_penalty for one in problem.classes)
    return prices[len(prices) // 2]


def _prices(problem: Problem) -> Iterator[float]:
    yield from _sold(problem)
    yield from (one.shortage_penalty for one in problem.classes)


def _sold(problem: Problem) -> Iterator[float]:
    for offer in problem.offers:
        yield from (p for p in (offer.on_demand, offer.spot, offer.sp_rate) if p is not None)
        yield from (way.rate for way in offer.reservations)
    yield from (block.price for block in problem.blocks)


def _power(number: float) -> float:
    """The power of two nearest to a number, in its logarithm."""
    return 2.0 ** round(math.log2(number))


def _money(plan: Plan, factor: float) -> Plan:
    spends = [replace(one, usd_per_hour=one.usd_per_hour * factor) for one in plan.savings_plans]
    return replace(plan, savings_plans=tuple(spends))
