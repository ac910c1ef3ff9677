"""Every table of the product, declared once: column, dtype, unit, nullable, meaning, key.

CSV headers, casting, validation and `docs/tables.md` come from these declarations. The order
written here is the published order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Dtype(StrEnum):
    """What a column holds. `MONEY` and `HOURS` are exact: DECIMAL(38, 26)."""

    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    MONEY = "money"
    HOURS = "hours"
    TIME = "time"
    DATE = "date"
    BOOL = "bool"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `low` and `high` bound a number, ends included."""

    name: str
    dtype: Dtype
    unit: str
    nullable: bool
    meaning: str
    low: float | None = None
    high: float | None = None
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns in published order, its key, and what one row is."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Column names in published order."""
        return [column.name for column in self.columns]

    def column(self, name: str) -> Column:
        """The declaration of one column; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def _need(name: str, dtype: Dtype, meaning: str, unit: str = "", **more: object) -> Column:
    return Column(name, dtype, unit, False, meaning, **more)  # type: ignore[arg-type]  # bounds


def _may(name: str, dtype: Dtype, meaning: str, unit: str = "", **more: object) -> Column:
    return Column(name, dtype, unit, True, meaning, **more)  # type: ignore[arg-type]  # bounds


T, I, F, M, H = Dtype.TEXT, Dtype.INT, Dtype.FLOAT, Dtype.MONEY, Dtype.HOURS  # noqa: E741
TIME, DATE, BOOL, JSON = Dtype.TIME, Dtype.DATE, Dtype.BOOL, Dtype.JSON

PURCHASE_OPTIONS = ("on_demand", "reserved", "savings_plan", "spot", "capacity_block", "unknown")
COMMITMENT_STATUSES = ("used", "unused")
CHARGE_TYPES = (
    "usage", "fee", "tax", "credit", "refund", "discount", "adjustment", "other",
)  # fmt: skip
STATES = ("busy", "idle_held", "free", "unknown")
SEVERITIES = ("info", "warning", "error")

BILLING = Table(
    "billing",
    "One row per charge of a billing export; no source row is ever dropped.",
    (
        _need("unit", T, "the replacement unit the row belongs to: source|account|dataset|period"),
        _need("source", T, "cloud of the row: aws, gcp, azure, or another provider in lower case"),
        _need("dataset", T, "layout: cur, cur2, focus, standard, detailed, actual, amortized"),
        _need("billing_account", T, "payer account, billing account, or enrolment; 'unknown'"),
        _may("account", T, "AWS usage account, GCP project, Azure subscription"),
        _may("region", T, "the cloud's region code, lower case"),
        _may("zone", T, "availability zone"),
        _may("period_start", TIME, "start of the charge period", "UTC"),
        _may("period_end", TIME, "end of the charge period, exclusive", "UTC"),
        _need("billing_period", T, "month of the bill, YYYY-MM"),
        _may("resource_id", T, "instance id, resource name or ARN as the export gives it"),
        _may("resource_name", T, "name of the resource, where the export has one"),
        _may("service", T, "service code or name as exported"),
        _need("managed_service", BOOL, "true for SageMaker, Vertex AI, Azure ML: never plain VMs"),
        _may("instance_type", T, "machine type, e.g. p5.48xlarge"),
        _may("gpu_model", T, "GPU model of the shape table, null where the row has no GPU"),
        _may("gpu_count", I, "GPUs in one instance of that type", "GPU", low=0),
        _may("sku", T, "SKU id, meter id or usage type"),
        _may("sku_description", T, "text of the SKU, meter or charge"),
        _may("usage_qty", H, "quantity in usage_unit"),
        _may("usage_unit", T, "unit of usage_qty as exported"),
        _may("instance_hours", H, "instance-hours of this row (null: not an instance row)", "h"),
        _may("gpu_hours", H, "GPU-hours of this row (null: not a GPU row)", "GPU-h"),
        _need("purchase_option", T, "how it was bought", allowed=PURCHASE_OPTIONS),
        _may("commitment_id", T, "reservation, savings plan or commitment of the row"),
        _may("commitment_status", T, "used or unused part", allowed=COMMITMENT_STATUSES),
        _may("capacity_reservation_id", T, "capacity reservation or block of the row"),
        _may("list_cost", M, "public on-demand counterfactual", "currency"),
        _may("billed_cost", M, "what the invoice shows", "currency"),
        _may("effective_cost", M, "amortised, net cost; the only money plans sum", "currency"),
        _need("currency", T, "ISO code, or 'unknown' where the export has none"),
        _need("charge_type", T, "kind of the row", allowed=CHARGE_TYPES),
        _need("is_correction", BOOL, "corrects a period that was invoiced already"),
        _may("tags", JSON, "tags and labels as one JSON object of texts"),
        _need("export_id", T, "delivery the row came in"),
        _need("source_row_no", I, "row in the delivery, from 1, in reading order", low=1),
    ),
    key=("export_id", "source_row_no"),
)

UTILIZATION = Table(
    "utilization",
    "One row per GPU and hour (or finer sample); an empty reading is missing, never 0.",
    (
        _need("unit", T, "the replacement unit the row belongs to: cloud|account|utilization|day"),
        _need("hour_start", TIME, "start of the hour", "UTC"),
        _need("cloud", T, "cloud, lower case"),
        _need("account", T, "usage account, project or subscription"),
        _may("region", T, "region code"),
        _need("instance_id", T, "the bill's resource id, or its last segment"),
        _need("gpu_uuid", T, "identity of the GPU"),
        _may("gpu_util", F, "time with a kernel running", "percent", low=0, high=100),
        _may("sm_active", F, "share of multiprocessors active", "share", low=0, high=1),
        _may("memory_used_share", F, "GPU memory in use", "share", low=0, high=1),
        _may("process_count", I, "processes that hold the GPU", low=0),
        _may("node", T, "host or Kubernetes node"),
        _may("pod", T, "pod that holds the GPU"),
        _may("namespace", T, "namespace of the pod"),
        _may("user", T, "user of the process or job"),
        _may("team", T, "team"),
        _may("power_watts", F, "power draw", "W", low=0),
        _may("mig_uuid", T, "MIG instance, where the GPU is split"),
        _need("export_id", T, "delivery the row came in"),
        _need("source_row_no", I, "row in the delivery, from 1", low=1),
    ),
    key=("export_id", "source_row_no"),
)

JOBS = Table(
    "jobs",
    "One row per queued or past job.",
    (
        _need("unit", T, "the replacement unit the row belongs to"),
        _need("id", T, "job id"),
        _need("class", T, "workload class"),
        _need("gpus", F, "GPUs the job holds at once", "GPU", low=0),
        _need("hours", F, "expected run time", "h", low=0),
        _may("hours_high", F, "pessimistic run time", "h", low=0),
        _need("release", T, "earliest start: UTC time or hour number"),
        _may("deadline", T, "latest end: UTC time or hour number"),
        _may("priority", F, "larger is more urgent"),
        _may("gang", I, "1 where all GPUs must start at once", low=0, high=1),
        _may("checkpointable", I, "1 where the job may run in pieces", low=0, high=1),
        _may("offers", T, "offers the job may use, separated by ;"),
        _need("export_id", T, "delivery the row came in"),
        _need("source_row_no", I, "row in the delivery, from 1", low=1),
    ),
    key=("export_id", "source_row_no"),
)

COMMITMENTS = Table(
    "commitments",
    "One row per commitment that is owned: reservation, savings plan, block, owned machines.",
    (
        _need("unit", T, "the replacement unit the row belongs to"),
        _need("id", T, "the cloud's id of the commitment"),
        _need("cloud", T, "cloud, lower case"),
        _need("account", T, "account that bought it"),
        _need("kind", T, "reserved, savings_plan, capacity_block, capacity_reservation, owned"),
        _may("instance_type", T, "machine type it covers"),
        _may("family", T, "machine family it covers, for plans"),
        _may("region", T, "region it covers; empty for any"),
        _may("count", F, "instances", "instance", low=0),
        _may("usd_per_hour", M, "commitment of a spend plan", "USD/h"),
        _need("start", TIME, "first hour", "UTC"),
        _need("end", TIME, "end, exclusive", "UTC"),
        _may("payment", T, "no_upfront, partial_upfront, all_upfront, monthly"),
        _may("usd_per_instance_hour", M, "amortised rate per instance", "USD/instance-h"),
        _need("export_id", T, "delivery the row came in"),
        _need("source_row_no", I, "row in the delivery, from 1", low=1),
    ),
    key=("export_id", "source_row_no"),
)

GPU_SHAPES = Table(
    "gpu_shapes",
    "One row per machine type with GPUs; reference data.",
    (
        _need("cloud", T, "cloud, lower case"),
        _need("instance_type", T, "machine type, as the cloud spells it"),
        _need("family", T, "machine family that a savings plan or CUD covers, e.g. p5"),
        _need("gpu_model", T, "GPU model, e.g. H100-SXM5-80GB"),
        _need("gpu_family", T, "GPUs that a class takes as equal, e.g. H100"),
        _need("gpus", I, "GPUs in one instance", "GPU", low=1),
        _need("gpu_memory_gib", F, "nominal memory of one GPU", "GiB", low=1),
        _need("vcpus", I, "virtual CPUs", low=1),
        _need("memory_gib", F, "main memory", "GiB", low=1),
        _need("interconnect", T, "nvswitch, nvlink, pcie or none"),
        _need("network_gbps", F, "network between nodes", "Gb/s", low=0),
        _need("orderable_as", T, "purchase options it can be ordered as, separated by ;"),
        _need("managed_service", BOOL, "a managed service's own size (ml.*)"),
        _need("source", T, "where the row comes from"),
        _need("as_of", DATE, "day it was read"),
    ),
    key=("cloud", "instance_type"),
)

PRICE_BOOK = Table(
    "price_book",
    "One row per price: provider, region, type, option, payment and day; Linux, per instance-hour.",
    (
        _need("provider", T, "cloud, lower case"),
        _need("region", T, "region code"),
        _need("instance_type", T, "machine type"),
        _need("gpu_model", T, "GPU model"),
        _need("gpus", I, "GPUs in one instance", "GPU", low=1),
        _need("gpu_memory_gib", F, "nominal memory of one GPU", "GiB"),
        _need("vcpus", I, "virtual CPUs"),
        _need("memory_gib", F, "main memory", "GiB"),
        _need("purchase_option", T, "on_demand, spot, reserved_1y, reserved_3y, savings_plan_1y …"),
        _need("payment_option", T, "none, monthly, all_upfront …"),
        _may("usd_per_instance_hour", M, "price; blank is no price", "USD/instance-h"),
        _need("source", T, "where the price comes from"),
        _need("as_of", DATE, "day it was read"),
    ),
    key=("provider", "region", "instance_type", "purchase_option", "payment_option", "as_of"),
)

OFFERS = Table(
    "offers",
    "The price book after its checks: every row with its status and, if it is not used, why.",
    (
        *PRICE_BOOK.columns,
        _need("origin", T, "bundled, override or fetched"),
        _need("status", T, "what became of it", allowed=("used", "rejected", "stale")),
        _may("reason", T, "why it is not used"),
    ),
    key=(*PRICE_BOOK.key, "origin"),
)

FLEET_HOURS = Table(
    "fleet_hours",
    "One row per instance, hour, purchase option and state: billed GPU-hours with their state.",
    (
        _need("hour_start", TIME, "start of the hour", "UTC"),
        _need("cloud", T, "cloud"),
        _need("account", T, "usage account, project, subscription; 'unknown'"),
        _may("region", T, "region"),
        _need("instance_id", T, "instance; 'commitment:ID' for paid capacity without an instance"),
        _may("node", T, "host name from telemetry"),
        _may("instance_type", T, "machine type"),
        _may("gpu_model", T, "GPU model"),
        _may("gpu_family", T, "GPU family"),
        _may("gpu_count", I, "GPUs of the instance"),
        _need("workload_class", T, "class of the first rule that matched, or 'unclassified'"),
        _may("team", T, "team from telemetry or tags"),
        _may("user", T, "user from telemetry"),
        _need("purchase_option", T, "how the hour was bought", allowed=PURCHASE_OPTIONS),
        _may("commitment_id", T, "commitment that covered it"),
        _need("managed_service", BOOL, "hours of a managed service; never planned as instances"),
        _need("state", T, "what the GPUs did", allowed=STATES),
        _may("reason", T, "why this state: no_telemetry, no_reading, mig, unused_commitment …"),
        _need("gpu_hours", H, "billed GPU-hours in this state", "GPU-h"),
        _need("needed_gpu_hours", H, "of those, the hours plans must serve", "GPU-h"),
        _need("cost", M, "effective cost of those hours", "currency"),
        _need("currency", T, "ISO code"),
        _need("stoppable", BOOL, "idle, on a wholly idle node that nothing commits"),
        _may("committed_until", DATE, "end of the commitment that pays for it, where known"),
        _need("estimated", BOOL, "spread from a coarser grain, or priced from the book"),
    ),
    key=("hour_start", "cloud", "account", "instance_id", "purchase_option", "commitment_id",
         "state", "reason", "currency"),
)  # fmt: skip

DEMAND = Table(
    "demand",
    "One row per hour, workload class and GPU family: GPUs needed against GPUs billed.",
    (
        _need("hour_start", TIME, "start of the hour", "UTC"),
        _need("workload_class", T, "class"),
        _need("gpu_family", T, "GPU family, e.g. H100"),
        _need("needed_gpus", F, "GPUs that plans must serve", "GPU", low=0),
        _need("billed_gpus", F, "GPUs billed", "GPU", low=0),
        _need("busy_gpus", F, "of the billed: busy", "GPU", low=0),
        _need("idle_held_gpus", F, "of the billed: idle-held", "GPU", low=0),
        _need("free_gpus", F, "of the billed: free", "GPU", low=0),
        _need("unknown_gpus", F, "of the billed: unknown", "GPU", low=0),
    ),
    key=("hour_start", "workload_class", "gpu_family"),
)

QUALITY = Table(
    "quality",
    "One row per finding on the data.",
    (
        _need("check", T, "name of the check"),
        _need("scope", T, "cloud, account, file or resource it speaks of"),
        _need("severity", T, "how bad", allowed=SEVERITIES),
        _may("count", I, "rows, hours or objects concerned"),
        _may("amount", M, "money concerned", "currency"),
        _may("currency", T, "ISO code of amount"),
        _need("detail", T, "what was found, in a sentence"),
    ),
    key=("check", "scope", "detail"),
)

RECOMMENDATIONS = Table(
    "recommendations",
    "One row per recommendation, most dollars first, in the order the savings were counted.",
    (
        _need("rank", I, "1 is the first", low=1),
        _need("id", T, "stable from night to night for the same advice"),
        _need("kind", T, "what it is", allowed=(
            "release_idle", "rightsize", "fill_gap", "use_idle_commitment", "move_to_spot",
            "move_to_on_demand", "move_region", "buy_reserved", "buy_savings_plan",
            "buy_capacity_block", "let_expire", "set_limit")),
        _need("cloud", T, "cloud"),
        _may("account", T, "account to act in"),
        _may("region", T, "region"),
        _may("resource", T, "instance, pool or offer"),
        _may("workload_class", T, "class"),
        _need("action", T, "what to do, in a sentence"),
        _may("current", T, "what is there now"),
        _may("proposed", T, "what should be"),
        _may("gpus", F, "GPUs concerned", "GPU"),
        _may("gpu_hours_per_month", F, "GPU-hours a month concerned", "GPU-h"),
        _need("currency", T, "ISO code"),
        _may("cost_per_month_now", M, "amortised, before", "currency/month"),
        _may("cost_per_month_after", M, "amortised, after", "currency/month"),
        _need("saving_per_month", M, "change of the amortised bill", "currency/month"),
        _need("cash_saving_per_month", M, "what leaves the account less", "currency/month"),
        _may("term_hours", I, "length of the commitment", "h"),
        _may("payment", T, "payment option"),
        _may("upfront", M, "paid at once", "currency"),
        _may("total_commitment", M, "must be paid over the whole term", "currency"),
        _may("capacity_assured", T, "yes, no or unknown"),
        _may("team", T, "team"),
        _may("owner", T, "person or role that decides"),
        _may("confidence", T, "high, medium or low"),
        _may("break_even_share", F, "share of hours above which it pays", "share"),
        _may("expected_share", F, "share of hours it will be used", "share"),
        _may("binding_constraint", T, "the limit that stopped more"),
        _may("risk", T, "what could go wrong"),
        _need("why", T, "the reason in a sentence"),
        _may("decision", T, "accept, reject or snooze, where a person decided"),
        _need("data_as_of", TIME, "end of the data it rests on", "UTC"),
        _need("valid_until", TIME, "when to ask again", "UTC"),
    ),
    key=("id",),
)  # fmt: skip

COMMITMENTS_OUT = Table(
    "commitments_out",
    "Owned and advised commitments: what each costs, how much is used, and what to do.",
    (
        _need("id", T, "commitment, or recommendation for advised ones"),
        _need("cloud", T, "cloud"),
        _may("account", T, "account"),
        _need("kind", T, "reserved, savings_plan, capacity_block …"),
        _may("instance_type", T, "machine type"),
        _may("region", T, "region"),
        _may("count", F, "instances", "instance"),
        _may("usd_per_hour", M, "cost of the whole line per hour", "USD/h"),
        _may("payment", T, "payment option"),
        _may("upfront", M, "paid at once", "USD"),
        _may("total_commitment", M, "must be paid over the whole term", "USD"),
        _may("start", TIME, "first hour", "UTC"),
        _may("end", TIME, "end, exclusive", "UTC"),
        _may("used_share", F, "share used in the window", "share"),
        _may("unused_cost_per_month", M, "cost of the unused part", "USD/month"),
        _may("break_even_share", F, "share of hours above which it pays", "share"),
        _need("action", T, "keep, buy, let_expire …"),
        _need("why", T, "the reason"),
    ),
    key=("id",),
)

LIMITS = Table(
    "limits",
    "Autoscaling limits: what they are and what they should be.",
    (
        _need("pool", T, "what the limit governs"),
        _need("kind", T, "aws_asg, gcp_mig, azure_vmss …"),
        _need("unit", T, "nodes, gpus or replicas"),
        _need("cloud", T, "cloud"),
        _may("account", T, "account"),
        _may("region", T, "region"),
        _may("name", T, "name in the cloud"),
        _may("min_now", F, "minimum now"),
        _may("desired_now", F, "desired now"),
        _may("max_now", F, "maximum now"),
        _may("min_proposed", F, "minimum proposed"),
        _may("desired_proposed", F, "desired proposed"),
        _may("max_proposed", F, "maximum proposed"),
        _may("running", F, "running now"),
        _may("schedule", T, "by hour of the week, where it has one"),
        _need("why", T, "the reason"),
    ),
    key=("pool",),
)

IDLE = Table(
    "idle",
    "Idle and unknown GPU-hours by instance: what they cost and what ends them.",
    (
        _need("cloud", T, "cloud"),
        _may("account", T, "account"),
        _may("region", T, "region"),
        _need("instance_id", T, "instance or commitment"),
        _may("gpu_model", T, "GPU model"),
        _need("workload_class", T, "class"),
        _may("team", T, "team"),
        _need("state", T, "idle_held, free or unknown", allowed=STATES),
        _may("reason", T, "why this state"),
        _need("gpu_hours", H, "GPU-hours in the window", "GPU-h"),
        _need("cost", M, "effective cost", "currency"),
        _need("currency", T, "ISO code"),
        _need("stoppable_cost", M, "of that, what stopping the node would have saved", "currency"),
        _may("committed_until", DATE, "end of the commitment that pays for it"),
        _may("since", TIME, "first hour of the newest idle run", "UTC"),
        _need("action", T, "what ends it"),
    ),
)

TABLES = (
    BILLING, UTILIZATION, JOBS, COMMITMENTS, GPU_SHAPES, PRICE_BOOK, OFFERS, FLEET_HOURS, DEMAND,
    QUALITY, RECOMMENDATIONS, COMMITMENTS_OUT, LIMITS, IDLE,
)  # fmt: skip
