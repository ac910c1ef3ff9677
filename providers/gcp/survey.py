"""Which invoice months of a BigQuery export have changed, learnt from few bytes.

The table is append-only, and a row of any month may be added to any partition. Each day's partition
is counted by invoice month once, and again when it changed or is of the last DAYS_BACK days. A
month's version is the time of its last export and its number of rows; its partitions are what a
pull of it has to read.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from data.errors import DataError, Problem, ProviderError, ProviderUnavailable
from data.synced import replace_synced
from providers.gcp.projection import ALIAS, field_at, is_focus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from providers.gcp.bigquery import Partitions, Shape, Warehouse

FILE = "bigquery.json"
FORMAT = "loadfactor-bigquery"
VERSION = 1
DAYS_BACK = 45
_WHOLE = "all"
_DAY = "%Y%m%d"


@dataclass(frozen=True, slots=True)
class MonthVersion:
    """One invoice month (YYYY-MM): its rows, its last export time in microseconds, its days.

    `is_whole` is false where the partition of one of its days is gone from the table.
    """

    month: str
    rows: int
    newest: int
    days: tuple[str, ...]
    is_whole: bool = True

    @property
    def time(self) -> datetime:
        """The last export time."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.newest)


@dataclass(slots=True)
class Memory:
    """What is known of each day's partition: its stamp, and rows and last export by month.

    `ignored` are deliveries that the store would not take, with the reason and the deliveries that
    stood in their place. It may always be lost: then every partition is counted again.
    """

    table: str
    stamps: dict[str, str] = field(default_factory=dict)
    months: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    ignored: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    @staticmethod
    def read(landing: Path, table: str) -> Memory:
        """The memory of the table in the landing; an empty one where there is none."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            told = json.loads((landing / FILE).read_text(encoding="utf-8"))
            if (told["format"], told["version"], told["table"]) == (FORMAT, VERSION, table):
                months = {
                    day: {month: (int(rows), int(newest)) for month, (rows, newest) in many.items()}
                    for day, many in told["months"].items()
                }
                ignored = {
                    one: (str(reason), tuple(beside))
                    for one, (reason, beside) in told["ignored"].items()
                }
                return Memory(table, dict(told["stamps"]), months, ignored)
        return Memory(table)

    def write(self, landing: Path) -> None:
        """Put the memory in the landing, by one rename."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "table": self.table,
            "stamps": dict(sorted(self.stamps.items())),
            "ignored": dict(sorted(self.ignored.items())),
            "months": {
                day: dict(sorted(many.items())) for day, many in sorted(self.months.items())
            },
        }
        replace_synced(landing / FILE, json.dumps(document, indent=1))

    def versions(self) -> list[MonthVersion]:
        """Every invoice month that has rows, in order."""
        found: dict[str, list[tuple[str, int, int]]] = {}
        for day, many in sorted(self.months.items()):
            for month, (rows, newest) in many.items():
                found.setdefault(month, []).append((day, rows, newest))
        return [
            MonthVersion(
                month,
                sum(rows for _, rows, _ in days),
                max(newest for _, _, newest in days),
                tuple(day for day, _, _ in days),
                not self.stamps or all(day in self.stamps for day, _, _ in days),
            )
            for month, days in sorted(found.items())
        ]


def survey(warehouse: Warehouse, shape: Shape, memory: Memory, as_of: date) -> int:
    """Bring the memory up to date with the table; the bytes that this was billed for.

    Raises ProviderError as `Warehouse.ask`, and DataError for a table that has no export_time.
    """
    listed, billed = _listed(warehouse, shape)
    since = (as_of - timedelta(days=DAYS_BACK)).strftime(_DAY)
    ranges: list[tuple[str, str | None]] = []
    if listed is None:
        if shape.partitions is not None and memory.months:
            ranges = [(since, None)]
    else:
        changed = [
            day for day, stamp in listed.items() if day >= since or memory.stamps.get(day) != stamp
        ]
        if not changed:
            return billed
        ranges = day_ranges(changed)
    answer = warehouse.ask(_counts(warehouse, shape, ranges))
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for page in answer.pages:
        for row in page.to_pylist():
            month = f"{row['month'][:4]}-{row['month'][4:6]}"
            found.setdefault(row["day"], {})[month] = (row["counted"], row["newest"] or 0)
    kept = {day: many for day, many in memory.months.items() if not _within(day, ranges)}
    memory.months = kept | found
    memory.stamps = dict(listed or {})
    return billed + answer.bytes


def month_sql(shape: Shape) -> str:
    """The invoice month of a row as YYYYMM: the one that it states, else that of its usage."""
    if is_focus(shape.fields):
        period = field_at(shape.fields, "BillingPeriodStart")
        return _month_of(period[1] if period else _path(shape, "ChargePeriodStart"))
    of_usage = _month_of(_path(shape, "usage_start_time"))
    stated = field_at(shape.fields, "invoice.month")
    if stated is None:
        return of_usage
    return f"COALESCE(NULLIF(REPLACE(TRIM({stated[1]}), '-', ''), ''), {of_usage})"


