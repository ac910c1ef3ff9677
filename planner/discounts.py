"""Discounts that the user states as shares: which of them applies to a price."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from data.catalogue import region_of
from data.errors import DataError, Problem
from data.frames import records

if TYPE_CHECKING:
    from datetime import date

    import pandas as pd

    from planner.quotes import Quote

# A discount on list prices does not reach these, unless its row names the option.
_NEVER_BY_DEFAULT = ("spot", "capacity_block")
_ANY = ("", "*", "any", "all")


@dataclass(frozen=True, slots=True)
class Discount:
    """A share (0 to 1) off the list price of a cloud; None is any family, region or option."""

    row: str
    cloud: str
    family: str | None
    region: str | None
    option: str | None
    start: date | None
    end: date | None
    share: float

    @property
    def scope(self) -> tuple[str, str | None, str | None, str | None]:
        """What it is stated for."""
        return (self.cloud, self.family, self.region, self.option)

    @property
    def narrowness(self) -> tuple[bool, bool, bool]:
        """Order in which discounts outrank each other: by family, then region, then option."""
        return (self.family is not None, self.region is not None, self.option is not None)


def discounts(prices: pd.DataFrame) -> list[Discount]:
    """The discount rows of a PRICES frame.

    Raises DataError where two rows state a discount for the same scope at the same time.
    """
    rows = [row for row in records(prices) if row.get("discount_share") is not None]
    found = [
        Discount(
            row=f"{row['export_id']} row {row['source_row_no']}",
            cloud=str(row["provider"]).lower(),
            family=_some(row["family"]) or _some(row["instance_type"]),
            region=_region(str(row["provider"]).lower(), _some(row["region"])),
            option=_some(row["purchase_option"]),
            start=row["from"].date() if row["from"] is not None else None,
            end=row["to"].date() if row["to"] is not None else None,
            share=float(row["discount_share"]),
        )
        for row in rows
    ]
    problems = [
        Problem(one.row, f"states a discount for what {other.row} also covers", "narrow one")
        for one, other in combinations(found, 2)
        if one.scope == other.scope and _overlap(one, other)
    ]
    if problems:
        raise DataError("two discounts for the same prices", problems)
    return found


def applying(
    stated: list[Discount], quote: Quote, machine_family: str, as_of: date
) -> Discount | None:
    """The narrowest discount that covers the price on that day, None if none does."""
    names = {machine_family.lower(), quote.family.lower(), quote.place[2].lower()}
    fitting = [
        one
        for one in stated
        if one.cloud == quote.place[0]
        and (one.family is None or one.family in names)
        and (one.region is None or one.region == quote.place[1])
        and (one.option == quote.option if one.option else quote.option not in _NEVER_BY_DEFAULT)
        and (one.start is None or one.start <= as_of)
        and (one.end is None or as_of < one.end)
    ]
    return max(fitting, key=lambda one: one.narrowness, default=None)


def _some(value: object) -> str | None:
    text = "" if value is None else str(value).strip().lower()
    return None if text in _ANY else text


def _region(cloud: str, text: str | None) -> str | None:
    return None if text is None else region_of(cloud, text) or text


def _overlap(one: Discount, other: Discount) -> bool:
    starts_before = one.start is None or other.end is None or one.start < other.end
    ends_after = other.start is None or one.end is None or other.start < one.end
    return starts_before and ends_after
