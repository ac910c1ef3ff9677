"""AWS Cost and Usage Reports in normal form: legacy (CSV, Parquet) and CUR 2.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from providers.aws import amortise
from providers.aws.columns import (
    AMOUNTS,
    TEXTS,
    TIMES,
    check_columns,
    found,
    product_of,
    tags_of,
    text_of,
    time_of,
)
from providers.contract import Normalised
from providers.files.expressions import MONEY, UNKNOWN, exact, month_of

if TYPE_CHECKING:
    from providers.contract import DeliveryContext

_TYPE_IN_USAGE = r":([a-z0-9-]+\.[a-z0-9.-]+)$"
_PREFIX = r"^([A-Z]{2,4}[0-9])-"
_NO_PREFIX = r"^(BoxUsage|SpotUsage|DedicatedUsage|UnusedBox|CapacityBlockFee)(:|$)"
_FIRST_REGION = "us-east-1"  # the region whose usage types carry no prefix


def normalise(raw: ibis.Table, context: DeliveryContext) -> Normalised:
    """Rows in normal form. Raises DataError with every required column that is missing."""
    columns = context.columns
    check_columns(columns)
    warnings = []
    if not found(columns, "currency"):
        warnings.append("no currency column: amounts are of currency 'unknown'")
    row = _typed(raw, columns)
    nets = _states_net_costs(raw, columns)
    return Normalised(row.select(**_identity(row), **_charge(row, nets)), tuple(warnings))


def _typed(raw: Any, columns: tuple[str, ...]) -> Any:
    """Every column that is read, cast. Each cast holds for every row, whichever rule uses it."""
    kind = _instance_type(raw, columns)
    return raw.select(
        "source_row_no",
        **{name: text_of(raw, columns, name) for name in TEXTS if name not in ("type", "product")},
        **{name: time_of(raw, columns, name) for name in TIMES},
        **{name: exact(text_of(raw, columns, name)) for name in AMOUNTS},
        instance_type=kind,
        product_region=product_of(raw, columns, "region_code"),
        month=month_of(
            ibis.coalesce(text_of(raw, columns, "period"), text_of(raw, columns, "start"))
        ),
        tags=tags_of(raw, columns),
        # An impure column keeps Ibis from folding the casts into the branches that use them, where
        # a NaN in an unused branch would pass. It is read by nobody, so never computed.
        barrier=ibis.random(),
    )


def _instance_type(raw: Any, columns: tuple[str, ...]) -> Any:
    usage_type = text_of(raw, columns, "usage_type")
    in_usage = usage_type.re_extract(_TYPE_IN_USAGE, 1).nullif("")
    stated = text_of(raw, columns, "type")
    return ibis.coalesce(stated, product_of(raw, columns, "instance_type"), in_usage)


def _states_net_costs(raw: Any, columns: tuple[str, ...]) -> bool:
    names = found(columns, "net_unblended")
    if not names:
        return False
    stated = raw.filter(raw[names[0]].notnull()).limit(1).select(names[0])
    return bool(stated.to_pyarrow().num_rows)


def _identity(row: Any) -> dict[str, Any]:
    managed = row.instance_type.startswith("ml.") | row.product_code.contains("SageMaker")
    return {
        "source": ibis.literal("aws"),
        "billing_account": ibis.coalesce(row.payer, UNKNOWN),
        "account": row.account,
        "region": _region(row),
        "zone": row.zone,
        "period_start": row.start,
        "period_end": row.end,
        "billing_period": row.month,
        "resource_id": row.resource,
        "resource_name": ibis.null("string"),
        "service": row.product_code,
        "seller": row.entity.contains("Marketplace").ifelse(row.entity, ibis.null("string")),
        "managed_service": managed.fill_null(False),
        "instance_type": row.instance_type,
        "sku": row.usage_type,
        "sku_description": row.description,
        "tags": row.tags,
        "invoice_id": row.invoice,
        "source_row_no": row.source_row_no,
    }


def _region(row: Any) -> Any:
    """The region as the row words it: code, zone, place or prefix of the usage type."""
    prefix = row.usage_type.re_extract(_PREFIX, 1).nullif("")
    first = row.usage_type.re_search(_NO_PREFIX).ifelse(_FIRST_REGION, ibis.null("string"))
    of_zone = row.zone.re_replace(r"[a-z]+$", "")
    return ibis.coalesce(row.region, row.product_region, of_zone, row.location, prefix, first)


def _charge(row: Any, nets: bool) -> dict[str, Any]:
    return {
        "usage_qty": row.quantity,
        "usage_unit": row.unit,
        "instance_hours": amortise.instance_hours(row),
        "gpu_hours": ibis.null(MONEY),
        "purchase_option": amortise.purchase_option(row),
        "commitment_id": ibis.coalesce(row.savings_plan, row.reservation),
        "commitment_status": amortise.commitment_status(row),
        "capacity_reservation_id": row.block,
        "list_cost": amortise.unsplit(row, row.list),
        "billed_cost": amortise.unsplit(row, row.unblended),
        "effective_cost": amortise.effective_cost(row, nets),
        "committed_cost": amortise.committed_cost(row, nets),
        "currency": ibis.coalesce(row.currency, UNKNOWN),
        "charge_type": amortise.charge_type(row),
        "is_correction": (row.bill_type == "Refund").fill_null(False),
    }
