"""The last step of every billing delivery: GPUs, region, unit and lineage, as BILLING declares.

A normaliser gives its rows; what all layouts need alike is added here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import pandas as pd
import pyarrow as pa

from data.catalogue import region_aliases, shapes
from data.engines import ibis_type, quoted, run
from data.schema import BILLING
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
    """Rows of BILLING (and the invoice id), one per row of the normaliser, in its order."""
    rows = _with_optional(rows)
    rows = _with_region(connection, rows)
    rows = _with_gpus(connection, rows)
    rows = rows.mutate(
        unit=_unit(rows, lineage),
        dataset=ibis.literal(lineage.dataset),
        export_id=ibis.literal(lineage.delivery_id),
    )
    kinds = {column.name: ibis_type(column.dtype) for column in BILLING.columns}
    values = {name: rows[name].cast(kind) for name, kind in kinds.items()}
    return rows.select(**values, **{INVOICE: rows[INVOICE]})


def _with_optional(rows: Any) -> Any:
    """The rows with every column that only some normalisers give; null where it is not given."""
    wanted = {
        INVOICE: "string",
        "gpus_stated": "int64",
        "gpu_hours": MONEY,
        "gpu_model": "string",
    }
    missing = {name: ibis.null(kind) for name, kind in wanted.items() if name not in rows.columns}
    return rows.mutate(**missing) if missing else rows


def _with_region(connection: Any, rows: Any) -> Any:
    """The region by the cloud's own code; a text that no alias knows stays, in lower case."""
    table = region_aliases()
    keyed = {"place_key": table["cloud"] + "|" + table["alias"], "place_code": table["region"]}
    known = _reference(connection, "known_places", keyed)
    key = rows.source + "|" + rows.region.lower().replace(" ", "")
    rows = rows.mutate(place=key)
    joined = rows.left_join(known, rows.place == known.place_key)
    return joined.mutate(region=ibis.coalesce(joined.place_code, joined.region.lower()))


def _with_gpus(connection: Any, rows: Any) -> Any:
    """GPU model, count and hours by the shape table; hours that the export counts itself stay."""
    table = shapes()
    keyed = {
        "machine_key": table["cloud"] + "|" + table["instance_type"].str.lower(),
        "machine_name": table["instance_type"],
        "machine_model": table["gpu_model"],
        "machine_gpus": table["gpus"].astype("int64"),
    }
    known = _reference(connection, "known_machines", keyed)
    rows = rows.mutate(machine=rows.source + "|" + rows.instance_type.lower())
    joined = rows.left_join(known, rows.machine == known.machine_key)
    stated = joined.gpus_stated.nullif(0)
    gpus = ibis.coalesce(joined.machine_gpus, stated)
    hours = (joined.instance_hours.cast(MONEY) * gpus).cast(MONEY)
    return joined.mutate(
        instance_type=ibis.coalesce(joined.machine_name, joined.instance_type),
        gpu_model=ibis.coalesce(joined.machine_model, joined.gpu_model, _model_in_sku(joined)),
        gpu_count=gpus,
        gpu_hours=ibis.coalesce(joined.gpu_hours, hours),
    )


def _reference(connection: Any, name: str, columns: dict[str, pd.Series]) -> Any:
    """A small reference table of the connection, one row per key (its first column)."""
    if run(connection, f"SELECT 1 FROM duckdb_tables() WHERE table_name = {quoted(name)}"):
        return connection.table(name)
    frame = pd.DataFrame(columns).drop_duplicates(next(iter(columns)))
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    return connection.create_table(name, ibis.memtable(arrow))


def _model_in_sku(rows: Any) -> Any:
    """The GPU model that a GPU SKU of Google Cloud names, where its family has one model there."""
    table = shapes()
    of_gcp = table.loc[table["cloud"] == "gcp", ["gpu_family", "gpu_model"]].drop_duplicates()
    single = of_gcp[~of_gcp["gpu_family"].duplicated(keep=False)]
    text = rows.sku_description.upper()
    named = [
        (text.contains(f" {family} ") & rows.gpu_hours.notnull(), model)
        for family, model in sorted(single.itertuples(index=False))
    ]
    return ibis.cases(*named, else_=ibis.null("string")) if named else ibis.null("string")


def _unit(rows: Any, lineage: Lineage) -> Any:
    if lineage.unit is not None:
        return ibis.literal(lineage.unit)
    parts = (rows.source, rows.billing_account, lineage.dataset, rows.billing_period)
    texts = [ibis.literal(p) if isinstance(p, str) else p.replace("|", "/") for p in parts]
    return texts[0] + "|" + texts[1] + "|" + texts[2] + "|" + texts[3]
