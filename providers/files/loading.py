"""Export files from disk into the store: each delivery whole or not at all."""

from __future__ import annotations

import errno
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import duckdb

from data import engines
from data.errors import DataError, LoadfactorError, Problem, StoreError, UsageError
from data.store import (
    DeliveryResult,
    StagedDelivery,
    Status,
    Store,
    delivery_id,
    unit_name,
)
from data.store.steps import unwritable
from providers.contract import DeliveryContext
from providers.files import staged as contents
from providers.files import tables
from providers.files.deliveries import Delivery, deliveries_in
from providers.files.faults import in_file, is_of_row, unreadable
from providers.files.finish import Lineage
from providers.files.heads import Head, head_of, read_parts
from providers.files.normal import Export, write_normal_form
from providers.files.raw import read_heads
from providers.files.recognise import Layout, check_dataset, layout_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from providers.contract import Normalised
    from providers.files.manifests import Manifest

_BILLING = "billing"
_LAYOUT = "layout"
_MOST_PROBLEMS = 12
_NO_CURRENCY = "currency 'unknown'"
_NO_SPACE = "No space left on device"


@dataclass(frozen=True, slots=True)
class _Job:
    """What is fixed for one delivery while it is staged; `seen` takes its layout once known."""

    delivery: Delivery
    digest: str
    dataset: str | None
    folder: Path
    connection: Any
    store: Store
    seen: dict[str, Layout]


def load(
    paths: Sequence[Path], store: Store, *, dataset: str | None = None, force: bool = False
) -> list[DeliveryResult]:
    """What became of every delivery of the paths, in the order in which they were taken.

    `dataset` overrules the guess of the layout. A delivery that cannot be read is rejected with
    the reason, and the others are still loaded. Raises UsageError for an unknown dataset, DataError
    for a path that does not exist or holds no export, StoreError where the store cannot be written.
    """
    if dataset is not None:
        check_dataset(dataset)
    results: list[DeliveryResult] = []
    for versions in _versions(deliveries_in(paths)):
        taken: DeliveryResult | None = None
        for delivery in versions:
            if taken is None:
                result = load_delivery(delivery, store, dataset, force)
                taken = None if result.status is Status.REJECTED else result
            else:
                reason = f"a newer delivery of the same export and period was given: {taken.path}"
                result = _unread(delivery, Status.IGNORED_OLDER, reason)
            results.append(result)
    return results


def _versions(deliveries: Sequence[Delivery]) -> Iterator[list[Delivery]]:
    """Deliveries of one export and period together, newest first; any other alone."""
    groups: dict[object, list[Delivery]] = {}
    for position, delivery in enumerate(deliveries):
        manifest = delivery.manifest
        key = position if manifest is None else (manifest.export, manifest.period)
        groups.setdefault(key, []).append(delivery)
    for group in groups.values():
        undated = any(d.manifest is not None and not d.manifest.is_dated for d in group)
        if len(group) > 1 and undated:
            told = "which of its deliveries is the newest was told by the time of their manifests' "
            group = [replace(d, warnings=(*d.warnings, f"{told}files")) for d in group]
        yield group[::-1]


def load_delivery(
    delivery: Delivery, store: Store, dataset: str | None = None, force: bool = False
) -> DeliveryResult:
    """What became of one delivery; see `load`."""
    seen: dict[str, Layout] = {}
    try:
        if delivery.problems:
            raise DataError("the delivery is not complete", delivery.problems)
        digest = content_hash(delivery.files)
        known = None if force else _known(delivery, digest, store, dataset)
        if known is not None:
            return known
        with store.staging() as folder:
            connection = _connect()
            try:
                job = _Job(delivery, digest, dataset, folder, connection, store, seen)
                staged = _stage(job)
            finally:
                connection.disconnect()
            return store.publish(staged, force)
    except (StoreError, UsageError):
        raise
    except LoadfactorError as error:
        return _unread(delivery, Status.REJECTED, _reason(error), seen.get(_LAYOUT))


def _connect() -> Any:
    """An engine that keeps the rows of an export on the streaming side of its joins.

    How many rows a CSV file has is unknown to it: left to choose, it would build its hash table
    of the export instead of the small reference table, and hold the whole file in memory.
    """
    connection = engines.connect()
    engines.run(connection, "SET disabled_optimizers = 'build_side_probe_side'")
    return connection


