"""A plan's cost priced again, and its rules checked, from the problem file's records alone.

Nothing here comes from the model: no reductions, no arrays of it, no solver. It reads the plan and
its dispatch row by row against section 2 of the problem format.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.errors import SolveError
from planner.problem import ClassKind

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from planner.outcome import Plan
    from planner.problem import Offer, Problem, Reservation, SavingsPlan

    Array = npt.NDArray[np.float64]

_SLACK = 1e-5  # GPUs or USD an hour, and as a share; solvers meet a row within 1e-6 or so
_MOST_FAULTS = 20
_APART = 1e-6  # USD per hour weight, and as a share; two prices of one plan differ by less


@dataclass(frozen=True, slots=True)
class Audit:
    """USD of a plan with its dispatch, and every rule that it breaks, in words."""

    usd: float
    faults: tuple[str, ...]


def audit(problem: Problem, plan: Plan, dispatch: pd.DataFrame) -> Audit:
    """The cost and the broken rules of a plan. `dispatch` is the frame of `planner.outcome`."""
    book = _Book(problem, dispatch)
    faults = [
        *_first_stage(problem, plan),
        *book.balance(),
        *book.pools(plan),
        *book.plans(plan),
        *book.quotas(),
        *book.spot(),
        *book.available(),
    ]
    risk = 0.0 if problem.cvar is None else problem.cvar.on_commitments
    usd = (1 + risk) * _bought(problem, plan) + book.recourse()
    return Audit(usd, tuple(faults[:_MOST_FAULTS]))


def require(problem: Problem, plan: Plan, dispatch: pd.DataFrame, objective: float) -> float:
    """The cost priced again, where the plan is within every rule and costs the objective.

    Raises SolveError naming the first fault otherwise: it is one of ours, not of the input.
    """
    found = audit(problem, plan, dispatch)
    faults = list(found.faults)
    if abs(found.usd - objective) > _APART * (problem.hour_weight + abs(objective)):
        faults.insert(0, f"its cost is {found.usd:.6f}, not {objective:.6f}")
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise SolveError(
            f"the plan found fails its audit: {faults[0]}{more}: this is a fault of loadfactor; "
            "--method direct may solve the problem"
        )
    return found.usd


def _bought(problem: Problem, plan: Plan) -> float:
    rate = {
        (o.id, way.id): way.rate * o.gpus * _term(problem, way)
        for o in problem.offers
        for way in o.reservations
    }
    term = {one.provider: _term(problem, one) for one in problem.savings_plans}
    price = {b.id: b.price * b.gpus * b.length * problem.hour_weight for b in problem.blocks}
    return math.fsum(
        [
            *(rate[one.offer, one.id] * one.count for one in plan.reservations),
            *(one.usd_per_hour * term[one.provider] for one in plan.savings_plans),
            *(price[one.id] * one.count for one in plan.blocks),
        ]
    )


def _term(problem: Problem, held: Reservation | SavingsPlan) -> float:
    """Real hours that are paid for: all of a stated term, else to the end of the file."""
    hours = problem.hours - held.start if held.term is None else held.term
    return hours * problem.hour_weight


def _there(problem: Problem, held: Reservation | SavingsPlan) -> Array:
    """1 in each hour in which the commitment is there, else 0."""
    hour = np.arange(problem.hours)
    inside = hour >= held.start
    if held.term is not None:
        inside &= hour < held.start + held.term
    return inside.astype(float)


def _first_stage(problem: Problem, plan: Plan) -> list[str]:
    upfront = {
        (o.id, way.id): way.upfront * o.gpus for o in problem.offers for way in o.reservations
    }
    most = {block.id: block.max for block in problem.blocks}
    paid = math.fsum(upfront[one.offer, one.id] * one.count for one in plan.reservations)
    faults = [f"block {b.id}: {b.count} bought" for b in plan.blocks if b.count > most[b.id]]
    if problem.upfront_budget is not None and paid > problem.upfront_budget * (1 + _SLACK) + _SLACK:
        faults.append(f"upfront {paid:.2f} is above the budget {problem.upfront_budget:.2f}")
    return faults + _commitments(problem, plan)


def _commitments(problem: Problem, plan: Plan) -> list[str]:
    """Limits of commitments that the plan exceeds; a plan's USD buy at the lowest rate listed."""
    faults = []
    for limit in problem.commitment_limits:
        listed = [offer for offer in problem.offers if offer.id in limit.offers]
        gpus = {offer.id: offer.gpus for offer in listed}
        held = [float(gpus.get(one.offer, 0) * one.count) for one in plan.reservations]
        for spend in plan.savings_plans:
            rates = [
                offer.sp_rate
                for offer in listed
                if offer.provider == spend.provider and offer.sp_rate is not None
            ]
            held += [spend.usd_per_hour / min(rates)] if rates else []
        used = math.fsum(held)
        if used > limit.gpus * (1 + _SLACK) + _SLACK:
            faults.append(f"commitment limit {limit.id}: {used:.6g} GPUs of {limit.gpus:g}")
    return faults


