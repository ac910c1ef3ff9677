"""Exports in a bucket into the store: what is new is downloaded, loaded whole, and remembered."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from data.errors import Problem, ProviderError
from data.hours import iso
from data.store import DeliveryResult, Status
from providers.fetch.choices import Candidate, Listing, Manifests, one_line
from providers.fetch.contract import Fetched
from providers.fetch.index import Index, Remembered, beside, fingerprint, known_ids, stamp
from providers.fetch.landing import Landing
from providers.files.deliveries import Delivery
from providers.files.loading import load_delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from providers.fetch.contract import FetchTask, ObjectStore, StoredObject
    from providers.files.manifests import Manifest

log = logging.getLogger("loadfactor")
MONTHS = 13
# The open month and the two before it may still change: they are looked at whatever `months` says.
_LEAST_MONTHS = 3
_MOST_LATE = timedelta(minutes=30)
# Downloaded ahead of what is being loaded.
_AHEAD_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A delivery to be downloaded and loaded."""

    one: Candidate
    print_: str


@dataclass(slots=True)
class _Pull:
    """One pull of one source, and what came of it so far."""

    objects: ObjectStore
    task: FetchTask
    landing: Landing
    index: Index
    manifests: Manifests
    known: set[str]
    count: int = 0
    bytes: int = 0
    results: list[DeliveryResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[ProviderError] = field(default_factory=list)

    @property
    def dataset(self) -> str | None:
        """The dataset that the configuration says the exports are."""
        value = self.task.options.get("dataset")
        return None if value is None else str(value)


def pull_exports(
    objects: ObjectStore,
    prefix: str,
    task: FetchTask,
    wanted: Callable[[Manifest], bool] = lambda _: True,
) -> Fetched:
    """What became of the exports under the prefix of a bucket.

    Of each export and billing period the newest complete delivery is loaded; one that the store
    knows is not downloaded again. Exports whose manifest is not `wanted` are left out. Raises
    ProviderError where the bucket cannot be listed, holds nothing under the prefix, or gives
    nothing; StoreError where the store or the landing cannot be written. Killed at any moment it
    leaves both usable, and the next pull goes on.
    """
    landing = Landing(task.landing)
    with landing.held():
        index = Index.read(task.landing)
        task.store.refresh()
        manifests = Manifests(objects, index, task.force)
        pull = _Pull(objects, task, landing, index, manifests, known_ids(task.store))
        listing = _listed(objects, prefix, first_period(task))
        groups = [
            group
            for group in listing.candidates(manifests)
            if group[0].manifest is None or wanted(group[0].manifest)
        ]
        chosen = [one for group in groups if (one := _choose(pull, group)) is not None]
        index.write(task.landing)
        landing.prune(item for one in chosen for item in one.one.parts)
        _load_all(pull, chosen)
        index.prune(set(listing.by_key), {one.group for group in groups for one in group})
        index.write(task.landing)
    return Fetched(
        source=task.name,
        kind=str(task.options["kind"]),
        objects=pull.count + manifests.objects_read,
        bytes=pull.bytes + manifests.bytes_read,
        deliveries=tuple(sorted(pull.results, key=lambda one: one.path)),
        warnings=tuple(pull.warnings),
    )


def _listed(objects: ObjectStore, prefix: str, first: str) -> Listing:
    """What lies in the folder of the prefix; where it is no folder, what the prefix begins.

    A prefix is a folder first: `exports/gpu` does not mean `exports/gpu-old/...`.
    """
    folder = prefix.strip("/")
    listing = Listing(objects.place, folder, first)
    listing.take(objects.objects(f"{folder}/" if folder else ""))
    if not listing.count and folder:
        listing = Listing(objects.place, folder.rpartition("/")[0], first)
        listing.take(objects.objects(folder))
    if not listing.count:
        where = f"{objects.place}/{folder}"
        remedy = "name the folder that the export is delivered to; a new export takes a day to come"
        problem = Problem(where, "no object lies there", remedy)
        raise ProviderError(f"{where} holds no export", [problem])
    return listing


def first_period(task: FetchTask) -> str:
    """The oldest billing period that is looked at, as YYYY-MM."""
    months = max(int(task.options.get("months") or MONTHS), _LEAST_MONTHS)
    return _months_before(task.as_of, months - 1)


def _months_before(day: date, months: int) -> str:
    number = day.year * 12 + day.month - 1 - months
    return f"{number // 12:04d}-{number % 12 + 1:02d}"


def _choose(pull: _Pull, group: Sequence[Candidate]) -> _Wanted | None:
    """The delivery of a group that is to be loaded, if any; tells what is found by the way.

    An older delivery some of whose files a newer one names too was written over by that.
    """
    claimed: set[str] = set()
    for number, one in enumerate(group):
        if claimed & {part.key for part in one.parts}:
            continue
        print_ = fingerprint(pull.dataset, one.item, one.parts)
        if not pull.task.force and _is_settled(pull, one, print_):
            return None
        if not one.problems:
            newest = pull.index.newest(pull.known, one.group)
            if iso(one.time) >= newest:
                pull.warnings.extend(_written_over(one))
                return _Wanted(one, print_)
            if number == 0:
                reason = f"a newer delivery of this export and period, of {newest}, was loaded"
                pull.results.append(_unread(one, Status.IGNORED_OLDER, reason))
            return None
        if number == 0:
            pull.results.append(_load(pull, one, ()))
        claimed.update(part.key for part in one.parts)
    return None


def _written_over(one: Candidate) -> list[str]:
    """A warning where files came long after their manifest, which is written last."""
    if one.item is None or one.manifest is None or one.manifest.is_dated:
        return []
    late = [part for part in one.parts if part.modified - one.item.modified > _MOST_LATE]
    if not late:
        return []
    return [
        f"{one.shown}: {len(late)} of its {len(one.parts)} files were written after it, first "
        f"{min(late).key}: where a newer delivery is just being written, the next fetch puts right "
        "what was loaded"
    ]


def _is_settled(pull: _Pull, one: Candidate, print_: str) -> bool:
    """True where the store has judged this delivery before; its result is told then.

    Where the files of a manifest that was loaded are other ones now, the next delivery is being
    written over it: the manifest comes last.
    """
    known = pull.index.settled(pull.known, print_)
    if known is None and one.item is not None:
        known = pull.index.of_manifest(pull.known, one.item)
        if known is not None and not one.problems:
            pull.warnings.append(
                f"{one.shown}: its files were written again and it was not: what was loaded stays "
                "until its next manifest comes (--force loads them now)"
            )
    if known is None:
        return False
    pull.results.append(_settled_result(pull, one, known))
    return True


def _settled_result(pull: _Pull, one: Candidate, known: Remembered) -> DeliveryResult:
    for record in pull.task.store.deliveries():
        if record.delivery_id == known.delivery_id and known.status == Status.LOADED:
            return DeliveryResult(
                path=one.shown,
                source=record.source,
                dataset=record.dataset,
                delivery_id=record.delivery_id,
                billing_periods=record.billing_periods,
                rows=record.rows,
                status=Status.UNCHANGED,
                warnings=record.warnings,
            )
    reason = known.reason or f"delivery {known.replaced_by} has taken its place"
    told = _unread(one, Status.IGNORED_OLDER, reason)
    return replace(told, source=known.source, dataset=known.dataset, delivery_id=known.delivery_id)


def _load_all(pull: _Pull, wanted: Sequence[_Wanted]) -> None:
    """Download and load the deliveries, oldest first, some ahead of the one that is loaded.

    What cannot be downloaded is rejected, and the others are still loaded. Raises ProviderError
    where nothing at all came of it because the source cannot be reached, or lets nobody in.
    """
    left = Counter(item for one in wanted for item in set(one.one.parts))
    for batch in _batches(wanted):
        failed = _download(pull, batch)
        for one in batch:
            errors = [error for item in one.one.parts if (error := failed.get(item)) is not None]
            if errors:
                pull.failures.append(errors[0])
                pull.results.append(_failed(one.one, errors[0]))
            elif _load_one(pull, one):
                left.subtract(set(one.one.parts))
                pull.landing.discard(item for item in one.one.parts if not left[item])
    pull.failures += pull.manifests.failed.values()
    is_vain = all(result.status == Status.REJECTED for result in pull.results)
    general = [error for error in pull.failures if type(error) is not ProviderError]
    if is_vain and general:
        raise general[0]


def _batches(wanted: Sequence[_Wanted]) -> Iterator[list[_Wanted]]:
    batch: list[_Wanted] = []
    size = 0
    for one in wanted:
        more = sum(part.size for part in one.one.parts)
        if batch and size + more > _AHEAD_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += more
    if batch:
        yield batch


def _download(pull: _Pull, batch: Iterable[_Wanted]) -> dict[StoredObject, ProviderError | None]:
    needed = dict.fromkeys(item for one in batch for item in one.one.parts)
    missing = [item for item in needed if not pull.landing.has(item)]
    if not missing:
        return {}
    size = sum(item.size for item in missing)
    log.info("%s: downloading %d objects, %d bytes", pull.task.name, len(missing), size)
    ended = pull.landing.download(pull.objects, missing)
    whole = [item for item, error in ended.items() if error is None]
    pull.count += len(whole)
    pull.bytes += sum(item.size for item in whole)
    return ended


def _load_one(pull: _Pull, wanted: _Wanted) -> bool:
    """True if the store has judged the delivery; of one that it rejected the files are kept."""
    one = wanted.one
    try:
        manifest = None if one.item is None else pull.manifests.full(one.item)
    except ProviderError as error:
        pull.failures.append(error)
        pull.results.append(_failed(one, error))
        return False
    result = _load(pull, replace(one, manifest=manifest), one.parts)
    pull.results.append(result)
    if result.status == Status.REJECTED:
        return False
    _remember(pull, wanted, result)
    pull.index.write(pull.task.landing)
    return True


def _load(pull: _Pull, one: Candidate, parts: Iterable[StoredObject]) -> DeliveryResult:
    """What the store makes of the delivery; one with problems it rejects, naming them."""
    manifest = None if one.manifest is None else replace(one.manifest, is_dated=True)
    files = tuple(pull.landing.target(item) for item in parts)
    delivery = Delivery(one.shown, files, manifest, one.problems)
    return load_delivery(delivery, pull.task.store, pull.dataset, pull.task.force)


def _remember(pull: _Pull, wanted: _Wanted, result: DeliveryResult) -> None:
    one = wanted.one
    before, pull.known = pull.known, known_ids(pull.task.store)
    is_older = result.status == Status.IGNORED_OLDER
    told = Remembered(
        fingerprint=wanted.print_,
        group=one.group,
        time=iso(one.time),
        delivery_id=result.delivery_id,
        status=str(Status.IGNORED_OLDER if is_older else Status.LOADED),
        source=result.source,
        dataset=result.dataset,
        manifest=() if one.item is None else tuple(stamp(one.item)),
        reason=result.reason,
        beside=beside(pull.task.store, result) if is_older else (),
    )
    pull.index.keep(told, before - pull.known)


def _failed(one: Candidate, error: ProviderError) -> DeliveryResult:
    return _unread(one, Status.REJECTED, one_line(error))


def _unread(one: Candidate, status: Status, reason: str) -> DeliveryResult:
    manifest = one.manifest
    return DeliveryResult(
        path=one.shown,
        source=manifest.source if manifest else "unknown",
        dataset="unknown",
        delivery_id=manifest.id if manifest else "",
        billing_periods=(manifest.period,) if manifest and manifest.period else (),
        rows=0,
        status=status,
        reason=reason,
    )
