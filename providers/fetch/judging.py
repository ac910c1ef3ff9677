"""Which delivery of an export and period is to be loaded, and what is told of the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from data.hours import iso
from data.store import DeliveryResult, Status
from providers.fetch.index import fingerprint, known_ids
from providers.files.deliveries import Delivery
from providers.files.loading import load_delivery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from data.errors import ProviderError
    from providers.fetch.choices import Candidate
    from providers.fetch.contract import FetchTask, ObjectStore, StoredObject
    from providers.fetch.index import Index, Remembered
    from providers.fetch.landing import Landing
    from providers.fetch.reading import Manifests

# Times of objects are those of one clock, cut to the second: what is written last may seem as old.
_TOLERANCE = timedelta(seconds=1)
_HERE = (Status.LOADED, Status.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A delivery to be downloaded and loaded; `rest` are the older ones, in case it is rejected."""

    one: Candidate
    print_: str
    rest: Iterator[Candidate]
    claimed: frozenset[str]


@dataclass(slots=True)
class Pull:
    """One pull of one source, and what came of it so far.

    `left` counts the deliveries that a downloaded object is still needed for.
    """

    objects: ObjectStore
    task: FetchTask
    landing: Landing
    index: Index
    manifests: Manifests
    known: set[str]
    left: Counter[StoredObject] = field(default_factory=Counter)
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


def choose(pull: Pull, versions: Iterator[Candidate]) -> Wanted | None:
    """The delivery of a group that is to be loaded, if any; tells what is found by the way.

    An older delivery some of whose files a newer one names too was written over by that.
    """
    return _choose(pull, versions, frozenset(), is_first=True)


def next_best(pull: Pull, rejected: Wanted) -> Wanted | None:
    """The delivery that counts in place of one that was rejected once it was read, if any."""
    claimed = rejected.claimed | {part.key for part in rejected.one.parts}
    return _choose(pull, rejected.rest, claimed, is_first=False)


def _choose(
    pull: Pull, versions: Iterator[Candidate], claimed: frozenset[str], *, is_first: bool
) -> Wanted | None:
    for one in versions:
        is_newest, is_first = is_first, False
        if any(part.key in claimed for part in one.parts):
            continue
        print_ = fingerprint(pull.dataset, one.item, one.parts)
        if not pull.task.force and _is_settled(pull, one, print_):
            return None
        late = _late(one)
        is_mixed = 0 < len(late) < len(one.parts) and not pull.task.force
        if not one.problems and not is_mixed:
            newest = pull.index.newest(pull.known, one.group)
            if iso(one.time) >= newest:
                pull.warnings.extend(_written_after(one, late))
                return Wanted(one, print_, versions, claimed)
            if is_newest:
                reason = f"a newer delivery of this export and period, of {newest}, was loaded"
                pull.results.append(unread(one, Status.IGNORED_OLDER, reason))
            return None
        if is_newest and one.problems:
            pull.results.append(load(pull, one, ()))
        elif is_newest:
            _tell_under_way(pull, one, late)
        claimed |= {part.key for part in one.parts}
    return None


def _late(one: Candidate) -> list[StoredObject]:
    """Files that were written clearly after their manifest, which AWS and Azure write last.

    None where the run has a folder of its own, which no other run writes into.
    """
    if one.item is None or one.manifest is None or _is_in_own_folder(one):
        return []
    return [part for part in one.parts if part.modified - one.item.modified > _TOLERANCE]


def _is_in_own_folder(one: Candidate) -> bool:
    manifest = one.manifest
    if manifest is None or (manifest.source == "azure" and not manifest.is_dated):
        return False  # the short form of Azure names no run
    run = manifest.id.lower()
    folders = {part.key.rpartition("/")[0].rpartition("/")[2].lower() for part in one.parts}
    return all(folder == run or folder.endswith(f"-{run}") for folder in folders)


