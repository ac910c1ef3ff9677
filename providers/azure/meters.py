"""What an Azure row is: its charge, how it was bought, its VM size and its hours.

Rules: Cost Management "Understand usage details fields" and the samples of public exports (read
2026-11). Rows are those of `providers.azure.columns.by_meaning`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ibis

from data.catalogue import shapes
from providers.files.expressions import exact
from providers.files.quantities import product

_VM_CATEGORY = "virtual machines"
_SOFTWARE = r"licen[cs]e|software|vcpu vm support|dedicated host|(rhel|red hat|suse|sles) .*vcpu"
_HOURS = r"(?i)^\s*(\d*)\s*/?\s*hours?\s*$"
_SPOT_METER = r"(?i) (spot|low priority)$"
_SIZE = r"(?i)^(standard|basic)_"
_MANAGED = r"machinelearning|machine learning"
_CHARGES = {
    "usage": "usage",
    "unusedreservation": "usage",
    "unusedsavingsplan": "usage",
    "purchase": "fee",
    "refund": "refund",
    "roundingadjustment": "adjustment",
    "tax": "tax",
    "credit": "credit",
}


def charge(rows: Any) -> Any:
    """The row's ChargeType in lower case without blanks; old files have none and mean usage."""
    return rows.charge_type.lower().replace(" ", "").fill_null("usage")


def charge_type(rows: Any) -> Any:
    """The row's charge type in the words of BILLING; what is not known is `other`."""
    return charge(rows).substitute(_CHARGES, else_="other")


def is_unused(rows: Any) -> Any:
    """Whether the row is the unused part of a commitment or of a capacity reservation."""
    return charge(rows).isin(["unusedreservation", "unusedsavingsplan"]) | is_empty_capacity(rows)


def is_empty_capacity(rows: Any) -> Any:
    """Whether the row bills a capacity reservation itself, so that no VM ran in it."""
    resource = rows.resource_id.lower().fill_null("")
    return resource.contains("/capacityreservations/") & (charge(rows) == "usage")


def capacity_reservation(rows: Any) -> Any:
    """The capacity reservation that the row's VM ran in, or that stood empty; else null."""
    told = info(rows, "VMCapacityReservationId")
    return is_empty_capacity(rows).ifelse(rows.resource_id, told)


def purchase_option(rows: Any) -> Any:
    """How the row was bought: its PricingModel, else the marks of the meter and of commitments."""
    kind = charge(rows)
    model = rows.pricing_model.lower().replace(" ", "").fill_null("")
    benefit = rows.benefit_id.lower().fill_null("")
    owner = (rows.consumed_service.fill_null("") + rows.resource_id.fill_null("")).lower()
    on_benefit = benefit.contains("savingsplan") | owner.contains("microsoft.billingbenefits")
    on_order = benefit.contains("reservation") | owner.contains("microsoft.capacity/")
    on_order = on_order | owner.startswith("microsoft.capacity")
    return ibis.cases(
        (kind == "unusedreservation", "reserved"),
        (kind == "unusedsavingsplan", "savings_plan"),
        ((model == "spot") | rows.meter_name.re_search(_SPOT_METER), "spot"),
        (model == "reservation", "reserved"),
        (model == "savingsplan", "savings_plan"),
        ((model == "ondemand") & (kind == "usage"), "on_demand"),
        (on_benefit, "savings_plan"),
        (rows.reservation_id.notnull() | on_order, "reserved"),
        ((model == "ondemand") | (kind == "usage"), "on_demand"),
        else_="unknown",
    )


def commitment(rows: Any, option: Any) -> Any:
    """The id of the row's reservation or savings plan as exported; null where it has none."""
    bought = option.isin(["reserved", "savings_plan"])
    known = ibis.coalesce(rows.reservation_id, rows.benefit_id, rows.product_order_id)
    return bought.ifelse(known, ibis.null("string"))


def is_managed(rows: Any) -> Any:
    """Whether the row belongs to Azure ML, whose hours are never those of plain VMs."""
    texts = [rows.consumed_service, rows.meter_category, rows.resource_id]
    return ibis.or_(*(text.lower().fill_null("").re_search(_MANAGED) for text in texts))


def is_compute_meter(rows: Any) -> Any:
    """Whether the row's meter counts VM time; software on the same VM is cost, not hours."""
    names = [rows.meter_sub_category, rows.meter_name, info(rows, "UsageType")]
    software = ibis.or_(*(name.lower().fill_null("").re_search(_SOFTWARE) for name in names))
    category = rows.meter_category.lower() == _VM_CATEGORY
    return category & rows.unit_of_measure.re_search(_HOURS) & ~software


def instance_hours(rows: Any) -> Any:
    """VM-hours of a used compute meter: quantity x block, so 2.4 of `10 Hours` are 24; else null.

    The unused part of a commitment has cost and no hours.
    """
    block = rows.unit_of_measure.re_extract(_HOURS, 1)
    block = (block == "").ifelse("1", block)
    counted = is_compute_meter(rows) & (charge(rows) == "usage") & ~is_unused(rows)
    hours = product(rows.quantity, exact(counted.ifelse(block, "1")))
    return counted.ifelse(hours, ibis.null(hours.type()))


def instance_type(rows: Any) -> Any:
    """The VM size: ServiceType of AdditionalInfo, else what the meter's name alone can tell.

    A meter that stands for two sizes (`D2 v2/DS2 v2`) tells none, and so do the meters of charges
    that are no use of a machine: purchases, refunds, the unused part of a savings plan, roundings.
    That of the unused part of a reservation tells a size of the shape table alone. Sizes of that
    table get its spelling; others keep theirs, so that an unknown GPU size can be reported.
    """
    meter = rows.meter_name.re_replace(_SPOT_METER, "")
    guess = ibis.literal("Standard_") + meter.replace(" ", "_")
    told = info(rows, "ServiceType")
    told = told.re_search(_SIZE).ifelse(told, ibis.null("string"))
    tells = is_compute_meter(rows) & ~meter.contains("/")
    used, reserved = (
        (tells & (charge(rows) == kind)).fill_null(False) for kind in ("usage", "unusedreservation")
    )
    size = ibis.coalesce(told, used.ifelse(guess, ibis.null("string")))
    named = ibis.coalesce(size, reserved.ifelse(guess, ibis.null("string")))
    folded = named.lower().replace("_", "").replace(" ", "")
    return ibis.coalesce(folded.substitute(_known_sizes(), else_=ibis.null("string")), size)


def info(rows: Any, key: str) -> Any:
    """The text of a key of AdditionalInfo, valid JSON or not; null where it is not there."""
    found = rows.additional_info.re_extract(f'(?i)"{key}"\\s*:\\s*"([^"]*)"', 1)
    return found.nullif("")


@lru_cache(maxsize=1)
def _known_sizes() -> dict[str, str]:
    table = shapes()
    sizes = table.loc[table["cloud"] == "azure", "instance_type"]
    return {str(size).lower().replace("_", ""): str(size) for size in sizes}
