"""Which files of the given paths make one delivery.

A manifest chooses its files. Without one, the numbered parts of one extract are one delivery, and
any other file is a delivery of its own. A folder of folders is walked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from data.errors import DataError, Problem
from providers.files.manifests import Manifest, fault_of, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

_ENDINGS = (".csv", ".parquet", ".json", ".jsonl", ".ndjson", ".zip", ".gz")
# Numbers that tell parts of one extract: 000000000000 (BigQuery), part-00001, x-00001-of-00012,
# x-00001, part_2; and report-1 in a folder of one billing period.
_COUNTER = re.compile(
    r"^(?P<stem>.*?)(?P<number>\d{12}|(?<=part[-_])\d+|(?<=[-_])0\d{4})(?P<of>-of-\d+)?$",
    re.IGNORECASE,
)
_SHORT_COUNTER = re.compile(r"^(?P<stem>.*-)(?P<number>\d{1,4})(?P<of>)$")
_SUFFIXES = re.compile(
    r"(\.(csv|json|jsonl|ndjson|parquet|snappy|txt|gz|gzip|zip))+$", re.IGNORECASE
)
_PERIOD_FOLDER = re.compile(r"billing_period=(\d{4}-\d{2})", re.IGNORECASE)
_PERIOD_PATH = re.compile(r"\d{8}-\d{8}|billing_period=\d{4}-\d{2}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files to be loaded as one. `shown` is the path for people; `problems` rule it out.

    `warnings` are what a person should know of the choice of files; `written` is when files without
    a manifest were written to their bucket, None on a disk, where a copy has another time.
    """

    shown: str
    files: tuple[Path, ...]
    manifest: Manifest | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    written: datetime | None = None


def deliveries_in(paths: Sequence[Path]) -> list[Delivery]:
    """Every delivery of the paths, in order of path; of one export and period the oldest first.

    Raises DataError for a path that does not exist, or that holds no export.
    """
    missing = [
        Problem(str(path), "no such file or folder", "name a file or folder that is there")
        for path in paths
        if not path.exists()
    ]
    if missing:
        raise DataError("cannot be loaded: " + ", ".join(p.where for p in missing), missing)
    found: list[Delivery] = []
    files: list[Path] = []
    for path in paths:
        if path.is_file():
            manifest = read_manifest(path)
            if manifest is None:
                files.append(path)
            else:
                found.append(_of_manifest(manifest, path.parent))
            continue
        inside = _in_folder(path)
        if not inside:
            what = "no CSV, JSON, Parquet, gzip or zip file is in it"
            remedy = "name the folder that the export was downloaded to"
            problem = Problem(str(path), what, remedy)
            raise DataError(f"{path} is a folder with no exports", [problem])
        found.extend(inside)
    return [*found, *deliveries_of(dict.fromkeys(files))]


def _in_folder(folder: Path) -> list[Delivery]:
    files = sorted(
        (path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder)),
        key=lambda path: path.relative_to(folder).as_posix(),
    )
    manifests = _chosen([m for path in files if (m := read_manifest(path)) is not None])
    found = [_of_manifest(manifest, folder) for manifest in manifests]
    homes = [_home(manifest) for manifest in manifests]
    named = {path for delivery in found for path in delivery.files}
    lone: list[Path] = []
    governed: list[Path] = []
    for path in files:
        if not is_data(path) or path in named or read_manifest(path) is not None:
            continue
        fault = fault_of(path)
        if fault is not None:
            found.append(Delivery(str(path), (), problems=(unreadable(str(path), fault),)))
            continue
        is_inside = any(home == path.parent or home in path.parents for home in homes)
        (governed if is_inside else lone).append(path)
    return [*found, *_unfinished(governed, manifests), *deliveries_of(lone)]


def unreadable(shown: str, fault: str) -> Problem:
    """The problem of a delivery whose manifest cannot be read."""
    remedy = "fetch it again whole, or export again"
    return Problem(shown, f"its manifest cannot be read: {fault}", remedy)


def _unfinished(files: Iterable[Path], manifests: Sequence[Manifest]) -> list[Delivery]:
    """Deliveries of billing periods that have data and no manifest: it comes last, so they lack.

    Files of a period that has a manifest belong to older deliveries.
    """
    periods = {manifest.period for manifest in manifests}
    lacking: dict[tuple[Path, str], list[Path]] = {}
    for path in files:
        match = _PERIOD_FOLDER.search(path.as_posix())
        if match and match.group(1) not in periods:
            lacking.setdefault((path.parent, match.group(1)), []).append(path)
    what = "no manifest names these files: the delivery is not complete"
    return [
        Delivery(str(folder), tuple(paths), problems=(Problem(str(folder), what),))
        for (folder, _period), paths in sorted(lacking.items())
    ]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def is_data(path: Path) -> bool:
    """True where the name is that of a file which exports come in."""
    return path.name.lower().endswith(_ENDINGS)


def _home(manifest: Manifest) -> Path:
    """The folder whose files the manifest governs, whether it names them or not."""
    folder = manifest.path.parent
    if any(parent.name.lower() == "metadata" for parent in manifest.path.parents):
        for parent in manifest.path.parents:
            if parent.name.lower() == "metadata":
                return parent.parent
    return folder


