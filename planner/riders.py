"""Cost without GPU-hours of its own, and the GPU-hours that it goes with.

Cores, memory, disks and licences are charges of a machine beside its GPUs. In an hour in which the
machine's GPUs are bought in several ways, such a cost goes

    1. with the GPU-hours bought as it was bought itself: what a commitment pays, what it leaves to
       be paid by the hour, spot;
    2. where none were bought so, or where it is a part of a machine that a cloud bills in parts and
       says nothing of a commitment: with those on demand and under commitments, by their share of
       the GPU-hours;
    3. else with all of them, by their share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.shares import EXACT, split

if TYPE_CHECKING:
    from planner.scratch import Scratch

# Clouds that bill a machine in parts, and its commitments part by part, each named by its SKU.
IN_PARTS = ("gcp",)
# What a commitment may cover in part, so that the rest is bought by the hour.
_HOURLY = ("on_demand", "reserved", "savings_plan")
_OPEN = ""
_HOUR = ["node_id", "hour", "currency"]
_ORPHAN = ["own_option", "own_commitment"]


def marked(rows: Any) -> Any:
    """The way of paying of each charge, "" for parts of a machine that speak of no commitment.

    A part that a commitment covers in part has its own, and so has what is left of it.
    """
    is_covered = (rows.covered != 0).fill_null(False)
    in_parts = rows.cloud.isin(IN_PARTS) & ~rows.is_gpu
    is_open = in_parts & (rows.option == "on_demand") & (rows.commitment == "") & ~is_covered
    return ibis.ifelse(is_open, _OPEN, rows.option)


def carried(ways: Any, tables: Scratch) -> Any:
    """The ways of paying that hold GPU-hours, with the cost of those that hold none.

    `ways` has one row per instance, hour and way of paying (option, commitment, currency), and
    `has_gpus`. Costs in a currency in which no GPU-hours are billed in the hour stand on a row of
    their own, without GPU-hours; those of hours without any GPU-hours are no cost of GPUs.
    """
    users, orphans = ways.filter(ways.has_gpus), ways.filter(~ways.has_gpus)
    if not tables.connection.execute(orphans.count()):
        return users.drop("has_gpus")
    columns = [name for name in ways.columns if name != "has_gpus"]
    way = [*_HOUR, "option", "commitment"]
    extra = _parts(users, orphans).group_by(way).aggregate(extra=ibis._.cost.sum())
    joined = users.left_join(extra, way)
    with_extra = joined.mutate(
        cost=(joined.cost + ibis.coalesce(joined.extra, ibis.literal(0).cast(EXACT))).cast(EXACT)
    ).select(*columns)
    return with_extra.union(_alone(users, orphans).select(*columns))


def _parts(users: Any, orphans: Any) -> Any:
    """The parts of each cost without GPU-hours, exact: one row per way of paying that bears it."""
    mine = orphans.select(
        *_HOUR, own_option="option", own_commitment="commitment", cost="cost"
    ).filter(ibis._.cost.notnull() & (ibis._.cost != 0))
    pairs = mine.inner_join(users.select(*_HOUR, "option", "commitment", "gpu_hours"), _HOUR)
    near = ibis.cases(
        (pairs.option == pairs.own_option, 2), (pairs.option.isin(_HOURLY), 1), else_=0
    )
    pairs = pairs.mutate(near=near)
    nearest = pairs.near.max().over(ibis.window(group_by=[*_HOUR, *_ORPHAN]))
    hours = ibis.greatest(pairs.gpu_hours.cast("float64"), 0.0)
    pairs = pairs.mutate(weight=ibis.ifelse(pairs.near == nearest, hours, 0.0), far=-pairs.near)
    order = ["far", "option", "commitment"]
    return split(pairs, ["cost"], "weight", [*_HOUR, *_ORPHAN], order)


def _alone(users: Any, orphans: Any) -> Any:
    """Costs in a currency in which the hour has no GPU-hours: one row per hour and currency."""
    in_use = orphans.semi_join(users, ["node_id", "hour"])
    alone = in_use.anti_join(users, _HOUR)
    first = ibis.window(group_by=_HOUR, order_by=[alone.option, alone.commitment])
    ranked = alone.mutate(
        place=ibis.row_number().over(first),
        cost=alone.cost.sum().over(ibis.window(group_by=_HOUR)).cast(EXACT),
        option=ibis.ifelse(alone.option == _OPEN, "on_demand", alone.option),
    )
    return ranked.filter(ranked.place == 0)
