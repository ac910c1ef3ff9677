"""The figures of a night's report, from its tables: exact sums, told apart by currency."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data import money
from data.frames import records
from data.money import HOURS_PER_MONTH
from data.plan import ClassRow, IdleFigures, MixRow, RejectedPrice, SolveFigures, StateRow
from data.reasons import StageProof
from data.schema import COMMITTED_OPTIONS, STATES
from planner.assemble import base_name
from planner.idle import IDLE_STATES, by_bucket, idle_cost
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from planner.assemble import Stage
    from planner.supply import Supply
    from planner.waterfall import Solved, Waterfall

ZERO = Decimal(0)


def total(series: pd.Series) -> Decimal:
    """The exact sum of a column of decimals, the known ones where some are missing."""
    return money.total(series.dropna())


def state_rows(fleet: pd.DataFrame) -> tuple[StateRow, ...]:
    """GPU-hours and cost by state and currency, states in their fixed order."""
    rows = []
    for currency, part in fleet.groupby("currency", sort=True):
        for state in STATES:
            here = part[part["state"] == state]
            if len(here):
                hours, cost = total(here["gpu_hours"]), total(here["cost"])
                rows.append(StateRow(state, hours, cost, str(currency)))
    return tuple(rows)


def idle_figures(fleet: pd.DataFrame, observed_hours: int) -> tuple[IdleFigures, ...]:
    """Idle dollars by currency: what can be stopped, what is committed, what is unknown."""
    figures = []
    for currency, sums in by_bucket(fleet).items():
        part = fleet[fleet["currency"] == currency]
        idle = part[part["state"].isin(IDLE_STATES)]
        cost = idle_cost(sums)
        month = {name: money.per_month(spent, observed_hours) for name, spent in sums.items()}
        ends = idle.loc[idle["purchase_option"].isin(COMMITTED_OPTIONS), "committed_until"].dropna()
        figures.append(
            IdleFigures(
                currency=currency,
                gpu_hours=total(idle["gpu_hours"]),
                billed_gpu_hours=total(part["gpu_hours"]),
                cost=cost,
                cost_per_year=money.per_year(cost, observed_hours),
                stoppable_per_month=month.get("stoppable", ZERO),
                committed_per_month=month.get("committed", ZERO),
                partly_busy_per_month=month.get("partly_busy", ZERO),
                undetermined_per_month=month.get("undetermined", ZERO),
                unknown_per_month=month.get("unknown", ZERO),
                committed_until=None if ends.empty else f"{ends.max():%Y-%m-%d}",
            )
        )
    return tuple(figures)


def class_rows(fleet: pd.DataFrame) -> tuple[ClassRow, ...]:
    """GPU-hours by state and need of each class and GPU family, dearest first."""
    rows = []
    known = fleet.assign(gpu_family=fleet["gpu_family"].fillna("-"))
    for key, part in known.groupby(["workload_class", "gpu_family", "currency"], sort=True):
        name, family, currency = (str(word) for word in key)
        by_state = {s: total(part.loc[part["state"] == s, "gpu_hours"]) for s in STATES}
        needed = part.groupby("hour_start")["needed_gpu_hours"].sum()
        rows.append(
            ClassRow(
                workload_class=name,
                gpu_family=family,
                billed=total(part["gpu_hours"]),
                **by_state,
                needed=total(part["needed_gpu_hours"]),
                peak_needed_gpus=float(max(needed.tolist(), default=ZERO)),
                cost=total(part["cost"]),
                currency=currency,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.cost, row.workload_class, row.gpu_family)))


def mix_rows(plan: Solved, supply: Supply, kinds: Mapping[str, str]) -> tuple[MixRow, ...]:
    """What the plan serves each class with, in GPU-hours paid for.

    `kinds` are the kinds of owned commitments by id: hours of savings plans stand apart.
    """
    made: dict[tuple[str, str, str], list[float]] = {}
    for row in records(plan.used):
        name, offer, kind = (str(row[key]) for key in ("class", "offer", "kind"))
        hours = float(row["gpu_hours"])
        if kind == "reserved" and offer != base_name(offer):
            parts = _owned_parts(plan, supply, base_name(offer), kinds)
        else:
            parts = [(kind, 1.0, _marginal_price(kind, plan, supply, offer))]
        for word, share, price in parts:
            sums_of = made.setdefault((base_name(name), base_name(offer), word), [0.0, 0.0])
            sums_of[0] += hours * share
            sums_of[1] += hours * share * price
    rows = []
    for (name, offer, kind), (hours, cost) in sorted(made.items()):
        workload_class, family = name.rsplit("|", 1)
        if hours * 1000 >= HOURS_PER_MONTH / 1000:
            rows.append(MixRow(workload_class, family, offer, kind, hours, to_cents(cost)))
    return tuple(rows)


def _marginal_price(kind: str, plan: Solved, supply: Supply, name: str) -> float:
    """USD per GPU-hour of one kind of capacity; what is bought ahead at its mean rate."""
    offer = supply.offers[base_name(name)]
    if kind == "spot":
        return offer.spot or 0.0
    if kind == "on_demand":
        return offer.on_demand or 0.0
    if kind == "savings_plan":
        return offer.plan_rate or 0.0
    rates = {f"{term.name}/{term.payment}": term.rate for term in offer.terms}
    bought = [one for one in plan.result.reservations if one.offer == offer.id]
    count = sum(one.count for one in bought)
    return sum(one.count * rates[one.id] for one in bought) / count if count else 0.0


def _owned_parts(
    plan: Solved, supply: Supply, offer: str, kinds: Mapping[str, str]
) -> list[tuple[str, float, float]]:
    """Kind, share of the hours and USD per GPU-hour of what is owned of an offer.

    Which commitment an hour falls to nobody knows: each kind gets its share of the GPU-hours owned.
    """
    sums: dict[str, list[float]] = {}
    for one in supply.owned:
        if one.offer == offer:
            lasts = one.until_hour / plan.problem.hours
            kind = "savings_plan" if kinds.get(one.id) == "savings_plan" else "reserved"
            entry = sums.setdefault(kind, [0.0, 0.0])
            entry[0] += one.gpus * lasts
            entry[1] += one.ahead_usd_per_month * lasts
    total = sum(gpus for gpus, _ in sums.values())
    if not total:
        return [("reserved", 1.0, 0.0)]
    return [
        (kind, gpus / total, cost / (gpus * HOURS_PER_MONTH) if gpus else 0.0)
        for kind, (gpus, cost) in sorted(sums.items())
    ]


def solve_figures(waterfall: Waterfall) -> SolveFigures:
    """How the optimiser ended on the plan; optimal only where every stage is."""
    plan = waterfall.plan
    result = plan.result
    stages = tuple(_proof(stage, solved) for stage, solved in sorted(waterfall.stages.items()))
    return SolveFigures(
        status=waterfall.status,
        solver=result.solver,
        objective=round(result.objective or 0.0, 6),
        bound=round(result.bound or 0.0, 6),
        gap=round(max(0.0, result.gap or 0.0), 9),
        hours_planned=plan.problem.hours,
        short_gpu_hours_per_month=round(plan.short_gpu_hours, 6),
        audited=round(plan.audited, 6),
        stages=stages,
        scenarios=len(plan.problem.scenarios),
        risk=round(result.costs["cvar"], 6),
    )


def _proof(stage: Stage, solved: Solved) -> StageProof:
    result = solved.result
    return StageProof(
        stage=stage.name.lower(),
        status=result.status,
        solver=result.solver,
        objective=round(result.objective or 0.0, 6),
        bound=round(result.bound or 0.0, 6),
        gap=round(max(0.0, result.gap or 0.0), 9),
        audited=round(solved.audited, 6),
    )


def rejected_prices(offers: pd.DataFrame) -> tuple[RejectedPrice, ...]:
    """Every price that never reached the model, with its reason, sorted."""
    rows: list[dict[str, Any]] = records(offers[offers["status"] != "used"])
    made = [
        RejectedPrice(
            provider=row["provider"],
            region=row["region"],
            instance_type=row["instance_type"],
            purchase_option=row["purchase_option"],
            usd_per_instance_hour=row["usd_per_instance_hour"],
            as_of=f"{row['as_of']:%Y-%m-%d}",
            status=row["status"],
            reason=row["reason"] or "",
        )
        for row in rows
    ]
    return tuple(sorted(made, key=_price_key))


def _price_key(row: RejectedPrice) -> tuple[str, ...]:
    place = (row.provider, row.region, row.instance_type, row.purchase_option, row.as_of)
    return (*place, str(row.usd_per_instance_hour), row.reason)
