"""One run: its settings, its store and its day, and the tables that commands read from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data import catalogue, frames, money, open_month, quality, restated, spark
from data.errors import ConfigError, DataError, Problem
from data.hours import HOUR, day_start, iso
from data.plan import Freshness
from data.schema import COMMITMENTS, INVOICES, JOBS, PRICES, WAITING
from data.store import Store
from planner import observed, prices, settled
from planner.alert_rules import Rule, evaluate
from planner.classes import assign
from planner.config import load_config
from planner.fees.given import with_fees
from planner.fleet_hours import Fleet, Policy, build
from planner.gpu_counts import with_stated_gpus
from planner.holdings import monthly_rows
from planner.idle import idle_document
from planner.lineage import lineage
from planner.measured_hours import rates_from_offers
from planner.patterns import idle_patterns
from planner.planning import CURRENCY, NightInputs, rates_per_usd, with_owned_ids
from planner.reconcile import Books, reconcile
from planner.states import thresholds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    import pandas as pd

    from data.hours import Window
    from data.schema import Table
    from planner.settings import Settings


@dataclass(frozen=True, slots=True)
class Session:
    """One run: its settings, its store, and the day it works as of.

    `kept` are the tables of the files that the configuration names: they hold as they stand today,
    and outrank what was loaded into the store by hand.
    """

    settings: Settings
    store: Store
    as_of: date
    kept: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def billing(self) -> Any:
        """The bill with its workload classes, and GPUs of types that the user's prices state."""
        counted = with_stated_gpus(self.store.table("billing"), self.shapes())
        return assign(counted, self.settings.classes)

    def utilization(self) -> Any:
        """Telemetry with the classes that its own columns give."""
        return assign(self.store.table("utilization"), self.settings.classes)

    def commitments(self) -> pd.DataFrame:
        """Frame of COMMITMENTS: what is owned, as the user's tables say."""
        return self._kept_or_loaded("commitments", COMMITMENTS)

    def waiting(self) -> pd.DataFrame:
        """Frame of WAITING: GPUs that queued jobs waited for."""
        return self._kept_or_loaded("waiting", WAITING)

    def jobs(self) -> pd.DataFrame:
        """Frame of JOBS: what is queued, and what was."""
        return self._kept_or_loaded("jobs", JOBS)

    def invoices(self) -> pd.DataFrame:
        """Frame of INVOICES: what the clouds invoiced, to hold the bill against."""
        return self._kept_or_loaded("invoices", INVOICES)

    def own_prices(self) -> pd.DataFrame:
        """Frame of PRICES: the user's own prices and discounts."""
        return self._kept_or_loaded("prices", PRICES)

    def shapes(self) -> pd.DataFrame:
        """Frame of GPU_SHAPES: the known machine types and those that the user's prices state."""
        return catalogue.with_stated(catalogue.shapes(), self.own_prices())

    def _kept_or_loaded(self, name: str, declared: Table) -> pd.DataFrame:
        if name in self.kept:
            return frames.conform(self.kept[name], declared)
        return _fetched(self.store, name, declared)


@dataclass(frozen=True, slots=True)
class Observed:
    """The fleet in its window, the prices it was judged by, and how far each input reaches."""

    window: Window
    fleet: Fleet
    offers: pd.DataFrame
    commitments: pd.DataFrame
    extents: list[observed.Extent]
    tails: list[settled.Tail]


def open_session(
    config: Path | None,
    store: Path | None,
    as_of: date,
    read_kept: Callable[[Path, str], pd.DataFrame],
) -> Session:
    """The session that the common options describe.

    `read_kept` reads one of the tables kept by hand. Raises ConfigError with every fault of the
    configuration, or of the files that it names.
    """
    settings = load_config(config)
    if settings.store.engine == "spark":
        spark.check_installed()
    opened = Store.open(store or settings.store_path)
    opened.engine = settings.store.engine
    return Session(settings, opened, as_of, _kept_tables(settings, read_kept))


def kept_files(settings: Settings) -> dict[str, Path]:
    """The files of tables kept by hand that the configuration names, by table."""
    named = {"prices": settings.prices.overrides}
    named |= {name: getattr(settings.inputs, name) for name in type(settings.inputs).model_fields}
    return {name: settings.path(text) for name, text in named.items() if text is not None}


