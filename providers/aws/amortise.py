"""What each line item type of a Cost and Usage Report costs once commitments are spread.

One rule per line item type; no row's money stands on two rows (RI and savings plan fees are
counted by their unused part, upfront fees not at all). Sources: AWS, "Understanding reservations"
and "Understanding Savings Plans" in the Cost and Usage Report guide, read 2026-11.
"""

from __future__ import annotations

from typing import Any

import ibis

from providers.files.quantities import null_money, zero_money

COVERED = ("DiscountedUsage", "SavingsPlanCoveredUsage")
USED = ("Usage", *COVERED)
# Rows that take back a negotiated discount from gross costs; net columns hold it already.
NEGOTIATED = ("EdpDiscount", "PrivateRateDiscount")
CHARGES = {
    "Usage": "usage",
    "DiscountedUsage": "usage",
    "SavingsPlanCoveredUsage": "usage",
    "SavingsPlanNegation": "adjustment",
    "SavingsPlanRecurringFee": "fee",
    "SavingsPlanUpfrontFee": "fee",
    "RIFee": "fee",
    "Fee": "fee",
    "Tax": "tax",
    "Credit": "credit",
    "Refund": "refund",
}
_HOUR_UNITS = ("hrs", "hours", "hr", "hour")
_COUNTED_BOX = r"(^|-)(BoxUsage|SpotUsage|DedicatedUsage)(:|$)"
_UNUSED_BOX = r"(^|-)(UnusedBox|UnusedDed)(:|$)"
_BLOCK_FEE = "CapacityBlockFee"


def is_split(row: Any) -> Any:
    """Whether the row repeats a part of its node's money for a pod (split cost allocation)."""
    return row.split_parent.notnull()


def is_block_fee(row: Any) -> Any:
    """Whether the row is the fee of a Capacity Block, or its refund."""
    return _has(row.usage_type, _BLOCK_FEE)


def is_unused_capacity(row: Any) -> Any:
    """Whether the row pays for a capacity reservation in which nothing ran."""
    return _is_box(row, _UNUSED_BOX, ("UnusedBox", "UnusedDed"))


def effective_cost(row: Any, nets: bool) -> Any:
    """The amortised, net cost of a row; `nets` says whether the report states net costs."""
    unblended = ibis.coalesce(row.net_unblended, row.unblended)
    zero = zero_money()
    takes_back = row.kind.isin(NEGOTIATED) if nets else ibis.literal(False)
    bought = row.reservation.notnull() | _of_savings_plan(row)
    upfront = row.kind.isin(("Fee", "Refund")) & bought & ~is_block_fee(row)
    return ibis.cases(
        (is_split(row), zero),
        (row.kind == "DiscountedUsage", row.ri_effective),
        (row.kind == "SavingsPlanCoveredUsage", row.sp_effective),
        (row.kind == "RIFee", _sum(row.ri_unused_upfront, row.ri_unused_recurring)),
        (row.kind == "SavingsPlanRecurringFee", row.sp_committed - _or_zero(row.sp_used)),
        (row.kind.isin(("SavingsPlanNegation", "SavingsPlanUpfrontFee")), zero),
        (upfront | takes_back, zero),
        else_=unblended,
    )


def committed_cost(row: Any, nets: bool) -> Any:
    """On the fee of a commitment what it commits to, used or not: recurring and its upfront share.

    Null on other rows, and where the report does not state the upfront share; of a savings plan
    also where its covered usage is stated net (`nets`), since its commitment is not.
    """
    recurring = ibis.coalesce(row.net_unblended, row.unblended)
    return ibis.cases(
        (is_split(row), null_money()),
        (row.kind == "SavingsPlanRecurringFee", null_money() if nets else row.sp_committed),
        (row.kind == "RIFee", row.ri_upfront + recurring),
        else_=null_money(),
    )


def _of_savings_plan(row: Any) -> Any:
    plans = _has(row.product_code, "SavingsPlans") | _has(row.resource, ":savingsplan/")
    return row.savings_plan.notnull() | plans


def _sum(a: Any, b: Any) -> Any:
    """The sum of two amounts of which one may be missing; null if both are."""
    missing = a.isnull() & b.isnull()
    return missing.ifelse(null_money(), _or_zero(a) + _or_zero(b))


def _or_zero(amount: Any) -> Any:
    return ibis.coalesce(amount, zero_money())


def _has(text: Any, part: str) -> Any:
    return text.contains(part).fill_null(False)


def _is_box(row: Any, pattern: str, parts: tuple[str, ...]) -> Any:
    """Whether the usage type matches; the plain search goes first, as it is far cheaper."""
    near = ibis.or_(*(row.usage_type.contains(part) for part in parts))
    return (near & row.usage_type.re_search(pattern)).fill_null(False)


def _is_counted_box(row: Any) -> Any:
    return _is_box(row, _COUNTED_BOX, ("BoxUsage", "SpotUsage", "DedicatedUsage"))


def unsplit(row: Any, amount: Any) -> Any:
    """The amount, 0 on a row that repeats its node's money."""
    return is_split(row).ifelse(zero_money(), amount)


def charge_type(row: Any) -> Any:
    """The kind of the charge, in the words of BILLING."""
    named = [(row.kind == name, charge) for name, charge in CHARGES.items()]
    discount = row.kind.endswith("Discount")
    return ibis.cases((is_split(row), "other"), *named, (discount, "discount"), else_="other")


def instance_hours(row: Any) -> Any:
    """Instance-hours that ran: EC2 instances and sizes of managed services, counted in hours.

    A managed service that runs on EC2 (EMR) repeats BoxUsage under its own product code: its rows
    are a surcharge on hours that EC2 counts.
    """
    in_hours = row.unit.lower().isin(_HOUR_UNITS) | row.unit.isnull()
    plain = _is_counted_box(row) & ((row.product_code == "AmazonEC2") | row.product_code.isnull())
    counted = (plain | _is_managed_size(row)) & in_hours & row.kind.isin(USED) & ~is_split(row)
    return counted.fill_null(False).ifelse(row.quantity, null_money())


def _is_managed_size(row: Any) -> Any:
    return _has(row.usage_type, ":ml.")


def purchase_option(row: Any) -> Any:
    """How the row was bought, by the first rule that fits."""
    spot = _has(row.usage_type, "SpotUsage") | (
        _is_managed_size(row) & _has(row.usage_type, "Spot")
    )
    block = _has(row.block_kind.lower(), "capacity block") | is_block_fee(row)
    reserved = row.kind.isin(("DiscountedUsage", "RIFee")) | (
        (row.kind == "Fee") & row.reservation.notnull()
    )
    plan = row.kind.startswith("SavingsPlan") | (row.kind.isin(("Fee", "Refund"))
                                                & _of_savings_plan(row))  # fmt: skip
    boxes = _is_counted_box(row)
    on_demand = (row.kind == "Usage") & (boxes | is_unused_capacity(row) | _is_managed_size(row))
    return ibis.cases(
        (spot, "spot"),
        (block, "capacity_block"),
        (reserved, "reserved"),
        (plan.fill_null(False), "savings_plan"),
        (on_demand, "on_demand"),
        else_="unknown",
    )


def commitment_status(row: Any) -> Any:
    """Whether a commitment or a capacity reservation was used on the row; null if it has none."""
    idle = is_unused_capacity(row) | (row.block_status.lower() == "unused").fill_null(False)
    unused = row.kind.isin(("RIFee", "SavingsPlanRecurringFee")) | idle
    return ibis.cases((unused, "unused"), (row.kind.isin(COVERED), "used"))
