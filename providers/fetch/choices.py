"""Which deliveries a listing holds: by their manifests the newest of each export and period."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from data.errors import Problem
from providers.files.deliveries import deliveries_of, is_data, unreadable
from providers.files.manifests import MANIFEST_NAME, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from providers.fetch.contract import StoredObject
    from providers.fetch.reading import Manifests

_RANGE = re.compile(r"(\d{4})(\d{2})\d{2}-\d{8}")
_PERIOD = re.compile(r"billing_period=(\d{4}-\d{2})", re.IGNORECASE)
_MOST_NAMED = 20
_EXPECTED = (
    "expected are a manifest and its files, or files named .csv, .json or .parquet, packed as "
    ".gz or .zip or not: name the folder that the export is delivered to"
)
_NO_MANIFEST = "it is a JSON object that names no files, as a manifest does"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A delivery as it lies in the bucket.

    `group` names its export and period; `manifest` is None for files without one; `problems` rule
    it out.
    """

    shown: str
    group: str
    time: datetime
    parts: tuple[StoredObject, ...]
    item: StoredObject | None = None
    manifest: Manifest | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Home:
    """The folder that a manifest governs, and the period that its key tells."""

    folder: str
    period: str | None


def home_of(key: str) -> _Home:
    """Where a manifest's delivery belongs, as far as its key tells.

    >>> home_of("p/gpu/metadata/BILLING_PERIOD=2026-11/gpu-Manifest.json").folder
    'p/gpu'
    >>> home_of("p/gpu/20261101-20261201/gpu-Manifest.json").period
    '2026-11'
    """
    folders = key.split("/")[:-1]
    for place, name in reversed(list(enumerate(folders))):
        if name.lower() in ("metadata", "data"):
            found = _PERIOD.search(key)
            if found:
                return _Home("/".join(folders[:place]), found.group(1))
        dated = _RANGE.fullmatch(name)
        if dated:
            period = f"{dated.group(1)}-{dated.group(2)}"
            return _Home("/".join(folders[:place]), period)
    found = _PERIOD.search(key)
    return _Home("/".join(folders), found.group(1) if found else None)


