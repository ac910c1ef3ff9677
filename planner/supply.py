"""What capacity can be had: offers with their prices per GPU-hour, and what is owned already.

An offer is one machine type in one region of one cloud. Its prices come from the price book after
its checks; where the book has none for a type that the bill shows, the bill's own mean rate
serves, and the offer says so. A price that neither has is not sold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.frames import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

KEY = ["cloud", "region", "instance_type"]
TERM_HOURS = {"reserved_1y": 8760, "reserved_3y": 26280}
# A plan that is paid at once would need its own term and budget row: it is not offered yet.
_NO_UPFRONT = ("none", "no_upfront", "monthly")


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
    vcpus: int | None = None


@dataclass(frozen=True, slots=True)
class Owned:
    """Capacity that is paid for already: GPUs of one offer until a horizon hour.

    `usd_per_month` is what the window's bill holds for it, `ahead_usd_per_month` what it costs
    while it lasts: they differ where it began or ended inside the window. With `begins` it was
    bought after the window: there is none of it in today's bill.
    """

    id: str
    offer: str
    gpus: float
    until_hour: int
    usd_per_month: float
    ahead_usd_per_month: float
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A term that is sold and allowed, but not offered to this plan, and why."""

    offer: str
    term: Term
    why: str


@dataclass(frozen=True, slots=True)
class Supply:
    """All offers by id, what is owned, notes for the report, and terms that are not offered."""

    offers: dict[str, SupplyOffer]
    owned: tuple[Owned, ...]
    notes: tuple[str, ...] = field(default=())
    withdrawn: tuple[Withdrawn, ...] = ()

    def owns(self, offer: str) -> bool:
        """Whether anything of the offer is paid for already."""
        return any(one.offer == offer for one in self.owned)


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
    runs are offered. Every machine type that the bill shows is an offer, if need be without a
    price: what is owned of it can still be used.
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
    for record in records(_billed_types(bill)):
        _row(rows, record, str(record["gpu_family"]))
    for record in billed:
        row = _row(rows, record, str(record["gpu_family"]))
        option = str(record["purchase_option"])
        if row.get(option) is None:
            row[option] = record["rate"]
            row["from_bill"] = True
    vcpus = {key: shape.get("vcpus") for key, shape in shape_of.items()}
    return {name: _offer(name, rows[name], vcpus) for name in sorted(rows)}


def _billed_rates(bill: pd.DataFrame) -> list[dict[str, Any]]:
    plain = bill[bill["purchase_option"].isin(["on_demand", "spot"]) & (bill["gpu_hours"] > 0)]
    plain = plain[~plain["managed_service"].astype(bool)].dropna(subset=[*KEY, "gpu_family"])
    by = [*KEY, "gpu_family", "gpu_count", "purchase_option"]
    sums = plain.groupby(by, sort=True)[["cost", "gpu_hours"]].sum().reset_index()
    sums = sums[sums["cost"] > 0]
    sums["rate"] = sums["cost"] / sums["gpu_hours"]
    return [{**row, "gpus": row["gpu_count"]} for row in records(sums)]


def _billed_types(bill: pd.DataFrame) -> pd.DataFrame:
    names = [*KEY, "gpu_family", "gpu_count"]
    types = bill[bill["gpu_hours"] > 0][names].dropna().drop_duplicates(KEY)
    return types.rename(columns={"gpu_count": "gpus"}).sort_values(KEY)


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
    row["vcpus"] = row.get("vcpus") or price["vcpus"]
    if option in ("on_demand", "spot"):
        row[option] = rate
    elif option == "savings_plan_1y":
        known = row.get("plan_rate")
        if "1y" in terms and price["payment_option"] in _NO_UPFRONT:
            row["plan_rate"] = rate if known is None else min(known, rate)
    elif option in TERM_HOURS and option.removeprefix("reserved_") in terms:
        hours = TERM_HOURS[option]
        upfront = rate * hours if price["payment_option"] == "all_upfront" else 0.0
        term = Term(option, str(price["payment_option"]), rate, upfront, hours)
        row["terms"].append(term)


def _offer(name: str, row: dict[str, Any], vcpus: dict[tuple[str, str], Any]) -> SupplyOffer:
    known = vcpus.get((row["cloud"], row["instance_type"])) or row.get("vcpus")
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
        vcpus=None if known is None else int(known),
    )


def _family(gpu_model: str) -> str:
    return gpu_model.split("-")[0]
