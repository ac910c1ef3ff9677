"""Cost and Usage Reports. Rows with commitments, spot and blocks are made by us."""

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
from providers.aws.billing import normalise
from tests.exports import Rows, csv_file, normal_form

if TYPE_CHECKING:
    from pathlib import Path

RI = "arn:aws:ec2:us-east-1:111122223333:reserved-instances/ri-1"
SP = "arn:aws:savingsplans::111122223333:savingsplan/sp-1"
BLOCK = "arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-1"
# Made by us: one hour of an H100 node on demand, in the spelling of CUR 2.0.
BASE = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "USE1-BoxUsage:p5.48xlarge",
    "line_item_product_code": "AmazonEC2", "line_item_operation": "RunInstances",
    "bill_payer_account_id": "000011112222", "line_item_usage_account_id": "000033334444",
    "bill_billing_period_start_date": "2026-11-01T00:00:00.000Z", "bill_invoice_id": "",
    "bill_bill_type": "Anniversary", "line_item_currency_code": "USD",
    "line_item_usage_start_date": "2026-11-02T03:00:00.000Z",
    "line_item_usage_end_date": "2026-11-02T04:00:00.000Z",
    "line_item_resource_id": "i-1", "line_item_availability_zone": "us-east-1a",
    "line_item_usage_amount": "1", "pricing_unit": "Hrs", "line_item_unblended_cost": "98.32",
    "pricing_public_on_demand_cost": "98.32", "product_instance_type": "p5.48xlarge",
    "line_item_line_item_description": "$98.32 per On Demand Linux p5.48xlarge Instance Hour",
    "reservation_reservation_a_r_n": "", "reservation_effective_cost": "",
    "reservation_unused_amortized_upfront_fee_for_billing_period": "",
    "reservation_unused_recurring_fee": "", "savings_plan_savings_plan_a_r_n": "",
    "savings_plan_savings_plan_effective_cost": "",
    "savings_plan_total_commitment_to_date": "", "savings_plan_used_commitment": "",
}  # fmt: skip
NO_HOURS = {"line_item_usage_amount": "1", "pricing_unit": "", "pricing_public_on_demand_cost": "",
            "product_instance_type": "", "line_item_resource_id": ""}  # fmt: skip
SP_COVERED = {"line_item_line_item_type": "SavingsPlanCoveredUsage",
              "savings_plan_savings_plan_a_r_n": SP,
              "savings_plan_savings_plan_effective_cost": "60.00"}  # fmt: skip
SP_NEGATION = {**NO_HOURS, "line_item_line_item_type": "SavingsPlanNegation",
               "line_item_unblended_cost": "-98.32", "pricing_unit": "Hrs",
               "savings_plan_savings_plan_a_r_n": SP}  # fmt: skip
SP_RECURRING = {**NO_HOURS, "line_item_line_item_type": "SavingsPlanRecurringFee",
                "line_item_usage_type": "ComputeSP:1yrNoUpfront",
                "line_item_product_code": "ComputeSavingsPlans",
                "line_item_unblended_cost": "75", "savings_plan_savings_plan_a_r_n": SP,
                "savings_plan_total_commitment_to_date": "75",
                "savings_plan_used_commitment": "60"}  # fmt: skip
RI_COVERED = {"line_item_line_item_type": "DiscountedUsage",
              "line_item_unblended_cost": "0", "reservation_reservation_a_r_n": RI,
              "reservation_effective_cost": "61.5"}  # fmt: skip
RI_FEE = {**NO_HOURS, "line_item_line_item_type": "RIFee",
          "line_item_usage_type": "USE1-HeavyUsage:p5.48xlarge", "line_item_unblended_cost": "1000",
          "reservation_reservation_a_r_n": RI,
          "reservation_unused_amortized_upfront_fee_for_billing_period": "12.25",
          "reservation_unused_recurring_fee": "3.5"}  # fmt: skip
