"""The last step of every billing delivery: GPUs, region, unit and lineage, as BILLING declares.

A normaliser gives its rows; what all layouts need alike is added here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis

from data.catalogue import region_aliases, shapes
from data.engines import ibis_type
from data.schema import BILLING
from providers.contract import TOLD_BY_SOME
from providers.files.engine import named, reference
from providers.files.expressions import MONEY

# Beyond BILLING in the staged file, read for ranking and by no query of the store.
INVOICE = "invoice_id"


@dataclass(frozen=True, slots=True)
class Lineage:
    """What all rows of a delivery share: its layout, id, and the unit that its manifest states.

    `unit` is None for files without a manifest: each row then belongs to the unit of its own
    billing account and period.
    """

    dataset: str
    delivery_id: str
    unit: str | None = None


def finish(connection: Any, rows: Any, lineage: Lineage) -> Any:
    """Rows of BILLING (and the invoice id), one per row of the normaliser, in its order.

    The normaliser's expression is made a view first: two small plans compile faster than one.
    """
    view = named(connection, rows)
    joined = view.left_join(_places(connection), [(_place, "place_key")])
    joined = joined.left_join(_machines(connection), [(_machine, "machine_key")])
    stated = joined.gpus_stated if "gpus_stated" in view.columns else ibis.null("int64")
    gpus = ibis.coalesce(joined.machine_gpus, stated.nullif(0))
    hours = joined.gpu_hours if "gpu_hours" in view.columns else ibis.null(MONEY)
    added = {
        "unit": _unit(joined, lineage),
        "dataset": ibis.literal(lineage.dataset),
        "export_id": ibis.literal(lineage.delivery_id),
        "region": ibis.coalesce(joined.place_code, joined.region.lower()),
        "instance_type": ibis.coalesce(joined.machine_name, joined.instance_type),
        "gpu_model": ibis.coalesce(joined.machine_model, _model_in_sku(joined, hours)),
        "gpu_count": gpus,
        "gpu_hours": ibis.coalesce(hours, (joined.instance_hours.cast(MONEY) * gpus).cast(MONEY)),
    }
    for name in TOLD_BY_SOME:
        if name not in view.columns:
            added[name] = ibis.null(MONEY)
    values = {
        column.name: (added[column.name] if column.name in added else joined[column.name]).cast(
            ibis_type(column.dtype)
        )
        for column in BILLING.columns
    }
    invoice = joined[INVOICE] if INVOICE in view.columns else ibis.null("string")
    return joined.select(**values, **{INVOICE: invoice})


def _place(row: Any) -> Any:
    return row.source + "|" + row.region.lower().replace(" ", "")


def _machine(row: Any) -> Any:
    return row.source + "|" + row.instance_type.lower()


def _places(connection: Any) -> Any:
    """Every spelling of a region and its code."""
    table = region_aliases()
    keyed = {"place_key": table["cloud"] + "|" + table["alias"], "place_code": table["region"]}
    return reference(connection, "known_places", keyed)


def _machines(connection: Any) -> Any:
    """Every machine type of the shape table with its GPUs."""
    table = shapes()
    keyed = {
        "machine_key": table["cloud"] + "|" + table["instance_type"].str.lower(),
        "machine_name": table["instance_type"],
        "machine_model": table["gpu_model"],
        "machine_gpus": table["gpus"].astype("int64"),
    }
    return reference(connection, "known_machines", keyed)


def _model_in_sku(rows: Any, hours: Any) -> Any:
    """The GPU model that a GPU SKU of Google Cloud names, where its family has one model there."""
    table = shapes()
    of_gcp = table.loc[table["cloud"] == "gcp", ["gpu_family", "gpu_model"]].drop_duplicates()
    single = of_gcp[~of_gcp["gpu_family"].duplicated(keep=False)]
    text = rows.sku_description.upper()
    named = [
        (text.contains(f" {family} ") & hours.notnull(), model)
        for family, model in sorted(single.itertuples(index=False))
    ]
    return ibis.cases(*named, else_=ibis.null("string")) if named else ibis.null("string")


def _unit(rows: Any, lineage: Lineage) -> Any:
    if lineage.unit is not None:
        return ibis.literal(lineage.unit)
    parts = (rows.source, rows.billing_account, lineage.dataset, rows.billing_period)
    texts = [ibis.literal(p) if isinstance(p, str) else p.replace("|", "/") for p in parts]
    return texts[0] + "|" + texts[1] + "|" + texts[2] + "|" + texts[3]
