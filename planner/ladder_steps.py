"""What the ladder comes to in a solved plan: bought now, left for a later step, and let go."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from data.ladder import EndingPart, LadderStep
from planner.assemble import owned_offer_id
from planner.ladder import STEP_HOURS
from planner.problem import CommitmentLimit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.horizon import Horizon
    from planner.ladder import Rung
    from planner.outcome import Plan
    from planner.problem import Problem
    from planner.stage_solver import StageSolver
    from planner.supply import Owned, Supply
    from planner.waterfall import Solved, Waterfall

_DIGITS = 6
_TINY = 1e-9
_LEAST = 0.5  # GPUs; a step of less is none


def limits_of(rungs: Sequence[Rung]) -> tuple[CommitmentLimit, ...]:
    """What the rule allows to commit to in each pool, as limits of the problem."""
    return tuple(
        CommitmentLimit(rung.pool.name, rung.pool.offers, float(rung.advice.gpus)) for rung in rungs
    )


def sized(supply: Supply, rungs: Sequence[Rung]) -> Supply:
    """The supply with each cloud's savings plan for one family, that with the most to commit to.

    A plan's dollars serve any family, and the rule tells GPUs of each: so that no family's dollars
    are committed for another's GPUs, the plan is sized on one.
    """
    worth: dict[str, list[tuple[float, str]]] = {}
    for rung in rungs:
        for name in rung.pool.offers:
            offer = supply.offers[name]
            if offer.plan_rate is not None:
                dollars = rung.advice.gpus * offer.plan_rate
                worth.setdefault(offer.cloud, []).append((dollars, offer.gpu_family))
    family = {cloud: max(found)[1] for cloud, found in worth.items()}
    offers = {
        name: one
        if one.plan_rate is None or family.get(one.cloud, one.gpu_family) == one.gpu_family
        else replace(one, plan_rate=None)
        for name, one in supply.offers.items()
    }
    return replace(supply, offers=offers)


def unlimited(plan: Solved, solve_stage: StageSolver) -> Plan:
    """What would be bought without the rule; the plan's own where nothing is held back by it."""
    problem, own = plan.problem, plan.result.plan
    sizes = {one.id: one.gpus for one in problem.offers}
    held_back = any(
        committed_gpus(one, own, problem) + min((sizes[name] for name in one.offers), default=1)
        > one.gpus
        for one in problem.commitment_limits
    )
    if not held_back:
        return own
    found = solve_stage.rival(replace(problem, commitment_limits=()))
    return own if found is None else found.plan


def committed_gpus(limit: CommitmentLimit, plan: Plan, problem: Problem) -> float:
    """GPUs that a plan's new commitments hold on a limit's offers, as the limit counts them."""
    sizes = {one.id: one.gpus for one in problem.offers}
    reserved = sum(
        one.count * sizes[one.offer] for one in plan.reservations if one.offer in limit.offers
    )
    rates = limit.plan_gpus(problem.offers)
    spends = sum(one.usd_per_hour * rates.get(one.provider, 0.0) for one in plan.savings_plans)
    return float(reserved) + spends


def ladder_steps(
    rungs: Sequence[Rung], waterfall: Waterfall, planned: Horizon, supply: Supply
) -> tuple[LadderStep, ...]:
    """One row a pool, the largest need first."""
    day = f"{planned.start + timedelta(hours=STEP_HOURS):%Y-%m-%d}"
    made = [
        replace(_step(rung, waterfall, day), withdrawn=_none_left(rung, supply)) for rung in rungs
    ]
    return tuple(sorted(made, key=lambda one: (-one.needed, one.pool)))


def _step(rung: Rung, waterfall: Waterfall, day: str) -> LadderStep:
    plan = waterfall.plan
    sold = {one.id for one in plan.problem.offers}
    offers = tuple(name for name in rung.pool.offers if name in sold)
    limit = CommitmentLimit(rung.pool.name, offers, float(rung.advice.gpus))
    bought = committed_gpus(limit, plan.result.plan, plan.problem)
    later = committed_gpus(limit, waterfall.unlimited, plan.problem) - bought
    terms = rung.terms
    observed = _observed(rung)
    return LadderStep(
        pool=rung.pool.name,
        needed=round(observed, _DIGITS),
        held=round(rung.held, _DIGITS),
        allowed=limit.gpus,
        bought=round(bought, _DIGITS),
        later=round(later, _DIGITS) if later >= _LEAST else 0.0,
        next_step=day,
        reserved=round(terms.reserved, _DIGITS),
        on_demand=round(terms.on_demand, _DIGITS),
        reason=_reason(rung) if bought <= limit.gpus + _LEAST else _beyond(limit.gpus),
        term=rung.term or None,
        counted=round(rung.needed, _DIGITS) if _has_less(rung, observed) else None,
    )


