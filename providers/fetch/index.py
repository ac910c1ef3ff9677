"""What a source's landing folder remembers between two pulls: manifests read, deliveries loaded."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.store import Status
from data.synced import replace_synced
from providers.files.manifests import Manifest, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from data.store import DeliveryResult, Store
    from providers.fetch.contract import StoredObject

FILE = "index.json"
FORMAT = "loadfactor-fetch"
VERSION = 1
_MOST_OF_A_GROUP = 4
_KEPT = ("source", "export", "id", "account", "period", "is_dated", "rows", "bytes", "faults",
         "warnings")  # fmt: skip


def stamp(item: StoredObject) -> list[str]:
    """What tells one writing of an object from another.

    The time is part of it: an object that is written again with the same content has the same ETag.
    """
    return [item.key, item.version, item.modified.isoformat(), str(item.size)]


def fingerprint(dataset: str | None, manifest: StoredObject | None,
                parts: Iterable[StoredObject]) -> str:  # fmt: skip
    """What a delivery is made of in its bucket, the objects in their versions, as hex."""
    objects = [[one.key, one.version, one.size] for one in parts]
    first = None if manifest is None else [manifest.key, manifest.version]
    text = json.dumps([dataset, first, objects], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Remembered:
    """One delivery that the store has judged.

    `group` names its export and period; `manifest` is the stamp of its manifest's object; `time` is
    ISO; `replaced_by` is the delivery that took its place; `beside` are the deliveries that were in
    the store when it was ignored as older.
    """

    fingerprint: str
    group: str
    time: str
    delivery_id: str
    status: str
    source: str
    dataset: str
    manifest: tuple[str, ...] = ()
    reason: str | None = None
    replaced_by: str | None = None
    beside: tuple[str, ...] = ()


@dataclass(slots=True)
class Index:
    """The memory of one landing. It may always be lost: then everything is looked at again."""

    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    deliveries: dict[str, Remembered] = field(default_factory=dict)

    @staticmethod
    def read(landing: Path) -> Index:
        """The index of the landing; an empty one where there is none that can be read."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            document = json.loads((landing / FILE).read_text(encoding="utf-8"))
            if (document["format"], document["version"]) == (FORMAT, VERSION):
                told = [
                    Remembered(**one | {name: tuple(one[name]) for name in ("manifest", "beside")})
                    for one in document["deliveries"]
                ]
                return Index(dict(document["manifests"]), {one.fingerprint: one for one in told})
        return Index()

    def write(self, landing: Path) -> None:
        """Put the index in the landing, by one rename."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "manifests": dict(sorted(self.manifests.items())),
            "deliveries": [asdict(one) for _, one in sorted(self.deliveries.items())],
        }
        replace_synced(landing / FILE, json.dumps(document, ensure_ascii=False, indent=1))

    def manifest(self, item: StoredObject) -> Manifest | None:
        """The manifest as it was read before, without its document; KeyError if it was not."""
        known = self._known(item)
        told = known["manifest"]
        if told is None:
            return None
        changed = {name: tuple(told[name]) for name in ("faults", "warnings")}
        changed["parts"] = tuple(Part(*part) for part in told["parts"])
        time = None if told["time"] is None else datetime.fromisoformat(told["time"])
        return Manifest(Path(item.key), **told | changed | {"time": time})

    def fault(self, item: StoredObject) -> str | None:
        """Why the manifest could not be read; KeyError if that was not tried."""
        fault = self._known(item)["fault"]
        return None if fault is None else str(fault)

    def keep_manifest(
        self, item: StoredObject, manifest: Manifest | None, fault: str | None = None
    ) -> None:
        """Remember what was read, or why it could not be."""
        told: dict[str, Any] | None = None
        if manifest is not None:
            told = {name: getattr(manifest, name) for name in _KEPT}
            told["time"] = None if manifest.time is None else manifest.time.isoformat()
            told["parts"] = [[part.key, part.bytes, part.rows] for part in manifest.parts]
        self.manifests[item.key] = {"stamp": stamp(item), "manifest": told, "fault": fault}

    def _known(self, item: StoredObject) -> dict[str, Any]:
        """What is remembered of the object; KeyError where another version, or program, read it."""
        known = self.manifests[item.key]
        told = known["manifest"]
        if known["stamp"] != stamp(item) or "fault" not in known:
            raise KeyError(item.key)
        if told is not None and not told.keys() >= set(_KEPT):
            raise KeyError(item.key)
        return known

    def settled(self, known: set[str], print_: str) -> Remembered | None:
        """What was remembered of a delivery, if it still holds where these deliveries are known."""
        one = self.deliveries.get(print_)
        return one if one is not None and _holds(known, one) else None

    def of_manifest(self, known: set[str], item: StoredObject) -> Remembered | None:
        """The settled delivery that came of the manifest in the version that was listed."""
        mark = tuple(stamp(item))
        found = (one for one in self.deliveries.values() if one.manifest == mark)
        return next((one for one in found if _holds(known, one)), None)

    def newest(self, known: set[str], group: str) -> str:
        """The time of the newest loaded delivery of the group, empty where there is none."""
        times = [one.time for one in self._loaded(known) if one.group == group]
        return max(times, default="")

    def held(self, known: set[str]) -> dict[str, list[str]]:
        """By group the deliveries in the store that came of it, newest first.

        A group whose manifest cannot be read is every export of its folder and period.
        """
        found = sorted(self._loaded(known), key=lambda one: (one.time, one.fingerprint))
        held: dict[str, list[str]] = {}
        for one in reversed(found):
            name = one.delivery_id if one.delivery_id in known else str(one.replaced_by)
            for group in {one.group, unnamed(one.group)}:
                held.setdefault(group, []).append(name)
        return held

    def _loaded(self, known: set[str]) -> Iterator[Remembered]:
        for one in self.deliveries.values():
            if one.status == Status.LOADED and _holds(known, one):
                yield one

    def keep(self, one: Remembered, gone: set[str]) -> None:
        """Remember what the store made of a delivery, and whose place it took."""
        for print_, former in self.deliveries.items():
            if gone & {former.delivery_id, former.replaced_by}:
                self.deliveries[print_] = replace(former, replaced_by=one.delivery_id)
        self.deliveries[one.fingerprint] = one

    def prune(self, keys: set[str], groups: set[str]) -> None:
        """Forget manifests that are gone, and all but the newest deliveries of each group."""
        self.manifests = {key: one for key, one in self.manifests.items() if key in keys}
        by_group: dict[str, list[Remembered]] = {}
        lost = {group for group in groups if group == unnamed(group)}
        for one in sorted(self.deliveries.values(), key=lambda one: (one.time, one.fingerprint)):
            if one.group in groups or unnamed(one.group) in lost:
                by_group.setdefault(one.group, []).append(one)
        kept = [one for many in by_group.values() for one in many[-_MOST_OF_A_GROUP:]]
        self.deliveries = {one.fingerprint: one for one in kept}


def unnamed(group: str) -> str:
    """The group of the same folder and period whose export no manifest names.

    >>> unnamed("p/gpu|nightly|ActualCost|/subscriptions/s|2026-11"), unnamed("s3://b/bill.csv")
    ('p/gpu||2026-11', 's3://b/bill.csv')
    """
    folder, bar, rest = group.partition("|")
    return f"{folder}||{rest.rpartition('|')[2]}" if bar else group


def _holds(known: set[str], one: Remembered) -> bool:
    if one.status == Status.IGNORED_OLDER:
        return bool(one.beside) and set(one.beside) <= known
    return one.delivery_id in known or one.replaced_by in known


def known_ids(store: Store) -> set[str]:
    """Deliveries that the store reads, and whose rows are there."""
    return {one.delivery_id for one in store.deliveries() if store.holds(one)}


def beside(store: Store, result: DeliveryResult) -> tuple[str, ...]:
    """Deliveries of the same source and periods that the store reads, sorted."""
    periods = set(result.billing_periods)
    return tuple(
        sorted(
            one.delivery_id
            for one in store.deliveries()
            if one.source == result.source and periods & set(one.billing_periods)
        )
    )
