"""Which GPU-hours plans must serve: work, what cannot be known, and pauses shorter than allowed.

A GPU that works is needed for the whole hour, however busy its cores are. An unknown hour is
needed. An idle-held GPU is needed until its pause is as long as its class allows.
"""

from __future__ import annotations

from typing import Any

import ibis


def with_needed(states: Any) -> Any:
    """The GPU-hours with `pause_hours` (hours held idle before this one) and `is_needed`.

    `states` has one row per (node_id, gpu_uuid, hour). Hour k of a run of idle-held hours, k from
    0, is needed while 60 k < `idle_after_minutes`; a gap or any other state ends the run. Free
    hours are never needed.
    """
    same = ibis.window(group_by=["node_id", "gpu_uuid", "state"], order_by="hour")
    ranked = states.mutate(place=ibis.row_number().over(same))
    runs = ranked.mutate(run=ranked.hour - ranked.place).drop("place")
    within = ibis.window(group_by=["node_id", "gpu_uuid", "state", "run"], order_by="hour")
    placed = runs.mutate(pause_hours=ibis.row_number().over(within)).drop("run")
    return placed.mutate(
        is_needed=ibis.cases(
            (placed.state == "free", False),
            (placed.state == "idle_held", placed.pause_hours * 60 < placed.idle_after_minutes),
            else_=True,
        )
    )
