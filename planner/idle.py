"""Idle GPU-hours and dollars: by any column, by instance, and what of them can be had back.

Idle is idle-held plus free. Unknown hours are told apart and never added. Amounts of different
currencies are never added.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import money
from data.errors import Problem, UsageError
from data.frames import conform, empty, records
from data.schema import COMMITTED_OPTIONS, IDLE, STATES
from planner.cancelled import EMPTY_RESERVATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

IDLE_STATES = ("idle_held", "free")
UNUSED = ("unused_commitment", EMPTY_RESERVATION)
ZERO = Decimal(0)
# Columns of `idle --by`: those of FLEET_HOURS, and the words that `totals` has for them.
BY = (
    "source", "cloud", "dataset", "delivery_id", "account", "billing_period", "currency",
    "charge_type", "purchase_option", "commitment_status", "commitment_id", "region",
    "instance_id", "instance_type", "gpu_model", "gpu_family", "workload_class", "day", "node",
    "team", "user", "reason",
)  # fmt: skip
_INSTANCE = (
    "cloud", "account", "region", "instance_id", "gpu_model", "workload_class", "team", "state",
    "reason", "currency", "committed_until",
)  # fmt: skip


def with_buckets(fleet: pd.DataFrame) -> pd.DataFrame:
    """The fleet's rows with `bucket`: where the dollars of the row stand.

    work: busy. unknown: nobody knows. stoppable: idle, stopping the instance, or cancelling the
    empty reservation, would have saved it. committed: idle, paid whether used or not, can only be
    filled. partly_busy: idle GPUs or pauses of instances that also work. undetermined: idle, but
    how it was bought is not known.
    """
    state, option = fleet["state"].astype(object), fleet["purchase_option"].astype(object)
    is_idle = state.isin(IDLE_STATES)
    bucket = pd.Series("work", index=fleet.index, dtype=object)
    bucket[state == "unknown"] = "unknown"
    bucket[is_idle] = "partly_busy"
    bucket[is_idle & (option == "unknown")] = "undetermined"
    bucket[is_idle & fleet["stoppable"].astype(bool)] = "stoppable"
    is_empty = fleet["reason"].isin((EMPTY_RESERVATION,))
    free_to_end = is_empty & (fleet["stoppable"].astype(bool) | (option == "unknown"))
    paid = option.isin(COMMITTED_OPTIONS) | (fleet["reason"].isin(UNUSED) & ~free_to_end)
    bucket[is_idle & paid] = "committed"
    return fleet.assign(bucket=bucket)


def idle_document(
    fleet: pd.DataFrame, by: Sequence[str], window_hours: float, **parts: Any
) -> dict[str, Any]:
    """The JSON document of `loadfactor idle`: rows by state, idle dollars and their buckets.

    `by` are column names of BY; UsageError for any other. `window_hours` is the length of the
    observed window: a year is cost x 8,760 / hours. `parts` are further members, such as
    `patterns` and `alerts`, which are empty lists unless given. Money and hours are decimal
    strings; a cost of which nothing is known is null.
    """
    sums = by_bucket(fleet)
    per_year = {
        currency: _text(money.per_year(idle_cost(found), window_hours))
        for currency, found in sums.items()
        if window_hours
    }
    document: dict[str, Any] = {
        "rows": idle_rows(fleet, by),
        "idle_cost_per_year": per_year,
    }
    for bucket, name in _BUCKETS.items():
        document[name] = {
            currency: _text(money.per_month(found.get(bucket, ZERO), window_hours))
            for currency, found in sums.items()
            if window_hours
        }
    unpriced = fleet.loc[fleet["cost"].isna() & fleet["state"].isin(IDLE_STATES), "gpu_hours"]
    document["unpriced_idle_gpu_hours"] = _text(money.total(unpriced))
    return {**document, "hours_observed": window_hours, "patterns": [], "alerts": [], **parts}


_BUCKETS = {
    "stoppable": "stoppable_cost_per_month",
    "committed": "committed_idle_cost_per_month",
    "partly_busy": "partly_busy_idle_cost_per_month",
    "undetermined": "undetermined_idle_cost_per_month",
    "unknown": "unknown_cost_per_month",
}


def by_bucket(fleet: pd.DataFrame) -> dict[str, dict[str, Decimal]]:
    """Exact cost by currency and bucket; rows without a known cost are left out."""
    priced = with_buckets(fleet)
    priced = priced[priced["cost"].notna()]
    found: dict[str, dict[str, Decimal]] = {}
    for (currency, bucket), costs in priced.groupby(["currency", "bucket"], sort=True)["cost"]:
        found.setdefault(str(currency), {})[str(bucket)] = money.total(costs)
    return found


def idle_cost(sums: dict[str, Decimal]) -> Decimal:
    """The idle part of one currency's sums by bucket: all but unknown and work."""
    return money.total(sums.get(name, ZERO) for name in _BUCKETS if name != "unknown")


def _text(value: Decimal) -> str:
    return money.text(value) or "0"