class Listing:
    """The objects under a prefix, and the deliveries that they make.

    Deliveries of periods before `first` are left out.
    """

    def __init__(self, place: str, folder: str, first: str) -> None:
        self.place = place
        self.folder = folder
        self.first = first
        self.count = 0
        self.by_key: dict[str, StoredObject] = {}
        self._start = len(folder) + 1 if folder else 0
        self._manifests: list[StoredObject] = []
        self._queues: dict[tuple[str, str], list[StoredObject]] = {}
        self._data: list[str] = []

    def take(self, objects: Iterable[StoredObject]) -> None:
        """Take up the objects; `count` counts them, those of periods that are left out too."""
        for one in objects:
            self.count += 1
            period = home_of(one.key).period
            if not one.key.endswith("/") and (period is None or period >= self.first):
                self.by_key[one.key] = one
        visible = [key for key in sorted(self.by_key) if not _is_hidden(key[self._start :])]
        self._manifests = [self.by_key[key] for key in visible if _may_be_manifest(key)]
        taken = {one.key for one in self._manifests}
        self._data = [key for key in visible if is_data(Path(key)) and key not in taken]

    def candidates(self, manifests: Manifests) -> list[list[Candidate]]:
        """The deliveries by export and period, of each the newest first; files without one last."""
        groups = list(self._by_manifest(manifests))
        named = {part.key for group in groups for one in group for part in one.parts}
        return [*groups, *([one] for one in self._without_manifest(named))]

    def emptiness(self) -> str:
        """What is to be said where the objects make no delivery: how many, and what is expected."""
        where = f"{self.place}/{self.folder}".rstrip("/")
        if not self.by_key or self._manifests:
            return (
                f"{where}: {self.count} objects lie there, and no export of {self.first} or later: "
                "see whether the export is still delivered, or look further back (months)"
            )
        return f"{where}: {self.count} objects lie there and none is an export: {_EXPECTED}"

    def versions(self, group: Sequence[Candidate], manifests: Manifests) -> Iterator[Candidate]:
        """The deliveries of a group, the newest first; those not read yet are read when asked."""
        yield from group
        last = group[-1]
        if last.item is None:
            return
        looked_at = {one.item for one in group}
        items = self._queues.get(_path_of(last.item), [])
        for item in items[items.index(last.item) + 1 :] if last.item in items else ():
            found = None if item in looked_at else self._read(item, manifests)
            if found is not None and _export(found) == _export(last):
                yield replace(found, group=last.group)

    def _by_manifest(self, manifests: Manifests) -> Iterator[list[Candidate]]:
        by_path: dict[tuple[str, str], list[StoredObject]] = {}
        for item in self._manifests:
            by_path.setdefault(_path_of(item), []).append(item)
        self._queues = {place: _in_order(items) for place, items in sorted(by_path.items())}
        manifests.summaries([items[0] for items in self._queues.values()])
        groups: dict[str, list[Candidate]] = {}
        for (folder, _period), items in self._queues.items():
            for one in _outdone(list(self._readable(items, manifests))):
                group = f"{folder}|{_export(one)}|{_period_of(one)}"
                if _period_of(one) >= self.first:
                    groups.setdefault(group, []).append(replace(one, group=group))
        for found in groups.values():
            yield sorted(found, key=lambda one: one.time, reverse=True)

    def _readable(self, items: list[StoredObject], manifests: Manifests) -> Iterator[Candidate]:
        """Deliveries of one path, newest first; where the order is known, up to a complete one."""
        first = next((told for item in items if (told := manifests.summary(item))), None)
        is_ordered = first is not None and not first.is_dated
        if not is_ordered:
            manifests.summaries(items)
        for item in items:
            one = self._read(item, manifests)
            if one is None:
                continue
            yield one
            if is_ordered and not one.problems:
                return

    def _read(self, item: StoredObject, manifests: Manifests) -> Candidate | None:
        """The delivery of a manifest; None for an object that nothing says is one."""
        found = manifests.summary(item)
        if found is not None:
            return self._candidate(item, found)
        fault = manifests.fault(item)
        if fault is None:
            if home_of(item.key).period is None:
                self._manifests = [one for one in self._manifests if one != item]
                return None
            fault = _NO_MANIFEST
        shown = f"{self.place}/{item.key}"
        return Candidate(shown, "", item.modified, (), item, None, (unreadable(shown, fault),))

    def _candidate(self, item: StoredObject, manifest: Manifest) -> Candidate:
        shown = f"{self.place}/{item.key}"
        parts: dict[StoredObject, None] = {}
        problems = [Problem(shown, fault, "export again") for fault in manifest.faults]
        home = home_of(item.key).folder
        for part in manifest.parts:
            found = self._part(part.key, home)
            where = f"{self.place}/{part.key.lstrip('/')}"
            if found is None:
                remedy = f"the manifest {item.key} names it: wait for it, or export again"
                problems.append(Problem(where, "missing part", remedy))
            elif part.bytes is not None and part.bytes != found.size:
                what = f"{found.size} bytes, {part.bytes} by the manifest {item.key}"
                problems.append(Problem(where, what, "wait for it, or export again"))
            else:
                parts[found] = None
        if not manifest.parts:
            problems.append(Problem(shown, "the manifest names no files"))
        size = sum(part.size for part in parts)
        if not problems and manifest.bytes not in (None, size):
            what = f"{size} bytes in its files, {manifest.bytes} by the manifest"
            problems.append(Problem(shown, what, "wait for it, or export again"))
        more = len(problems) - _MOST_NAMED
        if more > 0:
            problems = [*problems[:_MOST_NAMED], Problem(shown, f"and {more} more parts")]
        time = manifest.time if manifest.time is not None else item.modified
        return Candidate(shown, "", time, tuple(parts), item, manifest, tuple(problems))

    def _part(self, key: str, home: str) -> StoredObject | None:
        """The object of that key; where the export was copied, the one in the same place of it.

        The key as it stands counts first, then with its percent signs resolved.
        """
        for spelled in dict.fromkeys((key.lstrip("/"), unquote(key).lstrip("/"))):
            former = home_of(spelled).folder
            inside = spelled.removeprefix(f"{former}/") if former else spelled
            copied = f"{home}/{inside}" if home else inside
            found = self.by_key.get(spelled) or self.by_key.get(copied)
            if found is not None:
                return found
        return None

    def _without_manifest(self, named: set[str]) -> Iterator[Candidate]:
        homes = [home_of(item.key) for item in self._manifests]
        folders = {home.folder for home in homes}
        periods = {(home.folder, home.period) for home in homes}
        lone: list[Path] = []
        lacking: dict[tuple[str, str], list[str]] = {}
        for key in self._data:
            if key in named:
                continue
            above = _governor(key, folders)
            found = home_of(key)
            if above is None:
                lone.append(Path(key))
            elif found.period is not None and (above, found.period) not in periods:
                lacking.setdefault((above, found.period), []).append(key)
        yield from self._unfinished(lacking)
        yield from self._lone(lone)

    def _unfinished(self, lacking: dict[tuple[str, str], list[str]]) -> Iterator[Candidate]:
        what = "no manifest names these files: the delivery is not complete"
        for (home, period), keys in sorted(lacking.items()):
            parts = tuple(self.by_key[key] for key in keys)
            shown = f"{self.place}/{keys[0].rpartition('/')[0]}"
            time = max(part.modified for part in parts)
            problems = (Problem(shown, what, "wait for its manifest, which comes last"),)
            yield Candidate(shown, f"{home}||{period}", time, parts, problems=problems)

    def _lone(self, paths: list[Path]) -> Iterator[Candidate]:
        """Files without a manifest, in the order of their time: of two the later load counts."""
        keys = {Path(key).as_posix(): key for key in self._data}
        found = []
        for one in deliveries_of(paths):
            parts = tuple(self.by_key[keys[path.as_posix()]] for path in one.files)
            shown = f"{self.place}/{one.shown}"
            time = max(part.modified for part in parts)
            found.append(Candidate(shown, one.shown, time, parts, problems=one.problems))
        yield from sorted(found, key=lambda one: (one.time, one.shown))


