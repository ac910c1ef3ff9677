"""Where each field of a BigQuery billing export stands: nested JSON text or a flattened column.

Fields: Cloud Billing "Structure of Detailed data export" (read 2026-11). A flattened file names
them with dots (`usage.amount`); nested files keep `usage` as one JSON text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.errors import DataError, Problem
from data.money import INTEGER_DIGITS
from providers.files.expressions import exact, json_map, lookup
from providers.files.nested import from_python, objects, value_at

if TYPE_CHECKING:
    from collections.abc import Sequence

# Field -> the name it gets here. Lists come as JSON text.
FIELDS = {
    "billing_account_id": "billing_account",
    "cost_type": "cost_type",
    "usage_start_time": "start",
    "usage_end_time": "end",
    "cost": "cost",
    "currency": "currency",
    "cost_at_list": "cost_at_list",
    "invoice.month": "month",
    "service.id": "service_id",
    "service.description": "service",
    "sku.id": "sku",
    "sku.description": "sku_text",
    "project.id": "project",
    "location.location": "location",
    "location.region": "region",
    "location.zone": "zone",
    "resource.name": "resource_name",
    "resource.global_name": "global_name",
    "subscription.instance_id": "subscription",
    "usage.amount": "amount",
    "usage.unit": "unit",
    "usage.amount_in_pricing_units": "priced_amount",
    "usage.pricing_unit": "priced_unit",
    "price.list_price": "list_price",
    "price.pricing_unit_quantity": "priced_quantity",
    "consumption_model.id": "model_id",
    "consumption_model.description": "model",
    "adjustment_info.id": "adjustment",
    "adjustment_info.type": "adjustment_type",
    "transaction_type": "transaction",
    "seller_name": "seller",
}
# Cast in every row, whichever rule reads them: what is no number fails the delivery.
AMOUNTS = ("cost", "cost_at_list", "priced_amount", "list_price", "priced_quantity")
LISTS = {"credits": "credits", "labels": "labels", "system_labels": "system", "tags": "tags"}
_LARGEST = 10.0**INTEGER_DIGITS
REQUIRED = (
    "billing_account_id", "service", "sku.description", "usage_start_time", "usage_end_time",
    "cost",
)  # fmt: skip


def has_field(columns: Sequence[str], field: str) -> bool:
    """Whether the export has the field, flattened or inside its nested column.

    >>> has_field(["sku.id", "usage"], "usage.amount"), has_field(["sku.id"], "sku.description")
    (True, False)
    """
    parent = field.partition(".")[0]
    nested = bool(lookup(columns, parent))
    flat = bool(lookup(columns, field, field.replace(".", "_")))
    within = "." not in field and any(name.startswith(f"{field}.") for name in columns)
    return nested or flat or within


def check_columns(columns: Sequence[str]) -> None:
    """Nothing, if every required field is there; else DataError that lists all that lack."""
    missing = [field for field in REQUIRED if not has_field(columns, field)]
    if missing:
        message = "GCP billing export: required columns are missing"
        remedy = "export the whole table, nested or flattened with dots"
        raise DataError(message, [Problem(field, "missing column", remedy) for field in missing])


def by_field(raw: Any) -> Any:
    """The raw rows under the names of FIELDS and LISTS, with `source_row_no`: texts and amounts.

    `amount`, a quantity in base units such as byte-seconds, is null where it has more digits
    than an exact number holds; the priced amount is what rules read.
    """
    cells = {name: _field(raw, field) for field, name in FIELDS.items()}
    cells.update({name: exact(cells[name]) for name in AMOUNTS})
    cells["amount"] = _held(cells["amount"])
    cells.update({name: _list(raw, field) for field, name in LISTS.items()})
    # An impure column keeps Ibis from folding the casts into the branches that use them, where a
    # NaN in an unused branch would pass. It is read by nobody, so never computed.
    return raw.select("source_row_no", **cells, barrier=ibis.random())


def _held(text: Any) -> Any:
    size = text.cast("float64")
    too_large = (size.abs() >= _LARGEST) & ~size.isinf() & ~size.isnan()
    return exact(too_large.ifelse(ibis.null("string"), text))


def _field(raw: Any, field: str) -> Any:
    flat = [raw[name] for name in lookup(raw.columns, field, field.replace(".", "_"))]
    parent, _, inner = field.partition(".")
    nested = [value_at(raw[name], inner) for name in lookup(raw.columns, parent)] if inner else []
    found = [*flat, *nested]
    if not found:
        return ibis.null("string")
    return found[0] if len(found) == 1 else ibis.coalesce(*found)


def _list(raw: Any, field: str) -> Any:
    found = lookup(raw.columns, field)
    if not found:
        return ibis.null("string")
    value = raw[found[0]]
    return value if is_list(value) else from_python(json_map(value))


def is_list(value: Any) -> bool:
    """Whether the value is a list of its engine, as in a BigQuery table, and no JSON text."""
    return bool(value.type().is_array())


def entries(value: Any, fields: tuple[str, ...]) -> Any:
    """The list of a LISTS column, each entry a struct of the fields as texts."""
    return value if is_list(value) else objects(value, fields)