def _known(
    delivery: Delivery, digest: str, store: Store, dataset: str | None
) -> DeliveryResult | None:
    """The answer for content that is read already, without reading its rows again; else None."""
    store.refresh()
    for record in store.deliveries():
        if not store.holds(record):
            continue
        wanted = record.dataset if dataset is None else dataset
        export_id = _delivery_id(delivery.manifest, digest, wanted)
        if (record.sha256, record.dataset, record.delivery_id) == (digest, wanted, export_id):
            return record.unchanged(delivery.shown)
    return None


def _unread(
    delivery: Delivery, status: Status, reason: str, layout: Layout | None = None
) -> DeliveryResult:
    manifest = delivery.manifest
    source = layout.source if layout else None
    return DeliveryResult(
        path=delivery.shown,
        source=source or (manifest.source if manifest else "unknown"),
        dataset=layout.dataset if layout else "unknown",
        delivery_id=manifest.id if manifest else "",
        billing_periods=(manifest.period,) if manifest and manifest.period else (),
        rows=0,
        status=status,
        reason=reason,
        warnings=delivery.warnings,
    )


def _reason(error: LoadfactorError) -> str:
    shown = [str(problem) for problem in error.problems[:_MOST_PROBLEMS]]
    if len(error.problems) > _MOST_PROBLEMS:
        shown.append(f"and {len(error.problems) - _MOST_PROBLEMS} more")
    return ": ".join([error.message, "; ".join(shown)] if shown else [error.message])


def _stage(job: _Job) -> StagedDelivery:
    """The delivery in normal form; a CSV that strict reading refuses is read again cell by cell."""
    try:
        return _stage_once(job, clean=False)
    except duckdb.InvalidInputException:
        pass
    except duckdb.Error as error:
        raise _engine_error(job, error) from error
    try:
        return _stage_once(job, clean=True)
    except duckdb.Error as error:
        raise _engine_error(job, error) from error


def _engine_error(job: _Job, error: duckdb.Error) -> LoadfactorError:
    """What the engine stopped at: a disk that is full, or a file that cannot be read, by name."""
    if _NO_SPACE in str(error):
        full = OSError(errno.ENOSPC, _NO_SPACE)
        told = unwritable("the store", job.store.path, full)
        told.__cause__ = full
        return told
    return unreadable(error, job.delivery.shown, job.delivery.files)


def _stage_once(job: _Job, *, clean: bool) -> StagedDelivery:
    files = job.delivery.files
    parts = [part for path in files for part in read_parts(path, job.folder)]
    heads = [head_of(job.connection, path, job.folder, clean=clean) for path in parts]
    layouts = {layout_of(head.columns, job.dataset) for head in heads}
    if len(layouts) > 1:
        names = ", ".join(sorted(layout.dataset for layout in layouts))
        raise DataError(f"its files are of several layouts: {names}; load them apart")
    layout = job.seen[_LAYOUT] = next(iter(layouts))
    if not layout.is_billing:
        raw, _ = read_heads(job.connection, heads)
        arrived = tables.Arrived(job.delivery.shown, job.digest, raw, job.connection)
        return tables.stage(arrived, layout.dataset, job.folder)
    try:
        return _stage_billing(job, layout, heads)
    except DataError as error:
        raise _with_files(error, job, heads) from error


def _with_files(error: DataError, job: _Job, heads: Sequence[Head]) -> DataError:
    """The error with its rows counted within their file, where the delivery has several."""
    if len(heads) == 1 or not any(is_of_row(problem) for problem in error.problems):
        return error
    counts = [read_heads(job.connection, [head])[0].count().to_pyarrow().as_py() for head in heads]
    parts = [(head.path.name, rows) for head, rows in zip(heads, counts, strict=True)]
    return DataError(error.message, [in_file(problem, parts) for problem in error.problems])


