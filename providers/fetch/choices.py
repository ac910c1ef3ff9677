"""Which deliveries a listing holds: by their manifests the newest of each export and period."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from data.errors import MissingCredentials, Problem, ProviderError
from providers.fetch.landing import DOWNLOADS
from providers.files.deliveries import deliveries_of, is_data
from providers.files.manifests import LARGEST_MANIFEST, Manifest, manifest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from providers.fetch.contract import ObjectStore, StoredObject
    from providers.fetch.index import Index

_MANIFEST = "manifest.json"
_RANGE = re.compile(r"(\d{4})(\d{2})\d{2}-\d{8}")
_PERIOD = re.compile(r"billing_period=(\d{4}-\d{2})", re.IGNORECASE)
_MOST_NAMED = 20
_MOST_FAILED = 8


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


@dataclass(slots=True)
class Manifests:
    """Reads manifests, each version once; counts what it read."""

    objects: ObjectStore
    index: Index
    force: bool = False
    objects_read: int = 0
    bytes_read: int = 0
    whole: dict[str, Manifest | None] = field(default_factory=dict)
    failed: dict[str, ProviderError] = field(default_factory=dict)

    def summaries(self, items: Sequence[StoredObject]) -> None:
        """Read those of the items that are new or changed, some at the same time.

        Of one that cannot be read it is remembered why; raises that where many cannot be.
        """
        new = [item for item in items if not self._is_known(item)]
        with ThreadPoolExecutor(DOWNLOADS) as pool:
            for item, content in zip(new, pool.map(self._content, new), strict=True):
                if isinstance(content, ProviderError):
                    self.failed[item.key] = content
                    if len(self.failed) > _MOST_FAILED:
                        raise content
                    continue
                self.objects_read += 1
                self.bytes_read += item.size
                found = manifest_of(content, Path(item.key), item.modified)
                self.whole[item.key] = found
                self.index.keep_manifest(item, found)

    def summary(self, item: StoredObject) -> Manifest | None:
        """The manifest without its document, None if the object is none or cannot be read."""
        if not self._is_known(item):
            self.summaries([item])
        if item.key in self.failed:
            return None
        return self.index.manifest(item)

    def full(self, item: StoredObject) -> Manifest | None:
        """The manifest with its document; raises ProviderError where it cannot be read."""
        if item.key not in self.whole:
            content = self.objects.read(item)
            self.objects_read += 1
            self.bytes_read += item.size
            self.whole[item.key] = manifest_of(content, Path(item.key), item.modified)
        return self.whole[item.key]

    def _is_known(self, item: StoredObject) -> bool:
        if item.key in self.whole or item.key in self.failed:
            return True
        if self.force:
            return False
        try:
            self.index.manifest(item)
        except KeyError:
            return False
        return True

    def _content(self, item: StoredObject) -> bytes | ProviderError:
        try:
            return self.objects.read(item)
        except MissingCredentials:
            raise
        except ProviderError as error:
            return error


def one_line(error: ProviderError) -> str:
    """The error and its problems as one line.

    >>> one_line(ProviderError("cannot be read", [Problem("s3://b/k", "archived")]))
    'cannot be read: s3://b/k: archived'
    """
    told = "; ".join(str(problem) for problem in error.problems)
    return f"{error.message}: {told}" if told else error.message


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
        self.first = first
        self.count = 0
        self.by_key: dict[str, StoredObject] = {}
        self._start = len(folder) + 1 if folder else 0
        self._manifests: list[StoredObject] = []
        self._data: list[str] = []

    def take(self, objects: Iterable[StoredObject]) -> None:
        """Take up the objects; `count` counts them, those of periods that are left out too."""
        for one in objects:
            self.count += 1
            period = home_of(one.key).period
            if not one.key.endswith("/") and (period is None or period >= self.first):
                self.by_key[one.key] = one
        visible = [key for key in sorted(self.by_key) if not _is_hidden(key[self._start :])]
        self._manifests = [self.by_key[key] for key in visible if self._may_be_manifest(key)]
        taken = {one.key for one in self._manifests}
        self._data = [key for key in visible if is_data(Path(key)) and key not in taken]

    def candidates(self, manifests: Manifests) -> list[list[Candidate]]:
        """The deliveries by export and period, of each the newest first; files without one last."""
        groups = list(self._by_manifest(manifests))
        named = {part.key for group in groups for one in group for part in one.parts}
        return [*groups, *([one] for one in self._without_manifest(named))]

    def _may_be_manifest(self, key: str) -> bool:
        return key.lower().endswith(_MANIFEST) and self.by_key[key].size <= LARGEST_MANIFEST

    def _by_manifest(self, manifests: Manifests) -> Iterator[list[Candidate]]:
        by_path: dict[tuple[str, str], list[StoredObject]] = {}
        for item in self._manifests:
            home = home_of(item.key)
            by_path.setdefault((home.folder, home.period or item.key), []).append(item)
        queues = {place: _in_order(items) for place, items in by_path.items()}
        manifests.summaries([items[0] for items in queues.values()])
        groups: dict[str, list[Candidate]] = {}
        for (folder, _period), items in sorted(queues.items()):
            for one in self._readable(items, manifests):
                group = f"{folder}|{_export(one)}|{_period_of(one)}"
                if _period_of(one) >= self.first:
                    groups.setdefault(group, []).append(one)
        for group, found in groups.items():
            found.sort(key=lambda one: one.time, reverse=True)
            yield [
                Candidate(one.shown, group, one.time, one.parts, one.item, one.manifest,
                          one.problems)
                for one in found
            ]  # fmt: skip

    def _readable(self, items: list[StoredObject], manifests: Manifests) -> Iterator[Candidate]:
        """Deliveries of one path, newest first; where the order is known, up to a complete one."""
        first = manifests.summary(items[0])
        is_ordered = first is not None and not first.is_dated
        if not is_ordered:
            manifests.summaries(items)
        for item in items:
            found = manifests.summary(item)
            if found is None and item.key not in manifests.failed:
                continue
            one = self._candidate(item, found, manifests.failed.get(item.key))
            yield one
            if is_ordered and not one.problems:
                return

    def _candidate(
        self, item: StoredObject, manifest: Manifest | None, error: ProviderError | None
    ) -> Candidate:
        shown = f"{self.place}/{item.key}"
        if manifest is None:
            what = one_line(error) if error else "it is no manifest"
            problem = Problem(shown, what, "fetch again")
            return Candidate(shown, "", item.modified, (), item, None, (problem,))
        parts: list[StoredObject] = []
        problems: list[Problem] = []
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
                parts.append(found)
        if not manifest.parts:
            problems.append(Problem(shown, "the manifest names no files"))
        more = len(problems) - _MOST_NAMED
        if more > 0:
            problems = [*problems[:_MOST_NAMED], Problem(shown, f"and {more} more parts")]
        time = manifest.time if manifest.time is not None else item.modified
        return Candidate(shown, "", time, tuple(parts), item, manifest, tuple(problems))

    def _part(self, key: str, home: str) -> StoredObject | None:
        """The object of that key; where the export was copied, the one in the same place of it."""
        key = key.lstrip("/")
        if key in self.by_key:
            return self.by_key[key]
        former = home_of(key).folder
        inside = key.removeprefix(f"{former}/") if former else key
        return self.by_key.get(f"{home}/{inside}" if home else inside)

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
            yield Candidate(shown, f"{home}|?|{period}", time, parts, problems=problems)

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
    return _RANGE.fullmatch(path.parent.name) is not None and path.name.lower() != _MANIFEST


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
