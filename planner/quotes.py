"""Prices one by one: read from the book and the overrides, and judged without the others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from data.catalogue import gpu_family, region_of
from data.errors import DataError, Problem
from data.frames import records
from data.schema import PRICE_BOOK

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date
    from decimal import Decimal

    import pandas as pd

BUNDLED, FETCHED, OVERRIDE = "bundled", "fetched", "override"
USED, REJECTED, STALE = "used", "rejected", "stale"
# How the reason begins of a sound price in whose place another one serves.
SUPERSEDED = "superseded: "
# What a plan can buy; a `reserved` price is due for every hour of its term.
OPTIONS = (
    "on_demand", "spot", "flex_start", "capacity_block", "calendar",
    "reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y",
)  # fmt: skip
COMMITTED = ("reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y")

Shape = dict[str, Any]
Shapes = dict[tuple[str, str], Shape]


@dataclass(frozen=True, slots=True)
class Quote:
    """One price in USD per instance-hour with its key, and what has become of it.

    `values` are the columns of PRICE_BOOK; `row` says where it stands, for messages.
    """

    values: dict[str, Any]
    origin: str
    row: str = ""
    status: str = USED
    reason: str | None = None
    family: str = field(default="")

    @property
    def price(self) -> Decimal | None:
        """USD per instance-hour, None where the row has none."""
        return self.values["usd_per_instance_hour"]  # type: ignore[no-any-return]  # money

    @property
    def rate(self) -> float:
        """USD per GPU-hour; only where there is a price."""
        return float(self.values["usd_per_instance_hour"]) / int(self.values["gpus"])

    @property
    def option(self) -> str:
        """Purchase option."""
        return str(self.values["purchase_option"])

    @property
    def day(self) -> date:
        """The day on which the price was read."""
        return self.values["as_of"].date()  # type: ignore[no-any-return]  # a timestamp

    @property
    def place(self) -> tuple[str, str, str]:
        """Provider, region and machine type."""
        return (self.values["provider"], self.values["region"], self.values["instance_type"])

    @property
    def key(self) -> tuple[str, ...]:
        """What has one price on one day: place, purchase option and payment."""
        return (*self.place, self.option, str(self.values["payment_option"]))

    def turned_down(self, reason: str, status: str = REJECTED) -> Quote:
        """The same price, not used for that reason."""
        return replace(self, status=status, reason=reason)


def shapes_by_type(shapes: pd.DataFrame) -> Shapes:
    """Rows of GPU_SHAPES by cloud and machine type, the type in lower case."""
    return {(row["cloud"], row["instance_type"].lower()): row for row in records(shapes)}


def from_book(book: pd.DataFrame, shapes: Shapes) -> list[Quote]:
    """Quotes of a PRICE_BOOK frame; a column `origin`, where there is one, is kept."""
    return [
        _quote(row, str(row.get("origin") or BUNDLED), f"price book row {number}", shapes)
        for number, row in enumerate(records(book), 1)
    ]


def from_overrides(prices: pd.DataFrame, shapes: Shapes) -> list[Quote]:
    """Quotes of the absolute rows of a PRICES frame; what a known type leaves out is filled in.

    Raises DataError where a type that no shape describes does not say what GPUs it has.
    """
    quotes: list[Quote] = []
    problems: list[Problem] = []
    for row in records(prices):
        if row.get("discount_share") is not None:
            continue
        where = f"{row['export_id']} row {row['source_row_no']}"
        row["source"] = row["source"] or where
        committed = row["purchase_option"] in COMMITTED
        row["payment_option"] = row["payment_option"] or ("monthly" if committed else "none")
        known = (row["provider"], str(row["instance_type"]).lower()) in shapes
        lacking = [name for name in ("gpu_model", "gpus") if row[name] is None]
        if lacking and not known:
            what = f"{row['instance_type']} is no known machine type, and the row has no "
            problems.append(Problem(where, what + " and no ".join(lacking), "state what it has"))
            continue
        quotes.append(_quote(row, OVERRIDE, where, shapes))
    if problems:
        raise DataError("price overrides are not complete", problems)
    return quotes


def judged_alone(
    quotes: Iterable[Quote], shapes: Shapes, as_of: date, max_age_days: int
) -> list[Quote]:
    """The quotes, each turned down where its own row already says why."""
    judged = []
    for quote in quotes:
        reason = _fault(quote, shapes.get((quote.place[0], quote.place[2].lower())))
        age = (as_of - quote.day).days
        if reason is not None:
            quote = quote.turned_down(reason)
        elif age > max_age_days:
            days = "1 day" if age == 1 else f"{age} days"
            quote = quote.turned_down(f"{days} old, more than {max_age_days}", STALE)
        judged.append(quote)
    return judged


def _quote(row: dict[str, Any], origin: str, where: str, shapes: Shapes) -> Quote:
    values = {name: row.get(name) for name in PRICE_BOOK.names}
    provider = str(row["provider"]).lower()
    shape = shapes.get((provider, str(row["instance_type"]).lower()), {})
    region = str(row["region"])
    values["provider"] = provider
    values["region"] = region_of(provider, region) or region.lower()
    values["instance_type"] = shape.get("instance_type", row["instance_type"])
    for name in ("gpu_model", "gpus", "gpu_memory_gib", "vcpus", "memory_gib"):
        if values[name] is None:
            values[name] = shape.get(name)
    family = shape.get("gpu_family") or gpu_family(str(values["gpu_model"]))
    return Quote(values, origin, where, family=family)


def _fault(quote: Quote, shape: Shape | None) -> str | None:
    """Why the row cannot be used, whatever the others say."""
    if quote.price is None:
        return "no price"
    if quote.price <= 0:
        return "the price is 0" if quote.price == 0 else "the price is below 0"
    if quote.option not in OPTIONS:
        return f"unknown purchase option {quote.option!r}; known: {', '.join(OPTIONS)}"
    if shape is None:
        return None
    name = shape["instance_type"]
    if int(quote.values["gpus"]) != int(shape["gpus"]):
        gpus = int(quote.values["gpus"])
        return f"{gpus} GPU{'' if gpus == 1 else 's'}, but {name} has {shape['gpus']}"
    stated = gpu_family(str(quote.values["gpu_model"]))
    if stated != shape["gpu_family"]:
        return f"GPU {quote.values['gpu_model']}, but {name} has {shape['gpu_model']}"
    if shape["managed_service"]:
        return f"{name} is a size of a managed service, not of plain instances"
    # An override states what the user was sold, so only list prices are held against the table.
    sold_as = str(shape["orderable_as"]).split(";")
    kind = quote.option.removesuffix("_1y").removesuffix("_3y")
    if quote.origin != OVERRIDE and kind not in sold_as:
        return f"{name} is not sold as {kind}"
    return None
