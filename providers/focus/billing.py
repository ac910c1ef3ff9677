"""FOCUS 1.0 to 1.4 of any provider in normal form, read by column name, never by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from providers.contract import Normalised
from providers.files.expressions import UNKNOWN, exact, first_time, json_map, lookup, month_of
from providers.files.nested import valid_json
from providers.focus import machines
from providers.focus.columns import AMOUNTS, DETAILS, TEXTS, TIMES, check_columns, text_of

if TYPE_CHECKING:
    from providers.contract import DeliveryContext

# Names that providers write of themselves -> our word. Any other is its own slug.
_PROVIDERS = (
    (r"^(aws|amazon.*)$", "aws"),
    (r"^(microsoft.*|azure.*)$", "azure"),
    (r"^(google.*|gcp)$", "gcp"),
    (r"^(oracle.*|oci)$", "oracle"),
)
_CHARGES = {
    "usage": "usage",
    "purchase": "fee",
    "tax": "tax",
    "credit": "credit",
    "adjustment": "adjustment",
}
# Some real exports hold a unit price in AvailabilityZone (seen in FOCUS-Sample-Data 1.0).
_PRICE = r"^[0-9]*\.[0-9]+$|^0$"
_MANAGED = r"(?i)sagemaker|vertex|machine learning|hyperpod"


def normalise(raw: ibis.Table, context: DeliveryContext) -> Normalised:
    """Rows in normal form. Raises DataError with every required column that is missing."""
    check_columns(context.columns)
    warnings = []
    if not lookup(context.columns, *TEXTS["currency"]):
        warnings.append("no BillingCurrency column: amounts are of currency 'unknown'")
    row = _typed(raw)
    return Normalised(row.select(**_identity(row), **_charge(row)), tuple(warnings))


def _typed(raw: Any) -> Any:
    return raw.select(
        "source_row_no",
        **{name: text_of(raw, name) for name in TEXTS if name not in DETAILS},
        # What is no JSON tells nothing of the machine, and is no reason to refuse a bill.
        **{name: valid_json(text_of(raw, name)) for name in DETAILS},
        **{name: first_time(raw, *TIMES[name]) for name in TIMES},
        **{name: exact(text_of(raw, name)) for name in AMOUNTS},
        month=month_of(ibis.coalesce(text_of(raw, "period"), text_of(raw, "start"))),
    ).mutate(machine=machines.instance_type)


def _identity(row: Any) -> dict[str, Any]:
    zone = row.zone.re_search(_PRICE).ifelse(ibis.null("string"), row.zone)
    managed = row.service.re_search(_MANAGED).fill_null(False) | row.machine.startswith("ml.")
    return {
        "source": provider(row.provider),
        "billing_account": ibis.coalesce(row.billing_account, UNKNOWN),
        # Azure writes a subscription as the path /subscriptions/GUID here, elsewhere as the GUID.
        "account": row.account.re_replace(r"^/(?:subscriptions|SUBSCRIPTIONS)/", ""),
        "region": row.region,
        "zone": zone,
        "period_start": row.start,
        "period_end": row.end,
        "billing_period": row.month,
        "resource_id": row.resource,
        "resource_name": row.resource_name,
        "service": row.service,
        "seller": _is_other(row).ifelse(row.publisher, ibis.null("string")),
        "managed_service": managed.fill_null(False),
        "instance_type": row.machine,
        "gpus_stated": machines.gpus_stated(row),
        "sku": row.sku,
        "sku_description": row.description,
        "tags": json_map(row.tags),
        "invoice_id": row.invoice,
        "source_row_no": row.source_row_no,
    }


def _charge(row: Any) -> dict[str, Any]:
    status = ibis.coalesce(row.commitment_status, row.capacity_status).lower()
    category = row.category.lower()
    return {
        "usage_qty": row.quantity,
        "usage_unit": row.unit,
        "instance_hours": machines.instance_hours(row, row.machine),
        "gpu_hours": machines.gpu_hours(row),
        "purchase_option": purchase_option(row),
        "commitment_id": row.commitment,
        "commitment_status": status.isin(("used", "unused")).ifelse(status, ibis.null("string")),
        "capacity_reservation_id": row.capacity,
        "list_cost": row.list,
        "billed_cost": row.billed,
        "effective_cost": row.effective,
        "currency": ibis.coalesce(row.currency.upper(), UNKNOWN),
        "charge_type": category.substitute(_CHARGES, else_="other"),
        "is_correction": (row.charge_class.lower() == "correction").fill_null(False),
    }


def _is_other(row: Any) -> Any:
    """Whether another than the provider published what was charged: software of a marketplace."""
    return row.publisher.notnull() & (provider(row.publisher) != provider(row.provider))


def provider(name: Any) -> Any:
    """The provider of a row as our word: aws, azure, gcp, oracle, or a slug of its name."""
    lower = name.strip().lower()
    slug = lower.re_replace(r"[^a-z0-9]+", "-").re_replace(r"^-|-$", "").nullif("")
    known = [(lower.re_search(pattern), word) for pattern, word in _PROVIDERS]
    return ibis.coalesce(ibis.cases(*known, else_=slug), UNKNOWN)


def purchase_option(row: Any) -> Any:
    """How the row was bought. The purchase of a commitment is that of its kind.

    Rules of the billing facts, section 6: the pricing category decides, then the kind of the
    commitment; a committed capacity reservation without a commitment is a capacity block.
    """
    pricing = row.pricing.lower().fill_null("")
    kind = row.commitment_category.lower().fill_null("")
    named = row.commitment_type.lower().fill_null("")
    committed = (pricing == "committed") | (
        (row.category.lower() == "purchase") & row.commitment.notnull()
    ).fill_null(False)
    reserved = (kind == "usage") | named.contains("reserv") | named.contains("resource")
    planned = (kind == "spend") | named.contains("saving")
    block = row.capacity.notnull() & row.commitment.isnull()
    on_demand = (pricing == "standard") & (row.category.lower() == "usage")
    return ibis.cases(
        (pricing == "dynamic", "spot"),
        (committed & block, "capacity_block"),
        (committed & reserved, "reserved"),
        (committed & planned, "savings_plan"),
        (on_demand.fill_null(False), "on_demand"),
        else_="unknown",
    )
