"""What the manifest of an export says: its id, account, period, time, and the files that count.

Three kinds are read: legacy Cost and Usage Report, AWS Data Exports (CUR 2.0, FOCUS) and Azure
Cost Management. Sources: AWS Data Exports user guide and Cost Management "Understand export
manifests", read 2026-11.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MANIFEST_NAME = "manifest.json"
LARGEST_MANIFEST = 16 * 1024 * 1024
_PERIOD_FOLDER = re.compile(r"billing_period=(\d{4}-\d{2})", re.IGNORECASE)
_LEGACY_PERIOD = re.compile(r"(\d{4})(0[1-9]|1[0-2])")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-\d{2}")
_ARN_ACCOUNT = re.compile(r"^arn:[^:]*:[^:]*:[^:]*:(\d+):")
_EXPORT_ACCOUNT = re.compile(r"(?:billingAccounts|subscriptions)/([^/]+)", re.IGNORECASE)
# Keys of objects stand in these as they are: they may hold %, ? and #.
_BUCKET = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/", re.IGNORECASE)
_MOST_DIGITS = 18


class BrokenManifest(Exception):
    """A manifest that cannot be read; its text says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file that a manifest names: its key, and its bytes and rows where they are stated."""

    key: str
    bytes: int | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest.

    `export` tells its export from others. `is_dated` is false where `time` is only that of the
    manifest's file on this disk, the last resort for exports that state no time. `rows` and `bytes`
    are totals of the run. `faults` rule its delivery out, `warnings` do not.
    """

    path: Path
    source: str
    export: str
    id: str
    parts: tuple[Part, ...]
    account: str | None = None
    period: str | None = None
    time: datetime | None = None
    is_dated: bool = True
    rows: int | None = None
    bytes: int | None = None
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest in the file, None if the file is none, or none that can be read."""
    if path.suffix.lower() != ".json" or path.stat().st_size > LARGEST_MANIFEST:
        return None
    try:
        return manifest_of(path.read_bytes(), path, _file_time(path))
    except BrokenManifest:
        return None


def fault_of(path: Path) -> str | None:
    """What is wrong with a file that is named as a manifest and cannot be read, else None."""
    if not path.name.lower().endswith(MANIFEST_NAME):
        return None
    size = path.stat().st_size
    if size > LARGEST_MANIFEST:
        return too_large(size)
    try:
        manifest_of(path.read_bytes(), path, _file_time(path))
    except BrokenManifest as error:
        return str(error)
    return None


def too_large(size: int) -> str:
    """What is wrong with a manifest of that many bytes."""
    return f"it is too large: {size} bytes, and a manifest is read up to {LARGEST_MANIFEST}"


def manifest_of(content: bytes, path: Path, written: datetime) -> Manifest | None:
    """The manifest that the content is, None if it is an object of another kind.

    `path` is where it lies, or its key; `written` is its time where it states none itself. Raises
    BrokenManifest, and nothing else, for what cannot be read.
    """
    document = _document(content)
    kinds = {"reportKeys": _legacy, "dataFiles": _data_export, "blobs": _azure}
    told = [name for name in kinds if name in document]
    if not told:
        return None
    name = next((name for name in told if isinstance(document[name], list)), None)
    if name is None:
        raise BrokenManifest(f"its {told[0]} is no list")
    try:
        return kinds[name](path, document, written)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise BrokenManifest(f"what it says is not understood ({error})") from error


def _document(content: bytes) -> dict[str, Any]:
    if not content.strip():
        raise BrokenManifest("it is empty")
    try:
        text = content.decode("utf-8-sig")
        document = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BrokenManifest("it holds half a character (a lone surrogate)") from None
    except UnicodeDecodeError:
        raise BrokenManifest("it is no UTF-8 text") from None
    except RecursionError:
        raise BrokenManifest("it is nested too deeply") from None
    except ValueError:
        raise BrokenManifest("it is no JSON, or was cut off") from None
    if not isinstance(document, dict):
        raise BrokenManifest("it is no JSON object")
    return document


def _legacy(path: Path, document: dict[str, Any], written: datetime) -> Manifest:
    start = _LEGACY_PERIOD.match(_text(_inside(document, "billingPeriod"), "start") or "")
    parts, warnings = _parts(Part(_key(key, "reportKeys")) for key in document["reportKeys"])
    name = _text(document, "reportId") or _text(document, "reportName")
    return Manifest(
        path=path,
        source="aws",
        export=name or f"{path.parent}",
        id=_text(document, "assemblyId") or path.stem,
        parts=parts,
        account=_text(document, "account"),
        period=f"{start[1]}-{start[2]}" if start else None,
        time=written,
        is_dated=False,
        warnings=warnings,
        document=document,
    )


def _data_export(path: Path, document: dict[str, Any], written: datetime) -> Manifest:
    keys = [_BUCKET.sub("", _key(uri, "dataFiles"), count=1) for uri in document["dataFiles"]]
    places = [*map(unquote, keys), path.as_posix()]
    periods = [match.group(1) for place in places if (match := _PERIOD_FOLDER.search(place))]
    arn = _text(document, "exportArn") or ""
    account = _ARN_ACCOUNT.match(arn)
    period = periods[0] if periods else None
    parts, warnings = _parts(map(Part, keys))
    return Manifest(
        path=path,
        source="aws",
        export=arn or path.stem,
        id=_text(document, "executionId") or f"{path.stem}-{period}",
        parts=parts,
        account=account.group(1) if account else None,
        period=period,
        time=written,
        is_dated=False,
        warnings=warnings,
        document=document,
    )


def _azure(path: Path, document: dict[str, Any], written: datetime) -> Manifest:
    export, run = _inside(document, "exportConfig"), _inside(document, "runInfo")
    account = _EXPORT_ACCOUNT.search(_text(export, "resourceId") or "")
    submitted = _time(_text(run, "submittedTime"))
    listed = [_blob(blob) for blob in document["blobs"]]
    parts, warnings = _parts(listed)
    start = _text(run, "startDate") or ""
    return Manifest(
        path=path,
        source="azure",
        export="|".join(_text(export, key) or "" for key in ("exportName", "type", "resourceId")),
        id=_text(run, "runId") or path.parent.name,
        parts=parts,
        account=unquote(account.group(1)) if account else None,
        period=start[:7] if _DAY.match(start) else None,
        time=submitted or written,
        is_dated=submitted is not None,
        rows=_count(document, "dataRowCount"),
        bytes=_count(document, "byteCount"),
        faults=_faults(document, listed, parts),
        warnings=warnings,
        document=document,
    )


def _blob(blob: object) -> Part:
    if not isinstance(blob, dict):
        raise BrokenManifest("an entry of its blobs is no object")
    key = _key(blob.get("blobName"), "blobs")
    return Part(key, _count(blob, "byteCount"), _count(blob, "dataRowCount"))


def _faults(document: dict[str, Any], *ways: Iterable[Part]) -> tuple[str, ...]:
    """Totals of the run that differ from those of its blobs, counted as listed or each once."""
    told = []
    for name, what in (("blobCount", "files"), ("byteCount", "bytes"), ("dataRowCount", "rows")):
        stated = _count(document, name)
        sums = [_sum(parts, what) for parts in ways]
        if stated is not None and None not in sums and stated not in sums:
            told.append(f"its {name} is {stated}, and its blobs have {sums[-1]} {what}")
    return tuple(told)


def _sum(parts: Iterable[Part], what: str) -> int | None:
    """The files, bytes or rows of the parts, None where one of them does not state them."""
    counts = [1 if what == "files" else getattr(part, what) for part in parts]
    return None if None in counts else sum(counts)


def _parts(listed: Iterable[Part]) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Each part once, with a warning where some are named again."""
    parts: dict[str, Part] = {}
    again: list[str] = []
    for part in listed:
        key = part.key.lstrip("/")
        if key not in parts:
            parts[key] = part
        elif (part.bytes, part.rows) == (parts[key].bytes, parts[key].rows):
            again.append(key)
        else:
            raise BrokenManifest(f"it names {key} twice, with different counts")
    if not again:
        return tuple(parts.values()), ()
    count = len(set(again))
    what = "a file" if count == 1 else f"{count} files"
    told = f"its manifest names {what} more than once, first {again[0]}: each is read once"
    return tuple(parts.values()), (told,)


def _key(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise BrokenManifest(f"an entry of its {name} names no file")
    return value


def _inside(document: dict[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    if value is not None and not isinstance(value, dict):
        raise BrokenManifest(f"its {name} is no object")
    return value or {}


def _count(record: dict[str, Any], name: str) -> int | None:
    value = record.get(name)
    if value is None or value == "":
        return None
    text = str(value)
    is_count = isinstance(value, (int, str)) and text.isascii() and text.isdigit()
    if not is_count or len(text) > _MOST_DIGITS:
        raise BrokenManifest(f"its {name} is no count")
    return int(text)


def _text(record: dict[str, Any], name: str) -> str | None:
    value = record.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BrokenManifest(f"its {name} is no text")
    return str(value)


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    cut = re.sub(r"(\.\d{6})\d+", r"\1", text)
    try:
        moment = datetime.fromisoformat(cut)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _file_time(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(microsecond=0)
