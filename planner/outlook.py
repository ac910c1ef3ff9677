"""A night's plan worked out: what can be had, what is needed, what may be committed to, and solved.

Where the history is too short for a forecast, the past is taken to come again and nothing is
committed to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from data.hours import day_start
from data.risks import ServiceLevel
from planner.assemble import PlanRules
from planner.classes import eligible
from planner.event_costs import event_costs, event_losses
from planner.future import counted, expected, year_ahead
from planner.horizon import horizon_of
from planner.ladder import ladder, unpriced
from planner.ladder_steps import limits_of, sized
from planner.last_night import target
from planner.long_terms import weighed
from planner.needs import needs_from
from planner.owned import owned_from
from planner.prices import offer_table
from planner.problem import Cvar
from planner.quotas import quotas_from
from planner.reasons import owned_parts
from planner.rightsizing import to_cents
from planner.service_level import level_note, level_warnings, limits_at
from planner.service_reasons import why_below
from planner.stage_solver import StageSolver
from planner.supply import Supply, offers_from
from planner.unmet import unmet_rows, with_unmet
from planner.waterfall import Basis, Waterfall, run, without_level

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    import pandas as pd

    from data.known_events import EventCost, KnownEvent
    from data.plan import Plan
    from data.reasons import OwnedPart
    from data.risks import EventLoss
    from data.unmet import UnmetDemand
    from planner.assemble import Need
    from planner.future import Future
    from planner.horizon import Horizon
    from planner.ladder import Rung, Unpriced
    from planner.outcome import Plan as Bought
    from planner.planning import NightInputs
    from planner.problem import CommitmentLimit, Quota
    from planner.settings import WorkloadClass
    from planner.unmet import Unmet

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Outlook:
    """The solved stages, what could be had and is owned, the planned year, and the ladder.

    `events` are the known events that the demand to come counts; `unpriced` is work that no term
    is priced for; `unmet` is what queued and what was full, class by class, and `needs` are the
    needs with it; `near` the demand of the first weeks; `service` is how far a stated service level
    is reached, and `level_usd_per_month` what it costs.
    """

    waterfall: Waterfall
    supply: Supply
    planned: Horizon
    owned: tuple[OwnedPart, ...]
    rungs: tuple[Rung, ...]
    events: tuple[KnownEvent, ...] = ()
    unpriced: tuple[Unpriced, ...] = ()
    unmet: tuple[UnmetDemand, ...] = ()
    warnings: tuple[str, ...] = ()
    event_costs: tuple[EventCost, ...] = ()
    event_losses: tuple[EventLoss, ...] = ()
    service: tuple[ServiceLevel, ...] = ()
    level_usd_per_month: Decimal | None = None
    needs: tuple[Need, ...] = ()
    near: Future | None = None


def work_out(bill: pd.DataFrame, given: NightInputs) -> Outlook:
    """The plan of a night. `bill` is FLEET_HOURS, planned rows only, money as float."""
    planned = planned_year(given)
    supply = supply_of(bill, given, planned)
    owned = owned_parts(given.commitments, bill, supply, given.window.end)
    unmet = with_unmet(_needs(bill, supply, given), bill, supply, given)
    needs = unmet.needs
    quotas, notes = quotas_from(given.settings.quotas, needs, supply)
    bare = expected(needs, given.covered, planned, given.settings) if is_long(given) else None
    future = None if bare is None else counted(bare, needs, given.settings.events)
    rungs = _rungs(needs, supply, planned, given)
    apart = unpriced(needs, supply, given.covered, planned) if is_long(given) else ()
    told = _too_short(given, unmet) if future is None else future.warnings
    supply = replace(sized(supply, rungs), notes=(*supply.notes, *notes, *told, *unmet.notes))
    level = given.settings.plan.service_level
    if level is not None:
        supply = replace(supply, notes=(*supply.notes, level_note(level, future is not None)))
    supply = weighed(supply, rungs, given.settings.plan.cvar.weight)
    basis = Basis(
        needs=needs,
        supply=supply,
        horizon=horizon_of(given.window.end, len(given.covered)),
        rules=_rules(given, quotas, limits_of(rungs), (needs, supply, future)),
        solve_stage=_solver(given, owned),
        future=future,
    )
    waterfall = run(bill, basis)
    service = _service(waterfall, basis)
    return Outlook(
        waterfall=waterfall,
        supply=supply,
        planned=planned,
        owned=owned,
        rungs=rungs,
        events=() if future is None else future.events,
        unpriced=apart,
        unmet=unmet_rows(unmet, bare, _plain(unmet, bare, planned, given)),
        warnings=(*unmet.warnings, *level_warnings(service)),
        event_costs=event_costs(waterfall.plan, basis, bare, given.settings.events),
        event_losses=event_losses(waterfall.plan, basis, bare, given.settings.events),
        service=service,
        level_usd_per_month=_level_usd(bill, waterfall, basis, limits_of(rungs)),
        needs=tuple(needs),
        near=None if future is None else future.near,
    )


def _rules(
    given: NightInputs,
    quotas: tuple[Quota, ...],
    limits: tuple[CommitmentLimit, ...],
    ahead: tuple[Sequence[Need], Supply, Future | None],
) -> PlanRules:
    settings = given.settings.plan
    needs, supply, future = ahead
    level = None if future is None else settings.service_level
    if future is not None and level is not None:
        limits = limits_at(limits, needs, supply, future, level)
    return PlanRules(
        upfront_budget=settings.upfront_budget,
        allow_commitments=is_long(given),
        quotas=quotas,
        cvar=Cvar(settings.cvar.weight, settings.cvar.beta, of_all=True),
        limits=limits,
        service_level=level,
    )


def _service(waterfall: Waterfall, basis: Basis) -> tuple[ServiceLevel, ...]:
    """How far a stated service level is reached, class by class."""
    level, plan = basis.rules.service_level, waterfall.plan
    if level is None:
        return ()
    missed = why_below(plan, level, basis.solve_stage.stage)
    rows = []
    for name, share in plan.served:
        workload_class, family = name.rsplit("|", 1)
        reached = round(share, _DIGITS)
        rows.append(ServiceLevel(workload_class, family, level, reached, missed.get(name)))
    return tuple(rows)


def _level_usd(
    bill: pd.DataFrame, waterfall: Waterfall, basis: Basis, limits: tuple[CommitmentLimit, ...]
) -> Decimal | None:
    """What a stated service level costs a month more than the plan without it."""
    if basis.rules.service_level is None:
        return None
    rules = replace(basis.rules, service_level=None, limits=limits)
    without = without_level(bill, waterfall, replace(basis, rules=rules))
    return to_cents(waterfall.plan.usd_per_month - without.usd_per_month)


def _solver(given: NightInputs, owned: tuple[OwnedPart, ...]) -> StageSolver:
    settings = given.settings.plan
    return StageSolver(
        gap=settings.gap,
        time_limit=settings.time_limit_seconds,
        name=settings.solver,
        last=None if given.last is None else _advised(given.last, owned),
        tolerance=settings.tolerance,
    )


def is_long(given: NightInputs) -> bool:
    """Whether the history says enough to forecast from it, and to commit on that."""
    return len(given.covered) >= given.settings.plan.min_history_days * 24


def planned_year(given: NightInputs) -> Horizon:
    """The year that the plan is for: the coming one, or where little is known the past again."""
    horizon = horizon_of(given.window.end, len(given.covered))
    return year_ahead(horizon) if is_long(given) else horizon


def supply_of(bill: pd.DataFrame, given: NightInputs, planned: Horizon) -> Supply:
    """What can be had and is owned, with a note on what could not be placed."""
    offers = offers_from(given.offers, given.shapes, bill, given.settings.plan.terms)
    now = day_start(given.as_of) + timedelta(days=1)
    owned, notes = owned_from(given.commitments, bill, offers, planned, now)
    from_bill = sorted(name for name, offer in offers.items() if offer.from_bill)
    if from_bill:
        notes = (*notes, f"priced from the bill, the book has no price: {', '.join(from_bill)}")
    return Supply(offers, owned, notes)


def _needs(bill: pd.DataFrame, supply: Supply, given: NightInputs) -> list[Need]:
    table = offer_table(given.offers, given.shapes)

    def allowed(rule: WorkloadClass, family: str) -> set[str]:
        return set(eligible(rule, table, given.shapes, family)) & set(supply.offers)

    return needs_from(bill, given.covered, given.settings, supply, allowed)


def _rungs(
    needs: list[Need], supply: Supply, planned: Horizon, given: NightInputs
) -> tuple[Rung, ...]:
    """The ladder; nothing where the history is too short."""
    if not is_long(given):
        return ()
    return ladder(needs, supply, given.covered, planned, given.settings.events)


def _plain(
    unmet: Unmet, bare: Future | None, planned: Horizon, given: NightInputs
) -> Future | None:
    """The demand to come without what queued and what was full, where there is any."""
    if bare is None or not unmet.is_any:
        return None
    plain = [replace(need, waited={}, full={}) for need in unmet.needs]
    return expected(plain, given.covered, planned, given.settings)


def _too_short(given: NightInputs, unmet: Unmet) -> tuple[str, ...]:
    """A note on all that a history too short to plan ahead leaves out."""
    notes = [f"the event {rule.name} is left out" for rule in given.settings.events]
    if unmet.is_any:
        notes.append("what queued jobs waited for, and what was full, is left out")
    return tuple(f"{note}: the history is too short to plan ahead" for note in notes)


def _advised(last: Plan, owned: tuple[OwnedPart, ...]) -> Bought | None:
    """What the last night advised and is not bought yet; None where it does not say."""
    said = last.summary.reasons
    return None if said is None else target(said, owned)