BLOCK_FEE = {**NO_HOURS, "line_item_line_item_type": "Fee",
             "line_item_usage_type": "USE1-CapacityBlockFee:p5.48xlarge",
             "line_item_unblended_cost": "5000"}  # fmt: skip


def read(tmp_path: Path, *changes: dict[str, Any], **context: Any) -> Rows:
    rows = [{**BASE, **change} for change in changes]
    return normal_form(normalise, csv_file(tmp_path / "cur.csv", rows), "cur2", **context)


def test_an_hour_on_demand_has_its_place_machine_hours_and_costs(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {})
    assert (row["source"], row["billing_account"], row["account"]) == (
        "aws", "000011112222", "000033334444",
    )  # fmt: skip
    assert (row["region"], row["zone"]) == ("us-east-1", "us-east-1a")
    assert row["instance_type"] == "p5.48xlarge"
    assert row["instance_hours"] == 1
    assert row["purchase_option"] == "on_demand"
    assert (row["billed_cost"], row["effective_cost"], row["list_cost"]) == (
        Decimal("98.32"), Decimal("98.32"), Decimal("98.32"),
    )  # fmt: skip
    assert row["period_start"] == datetime(2026, 11, 2, 3, tzinfo=UTC)
    assert row["billing_period"] == "2026-11"
    assert row["commitment_status"] is None


def test_a_covered_row_and_its_negation_are_one_hour_at_the_plans_price(tmp_path: Path) -> None:
    rows = read(tmp_path, SP_COVERED, SP_NEGATION)
    assert rows.total("instance_hours") == 1
    assert rows.total("effective_cost") == 60  # not 98.32 + 60.00 = 158.32
    assert rows.total("billed_cost") == 0  # 98.32 - 98.32
    assert rows[1]["effective_cost"] == 0
    assert [row["purchase_option"] for row in rows] == ["savings_plan", "savings_plan"]
    assert [row["commitment_id"] for row in rows] == [SP, SP]


def test_the_recurring_fee_of_a_plan_costs_only_what_was_not_used(tmp_path: Path) -> None:
    rows = read(tmp_path, SP_COVERED, SP_NEGATION, SP_RECURRING)
    fee = rows[2]
    assert fee["effective_cost"] == 15  # 75 committed - 60 used
    assert (fee["commitment_status"], fee["instance_hours"]) == ("unused", None)
    assert rows.total("effective_cost") == 75  # 60 covered + 15 unused = the commitment
    assert rows.total("billed_cost") == 75  # 98.32 - 98.32 + 75


def test_a_plan_returned_within_its_window_adds_nothing_to_amortised_cost(tmp_path: Path) -> None:
    upfront = {**SP_RECURRING, "line_item_line_item_type": "SavingsPlanUpfrontFee",
               "line_item_unblended_cost": "8760"}  # fmt: skip
    refund = {**SP_RECURRING, "line_item_line_item_type": "Refund", "bill_bill_type": "Refund",
              "line_item_unblended_cost": "-8760"}  # fmt: skip
    rows = read(tmp_path, upfront, refund)
    assert [row["effective_cost"] for row in rows] == [0, 0]  # not -8760
    assert rows.total("billed_cost") == 0  # 8760 - 8760
    assert [row["is_correction"] for row in rows] == [False, True]


def test_reserved_usage_costs_its_share_and_the_fee_row_only_its_unused_part(
    tmp_path: Path,
) -> None:
    upfront = {**RI_FEE, "line_item_line_item_type": "Fee", "line_item_unblended_cost": "9000",
               "reservation_unused_amortized_upfront_fee_for_billing_period": "",
               "reservation_unused_recurring_fee": ""}  # fmt: skip
    rows = read(tmp_path, RI_COVERED, RI_FEE, upfront)
    assert [row["effective_cost"] for row in rows] == [
        Decimal("61.5"),
        Decimal("15.75"),  # 12.25 + 3.5
        0,
    ]
    assert [row["commitment_status"] for row in rows] == ["used", "unused", None]
    assert [row["purchase_option"] for row in rows] == ["reserved"] * 3
    assert rows.total("instance_hours") == 1
    assert rows.total("billed_cost") == 10000  # 0 + 1000 + 9000


