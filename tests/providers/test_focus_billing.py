"""FOCUS datasets. Rows with GPUs and commitments are made by us unless a sample is named."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import DataError
from providers.focus.billing import normalise
from tests.exports import Rows, csv_file, normal_form, sample

if TYPE_CHECKING:
    from pathlib import Path

SP = "arn:aws:savingsplans::1:savingsplan/sp-1"
# Made by us: one hour of an H100 node in FOCUS 1.2.
BASE = {
    "ServiceProviderName": "", "ProviderName": "AWS", "BillingAccountId": "000011112222",
    "SubAccountId": "000033334444", "BillingCurrency": "USD",
    "BillingPeriodStart": "2026-11-01T00:00:00Z", "BillingPeriodEnd": "2026-12-01T00:00:00Z",
    "ChargePeriodStart": "2026-11-02T03:00:00Z", "ChargePeriodEnd": "2026-11-02T04:00:00Z",
    "ChargeCategory": "Usage", "ChargeClass": "", "ChargeDescription": "", "RegionId": "us-east-1",
    "AvailabilityZone": "us-east-1a", "ResourceId": "i-1", "ServiceName": "Amazon EC2",
    "SkuId": "S1", "SkuPriceDetails": '{"InstanceType": "p5.48xlarge", "GpuCount": 8}',
    "ConsumedQuantity": "1", "ConsumedUnit": "Hours", "PricingCategory": "Standard",
    "CommitmentDiscountId": "", "CommitmentDiscountCategory": "", "CommitmentDiscountType": "",
    "CommitmentDiscountStatus": "", "CapacityReservationId": "", "CapacityReservationStatus": "",
    "BilledCost": "98.32", "EffectiveCost": "98.32", "ListCost": "98.32",
    "Tags": '{"team": "ml"}', "InvoiceId": "",
}  # fmt: skip
COVERED = {"PricingCategory": "Committed", "BilledCost": "0", "EffectiveCost": "60",
           "CommitmentDiscountId": SP, "CommitmentDiscountStatus": "Used"}  # fmt: skip


def read(tmp_path: Path, *changes: dict[str, Any]) -> Rows:
    rows = [{**BASE, **change} for change in changes]
    return normal_form(normalise, csv_file(tmp_path / "focus.csv", rows), "focus")


def test_an_hour_has_its_machine_hours_and_costs(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {})
    assert (row["source"], row["billing_account"], row["account"]) == (
        "aws", "000011112222", "000033334444",
    )  # fmt: skip
    assert (row["instance_type"], row["instance_hours"]) == ("p5.48xlarge", 1)
    assert row["purchase_option"] == "on_demand"
    assert row["period_start"] == datetime(2026, 11, 2, 3, tzinfo=UTC)
    assert row["billing_period"] == "2026-11"
    assert row["tags"] == '{"team": "ml"}'


def test_an_azure_subscription_is_its_guid(tmp_path: Path) -> None:
    guid = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    (row,) = read(tmp_path, {"ProviderName": "Microsoft", "SubAccountId": f"/subscriptions/{guid}"})
    assert row["account"] == guid


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("AWS", "aws"), ("Amazon Web Services", "aws"), ("Microsoft", "azure"),
        ("Microsoft Azure", "azure"), ("Google Cloud", "gcp"), ("Oracle", "oracle"),
        ("Aura Web", "aura-web"), ("CoreWeave", "coreweave"), ("", "unknown"),
    ],
)  # fmt: skip
def test_the_source_of_a_row_is_the_short_name_of_its_provider(
    tmp_path: Path, name: str, source: str
) -> None:
    assert read(tmp_path, {"ProviderName": name})[0]["source"] == source


def test_the_service_provider_outranks_the_deprecated_provider_name(tmp_path: Path) -> None:
    assert read(tmp_path, {"ServiceProviderName": "Google Cloud"})[0]["source"] == "gcp"


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"PricingCategory": "Dynamic"}, "spot"),
        ({**COVERED, "CommitmentDiscountCategory": "Spend"}, "savings_plan"),
        ({**COVERED, "CommitmentDiscountCategory": "Usage"}, "reserved"),
        ({**COVERED, "CommitmentDiscountType": "Reservation"}, "reserved"),
        ({**COVERED, "CommitmentDiscountType": "Committed Use Discount (Resource)"}, "reserved"),
        ({"PricingCategory": "Committed", "CapacityReservationId": "cr-1"}, "capacity_block"),
        ({"PricingCategory": "Standard", "CapacityReservationId": "cr-1"}, "on_demand"),
        ({"PricingCategory": "", "ChargeCategory": "Tax"}, "unknown"),
        ({"ChargeCategory": "Purchase", "CommitmentDiscountId": SP,
          "CommitmentDiscountCategory": "Spend"}, "savings_plan"),
        ({"ChargeCategory": "Purchase"}, "unknown"),
    ],
)  # fmt: skip
def test_the_purchase_option_follows_pricing_category_and_commitment(
    tmp_path: Path, change: dict[str, str], option: str
) -> None:
    assert read(tmp_path, change)[0]["purchase_option"] == option


def test_an_unused_commitment_keeps_its_option_and_has_no_hours(tmp_path: Path) -> None:
    unused = {**COVERED, "CommitmentDiscountCategory": "Spend", "ConsumedQuantity": "",
              "CommitmentDiscountStatus": "Unused", "CommitmentDiscountQuantity": "40",
              "CommitmentDiscountUnit": "USD"}  # fmt: skip
    (row,) = read(tmp_path, unused)
    assert (row["commitment_status"], row["instance_hours"]) == ("unused", None)
    assert (row["purchase_option"], row["effective_cost"]) == ("savings_plan", 60)


def test_an_unused_capacity_reservation_counts_no_hours_even_with_a_quantity(
    tmp_path: Path,
) -> None:
    unused = {"CapacityReservationId": "cr-1", "CapacityReservationStatus": "Unused"}
    (row,) = read(tmp_path, unused)
    assert (row["commitment_status"], row["instance_hours"]) == ("unused", None)


def test_hours_need_a_machine_a_usage_charge_and_a_unit_of_hours(tmp_path: Path) -> None:
    rows = read(
        tmp_path,
        {"ConsumedUnit": "Hour"},
        {"ConsumedUnit": "10 Hours", "ConsumedQuantity": "2.4"},
        {"ConsumedUnit": "GB"},
        {"SkuPriceDetails": ""},
        {"ChargeCategory": "Purchase"},
        {"x_UsageType": "USE1-EBSOptimized:p5.48xlarge"},
        {"x_UsageType": "USE1-BoxUsage:p5.48xlarge"},
        {"x_SkuMeterCategory": "Virtual Machines Licenses"},
    )
    hours = [row["instance_hours"] for row in rows]
    assert hours == [1, 24, None, None, None, None, 1, None]  # 2.4 x 10 hours


@pytest.mark.parametrize(
    ("change", "machine"),
    [
        ({"x_InstanceType": "p5e.48xlarge"}, "p5e.48xlarge"),
        ({"x_SkuDetails": '{"ServiceType": "Standard_ND96isr_H100_v5"}'},
         "Standard_ND96isr_H100_v5"),
        ({"x_UsageType": "USW2-SpotUsage:p5.4xlarge"}, "p5.4xlarge"),
        ({"SkuMeter": "ND96isr H100 v5 Spot"}, "Standard_ND96isr_H100_v5"),
        ({"ChargeDescription": "$1.624 per On Demand Linux g5.4xlarge Instance Hour"},
         "g5.4xlarge"),
        ({"ChargeDescription": "$0.40 per million requests in us.west"}, None),
    ],
)  # fmt: skip
def test_the_machine_is_looked_for_in_details_own_columns_meter_and_description(
    tmp_path: Path, change: dict[str, str], machine: str | None
) -> None:
    assert read(tmp_path, {"SkuPriceDetails": "", **change})[0]["instance_type"] == machine


def test_gpu_hours_of_google_come_from_the_gpu_sku_alone(tmp_path: Path) -> None:
    google = {"ProviderName": "Google Cloud", "SkuPriceDetails": "", "ConsumedQuantity": "8"}
    rows = read(
        tmp_path,
        {**google, "ChargeDescription": "Nvidia H100 80GB GPU running in Americas"},
        {**google, "ChargeDescription": "A3 Instance Core running in Americas"},
        {**google, "ChargeDescription": "Commitment v1: Nvidia H100 80GB GPU running in Iowa"},
    )
    assert [row["gpu_hours"] for row in rows] == [8, None, None]
    assert rows.total("instance_hours") is None


def test_purchase_and_usage_of_a_commitment_are_told_apart_for_savings(tmp_path: Path) -> None:
    purchase = {"ChargeCategory": "Purchase", "ListCost": "20000", "BilledCost": "20000",
                "EffectiveCost": "0", "CommitmentDiscountId": SP,
                "CommitmentDiscountCategory": "Spend"}  # fmt: skip
    usage = {**COVERED, "ListCost": "30000", "EffectiveCost": "20000",
             "CommitmentDiscountCategory": "Spend"}  # fmt: skip
    rows = read(tmp_path, purchase, usage)
    listed = rows.total("list_cost", charge_type="usage")
    paid = rows.total("effective_cost", charge_type="usage")
    assert listed is not None
    assert paid is not None
    assert listed - paid == 10000  # not 50,000 - 20,000


def test_a_price_in_the_availability_zone_is_no_zone(tmp_path: Path) -> None:
    rows = read(tmp_path, {"AvailabilityZone": "0.0416"}, {"AvailabilityZone": "1"})
    assert [row["zone"] for row in rows] == [None, "1"]


def test_missing_words_and_empty_cells_alike_are_missing(tmp_path: Path) -> None:
    for word in ("NULL", "null", "None", ""):
        (row,) = read(tmp_path, {"SubAccountId": word, "Tags": word, "ListCost": word})
        assert (row["account"], row["tags"], row["list_cost"]) == (None, None, None)
    assert read(tmp_path, {"Tags": "{}"})[0]["tags"] is None


def test_a_correction_is_marked_and_keeps_its_sign(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"ChargeClass": "Correction", "EffectiveCost": "-98.32",
                             "ConsumedQuantity": "-1"})  # fmt: skip
    assert row["is_correction"] is True
    assert (row["effective_cost"], row["instance_hours"]) == (Decimal("-98.32"), -1)


def test_a_dataset_without_period_account_and_currency_columns_is_read(tmp_path: Path) -> None:
    gone = {"BillingPeriodStart", "BillingAccountId", "BillingCurrency", "ProviderName",
            "ServiceProviderName"}  # fmt: skip
    row = {name: value for name, value in BASE.items() if name not in gone}
    rows = normal_form(normalise, csv_file(tmp_path / "f.csv", [row]), "focus")
    assert rows[0]["billing_period"] == "2026-11"
    assert (rows[0]["source"], rows[0]["billing_account"]) == ("unknown", "unknown")
    assert rows[0]["currency"] == "unknown"
    assert "currency" in rows.warnings[0]


def test_every_missing_required_column_is_listed_at_once(tmp_path: Path) -> None:
    gone = ("EffectiveCost", "ChargePeriodStart")
    row = {name: value for name, value in BASE.items() if name not in gone}
    with pytest.raises(DataError) as caught:
        normal_form(normalise, csv_file(tmp_path / "f.csv", [row]), "focus")
    assert {problem.where for problem in caught.value.problems} == set(gone)


def test_the_public_sample_holds_ten_gpu_rows_found_in_descriptions() -> None:
    rows = normal_form(normalise, sample("focus/focus_1.0_sample_1000.csv"), "focus")
    assert rows.total("instance_hours", instance_type="g5.4xlarge") == Decimal("6.283056")
    assert rows.total("billed_cost", instance_type="g5.4xlarge") == Decimal("10.203682944")
    assert rows.total("instance_hours", instance_type="g3.4xlarge") == Decimal("1.686667")
    assert rows.total("billed_cost", instance_type="g3.4xlarge") == Decimal("1.92280038")
    assert {row["zone"] for row in rows if row["source"] == "azure"} == {None}


def test_the_capacity_reservation_of_the_specification_splits_into_its_parts() -> None:
    rows = normal_form(normalise, sample("focus/spec_1.4_capacity_reservation.csv"), "focus")
    assert rows.total("effective_cost", commitment_status="used") == 180
    assert rows.total("effective_cost", commitment_status="unused") == 70
    assert rows.total("effective_cost", commitment_status=None) == 170


def test_the_commitments_of_the_synthetic_sample_add_up_to_their_purchases() -> None:
    rows = normal_form(normalise, sample("focus/focus_1.3_aws_synthetic_100.csv"), "focus")
    assert rows.total("effective_cost", commitment_status="used") == Decimal("1.1283334848")
    assert rows.total("effective_cost", commitment_status="unused") == Decimal("1.1768185152")
    bought = [row for row in rows if row["charge_type"] == "fee" and row["commitment_id"]]
    assert sum(row["billed_cost"] for row in bought) == Decimal("2.305152")


@pytest.mark.parametrize("cell", ["{broken", "p5.48xlarge", "{'InstanceType': 'p5.48xlarge'}"])
def test_details_that_are_no_json_tell_no_machine_and_refuse_no_bill(
    tmp_path: Path, cell: str
) -> None:
    (row,) = read(tmp_path, {"SkuPriceDetails": cell, "x_SkuDetails": cell})
    assert row["instance_type"] is None
    assert row["effective_cost"] is not None
