"""Pulls the billing export of a Google Cloud source: a BigQuery table, or its extracts in a bucket.

Of a table the invoice months that changed are normalised and brought to the hour inside BigQuery;
only those rows travel. Each month is one delivery, published whole or not at all.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import ibis

from data.errors import LoadfactorError, Problem, ProviderError, StoreError
from data.hourly import hourly
from data.store import DeliveryResult, Status, delivery_id
from providers.contract import DeliveryContext
from providers.fetch.contract import Fetched
from providers.fetch.exports import first_period, pull_exports
from providers.fetch.index import beside, known_ids
from providers.fetch.landing import Landing
from providers.files.recognise import layout_of
from providers.focus import billing as focus
from providers.gcp import accounts, landing
from providers.gcp.bigquery import MAX_BYTES_BILLED, Warehouse
from providers.gcp.billing import FINDINGS, with_findings
from providers.gcp.dialect import bigquery_sql
from providers.gcp.places import BucketPlace, place_of
from providers.gcp.projection import EXPORT, columns_of, projection
from providers.gcp.session import Session, positive
from providers.gcp.storage import Bucket
from providers.gcp.survey import Memory, day_ranges, export_time_sql, month_sql, survey, within_sql

if TYPE_CHECKING:
    from providers.fetch.contract import FetchTask
    from providers.gcp.bigquery import Shape
    from providers.gcp.places import TablePlace
    from providers.gcp.projection import TableField
    from providers.gcp.survey import MonthVersion

log = logging.getLogger("loadfactor")
FOCUS = "focus"
_READABLE = ("standard", "detailed", FOCUS)


@dataclass(slots=True)
class _Pull:
    """One pull of one table, and what came of it so far."""

    task: FetchTask
    warehouse: Warehouse
    shape: Shape
    dataset: str
    memory: Memory
    rows: int = 0
    bytes: int = 0
    results: list[DeliveryResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, as a flattened file names them."""
        return columns_of(self.shape.fields)


def fetch(task: FetchTask) -> Fetched:
    """What became of the pull of the source's export.

    Raises ConfigError where the source names no export, MissingCredentials where nobody is signed
    in, ProviderError where nothing could be read, StoreError where store or landing cannot be
    written.
    """
    where = f"sources.{task.name}"
    place = place_of(task.options.get("billing"), f"{where}.billing")
    session = Session(where, task.options, os.environ)
    account = task.options.get("billing_account")
    told = accounts.warnings(session.billing(), str(account)) if account else ()
    if isinstance(place, BucketPlace):
        fetched = pull_exports(Bucket(session.storage(), place), place.folder, task)
    else:
        fetched = _pull_table(task, place, session)
    return replace(fetched, warnings=(*told, *fetched.warnings))


def _pull_table(task: FetchTask, place: TablePlace, session: Session) -> Fetched:
    most = positive(task.options, "max_bytes_billed", MAX_BYTES_BILLED, session.where)
    client = session.bigquery(str(task.options.get("job_project") or place.project))
    warehouse = Warehouse(client, place, most, task.options.get("location"))
    downloads = Landing(task.landing)
    with downloads.held():
        shape = warehouse.shape()
        memory = Memory.read(task.landing, place.name)
        pull = _Pull(task, warehouse, shape, _dataset(task, shape), memory)
        pull.bytes += survey(warehouse, shape, memory, task.as_of)
        memory.write(task.landing)
        versions = [one for one in memory.versions() if one.month >= first_period(task)]
        if not versions:
            what = "it holds no charge of the months that are looked at"
            remedy = "name the table of the export; a new export takes a day to come"
            problem = Problem(place.shown, what, remedy)
            raise ProviderError("gcp: the export is empty", [problem])
        _pull_months(pull, versions)
        memory.write(task.landing)
    return Fetched(
        source=task.name,
        kind=str(task.options["kind"]),
        objects=pull.rows,
        bytes=pull.bytes,
        deliveries=tuple(pull.results),
        warnings=tuple(pull.warnings),
    )


def _dataset(task: FetchTask, shape: Shape) -> str:
    """Detailed, standard or FOCUS, as the configuration or the table's columns say."""
    stated = task.options.get("dataset")
    layout = layout_of(columns_of(shape.fields), None if stated is None else str(stated))
    if layout.dataset in _READABLE:
        return layout.dataset
    remedy = "name the table of the detailed, the standard or the FOCUS export"
    problem = Problem(f"sources.{task.name}.billing", f"a table of layout {layout.dataset}", remedy)
    raise ProviderError("gcp: the table cannot be read by a query", [problem])