def test_spot_is_told_by_the_usage_type(tmp_path: Path) -> None:
    spot = {"line_item_usage_type": "USE1-SpotUsage:p5.48xlarge", "line_item_unblended_cost": "41"}
    (row,) = read(tmp_path, spot)
    assert (row["purchase_option"], row["instance_hours"]) == ("spot", 1)


def test_a_capacity_block_fee_stands_on_its_own_row_net_of_its_refund(tmp_path: Path) -> None:
    refund = {**BLOCK_FEE, "line_item_line_item_type": "Refund",
              "line_item_unblended_cost": "-2000"}  # fmt: skip
    rows = read(tmp_path, BLOCK_FEE, refund)
    assert rows.total("effective_cost") == 3000  # 5000 - 2000, not spread: no dates on the bill
    assert [row["charge_type"] for row in rows] == ["fee", "refund"]
    assert {row["purchase_option"] for row in rows} == {"capacity_block"}
    assert rows.total("instance_hours") is None


def test_hours_inside_a_capacity_block_cost_nothing_and_are_of_the_block(tmp_path: Path) -> None:
    inside = {"line_item_unblended_cost": "0",
              "capacity_reservation_capacity_reservation_arn": BLOCK,
              "capacity_reservation_capacity_reservation_type": "EC2 Capacity Block for ML",
              "capacity_reservation_capacity_reservation_status": "Used"}  # fmt: skip
    (row,) = read(tmp_path, inside)
    assert (row["purchase_option"], row["instance_hours"]) == ("capacity_block", 1)
    assert row["capacity_reservation_id"] == BLOCK
    assert row["effective_cost"] == 0


def test_an_unused_capacity_reservation_has_cost_and_no_hours(tmp_path: Path) -> None:
    unused = {"line_item_usage_type": "USE1-UnusedBox:p5.48xlarge", "line_item_resource_id": BLOCK}
    (row,) = read(tmp_path, unused)
    assert row["instance_hours"] is None
    assert row["effective_cost"] == Decimal("98.32")
    assert (row["commitment_status"], row["charge_type"]) == ("unused", "usage")


def test_a_negotiated_discount_row_counts_where_no_net_columns_exist(tmp_path: Path) -> None:
    discount = {**NO_HOURS, "line_item_line_item_type": "EdpDiscount",
                "line_item_unblended_cost": "-9.832"}  # fmt: skip
    rows = read(tmp_path, {}, discount)
    assert rows.total("effective_cost") == Decimal("88.488")  # 98.32 - 9.832
    assert rows[1]["charge_type"] == "discount"


def test_net_columns_hold_the_discount_and_the_discount_row_then_counts_nothing(
    tmp_path: Path,
) -> None:
    usage = {"line_item_net_unblended_cost": "88.488"}
    covered = {**SP_COVERED, "savings_plan_net_savings_plan_effective_cost": "54"}
    discount = {**NO_HOURS, "line_item_line_item_type": "EdpDiscount",
                "line_item_unblended_cost": "-9.832"}  # fmt: skip
    rows = read(tmp_path, usage, covered, discount)
    assert [row["effective_cost"] for row in rows] == [Decimal("88.488"), 54, 0]
    assert rows.total("billed_cost") == Decimal("186.808")  # 98.32 + 98.32 - 9.832


def test_net_columns_that_are_empty_throughout_are_no_net_columns(tmp_path: Path) -> None:
    usage = {"line_item_net_unblended_cost": ""}
    discount = {**NO_HOURS, "line_item_line_item_type": "PrivateRateDiscount",
                "line_item_unblended_cost": "-8.32"}  # fmt: skip
    assert read(tmp_path, usage, discount).total("effective_cost") == 90  # 98.32 - 8.32


