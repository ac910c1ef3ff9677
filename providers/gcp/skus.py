"""What the SKU text of a GCP row says: a GPU, a commitment fee, and how it was bought.

Texts: the SKU names of A3 machines and of commitments (Cyclenerd price mapping, Google SKU
pages, read 2026-11), matched in any case. One VM is billed in several SKUs; only its GPU SKU
counts GPU-hours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ibis

from data.catalogue import shapes
from providers.files.expressions import MONEY
from providers.files.quantities import quotient
from providers.gcp.columns import entries

COMPUTE_ENGINE = "6F81-5844-456A"
_SECONDS_PER_HOUR = 3600
_FEE = r"(?i)^\s*commitment\b"
_SPOT = r"(?i)\b(spot|preemptible)\b"
_BLOCK = r"(?i)\bcalendar mode\b|^\s*reserved\b"
_GPU = r"(?i)\bgpus?\b"
_NO_GPU_TIME = r"(?i)management fee|licen[cs]e|virtual workstation|\bvgpu\b"
_MANAGED = r"(?i)\b(vertex ai|ai platform|vertex)\b"


def with_sku(rows: Any) -> Any:
    """The rows with what SKU and system labels say, each read once.

    `fee`: the fee of a commitment, paid whether the resource is used or not. `gpu`: a SKU that
    counts GPUs; fees, licences and management fees do not. `unused`: the unused part of a
    reservation. `machine` and `reservation` are the system labels, or null.
    """
    text = _text(rows)
    fee = text.re_search(_FEE)
    unused = system_label(rows, "is_unused_reservation").lower() == "true"
    return rows.mutate(
        fee=fee,
        gpu=text.re_search(_GPU) & ~text.re_search(_NO_GPU_TIME) & ~fee,
        unused=unused.fill_null(False),
        machine=system_label(rows, "machine_spec"),
        reservation=system_label(rows, "reservation_name"),
        barrier=ibis.random(),
    )


def is_spend_fee(rows: Any) -> Any:
    """Whether the row is the fee of a commitment to spend."""
    return rows.fee & _text(rows).lower().contains("dollar")


def is_spot(rows: Any) -> Any:
    """Whether the SKU is that of spot or preemptible machines."""
    return _text(rows).re_search(_SPOT)


def is_block(rows: Any) -> Any:
    """Whether the SKU is that of a reservation in calendar mode."""
    return _text(rows).re_search(_BLOCK)


def is_managed(rows: Any) -> Any:
    """Whether the row is of Vertex AI, or of GPUs that another service than Compute Engine runs."""
    compute = (rows.service_id == COMPUTE_ENGINE) | (rows.service.lower() == "compute engine")
    elsewhere = rows.gpu & ~compute.fill_null(False)
    return rows.service.fill_null("").re_search(_MANAGED) | elsewhere


def system_label(rows: Any, key: str) -> Any:
    """The value of a system label of Compute Engine, or null."""
    items = entries(rows.system, ("key", "value"))
    chosen = items.filter(lambda label: label["key"] == f"compute.googleapis.com/{key}")
    return chosen.map(lambda label: label["value"]).join("").nullif("")


def gpu_hours(rows: Any) -> Any:
    """GPU-hours of a GPU SKU in use: priced units that are hours, else seconds / 3600; else null.

    The unused part of a reservation has cost and no hours.
    """
    hourly = rows.priced_unit.lower().isin(["hour", "hours", "h"])
    secondly = rows.unit.lower().isin(["second", "seconds", "s"])
    seconds = quotient(rows.amount, ibis.literal(_SECONDS_PER_HOUR))
    return ibis.cases(
        (~rows.gpu | rows.unused, ibis.null(MONEY)),
        (hourly & rows.priced_amount.notnull(), rows.priced_amount),
        (secondly, seconds),
        else_=ibis.null(MONEY),
    )


def instance_hours(hours: Any, machine: Any) -> Any:
    """GPU-hours over the GPUs of the machine type; null where the type has no fixed GPUs."""
    gpus = machine.lower().substitute(_gpus_by_type(), else_=ibis.null("string"))
    return quotient(hours, gpus.cast("int64"))


def _text(rows: Any) -> Any:
    return rows.sku_text.fill_null("")


@lru_cache(maxsize=1)
def _gpus_by_type() -> dict[str, str]:
    table = shapes()
    pairs = table.loc[table["cloud"] == "gcp", ["instance_type", "gpus"]]
    return {str(name).lower(): str(gpus) for name, gpus in pairs.itertuples(index=False)}