class _Book:
    """The dispatch as (scenario, hour) series of sums."""

    def __init__(self, problem: Problem, dispatch: pd.DataFrame) -> None:
        self._problem = problem
        self._offers = {offer.id: offer for offer in problem.offers}
        self._shape = len(problem.scenarios), problem.hours
        keys = ["class", "offer", "kind"]
        self._rows = {
            (str(one), str(offer), str(kind)): (
                part["scenario"].to_numpy() * problem.hours + part["hour"].to_numpy(),
                part["gpus"].to_numpy(),
            )
            for (one, offer, kind), part in dispatch.groupby(keys, sort=True)
        }

    def recourse(self) -> float:
        """Mean recourse cost and its risk term, in USD."""
        cost = np.zeros(self._shape[0])
        penalty = {one.id: one.shortage_penalty for one in self._problem.classes}
        for (one, name, kind), _ in self._rows.items():
            gpus = self._series(one, name, kind).sum(axis=1) * self._problem.hour_weight
            if kind == "shortage":
                cost += gpus * penalty[one]
                continue
            offer = self._offers[name]
            price = {"on_demand": offer.on_demand, "spot": offer.spot}.get(kind, 0.0) or 0.0
            cost += gpus * (price + offer.egress.get(one, 0.0))
        p = np.array([scenario.p for scenario in self._problem.scenarios])
        total = float(p @ cost)
        risk = self._problem.cvar
        if risk is not None:
            # The least over eta of a piecewise linear function lies at one of its kinks.
            excess = np.maximum(cost[None, :] - cost[:, None], 0.0) @ p / (1 - risk.beta)
            total += risk.weight * float((cost + excess).min())
        return total

    def balance(self) -> list[str]:
        """Demand that is not met, or met twice; work outside its window."""
        faults = []
        for one in self._problem.classes:
            need = np.stack([np.asarray(s.demand[one.id], float) for s in self._problem.scenarios])
            useful = np.zeros(self._shape)
            for who, name, kind in self._rows:
                if who == one.id:
                    rate = self._offers[name].spot_throughput if kind == "spot" else 1.0
                    useful += rate * self._series(who, name, kind)
                    if name and name not in one.offers:
                        faults.append(f"class {who} on offer {name}, which it does not list")
            if one.kind is ClassKind.FIRM:
                surplus = useful - need
                if not self._problem.on_demand_integer:
                    faults += self._wrong(f"class {one.id}: demand exceeded by", surplus, need)
                faults += self._wrong(f"class {one.id}: demand not met by", -surplus, need)
                continue
            done, released = np.cumsum(useful, axis=1), np.cumsum(need, axis=1)
            due = np.zeros_like(released)
            if one.window < self._shape[1]:
                due[:, one.window :] = released[:, : self._shape[1] - one.window]
            due[:, -1] = released[:, -1]
            faults += self._wrong(f"class {one.id}: late by", due - done, released)
            if not self._problem.on_demand_integer:
                faults += self._wrong(f"class {one.id}: early by", done - released, released)
        return faults

    def pools(self, plan: Plan) -> list[str]:
        """Use beyond what is reserved, owned and bought in blocks."""
        counts = {b.id: b.count for b in plan.blocks}
        faults = []
        for offer in self._problem.offers:
            there = np.zeros(self._shape[1])
            for way in offer.reservations:
                count = sum(
                    r.count for r in plan.reservations if (r.offer, r.id) == (offer.id, way.id)
                )
                there += offer.gpus * count * _there(self._problem, way)
            for owned in offer.existing:
                there[: owned.until_hour] += owned.gpus
            for block in self._problem.blocks:
                if block.offer == offer.id:
                    end = block.start + block.length
                    there[block.start : end] += block.gpus * counts.get(block.id, 0)
            used = self._sum({offer.id}, ("reserved",))
            faults += self._wrong(f"offer {offer.id}: pool exceeded by", used - there, there)
        return faults

    def plans(self, plan: Plan) -> list[str]:
        """Plan-covered use beyond the commitment of its provider."""
        usd = {one.provider: one.usd_per_hour for one in plan.savings_plans}
        spends = {
            one.provider: usd.get(one.provider, 0.0) * _there(self._problem, one)
            for one in self._problem.savings_plans
        }
        faults = []
        for provider in sorted({offer.provider for offer in self._problem.offers}):
            used = np.zeros(self._shape)
            for who, name, kind in self._rows:
                if kind == "savings_plan" and self._offers[name].provider == provider:
                    rate = self._offers[name].sp_rate or 0.0
                    used += rate * self._series(who, name, kind)
            limit = spends.get(provider, np.zeros(self._shape[1]))
            faults += self._wrong(f"plan of {provider}: exceeded by", used - limit, limit)
        return faults

    def quotas(self) -> list[str]:
        """Purchases by the hour beyond a quota."""
        faults = []
        for quota in self._problem.quotas:
            pair = quota.provider, quota.region
            kinds = tuple("spot" if u == "spot" else "on_demand" for u in quota.uses)
            kinds += ("savings_plan",) if "on_demand" in kinds else ()
            used = np.zeros(self._shape)
            for name, offer in self._offers.items():
                if (offer.provider, offer.region) == pair:
                    size = 1.0 if quota.vcpus is None else (offer.vcpus or 0) / offer.gpus
                    used += size * self._sum({name}, kinds)
            most = quota.gpus if quota.vcpus is None else quota.vcpus
            assert most is not None
            label = f"quota of {pair[0]} {pair[1]}: exceeded by"
            faults += self._wrong(label, used - most, np.array(most))
        return faults

    def spot(self) -> list[str]:
        """Spot of firm classes beyond their shares."""
        faults = []
        for one in self._problem.classes:
            if one.kind is not ClassKind.FIRM:
                continue
            need = np.stack([np.asarray(s.demand[one.id], float) for s in self._problem.scenarios])
            whole = np.zeros(self._shape)
            for who, name, kind in self._rows:
                if who == one.id and kind == "spot":
                    useful = self._offers[name].spot_throughput * self._series(who, name, kind)
                    whole += useful
                    if one.spot_max_share_per_offer is not None:
                        over = useful - one.spot_max_share_per_offer * need
                        faults += self._wrong(f"class {who}: spot on {name} above by", over, need)
            over = whole - (1 - one.min_firm_share) * need
            faults += self._wrong(f"class {one.id}: spot above its share by", over, need)
        return faults

    def available(self) -> list[str]:
        """Use of an offer beyond what of it there is in an hour."""
        faults = []
        for one in self._problem.classes:
            need = np.stack([np.asarray(s.demand[one.id], float) for s in self._problem.scenarios])
            if one.kind is not ClassKind.FIRM:
                need = self._waiting(one.id, one.window, need)
            for name in one.offers:
                faults += self._beyond(one.id, self._offers[name], need)
        return faults

    def _waiting(self, one: str, window: int, released: Array) -> Array:
        """Work that waits at the start of each hour, its releases included.

        Whole instances may do more than is there to do; then all that its window allows may wait.
        """
        upto = np.cumsum(released, axis=1)
        if self._problem.on_demand_integer:
            gone = np.pad(upto, ((0, 0), (window + 1, 0)))[:, : self._shape[1]]
            return upto - gone
        done = np.zeros(self._shape)
        for who, name, kind in self._rows:
            if who == one:
                rate = self._offers[name].spot_throughput if kind == "spot" else 1.0
                done += rate * self._series(who, name, kind)
        waiting: Array = upto - np.cumsum(done, axis=1) + done
        return waiting

    def _beyond(self, one: str, offer: Offer, need: Array) -> list[str]:
        faults = []
        for use, kinds, own in (
            ("spot", ("spot",), offer.spot_available),
            ("on demand", ("on_demand", "savings_plan"), offer.on_demand_available),
        ):
            share = np.ones(self._shape)
            for number, scenario in enumerate(self._problem.scenarios):
                by_offer = (
                    scenario.spot_available if use == "spot" else scenario.on_demand_available
                )
                given = by_offer.get(offer.id, own)
                if given is not None:
                    share[number] = given
            if (share >= 1).all():
                continue
            rate = offer.spot_throughput if use == "spot" else 1.0
            zero = np.zeros(self._shape)
            whole, used = zero, zero
            for kind in kinds:
                if (one, offer.id, kind) in self._rows:
                    series = rate * self._series(one, offer.id, kind)
                    used = used + series
                    whole = series if kind == "on_demand" else whole
            most = share * need
            if self._problem.on_demand_integer and use == "on demand":
                # The last instance may be had for a part of it; where whole ones are free, any.
                last = np.where((whole > 0) & (share > 0), offer.gpus, 0)
                most = np.where(share < 1, most + last, used)
            faults += self._wrong(f"class {one}: {use} on {offer.id} above by", used - most, need)
        return faults

    def _series(self, one: str, offer: str, kind: str) -> Array:
        at, gpus = self._rows[one, offer, kind]
        flat: Array = np.bincount(at, gpus, self._shape[0] * self._shape[1]).astype(float)
        return flat.reshape(self._shape)

    def _sum(self, offers: set[str], kinds: tuple[str, ...]) -> Array:
        total = np.zeros(self._shape)
        for one, name, kind in self._rows:
            if name in offers and kind in kinds:
                total += self._series(one, name, kind)
        return total

    def _wrong(self, what: str, amount: Array, size: Array) -> list[str]:
        """A fault where an amount is above zero by more than rounding beside `size`."""
        over = amount - _SLACK * (1 + np.abs(size))
        if not (over > 0).any():
            return []
        scenario, hour = np.unravel_index(int(np.argmax(over)), self._shape)
        worst = float(np.broadcast_to(amount, self._shape)[scenario, hour])
        hours = int((over > 0).sum())
        return [f"{what} {worst:.6g} in scenario {scenario}, hour {hour} ({hours} hours in all)"]
