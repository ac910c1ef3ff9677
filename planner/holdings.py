"""Commitments, owned and advised, as one table: what each costs, how much is used, what to do."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import money
from data.frames import conform, empty, records
from data.hours import iso
from data.money import HOURS_PER_MONTH, exact
from data.names import UNUSED_PREFIX
from data.schema import COMMITMENTS_OUT
from planner.rightsizing import to_cents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from data.ladder import EndingPart
    from data.reasons import Reasons
    from planner.purchases import Purchase

_USD = "USD"
_ENDS_SOON_DAYS = 90


def holdings(
    owned: pd.DataFrame, bill: pd.DataFrame, window_hours: int, as_of: datetime
) -> pd.DataFrame:
    """Frame of COMMITMENTS_OUT for what is owned.

    `owned` is COMMITMENTS; `bill` is FLEET_HOURS with money as float. The used share is in
    dollars: what covered hours bore of all that the bill shows for the commitment.
    """
    paid = bill.dropna(subset=["commitment_id"])
    named = {str(name) for name in owned["id"]}
    rows = [_owned_row(row, paid, window_hours, as_of) for row in records(owned)]
    for name, part in paid.groupby("commitment_id", sort=True):
        if str(name) not in named:
            rows.append(_unnamed_row(str(name), part, window_hours))
    if not rows:
        return empty(COMMITMENTS_OUT)
    rows.sort(key=lambda row: row["id"])
    return conform(pd.DataFrame(rows), COMMITMENTS_OUT)


def with_ends(owned: pd.DataFrame, reasons: Reasons | None) -> pd.DataFrame:
    """The owned table with what to do at the end of each that ends in the planned year.

    Of one that covers several machine types, the largest part decides.
    """
    ending: dict[str, EndingPart] = {}
    for one in sorted(() if reasons is None else reasons.ending, key=lambda one: one.gpus):
        ending[one.id] = one
    rows = records(owned)
    for row in rows:
        found = ending.get(row["id"])
        if found is not None:
            row["action"], row["why"] = found.action, f"ends on {found.ends}; {found.why}"
            row["break_even_share"] = found.break_even_share
    return conform(pd.DataFrame(rows), COMMITMENTS_OUT) if rows else owned


def with_advised(
    owned: pd.DataFrame, bought: Sequence[Purchase], ids: dict[str, str]
) -> pd.DataFrame:
    """The owned table with a line for each purchase; `ids` maps a purchase to its advice."""
    rows = records(owned)
    for one in bought:
        kind = "reserved" if one.kind == "reserved" else "savings_plan"
        rows.append(
            {
                "id": ids.get(f"{one.cloud}|{one.region}|{one.name}", f"advised-{one.name}"),
                "cloud": one.cloud,
                "kind": kind,
                "instance_type": one.name.split(" ")[0] if kind == "reserved" else None,
                "region": one.region,
                "count": one.count,
                "usd_per_hour": exact(round(one.usd_per_hour, 6)),
                "payment": one.payment,
                "upfront": to_cents(one.upfront),
                "total_commitment": to_cents(one.total_commitment),
                "used_share": one.expected_share,
                "break_even_share": one.break_even_share,
                "action": "buy",
                "why": one.why,
            }
        )
    return conform(pd.DataFrame(rows), COMMITMENTS_OUT) if rows else empty(COMMITMENTS_OUT)


def monthly_rows(
    owned: pd.DataFrame, bill: pd.DataFrame, rates: Mapping[str, Decimal], window_hours: int
) -> list[dict[str, Any]]:
    """What is owned, as `loadfactor commitments` tells it: sorted rows of texts and shares.

    `bill` is FLEET_HOURS with exact money and the ids of `owned` (COMMITMENTS). `committed`, `used`
    and `unused` are a month of 730 hours as the mean of the observed hours, in cents, and add up.
    They are in USD where `rates` states the currency's price of a dollar, else in the currency of
    the bill. A part of which some cost is not known is null, and so is their sum, unless the table
    states what the commitment costs.
    """
    paid = bill.dropna(subset=["commitment_id"])
    shown = paid["currency"].astype(object).where(~paid["currency"].isin([*rates]), _USD)
    table = {str(row["id"]): row for row in records(owned)}
    rows, seen = [], set()
    for key, part in paid.groupby(["commitment_id", shown], sort=True):
        name, currency = (str(word) for word in key)
        seen.add(name)
        is_unused = part["instance_id"].str.startswith(UNUSED_PREFIX)
        used = _per_month(part[~is_unused], rates, window_hours)
        unused = _per_month(part[is_unused], rates, window_hours)
        kind = str(part["purchase_option"].mode().iloc[0])
        described = {"cloud": str(part["cloud"].iloc[0]), "kind": kind, **table.get(name, {})}
        rows.append(_monthly_row(name, described, currency, (used, unused)))
    for name, row in table.items():
        if name not in seen:
            rows.append(_monthly_row(name, row, _USD, (None, None)))
    return sorted(rows, key=lambda row: (row["id"], row["currency"]))


def _monthly_row(
    name: str, row: Mapping[str, Any], currency: str, parts: tuple[Decimal | None, Decimal | None]
) -> dict[str, Any]:
    used, unused = (None if part is None else money.product(part, 1, 2) for part in parts)
    committed = share = None
    if used is not None and unused is not None:
        committed = used + unused
        whole = money.total(part for part in parts if part is not None)
        share = float(money.quotient(parts[0] or Decimal(0), whole)) if whole > 0 else None
    elif currency == _USD:
        per_hour = _usd_per_hour(row)
        committed = per_hour and money.product(per_hour, HOURS_PER_MONTH, 2)
    end = row.get("end")
    return {
        "id": name,
        "cloud": row["cloud"],
        "kind": row["kind"],
        "committed": money.text(committed),
        "used": money.text(used),
        "unused": money.text(unused),
        "currency": currency,
        "ends": None if end is None else iso(end),
        "break_even_share": None,
        "used_share": share,
    }


def _per_month(
    part: pd.DataFrame, rates: Mapping[str, Decimal], window_hours: int
) -> Decimal | None:
    """The part's cost as a month, in dollars where there is a rate; None where any is missing."""
    if part["cost"].isna().any():
        return None
    return money.total(
        money.quotient(
            money.per_month(money.total(costs), window_hours), rates.get(str(code), Decimal(1))
        )
        for code, costs in part.groupby("currency", sort=True)["cost"]
    )


