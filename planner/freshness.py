"""How far the bill of one source reaches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data.engines import run
from data.hours import day_start

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date

    from data.store import Store

# Charges longer than this (monthly fees, spread purchases) do not say how far a bill goes.
_LONGEST_SECONDS = 86_400


def newest_hour(store: Store, deliveries: Collection[str]) -> datetime | None:
    """The end of the newest hour that these deliveries bill, None where they bill none.

    Where all of their charges are longer than a day, the end of the newest charge.
    """
    return newest_of(
        store, [unit for unit, holder in store.active().items() if holder in deliveries]
    )


def newest_of(store: Store, units: Collection[str]) -> datetime | None:
    """The end of the newest hour that these active units bill, as `newest_hour` tells it."""
    bills = {one.delivery_id for one in store.deliveries() if one.table == "billing"}
    held = {unit for unit, holder in store.active().items() if holder in bills} & set(units)
    periods = sorted({unit.rpartition("|")[2] for unit in held})
    if not periods:
        return None
    dated = [period for period in periods if period[:1].isdigit()]
    newest = (dated or periods)[-1]
    last = sorted(unit for unit in held if unit.rpartition("|")[2] == newest)
    bill = store.table("billing")
    run(bill.get_backend(), "SET TimeZone = 'UTC'")
    used = bill.filter(
        bill.unit.isin(last) & (bill.charge_type == "usage") & bill.period_end.notnull()
    )
    ends, starts = used.period_end.epoch_seconds(), used.period_start.epoch_seconds()
    fine = _latest(used.filter(ends - starts <= _LONGEST_SECONDS))
    return fine if fine is not None else _latest(used)


def _latest(rows: Any) -> datetime | None:
    seconds = rows.get_backend().execute(rows.period_end.epoch_seconds().max())
    return None if seconds is None or seconds != seconds else datetime.fromtimestamp(seconds, UTC)


def staleness(newest: datetime, as_of: date, max_age_days: int) -> str | None:
    """A sentence where the newest hour is older than it may be on that day, else None.

    >>> from datetime import date
    >>> staleness(datetime(2026, 11, 1, tzinfo=UTC), date(2026, 11, 4), 3) is None
    True
    >>> staleness(datetime(2026, 11, 1, tzinfo=UTC), date(2026, 11, 5), 3).partition(":")[0]
    'its newest hour ends at 2026-11-01T00'
    """
    age = day_start(as_of) - newest
    if age.total_seconds() <= max_age_days * 86_400:
        return None
    return (
        f"its newest hour ends at {newest:%Y-%m-%dT%H:%M:%SZ}, {age.days} days before "
        f"{as_of.isoformat()} (max_age_days is {max_age_days}): see whether the export is still "
        "delivered"
    )