def test_tax_credits_and_other_fees_keep_their_cost_under_their_own_charge_type(
    tmp_path: Path,
) -> None:
    kinds = {"Tax": "8", "Credit": "-5", "BundledDiscount": "-1", "Fee": "20"}
    rows = read(tmp_path, *({**NO_HOURS, "line_item_line_item_type": kind,
                             "line_item_usage_type": "", "line_item_unblended_cost": cost}
                            for kind, cost in kinds.items()))  # fmt: skip
    assert [row["charge_type"] for row in rows] == ["tax", "credit", "discount", "fee"]
    assert rows.total("effective_cost") == 22  # 8 - 5 - 1 + 20
    assert {row["purchase_option"] for row in rows} == {"unknown"}


def test_pod_rows_of_split_cost_allocation_repeat_no_money_and_no_hours(tmp_path: Path) -> None:
    pod = {"split_line_item_parent_resource_id": "i-1", "split_line_item_split_cost": "49.16",
           "line_item_resource_id": "arn:aws:eks:us-east-1:1:pod/c/ns/p"}  # fmt: skip
    rows = read(tmp_path, {}, pod, pod)
    assert len(rows) == 3
    assert rows.total("effective_cost") == Decimal("98.32")
    assert rows.total("billed_cost") == Decimal("98.32")
    assert rows.total("list_cost") == Decimal("98.32")
    assert rows.total("instance_hours") == 1


def test_only_rows_counted_in_hours_of_an_instance_are_hours(tmp_path: Path) -> None:
    rows = read(
        tmp_path,
        {"line_item_usage_type": "USE1-EBSOptimized:p5.48xlarge"},
        {"line_item_usage_type": "USE1-Reservation:p5.48xlarge"},
        {"line_item_usage_type": "USE1-DataTransfer-Out-Bytes", "pricing_unit": "GB"},
        {"line_item_product_code": "ElasticMapReduce"},
        {"line_item_usage_type": "USE1-DedicatedUsage:p5.48xlarge"},
        {"line_item_usage_type": "BoxUsage"},
    )
    assert [row["instance_hours"] for row in rows] == [None, None, None, None, 1, 1]


def test_sizes_of_sagemaker_count_hours_as_a_managed_service(tmp_path: Path) -> None:
    managed = {"line_item_product_code": "AmazonSageMaker", "product_instance_type": "",
               "line_item_usage_type": "USE1-Train:ml.p5.48xlarge"}  # fmt: skip
    (row,) = read(tmp_path, managed)
    assert (row["managed_service"], row["instance_type"]) == (True, "ml.p5.48xlarge")
    assert (row["instance_hours"], row["purchase_option"]) == (1, "on_demand")


def test_the_machine_type_follows_from_the_usage_type_where_no_column_has_it(
    tmp_path: Path,
) -> None:
    bare = {"product_instance_type": "", "line_item_availability_zone": ""}
    near = {**bare, "line_item_usage_type": "BoxUsage:p5en.48xlarge"}
    rows = read(tmp_path, bare, near)
    assert [row["instance_type"] for row in rows] == ["p5.48xlarge", "p5en.48xlarge"]
    assert [row["region"] for row in rows] == ["USE1", "us-east-1"]  # no prefix: us-east-1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("resourceTags/user:team", "research"),
        ("resource_tags_user_team", "research"),
        ("resource_tags", '{"user_team": "research"}'),
        ("resource_tags", '{"user:team": "research"}'),
        ("tags", '{"team": "research"}'),
    ],
)
def test_tags_of_every_spelling_become_one_map_without_the_users_prefix(
    tmp_path: Path, column: str, value: str
) -> None:
    (row,) = read(tmp_path, {column: value})
    assert json.loads(row["tags"]) == {"team": "research"}


def test_an_empty_tag_map_is_missing_and_a_quote_in_a_tag_survives(tmp_path: Path) -> None:
    rows = read(tmp_path, {"resourceTags/user:a": 'x"y\nz'}, {})
    assert json.loads(rows[0]["tags"]) == {"a": 'x"y\nz'}
    assert rows[1]["tags"] is None
    assert read(tmp_path, {"resource_tags": "{}"})[0]["tags"] is None


