"""One night's plan, from tables to tables: the pure core that `plan` and `nightly` call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from data.frames import empty, records
from data.hours import iso
from data.money import exact
from data.names import UNUSED_PREFIX
from data.plan import BillFigures, Freshness, Plan, Summary
from data.schema import COMMITTED_OPTIONS, JOBS, WAITING
from planner import summary as figures
from planner.demand import demand
from planner.demand_hours import demand_hours
from planner.events import classless
from planner.holdings import holdings, with_advised, with_ends
from planner.idle import idle_table
from planner.ladder_steps import ending_parts, ladder_steps
from planner.last_night import same_fleet
from planner.limits import changes, limits
from planner.lineage import Versions, restated_since, with_advice
from planner.moves import moves
from planner.nodes import last_segment
from planner.outlook import work_out
from planner.purchases import purchases
from planner.reasons import Basis as ReasonsBasis
from planner.reasons import Last, reasons
from planner.rightsizing import Advice, recommend, to_cents
from planner.risks import owned_kinds, risks_of
from planner.unpriced import unpriced_endings, unpriced_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    import pandas as pd

    from data.hours import Window
    from data.lineage import Lineage
    from data.reasons import Reasons
    from planner.outlook import Outlook
    from planner.settings import Settings
    from planner.supply import Supply
    from planner.waterfall import Waterfall

CURRENCY = "USD"
PLAN_VALID = timedelta(hours=36)
_ROUNDING = Decimal("0.05")
_NUMBERS = ("gpu_hours", "needed_gpu_hours", "cost")


@dataclass(frozen=True, slots=True)
class NightInputs:
    """All that a night's plan rests on.

    Frames are FLEET_HOURS, OFFERS, GPU_SHAPES, COMMITMENTS and QUALITY; `deliveries` are the ids
    of the deliveries that were read; `covered` are the hours of the window that have data;
    `unspread_fees` are fees in USD for commitments and blocks that no hour bears; `last` is the
    plan of the newest night before, None where there is none; `waiting` and `jobs` are frames of
    WAITING and JOBS, what queued for GPUs; `lineage` are the deliveries that each cloud's hours
    come from, and `versions` what each unit of the bill was before.
    """

    as_of: date
    window: Window
    covered: pd.DatetimeIndex
    fleet: pd.DataFrame
    offers: pd.DataFrame
    shapes: pd.DataFrame
    commitments: pd.DataFrame
    quality: pd.DataFrame
    settings: Settings
    deliveries: tuple[str, ...]
    freshness: tuple[Freshness, ...]
    has_billing: bool
    has_utilization: bool
    unspread_fees: Decimal = Decimal(0)
    notes: tuple[str, ...] = ()
    last: Plan | None = None
    waiting: pd.DataFrame = field(default_factory=lambda: empty(WAITING))
    jobs: pd.DataFrame = field(default_factory=lambda: empty(JOBS))
    lineage: tuple[Lineage, ...] = ()
    versions: Versions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NightPlan:
    """The plan of a night and the tables that stand beside it."""

    plan: Plan
    recommendations: pd.DataFrame
    commitments: pd.DataFrame
    limits: pd.DataFrame
    idle: pd.DataFrame
    quality: pd.DataFrame
    demand: pd.DataFrame
    demand_hours: pd.DataFrame
    warnings: tuple[str, ...]


def plan_night(given: NightInputs) -> NightPlan:
    """The plan of a night. Raises SolveError where the optimiser finds none."""
    before = given.last
    last, last_note = _usable_last(given)
    given = replace(given, last=last)
    bill, left_out, missing = planned_rows(given.fleet, given.settings)
    bill = with_owned_ids(bill, given.commitments)
    left_out += given.unspread_fees
    found = work_out(bill, given)
    waterfall, supply = found.waterfall, found.supply
    strange = classless(
        given.settings.events, given.fleet["workload_class"].dropna(), given.window.end.date()
    )
    advice = _advice(given, bill, supply)
    advised = recommend(bill, waterfall, advice)
    owned = holdings(given.commitments, bill, len(given.covered), given.window.end)
    ids = {
        f"{row['cloud']}|{row['region']}|{row['resource']}": str(row["id"])
        for row in records(advised)
    }
    limit_rows = limits(bill, len(given.covered), waterfall.plan.peaks)
    bought = purchases(waterfall.plan, supply, waterfall.instead)
    notes = (*given.notes, *missing, *last_note, *_managed_note(given.fleet), *supply.notes)
    plan = Plan(
        date=given.as_of.isoformat(),
        data_as_of=iso(given.window.end),
        valid_until=iso(_valid_until(given.as_of)),
        inputs=given.deliveries,
        changes=changes(limit_rows, CURRENCY),
        lineage=with_advice(given.lineage, records(advised)),
        summary=replace(
            _summary(given, waterfall, advice, advised, left_out, notes),
            reasons=_reasons(given, found),
            risks=risks_of(
                found,
                given.commitments,
                bill,
                len(given.covered),
                given.settings.plan.min_history_days * 24,
            ),
            restated=restated_since(before, given.versions, advised["id"]),
        ),
    )
    needed = demand(given.fleet, given.window, given.covered)
    return NightPlan(
        plan=plan,
        recommendations=advised,
        commitments=with_advised(with_ends(owned, plan.summary.reasons), bought, ids),
        limits=limit_rows,
        idle=idle_table(given.fleet),
        quality=given.quality,
        demand=needed,
        demand_hours=demand_hours(needed, found.needs, given.covered, found.near),
        warnings=(*missing, *strange, *found.warnings),
    )


def _advice(given: NightInputs, bill: pd.DataFrame, supply: Supply) -> Advice:
    """What all recommendations of a night share."""
    return Advice(
        window_hours=len(given.covered),
        supply=supply,
        currency=CURRENCY,
        data_as_of=given.window.end,
        valid_until=_valid_until(given.as_of),
        kinds=owned_kinds(given.commitments, bill),
    )


def rates_per_usd(settings: Settings) -> dict[str, Decimal]:
    """What a dollar costs in each currency that a plan can add up: the stated ones, and USD."""
    stated = {code: exact(rate.per_usd) for code, rate in settings.prices.rates.items()}
    return {CURRENCY: Decimal(1), **stated}


def planned_rows(
    fleet: pd.DataFrame, settings: Settings
) -> tuple[pd.DataFrame, Decimal, tuple[str, ...]]:
    """Rows that a plan speaks of, in USD with numbers as floats; what is left out, in USD; why.

    Left out: hours of managed services, of currencies without a stated rate, and of machines whose
    region, type or GPU family is unknown: no offer could serve them.
    """
    rates = rates_per_usd(settings)
    notes = []
    foreign = fleet[~fleet["currency"].isin(rates)]
    for currency, part in foreign.groupby("currency", sort=True):
        hours = figures.total(part["gpu_hours"])
        notes.append(
            f"{hours:,.0f} GPU-hours billed in {currency} are not planned: "
            f"state a dated rate under [prices.rates]"
        )
    known = fleet[fleet["currency"].isin(rates)]
    per_usd = known["currency"].map(lambda code: float(rates[code])).astype(float)
    rows = known.assign(**{name: known[name].astype(float) for name in _NUMBERS})
    rows["cost"] = rows["cost"] / per_usd
    unpriced = float(rows.loc[rows["cost"].isna(), "gpu_hours"].sum())
    if unpriced:
        notes.append(f"{unpriced:,.0f} GPU-hours have no known price: they count as hours only")
    commitment = rows["instance_id"].str.startswith(UNUSED_PREFIX)
    placed = rows[["gpu_family", "region", "instance_type"]].notna().all(axis=1)
    inside = ~rows["managed_service"].astype(bool) & (placed | commitment)
    outside = rows[~inside]
    lost = outside.loc[~outside["managed_service"].astype(bool), "gpu_hours"].sum()
    if lost:
        notes.append(
            f"{lost:,.0f} GPU-hours are not planned: their region, machine type or GPU is not known"
        )
    return rows[inside].reset_index(drop=True), exact(float(outside["cost"].sum())), tuple(notes)


def _managed_note(fleet: pd.DataFrame) -> tuple[str, ...]:
    hours = figures.total(fleet.loc[fleet["managed_service"].astype(bool), "gpu_hours"])
    if not hours:
        return ()
    return (
        f"{hours:,.0f} GPU-hours of managed services (SageMaker, Vertex AI, Azure ML) are billed "
        "apart and never planned as instances",
    )


def with_owned_ids(bill: pd.DataFrame, commitments: pd.DataFrame) -> pd.DataFrame:
    """The rows with commitment ids as the table of commitments spells them.

    Exports give a GUID, a path or an ARN for the same commitment, in any letter case: ids are the
    same where their last segments are. Committed hours without an id get one that says so.
    """
    known = {last_segment(str(name)): str(name) for name in commitments["id"]}
    spelled = {
        name: known.get(last_segment(str(name)), str(name))
        for name in bill["commitment_id"].dropna().unique()
    }
    ids = bill["commitment_id"].map(spelled)
    nameless = ids.isna() & bill["purchase_option"].isin(COMMITTED_OPTIONS)
    named = "unnamed " + bill["purchase_option"].astype(str) + " on " + bill["cloud"].astype(str)
    return bill.assign(commitment_id=ids.where(~nameless, named))


def _usable_last(given: NightInputs) -> tuple[Plan | None, tuple[str, ...]]:
    """The last night's plan where this one can stay near to it, and a note where it cannot."""
    last = given.last
    if last is None:
        return None, ()
    if last.summary.reasons is None:
        return None, (f"the night of {last.date} does not say what it advised to buy",)
    if not same_fleet(last, given.fleet["account"].dropna().unique()):
        return None, (f"the night of {last.date} is of other accounts: it has no say in this one",)
    return last, ()


