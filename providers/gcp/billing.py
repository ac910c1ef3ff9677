"""GCP billing exports in normal form: standard and detailed, nested or flattened.

Billed and effective cost are both cost + credits: the fee of a resource commitment stays on its
own rows, beside the credits that it earns on usage, so that each dollar is counted once and the
totals are net cost. How much of a row a commitment covers is stated beside it, so that plans can
give the covered part its share of the fee. Promotions and reseller margins are payments: they stay
in both, and are stated beside them, so that unit prices can leave them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.errors import DataError, Problem
from providers.contract import Normalised
from providers.files.counting import counts
from providers.files.expressions import UNKNOWN, month_of, to_json, utc
from providers.files.nested import is_json, object_or_raw
from providers.files.quantities import null_money, product
from providers.gcp import skus
from providers.gcp.columns import by_field, check_columns, entries, has_field, is_list
from providers.gcp.credits import covered_share, covers_half, with_credits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from providers.contract import DeliveryContext

_MOST_SHOWN = 5
_DEFAULT_MODEL = "default"
_COMMA = ", "
FAULTS = "finding_faults"
_TOLD = {
    "finding_payments": "{} GPU rows carry a promotion or reseller margin: their effective cost is"
    " below their price; totals hold it, unit prices and plans leave it out",
    "finding_unmeasured": "{} GPU rows are in units that are no hours: their GPU-hours are unknown",
}
FINDINGS = (FAULTS, *_TOLD)
_COST_TYPES = {
    "regular": "usage",
    "usage": "usage",
    "tax": "tax",
    "adjustment": "adjustment",
    "roundingerror": "adjustment",
    "credit": "credit",
    "refund": "refund",
}


def normalise(raw: ibis.Table, context: DeliveryContext) -> Normalised:
    """Rows in normal form. Raises DataError for missing columns and for unreadable credits."""
    check_columns(context.columns)
    rows = _prepared(raw)
    found = counts(rows, **findings(rows))
    if found[FAULTS]:
        raise DataError("GCP billing export: credits that cannot be read", _credit_faults(rows))
    return Normalised(_select(rows, context), told(found, context.columns))


def with_findings(raw: ibis.Table, context: DeliveryContext) -> Any:
    """Rows in normal form, and for each of FINDINGS a column that says whether the row is one.

    No engine is asked: the expression may be run where the rows are. The findings are to be
    counted there, and told by `told`. Raises DataError for missing columns.
    """
    check_columns(context.columns)
    rows = _prepared(raw)
    marks = {name: mask.fill_null(False) for name, mask in findings(rows).items()}
    return _select(rows, context, **marks)


def _prepared(raw: Any) -> Any:
    return skus.with_sku(with_credits(by_field(raw)))


def findings(rows: Any) -> dict[str, Any]:
    """Which rows a person should know of, as one mask for each of FINDINGS."""
    gpu = rows.gpu
    return {
        FAULTS: rows.credit_fault,
        "finding_payments": gpu & (rows.payment != 0),
        "finding_unmeasured": gpu & ~rows.unused & (rows.cost != 0) & skus.gpu_hours(rows).isnull(),
    }


def told(found: Mapping[str, int], columns: Sequence[str]) -> tuple[str, ...]:
    """The findings in words; `found` has the rows of each, `columns` are those of the export."""
    warnings = [text.format(found[name]) for name, text in _TOLD.items() if found[name]]
    if not has_field(columns, "currency"):
        warnings.insert(0, "no currency column: amounts are of currency 'unknown'")
    return tuple(warnings)


def _credit_faults(rows: Any) -> list[Problem]:
    wrong = rows.filter(rows.credit_fault).order_by("source_row_no").limit(_MOST_SHOWN)
    cells = wrong.select("source_row_no", "credits").to_pyarrow().to_pylist()
    remedy = "a list of credits, each with an amount that is a number"
    return [
        Problem(f"row {cell['source_row_no']}, credits", f"unreadable: {cell['credits']}", remedy)
        for cell in cells
    ]


def _select(rows: Any, context: DeliveryContext, **more: Any) -> Any:
    net = rows.cost + rows.credit
    hours = skus.gpu_hours(rows)
    option = _purchase_option(rows)
    start = utc(rows.start)
    stated = ibis.literal(context.manifest_period, type="string")
    units = ibis.coalesce(rows.priced_amount, rows.amount)
    in_pricing_units = rows.priced_amount.notnull()
    return rows.select(
        source=ibis.literal("gcp"),
        billing_account=ibis.coalesce(rows.billing_account, UNKNOWN),
        account=rows.project,
        region=ibis.coalesce(rows.region, rows.location).lower(),
        zone=rows.zone,
        period_start=start,
        period_end=utc(rows.end),
        billing_period=ibis.coalesce(month_of(rows.month), stated, start.strftime("%Y-%m")),
        resource_id=ibis.coalesce(rows.global_name, rows.resource_name),
        resource_name=rows.resource_name,
        service=ibis.coalesce(rows.service, rows.service_id),
        seller=_is_third_party(rows)
        .ifelse(ibis.coalesce(rows.seller, rows.transaction), ibis.null("string")),
        managed_service=skus.is_managed(rows),
        instance_type=rows.machine,
        sku=rows.sku,
        sku_description=rows.sku_text,
        usage_qty=units,
        usage_unit=in_pricing_units.ifelse(rows.priced_unit, rows.unit),
        covered_qty=product(units, covered_share(rows)),
        instance_hours=skus.instance_hours(hours, rows.machine),
        gpu_hours=hours,
        purchase_option=option,
        commitment_id=option.isin(["reserved", "savings_plan"])
        .ifelse(rows.subscription, ibis.null("string")),
        commitment_status=_commitment_status(rows, option),
        capacity_reservation_id=rows.reservation,
        list_cost=_list_cost(rows),
        billed_cost=net,
        effective_cost=net,
        committed_cost=rows.fee.ifelse(net - rows.offset, null_money()),
        payment_credits=rows.payment,
        currency=ibis.coalesce(rows.currency.upper(), UNKNOWN),
        charge_type=_charge_type(rows),
        is_correction=rows.adjustment.notnull() | (_cost_type(rows) == "adjustment"),
        tags=_tags(rows),
        source_row_no=rows.source_row_no,
        **more,
    )  # fmt: skip


def _purchase_option(rows: Any) -> Any:
    """How the row was bought; of a row covered in part, how its larger part was."""
    own_model = rows.model.lower().fill_null(rows.model_id.lower()).fill_null(_DEFAULT_MODEL)
    return ibis.cases(
        (skus.is_spot(rows), "spot"),
        (skus.is_spend_fee(rows), "savings_plan"),
        (rows.fee, "reserved"),
        (skus.is_block(rows), "capacity_block"),
        (covers_half(rows.cost, rows.cud_credit), "reserved"),
        (own_model != _DEFAULT_MODEL, "savings_plan"),
        (covers_half(rows.cost, rows.spend_credit), "savings_plan"),
        (~_is_usage(rows), "unknown"),
        else_="on_demand",
    )


def _commitment_status(rows: Any, option: Any) -> Any:
    """Unused: an empty reservation, or what the offset leaves of a spend commitment's fee."""
    left_over = rows.fee & (rows.offset != 0)
    covered = option.isin(["reserved", "savings_plan"]) & ~rows.fee
    return ibis.cases((rows.unused | left_over, "unused"), (covered, "used"))


