"""GCP billing exports. Rows with H100 machines are made by us: no public file holds any."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import DataError
from data.schema import BILLING
from providers.contract import FINISHED_LATER
from providers.gcp.billing import normalise
from tests.exports import Rows, csv_file, json_lines, normal_form, sample

if TYPE_CHECKING:
    from pathlib import Path

VM = "//compute.googleapis.com/projects/ml/zones/us-central1-a/instances/4711"
ON_DEMAND = "Nvidia H100 80GB GPU running in Americas"
CUD = "COMMITTED_USAGE_DISCOUNT"


def labels(**values: str) -> list[dict[str, str]]:
    return [
        {"key": f"compute.googleapis.com/{key}", "value": value} for key, value in values.items()
    ]


def charge(sku: str, cost: str, **more: Any) -> dict[str, Any]:
    """Made by us: an hour of eight GPUs on an a3-highgpu-8g in the detailed export."""
    row: dict[str, Any] = {
        "billing_account_id": "00F3D8-28D652-3F036F",
        "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
        "sku": {"id": "A-1", "description": sku},
        "usage_start_time": "2026-09-02T10:00:00Z",
        "usage_end_time": "2026-09-02T11:00:00Z",
        "project": {"id": "ml", "number": "42", "name": "ML"},
        "labels": [{"key": "team", "value": "research"}],
        "system_labels": labels(machine_spec="a3-highgpu-8g"),
        "location": {"location": "us-central1", "region": "us-central1", "zone": "us-central1-a"},
        "resource": {"name": "train-1", "global_name": VM},
        "usage": {
            "amount": 28800, "unit": "seconds", "amount_in_pricing_units": 8,
            "pricing_unit": "hour",
        },
        "cost": cost,
        "currency": "USD",
        "credits": [],
        "invoice": {"month": "202609"},
        "cost_type": "regular",
    }  # fmt: skip
    return {**row, **more}


def credit(amount: str | float, kind: str | None = None, name: str = "c") -> dict[str, Any]:
    return {"name": name, "amount": amount, **({"type": kind} if kind else {})}


def read(tmp_path: Path, *rows: dict[str, Any]) -> Rows:
    return normal_form(normalise, json_lines(tmp_path / "export.jsonl", rows), "detailed")


def quantity(amount: float, unit: str) -> dict[str, Any]:
    return {"amount": amount, "unit": unit, "amount_in_pricing_units": amount, "pricing_unit": unit}


def test_one_vm_hour_in_four_skus_is_eight_gpu_hours_and_all_four_costs(tmp_path: Path) -> None:
    dws = "DWS Defined Duration"
    rows = read(
        tmp_path,
        # 8 x 4.200761, 208 x 0.010934, 1872 x 0.000952, 6000 x 0.0001096
        charge(f"Nvidia H100 80GB GPU attached to {dws} VMs running in Americas", "33.606088"),
        charge(f"{dws} A3 Core running in Americas", "2.274272", usage=quantity(208, "hour")),
        charge(f"{dws} A3 Ram running in Americas", "1.782144",
               usage=quantity(1872, "gibibyte hour")),
        charge(f"{dws} SSD backed Local Storage in Americas", "0.6576",
               usage=quantity(6000, "gibibyte hour")),
    )  # fmt: skip
    assert rows.total("effective_cost") == Decimal("38.320104")
    assert [row["gpu_hours"] for row in rows] == [8, None, None, None]
    assert [row["instance_hours"] for row in rows] == [1, None, None, None]  # 8 / 8
    assert {row["purchase_option"] for row in rows} == {"on_demand"}
    assert dws in rows[0]["sku_description"]
    assert {row["resource_id"] for row in rows} == {VM}
    assert {row["instance_type"] for row in rows} == {"a3-highgpu-8g"}
    assert rows.warnings == ()


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


@pytest.mark.parametrize(
    ("sku", "option"),
    [
        (ON_DEMAND, "on_demand"),
        ("Nvidia H100 80GB Plus GPU attached to A3 VMs running in Tokyo", "on_demand"),
        ("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas", "spot"),
        ("nvidia h100 80gb gpu attached to spot preemptible vms running in americas", "spot"),
        ("Reserved Nvidia H100 80GB GPU in Iowa in Calendar Mode", "capacity_block"),
        ("Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs", "on_demand"),
    ],
)
def test_the_sku_of_a_gpu_tells_how_it_was_bought_and_counts_hours(
    tmp_path: Path, sku: str, option: str
) -> None:
    (row,) = read(tmp_path, charge(sku, "80"))
    assert (row["purchase_option"], row["gpu_hours"]) == (option, 8)


def test_two_credits_on_a_row_are_both_taken_off_once_and_empty_lists_keep_the_row(
    tmp_path: Path,
) -> None:
    bare = charge("x", "10")
    del bare["credits"]
    rows = read(
        tmp_path,
        charge("x", "10", credits=[credit("-2"), credit(-1)]),  # 10 - 2 - 1 = 7
        charge("x", "10", credits=[]),
        bare,
    )
    assert [row["billed_cost"] for row in rows] == [7, 10, 10]
    assert [row["effective_cost"] for row in rows] == [7, 10, 10]


def test_credits_keep_every_digit(tmp_path: Path) -> None:
    line = json.dumps(charge("x", "1", credits=[{"name": "a", "amount": "@"}]))
    path = tmp_path / "export.jsonl"
    # Written by hand, as a number: 1 - 0.12345678901234567890123456
    path.write_text(line.replace('"@"', "-0.12345678901234567890123456") + "\n")
    (row,) = normal_form(normalise, path)
    assert row["billed_cost"] == Decimal("0.87654321098765432109876544")


def test_a_resource_commitment_is_a_fee_row_beside_usage_that_its_credits_pay(
    tmp_path: Path,
) -> None:
    fee = "commitment v1: Nvidia H100 80GB GPU running in Iowa for 1 Year"
    rows = read(
        tmp_path,
        charge(fee, "55", resource=None, subscription={"instance_id": "c-9"}),
        charge(ON_DEMAND, "80", credits=[credit("-80", CUD)]),
    )
    assert [row["charge_type"] for row in rows] == ["fee", "usage"]
    assert [row["purchase_option"] for row in rows] == ["reserved", "reserved"]
    assert [row["commitment_status"] for row in rows] == [None, "used"]
    assert [row["gpu_hours"] for row in rows] == [None, 8]
    assert [row["effective_cost"] for row in rows] == [55, 0]
    assert rows[0]["commitment_id"] == "c-9"
    assert rows.total("billed_cost") == 55  # 55 + 80 - 80: the money is counted once
    assert rows.warnings == (
        "commitment fee not apportioned: 1 fee rows keep their cost, and the usage they cover"
        " shows only what its credits leave",
    )


@pytest.mark.parametrize(
    ("cost", "amount", "option"),
    [
        ("10", "-5", "reserved"),
        ("10", "-4.99", "on_demand"),
        ("-10", "6", "reserved"),  # the correction of a covered row
        ("-10", "4", "on_demand"),
    ],
)
def test_a_row_covered_in_part_counts_whole_by_its_larger_part_with_a_warning(
    tmp_path: Path, cost: str, amount: str, option: str
) -> None:
    rows = read(tmp_path, charge(ON_DEMAND, cost, credits=[credit(amount, CUD)]))
    assert [row["purchase_option"] for row in rows] == [option]
    assert rows.total("effective_cost") == Decimal(cost) + Decimal(amount)
    assert "1 rows are covered in part" in rows.warnings[0]


def test_credits_of_before_2020_are_told_by_name(tmp_path: Path) -> None:
    named = [credit("-80", name="Committed Usage Discount: RAM")]
    (row,) = read(tmp_path, charge(ON_DEMAND, "80", credits=named))
    assert (row["purchase_option"], row["commitment_status"]) == ("reserved", "used")


def test_spend_commitments_are_told_by_consumption_model_or_credit(tmp_path: Path) -> None:
    fee = "Commitment - dollar based v1: GCE for 1 year"
    rows = read(
        tmp_path,
        charge(ON_DEMAND, "50", consumption_model={"id": "9", "description": "Flex CUD 1 Year"}),
        charge(ON_DEMAND, "80", consumption_model={"id": "1", "description": "Default"}),
        charge(ON_DEMAND, "80", credits=[credit("-80", f"{CUD}_DOLLAR_BASE")]),
        charge(fee, "100", credits=[credit("-70", "FEE_UTILIZATION_OFFSET")]),
    )
    options = ["savings_plan", "on_demand", "savings_plan", "savings_plan"]
    assert [row["purchase_option"] for row in rows] == options
    # What the offset leaves of the fee, 100 - 70 = 30, was committed and not used.
    assert [row["commitment_status"] for row in rows] == ["used", None, "used", "unused"]
    assert (rows[3]["effective_cost"], rows[3]["charge_type"]) == (30, "fee")
    assert rows.warnings == ()


def test_an_unused_reservation_costs_and_has_no_hours(tmp_path: Path) -> None:
    system = labels(
        machine_spec="a3-highgpu-8g", is_unused_reservation="true", reservation_name="block-1"
    )
    (row,) = read(tmp_path, charge(ON_DEMAND, "80", system_labels=system, resource=None))
    assert (row["commitment_status"], row["capacity_reservation_id"]) == ("unused", "block-1")
    assert (row["gpu_hours"], row["instance_hours"]) == (None, None)
    assert (row["effective_cost"], row["usage_qty"]) == (80, 8)
    assert (row["resource_id"], row["purchase_option"]) == (None, "on_demand")


def test_a_vm_inside_a_reservation_is_in_use(tmp_path: Path) -> None:
    system = labels(machine_spec="a3-highgpu-8g", reservation_name="block-1")
    (row,) = read(tmp_path, charge(ON_DEMAND, "80", system_labels=system))
    assert (row["commitment_status"], row["capacity_reservation_id"]) == (None, "block-1")
    assert row["gpu_hours"] == 8


def test_a_correction_pair_is_kept_and_restates_money_and_hours(tmp_path: Path) -> None:
    later = {"invoice": {"month": "202610"}}
    mark = {"adjustment_info": {"id": "adj-1", "type": "USAGE_CORRECTION",
                                "mode": "COMPLETE_NEGATION_WITH_REMONETIZATION"}}  # fmt: skip
    rows = read(
        tmp_path,
        charge(ON_DEMAND, "80"),
        charge(ON_DEMAND, "-80", usage=quantity(-8, "hour"), **later, **mark),
        charge(ON_DEMAND, "70", usage=quantity(7, "hour"), cost_type="adjustment", **later, **mark),
    )
    assert [row["is_correction"] for row in rows] == [False, True, True]
    assert {row["charge_type"] for row in rows} == {"usage"}
    assert rows.total("gpu_hours") == 7  # 8 - 8 + 7
    assert rows.total("effective_cost") == 70  # 80 - 80 + 70
    assert [row["billing_period"] for row in rows] == ["2026-09", "2026-10", "2026-10"]
    assert len({row["period_start"] for row in rows}) == 1


def test_a_promotion_is_in_the_net_cost_and_is_told(tmp_path: Path) -> None:
    rows = read(tmp_path, charge(ON_DEMAND, "80", credits=[credit("-30", "PROMOTION")]))
    assert (rows.total("billed_cost"), rows.total("effective_cost")) == (50, 50)
    assert rows[0]["purchase_option"] == "on_demand"
    assert "1 GPU rows carry a promotion or reseller margin" in rows.warnings[0]


@pytest.mark.parametrize(
    ("usage", "hours"),
    [
        ({"amount": 12600, "unit": "seconds"}, Decimal("3.5")),  # 12600 / 3600
        ({"amount": 100, "unit": "seconds"}, Decimal("0.0277777778")),  # at 10 places
        (quantity(2, "count"), None),
    ],
)
def test_gpu_hours_come_from_hours_or_seconds_and_else_are_unknown(
    tmp_path: Path, usage: dict[str, Any], hours: Decimal | None
) -> None:
    rows = read(tmp_path, charge(ON_DEMAND, "80", usage=usage))
    assert rows[0]["gpu_hours"] == hours
    assert ("GPU-hours are unknown" in "".join(rows.warnings)) == (hours is None)


def test_instance_hours_need_a_machine_type_with_fixed_gpus(tmp_path: Path) -> None:
    rows = read(
        tmp_path,
        charge(ON_DEMAND, "9", system_labels=labels(machine_spec="a3-highgpu-2g")),
        charge("Nvidia Tesla T4 GPU", "9", system_labels=labels(machine_spec="n1-standard-8")),
        charge(ON_DEMAND, "9", system_labels=[]),
    )
    assert [row["instance_hours"] for row in rows] == [4, None, None]  # 8 / 2
    assert [row["gpu_hours"] for row in rows] == [8, 8, 8]


def test_vertex_ai_is_managed_and_its_management_fee_counts_no_gpus(tmp_path: Path) -> None:
    vertex = {"service": {"id": "C7E2-9256-1C43", "description": "Vertex AI"}}
    rows = read(
        tmp_path,
        charge("Vertex AI: Training on Nvidia H100 80GB GPU in Americas", "80", **vertex),
        charge("Vertex AI: Management fee for Nvidia H100 GPU in Americas", "13.2", **vertex),
        charge("Kubernetes Engine: Autopilot Nvidia H100 GPU", "80",
               service={"id": "CCD8-9BF1-090E", "description": "Kubernetes Engine"}),
    )  # fmt: skip
    assert [row["managed_service"] for row in rows] == [True, True, True]
    assert [row["gpu_hours"] for row in rows] == [8, None, 8]


@pytest.mark.parametrize(
    ("cost_type", "charge_type", "correction"),
    [
        ("tax", "tax", False),
        ("rounding error", "adjustment", False),
        ("rounding_error", "adjustment", False),
        ("adjustment", "adjustment", True),
        ("mystery", "other", False),
        ("regular", "usage", False),
    ],
)
def test_the_cost_type_tells_the_charge(
    tmp_path: Path, cost_type: str, charge_type: str, correction: bool
) -> None:
    row = charge("Tax", "3", cost_type=cost_type, project={"id": None}, usage=None)
    (read_row,) = read(tmp_path, row)
    assert (read_row["charge_type"], read_row["is_correction"]) == (charge_type, correction)
    assert (read_row["account"], read_row["usage_qty"]) == (None, None)
    assert (read_row["purchase_option"] == "on_demand") == (charge_type == "usage")


@pytest.mark.parametrize(
    ("prices", "list_cost"),
    [
        ({"cost_at_list": "88.4"}, Decimal("88.4")),
        ({"price": {"list_price": "11.05", "pricing_unit_quantity": 1}}, Decimal("88.4")),
        ({"price": {"list_price": "11.05", "pricing_unit_quantity": "1000"}}, None),
        ({}, None),
    ],
)
def test_list_cost_is_stated_or_price_times_units_or_unknown(
    tmp_path: Path, prices: dict[str, Any], list_cost: Decimal | None
) -> None:
    (row,) = read(tmp_path, charge(ON_DEMAND, "80", **prices))  # 11.05 x 8 = 88.4
    assert row["list_cost"] == list_cost


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
