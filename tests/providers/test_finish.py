"""The last step of every billing delivery: GPUs, regions, units, lineage."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import ibis

from data.engines import connect, ibis_type
from data.schema import BILLING
from providers.contract import FINISHED_LATER
from providers.files.finish import Lineage, finish

BASE = {
    "source": "aws", "billing_account": "0011", "region": "us-east-1", "billing_period": "2026-11",
    "managed_service": False, "instance_type": "p5.48xlarge", "instance_hours": "1.5",
    "purchase_option": "on_demand", "currency": "USD", "charge_type": "usage",
    "is_correction": False,
}  # fmt: skip


def finished(*changes: dict[str, Any], unit: str | None = None) -> list[dict[str, Any]]:
    connection = connect(threads=1)
    columns = [c for c in BILLING.columns if c.name not in FINISHED_LATER]
    rows = [
        {c.name: {**BASE, "source_row_no": number, **change}.get(c.name) for c in columns}
        for number, change in enumerate(changes, 1)
    ]
    extra = {name for change in changes for name in change} - {c.name for c in columns}
    texts = connection.create_table(
        "texts",
        ibis.memtable(
            [{k: None if v is None else str(v) for k, v in {**row, **change}.items()}
             for row, change in zip(rows, changes, strict=True)],
            schema={**{c.name: "string" for c in columns}, **dict.fromkeys(extra, "string")},
        ),
    )  # fmt: skip
    casts = {c.name: texts[c.name].cast(ibis_type(c.dtype)) for c in columns}
    if "gpus_stated" in extra:
        casts["gpus_stated"] = texts.gpus_stated.cast("int64")
    if "invoice_id" in extra:
        casts["invoice_id"] = texts.invoice_id
    found = finish(connection, texts.select(**casts), Lineage("cur", "d1", unit))
    records: list[dict[str, Any]] = found.order_by("source_row_no").to_pyarrow().to_pylist()
    connection.disconnect()
    return records


def test_gpu_hours_are_instance_hours_by_the_gpus_of_the_shape() -> None:
    (row,) = finished({})
    assert (row["gpu_model"], row["gpu_count"]) == ("H100-SXM5-80GB", 8)
    assert row["gpu_hours"] == 12  # 1.5 h x 8 GPUs


def test_a_machine_is_found_whatever_its_case_and_gets_the_cloud_s_spelling() -> None:
    (row,) = finished({"source": "azure", "instance_type": "standard_nd96ISR_h100_V5"})
    assert (row["instance_type"], row["gpu_count"]) == ("Standard_ND96isr_H100_v5", 8)


def test_look_alikes_of_h100_machines_are_not_h100() -> None:
    rows = finished({"instance_type": "p5en.48xlarge"}, {"instance_type": "p5e.48xlarge"},
                    {"source": "azure", "instance_type": "Standard_NC40ads_H100_v5"})  # fmt: skip
    assert [row["gpu_model"][:4] for row in rows] == ["H200", "H200", "H100"]
    assert "NVL" in rows[2]["gpu_model"]


def test_an_unknown_machine_has_no_gpus_unless_the_export_states_them() -> None:
    rows = finished({"instance_type": "x9.large"},
                    {"instance_type": "x9.large", "gpus_stated": 4},
                    {"instance_type": None, "instance_hours": None})  # fmt: skip
    assert [row["gpu_count"] for row in rows] == [None, 4, None]
    assert [row["gpu_hours"] for row in rows] == [None, 6, None]  # 1.5 h x 4 GPUs


def test_gpu_hours_that_the_export_counts_stay() -> None:
    gpu = {"source": "gcp", "instance_type": None, "instance_hours": None, "gpu_hours": "8",
           "sku_description": "Nvidia H100 80GB GPU running in Americas"}  # fmt: skip
    core = {**gpu, "gpu_hours": None, "sku_description": "A3 Instance Core running in Americas",
            "instance_type": "a3-highgpu-8g"}  # fmt: skip
    rows = finished(gpu, core)
    assert [row["gpu_hours"] for row in rows] == [8, None]
    assert rows[0]["gpu_model"] == "H100-SXM5-80GB"


def test_a_region_in_words_becomes_its_code_and_an_unknown_one_stays() -> None:
    rows = finished({"region": "US East (N. Virginia)"}, {"region": "USE1"},
                    {"source": "azure", "region": "US East"}, {"region": "Atlantis"},
                    {"region": None})  # fmt: skip
    assert [row["region"] for row in rows] == [
        "us-east-1", "us-east-1", "eastus", "atlantis", None,
    ]  # fmt: skip


def test_a_row_belongs_to_the_unit_of_its_account_and_period_or_of_the_manifest() -> None:
    (row,) = finished({"billing_account": "a|b"})
    assert row["unit"] == "aws|a/b|cur|2026-11"
    (row,) = finished({}, unit="aws|0011|cur|2026-10")
    assert row["unit"] == "aws|0011|cur|2026-10"
    assert (row["dataset"], row["export_id"]) == ("cur", "d1")


def test_every_declared_column_and_the_invoice_are_there() -> None:
    (row,) = finished({"invoice_id": "I-1"})
    assert list(row) == [*BILLING.names, "invoice_id"]
    assert row["invoice_id"] == "I-1"
    assert row["instance_hours"] == Decimal("1.5")