def _tell_under_way(pull: Pull, one: Candidate, late: Sequence[StoredObject]) -> None:
    """A mixture of two deliveries: some files were written over and their manifest was not.

    The former delivery stays; where there is none, the month is missing and that is an error.
    """
    what = (
        f"a delivery is under way: {len(late)} of its {len(one.parts)} files were written after "
        f"it, first {min(late).key}"
    )
    how = (
        "the next fetch takes it once its manifest comes, which is written last; where the export "
        "was copied, copy its manifest last, or let --force load what is there"
    )
    if one.group in pull.index.held(pull.known):
        pull.warnings.append(f"{one.shown}: {what}: what was loaded stays, and {how}")
    else:
        pull.results.append(unread(one, Status.REJECTED, f"{what}: {how}"))


def _written_after(one: Candidate, late: Sequence[StoredObject]) -> list[str]:
    """A warning where all files came after their manifest: copies come in any order."""
    if not late:
        return []
    return [
        f"{one.shown}: {len(late)} of its {len(one.parts)} files were written after it, first "
        f"{min(late).key}: where a newer delivery is just being written, the next fetch puts right "
        "what was loaded"
    ]


def _is_settled(pull: Pull, one: Candidate, print_: str) -> bool:
    """True where the store has judged this delivery before; its result is told then.

    Where the files of a manifest that was loaded are other ones now, the next delivery is being
    written over it: the manifest comes last.
    """
    known = pull.index.settled(pull.known, print_)
    if known is None and one.item is not None:
        known = pull.index.of_manifest(pull.known, one.item)
        if known is not None and not one.problems:
            pull.warnings.append(
                f"{one.shown}: a delivery is under way: its files were written again and it was "
                "not: what was loaded stays, and the next fetch takes it once its manifest comes "
                "(--force loads what is there)"
            )
    if known is None:
        return False
    pull.results.append(_settled_result(pull, one, known))
    return True


def _settled_result(pull: Pull, one: Candidate, known: Remembered) -> DeliveryResult:
    for record in pull.task.store.deliveries():
        if record.delivery_id == known.delivery_id and known.status == Status.LOADED:
            return record.unchanged(one.shown)
    reason = known.reason or f"delivery {known.replaced_by} has taken its place"
    told = unread(one, Status.IGNORED_OLDER, reason)
    return replace(told, source=known.source, dataset=known.dataset, delivery_id=known.delivery_id)


def tell_kept(pull: Pull, groups: Iterable[Sequence[Candidate]]) -> None:
    """Tell what the store keeps of exports and periods whose deliveries were not taken.

    It is the bill of these months, and as old as it is.
    """
    pull.known = known_ids(pull.task.store)
    here = [one for one in pull.results if one.status in _HERE]
    told, shown = {one.path for one in here}, {one.delivery_id for one in here}
    records = {one.delivery_id: one for one in pull.task.store.deliveries()}
    held = pull.index.held(pull.known)
    for group in groups:
        name = group[0].group
        if any(one.shown in told for one in group) or name not in held:
            continue
        record = records.get(held[name][0])
        if record is not None and record.delivery_id not in shown:
            shown.add(record.delivery_id)
            pull.results.append(record.unchanged(record.path))


def load(pull: Pull, one: Candidate, parts: Iterable[StoredObject]) -> DeliveryResult:
    """What the store makes of the delivery; one with problems it rejects, naming them."""
    manifest = None if one.manifest is None else replace(one.manifest, is_dated=True)
    files = tuple(pull.landing.target(item) for item in parts)
    warnings = () if manifest is None else manifest.warnings
    written = one.time if manifest is None else None
    delivery = Delivery(one.shown, files, manifest, one.problems, warnings, written)
    return load_delivery(delivery, pull.task.store, pull.dataset, pull.task.force)


def failed(one: Candidate, error: ProviderError) -> DeliveryResult:
    """The result of a delivery that could not be downloaded."""
    return unread(one, Status.REJECTED, error.one_line)


def unread(one: Candidate, status: Status, reason: str) -> DeliveryResult:
    """The result of a delivery that was not read, for that reason."""
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