def _kept_tables(
    settings: Settings, read_kept: Callable[[Path, str], pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    kept: dict[str, pd.DataFrame] = {}
    problems: list[Problem] = []
    for name, path in kept_files(settings).items():
        if not path.is_file():
            problems.append(Problem(str(path), f"no such file, named for {name}", "correct it"))
            continue
        try:
            kept[name] = read_kept(path, name)
        except DataError as error:
            found = error.problems or (Problem(name, error.message),)
            problems += [replace(one, where=f"{path.name}: {one.where}") for one in found]
    if problems:
        raise ConfigError("files that the configuration names cannot be used", problems)
    return kept


def checked_prices(session: Session) -> pd.DataFrame:
    """Frame of OFFERS: the bundled book and the user's own prices, after their checks."""
    return prices.check(
        catalogue.price_book(),
        session.own_prices(),
        session.shapes(),
        session.as_of,
        session.settings.prices,
    )


def observe(session: Session, whole_days: bool = True) -> Observed:
    """The fleet's hours before the day. Raises DataError where the store holds none."""
    billing, utilization = session.billing(), session.utilization()
    extents = observed.extents(billing, utilization, session.as_of)
    plan = session.settings.plan
    tails = settled.tails(billing, session.as_of, plan.settle_hours.of, plan.tail_hours)
    window = observed.observed_window(
        billing, utilization, session.as_of, plan.history_days, tails if whole_days else None
    )
    if window.hours == 0:
        raise DataError(
            f"no GPU-hours before {session.as_of.isoformat()} in the store {session.store.path}: "
            "load billing or utilization first, or name another --date"
        )
    offers, owned = checked_prices(session), session.commitments()
    shapes = session.shapes()
    policy = Policy(
        thresholds=thresholds_of(session.settings),
        shapes=shapes,
        rates=rates_from_offers(offers, shapes),
        as_of=day_start(session.as_of),
    )
    fleet = build(billing, utilization, policy, window, owned)
    return Observed(window, fleet, offers, owned, extents, tails)


def night_inputs(session: Session) -> NightInputs:
    """Everything that a night's plan rests on."""
    seen = observe(session)
    tables = {extent.table for extent in seen.extents}
    fees, fee_notes = unspread_fees(seen.fleet, seen.window)
    return NightInputs(
        as_of=session.as_of,
        window=seen.window,
        covered=seen.fleet.covered,
        fleet=seen.fleet.hours,
        offers=seen.offers,
        shapes=session.shapes(),
        commitments=seen.commitments,
        quality=findings(session, seen),
        settings=session.settings,
        deliveries=tuple(one.delivery_id for one in session.store.deliveries()),
        freshness=_freshness(session, seen),
        has_billing="billing" in tables,
        has_utilization="utilization" in tables,
        unspread_fees=fees,
        notes=(*_history_notes(session.settings, seen), *fee_notes),
        waiting=session.waiting(),
        jobs=session.jobs(),
        lineage=lineage(session.store.active(), seen.window),
        versions=session.store.history(),
    )


def findings(session: Session, seen: Observed) -> pd.DataFrame:
    """Frame of QUALITY: what was found while loading, observing and pricing, worst first."""
    late = observed.window_findings(seen.extents, seen.window, session.as_of)
    late += settled.findings(seen.tails, observed.MAX_LAG)
    priced = prices.findings(seen.offers, session.as_of)
    told = [
        quality.Finding(**row)
        for table in (session.store.quality(), priced)
        for row in frames.records(table)
    ]
    billed = quality.checks(session.billing(), session.utilization(), seen.commitments, seen.window)
    changed = restated.findings(session.store.history())
    changed += open_month.findings(session.store.table("billing"), session.as_of)
    books = Books(
        billing=session.store.table("billing"),
        invoices=session.invoices(),
        commitments=seen.commitments,
        fleet=seen.fleet.hours,
        window=seen.window,
        covered=seen.fleet.covered,
    )
    sums = reconcile(books)
    return quality.table([*told, *billed, *late, *changed, *seen.fleet.findings, *sums])


def check_findings(session: Session) -> pd.DataFrame:
    """Frame of QUALITY of all that the store holds before the day.

    Where there are no GPU-hours, what was found while loading, or machine types that nothing
    describes, may be the reason and are told.
    """
    try:
        return findings(session, observe(session))
    except DataError as error:
        told = [quality.Finding(**row) for row in frames.records(session.store.quality())]
        told += quality.unknown_types(session.billing())
        told += restated.findings(session.store.history())
        if not told:
            raise
        return quality.table(
            [*told, quality.Finding("no_gpu_hours", "all", "error", error.message)]
        )


def idle_answer(session: Session, by: Sequence[str]) -> dict[str, Any]:
    """The document of `loadfactor idle`."""
    seen = observe(session, whole_days=False)
    fleet, hours = seen.fleet.hours, len(seen.fleet.covered)
    zone = session.settings.plan.display_timezone
    alerts = evaluate(fleet, _rules(session.settings), seen.window.end)
    return idle_document(
        fleet,
        by,
        hours,
        patterns=idle_patterns(fleet, hours, zone),
        alerts=[alert.as_json() for alert in alerts],
        window={"start": iso(seen.window.start), "end": iso(seen.window.end)},
    )


def commitments_answer(session: Session) -> dict[str, Any]:
    """The document of `loadfactor commitments`: means per month, and of which hours."""
    seen = observe(session)
    bill = with_owned_ids(with_fees(seen.fleet.hours, seen.fleet.fees), seen.commitments)
    hours = len(seen.fleet.covered)
    rates = rates_per_usd(session.settings)
    return {
        "rows": monthly_rows(seen.commitments, bill, rates, hours),
        "hours_observed": hours,
        "window": {"start": iso(seen.window.start), "end": iso(seen.window.end)},
    }


def unspread_fees(fleet: Fleet, window: Window) -> tuple[Decimal, tuple[str, ...]]:
    """Fees in USD of GPU commitments and blocks that no hour bears, and a note on them."""
    fees = [one.amount for one in fleet.unspread if one.currency == CURRENCY and one.is_inside]
    total = money.total(fees)
    if not total:
        return Decimal(0), ()
    month = money.per_month(total, window.hours)
    note = (
        f"fees of {month:,.0f} {CURRENCY} a month for GPU commitments and capacity blocks are not "
        "spread: they are outside the planned bill, and the hours that they cover have no known "
        "cost"
    )
    return total, (note,)


def _fetched(store: Store, name: str, declared: Table) -> pd.DataFrame:
    table = store.table(name)
    return frames.conform(table.get_backend().to_pandas(table), declared)


def _rules(settings: Settings) -> list[Rule]:
    return [
        Rule(
            name=alert.name,
            states=tuple(alert.when.state),
            for_minutes=alert.when.for_minutes,
            min_usd=money.exact(alert.when.min_usd),
            cooldown_minutes=alert.cooldown_minutes,
            scope={
                name: globs
                for name, globs in (
                    ("workload_class", tuple(alert.when.workload_class)),
                    ("cloud", tuple(alert.when.cloud)),
                )
                if globs
            },
        )
        for alert in settings.alerts
    ]


def _freshness(session: Session, seen: Observed) -> tuple[Freshness, ...]:
    newest = day_start(session.as_of)
    return tuple(
        Freshness(
            source=extent.cloud,
            dataset=extent.table,
            account="all",
            data_to=iso(extent.end),
            stale=newest - extent.end > observed.MAX_LAG,
        )
        for extent in seen.extents
    )


def _history_notes(settings: Settings, seen: Observed) -> tuple[str, ...]:
    least = settings.plan.min_history_days * 24
    hours = len(seen.fleet.covered)
    notes = []
    if hours < least:
        notes.append(
            f"only {hours} hours of history: below {least} (min_history_days) no commitment is "
            "advised"
        )
    missing = int((seen.window.end - seen.window.start) / HOUR) - hours
    if missing:
        notes.append(f"{missing} hours of the window have no data at all and are left out")
    return tuple(notes)