def test_the_legacy_spelling_reads_like_the_new_one(tmp_path: Path) -> None:
    words = {
        "bill": "bill", "line_item": "lineItem", "pricing": "pricing", "product": "product",
        "reservation": "reservation", "savings_plan": "savingsPlan",
    }  # fmt: skip

    def legacy(name: str) -> str:
        group = next(word for word in words if name.startswith(word + "_"))
        rest = name.removeprefix(group + "_").split("_")
        return f"{words[group]}/{''.join(part.capitalize() for part in rest)}"

    new = read(tmp_path, SP_COVERED, RI_FEE, BLOCK_FEE)
    renamed = [
        {legacy(name): value for name, value in {**BASE, **change}.items()}
        for change in (SP_COVERED, RI_FEE, BLOCK_FEE)
    ]
    path = csv_file(tmp_path / "legacy.csv", renamed)
    assert normal_form(normalise, path, "cur") == new


def test_parquet_maps_and_typed_columns_read_like_text(tmp_path: Path) -> None:
    path = tmp_path / "cur2.parquet"
    row = {name: value or None for name, value in BASE.items()}
    typed = {name: pa.array([value], pa.string()) for name, value in row.items()}
    typed["line_item_unblended_cost"] = pa.array([98.32], pa.float64())
    typed["line_item_usage_start_date"] = pa.array(
        [datetime(2026, 11, 2, 3, tzinfo=UTC)], pa.timestamp("ms", tz="UTC")
    )
    typed["resource_tags"] = pa.array([[("user_team", "ml")]], pa.map_(pa.string(), pa.string()))
    typed["product"] = pa.array([[("region_code", "eu-west-1")]], pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table(typed), path)
    (found,) = normal_form(normalise, path, "cur2")
    assert found["billed_cost"] == Decimal("98.32")  # by its shortest text, not 98.31999...
    assert found["period_start"] == datetime(2026, 11, 2, 3, tzinfo=UTC)
    assert json.loads(found["tags"]) == {"team": "ml"}
    assert found["region"] == "eu-west-1"


def test_scientific_notation_and_long_fractions_are_exact(tmp_path: Path) -> None:
    costs = ["6.123E-7", "1.60230869740e-05", "0.12345678901234567890123456", "-0"]
    rows = read(tmp_path, *({"line_item_unblended_cost": cost} for cost in costs))
    assert [row["billed_cost"] for row in rows] == [Decimal(cost) for cost in costs]


@pytest.mark.parametrize("cell", ["NaN", "inf", "-Infinity", "12,5", "1234567890123"])
@pytest.mark.parametrize("column", ["line_item_unblended_cost", "reservation_effective_cost"])
def test_a_cell_that_is_no_amount_stops_the_reading_even_where_no_rule_uses_it(
    tmp_path: Path, cell: str, column: str
) -> None:
    with pytest.raises(duckdb.Error):
        read(tmp_path, {}, {column: cell})


def test_every_missing_required_column_is_listed_at_once(tmp_path: Path) -> None:
    gone = ("line_item_unblended_cost", "line_item_usage_start_date", "bill_payer_account_id")
    row = {name: value for name, value in BASE.items() if name not in gone}
    with pytest.raises(DataError) as caught:
        normal_form(normalise, csv_file(tmp_path / "cur.csv", [row]), "cur2")
    assert {problem.where for problem in caught.value.problems} == set(gone)


def test_a_report_without_a_currency_column_says_so(tmp_path: Path) -> None:
    row = {name: value for name, value in BASE.items() if name != "line_item_currency_code"}
    rows = normal_form(normalise, csv_file(tmp_path / "cur.csv", [row]), "cur2")
    assert rows[0]["currency"] == "unknown"
    assert "currency" in rows.warnings[0]