def _stage_billing(job: _Job, layout: Layout, heads: Sequence[Head]) -> StagedDelivery:
    raw, columns = read_heads(job.connection, heads)
    manifest = job.delivery.manifest
    context = _context(job, layout, columns)
    target = job.folder / f"{_BILLING}.parquet"

    def lineage(dataset: str) -> Lineage:
        export_id = _delivery_id(manifest, job.digest, dataset)
        return Lineage(dataset, export_id, _unit(manifest, dataset, layout))

    export = Export(raw, context, lineage, job.connection, job.folder)
    normalised = write_normal_form(export, target, job.store.engine)
    dataset = normalised.dataset or layout.dataset
    found = contents.look_into(job.connection, target, job.delivery.shown)
    _check_rows(manifest, found.rows, job.delivery.shown)
    warnings, quality = _findings(job, normalised, found, target)
    return StagedDelivery(
        path=job.delivery.shown,
        table=_BILLING,
        source=found.sources[0] if len(found.sources) == 1 else "mixed",
        dataset=dataset,
        delivery_id=lineage(dataset).delivery_id,
        folder=job.folder,
        sha256=job.digest,
        units=found.units,
        rows=found.rows,
        billing_periods=tuple(sorted(found.periods)),
        version_time=manifest.time if manifest else None,
        warnings=warnings,
        quality=quality,
        export=manifest.export if manifest else None,
        is_dated=manifest.is_dated if manifest else True,
        written=job.delivery.written,
    )


def _context(job: _Job, layout: Layout, columns: tuple[str, ...]) -> DeliveryContext:
    manifest = job.delivery.manifest
    return DeliveryContext(
        path=job.delivery.shown,
        dataset=layout.dataset,
        delivery_id=_delivery_id(manifest, job.digest, layout.dataset),
        columns=columns,
        manifest=manifest.document if manifest else None,
        manifest_period=manifest.period if manifest else None,
        manifest_account=manifest.account if manifest else None,
        file_name=job.delivery.files[0].name,
    )


def _delivery_id(manifest: Manifest | None, digest: str, dataset: str) -> str:
    if manifest is None:
        return delivery_id(digest, dataset)
    return delivery_id(digest, dataset, manifest.id, manifest.period or "")


def _unit(manifest: Manifest | None, dataset: str, layout: Layout) -> str | None:
    """The unit of every row of a delivery whose manifest states account and period, else None."""
    if manifest is None or manifest.account is None or manifest.period is None:
        return None
    source = manifest.source if layout.source == "focus" else str(layout.source)
    return unit_name(source, manifest.account, dataset, manifest.period)


def _check_rows(manifest: Manifest | None, rows: int, shown: str) -> None:
    if rows == 0:
        raise DataError("it has a header and no rows: export it again")
    if manifest is None:
        return
    stated = [part.rows for part in manifest.parts]
    known = [count for count in stated if count is not None]
    wanted = sum(known) if len(known) == len(stated) else manifest.rows
    if wanted is not None and wanted != rows:
        what = f"{rows} rows in its files, {wanted} by the manifest"
        problem = Problem(shown, what, "fetch the delivery again, whole")
        raise DataError("its row count differs from the manifest", [problem])


def _findings(
    job: _Job, normalised: Normalised, found: contents.Found, target: Path
) -> tuple[tuple[str, ...], tuple[dict[str, Any], ...]]:
    warnings = [*job.delivery.warnings, *normalised.warnings, *found.warnings]
    quality = list(found.quality)
    manifest = job.delivery.manifest
    outside = contents.outside_period(found, manifest.period if manifest else None)
    if outside is not None:
        warnings.append(outside[0])
        quality.append(outside[1])
    bare = contents.unknown_currency(found, job.delivery.shown)
    if bare is not None:
        quality.append(bare[1])
        if not any(_NO_CURRENCY in text for text in normalised.warnings):
            warnings.append(bare[0])
    twin = contents.twins(job.connection, job.store, target, found)
    if twin is not None:
        warnings.append(twin)
    if manifest is not None and not manifest.is_dated and _is_restated(job.store, found, manifest):
        warnings.append("whether it is newer than what was loaded before was told by the time of "
                        "the manifest's file")  # fmt: skip
    return tuple(warnings), tuple(quality)


def _is_restated(store: Store, found: contents.Found, manifest: Manifest) -> bool:
    active = store.active()
    holders = {active[unit] for unit in found.units if unit in active}
    return any(not holder.startswith(manifest.id) for holder in holders)


def content_hash(files: Sequence[Path]) -> str:
    """The SHA-256 of a file, or of the hashes of several files in their order, as hex."""
    hashes = []
    for path in files:
        with path.open("rb") as file:
            hashes.append(hashlib.file_digest(file, "sha256"))
    if len(hashes) == 1:
        return hashes[0].hexdigest()
    return hashlib.sha256(b"".join(one.digest() for one in hashes)).hexdigest()
