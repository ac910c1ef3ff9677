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
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pathlib import Path

_PERIOD_FOLDER = re.compile(r"billing_period=(\d{4}-\d{2})", re.IGNORECASE)
_ARN_ACCOUNT = re.compile(r"^arn:[^:]*:[^:]*:[^:]*:(\d+):")
_EXPORT_ACCOUNT = re.compile(r"(?:billingAccounts|subscriptions)/([^/]+)", re.IGNORECASE)
LARGEST_MANIFEST = 16 * 1024 * 1024


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
    manifest's file on this disk, the last resort for exports that state no time.
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
    document: dict[str, Any] = field(default_factory=dict)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest in the file, None if the file is none."""
    if path.suffix.lower() != ".json" or path.stat().st_size > LARGEST_MANIFEST:
        return None
    return manifest_of(path.read_bytes(), path, _file_time(path))


def manifest_of(content: bytes, path: Path, written: datetime) -> Manifest | None:
    """The manifest that the content is, None if it is none.

    `path` is where it lies, or its key; `written` is its time where it states none itself.
    """
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError):
        return None
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("reportKeys"), list):
        return _legacy(path, document, written)
    if isinstance(document.get("dataFiles"), list):
        return _data_export(path, document, written)
    if isinstance(document.get("blobs"), list):
        return _azure(path, document, written)
    return None


def _legacy(path: Path, document: dict[str, Any], written: datetime) -> Manifest:
    period = str((document.get("billingPeriod") or {}).get("start") or "")
    return Manifest(
        path=path,
        source="aws",
        export=f"{document.get('reportId') or document.get('reportName') or path.parent}",
        id=str(document.get("assemblyId") or path.stem),
        parts=tuple(Part(str(key)) for key in document["reportKeys"]),
        account=_text(document.get("account")),
        period=f"{period[:4]}-{period[4:6]}" if re.match(r"\d{6}", period) else None,
        time=written,
        is_dated=False,
        document=document,
    )


def _data_export(path: Path, document: dict[str, Any], written: datetime) -> Manifest:
    keys = [unquote(urlsplit(str(uri)).path or str(uri)) for uri in document["dataFiles"]]
    places = [*keys, path.as_posix()]
    periods = [match.group(1) for place in places if (match := _PERIOD_FOLDER.search(place))]
    arn = str(document.get("exportArn") or "")
    account = _ARN_ACCOUNT.match(arn)
    period = periods[0] if periods else None
    return Manifest(
        path=path,
        source="aws",
        export=arn or path.stem,
        id=str(document.get("executionId") or f"{path.stem}-{period}"),
        parts=tuple(Part(key) for key in keys),
        account=account.group(1) if account else None,
        period=period,
        time=written,
        is_dated=False,
        document=document,
    )


def _azure(path: Path, document: dict[str, Any], written: datetime) -> Manifest:
    export = document.get("exportConfig") or {}
    run = document.get("runInfo") or {}
    scope = str(export.get("resourceId") or "")
    account = _EXPORT_ACCOUNT.search(scope)
    submitted = _time(run.get("submittedTime"))
    return Manifest(
        path=path,
        source="azure",
        export="|".join(str(export.get(key) or "") for key in ("exportName", "type", "resourceId")),
        id=str(run.get("runId") or path.parent.name),
        parts=tuple(
            Part(str(blob.get("blobName") or ""), _count(blob, "byteCount"),
                 _count(blob, "dataRowCount"))
            for blob in document["blobs"]
        ),
        account=unquote(account.group(1)) if account else None,
        period=str(run["startDate"])[:7] if run.get("startDate") else None,
        time=submitted or written,
        is_dated=submitted is not None,
        rows=_count(document, "dataRowCount"),
        document=document,
    )  # fmt: skip


def _count(record: dict[str, Any], name: str) -> int | None:
    value = record.get(name)
    return int(value) if isinstance(value, (int, str)) and str(value).isdigit() else None


def _text(value: object) -> str | None:
    return None if value in (None, "") else str(value)


def _time(text: object) -> datetime | None:
    if not text:
        return None
    cut = re.sub(r"(\.\d{6})\d+", r"\1", str(text))
    try:
        moment = datetime.fromisoformat(cut)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _file_time(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(microsecond=0)
