"""What a staged billing file holds: facts of each unit for ranking, and what a person should know.

Everything is read from the Parquet file that was just written, not from the export again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from data import money
from data.engines import path_list, quoted, run
from data.identities import broken, identities
from data.quality import GPU_LOOKS
from data.store import UnitFacts

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

    from data.store import Store

_H100_MACHINE = r"^(ml\.)?p5|h100|^a3-(high|mega|edge)"
_MOST_NAMED = 5
# What a unit costs is only compared: 10 places leave room for any sum of amounts.
_SUMMED = "DECIMAL(38, 10)"
_SAMPLE = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a staged file. `quality` are rows of QUALITY."""

    units: dict[str, UnitFacts]
    rows: int
    sources: tuple[str, ...]
    periods: dict[str, int]
    without_currency: int
    warnings: tuple[str, ...]
    quality: tuple[dict[str, Any], ...]


def look_into(connection: Any, path: Path, shown: str) -> Found:
    """What the staged file at the path holds; `shown` is the export's path for people."""
    source = f"read_parquet({path_list([path])})"
    units: dict[str, UnitFacts] = {}
    currencies: dict[str, set[str]] = {}
    periods: dict[str, int] = {}
    sources: set[str] = set()
    unstated = without = 0
    for record in run(
        connection,
        "SELECT unit, source, billing_period, count(*), bool_or(invoice_id IS NOT NULL), "
        f"sum(abs(coalesce(effective_cost, billed_cost))::{_SUMMED}), "
        f"sum(coalesce(effective_cost, billed_cost)::{_SUMMED}), "
        "min(currency), max(currency), "
        "count(billed_cost) > 0 AND count(effective_cost) > 0, "
        "count(*) FILTER (WHERE effective_cost IS NULL AND billed_cost IS NOT NULL "
        "AND source = 'aws'), count(*) FILTER (WHERE currency = 'unknown') "
        f"FROM {source} GROUP BY ALL ORDER BY ALL",
    ):
        unit, cloud, period, rows, invoiced, cost, net, least, most, both, missing, bare = record
        units[unit] = _added(units.get(unit), UnitFacts(rows, invoiced, cost, both, net))
        currencies.setdefault(unit, set()).update((least, most))
        periods[period] = periods.get(period, 0) + rows
        sources.add(cloud)
        unstated += missing
        without += bare
    warnings, quality = _machines(connection, source), []
    if unstated:
        text = f"{unstated} rows state no effective cost: covered usage without amortised columns"
        warnings.append(text)
        quality.append(_finding("effective cost not stated", shown, unstated, text))
    if "aws" in sources:
        warnings += _unequal(connection, path)
    mixed = {unit for unit, found in currencies.items() if len(found) > 1}
    units |= {unit: replace(units[unit], net=None) for unit in mixed}
    rows = sum(facts.rows for facts in units.values())
    told = (tuple(warnings), tuple(quality))
    return Found(units, rows, tuple(sorted(sources)), periods, without, *told)


def _unequal(connection: Any, path: Path) -> list[str]:
    """A warning for each identity of a commitment that does not hold, the largest first.

    The quality table tells of them when the whole bill is read, as `adds_up`: more accounts may be
    there then.
    """
    found = broken(identities(connection.read_parquet(path)))
    found.sort(key=lambda one: (-abs(one.difference), one.commitment, one.check))
    warnings = [
        f"{one.commitment} in {one.billing_period} does not add up: {one.detail} {one.currency}; "
        "rows are missing or doubled, or it covers accounts that the export leaves out"
        for one in found[:_MOST_NAMED]
    ]
    if len(found) > _MOST_NAMED:
        warnings.append(f"{len(found) - _MOST_NAMED} more commitments do not add up")
    return warnings


def _added(before: UnitFacts | None, more: UnitFacts) -> UnitFacts:
    if before is None:
        return more
    return UnitFacts(
        before.rows + more.rows,
        before.has_invoice or more.has_invoice,
        _sum(before.cost, more.cost),
        before.states_both or more.states_both,
        _sum(before.net, more.net),
    )


def _sum(*amounts: Decimal | None) -> Decimal | None:
    stated = [amount for amount in amounts if amount is not None]
    return money.total(stated) if stated else None


