"""Why the plan is what it is, for `plan.json` and the report: every option, limit and shortage."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from data.frames import records
from data.money import HOURS_PER_MONTH
from data.names import place
from data.reasons import OwnedPart, PlanLimit, PlanOption, PlanShortage, Reasons
from planner.assemble import base_name
from planner.hourly_options import unused_hourly
from planner.last_night import since_last_night
from planner.purchases import alternative_words, purchases
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    import pandas as pd

    from planner.horizon import Horizon
    from planner.optimise.explain import Limit, Rejected
    from planner.purchases import Purchase
    from planner.supply import Supply
    from planner.waterfall import Solved, Waterfall

_CAPACITY = ("reserved", "capacity_block", "owned")
_USES = {"on_demand": "on demand", "spot": "as spot"}
_BUDGET_STEP = 1000.0  # USD
_RULE = 'the rule of "Commit now, or wait"'
_FORBIDDEN = re.compile(r"the commitment limit (.+) does not allow it")
_USED_UP = re.compile(r"the commitment limit (.+?) \((\S+) GPUs, (\S+) held\)")


@dataclass(frozen=True, slots=True)
class Basis:
    """What reasons are told about: the solved stages, what could be had, and the planned year."""

    waterfall: Waterfall
    supply: Supply
    horizon: Horizon
    owned: tuple[OwnedPart, ...]


@dataclass(frozen=True, slots=True)
class Last:
    """The newest night before: its date, its reasons, and the share that staying near may cost.

    `restated` are the clouds whose bill says something else since of hours that it knew.
    """

    date: str
    reasons: Reasons
    tolerance: float
    restated: frozenset[str] = frozenset()


def reasons(basis: Basis, last: Last | None) -> Reasons:
    """All reasons of a plan, and what changed since the last night where there is one."""
    plan = basis.waterfall.plan
    made = Reasons(
        options=_options(basis),
        limits=_limits(plan),
        shortages=_shortages(plan, basis.horizon),
        owned=basis.owned,
    )
    if last is None:
        return made
    since = since_last_night(last.date, last.tolerance, last.reasons, made, last.restated)
    return replace(made, since=since)


def owned_parts(
    commitments: pd.DataFrame, bill: pd.DataFrame, supply: Supply, as_of: datetime
) -> tuple[OwnedPart, ...]:
    """What is bought already and has not ended, as the table names it or else the bill shows it.

    `commitments` is COMMITMENTS, `bill` FLEET_HOURS.
    """
    parts, named = [], set()
    for row in records(commitments):
        named.add(str(row["id"]))
        if row["end"] <= as_of:
            continue
        capacity = row["kind"] in _CAPACITY
        spend = row["usd_per_hour"] if row["kind"] == "savings_plan" else None
        parts.append(
            OwnedPart(
                id=str(row["id"]),
                cloud=str(row["cloud"]),
                region=row["region"] or "",
                name=row["instance_type"] or "",
                instances=float(row["count"] or 0) if capacity else 0.0,
                usd_per_hour=float(spend or 0),
            )
        )
    paid = bill.dropna(subset=["commitment_id"])
    kinds = dict(zip(paid["commitment_id"], paid["purchase_option"], strict=True))
    for one in supply.owned:
        if one.id in named:
            continue
        offer, is_plan = supply.offers[one.offer], kinds.get(one.id) == "savings_plan"
        parts.append(
            OwnedPart(
                id=one.id,
                cloud=offer.cloud,
                region=offer.region,
                name=offer.instance_type,
                instances=0.0 if is_plan else round(one.gpus / offer.gpus, 6),
                usd_per_hour=round(one.usd_per_month / HOURS_PER_MONTH, 6) if is_plan else 0.0,
            )
        )
    return tuple(sorted(parts, key=lambda one: (one.id, one.cloud, one.region, one.name)))


def _options(basis: Basis) -> tuple[PlanOption, ...]:
    """Lines to buy, the largest saving first; then what was not chosen, the nearest to it first."""
    waterfall = basis.waterfall
    bought = [
        _bought(one, basis) for one in purchases(waterfall.plan, basis.supply, waterfall.instead)
    ]
    bought.sort(key=lambda one: (-(one.alternative_per_month or 0), one.key))
    left = [
        *_rejected(basis),
        *_withdrawn(basis),
        *unused_hourly(waterfall.plan, basis.supply),
    ]
    return (*bought, *sorted(left, key=_nearness))


def _nearness(one: PlanOption) -> tuple[object, ...]:
    """Options by what the first would lose a month; those of which it is not known come last."""
    if one.saves_per_month is None or one.costs_per_month is None:
        return (1, 0, one.key)
    return (0, one.costs_per_month - one.saves_per_month, one.key)


def _bought(one: Purchase, basis: Basis) -> PlanOption:
    is_plan = one.kind == "savings_plan"
    offer = None if is_plan else basis.supply.offers[one.key[1]]
    instead = one.instead
    costs = one.usd_per_hour * HOURS_PER_MONTH
    gpus = one.gpus or 0.0
    needed, owned = _at_stake(basis, one.cloud if is_plan else one.key[1], is_plan)
    return PlanOption(
        kind=one.kind,
        cloud=one.cloud,
        region=one.region,
        name="" if offer is None else offer.instance_type,
        term="1y" if is_plan else one.key[2],
        count=round(one.usd_per_hour if is_plan else one.count or 0.0, 9),
        usd_per_gpu_hour=round(one.usd_per_hour / gpus, 9) if gpus else None,
        hourly_usd_per_gpu_hour=None if offer is None else offer.on_demand,
        break_even_share=one.break_even_share,
        expected_share=one.expected_share,
        needed_gpus=needed,
        owned_gpus=owned,
        binding=one.binding,
        why=one.why,
        saves_per_month=None if instead is None else to_cents(costs + instead.usd_per_month),
        costs_per_month=to_cents(costs),
        alternative=_last_one(one, basis) if instead is None else alternative_words(instead),
        alternative_per_month=None if instead is None else to_cents(instead.usd_per_month),
    )


def _last_one(one: Purchase, basis: Basis) -> str | None:
    """What doing without the last of a line would cost, where no other plan was worked out."""
    why = basis.waterfall.plan.result.why
    for line in () if why is None else why.lines:
        if (line.offer or line.id, line.id) == one.key[1:] and line.one_fewer_usd_per_month > 0:
            what = "dollar an hour" if one.kind == "savings_plan" else "instance"
            return (
                f"serve the hours of its last {what} otherwise, for "
                f"${line.one_fewer_usd_per_month:,.2f} more a month"
            )
    return None


def _rejected(basis: Basis) -> list[PlanOption]:
    """What is sold for a term and was not bought, with the reason of the optimiser."""
    result = basis.waterfall.plan.result
    if result.why is None:
        return []
    taken = {("reservation", one.offer, one.id) for one in result.reservations}
    taken |= {("plan", "", one.provider) for one in result.savings_plans}
    found = [
        _not_bought(one, basis)
        for one in result.why.rejected
        if (one.kind, one.offer, one.id) not in taken
    ]
    for line in result.why.lines:  # of a plan that was given up for a cheaper one
        if (line.kind, line.offer, line.id) not in taken:
            found.append(_given_up(line.kind, (line.offer, line.id), basis))
    return found


def _withdrawn(basis: Basis) -> list[PlanOption]:
    """Terms that are allowed and sold but that no pool should take now."""
    found = []
    for one in basis.supply.withdrawn:
        term, hourly = one.term, basis.supply.offers[one.offer].on_demand
        bare = _bare("reservation", (one.offer, f"{term.name}/{term.payment}"), basis, one.why)
        even = term.rate / hourly if hourly else None
        found.append(replace(bare, usd_per_gpu_hour=round(term.rate, 9), break_even_share=even))
    return found


def _not_bought(one: Rejected, basis: Basis) -> PlanOption:
    saves, costs = to_cents(one.saves_usd_per_month), to_cents(one.costs_usd_per_month)
    reason = _FORBIDDEN.sub(rf"{_RULE} allows no more of \1 now", one.reason)
    bare = _bare(one.kind, (one.offer, one.id), basis, reason)
    return replace(bare, saves_per_month=saves, costs_per_month=costs)


def _given_up(kind: str, where: tuple[str, str], basis: Basis) -> PlanOption:
    reason = (
        "buying it saves less than the plan is proven to, or than staying near last night costs"
    )
    return _bare(kind, where, basis, reason)


def _bare(kind: str, where: tuple[str, str], basis: Basis, reason: str) -> PlanOption:
    is_plan = kind == "plan"
    needed, owned = _at_stake(basis, where[1] if is_plan else where[0], is_plan)
    offer = None if is_plan else basis.supply.offers[where[0]]
    rate = None
    if offer is None:
        rates = _plan_rates(basis, where[1])
        rate = min(rates, default=None)
    else:
        ways = {f"{term.name}/{term.payment}": term.rate for term in offer.terms}
        rate = ways.get(where[1])
    hourly = None if offer is None else offer.on_demand
    return PlanOption(
        kind="savings_plan" if is_plan else "reserved",
        cloud=where[1] if offer is None else offer.cloud,
        region=None if offer is None else offer.region,
        name="" if offer is None else offer.instance_type,
        term="1y" if is_plan else where[1],
        count=0.0,
        usd_per_gpu_hour=None if rate is None else round(rate, 9),
        hourly_usd_per_gpu_hour=hourly,
        break_even_share=rate / hourly if rate and hourly else None,
        expected_share=None,
        needed_gpus=needed,
        owned_gpus=owned,
        binding=None,
        why=reason,
    )


def _plan_rates(basis: Basis, cloud: str) -> list[float]:
    sold = {one.id for one in basis.waterfall.plan.problem.offers}
    return [
        one.plan_rate
        for one in basis.supply.offers.values()
        if one.cloud == cloud and one.id in sold and one.plan_rate is not None
    ]


def _at_stake(basis: Basis, where: str, is_plan: bool) -> tuple[float, float]:
    """Mean GPUs needed by classes that may use an offer (or a cloud's plan), and those owned there.

    Both are means over the planned year.
    """
    problem, supply = basis.waterfall.plan.problem, basis.supply
    names = {where}
    if is_plan:
        names = {one.id for one in problem.offers if one.provider == where and one.sp_rate}
    needed = sum(
        scenario.p * float(scenario.demand[one.id].mean())
        for scenario in problem.scenarios
        for one in problem.classes
        if names & set(one.offers)
    )
    owned = sum(
        one.gpus * one.until_hour / problem.hours for one in supply.owned if one.offer in names
    )
    return round(float(needed), 6), round(float(owned), 6)


def _limits(plan: Solved) -> tuple[PlanLimit, ...]:
    """Quotas by the machine types sold there, the budget by steps, and what may be committed to.

    The dearest stand first.
    """
    why = plan.result.why
    found = []
    for limit in () if why is None else why.limits:
        if limit.kind == "upfront_budget":
            worth = to_cents(limit.most * _BUDGET_STEP)
            found.append(PlanLimit(limit.kind, "", "", f"${_BUDGET_STEP:,.0f}", worth))
        elif limit.kind == "commitment_limit":
            found.append(_of_rule(limit, plan))
        else:
            found += _of_quota(limit, plan)
    return tuple(sorted(found, key=_worth))


def _of_rule(limit: Limit, plan: Solved) -> PlanLimit:
    """The instance that the rule forbids and that would save most; else a GPU, at the most."""
    why = plan.result.why
    forbidden = [
        (one.saves_usd_per_month - one.costs_usd_per_month, one.offer)
        for one in (() if why is None else why.rejected)
        if one.offer and one.reason == f"the commitment limit {limit.name} does not allow it"
    ]
    if forbidden:
        saves, offer = max(forbidden)
        cloud, region, name = base_name(offer).split("/")
        return PlanLimit(limit.kind, cloud, region, name, to_cents(saves))
    cloud, _, family = limit.name.partition(" ")
    return PlanLimit(limit.kind, cloud, "", f"{family} GPU", to_cents(limit.most))


def _worth(one: PlanLimit) -> tuple[object, ...]:
    """Limits that leave hours unserved first, then by dollars."""
    saves = one.saves_per_month
    return (saves is not None, 0 if saves is None else -saves, one.kind, one.region, one.unit)


def _of_quota(limit: Limit, plan: Solved) -> list[PlanLimit]:
    """One more instance of each machine type that a quota counts, in GPUs or in vCPUs.

    A quota is named by its cloud and region, then by the one use it counts, then by its unit.
    """
    cloud, region, *rest = limit.name.split(" ")
    use = next((f" {_USES[word]}" for word in rest if word in _USES), "")
    sizes = {
        base_name(one.id).split("/")[2]: (one.vcpus or 0) if "vCPUs" in rest else one.gpus
        for one in plan.problem.offers
        if (one.provider, one.region) == (cloud, region)
    }
    short = any(f"{cloud} {region}" in one.limit for one in plan.short)
    return [
        PlanLimit(
            kind=limit.kind,
            cloud=cloud,
            region=region,
            unit=f"{name}{use}",
            saves_per_month=None if short else to_cents((limit.usd_per_month or 0.0) * size),
        )
        for name, size in sorted(sizes.items())
    ]


def _shortages(plan: Solved, horizon: Horizon) -> tuple[PlanShortage, ...]:
    """Who is short in the planned year, the most GPU-hours first."""
    found = []
    for one in plan.short:
        name, family = base_name(one.workload_class).rsplit("|", 1)
        found.append(
            PlanShortage(
                workload_class=name,
                gpu_family=family,
                first=_day(horizon, one.first_hour),
                last=_day(horizon, one.last_hour),
                hours=round(one.mean_hours * horizon.weight, 6),
                gpu_hours=round(one.gpu_hours * horizon.weight, 6),
                most_gpus=round(one.gpus, 6),
                limit=_in_words(one.limit),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.gpu_hours, one.workload_class)))


def _in_words(limit: str) -> str:
    """The limit in conflict with machines as people name them, without hours of the model."""

    def named(found: re.Match[str]) -> str:
        return f"owned capacity on {place(base_name(found[1]))}{' ends' if found[2] else ''}"

    ruled = _USED_UP.sub(rf"{_RULE} on \1 (\2 GPUs, \3 committed to)", limit)
    return re.sub(r"owned capacity on (\S+)( ends at hour \d+)?", named, ruled)


def _day(horizon: Horizon, hour: int) -> str:
    """The day of the planned year on which an hour of the horizon falls."""
    return f"{horizon.start + timedelta(hours=hour * horizon.weight):%Y-%m-%d}"
