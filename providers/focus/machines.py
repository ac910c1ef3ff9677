"""Which machine a FOCUS row is about, and how many hours it ran.

Version 1.0 has no column for the machine type. It is looked for in the price details, the
provider's own columns, the meter, and at last in the description of the charge.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ibis

from data.catalogue import shapes
from providers.files.expressions import MONEY
from providers.files.nested import value_at
from providers.files.quantities import null_money

_DETAIL_KEYS = ("InstanceType", "x_InstanceType", "ServiceType", "x_ServiceType", "MachineType")
_OF_AWS = r"((?:ml\.)?[a-z][a-z0-9-]*\.(?:metal|nano|micro|small|medium|[0-9]*x?large)[a-z0-9-]*)"
_IN_DESCRIPTION = rf"\b{_OF_AWS}\b"
_IN_USAGE = r":([a-z0-9-]+\.[a-z0-9.-]+)$"
_COUNTED_USAGE = r"(^|-)(BoxUsage|SpotUsage|DedicatedUsage)(:|$)|:ml\."
_HOURS = r"^\s*([0-9]*)\s*(?:hours?|hrs?|h)\s*$"
_LICENCE = r"(?i)licen[cs]e"
_GPU_SKU = r"(?i)\bgpu\b"
_METER_SUFFIX = r" (Spot|Low Priority)$"


def instance_type(row: Any) -> Any:
    """The machine type of the row, null where nothing tells it."""
    details = [value_at(row.sku_details, key) for key in _DETAIL_KEYS]
    own = [value_at(row.x_details, key) for key in _DETAIL_KEYS]
    in_usage = row.x_usage_type.re_extract(_IN_USAGE, 1).nullif("")
    meter = row.meter.re_extract(_IN_DESCRIPTION, 1).nullif("")
    described = row.description.re_extract(_IN_DESCRIPTION, 1).nullif("")
    return ibis.coalesce(
        *details, row.x_type, *own, in_usage, meter, _of_azure_meter(row), described
    )


def _of_azure_meter(row: Any) -> Any:
    """The size that an Azure meter names (`ND96isr H100 v5 Spot`), if the shape table has it."""
    name = row.meter.re_replace(_METER_SUFFIX, "").lower()
    return name.substitute(_azure_meters(), else_=ibis.null("string"))


@lru_cache(maxsize=1)
def _azure_meters() -> dict[str, str]:
    table = shapes()
    names = table.loc[table["cloud"] == "azure", "instance_type"]
    return {str(n).removeprefix("Standard_").replace("_", " ").lower(): str(n) for n in names}


def gpus_stated(row: Any) -> Any:
    """The GPU count that the price details state, null where they do not."""
    count = ibis.coalesce(
        value_at(row.sku_details, "GpuCount"), value_at(row.sku_details, "x_GpuCount")
    )
    return count.try_cast("float64").try_cast("int64")


def is_unused(row: Any) -> Any:
    """Whether the row is the unused part of a commitment or of a capacity reservation."""
    status = ibis.coalesce(row.commitment_status, row.capacity_status)
    return (status.lower() == "unused").fill_null(False)


def hours(row: Any) -> Any:
    """Hours used: the consumed quantity of a usage row that is counted in hours, else null.

    Commitment quantities are never hours; a unit such as `10 Hours` is converted.
    """
    unit = row.unit.lower()
    block = unit.re_extract(_HOURS, 1).nullif("").try_cast("int64").fill_null(1)
    counted = unit.re_search(_HOURS) & (row.category.lower() == "usage") & ~is_unused(row)
    return counted.fill_null(False).ifelse((row.quantity * block).cast(MONEY), null_money())


def instance_hours(row: Any, machine: Any) -> Any:
    """Hours that a machine ran; licences and surcharges of a machine are cost, not hours."""
    surcharge = row.x_usage_type.notnull() & ~row.x_usage_type.re_search(_COUNTED_USAGE)
    licence = row.meter_category.re_search(_LICENCE).fill_null(False)
    ran = machine.notnull() & ~surcharge.fill_null(False) & ~licence & ~_is_gcp_part(row)
    return ran.ifelse(hours(row), null_money())


def gpu_hours(row: Any) -> Any:
    """GPU-hours of a GPU SKU of Google Cloud, which bills a machine in parts; else null."""
    gpus = _is_gcp_part(row) & ~row.description.lower().contains("commitment")
    return gpus.fill_null(False).ifelse(hours(row), null_money())


def _is_gcp_part(row: Any) -> Any:
    google = row.provider.lower().contains("google").fill_null(False)
    text = ibis.coalesce(row.description, row.meter, "")
    return google & text.re_search(_GPU_SKU)