def _observed(rung: Rung) -> float:
    """Mean GPUs needed of the pool in the last four weeks, whatever is known to come."""
    total = (rung.past.firm + rung.past.deferrable).sum(axis=1)
    return float(np.nanmean(total[-STEP_HOURS:]))


def _has_less(rung: Rung, observed: float) -> bool:
    return rung.needed < observed * (1 - _TINY)


def _none_left(rung: Rung, supply: Supply) -> str | None:
    """Why no term is offered to the pool, where all that it could have were withdrawn."""
    offers = [supply.offers[name] for name in rung.pool.offers]
    if any(one.terms or one.plan_rate is not None for one in offers):
        return None
    told = [one.why for one in supply.withdrawn if one.offer in rung.pool.offers]
    return told[0] if told else None


def _beyond(allowed: float) -> str:
    """Why more than the rule allows: nothing but a stated service level lets a plan do that."""
    return f"The stated service level asks for it; the rule alone allows {allowed:g} GPUs."


def _reason(rung: Rung) -> str:
    """Why so many: what to do at an end, the whole plan tells, which moves work there."""
    if rung.held and rung.advice.reason.startswith("Let "):
        what = "What runs there today"
        if _has_less(rung, _observed(rung)):
            what = f"Of what runs there today known events leave {rung.needed:,.2f} GPUs, which"
        return f"{what} fills too little of the {rung.held:,.1f} GPUs owned."
    return rung.advice.reason


def ending_parts(
    rungs: Sequence[Rung],
    waterfall: Waterfall,
    supply: Supply,
    planned: Horizon,
    dates: Mapping[str, str],
) -> tuple[EndingPart, ...]:
    """Owned commitments that end in the planned year, the first to end first.

    `dates` are the days of the ends by id. One that would pay again counts as held for those that
    end after it.
    """
    by_pool = {(rung.pool.family, rung.pool.cloud): rung for rung in rungs}
    renewed: list[tuple[Owned, int]] = []
    found = []
    for one in sorted(supply.owned, key=lambda one: (one.until_hour, one.id, one.offer)):
        offer = supply.offers[one.offer]
        rung = by_pool.get((offer.gpu_family, offer.cloud))
        if rung is None or not 0 < one.until_hour < planned.hours or not one.gpus:
            continue
        share = _share_after(rung, waterfall.plan, one, [*_lasting(supply, one), *renewed])
        even = rung.terms.reserved / rung.terms.on_demand
        if share >= even:
            renewed.append((replace(one, until_hour=planned.hours), one.until_hour))
        found.append(
            EndingPart(
                id=one.id,
                place=f"{offer.instance_type} in {offer.region}",
                gpus=round(one.gpus, _DIGITS),
                ends=dates.get(one.id, ""),
                expected_share=round(share, _DIGITS),
                break_even_share=round(even, _DIGITS),
                action="renew" if share >= even else "let_expire",
                why=_why(share, even),
            )
        )
    return tuple(found)


def _lasting(supply: Supply, one: Owned) -> list[tuple[Owned, int]]:
    """What else is owned, from the first planned hour on."""
    return [(other, 0) for other in supply.owned if other is not one]


def _why(share: float, even: float) -> str:
    then = (
        f"after its end another like it would be at work in {share:.0%} of the hours, and pays "
        f"above {even:.0%}"
    )
    if share >= even:
        return f"{then}: renew what the next steps still show to be needed"
    return f"{then}: let it expire, and serve those hours otherwise"


def _share_after(
    rung: Rung, plan: Solved, one: Owned, others: Sequence[tuple[Owned, int]]
) -> float:
    """Share of the GPU-hours after an end that demand would use, above what else is there.

    `others` are owned from an hour on. Work that runs cheaper as spot counts as far as it must be
    firm.
    """
    problem, terms = plan.problem, rung.terms
    hours = np.arange(one.until_hour, problem.hours)
    users = [c for c in problem.classes if owned_offer_id(one.offer) in c.offers]
    reach = {name for user in users for name in user.offers}
    limit = CommitmentLimit("", tuple(sorted(reach)), 0.0)
    base = np.full(len(hours), committed_gpus(limit, plan.result.plan, problem))
    for other, start in others:
        if owned_offer_id(other.offer) in reach:
            base += other.gpus * ((hours >= start) & (hours < other.until_hour))
    used = 0.0
    for scenario in problem.scenarios:
        need = np.zeros(len(hours))
        for user in users:
            cheaper = terms.spot_useful < terms.reserved and user.min_firm_share < 1
            share = user.min_firm_share if cheaper else 1.0
            need += share * np.asarray(scenario.demand[user.id])[hours]
        used += scenario.p * float(np.clip(need - base, 0.0, one.gpus).mean())
    return used / one.gpus