def _cost_type(rows: Any) -> Any:
    return rows.cost_type.lower().re_replace(r"[\s_]+", "").fill_null("regular")


def _is_usage(rows: Any) -> Any:
    kind = _cost_type(rows)
    restated = (kind == "adjustment") & rows.adjustment_type.upper().endswith("_CORRECTION")
    return (kind == "regular") | restated.fill_null(False)


def _is_third_party(rows: Any) -> Any:
    """Whether Google only resells what was charged: software of the marketplace."""
    return (rows.transaction.upper() != "GOOGLE").fill_null(False)


def _charge_type(rows: Any) -> Any:
    """The kind of the row; a correction of usage restates usage and stays `usage`."""
    regular = _is_usage(rows)
    stated = _cost_type(rows).substitute(_COST_TYPES, else_="other")
    return ibis.cases((regular & rows.fee, "fee"), (regular, "usage"), else_=stated)


def _list_cost(rows: Any) -> Any:
    """cost_at_list, else list price x priced units; null where neither is stated."""
    single = rows.priced_quantity.isnull() | (rows.priced_quantity == 1)
    priced = product(rows.list_price, rows.priced_amount)
    return ibis.coalesce(rows.cost_at_list, single.ifelse(priced, null_money()))


def _tags(rows: Any) -> Any:
    """Labels and resource tags as one JSON object; a broken text is kept under `_raw`."""
    joined = _pairs(rows.labels) + _pairs(rows.tags)
    made = ibis.literal("{") + joined.nullif("").substr(len(_COMMA)) + "}"
    if is_list(rows.labels):
        return made
    broken = rows.labels.notnull() & ~(is_json(rows.labels) & rows.labels.startswith("["))
    return ibis.coalesce(broken, False).ifelse(object_or_raw(rows.labels), made)


def _pairs(listed: Any) -> Any:
    """The keys and values of the list as JSON writes them, each after a comma."""
    items = entries(listed, ("key", "value")).filter(lambda label: label["key"].notnull())
    written = items.map(
        lambda label: (
            ibis.literal(_COMMA)
            + to_json(label["key"])
            + ": "
            + to_json(label["value"].fill_null(""))
        )
    )
    return written.join("").fill_null("")
