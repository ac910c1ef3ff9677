"""GCP billing exports as files: nested, flattened, incomplete, and two that are real."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import DataError
from data.schema import BILLING
from providers.contract import FINISHED_LATER
from providers.gcp.billing import normalise
from tests.exports import csv_file, normal_form, sample
from tests.providers.gcp_cases import CUD, ON_DEMAND, charge, credit, read

if TYPE_CHECKING:
    from pathlib import Path


def test_a_row_has_its_project_place_hour_month_and_labels(tmp_path: Path) -> None:
    (row,) = read(tmp_path, charge(ON_DEMAND, "80"))
    assert (row["billing_account"], row["account"]) == ("00F3D8-28D652-3F036F", "ml")
    assert (row["region"], row["zone"]) == ("us-central1", "us-central1-a")
    assert row["period_start"] == datetime(2026, 9, 2, 10, tzinfo=UTC)
    assert row["period_end"] == datetime(2026, 9, 2, 11, tzinfo=UTC)
    assert row["billing_period"] == "2026-09"
    assert (row["resource_name"], row["service"]) == ("train-1", "Compute Engine")
    assert json.loads(row["tags"]) == {"team": "research"}
    assert (row["usage_qty"], row["usage_unit"]) == (8, "hour")
    assert (row["managed_service"], row["is_correction"]) == (False, False)


def test_credits_keep_every_digit(tmp_path: Path) -> None:
    line = json.dumps(charge("x", "1", credits=[{"name": "a", "amount": "@"}]))
    path = tmp_path / "export.jsonl"
    # Written by hand, as a number: 1 - 0.12345678901234567890123456
    path.write_text(line.replace('"@"', "-0.12345678901234567890123456") + "\n")
    (row,) = normal_form(normalise, path)
    assert row["billed_cost"] == Decimal("0.87654321098765432109876544")


def test_byte_seconds_beyond_an_exact_number_are_no_quantity_and_no_fault(tmp_path: Path) -> None:
    usage = {"amount": 7.01788848128e15, "unit": "byte-seconds"}
    (row,) = read(tmp_path, charge("Active Storage", "0.1", usage=usage))
    assert (row["usage_qty"], row["billed_cost"]) == (None, Decimal("0.1"))


def flattened(**more: str) -> dict[str, str]:
    """Made by us: the same row as Python prints it into a flattened CSV."""
    row = {
        "billing_account_id": "00F3D8-28D652-3F036F", "service.id": "6F81-5844-456A",
        "service.description": "Compute Engine", "sku.id": "A-1", "sku.description": ON_DEMAND,
        "usage_start_time": "2026-09-02 10:00:00+00:00",
        "usage_end_time": "2026-09-02 11:00:00+00:00", "project.id": "ml",
        "location.location": "us", "location.region": "", "resource.name": "train-1",
        "usage.amount": "28800.0", "usage.unit": "seconds",
        "usage.amount_in_pricing_units": "8.0", "usage.pricing_unit": "hour",
        "cost": "8e1", "currency": "USD", "invoice.month": "202609", "cost_type": "regular",
        "labels": "[{'key': 'team', 'value': \"o'neil\"}, {'key': 'x', 'value': None}]",
        "system_labels": "[{'key': 'compute.googleapis.com/machine_spec', "
        "'value': 'a3-highgpu-8g'}]",
        "credits": "[{'name': 'say \"hi\"', 'amount': -2e-06, 'full_name': None, "
        "'type': 'PROMOTION'}, {'name': 'b', 'amount': Decimal('-1'), 'type': None}]",
    }  # fmt: skip
    return {**row, **more}


def test_flattened_files_with_lists_as_python_prints_them_are_read(tmp_path: Path) -> None:
    (row,) = normal_form(normalise, csv_file(tmp_path / "x.csv", [flattened()]))
    assert row["billed_cost"] == Decimal("78.999998")  # 80 - 0.000002 - 1
    assert json.loads(row["tags"]) == {"team": "o'neil", "x": ""}
    assert (row["instance_type"], row["gpu_hours"]) == ("a3-highgpu-8g", 8)
    assert (row["region"], row["resource_id"]) == ("us", "train-1")


@pytest.mark.parametrize(
    "cell",
    ["[{'name': 'a'}]", "[{'amount': nan}]", "[{'amount': 'ten'}]", "[{'amount': -1", "-1",
     "[None]"],
)  # fmt: skip
def test_credits_that_cannot_be_read_are_an_error_that_names_the_row(
    tmp_path: Path, cell: str
) -> None:
    path = csv_file(tmp_path / "x.csv", [flattened(), flattened(credits=cell)])
    with pytest.raises(DataError, match="credits that cannot be read") as caught:
        normal_form(normalise, path)
    assert [problem.where for problem in caught.value.problems] == ["row 2, credits"]


@pytest.mark.parametrize("cell", ["{}", "[]", "null", "None", ""])
def test_an_empty_list_of_credits_is_no_credit_in_every_spelling(tmp_path: Path, cell: str) -> None:
    (row,) = normal_form(normalise, csv_file(tmp_path / "x.csv", [flattened(credits=cell)]))
    assert row["billed_cost"] == 80


def test_labels_as_an_object_are_kept_as_they_are(tmp_path: Path) -> None:
    (row,) = read(tmp_path, charge(ON_DEMAND, "80", labels={"team": "a"}))
    assert json.loads(row["tags"]) == {"team": "a"}


def test_labels_that_cannot_be_read_are_kept_as_raw_text(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "x.csv", [flattened(labels="[{'key': 'a")])
    (row,) = normal_form(normalise, path)
    assert list(json.loads(row["tags"])) == ["_raw"]


def test_every_missing_required_column_is_listed(tmp_path: Path) -> None:
    lacking = {
        name: value
        for name, value in flattened().items()
        if name not in ("cost", "sku.description", "usage_end_time")
    }
    with pytest.raises(DataError, match="required columns are missing") as caught:
        normal_form(normalise, csv_file(tmp_path / "x.csv", [lacking]))
    assert [problem.where for problem in caught.value.problems] == [
        "cost", "sku.description", "usage_end_time",
    ]  # fmt: skip


def test_a_file_without_currency_is_of_currency_unknown_with_a_warning(tmp_path: Path) -> None:
    lacking = {name: value for name, value in flattened().items() if name != "currency"}
    rows = normal_form(normalise, csv_file(tmp_path / "x.csv", [lacking]))
    assert rows[0]["currency"] == "unknown"
    assert rows.warnings[0] == "no currency column: amounts are of currency 'unknown'"


@pytest.mark.parametrize("cell", ["NaN", "inf", "1,5", "1e13"])
@pytest.mark.parametrize("column", ["cost", "usage.amount_in_pricing_units", "cost_at_list"])
def test_an_amount_that_is_no_number_fails(tmp_path: Path, column: str, cell: str) -> None:
    rows = [flattened(**{"cost_at_list": "1"}), flattened(**{"cost_at_list": "1", column: cell})]
    with pytest.raises((DataError, duckdb.Error)):
        normal_form(normalise, csv_file(tmp_path / "x.csv", rows))


def test_parquet_with_nested_fields_gives_the_rows_of_json(tmp_path: Path) -> None:
    rows = [
        charge(ON_DEMAND, "80", credits=[credit("-2", CUD), credit("-1", "PROMOTION")]),
        charge("A3 Instance Core running in Americas", "3.5", credits=[credit("0", "DISCOUNT")]),
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "export.parquet")
    from_json = read(tmp_path, *rows)
    assert normal_form(normalise, tmp_path / "export.parquet") == from_json
    assert from_json.total("billed_cost") == Decimal("80.5")  # 80 - 2 - 1 + 3.5


def test_every_column_of_billing_is_given_but_those_of_the_common_last_step(
    tmp_path: Path,
) -> None:
    (row,) = read(tmp_path, charge(ON_DEMAND, "80"))
    assert set(BILLING.names) - set(FINISHED_LATER) <= set(row)


def test_totals_of_the_real_export_with_commitments(tmp_path: Path) -> None:
    rows = normal_form(normalise, sample("gcp/standard_export_cud_sud.json"))
    assert len(rows) == 6
    assert rows.total("billed_cost") == rows.total("effective_cost") == 190
    assert rows.total("billed_cost", account="project-1", charge_type="usage") == 50  # 70 - 20
    assert rows.total("billed_cost", account="project-1", charge_type="fee") == 100
    assert rows.total("billed_cost", account="project-2") == 0  # 70 - 70
    assert rows.total("billed_cost", account="project-3") == 40  # 70 - 30
    assert rows.total("gpu_hours") is None
    assert [row["purchase_option"] for row in rows if row["charge_type"] == "fee"] == ["reserved"]


def test_totals_of_the_real_flattened_export(tmp_path: Path) -> None:
    rows = normal_form(normalise, sample("gcp/standard_export_flattened_2020-11.csv"))
    assert len(rows) == 25
    assert rows.total("billed_cost") == rows.total("effective_cost") == 0
    assert rows.warnings == ()
    assert {row["billing_period"] for row in rows} == {"2020-11"}
