"""What the rows of a billing file come to: totals by unit and way of paying, and their hours."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data import engines, money
from data.engines import quoted
from data.hours import iso
from data.store.history import AMOUNTS, OptionTotals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

# Charges of at most a day say how far a bill goes; monthly fees and spread purchases do not.
_FINE = "(period_end - period_start <= INTERVAL 1 DAY)"
_EXACT = f"DECIMAL({money.PRECISION}, {money.SCALE})"
_ROOMY = "DECIMAL(38, 10)"  # for sums of more than 12 integer digits


@dataclass(frozen=True, slots=True)
class Measured:
    """Totals of one unit in one file, and what its charges of at most a day cover."""

    options: tuple[OptionTotals, ...] = ()
    first: str | None = None
    until: str | None = None
    days: int = 0


@dataclass(slots=True)
class _Unit:
    options: list[OptionTotals] = field(default_factory=list)
    first: str | None = None
    until: str | None = None
    days: int = 0


def measure(connection: Any, path: Path, units: Iterable[str]) -> dict[str, Measured]:
    """What each of the units comes to in the billing file; a unit without rows is all empty."""
    wanted = sorted(units)
    if not wanted:
        return {}
    found = {unit: _Unit() for unit in wanted}
    source = f"read_parquet({engines.path_list([path])})"
    inside = f"unit IN ({', '.join(map(quoted, wanted))})"
    for unit, option in _options(connection, f"{source} WHERE {inside}"):
        found[unit].options.append(option)
    bounds = engines.run(
        connection,
        "SELECT unit, min(period_start), max(period_end), "
        "count(DISTINCT date_trunc('day', period_start)) "
        f"FROM {source} WHERE {inside} AND {_FINE} GROUP BY unit",
    )
    for unit, first, until, days in bounds:
        one = found[unit]
        one.first, one.until, one.days = _text(first), _text(until), days
    return {
        unit: Measured(tuple(one.options), one.first, one.until, one.days)
        for unit, one in found.items()
    }


def within(
    connection: Any, path: Path, bounds: Mapping[str, tuple[str | None, str | None]]
) -> dict[str, tuple[OptionTotals, ...]]:
    """Totals of each unit over `[first, until)` of its bounds; all of it where they are None.

    Charges of more than a day, and those without a period, lie in any bounds.
    """
    found: dict[str, list[OptionTotals]] = {unit: [] for unit in bounds}
    source = f"read_parquet({engines.path_list([path])})"
    conditions = [
        f"(unit = {quoted(unit)}" + _between(*edges) + ")" for unit, edges in sorted(bounds.items())
    ]
    if conditions:
        for unit, option in _options(connection, f"{source} WHERE {' OR '.join(conditions)}"):
            found[unit].append(option)
    return {unit: tuple(options) for unit, options in found.items()}


def _between(first: str | None, until: str | None) -> str:
    if first is None or until is None:
        return ""
    return (
        f" AND (coalesce(NOT {_FINE}, true) OR (period_start >= TIMESTAMPTZ {quoted(first)} "
        f"AND period_start < TIMESTAMPTZ {quoted(until)}))"
    )


def _options(connection: Any, rows: str) -> list[tuple[str, OptionTotals]]:
    try:
        records = engines.run(connection, _query(rows, _EXACT))
    except Exception as error:  # what the engine calls an overflow has no class of ours
        if "overflow" not in str(error).lower() and "out of range" not in str(error).lower():
            raise
        records = engines.run(connection, _query(rows, _ROOMY))
    return [(unit, _totals(*rest)) for unit, *rest in records]


def _query(rows: str, kind: str) -> str:
    sums = ", ".join(f"sum({name}::{kind})" for name in AMOUNTS)
    return (
        f"SELECT unit, purchase_option, currency, count(*), {sums} FROM {rows} "
        "GROUP BY unit, purchase_option, currency ORDER BY ALL"
    )


def _totals(option: str | None, currency: str | None, rows: int, *sums: Decimal | None) -> Any:
    billed, effective, instance, gpu = (one if one is None else _plain(one) for one in sums)
    zero = Decimal(0)
    return OptionTotals(
        option or "none", currency or "unknown", rows, billed, effective,
        zero if instance is None else instance, zero if gpu is None else gpu,
    )  # fmt: skip


def _plain(amount: Decimal) -> Decimal:
    """The amount as the catalogue gives it back, so that equal totals compare and read alike."""
    return Decimal(str(money.text(amount)))


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)