def idle_rows(fleet: pd.DataFrame, by: Sequence[str]) -> list[dict[str, Any]]:
    """GPU-hours and cost by the columns of `by`, state and currency; sorted, exact."""
    wrong = [name for name in by if name not in BY and name != "state"]
    if wrong:
        remedy = "use " + ", ".join(BY)
        raise UsageError(
            "unknown columns to group by",
            [Problem("--by", f"no column {name!r}", remedy) for name in wrong],
        )
    keys = [name for name in dict.fromkeys(by) if name not in ("state", "currency")]
    if not len(fleet):
        return []
    columns = {name: _column(fleet, name).fillna("") for name in keys}
    plain = pd.DataFrame(
        {
            **columns,
            "state": fleet["state"].astype(object),
            "currency": fleet["currency"].astype(object),
            "gpu_hours": fleet["gpu_hours"],
            "cost": fleet["cost"],
        }
    )
    rows = []
    for key, part in plain.groupby([*keys, "state", "currency"], sort=True):
        known = part["cost"].dropna()
        cost = money.total(known) if len(known) else None
        values = dict(zip([*keys, "state", "currency"], key, strict=True))
        rows.append(
            {
                **{name: values[name] or None for name in keys},
                "state": values["state"],
                "gpu_hours": _text(money.total(part["gpu_hours"])),
                "cost": money.text(cost),
                "currency": values["currency"],
            }
        )
    order = {state: place for place, state in enumerate(STATES)}
    return sorted(
        rows,
        key=lambda row: ([row[k] or "" for k in keys], order[row["state"]], row["currency"]),
    )


def _column(fleet: pd.DataFrame, name: str) -> pd.Series:
    """The column of that name as texts, in the words of `totals` where they differ."""
    made: dict[str, Callable[[], pd.Series]] = {
        "source": lambda: fleet["cloud"],
        "day": lambda: fleet["hour_start"].dt.strftime("%Y-%m-%d"),
        "billing_period": lambda: fleet["hour_start"].dt.strftime("%Y-%m"),
        "charge_type": lambda: pd.Series("usage", index=fleet.index),
        "commitment_status": lambda: _status(fleet),
    }
    column = made[name]() if name in made else fleet[name]
    return column.astype(object)


def _status(fleet: pd.DataFrame) -> pd.Series:
    status = pd.Series(None, index=fleet.index, dtype=object)
    status[fleet["purchase_option"].isin(COMMITTED_OPTIONS)] = "used"
    status[fleet["reason"].isin(UNUSED)] = "unused"
    return status


def idle_table(fleet: pd.DataFrame) -> pd.DataFrame:
    """Frame of IDLE: idle and unknown hours by instance, class, team and reason, dearest first.

    `since` is the first hour of the row's newest run of hours. Where the instance was not seen at
    work after that run, a missed reading does not break it: the run then goes back to the hour
    after the instance last worked.
    """
    rows = with_buckets(fleet)
    worked = _last_worked(rows)
    rows = rows[rows["bucket"] != "work"]
    if not len(rows):
        return empty(IDLE)
    # A commitment's end and a way of paying are one per bucket: rows of two buckets stay apart.
    keys = [*_INSTANCE, "bucket"]
    found = []
    for key, part in rows.groupby(keys, sort=True, dropna=False):
        values = dict(zip(keys, key, strict=True))
        known = part["cost"].dropna()
        cost = money.total(known) if len(known) else None
        found.append(
            {
                **values,
                "gpu_hours": money.total(part["gpu_hours"]),
                "cost": cost,
                "stoppable_cost": cost if values["bucket"] == "stoppable" else ZERO,
                "since": _newest_run(
                    part["hour_start"],
                    worked.get((str(values["cloud"]), str(values["instance_id"]))),
                ),
                "action": _action(values),
            }
        )
    dearest = sorted(
        records(pd.DataFrame(found)),
        key=lambda row: (
            -(row["cost"] or ZERO),
            *(str(row[name] or "") for name in keys),
        ),
    )
    return conform(pd.DataFrame(dearest), IDLE)


def _last_worked(rows: pd.DataFrame) -> dict[tuple[str, str], pd.Timestamp]:
    """The newest hour in which each instance was seen at work."""
    busy = rows[rows["bucket"] == "work"]
    newest = busy.groupby(["cloud", "instance_id"])["hour_start"].max()
    return {(str(key[0]), str(key[1])): hour for key, hour in newest.items()}  # type: ignore[index]


def _newest_run(hours: pd.Series, worked: pd.Timestamp | None) -> pd.Timestamp:
    """First hour of the last run of hours; since the instance last worked, gaps do not count."""
    ordered = hours.drop_duplicates().sort_values(ignore_index=True)
    after = ordered if worked is None else ordered[ordered > worked]
    if len(after):
        idle_since: pd.Timestamp = after.iloc[0]
        return idle_since
    starts = ordered[ordered.diff() != pd.Timedelta(hours=1)]
    first: pd.Timestamp = starts.iloc[-1]
    return first


def _action(row: dict[str, Any]) -> str:
    until = row["committed_until"]
    ends = "" if until is None or pd.isna(until) else f", which is paid for until {until:%Y-%m-%d}"
    if row["bucket"] == "unknown":
        return _MEASURE.get(row["reason"], "find out why no state is known")
    if row["reason"] == EMPTY_RESERVATION and row["bucket"] != "committed":
        return "cancel or shrink the reservation if nothing commits it, or start work on it"
    if row["reason"] in UNUSED:
        return f"start work on this capacity{ends}, or let it end"
    if row["bucket"] == "committed":
        return f"fill it with other work{ends}: stopping it saves nothing"
    if row["bucket"] == "stoppable":
        return "stop the instance"
    if row["bucket"] == "undetermined":
        return "stop the instance if nothing commits it; load its bill to know"
    return "pack work onto fewer instances: some of its GPUs work"


_MEASURE = {
    "no_telemetry": "measure this GPU: no telemetry reaches the table",
    "no_reading": "repair the sensor: samples arrive without a reading",
    "mig": "measure the MIG instances: the card gives no utilization in MIG mode",
    "contradicting": "repair the sensors: they contradict each other",
    "correction": "nothing: a correction of an earlier bill",
}
