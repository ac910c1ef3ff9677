"""How far each bill may be relied on: its newest days count only where they look like other days.

Clouds deliver late: the last day or two of an export lack rows, and commitments are applied to the
hours of the last day afterwards. A day within `settle_hours` of the end of a bill is therefore
compared with its like: the same weekday in the four weeks before, or, where fewer than two of
them are known, the least of the seven days before. It is not taken as complete where its GPU rows,
its GPU-hours or their cost are below LEAST_SHARE of that, or where its commitments cover less than
half of what they cover else. From such a day on nothing feeds demand, savings or rates; money
totals stay whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any

import ibis

from data.frames import records
from data.hours import counted_hours, day_start, iso
from data.quality import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import date

LEAST_SHARE = 0.8
LEAST_COVERED = 0.5
# Below this share of covered GPU-hours, commitments say nothing about a day.
MUCH_COVERED = 0.2
LEAST_WEEKS = 2
_WEEKS = 4
_DAY = 86_400
_HOUR = 3600
_MEASURES = ("rows", "gpu_hours", "cost", "covered")
_WORDS = {"rows": "GPU rows", "gpu_hours": "GPU-hours", "cost": "cost of GPUs"}


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of one account's bill.

    `end` is where its charges end and `settled` where they stop to count; `why` says what the day
    from there on lacks, None where every judged day looks whole. `judged` are the hours that may
    still change.
    """

    cloud: str
    account: str
    end: datetime
    settled: datetime
    judged: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class _Days:
    """Measures of an account's GPU charges by day since 1970, from its first day on."""

    first: int
    values: Mapping[int, Mapping[str, float]]

    def at(self, day: int, measure: str) -> float:
        return self.values[day][measure] if day in self.values else 0.0

    def like(self, day: int, measure: str) -> float | None:
        """What a day should have of the measure; None where no day before it is known."""
        weeks = [day - 7 * back for back in range(1, _WEEKS + 1)]
        same = [self.at(one, measure) for one in weeks if one >= self.first]
        if len(same) >= LEAST_WEEKS:
            return median(same)
        before = range(max(self.first, day - 7), day)
        return min((self.at(one, measure) for one in before), default=None)


def tails(
    billing: Any, as_of: date, settle_hours: Callable[[str], int], tail_hours: int = 0
) -> list[Tail]:
    """The end of the bill of each account that has GPU-hours before `as_of`, sorted.

    `settle_hours` gives the hours that are judged of a cloud's bill; the last `tail_hours` never
    count, whatever they look like.
    """
    limit = int(day_start(as_of).timestamp())
    found = []
    for (cloud, account), rows in sorted(_by_account(billing, limit).items()):
        end = max(row["end"] for row in rows)
        end = min(limit, -(-end // _HOUR) * _HOUR)
        with_gpus = [int(row["day"]) for row in rows if row["rows"]]
        if not with_gpus:
            continue
        values = {int(row["day"]): {name: float(row[name]) for name in _MEASURES} for row in rows}
        cut, why = _cut(_Days(min(with_gpus), values), end, settle_hours(cloud))
        never = end - tail_hours * _HOUR
        if tail_hours and never < cut:
            cut, why = never, f"tail_hours leaves out the last {counted_hours(tail_hours)}"
        judged = min(settle_hours(cloud), (end - min(with_gpus) * _DAY) // _HOUR)
        found.append(Tail(cloud, account, _moment(end), _moment(cut), judged, why))
    return found


def _by_account(billing: Any, limit: int) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Sums of each account and day over the charges of at most a day."""
    dated = billing.filter(billing.period_start.notnull() & billing.period_end.notnull())
    start, end = dated.period_start.epoch_seconds(), dated.period_end.epoch_seconds()
    is_gpu = dated.gpu_hours.notnull() & (dated.charge_type == "usage")
    hours = dated.gpu_hours.cast("float64")
    covered = dated.purchase_option.isin(["reserved", "savings_plan"])
    rows = dated.select(
        cloud=dated.source,
        account=ibis.coalesce(dated.billing_account, "unknown"),
        day=start // _DAY,
        start=start,
        end=end,
        is_gpu=is_gpu.cast("int64"),
        gpu_hours=ibis.ifelse(is_gpu, hours, 0.0),
        cost=ibis.ifelse(
            is_gpu, ibis.coalesce(dated.effective_cost, dated.billed_cost).cast("float64"), 0.0
        ),
        covered=ibis.ifelse(is_gpu & covered, hours, 0.0),
    )
    fine = rows.filter((rows.end - rows.start <= _DAY) & (rows.start < limit))
    sums = fine.group_by(["cloud", "account", "day"]).aggregate(
        end=fine.end.max(),
        rows=fine.is_gpu.sum(),
        gpu_hours=fine.gpu_hours.sum(),
        cost=ibis.coalesce(fine.cost.sum(), 0.0),
        covered=fine.covered.sum(),
    )
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in records(sums.get_backend().to_pandas(sums)):
        found.setdefault((str(row["cloud"]), str(row["account"])), []).append(row)
    return found


def _cut(days: _Days, end: int, hours: int) -> tuple[int, str | None]:
    """Where the account's hours stop to count, in seconds, and why; its end where all do."""
    whole = end // _DAY
    for day in range(max(days.first, (end - hours * _HOUR) // _DAY), whole):
        why = _short(days, day)
        if why:
            return day * _DAY, f"{_moment(day * _DAY):%Y-%m-%d} has {why} of the days like it"
    return end, None


def _short(days: _Days, day: int) -> str | None:
    """What the day lacks, in words; None where it looks like the others."""
    lacking = []
    for measure, word in _WORDS.items():
        like = days.like(day, measure)
        if like is not None and days.at(day, measure) < LEAST_SHARE * like:
            lacking.append(f"{days.at(day, measure) / like:.0%} of the {word}")
    if lacking:
        return ", ".join(lacking)
    hours, covered = days.like(day, "gpu_hours"), days.like(day, "covered")
    if hours and covered and covered > MUCH_COVERED * hours:
        here = days.at(day, "covered")
        if here < LEAST_COVERED * covered:
            return f"{here / covered:.0%} of the GPU-hours that commitments cover"
    return None


def findings(found: Iterable[Tail], lag: timedelta) -> list[Finding]:
    """What may still change of each bill, and from where on it is left out.

    An account whose charges end more than `lag` before its cloud's is closed, or no longer
    exported: it is told, and holds nothing back.
    """
    every = list(found)
    ends = {one.cloud: one.end for one in sorted(every, key=lambda one: one.end)}
    rows = []
    for one in every:
        where = f"{one.cloud}/{one.account.rpartition('/')[2]}"
        if ends[one.cloud] - one.end > lag:
            detail = (
                f"its charges end at {iso(one.end)}, those of {one.cloud} at "
                f"{iso(ends[one.cloud])}: it is closed, or its export has stopped"
            )
            rows.append(Finding("account_ends_early", where, "info", detail))
        elif one.why is not None:
            hours = int((one.end - one.settled).total_seconds()) // _HOUR
            detail = (
                f"{one.why}: hours from {iso(one.settled)} on feed neither demand nor savings "
                "nor rates; totals keep them"
            )
            rows.append(Finding("incomplete_tail", where, "info", detail, hours))
        elif one.judged:
            detail = (
                f"the newest {one.judged} hours before {iso(one.end)} may still change; they look "
                "like the days before and are used"
            )
            rows.append(Finding("unsettled_hours", where, "info", detail, one.judged))
    return rows


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
