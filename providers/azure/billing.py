"""Azure cost exports in normal form: actual and amortized, of EA, MCA and the older usage file.

Azure bills by the day: a row's period is its whole UTC day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.errors import DataError
from providers.azure import dates, meters
from providers.azure.columns import NAMES, by_meaning, check_columns
from providers.azure.views import RowFacts, View, named_view, view_of_rows
from providers.contract import Normalised
from providers.files.counting import counts
from providers.files.expressions import MONEY, TIME, UNKNOWN, lookup
from providers.files.nested import object_or_raw
from providers.files.quantities import null_money, product, zero_money

if TYPE_CHECKING:
    from providers.contract import DeliveryContext

_COMMITMENTS = ("reserved", "savings_plan")
_DATES = ("date", "bill_start", "bill_end")
_NAME_OF = {
    "date": "date",
    "bill_start": "BillingPeriodStartDate",
    "bill_end": "BillingPeriodEndDate",
}


def normalise(raw: ibis.Table, context: DeliveryContext) -> Normalised:
    """Rows in normal form. Raises DataError for missing columns and for cells that are no dates.

    Actual cost has no effective cost and amortized cost no billed cost, unless the rows show that
    the two cannot differ.
    """
    check_columns(context.columns)
    rows = by_meaning(raw)
    warnings = []
    if not lookup(context.columns, *NAMES["currency"]):
        warnings.append("no currency column: amounts are of currency 'unknown'")
    view = view_of(raw, context)
    if view.warning:
        warnings.append(view.warning)
    days = _days(rows)
    return Normalised(_select(rows, days, view, context), tuple(warnings), view.dataset)


def view_of(raw: ibis.Table, context: DeliveryContext) -> View:
    """Whether the delivery is actual or amortized cost, and how sure that is."""
    return named_view(context) or view_of_rows(_row_facts(by_meaning(raw)))


def _row_facts(rows: Any) -> RowFacts:
    option = meters.purchase_option(rows)
    kind = meters.charge(rows)
    committed = option.isin(_COMMITMENTS)
    free = rows.cost == 0
    marketplace = rows.publisher_type.lower().fill_null("") == "marketplace"
    used = rows.quantity != 0
    shared = kind.isin(["usage", "unusedreservation", "unusedsavingsplan"])
    return RowFacts(
        **counts(
            rows,
            purchases=kind.isin(["purchase", "refund"]) & ~marketplace,
            covered_at_no_cost=committed & (kind == "usage") & free & used,
            covered_at_cost=committed & shared & ~free,
        )
    )


def _days(rows: Any) -> dict[str, Any]:
    texts = {_NAME_OF[name]: rows[name] for name in _DATES}
    slashes = dates.forms(rows, texts)
    days = {name: dates.day(text, slashes[name]) for name, text in texts.items()}
    problems = dates.faults(rows, texts, days, "date")
    if problems:
        raise DataError("Azure cost export: dates that cannot be read", problems)
    return {name: days[_NAME_OF[name]] for name in _DATES}


def _select(rows: Any, days: dict[str, Any], view: View, context: DeliveryContext) -> Any:
    option = meters.purchase_option(rows)
    unused = meters.is_unused(rows)
    covered = option.isin(_COMMITMENTS) & (meters.charge(rows) == "usage")
    start = days["date"].cast(TIME)
    month = ibis.coalesce(days["bill_start"], days["bill_end"]).strftime("%Y-%m")
    stated = ibis.literal(context.manifest_period, type="string")
    account = ibis.literal(context.manifest_account, type="string")
    return rows.select(
        source=ibis.literal("azure"),
        billing_account=ibis.coalesce(rows.billing_account, account, UNKNOWN),
        account=rows.subscription,
        region=rows.location,
        zone=rows.zone,
        period_start=start,
        period_end=start + ibis.interval(days=1),
        billing_period=ibis.coalesce(month, stated, days["date"].strftime("%Y-%m")),
        resource_id=rows.resource_id,
        resource_name=_resource_name(rows),
        service=rows.meter_category,
        seller=_seller(rows),
        managed_service=meters.is_managed(rows),
        instance_type=meters.instance_type(rows),
        sku=rows.meter_id,
        sku_description=ibis.coalesce(rows["product"], rows.meter_name),
        usage_qty=rows.quantity,
        usage_unit=rows.unit_of_measure,
        instance_hours=meters.instance_hours(rows),
        gpu_hours=ibis.null(MONEY),
        purchase_option=option,
        commitment_id=meters.commitment(rows, option),
        commitment_status=ibis.cases((unused, "unused"), (covered, "used")),
        capacity_reservation_id=meters.capacity_reservation(rows),
        list_cost=_list_cost(rows, option),
        billed_cost=rows.cost if view.has_billed else null_money(),
        effective_cost=_effective_cost(rows, option) if view.has_effective else null_money(),
        currency=ibis.coalesce(rows.currency.upper(), UNKNOWN),
        charge_type=meters.charge_type(rows),
        is_correction=rows.previous_invoice.notnull(),
        tags=_tags(rows),
        invoice_id=rows.invoice,
        source_row_no=rows.source_row_no,
    )


def _seller(rows: Any) -> Any:
    """The publisher of a charge of the marketplace, whose money is not the cloud's."""
    other = rows.publisher_type.lower() == "marketplace"
    return other.ifelse(ibis.coalesce(rows.publisher, rows.publisher_type), ibis.null("string"))


def _effective_cost(rows: Any, option: Any) -> Any:
    """Cost, but 0 on the purchase or refund of a commitment, whose cost stands on its usage."""
    purchase = meters.charge(rows).isin(["purchase", "refund"]) & option.isin(_COMMITMENTS)
    return purchase.ifelse(zero_money(), rows.cost)


def _list_cost(rows: Any, option: Any) -> Any:
    """Pay-as-you-go cost: as stated, else price x quantity, both in blocks of the unit.

    A price of 0 on a row that costs something, or that a commitment covers, is unknown: null. So
    is a price in another currency than the bill's.
    """
    priced = product(rows.payg_price, rows.quantity)
    foreign = rows.pricing_currency.upper() != rows.currency.upper()
    stated = ibis.coalesce(rows.payg_cost, foreign.fill_null(False).ifelse(null_money(), priced))
    unknown = (stated == 0) & (option.isin(_COMMITMENTS) | (rows.cost != 0))
    return unknown.ifelse(null_money(), stated)


def _resource_name(rows: Any) -> Any:
    last = rows.resource_id.re_extract(r"([^/]+)/*$", 1).nullif("")
    return ibis.coalesce(rows.resource_name, meters.info(rows, "VMName"), last)


def _tags(rows: Any) -> Any:
    """Tags as a JSON object: EA leaves the braces out; a broken text is kept under `_raw`."""
    braced = rows.tags.startswith("{").ifelse(rows.tags, ibis.literal("{") + rows.tags + "}")
    valid = object_or_raw(braced)
    return (valid == "{}").ifelse(ibis.null("string"), valid)