def _usd_per_hour(row: Mapping[str, Any]) -> Decimal | None:
    """What the commitment costs an hour, as the table states it: in all, or by instance."""
    rate, per_hour = row.get("usd_per_instance_hour"), row.get("usd_per_hour")
    if per_hour is None and rate is not None and row["count"] is not None:
        return money.product(exact(rate), exact(row["count"]))
    return None if per_hour is None else exact(per_hour)


def _owned_row(
    row: dict[str, Any], paid: pd.DataFrame, window_hours: int, as_of: datetime
) -> dict[str, Any]:
    part = paid[paid["commitment_id"] == row["id"]]
    share, unused = _use(part, window_hours)
    days_left = (row["end"] - as_of).days
    action, why = "keep", f"paid until {row['end']:%Y-%m-%d} whatever is used"
    if days_left < 0:
        action, why = "ended", f"ended on {row['end']:%Y-%m-%d}"
    elif days_left <= _ENDS_SOON_DAYS:
        action, why = "decide", f"ends in {days_left} days, on {row['end']:%Y-%m-%d}"
    per_hour = _usd_per_hour(row)
    hours = (row["end"] - row["start"]).total_seconds() / 3600
    return {
        **{name: row[name] for name in ("id", "cloud", "account", "kind", "instance_type")},
        **{name: row[name] for name in ("region", "count", "payment", "start", "end")},
        "usd_per_hour": per_hour,
        "total_commitment": None if per_hour is None else to_cents(float(per_hour) * hours),
        "used_share": share,
        "unused_cost_per_month": unused,
        "action": action,
        "why": why,
    }


def _unnamed_row(name: str, part: pd.DataFrame, window_hours: int) -> dict[str, Any]:
    share, unused = _use(part, window_hours)
    first = records(part.head(1))[0]
    option = str(part["purchase_option"].mode().iloc[0])
    return {
        "id": name,
        "cloud": first["cloud"],
        "account": first["account"],
        "kind": option,
        "instance_type": first["instance_type"],
        "region": first["region"],
        "used_share": share,
        "unused_cost_per_month": unused,
        "action": "keep",
        "why": "seen on the bill; its end is unknown, name it in a commitments table",
    }


def _use(part: pd.DataFrame, window_hours: int) -> tuple[float | None, Decimal | None]:
    total = float(part["cost"].sum())
    if part.empty or total <= 0:
        return None, None
    unused = float(part.loc[part["instance_id"].str.startswith(UNUSED_PREFIX), "cost"].sum())
    return 1 - unused / total, to_cents(unused * HOURS_PER_MONTH / window_hours)
