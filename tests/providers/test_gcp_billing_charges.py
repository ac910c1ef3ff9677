"""GCP charges: their hours, credits, commitments and corrections. The rows are made by us."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.providers.gcp_cases import CUD, ON_DEMAND, VM, charge, credit, labels, read

if TYPE_CHECKING:
    from pathlib import Path


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
    assert [row["committed_cost"] for row in rows] == [55, None]
    assert [row["covered_qty"] for row in rows] == [None, 8]  # all of the 8 GPU-hours
    assert rows.warnings == ()


@pytest.mark.parametrize(
    ("cost", "amount", "option", "covered"),
    [
        ("10", "-5", "reserved", "4"),  # of 8 GPU-hours
        ("10", "-4.99", "on_demand", "3.992"),
        ("-10", "6", "reserved", "4.8"),  # the correction of a covered row
        ("-10", "4", "on_demand", "3.2"),
    ],
)
def test_a_row_covered_in_part_says_how_much_a_commitment_covers(
    tmp_path: Path, cost: str, amount: str, option: str, covered: str
) -> None:
    rows = read(tmp_path, charge(ON_DEMAND, cost, credits=[credit(amount, CUD)]))
    assert [row["purchase_option"] for row in rows] == [option]
    assert rows.total("effective_cost") == Decimal(cost) + Decimal(amount)
    assert rows.total("covered_qty") == Decimal(covered)
    assert rows.warnings == ()


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
    assert (rows[0]["purchase_option"], rows[0]["payment_credits"]) == ("on_demand", -30)
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
