"""Which column of an Azure cost export means what, under every name that agreements give it.

Names: Cost Management schema pages for EA, MCA and the older usage file (read 2026-11), and the
exports of public repositories. They are compared in lower case and without spaces; a translated
header such as `Kategorie (MeterCategory)` counts by the text in its last parentheses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.errors import DataError, Problem
from providers.files.expressions import exact, first_text, lookup

if TYPE_CHECKING:
    from collections.abc import Sequence

# Meaning -> names, the best first. Where a file has several, the first that is filled in a row
# counts: MCA files hold `tags` and `Tags`, `Location` and `resourceLocation`.
NAMES: dict[str, tuple[str, ...]] = {
    "date": ("date", "usagedatetime", "usagedate"),
    "cost": ("costinbillingcurrency", "cost", "pretaxcost", "extendedcost"),
    "quantity": ("quantity", "usagequantity", "consumedquantity"),
    "unit_of_measure": ("unitofmeasure",),
    "meter_category": ("metercategory",),
    "subscription": ("subscriptionid", "subscriptionguid"),
    "currency": ("billingcurrency", "billingcurrencycode", "currency", "currencycode"),
    "pricing_currency": ("pricingcurrency", "pricingcurrencycode"),
    "payg_cost": ("paygcostinbillingcurrency",),
    "payg_price": ("paygprice",),
    "billing_account": ("billingaccountid", "enrollmentnumber"),
    "bill_start": ("billingperiodstartdate",),
    "bill_end": ("billingperiodenddate",),
    "resource_id": ("resourceid", "instanceid", "instancename"),
    "resource_name": ("resourcename",),
    "location": ("resourcelocation", "location", "meterregion"),
    "zone": ("availabilityzone",),
    "meter_id": ("meterid",),
    "meter_name": ("metername",),
    "meter_sub_category": ("metersubcategory",),
    "product": ("product", "productname"),
    "consumed_service": ("consumedservice",),
    "additional_info": ("additionalinfo",),
    "tags": ("tags",),
    "charge_type": ("chargetype",),
    "pricing_model": ("pricingmodel",),
    "publisher_type": ("publishertype",),
    "publisher": ("publishername",),
    "reservation_id": ("reservationid",),
    "benefit_id": ("benefitid",),
    "product_order_id": ("productorderid",),
    "invoice": ("invoiceid", "invoicenumber"),
    "previous_invoice": ("previousinvoiceid",),
}
AMOUNTS = ("cost", "quantity", "payg_cost", "payg_price")
REQUIRED = ("date", "cost", "quantity", "unit_of_measure", "meter_category", "subscription")


def check_columns(columns: Sequence[str]) -> None:
    """Nothing, if each required meaning has a column; else DataError that lists all that lack.

    >>> check_columns(["Date", "Cost", "Quantity", "UnitOfMeasure"])
    Traceback (most recent call last):
    data.errors.DataError: Azure cost export: required columns are missing...
    """
    missing = [meaning for meaning in REQUIRED if not lookup(columns, *NAMES[meaning])]
    if not missing:
        return
    problems = [
        Problem(
            NAMES[meaning][0],
            "missing column",
            f"any of: {', '.join(NAMES[meaning])} (any case, spaces allowed)",
        )
        for meaning in missing
    ]
    raise DataError("Azure cost export: required columns are missing", problems)


def by_meaning(raw: Any) -> Any:
    """The raw rows under the names of NAMES, with `source_row_no`: texts, and exact AMOUNTS.

    Each amount is cast in every row, whichever rule reads it: what is no number fails.
    """
    cells = {meaning: _trimmed(first_text(raw, *names)) for meaning, names in NAMES.items()}
    cells.update({name: exact(cells[name]) for name in AMOUNTS})
    # An impure column keeps Ibis from folding the casts into the branches that use them, where a
    # NaN in an unused branch would pass. It is read by nobody, so never computed.
    return raw.select("source_row_no", **cells, barrier=ibis.random())


def _trimmed(text: Any) -> Any:
    trimmed = text.strip()
    return (trimmed == "").ifelse(ibis.null("string"), trimmed)