def _reasons(given: NightInputs, found: Outlook) -> Reasons:
    said = None if given.last is None else given.last.summary.reasons
    last = None
    if given.last is not None and said is not None:
        changed = restated_since(given.last, given.versions, ())
        clouds = frozenset(one.cloud for one in changed if not one.is_small)
        last = Last(given.last.date, said, given.settings.plan.tolerance, clouds)
    waterfall, supply = found.waterfall, found.supply
    made = reasons(ReasonsBasis(waterfall, supply, found.planned, found.owned), last)
    terms = given.settings.plan.terms
    dates = {row["id"]: f"{row['end']:%Y-%m-%d}" for row in records(given.commitments)}
    return replace(
        made,
        events=found.events,
        unmet=found.unmet,
        event_costs=found.event_costs,
        ladder=(
            *ladder_steps(found.rungs, waterfall, found.planned, supply),
            *unpriced_steps(found.unpriced, found.planned, terms),
        ),
        ending=(
            *ending_parts(found.rungs, waterfall, supply, found.planned, dates),
            *unpriced_endings(found.unpriced, supply, found.planned, dates, terms),
        ),
    )


def _summary(
    given: NightInputs,
    waterfall: Waterfall,
    advice: Advice,
    advised: pd.DataFrame,
    left_out: Decimal,
    notes: Sequence[str],
) -> Summary:
    month = 730.0 / len(given.covered)
    steps = waterfall.steps
    saving = figures.total(advised["saving_per_month"])
    today, planned = to_cents(steps.today), to_cents(steps.plan)
    expiring, growth = to_cents(steps.expiring), to_cents(steps.growth)
    repriced = planned - today + saving - expiring - growth
    if (expiring or growth) and abs(repriced) < _ROUNDING:
        # Each step is rounded to the cent by itself: what that leaves over is no change of prices.
        if expiring:
            expiring += repriced
        else:
            growth += repriced
        repriced = Decimal(0)
    bill = BillFigures(
        currency=CURRENCY,
        today_per_month=today,
        plan_per_month=planned,
        saving_per_month=saving,
        cash_saving_per_month=figures.total(advised["cash_saving_per_month"]),
        repriced_per_month=repriced,
        expiring_per_month=expiring,
        whole_machines_per_month=to_cents(waterfall.plan.whole_machines),
        not_planned_per_month=to_cents(float(left_out) * month),
        growth_per_month=growth,
        **_ranges(waterfall, saving),
    )
    per_hour = given.fleet.groupby("hour_start")["gpu_hours"].sum()
    return Summary(
        date=given.as_of.isoformat(),
        window_start=iso(given.window.start),
        window_end=iso(given.window.end),
        hours_observed=len(given.covered),
        fleet_gpus=round(float(max(per_hour.tolist(), default=Decimal(0)))),
        idle=figures.idle_figures(given.fleet, len(given.covered)),
        bill=bill,
        states=figures.state_rows(given.fleet),
        classes=figures.class_rows(given.fleet),
        mix=figures.mix_rows(waterfall.plan, advice.supply, advice.kinds),
        solve=figures.solve_figures(waterfall),
        moves=moves(advised),
        rejected_prices=figures.rejected_prices(given.offers),
        prices_used=int((given.offers["status"] == "used").sum()),
        freshness=given.freshness,
        notes=tuple(notes),
        rates=_rates(given.settings),
        least_history_hours=given.settings.plan.min_history_days * 24,
        has_billing=given.has_billing,
        has_utilization=given.has_utilization,
    )


