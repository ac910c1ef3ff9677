"""How the made files are written: the same bytes every time, wherever and whenever."""

from __future__ import annotations

import csv
import gzip
import io
import json
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from data.sample.activity import Activity

HOUR_SECONDS = 3600
_PLACES = Decimal(1).scaleb(-10)


def gz(path: Path, text: str) -> None:
    """Writes the text compressed, with no time and no name in the header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as file:
        file.write(text.encode("utf-8"))
    path.write_bytes(packed.getvalue())


def plain(path: Path, text: str) -> int:
    """Bytes written: the text as UTF-8 with bare newlines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(text.encode("utf-8"))


def document(path: Path, content: object) -> None:
    """Writes a JSON document, indented, in the order given."""
    plain(path, json.dumps(content, indent=2) + "\n")


def table(columns: Iterable[str], rows: Iterable[dict[str, str]]) -> str:
    """The rows as CSV text under the columns; a column that a row lacks is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def number(value: Decimal) -> str:
    """The decimal without exponent and without trailing zeros."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def hours(seconds: int) -> Decimal:
    """Billed seconds as hours, at the ten places that bills write."""
    return (Decimal(seconds) / HOUR_SECONDS).quantize(_PLACES, ROUND_HALF_EVEN)


def ten_places(value: Decimal) -> Decimal:
    """The value at the ten places that bills write."""
    return value.quantize(_PLACES, ROUND_HALF_EVEN)


def stamp(moment: datetime) -> str:
    """The UTC moment with milliseconds, as AWS writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def zulu(moment: datetime) -> str:
    """The UTC moment without fractions."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def months(first: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """The calendar months that `[first, end)` touches, each as its start and its end."""
    found = []
    start = first.replace(day=1, hour=0)
    while start < end:
        after = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
        found.append((start, after))
        start = after
    return found


def named(activities: Iterable[Activity], cloud: str) -> list[Activity]:
    """The activities of one cloud's machines."""
    return [activity for activity in activities if activity.machine.cloud == cloud]