def export_time_sql(shape: Shape) -> str:
    """The time at which a row was exported; of a FOCUS export that states none, of its charge."""
    names = ("x_ExportTime", "ChargePeriodStart") if is_focus(shape.fields) else ("export_time",)
    named = [name for name in names if field_at(shape.fields, name)]
    return f"CAST({_path(shape, (*named, *names)[0])} AS TIMESTAMP)"


def _month_of(time: str) -> str:
    return f"FORMAT_TIMESTAMP('%Y%m', CAST({time} AS TIMESTAMP), 'UTC')"


def within_sql(partitions: Partitions | None, ranges: Iterable[tuple[str, str | None]]) -> str:
    """The condition on the partition that BigQuery prunes by: days [from, to), all constant."""
    if partitions is None:
        return "TRUE"
    name = f"{ALIAS}.{partitions.column}"
    kind = partitions.kind if partitions.kind in ("DATE", "DATETIME") else "TIMESTAMP"
    parts = []
    for first, end in ranges:
        until = "" if end is None else f" AND {name} < {kind} '{_iso(end)}'"
        parts.append(f"({name} >= {kind} '{_iso(first)}'{until})")
    # A table may demand a condition on its partitions even where all are asked for.
    return f"({' OR '.join(parts)})" if parts else f"{name} >= {kind} '1970-01-01'"


def day_ranges(days: Iterable[str]) -> list[tuple[str, str | None]]:
    """Days YYYYMMDD as ranges [from, to), neighbours joined.

    >>> day_ranges(["20260901", "20260903", "20260902", "20260930"])
    [('20260901', '20260904'), ('20260930', '20261001')]
    """
    ranges: list[tuple[str, str | None]] = []
    for day in sorted(set(days)):
        after = (datetime.strptime(day, _DAY) + timedelta(days=1)).strftime(_DAY)
        if ranges and ranges[-1][1] == day:
            ranges[-1] = (ranges[-1][0], after)
        else:
            ranges.append((day, after))
    return ranges


def _listed(warehouse: Warehouse, shape: Shape) -> tuple[dict[str, str] | None, int]:
    """A stamp of each day's partition that changes with it; None where they are not told."""
    if shape.partitions is None:
        return None, 0
    place = warehouse.place
    sql = (
        "SELECT partition_id, total_rows, UNIX_MICROS(last_modified_time) AS modified\n"
        f"FROM `{place.project}`.`{place.dataset}`.INFORMATION_SCHEMA.PARTITIONS\n"
        f"WHERE table_name = '{place.table}'"
    )
    try:
        answer = warehouse.ask(sql)
    except ProviderUnavailable:
        raise
    except ProviderError:
        return None, 0  # whoever may read the table may not list it
    stamps: dict[str, list[str]] = {}
    for page in answer.pages:
        for row in page.to_pylist():
            day = str(row["partition_id"] or "")[:8]
            if day.isdigit() and len(day) == 8:
                stamps.setdefault(day, []).append(f"{row['total_rows']}@{row['modified']}")
    return {day: ",".join(sorted(many)) for day, many in sorted(stamps.items())}, answer.bytes


def _counts(warehouse: Warehouse, shape: Shape, ranges: Sequence[tuple[str, str | None]]) -> str:
    day = f"'{_WHOLE}'"
    if shape.partitions is not None:
        name = f"{ALIAS}.{shape.partitions.column}"
        day = f"FORMAT_TIMESTAMP('{_DAY}', CAST({name} AS TIMESTAMP), 'UTC')"
    return (
        f"SELECT {day} AS day, {month_sql(shape)} AS month, COUNT(*) AS counted,\n"
        f"  UNIX_MICROS(MAX({export_time_sql(shape)})) AS newest\n"
        f"FROM {warehouse.place.sql} AS {ALIAS}\n"
        f"WHERE {within_sql(shape.partitions, ranges)}\nGROUP BY 1, 2"
    )


def _path(shape: Shape, name: str) -> str:
    found = field_at(shape.fields, name)
    if found is None:
        remedy = "name the table that Cloud Billing exports to, or a view with all of its columns"
        problem = Problem(name, "missing column", remedy)
        raise DataError("GCP billing export: required columns are missing", [problem])
    return found[1]


def _within(day: str, ranges: Sequence[tuple[str, str | None]]) -> bool:
    if not ranges:
        return True
    return any(first <= day and (end is None or day < end) for first, end in ranges)


def _iso(day: str) -> str:
    return f"{day[:4]}-{day[4:6]}-{day[6:8]}"
