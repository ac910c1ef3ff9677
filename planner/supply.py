"""What capacity can be had: offers with their prices per GPU-hour, and what is owned already.

An offer is one machine type in one region of one cloud. Its prices come from the price book after
its checks; where the book has none for a type that the bill shows, the bill's own mean rate
serves, and the offer says so. A price that neither has is not sold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.frames import records
from data.money import HOURS_PER_MONTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from planner.horizon import Horizon

KEY = ["cloud", "region", "instance_type"]
TERM_HOURS = {"reserved_1y": 8760, "reserved_3y": 26280}
_CAPACITY_KINDS = ("reserved", "capacity_block", "owned")
_COMMITTED = ("reserved", "savings_plan", "capacity_block")


@dataclass(frozen=True, slots=True)
class Term:
    """A reservation that can be bought: USD per GPU-hour amortised, upfront USD per GPU."""

    name: str
    payment: str
    rate: float
    upfront: float
    term_hours: int


@dataclass(frozen=True, slots=True)
class SupplyOffer:
    """One offer; prices in USD per GPU-hour, None where it is not sold."""

    id: str
    cloud: str
    region: str
    instance_type: str
    gpu_family: str
    gpus: int
    on_demand: float | None
    spot: float | None
    terms: tuple[Term, ...]
    plan_rate: float | None
    from_bill: bool


@dataclass(frozen=True, slots=True)
class Owned:
    """Capacity that is paid for already: GPUs of one offer until a horizon hour."""

    id: str
    offer: str
    gpus: float
    until_hour: int
    usd_per_month: float


@dataclass(frozen=True, slots=True)
class Supply:
    """All offers by id, what is owned, and notes for the report."""

    offers: dict[str, SupplyOffer]
    owned: tuple[Owned, ...]
    notes: tuple[str, ...] = field(default=())


def offer_id(cloud: str, region: str, instance_type: str) -> str:
    """The name of an offer.

    >>> offer_id("aws", "us-east-1", "p5.48xlarge")
    'aws/us-east-1/p5.48xlarge'
    """
    return f"{cloud}/{region}/{instance_type}"


def offers_from(
    prices: pd.DataFrame, shapes: pd.DataFrame, bill: pd.DataFrame, terms: Sequence[str]
) -> dict[str, SupplyOffer]:
    """Offers by id, from used rows of OFFERS, shapes, and FLEET_HOURS rows (money as float).

    `terms` are the lengths that may be bought, such as ("1y",). Only GPU families that the fleet
    runs are offered.
    """
    families = set(bill["gpu_family"].dropna())
    shape_of = {(row["cloud"], row["instance_type"]): row for row in records(shapes)}
    used = prices[prices["status"] == "used"].rename(columns={"provider": "cloud"})
    billed = _billed_rates(bill)
    rows: dict[str, dict[str, Any]] = {}
    for price in records(used):
        shape = shape_of.get((price["cloud"], price["instance_type"]), {})
        family = shape.get("gpu_family") or _family(str(price["gpu_model"]))
        if family not in families or shape.get("managed_service"):
            continue
        row = _row(rows, price, str(family))
        _put_price(row, price, terms)
    for record in billed:
        row = _row(rows, record, str(record["gpu_family"]))
        option = str(record["purchase_option"])
        if row.get(option) is None:
            row[option] = record["rate"]
            row["from_bill"] = True
    return {name: _offer(name, rows[name]) for name in sorted(rows)}


def owned_from(
    commitments: pd.DataFrame, bill: pd.DataFrame, offers: dict[str, SupplyOffer], horizon: Horizon
) -> tuple[tuple[Owned, ...], tuple[str, ...]]:
    """Owned capacity inside the horizon, and notes on what could not be placed.

    A savings plan is turned into GPUs at the rate the bill shows for it, else at the book's.
    A commitment that the bill shows and no table names is kept for the whole horizon.
    """
    owned: list[Owned] = []
    notes: list[str] = []
    month = HOURS_PER_MONTH / horizon.observed_hours
    committed = bill[bill["purchase_option"].isin(_COMMITTED)]
    paid = committed.groupby("commitment_id")["cost"].sum().to_dict()
    covered = committed[committed["state"].notna() & (committed["gpu_hours"] > 0)]
    named = set()
    for row in records(commitments.sort_values("id")):
        name = str(row["id"])
        named.add(name)
        if row["end"] <= horizon.start or row["kind"] == "capacity_reservation":
            continue
        found = _place(row, covered[covered["commitment_id"] == name], offers)
        if found is None:
            notes.append(f"commitment {name} left out: no machine type or rate is known for it")
            continue
        offer, gpus = found
        cost = float(paid.get(name, 0.0)) * month
        owned.append(Owned(name, offer, gpus, horizon.until(row["end"]), cost))
    for found_id, rows in covered.groupby("commitment_id", sort=True):
        name = str(found_id)
        if name in named:
            continue
        by_offer = rows.groupby(KEY)["gpu_hours"].sum().sort_values(ascending=False)
        cloud, region, instance_type = by_offer.index[0]
        gpus = float(by_offer.iloc[0]) / horizon.observed_hours
        where = offer_id(cloud, region, instance_type)
        if where in offers:
            cost = float(paid[name]) * month
            owned.append(Owned(name, where, gpus, horizon.hours, cost))
            notes.append(f"commitment {name} has no end date: name it in a commitments table")
    return tuple(sorted(owned, key=lambda one: one.id)), tuple(notes)


def _place(
    row: dict[str, Any], rows: pd.DataFrame, offers: dict[str, SupplyOffer]
) -> tuple[str, float] | None:
    region, instance_type = row.get("region"), row.get("instance_type")
    if len(rows):
        used = rows.groupby(KEY)["gpu_hours"].sum().sort_values(ascending=False).index[0]
        region, instance_type = region or used[1], instance_type or used[2]
    if not isinstance(region, str) or not isinstance(instance_type, str):
        return None
    name = offer_id(str(row["cloud"]), region, instance_type)
    offer = offers.get(name)
    if offer is None:
        return None
    if row["kind"] in _CAPACITY_KINDS:
        return name, float(row["count"] or 0) * offer.gpus
    rate = offer.plan_rate
    if len(rows):
        rate = float(rows["cost"].sum()) / float(rows["gpu_hours"].sum())
    if not rate or row["usd_per_hour"] is None:
        return None
    return name, float(row["usd_per_hour"]) / rate


def _billed_rates(bill: pd.DataFrame) -> list[dict[str, Any]]:
    plain = bill[bill["purchase_option"].isin(["on_demand", "spot"]) & (bill["gpu_hours"] > 0)]
    plain = plain[~plain["managed_service"].astype(bool)].dropna(subset=[*KEY, "gpu_family"])
    by = [*KEY, "gpu_family", "gpu_count", "purchase_option"]
    sums = plain.groupby(by, sort=True)[["cost", "gpu_hours"]].sum().reset_index()
    sums = sums[sums["cost"] > 0]
    sums["rate"] = sums["cost"] / sums["gpu_hours"]
    return [{**row, "gpus": row["gpu_count"]} for row in records(sums)]


def _row(rows: dict[str, dict[str, Any]], price: dict[str, Any], family: str) -> dict[str, Any]:
    name = offer_id(str(price["cloud"]), str(price["region"]), str(price["instance_type"]))
    return rows.setdefault(
        name,
        {
            "cloud": str(price["cloud"]),
            "region": str(price["region"]),
            "instance_type": str(price["instance_type"]),
            "gpu_family": family,
            "gpus": int(price["gpus"]),
            "terms": [],
        },
    )


def _put_price(row: dict[str, Any], price: dict[str, Any], terms: Sequence[str]) -> None:
    option, rate = str(price["purchase_option"]), float(price["usd_per_instance_hour"])
    rate /= row["gpus"]
    if option in ("on_demand", "spot"):
        row[option] = rate
    elif option.startswith("savings_plan_"):
        known = row.get("plan_rate")
        if option.removeprefix("savings_plan_") in terms:
            row["plan_rate"] = rate if known is None else min(known, rate)
    elif option in TERM_HOURS and option.removeprefix("reserved_") in terms:
        hours = TERM_HOURS[option]
        upfront = rate * hours if price["payment_option"] == "all_upfront" else 0.0
        term = Term(option, str(price["payment_option"]), rate, upfront, hours)
        row["terms"].append(term)


def _offer(name: str, row: dict[str, Any]) -> SupplyOffer:
    return SupplyOffer(
        id=name,
        cloud=row["cloud"],
        region=row["region"],
        instance_type=row["instance_type"],
        gpu_family=row["gpu_family"],
        gpus=row["gpus"],
        on_demand=row.get("on_demand"),
        spot=row.get("spot"),
        terms=tuple(sorted(row["terms"], key=lambda term: (term.name, term.payment))),
        plan_rate=row.get("plan_rate"),
        from_bill=bool(row.get("from_bill")),
    )


def _family(gpu_model: str) -> str:
    return gpu_model.split("-")[0]
