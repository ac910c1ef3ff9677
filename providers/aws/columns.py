"""Which columns of a Cost and Usage Report are read, under one spelling.

A report spells a column in three ways: `lineItem/UsageStartDate` (legacy CSV),
`line_item_usage_start_date` (legacy Parquet, CUR 2.0) and, for capitals,
`reservation_reservation_a_r_n`. Without separators and case they are one.
Source: AWS Data Exports user guide, "Cost and Usage Report 2.0", read 2026-11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ibis

from data.errors import DataError, Problem
from providers.files.expressions import (
    TIME,
    first_text,
    first_time,
    json_map,
    json_of,
    json_text,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# Our name -> the snake_case names of the report, of which the first that is not empty counts.
TEXTS: dict[str, tuple[str, ...]] = {
    "kind": ("line_item_line_item_type",),
    "usage_type": ("line_item_usage_type",),
    "product_code": ("line_item_product_code",),
    "payer": ("bill_payer_account_id",),
    "entity": ("bill_billing_entity",),
    "account": ("line_item_usage_account_id",),
    "period": ("bill_billing_period_start_date",),
    "invoice": ("bill_invoice_id",),
    "bill_type": ("bill_bill_type",),
    "currency": ("line_item_currency_code", "pricing_currency"),
    "zone": ("line_item_availability_zone",),
    "resource": ("line_item_resource_id",),
    "description": ("line_item_line_item_description",),
    "unit": ("pricing_unit",),
    "type": ("product_instance_type",),
    "region": ("product_region_code", "product_region"),
    "location": ("product_location",),
    "reservation": ("reservation_reservation_a_r_n",),
    "savings_plan": ("savings_plan_savings_plan_a_r_n",),
    "block": ("capacity_reservation_capacity_reservation_arn",),
    "block_kind": ("capacity_reservation_capacity_reservation_type",),
    "block_status": ("capacity_reservation_capacity_reservation_status",),
    "split_parent": ("split_line_item_parent_resource_id",),
    "product": ("product",),
}
TIMES: dict[str, tuple[str, ...]] = {
    "start": ("line_item_usage_start_date",),
    "end": ("line_item_usage_end_date",),
}
AMOUNTS: dict[str, tuple[str, ...]] = {
    "quantity": ("line_item_usage_amount",),
    "unblended": ("line_item_unblended_cost",),
    "net_unblended": ("line_item_net_unblended_cost",),
    "list": ("pricing_public_on_demand_cost",),
    "ri_effective": ("reservation_net_effective_cost", "reservation_effective_cost"),
    "ri_upfront": (
        "reservation_net_amortized_upfront_fee_for_billing_period",
        "reservation_amortized_upfront_fee_for_billing_period",
    ),
    "ri_unused_upfront": (
        "reservation_net_unused_amortized_upfront_fee_for_billing_period",
        "reservation_unused_amortized_upfront_fee_for_billing_period",
    ),
    "ri_unused_recurring": (
        "reservation_net_unused_recurring_fee",
        "reservation_unused_recurring_fee",
    ),
    "sp_effective": (
        "savings_plan_net_savings_plan_effective_cost",
        "savings_plan_savings_plan_effective_cost",
    ),
    "sp_committed": ("savings_plan_total_commitment_to_date",),
    "sp_used": ("savings_plan_used_commitment",),
}
REQUIRED = ("kind", "usage_type", "payer", "start", "end", "quantity", "unblended")
_NAMES = {**TEXTS, **TIMES, **AMOUNTS}
_MAPS = ("resource_tags", "tags")
_FLAT_TAG = re.compile(r"^(?:resourceTags/|resource_tags_)(?:user[:_])?(.+)$", re.IGNORECASE)
# The prefix of tags that users made, in the map columns of CUR 2.0 (both spellings occur).
_USER_KEY = r'([{,]\s*")user[:_]'


def squeezed(name: str) -> str:
    """A column name without separators and case: the same for every spelling of a column.

    >>> squeezed("reservation/ReservationARN") == squeezed("reservation_reservation_a_r_n")
    True
    """
    return re.sub(r"[^a-z0-9]", "", name.lower())


def found(columns: Sequence[str], ours: str) -> list[str]:
    """The columns of the files that hold our column, best first."""
    spelled: dict[str, str] = {}
    for column in columns:
        spelled.setdefault(squeezed(column), column)
    return [spelled[key] for key in map(squeezed, _NAMES[ours]) if key in spelled]


def check_columns(columns: Sequence[str]) -> None:
    """Nothing, if the report can be read; else DataError with every missing column."""
    missing = [_NAMES[ours][0] for ours in REQUIRED if not found(columns, ours)]
    if missing:
        message = "Cost and Usage Report: required columns are missing"
        problems = [Problem(name, "missing column", "export the report again") for name in missing]
        raise DataError(message, problems)


def text_of(raw: Any, columns: Sequence[str], ours: str) -> Any:
    """Our column as text; null where the files do not have it."""
    return first_text(raw, *found(columns, ours))


def time_of(raw: Any, columns: Sequence[str], ours: str) -> Any:
    """Our column as a UTC time, strictly; null where the files do not have it."""
    names = found(columns, ours)
    return first_time(raw, *names) if names else ibis.null(TIME)


def tags_of(raw: Any, columns: Sequence[str]) -> Any:
    """Tags as one JSON object: flat columns, or the map column of CUR 2.0; `user:` is left off."""
    flat = {
        match.group(1): raw[name]
        for name in columns
        if (match := _FLAT_TAG.match(name)) and "/" not in match.group(1)
    }
    whole = [_without_user(json_map(raw[name])) for name in columns if name.lower() in _MAPS]
    if not flat and not whole:
        return ibis.null("string")
    return ibis.coalesce(*whole, json_of(flat)) if flat else ibis.coalesce(*whole)


def _without_user(tags: Any) -> Any:
    """The JSON text without `user:` or `user_` before its keys.

    Plain replacement does where no blank stands before a key, and costs a fifth of a pattern.
    """
    short = tags
    for opening in ('{"', ',"'):
        for sign in (":", "_"):
            short = short.replace(f"{opening}user{sign}", f"{opening}\x01")
    spaced = ibis.or_(*(tags.contains(f'{blank}"user') for blank in " \n\t\r"))
    return spaced.ifelse(tags.re_replace(_USER_KEY, r"\1"), short.replace("\x01", ""))


def product_of(raw: Any, columns: Sequence[str], key: str) -> Any:
    """An attribute out of the `product` map of CUR 2.0; null where there is no such map."""
    names = found(columns, "product")
    if not names:
        return ibis.null("string")
    maps = [typed(raw, name) for name in names]
    if all(one is not None and one.type().is_map() for one in maps):
        return ibis.coalesce(*(one.get(key) for one in maps))
    return json_text(text_of(raw, columns, "product"), f"$.{key}")