def _ranges(waterfall: Waterfall, saving: Decimal) -> dict[str, Decimal]:
    """The saving and the plan's cost at the 10th and the 90th percentile of the scenarios.

    What is stopped saves the same however demand comes; what moves, goes to spot or is bought is
    held against running on as today in each way.
    """
    plan, steps = waterfall.plan, waterfall.steps
    if len(plan.by_scenario) < 2:
        return {}
    weights = [one.p for one in plan.problem.scenarios]
    found = {
        f"plan_{name}_per_month": amount
        for name, amount in _low_and_high(plan.by_scenario, weights)
    }
    if waterfall.as_now:
        saved = np.subtract(waterfall.as_now, plan.by_scenario)
        fixed = saving - to_cents(steps.spot + steps.move + steps.buy)
        for name, amount in _low_and_high(saved.tolist(), weights):
            found[f"saving_{name}_per_month"] = fixed + amount
    return found


def _low_and_high(
    values: Sequence[float], weights: Sequence[float]
) -> tuple[tuple[str, Decimal], tuple[str, Decimal]]:
    """The values between which 8 of 10 lie, by their weights."""
    low, high = np.quantile(values, [0.1, 0.9], weights=weights, method="inverted_cdf")
    return ("low", to_cents(float(low))), ("high", to_cents(float(high)))


def _rates(settings: Settings) -> tuple[str, ...]:
    """The exchange rates that amounts were turned into dollars with."""
    return tuple(
        f"{code} {rate.per_usd} per USD, as of {rate.as_of.isoformat()}"
        for code, rate in sorted(settings.prices.rates.items())
    )


def _valid_until(as_of: date) -> datetime:
    return datetime(as_of.year, as_of.month, as_of.day, tzinfo=UTC) + PLAN_VALID