def _may_be_manifest(key: str) -> bool:
    return key.lower().endswith(MANIFEST_NAME)


def _path_of(item: StoredObject) -> tuple[str, str]:
    """The folder and the period that the manifest is of; its key where that tells no period."""
    home = home_of(item.key)
    return home.folder, home.period or item.key


def _outdone(found: list[Candidate]) -> list[Candidate]:
    """Without unreadable manifests written before a complete delivery of their path was begun."""
    whole = [one.time for one in found if not one.problems]
    return [
        one
        for one in found
        if one.manifest is not None or not whole or one.time >= max(whole)
    ]  # fmt: skip


def _in_order(items: list[StoredObject]) -> list[StoredObject]:
    """Manifests of one folder and period, the newest first.

    The top manifest of a legacy period is its truth: those below it are older deliveries, or one
    that is being written.
    """
    ordered = sorted(items, key=lambda one: (one.modified, -one.key.count("/"), one.key))[::-1]
    tops = [one for one in ordered if _is_legacy_top(one.key)]
    if not tops:
        return ordered
    rest = [one for one in ordered if one not in tops and one.modified <= tops[0].modified]
    return [*tops, *rest]


def _is_legacy_top(key: str) -> bool:
    path = PurePosixPath(key)
    return _RANGE.fullmatch(path.parent.name) is not None and path.name.lower() != MANIFEST_NAME


def _export(one: Candidate) -> str:
    """What tells exports of one folder apart. An export of AWS has a folder of its own."""
    if one.manifest is None or one.item is None:
        return ""
    is_alone = one.manifest.source == "aws" and home_of(one.item.key).period is not None
    return "" if is_alone else one.manifest.export


def _period_of(one: Candidate) -> str:
    period = home_of(one.item.key).period if one.item is not None else None
    if period is None and one.manifest is not None:
        period = one.manifest.period
    return period or "9999"


def _governor(key: str, folders: set[str]) -> str | None:
    """The nearest folder above the key that a manifest governs."""
    folder = key.rpartition("/")[0]
    while True:
        if folder in folders:
            return folder
        if not folder:
            return None
        folder = folder.rpartition("/")[0]


def _is_hidden(tail: str) -> bool:
    return any(part.startswith((".", "_")) for part in tail.split("/"))
