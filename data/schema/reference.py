"""Reference tables: machine shapes and prices."""

from __future__ import annotations

from data.schema.columns import BOOL, DATE, F, I, M, T, Table, may, need

GPU_SHAPES = Table(
    "gpu_shapes",
    "One row per machine type with GPUs; reference data.",
    (
        need("cloud", T, "cloud, lower case"),
        need("instance_type", T, "machine type, as the cloud spells it"),
        need("family", T, "machine family that a savings plan or CUD covers, e.g. p5"),
        need("gpu_model", T, "GPU model, e.g. H100-SXM5-80GB"),
        need("gpu_family", T, "GPUs that a class takes as equal, e.g. H100"),
        need("gpus", I, "GPUs in one instance", "GPU", low=1),
        may("gpu_memory_gib", F, "nominal memory of one GPU", "GiB", low=1),
        may("vcpus", I, "virtual CPUs", low=1),
        may("memory_gib", F, "main memory", "GiB", low=1),
        need("interconnect", T, "nvswitch, nvlink, pcie or none"),
        may("network_gbps", F, "network between nodes", "Gb/s", low=0),
        need("orderable_as", T, "purchase options it can be ordered as, separated by ;"),
        need("managed_service", BOOL, "a managed service's own size (ml.*)"),
        need("source", T, "where the row comes from"),
        may("as_of", DATE, "day it was read"),
    ),
    key=("cloud", "instance_type"),
)

PRICE_BOOK = Table(
    "price_book",
    "One row per price: provider, region, type, option, payment and day; Linux, per instance-hour.",
    (
        need("provider", T, "cloud, lower case"),
        need("region", T, "region code"),
        need("instance_type", T, "machine type"),
        need("gpu_model", T, "GPU model"),
        need("gpus", I, "GPUs in one instance", "GPU", low=1),
        may("gpu_memory_gib", F, "nominal memory of one GPU", "GiB"),
        may("vcpus", I, "virtual CPUs"),
        may("memory_gib", F, "main memory", "GiB"),
        need("purchase_option", T, "on_demand, spot, reserved_1y, reserved_3y, savings_plan_1y …"),
        need("payment_option", T, "none, monthly, all_upfront …"),
        may("usd_per_instance_hour", M, "price; blank is no price", "USD/instance-h"),
        need("source", T, "where the price comes from"),
        need("as_of", DATE, "day it was read"),
    ),
    key=("provider", "region", "instance_type", "purchase_option", "payment_option", "as_of"),
)

OFFERS = Table(
    "offers",
    "The price book after its checks: every row with its status and, if it is not used, why.",
    (
        *PRICE_BOOK.columns,
        need("origin", T, "bundled, override or fetched"),
        need("status", T, "what became of it", allowed=("used", "rejected", "stale")),
        may("reason", T, "why it is not used"),
    ),
    # No key: a row that repeats or contradicts another stays listed, with its reason.
)