def _machines(connection: Any, source: str) -> list[str]:
    """A warning for each machine type that looks like a GPU machine but is unknown.

    Types of machines without GPUs are known to nobody here, and are no news. The quality table
    tells of these types when the bill is read, as `unknown_gpu_type`: a shape may be stated later.
    """
    records = run(
        connection,
        f"SELECT source, instance_type, count(*), sum(instance_hours), "
        f"regexp_matches(lower(instance_type), '{_H100_MACHINE}') FROM {source} "
        f"WHERE gpu_count IS NULL AND instance_type IS NOT NULL "
        f"AND regexp_matches(instance_type, {quoted(GPU_LOOKS)}) GROUP BY ALL ORDER BY ALL",
    )
    warnings = []
    for cloud, machine, rows, hours, is_h100 in records:
        like = "an H100" if is_h100 else "a GPU"
        text = (
            f"unknown instance type that looks like {like} machine: {machine} on {cloud} "
            f"({rows} rows, {format(hours or 0, 'f').rstrip('0').rstrip('.') or 0} "
            "instance-hours); its GPU-hours count once a price override states its gpu_model and "
            "gpus"
        )
        warnings.append(text)
    return warnings


def outside_period(found: Found, period: str | None) -> tuple[str, dict[str, Any]] | None:
    """The warning and finding on rows of other billing periods than the manifest's, if any."""
    others = {month: rows for month, rows in found.periods.items() if month != period}
    if period is None or not others:
        return None
    listed = ", ".join(f"{month}: {rows}" for month, rows in sorted(others.items()))
    text = (
        f"{sum(others.values())} of {found.rows} rows are of other billing periods than the "
        f"manifest's {period} ({listed}); they are filed by their own period and belong to "
        "this delivery"
    )
    return text, _finding("rows outside the period", period, sum(others.values()), text)


def unknown_currency(found: Found, shown: str) -> tuple[str, dict[str, Any]] | None:
    """The warning and finding on rows without a currency, if any."""
    if not found.without_currency:
        return None
    text = (
        f"{found.without_currency} of {found.rows} rows state no currency: their amounts are of "
        "currency 'unknown'"
    )
    return text, _finding("currency not stated", shown, found.without_currency, text)


def twins(connection: Any, store: Store, path: Path, found: Found) -> str | None:
    """A warning where equal line items stand in the store under the export of another account.

    A resource id is unique in a cloud, so the same charge of it under two accounts, or in the
    exports of a subscription and of its billing account, is likely one charge delivered twice. The
    first thousand charges with a resource are compared.
    """
    mine = {tuple(unit.split("|")) for unit in found.units if unit.count("|") == 3}
    others = {
        tuple(unit.split("|"))[:2]
        for unit in store.active()
        if unit.count("|") == 3 and _is_other(tuple(unit.split("|")), mine)
    }
    if not others:
        return None
    active = connection.compile(store.table("billing", connection))
    same = ("source", "resource_id", "period_start", "sku", "usage_qty", "list_cost")
    join = " AND ".join(f"old.{name} IS NOT DISTINCT FROM new.{name}" for name in same)
    records = run(
        connection,
        f"WITH new AS (SELECT * FROM read_parquet({path_list([path])}) WHERE resource_id IS NOT "
        f"NULL AND billed_cost IS DISTINCT FROM 0 LIMIT {_SAMPLE}), old AS ({active}) "
        f"SELECT split_part(old.unit, '|', 2), count(DISTINCT new.source_row_no) FROM new JOIN old "
        f"ON {join} AND split_part(old.unit, '|', 2) <> split_part(new.unit, '|', 2) AND "
        f"old.billed_cost IS NOT DISTINCT FROM new.billed_cost GROUP BY ALL ORDER BY ALL",
    )
    if not records:
        return None
    rows = sum(record[1] for record in records)
    accounts = ", ".join(record[0] for record in records[:_MOST_NAMED])
    return (
        f"{rows} equal line items stand under two accounts, here and under {accounts}: "
        "the same charges may be counted twice"
    )


def _is_other(theirs: tuple[str, ...], mine: set[tuple[str, ...]]) -> bool:
    source, account, _dataset, period = theirs
    same = [unit for unit in mine if (unit[0], unit[3]) == (source, period)]
    return any(unit[1] != account for unit in same)


def _finding(check: str, scope: str, count: int, detail: str) -> dict[str, Any]:
    return {
        "check": check,
        "scope": scope,
        "severity": "warning",
        "count": count,
        "amount": None,
        "currency": None,
        "detail": detail,
    }
