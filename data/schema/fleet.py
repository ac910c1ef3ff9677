"""Tables that are derived: what the fleet did, what it needs, what the data is worth."""

from __future__ import annotations

from data.schema.columns import (
    BOOL,
    DATE,
    PURCHASE_OPTIONS,
    SEVERITIES,
    STATES,
    TIME,
    F,
    H,
    I,
    M,
    T,
    Table,
    may,
    need,
)

FLEET_HOURS = Table(
    "fleet_hours",
    "One row per instance, hour, way of paying, class, owner and state of billed GPU-hours.",
    (
        need("hour_start", TIME, "start of the hour", "UTC"),
        need("cloud", T, "cloud"),
        need("account", T, "usage account, project, subscription; 'unknown'"),
        may("region", T, "region"),
        need("instance_id", T, "instance; 'commitment:ID' for paid capacity without an instance"),
        may("node", T, "host name from telemetry"),
        may("instance_type", T, "machine type"),
        may("gpu_model", T, "GPU model"),
        may("gpu_family", T, "GPU family"),
        may("gpu_count", I, "GPUs of the instance"),
        need("workload_class", T, "class of the first rule that matched, or 'unclassified'"),
        may("team", T, "team from telemetry or tags"),
        may("user", T, "user from telemetry"),
        need("purchase_option", T, "how the hour was bought", allowed=PURCHASE_OPTIONS),
        may("commitment_id", T, "commitment that covered it"),
        need("managed_service", BOOL, "hours of a managed service; never planned as instances"),
        need("state", T, "what the GPUs did", allowed=STATES),
        may("reason", T, "why this state: no_telemetry, no_reading, mig, unused_commitment …"),
        need("gpu_hours", H, "billed GPU-hours in this state", "GPU-h"),
        need("needed_gpu_hours", H, "of those, the hours plans must serve", "GPU-h"),
        may("cost", M, "effective cost of those hours; empty where no price is known", "currency"),
        need("currency", T, "ISO code"),
        need("stoppable", BOOL, "wholly idle node, or empty reservation, that nothing commits"),
        may("committed_until", DATE, "end of the commitment that pays for it, where known"),
        need("estimated", BOOL, "spread from a coarser grain, or priced from the book"),
        may("dataset", T, "layout of the bill that the hour comes from"),
        may("delivery_id", T, "delivery that the hour comes from, the last by name if several"),
    ),
    key=("hour_start", "cloud", "account", "instance_id", "purchase_option", "commitment_id",
         "workload_class", "team", "user", "state", "reason", "currency"),
)  # fmt: skip

DEMAND = Table(
    "demand",
    "One row per hour, workload class and GPU family: GPUs needed against GPUs billed.",
    (
        need("hour_start", TIME, "start of the hour", "UTC"),
        need("workload_class", T, "class"),
        need("gpu_family", T, "GPU family, e.g. H100"),
        need("needed_gpus", F, "GPUs that plans must serve", "GPU", low=0),
        need("billed_gpus", F, "GPUs billed", "GPU", low=0),
        need("busy_gpus", F, "of the billed: busy", "GPU", low=0),
        need("idle_held_gpus", F, "of the billed: idle-held", "GPU", low=0),
        need("free_gpus", F, "of the billed: free", "GPU", low=0),
        need("unknown_gpus", F, "of the billed: unknown", "GPU", low=0),
    ),
    key=("hour_start", "workload_class", "gpu_family"),
)

QUALITY = Table(
    "quality",
    "One row per finding on the data.",
    (
        need("check", T, "name of the check"),
        need("scope", T, "cloud, account, file or resource it speaks of"),
        need("severity", T, "how bad", allowed=SEVERITIES),
        may("count", I, "rows, hours or objects concerned"),
        may("amount", M, "money concerned", "currency"),
        may("currency", T, "ISO code of amount"),
        need("detail", T, "what was found, in a sentence"),
    ),
    key=("check", "scope", "detail"),
)