def _pull_months(pull: _Pull, versions: list[MonthVersion]) -> None:
    """Load the months that the store does not hold in this version, oldest first.

    One that cannot be read is rejected, and the others are still loaded; where BigQuery fails as a
    whole the rest is rejected too. Raises ProviderError where nothing at all came of it.
    """
    pull.task.store.refresh()
    known = set() if pull.task.force else known_ids(pull.task.store)
    sql = _normal_form(pull.shape.fields, pull.dataset, pull.warehouse.place.shown)
    broken: ProviderError | None = None
    failed: ProviderError | None = None
    for version in versions:
        one = _arriving(pull, version)
        settled = _settled(pull, one, known)
        if settled is not None:
            pull.results.append(settled)
            continue
        if not version.is_whole:
            pull.warnings.append(
                f"{one.shown}: days of it are no longer in the table: what was loaded stays"
            )
            continue
        try:
            if broken is not None:
                raise broken
            pull.results.append(_load(pull, one, sql))
        except StoreError:
            raise
        except ProviderError as error:
            failed = error
            broken = error if type(error) is not ProviderError else broken
            pull.results.append(_rejected(pull, one, error))
        except LoadfactorError as error:
            pull.results.append(_rejected(pull, one, error))
    if failed and all(result.status == Status.REJECTED for result in pull.results):
        raise failed


@lru_cache(maxsize=8)
def _normal_form(fields: tuple[TableField, ...], dataset: str, shown: str) -> str:
    """A table in normal form and brought to the hour, as SQL over the common table EXPORT."""
    _, raw = projection(fields, EXPORT, "TRUE")
    context = DeliveryContext(shown, dataset, "", columns_of(fields))
    if dataset == FOCUS:
        # Nothing of it is told row by row, so that there is nothing to mark.
        marks = {name: ibis.literal(False) for name in FINDINGS}
        rows = focus.normalise(raw, context).rows.mutate(**marks)
    else:
        rows = with_findings(raw, context)
    return bigquery_sql(landing.travelling(hourly(rows)))


def _query(pull: _Pull, version: MonthVersion, normal_form: str) -> str:
    """The charges of one month that had been exported when it was counted."""
    shape = pull.shape
    where = (
        f"{within_sql(shape.partitions, day_ranges(version.days) if shape.partitions else [])}\n"
        f"  AND {month_sql(shape)} = '{version.month.replace('-', '')}'\n"
        f"  AND {export_time_sql(shape)} <= TIMESTAMP_MICROS({version.newest})"
    )
    select, _ = projection(shape.fields, pull.warehouse.place.sql, where)
    return f"WITH `{EXPORT}` AS (\n{select}\n)\nSELECT * FROM (\n{normal_form}\n)"


def _arriving(pull: _Pull, version: MonthVersion) -> landing.Arriving:
    place = pull.warehouse.place
    mark = f"{place.name}-{pull.dataset}-{version.newest}-{version.rows}"
    return landing.Arriving(
        version=version,
        dataset=pull.dataset,
        delivery_id=delivery_id("", pull.dataset, mark, version.month),
        shown=f"{place.shown} {version.month}",
        export=place.shown,
        columns=pull.columns,
    )


def _load(pull: _Pull, one: landing.Arriving, sql: str) -> DeliveryResult:
    store = pull.task.store
    log.info("%s: reading %d charges", one.shown, one.version.rows)
    answer = pull.warehouse.ask(_query(pull, one.version, sql))
    pull.bytes += answer.bytes
    with store.staging() as folder:
        pull.rows += landing.keep(answer.pages, folder)
        result = store.publish(landing.stage(one, folder, store), pull.task.force)
    if result.status == Status.IGNORED_OLDER:
        reason = result.reason or "older"
        pull.memory.ignored[one.delivery_id] = (reason, beside(store, result))
    return result


def _settled(pull: _Pull, one: landing.Arriving, known: set[str]) -> DeliveryResult | None:
    """The answer for a month that the store has judged in this version, None for any other.

    A month that it would not take is not read again as long as what stood in its place is there.
    """
    if one.delivery_id in known:
        records = pull.task.store.deliveries()
        return next(r for r in records if r.delivery_id == one.delivery_id).unchanged(one.shown)
    reason, others = pull.memory.ignored.get(one.delivery_id, ("", ()))
    if others and set(others) <= known:
        return _result(pull, one, Status.IGNORED_OLDER, reason)
    return None


def _rejected(pull: _Pull, one: landing.Arriving, error: LoadfactorError) -> DeliveryResult:
    return _result(pull, one, Status.REJECTED, error.one_line)


def _result(
    pull: _Pull, one: landing.Arriving, status: Status, reason: str | None
) -> DeliveryResult:
    return DeliveryResult(
        path=one.shown,
        source="gcp",
        dataset=pull.dataset,
        delivery_id=one.delivery_id,
        billing_periods=(one.version.month,),
        rows=0,
        status=status,
        reason=reason,
    )
