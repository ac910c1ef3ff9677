"""Tables that people keep by hand: their own prices, agreements, budgets and invoices."""

from __future__ import annotations

from data.schema.columns import DATE, F, I, M, T, Table, may, need

PRICES = Table(
    "prices",
    "One row per price or discount that the user states; it outranks the price book.",
    (
        need("unit", T, "the replacement unit the row belongs to"),
        need("provider", T, "cloud, lower case (a discount row says `cloud`)"),
        may("region", T, "region code; empty in a discount row for any"),
        may("instance_type", T, "machine type of an absolute price"),
        may("gpu_model", T, "GPU model"),
        may("gpus", I, "GPUs in one instance", "GPU", low=1),
        may("gpu_memory_gib", F, "nominal memory of one GPU", "GiB"),
        may("vcpus", I, "virtual CPUs"),
        may("memory_gib", F, "main memory", "GiB"),
        may("purchase_option", T, "on_demand, spot, reserved_1y, reserved_3y, savings_plan_1y …"),
        may("payment_option", T, "none, monthly, all_upfront …"),
        may("usd_per_instance_hour", M, "absolute price; blank is no price", "USD/instance-h"),
        may("source", T, "where the price comes from"),
        may("as_of", DATE, "day it was agreed or read"),
        may("family", T, "machine family of a discount; empty for any"),
        may("from", DATE, "first day of a discount"),
        may("to", DATE, "end of a discount, exclusive; empty for open"),
        may("discount_share", F, "share taken off the book's price", "share", low=0, high=1),
        need("export_id", T, "delivery the row came in"),
        need("source_row_no", I, "row in the delivery, from 1", low=1),
    ),
    key=("export_id", "source_row_no"),
)

AGREEMENTS = Table(
    "agreements",
    "One row per agreement on total spend: EDP, MACC, GCP commit.",
    (
        need("unit", T, "the replacement unit the row belongs to"),
        need("cloud", T, "cloud, lower case"),
        need("from", DATE, "first day"),
        need("to", DATE, "end, exclusive"),
        need("committed", M, "spend agreed over the whole time", "currency"),
        may("counted_so_far", M, "spend counted towards it", "currency"),
        may("discount_share", F, "share taken off the bill", "share", low=0, high=1),
        need("currency", T, "ISO code"),
        need("export_id", T, "delivery the row came in"),
        need("source_row_no", I, "row in the delivery, from 1", low=1),
    ),
    key=("export_id", "source_row_no"),
)

BUDGETS = Table(
    "budgets",
    "One row per budget: money that may be spent on a scope in a time.",
    (
        need("unit", T, "the replacement unit the row belongs to"),
        need("scope", T, "what it is for: all, a cloud, an account, a class"),
        need("from", DATE, "first day"),
        need("to", DATE, "end, exclusive"),
        need("amount", M, "money", "currency"),
        need("currency", T, "ISO code"),
        need("kind", T, "what pays", allowed=("cash", "credit", "grant")),
        need("export_id", T, "delivery the row came in"),
        need("source_row_no", I, "row in the delivery, from 1", low=1),
    ),
    key=("export_id", "source_row_no"),
)

INVOICES = Table(
    "invoices",
    "One row per invoice: what a cloud billed for a month, to hold the export against.",
    (
        need("unit", T, "the replacement unit the row belongs to"),
        need("cloud", T, "cloud, lower case"),
        may("account", T, "payer, billing account or usage account; empty for the whole cloud"),
        need("billing_period", T, "month of the invoice, YYYY-MM"),
        need("amount", M, "total of the invoice, as the export counts it", "currency"),
        need("currency", T, "ISO code"),
        need("export_id", T, "delivery the row came in"),
        need("source_row_no", I, "row in the delivery, from 1", low=1),
    ),
    key=("export_id", "source_row_no"),
)
