"""Charges brought to the hour: one expression, the same on every engine.

Nothing but comparisons, integer arithmetic on seconds, and sums is used, so that DuckDB, Spark and
BigQuery give the same rows to the last digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.schema import BILLING, Dtype

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROW = "source_row_no"
ROWS = "source_rows"
PERIOD = ("period_start", "period_end")
AMOUNTS = tuple(
    column.name for column in BILLING.columns if column.dtype in (Dtype.MONEY, Dtype.HOURS)
)
_SECONDS = 3600


def first_hour(start: Any) -> Any:
    """The first hour since 1970 that a charge touches; `start` is in seconds since 1970."""
    return start // _SECONDS


def last_hour(start: Any, end: Any) -> Any:
    """The last hour since 1970 that a charge touches, the first at least; `end` is exclusive.

    Both are in seconds since 1970. Without an end it is the first hour.

    >>> last_hour(ibis.literal(3600), ibis.literal(10800)).to_pyarrow().as_py()
    2
    """
    first, last = first_hour(start), (end - 1) // _SECONDS
    # Not `greatest`: engines differ in what it makes of a null.
    return (last > first).fill_null(False).ifelse(last, first)


def descriptions(names: Any) -> list[str]:
    """What rows of BILLING with these columns are grouped by: no period, amount or row number."""
    return [name for name in names if name not in (*PERIOD, *AMOUNTS, ROW, ROWS)]


def hourly(rows: ir.Table) -> ir.Table:
    """Rows of BILLING of one hour and one description as one row each, their amounts summed.

    Grouped by every column of `rows` but the row number and the amounts: unit, source, dataset,
    accounts, region, zone, billing period, resource, service, machine and GPUs, SKU, units, how it
    was bought, commitment, capacity reservation, currency, kind of the charge, tags, delivery, and
    any column that `rows` has beyond BILLING. Rows that state an amount and rows that lack it are
    never added up, so that a missing amount stays missing.

    A charge within one UTC hour counts for that hour: `period_start` is the hour's start,
    `period_end` its end. One of several hours (daily or monthly grain) keeps its period and is
    grouped with charges of the same period; it is spread over its hours where plans are made
    (`planner.billed_hours`), which knows when the machine was seen. A charge without a start or
    end keeps what it has. Amounts (usage_qty in usage_unit, instance_hours, gpu_hours, and money
    in the row's currency) are summed exactly; usage_unit and currency are columns of the group.

    The columns are those of `rows` in their order, without the row number, and `source_rows`: of
    how many charges a row is the sum.
    """
    names = [name for name in rows.columns if name not in (ROW, ROWS)]
    amounts = [name for name in AMOUNTS if name in names]
    keys = {name: rows[name] for name in descriptions(names)}
    keys |= dict(zip(PERIOD, _period(rows), strict=True))
    keys |= {f"{name}_is_missing": rows[name].isnull() for name in amounts}
    counted = rows[ROWS] if ROWS in rows.columns else ibis.literal(1)
    keyed = rows.select(**keys, **{name: rows[name] for name in amounts}, **{ROWS: counted})
    sums: dict[str, Any] = {name: keyed[name].sum() for name in amounts}
    grouped = keyed.group_by(list(keys)).aggregate(
        **sums, **{ROWS: keyed[ROWS].sum().cast("int64")}
    )
    return grouped.select(*names, ROWS)


def _period(rows: Any) -> tuple[Any, Any]:
    """The period that a row is grouped by: its hour, or its own where it covers several."""
    start, end = rows.period_start.epoch_seconds(), rows.period_end.epoch_seconds()
    within = start.notnull() & end.notnull() & (last_hour(start, end) == first_hour(start))
    hour = rows.period_start.truncate("h")
    return (
        within.ifelse(hour, rows.period_start),
        within.ifelse(hour + ibis.interval(hours=1), rows.period_end),
    )
