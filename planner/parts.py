"""How the GPUs of an instance-hour divide into states, and the division of hours and money by it.

Busy + idle-held + free + unknown is what was billed, in every instance-hour, to the last digit:
telemetry divides billed hours and cannot make any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.shares import EXACT, scaled, split
from planner.states import earlier_class, main_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.scratch import Scratch

_HOUR = ["node_id", "hour"]
_PART = ["state", "reason", "workload_class", "team", "user"]
# Slack when GPU-hours are turned back into machines: parts of long charges are rounded.
_SLACK = 1e-3
_STOPPABLE_OPTIONS = ("on_demand", "spot")


def instance_hours(segments: Any, tables: Scratch, order: Sequence[str] = ()) -> Any:
    """Table of one row per (node_id, hour): billed GPU-hours, `gpus` billed, class.

    `gpus` are the GPUs that were there, whole machines even where a part of the hour was billed.
    """
    hours = segments.group_by(_HOUR).aggregate(
        billed=segments.gpu_hours.sum().cast("float64"),
        gpu_count=ibis.coalesce(segments.gpu_count.max(), 0),
        workload_class=main_class(segments, order),
    )
    each = ibis.greatest(hours.gpu_count, 1)
    machines = ibis.greatest((hours.billed / each - _SLACK).ceil(), 1)
    return tables.keep(hours.mutate(gpus=(each * machines).cast("int64")).drop("gpu_count"))


def parts(states: Any, hours: Any, tables: Scratch) -> Any:
    """Table of the parts of each instance-hour: state, reason, whose, `share`, `needed_share`.

    Billed GPUs that nobody measured are unknown (`no_telemetry`). Where more GPUs reported than
    were billed, the states are scaled down. Instance-hours of corrections, with no or negative
    hours, are one unknown part. `is_idle` marks instances all of whose GPUs are idle and not
    needed.
    """
    normal = hours.filter(hours.billed > 0)
    counted = states.inner_join(normal.select(*_HOUR), _HOUR)
    measured = tables.keep(
        counted.group_by([*_HOUR, *_PART]).aggregate(
            count=counted.count(), needed=counted.is_needed.sum(), node=counted.node.max()
        )
    )
    total = measured.group_by(_HOUR).aggregate(seen=measured["count"].sum())
    sized = normal.left_join(total, _HOUR).drop("node_id_right", "hour_right")
    sized = sized.mutate(seen=ibis.coalesce(sized.seen, 0))
    sized = tables.keep(sized.mutate(size=ibis.greatest(sized.gpus, sized.seen)))
    missing = sized.filter(sized.seen < sized.size)
    dark = _one_part(missing, "no_telemetry", missing["size"] - missing.seen)
    odd = hours.filter(hours.billed <= 0)
    corrections = _one_part(odd, "correction", ibis.literal(1, "int64"))
    every = measured.union(dark.select(*measured.columns))
    every = every.inner_join(sized.select(*_HOUR, "size"), _HOUR)
    every = every.union(corrections.mutate(size=ibis.literal(1, "int64")).select(*every.columns))
    return _shared(every)


def _one_part(hours: Any, reason: str, count: Any) -> Any:
    return hours.select(
        *_HOUR,
        state=ibis.literal("unknown"),
        reason=ibis.literal(reason),
        workload_class=hours.workload_class,
        team=ibis.literal(""),
        user=ibis.literal(""),
        count=count.cast("int64"),
        needed=count.cast("int64"),
        node=ibis.literal(""),
    )


def _shared(every: Any) -> Any:
    is_idle = every.state.isin(("idle_held", "free"))
    hour = ibis.window(group_by=_HOUR)
    spare = ibis.ifelse(is_idle, every["count"] - every.needed, 0)
    return every.mutate(
        share=every["count"] / every["size"],
        needed_share=every.needed / every["count"],
        is_idle=spare.sum().over(hour) == every["size"],
    ).drop("count", "needed", "size")


def divide(segments: Any, shares: Any) -> Any:
    """Table of one row per way of paying and part: exact GPU-hours, needed GPU-hours and cost."""
    rows = segments.drop("workload_class").inner_join(shares, _HOUR)
    way = [*_HOUR, "option", "commitment", "currency"]
    rows = split(rows, ["gpu_hours", "cost"], "share", way, _PART)
    needed = ibis.cases(
        (rows.needed_share >= 1, rows.gpu_hours),
        (rows.needed_share <= 0, ibis.literal(0).cast(EXACT)),
        else_=scaled(rows.gpu_hours, rows.needed_share),
    )
    idle = rows.state.isin(("idle_held", "free")) & rows.is_idle
    return rows.mutate(
        needed_gpu_hours=needed.cast(EXACT),
        stoppable=idle & rows.option.isin(_STOPPABLE_OPTIONS),
    ).drop("share", "needed_share", "is_idle")


def resolve_class(readings: Any, hours: Any, nodes: Any, order: Sequence[str] = ()) -> Any:
    """The readings with the class that counts: their own or the bill's, whose rule stands first.

    In an hour without a bill, the class is the instance's instead of the bill's.
    """
    bill = hours.select(*_HOUR, bill_class=hours.workload_class)
    joined = readings.left_join(bill, _HOUR).drop("node_id_right", "hour_right")
    usual = nodes.select("node_id", usual_class=nodes.workload_class)
    joined = joined.left_join(usual, "node_id").drop("node_id_right")
    billed = ibis.coalesce(joined.bill_class, joined.usual_class)
    return joined.mutate(
        workload_class=earlier_class(joined.workload_class.nullif(""), billed, order)
    ).drop("bill_class", "usual_class")
