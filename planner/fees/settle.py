"""Settling fees with the hours that they pay for: exact parts, hour by hour, without carry-over.

In every hour of a pool (a capacity block, or one resource that is committed to in one region):

    used share  = min(1, used / committed)
    used part   = fee of the hour x used share, divided over its users by quantity
    unused part = fee of the hour x (1 - used share), a cost without hours of use

The parts of a fee add up to the fee, to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis

from data.shares import EXACT, split
from planner.billed_hours import evenly
from planner.states import main_class

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from planner.scratch import Scratch

_SECONDS = 3600
# What identifies one user of a pool in an hour.
USER = ("pool", "hour", "cloud", "account", "node_key", "is_unused", "is_gpu", "currency")
_POOL_HOUR = ["pool", "hour"]


@dataclass(frozen=True, slots=True)
class Unspread:
    """Fees that stay on their own rows: what they are, their money, and why they stay there.

    `is_inside` is false where they are dated outside of the hours that are looked at.
    """

    check: str
    cloud: str
    account: str
    amount: Decimal
    currency: str
    count: int
    why: str
    is_inside: bool = True


@dataclass(frozen=True, slots=True)
class Terms:
    """What was paid ahead, and who claims it.

    `paid` has one row per fee and hour: fee, pool, hour, part (the hour's share of the fee, a
    float that adds up to 1 over all hours of the fee), committed (quantity of the hour; null: as
    much as is used), amount (the whole fee, exact), commitment, option, and the place and machine
    that an unused part is of. `claims` are charges with `pool` and `weight`, the quantity that
    they use of it. `rest` are all other charges.
    """

    paid: Any
    claims: Any
    rest: Any
    unspread: tuple[Unspread, ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """Charges of the claims with their fees in them; every part of the fees; see `settle`."""

    rows: Any
    paid: Any
    parts: Any
    unpaid: Any


def settle(terms: Terms, order: Sequence[str], tables: Scratch) -> Settled:
    """The claims as charges of one hour each, with what their fees add, and the unused parts.

    GPU-hours stay what they were; where several commitments make up a pool, they are divided by
    what each commits to in that hour. A claim for which no fee is known and that costs nothing
    gets no cost (null, never 0): `unpaid` holds those. `rows` has the columns of charges.
    """
    users = tables.keep(_users(terms.claims, order))
    shares = tables.keep(_used_shares(terms.paid, users))
    based = tables.keep(_by_commitment(shares, users))
    parts = tables.keep(_fee_parts(shares, users))
    unpaid = based.filter(based.cost.isnull() & (based.weight > 0))
    made = _charges(based, terms.rest).union(_charges(parts, terms.rest))
    return Settled(terms.rest.union(made), terms.paid, parts, unpaid)


def _users(claims: Any, order: Sequence[str]) -> Any:
    """Table of one row per user of a pool and hour: weight, exact GPU-hours and own cost."""
    hourly = evenly(claims, ("gpu_hours", "cost"))
    kept = (
        "resource", "resource_name", "region", "instance_type", "gpu_model", "gpu_count",
        "option", "reservation", "charge_type", "usage_unit", "tags", "dataset", "delivery_id",
        "row_no",
    )  # fmt: skip
    return hourly.group_by(list(USER)).aggregate(
        weight=(hourly.weight * hourly.hour_share).sum(),
        gpu_hours=hourly.gpu_hours.sum().cast(EXACT),
        cost=hourly.cost.sum().cast(EXACT),
        managed=hourly.managed.any(),
        is_estimated=hourly.is_estimated.any(),
        of_gpus=hourly.of_gpus.any(),
        workload_class=main_class(hourly, order),
        **{name: hourly[name].max() for name in kept},
    )


def _used_shares(paid: Any, users: Any) -> Any:
    """The fees' hours with `used`, what the pool's users took, and `used_share` of the fee."""
    positive = users.filter(users.weight > 0)
    used = positive.group_by(_POOL_HOUR).aggregate(used=positive.weight.sum())
    total = paid.group_by(_POOL_HOUR).aggregate(total=paid.committed.sum())
    joined = paid.left_join(used, _POOL_HOUR).drop("pool_right", "hour_right")
    joined = joined.inner_join(total, _POOL_HOUR)
    share = ibis.cases(
        (joined.used.isnull(), 0.0),
        (joined.total.isnull(), 1.0),
        (joined.total <= 0, 0.0),
        else_=ibis.least(1.0, joined.used / joined.total.nullif(0.0)),
    )
    return joined.mutate(used_share=share)


def _by_commitment(shares: Any, users: Any) -> Any:
    """GPU users with the commitments that cover them; `cost` is their own, null where unknown."""
    sized = shares.mutate(
        size=ibis.coalesce(shares.committed, shares.amount.cast("float64") * shares.part)
    )
    each = sized.group_by([*_POOL_HOUR, "commitment", "option"]).aggregate(size=sized.size.sum())
    each = each.filter(each.size > 0)
    each = each.mutate(all_sizes=each.size.sum().over(ibis.window(group_by=_POOL_HOUR)))
    each = each.rename(paid_option="option")
    gpu = users.filter(users.is_gpu & ~users.is_unused)
    joined = gpu.left_join(each, [gpu.pool == each.pool, gpu.hour == each.hour, gpu.weight > 0])
    joined = joined.drop("pool_right", "hour_right")
    is_unpaid = joined["size"].isnull() & (joined.weight > 0) & (joined.cost == 0)
    joined = joined.mutate(
        share=ibis.coalesce(joined["size"] / joined.all_sizes, 1.0),
        commitment=ibis.coalesce(joined.commitment, joined.reservation),
        option=ibis.coalesce(joined.paid_option, joined.option),
        cost=ibis.ifelse(is_unpaid, ibis.null(EXACT), joined.cost),
    )
    return split(joined, ["gpu_hours", "cost"], "share", USER, ["commitment"])


def _fee_parts(shares: Any, users: Any) -> Any:
    """Every part of every fee, exact: the used ones with their user, and the unused ones."""
    takers = users.filter(users.weight > 0).drop("option", "cost", "gpu_hours", "currency")
    own = ("region", "instance_type", "gpu_model", "gpu_count", "dataset", "delivery_id", "row_no",
           "account", "cloud", "managed", "workload_class", "of_gpus")  # fmt: skip
    fees = shares.select(
        "fee", "pool", "hour", "part", "amount", "commitment", "option", "currency", "used",
        "used_share", "committed",
    )  # fmt: skip
    used = fees.filter(fees.used_share > 0).inner_join(takers, _POOL_HOUR)
    used = used.mutate(
        share=used.part * used.used_share * used.weight / used.used,
        is_used=True,
        left=ibis.literal(0.0),
    ).drop("used", "used_share", "part", "weight", "committed")
    spare = shares.filter(shares.used_share < 1)
    unused = spare.select(
        "fee", "pool", "hour", "amount", "commitment", "option", "currency", *own,
        share=spare.part * (1 - spare.used_share),
        is_used=False,
        left=spare.committed * (1 - spare.used_share),
        node_key=ibis.literal("unused:") + spare.commitment,
        resource=ibis.literal(""),
        resource_name=ibis.literal(""),
        reservation=ibis.literal(""),
        tags=ibis.literal(""),
        is_unused=True,
        is_gpu=False,
        is_estimated=False,
        charge_type=spare.unused_as,
        usage_unit=ibis.literal("Hrs"),
    )  # fmt: skip
    both = used.select(*unused.columns).union(unused)
    # What a user, or the unused part, has of a fee stands together: hour after hour adds up.
    order = ["is_used", "cloud", "account", "node_key", "is_gpu", "hour"]
    divided = split(both, ["amount"], "share", ["fee"], order)
    return divided.rename(cost="amount").mutate(gpu_hours=ibis.null(EXACT))


def _charges(parts: Any, like: Any) -> Any:
    """The parts as charges with the columns of `like`, each in its hour."""
    start = parts.hour * _SECONDS
    gpus = ibis.coalesce(parts.gpu_count, 1)
    left = parts["left"] / gpus if "left" in parts.columns else ibis.null("float64")
    made = {
        "first": parts.hour,
        "last": parts.hour,
        "start": start,
        "end": start + _SECONDS,
        "quantity": left.round(10).cast(EXACT),
        "is_gpu": parts.is_gpu & parts.gpu_hours.notnull(),
    }
    made |= {name: parts[name] for name in parts.columns if name not in made}
    return parts.select(
        **{name: made.get(name, ibis.null()).cast(kind) for name, kind in like.schema().items()}
    )
