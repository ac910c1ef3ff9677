"""Exports in a bucket into the store: what is new is downloaded, loaded whole, and remembered."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from data.errors import Problem, ProviderError
from data.hours import iso
from data.store import Status
from providers.fetch.choices import Listing
from providers.fetch.contract import Fetched
from providers.fetch.index import Index, Remembered, beside, known_ids, stamp
from providers.fetch.judging import Pull, Wanted, choose, failed, load, next_best, tell_kept
from providers.fetch.landing import Landing
from providers.fetch.reading import Manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from data.store import DeliveryResult
    from providers.fetch.contract import FetchTask, ObjectStore, StoredObject
    from providers.files.manifests import Manifest

log = logging.getLogger("loadfactor")
MONTHS = 13
# The open month and the two before it may still change: they are looked at whatever `months` says.
_LEAST_MONTHS = 3
# Older runs that are tried in place of one that cannot be read.
_MOST_OLDER = 3
# Downloaded ahead of what is being loaded.
_AHEAD_BYTES = 1024**3


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
        pull = Pull(objects, task, landing, index, manifests, known_ids(task.store))
        listing = _listed(objects, prefix, first_period(task))
        found = listing.candidates(manifests)
        groups = [
            group for group in found if group[0].manifest is None or wanted(group[0].manifest)
        ]
        chosen = [choose(pull, listing.versions(group, manifests)) for group in groups]
        index.write(task.landing)
        if not found:
            pull.warnings.append(listing.emptiness())
        _load_all(pull, [one for one in chosen if one is not None])
        tell_kept(pull, groups)
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


def _load_all(pull: Pull, wanted: Sequence[Wanted]) -> None:
    """Download and load the deliveries, oldest first, some ahead of the one that is loaded.

    What cannot be downloaded or read is rejected, the newest older one that can be counts in its
    place, and the others are still loaded. Raises ProviderError where nothing at all came of it
    because the source cannot be reached, or lets nobody in.
    """
    pull.landing.prune(item for one in wanted for item in one.one.parts)
    rejected = _load_round(pull, wanted)
    for _try in range(_MOST_OLDER):
        found = [next_best(pull, one) for one in rejected]
        rejected = _load_round(pull, [one for one in found if one is not None])
    pull.failures += pull.manifests.failed.values()
    is_vain = all(result.status == Status.REJECTED for result in pull.results)
    general = [error for error in pull.failures if type(error) is not ProviderError]
    if is_vain and general:
        raise general[0]


def _load_round(pull: Pull, wanted: Sequence[Wanted]) -> list[Wanted]:
    """Those that cannot be read."""
    pull.left.update(item for one in wanted for item in one.one.parts)
    return [one for batch in _batches(wanted) for one in _load_batch(pull, batch)]


def _load_batch(pull: Pull, batch: Sequence[Wanted]) -> list[Wanted]:
    """Those of the batch that cannot be read; one that the store refuses is not among them."""
    rejected = []
    lacking = _download(pull, batch)
    for one in batch:
        errors = [error for item in one.one.parts if (error := lacking.get(item)) is not None]
        if errors:
            pull.failures.append(errors[0])
            pull.results.append(failed(one.one, errors[0]))
            if type(errors[0]) is ProviderError:
                rejected.append(one)
        elif _load_one(pull, one):
            pull.left.subtract(one.one.parts)
            pull.landing.discard(item for item in one.one.parts if not pull.left[item])
        elif not pull.results[-1].rows:
            rejected.append(one)
    return rejected


def _batches(wanted: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    batch: list[Wanted] = []
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


def _download(pull: Pull, batch: Iterable[Wanted]) -> dict[StoredObject, ProviderError | None]:
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


def _load_one(pull: Pull, wanted: Wanted) -> bool:
    """True if the store has judged the delivery; of one that it rejected the files are kept."""
    one = wanted.one
    try:
        manifest = None if one.item is None else pull.manifests.full(one.item)
    except ProviderError as error:
        pull.failures.append(error)
        pull.results.append(failed(one, error))
        return False
    result = load(pull, replace(one, manifest=manifest), one.parts)
    pull.results.append(result)
    if result.status == Status.REJECTED:
        return False
    _remember(pull, wanted, result)
    pull.index.write(pull.task.landing)
    return True


def _remember(pull: Pull, wanted: Wanted, result: DeliveryResult) -> None:
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