def _chosen(manifests: Sequence[Manifest]) -> list[Manifest]:
    """One manifest per delivery id; a legacy period's top manifest outranks those below it."""
    by_depth = sorted(manifests, key=lambda m: (len(m.path.parts), m.path.as_posix()))
    kept: list[Manifest] = []
    for manifest in by_depth:
        above = [m.path.parent for m in kept if m.source == manifest.source]
        same = any(m.id == manifest.id and m.export == manifest.export and m.period ==
                   manifest.period for m in kept)  # fmt: skip
        is_below = "reportKeys" in manifest.document and any(
            folder in manifest.path.parent.parents for folder in above
        )
        if not same and not is_below:
            kept.append(manifest)
    return sorted(kept, key=lambda m: (m.export, m.period or "", _time_key(m), m.path.as_posix()))


def _time_key(manifest: Manifest) -> str:
    return "" if manifest.time is None else manifest.time.isoformat()


def _of_manifest(manifest: Manifest, folder: Path) -> Delivery:
    roots = [manifest.path.parent, _home(manifest), folder, *folder.parents[:2]]
    roots += list(_home(manifest).parents[:2])
    files: dict[Path, None] = {}
    problems = [Problem(str(manifest.path), fault, "export again") for fault in manifest.faults]
    if not manifest.parts:
        problems.append(Problem(str(manifest.path), "the manifest names no files"))
    for part in manifest.parts:
        path = _local(part.key, roots)
        if path is None:
            remedy = "fetch the delivery again, whole"
            problems.append(Problem(part.key, "missing part: named by the manifest", remedy))
            continue
        size = path.stat().st_size
        if part.bytes is not None and size != part.bytes:
            what = f"{size} bytes, {part.bytes} by the manifest"
            problems.append(Problem(str(path), what, "fetch it again"))
        files[path] = None
    warnings = (*manifest.warnings, *_unlisted(list(files)))
    shown = str(manifest.path)
    return Delivery(shown, tuple(files), manifest, tuple(problems), warnings)


def _local(key: str, roots: Iterable[Path]) -> Path | None:
    """The local copy of a key: the longest tail of it that exists under one of the roots.

    The key as it stands counts first, then with its percent signs resolved.
    """
    roots = list(roots)
    for spelled in dict.fromkeys((key, unquote(key))):
        parts = [part for part in spelled.split("/") if part not in ("", ".", "..")]
        for start in range(len(parts)):
            for root in roots:
                path = root.joinpath(*parts[start:])
                if path.is_file():
                    return path
    return None


def _unlisted(files: Sequence[Path]) -> tuple[str, ...]:
    """A warning where data files that the manifest does not name lie beside those it names."""
    named = set(files)
    extra = sorted(
        path
        for folder in {path.parent for path in files}
        for path in folder.iterdir()
        if path.is_file() and is_data(path) and path not in named and read_manifest(path) is None
    )
    if not extra:
        return ()
    shown = ", ".join(path.name for path in extra[:3]) + (", ..." if len(extra) > 3 else "")
    return (f"{len(extra)} files that the manifest does not name were left out: {shown}",)


def deliveries_of(files: Iterable[Path]) -> list[Delivery]:
    """Deliveries of files without a manifest: numbered parts together, each other one alone.

    Only the paths are looked at, so that keys of objects will do.
    """
    groups: dict[tuple[object, ...], list[Path]] = {}
    for path in files:
        groups.setdefault(_extract_of(path), []).append(path)
    found = []
    for group in groups.values():
        if len(group) == 1:
            found.append(Delivery(str(group[0]), (group[0],)))
            continue
        parts = sorted(group, key=lambda path: (_number(path), path.name))
        shown = f"{parts[0].parent}/{_stem(parts[0].name)[0]}*"
        found.append(Delivery(shown, tuple(parts), problems=_gaps(parts)))
    return found


def _extract_of(path: Path) -> tuple[object, ...]:
    stem, ending = _stem(path.name)
    match = _counter(path, stem)
    if match is None:
        return (path,)
    return (path.parent, match.group("stem"), match.group("of"), ending)


def _counter(path: Path, stem: str) -> re.Match[str] | None:
    match = _COUNTER.match(stem)
    if match is None and _PERIOD_PATH.search(path.parent.as_posix()):
        match = _SHORT_COUNTER.match(stem)
    return match


def _stem(name: str) -> tuple[str, str]:
    ending = _SUFFIXES.search(name)
    cut = ending.start() if ending else len(name)
    return name[:cut], name[cut:]


def _number(path: Path) -> int:
    match = _counter(path, _stem(path.name)[0])
    return int(match.group("number")) if match else 0


def _gaps(parts: Sequence[Path]) -> tuple[Problem, ...]:
    numbers = [_number(path) for path in parts]
    first = min(numbers[0], 1)
    missing = sorted(set(range(first, numbers[-1] + 1)) - set(numbers))
    return tuple(
        Problem(str(parts[0].parent), f"part {number} of the extract is missing")
        for number in missing[:20]
    )
