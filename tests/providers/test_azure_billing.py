"""Azure cost exports. Rows with H100 machines are made by us: no public file holds any."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from data.errors import DataError
from data.schema import BILLING
from providers.azure.billing import normalise
from providers.contract import FINISHED_LATER, TOLD_BY_SOME
from tests.exports import Rows, csv_file, normal_form, sample

if TYPE_CHECKING:
    from pathlib import Path

ND = "Standard_ND96isr_H100_v5"
VM = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/train-1"
# Made by us: one VM-day of an H100 node in the layout of an EA export.
BASE = {
    "BillingAccountId": "0086115", "BillingPeriodStartDate": "09/01/2026",
    "BillingPeriodEndDate": "09/30/2026", "SubscriptionId": "s1", "Date": "09/02/2026",
    "Product": "Virtual Machines NDsr H100 v5 Series - ND96isr H100 v5 - US East",
    "MeterId": "m-1", "MeterCategory": "Virtual Machines",
    "MeterSubCategory": "NDsr H100 v5 Series", "MeterName": "ND96isr H100 v5",
    "Quantity": "24", "UnitOfMeasure": "1 Hour", "Cost": "2359.68", "PayGPrice": "98.32",
    "BillingCurrency": "USD", "ResourceLocation": "EastUS", "ConsumedService": "Microsoft.Compute",
    "ResourceId": VM, "ResourceName": "train-1",
    "AdditionalInfo": f'{{"UsageType":"ComputeHR","ServiceType":"{ND}"}}',
    "Tags": '"team": "ml","env": "prod"', "ChargeType": "Usage", "PricingModel": "OnDemand",
}  # fmt: skip
COVERED = {"PricingModel": "Reservation", "ReservationId": "r-1", "PayGPrice": "0"}


def read(tmp_path: Path, *changes: dict[str, Any], name: str = "export.csv", **more: Any) -> Rows:
    rows = [{**BASE, **change} for change in changes]
    return normal_form(normalise, csv_file(tmp_path / name, rows), **more)


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in BASE.items() if name not in names}


def test_a_block_of_ten_hours_counts_ten_hours_and_its_list_cost_is_price_per_block(
    tmp_path: Path,
) -> None:
    block = {"UnitOfMeasure": "10 Hours", "Quantity": "2.4", "PayGPrice": "983.2"}
    (row,) = read(tmp_path, block)
    assert row["instance_hours"] == 24  # 2.4 x 10
    assert row["list_cost"] == Decimal("2359.68")  # 983.2 x 2.4
    assert row["usage_qty"] == Decimal("2.4")
    assert row["usage_unit"] == "10 Hours"


def test_a_vm_day_has_its_type_region_day_and_account(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {})
    assert row["instance_type"] == ND
    assert row["region"] == "EastUS"  # the common last step resolves it
    assert row["period_start"] == datetime(2026, 9, 2, tzinfo=UTC)
    assert row["period_end"] == datetime(2026, 9, 3, tzinfo=UTC)
    assert row["billing_period"] == "2026-09"
    assert (row["billing_account"], row["account"]) == ("0086115", "s1")
    assert (row["resource_id"], row["resource_name"]) == (VM, "train-1")
    assert row["tags"] == '{"team": "ml","env": "prod"}'
    assert (row["gpu_hours"], row["managed_service"]) == (None, False)


@pytest.mark.parametrize(
    ("meter", "model"),
    [("ND96isr H100 v5", "Spot"), ("ND96isr H100 v5 Spot", ""), ("NC6s v3 Low Priority", "")],
)
def test_spot_is_told_by_the_pricing_model_or_by_the_meter(
    tmp_path: Path, meter: str, model: str
) -> None:
    (row,) = read(tmp_path, {"MeterName": meter, "PricingModel": model})
    assert row["purchase_option"] == "spot"
    assert row["instance_hours"] == 24


@pytest.mark.parametrize(
    ("meter", "size"),
    [
        ("ND96isr H100 v5", ND),
        ("NC40adsH100v5 Spot", "Standard_NC40ads_H100_v5"),
        ("ND128isr H100 v9", "Standard_ND128isr_H100_v9"),
        ("D2 v2/DS2 v2", None),
    ],
)
def test_without_additional_info_the_meter_names_the_size_unless_it_stands_for_two(
    tmp_path: Path, meter: str, size: str | None
) -> None:
    (row,) = read(tmp_path, {"MeterName": meter, "AdditionalInfo": ""})
    assert row["instance_type"] == size


@pytest.mark.parametrize(
    ("kind", "meter", "size"),
    [
        ("UnusedSavingsPlan", "sp", None),
        ("Purchase", "Savings plan", None),
        ("Refund", "ND96isr H100 v5", None),
        ("RoundingAdjustment", "ND96isr H100 v5", None),
        ("UnusedReservation", "ND96isr H100 v5", ND),  # 24 h unused are those of this size
        ("UnusedReservation", "Reserved VM", None),
    ],
)
def test_a_meter_names_no_size_where_no_machine_was_used_and_a_stated_size_counts(
    tmp_path: Path, kind: str, meter: str, size: str | None
) -> None:
    row = {"ChargeType": kind, "MeterName": meter, "PricingModel": ""}
    bare, stated = read(tmp_path, {**row, "AdditionalInfo": ""}, row)
    assert (bare["instance_type"], stated["instance_type"]) == (size, ND)


def test_the_size_is_found_in_broken_additional_info_too(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"AdditionalInfo": f'{{"ServiceType":"{ND.lower()}","x":'})
    assert row["instance_type"] == ND


def test_amortized_reservations_are_used_and_unused_and_their_list_price_of_0_is_unknown(
    tmp_path: Path,
) -> None:
    # Two nodes reserved at 60 an hour; one ran 24 h (24 x 60 = 1440), the other stood unused.
    used = {**COVERED, "Cost": "1440"}
    unused = {**COVERED, "Cost": "1440", "ChargeType": "UnusedReservation", "ResourceId": ""}
    rows = read(tmp_path, used, unused, name="amortized.csv")
    assert rows.dataset == "amortized"
    assert [row["commitment_status"] for row in rows] == ["used", "unused"]
    assert [row["instance_hours"] for row in rows] == [24, None]
    assert {row["purchase_option"] for row in rows} == {"reserved"}
    assert {row["commitment_id"] for row in rows} == {"r-1"}
    assert rows.total("effective_cost") == 2880
    assert (rows.total("billed_cost"), rows.total("list_cost")) == (None, None)


def test_savings_plans_are_told_by_model_and_by_charge_type(tmp_path: Path) -> None:
    plan = "/providers/Microsoft.BillingBenefits/savingsPlanOrders/o/savingsPlans/p"
    used = {"PricingModel": "SavingsPlan", "benefitId": plan, "Cost": "1680"}
    left = {"ChargeType": "UnusedSavingsPlan", "PricingModel": "", "benefitId": plan, "Cost": "20"}
    rows = read(tmp_path, used, left, name="x_AmortizedCost_1.csv")
    assert [row["purchase_option"] for row in rows] == ["savings_plan", "savings_plan"]
    assert [row["commitment_status"] for row in rows] == ["used", "unused"]
    assert {row["commitment_id"] for row in rows} == {plan}
    assert rows[0]["list_cost"] == Decimal("2359.68")  # 98.32 x 24


def test_purchases_and_refunds_make_a_file_actual_without_effective_cost(tmp_path: Path) -> None:
    order = {"MeterCategory": "", "AdditionalInfo": "", "UnitOfMeasure": "1", "Quantity": "1"}
    bought = {**COVERED, **order, "ChargeType": "Purchase", "Cost": "43800"}
    returned = {**COVERED, **order, "ChargeType": "Refund", "Cost": "-3650"}
    rows = read(tmp_path, bought, returned, {**COVERED, "Cost": "0"})
    assert rows.dataset == "actual"
    assert "taken as actual cost by its rows (2 commitment purchases" in rows.warnings[0]
    assert [row["charge_type"] for row in rows] == ["fee", "refund", "usage"]
    assert [row["instance_hours"] for row in rows] == [None, None, 24]
    assert rows.total("billed_cost") == 40150  # 43800 - 3650 + 0
    assert rows.total("effective_cost") is None


def test_a_commitment_purchase_has_no_effective_cost_in_an_amortized_file(tmp_path: Path) -> None:
    rows = read(tmp_path, {**COVERED, "ChargeType": "Purchase", "Cost": "9"}, dataset="amortized")
    assert rows.total("effective_cost") == 0
    assert rows.warnings == ()


def test_covered_usage_at_a_cost_makes_a_file_amortized(tmp_path: Path) -> None:
    rows = read(tmp_path, {**COVERED, "Cost": "1440"})
    assert rows.dataset == "amortized"
    assert "taken as amortized cost by its rows (1 rows" in rows.warnings[0]


def test_a_file_without_commitments_fills_both_costs_and_says_so(tmp_path: Path) -> None:
    rows = read(tmp_path, {})
    assert rows.total("billed_cost") == rows.total("effective_cost") == Decimal("2359.68")
    assert rows.warnings[0].startswith("taken as both actual and amortized")


@pytest.mark.parametrize(
    ("more", "dataset"),
    [
        ({"name": "September-ActualCost.csv"}, "actual"),
        ({"name": "ea_amortised.csv"}, "amortized"),
        ({"dataset": "amortized", "name": "actual.csv"}, "amortized"),
        ({"manifest": {"exportConfig": {"type": "AmortizedCost"}}}, "amortized"),
        ({"manifest": {"exportConfig": {"exportName": "daily-actual"}}}, "actual"),
    ],
)
def test_a_telling_name_or_manifest_decides_the_view_without_a_warning(
    tmp_path: Path, more: dict[str, Any], dataset: str
) -> None:
    rows = read(tmp_path, {}, **more)
    assert (rows.dataset, rows.warnings) == (dataset, ())
    filled = "billed_cost" if dataset == "actual" else "effective_cost"
    empty = "effective_cost" if dataset == "actual" else "billed_cost"
    assert (rows.total(filled), rows.total(empty)) == (Decimal("2359.68"), None)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("03/04/2026", datetime(2026, 3, 4, tzinfo=UTC)),
        ("3/4/2026", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04T00:00:00Z", datetime(2026, 3, 4, tzinfo=UTC)),
    ],
)
def test_slashes_mean_month_first_and_dashes_iso(tmp_path: Path, text: str, day: datetime) -> None:
    (row,) = read(tmp_path, {"Date": text})
    assert row["period_start"] == day


@pytest.mark.parametrize("second", ["2026-09-03", "22/09/2026", "", "soon"])
def test_a_date_that_does_not_fit_the_form_of_its_file_is_an_error(
    tmp_path: Path, second: str
) -> None:
    with pytest.raises(DataError, match="dates that cannot be read") as caught:
        read(tmp_path, {}, {"Date": second})
    (problem,) = caught.value.problems
    assert problem.where == "row 2, date"


def test_the_last_day_of_a_bill_is_inclusive(tmp_path: Path) -> None:
    bill = {"BillingPeriodStartDate": "", "BillingPeriodEndDate": "09/30/2026"}
    (row,) = read(tmp_path, {**bill, "Date": "10/01/2026"})
    assert row["billing_period"] == "2026-09"


def test_the_older_usage_file_is_read_by_its_own_names(tmp_path: Path) -> None:
    old = {
        "SubscriptionGuid": "s1", "UsageDateTime": "2020-08-15", "MeterCategory":
        "Virtual Machines", "MeterName": "NC6s v3", "UsageQuantity": "3",
        "UnitOfMeasure": "1 Hour", "PreTaxCost": "9.18", "Currency": "eur", "InstanceId": VM,
        "AdditionalInfo": "{}", "Tags": "{}", "ResourceLocation": "US East",
    }  # fmt: skip
    (row,) = normal_form(normalise, csv_file(tmp_path / "old.csv", [old]))
    assert (row["account"], row["resource_id"], row["resource_name"]) == ("s1", VM, "train-1")
    assert (row["billed_cost"], row["currency"]) == (Decimal("9.18"), "EUR")
    assert (row["instance_hours"], row["instance_type"]) == (3, "Standard_NC6s_v3")
    assert (row["purchase_option"], row["charge_type"]) == ("on_demand", "usage")
    assert (row["billing_period"], row["billing_account"]) == ("2020-08", "unknown")
    assert (row["tags"], row["region"]) == (None, "US East")


def test_translated_spaced_and_odd_case_headers_are_the_same_columns(tmp_path: Path) -> None:
    names = {
        "MeterCategory": "Kategorie der Verbrauchseinheit (MeterCategory)",
        "Cost": "cost in billing currency",
        "Quantity": "QUANTITY",
    }
    renamed = {names.get(name, name): value for name, value in BASE.items()}
    (row,) = normal_form(normalise, csv_file(tmp_path / "x.csv", [renamed]))
    assert (row["billed_cost"], row["service"]) == (Decimal("2359.68"), "Virtual Machines")


def test_every_missing_required_column_is_listed(tmp_path: Path) -> None:
    lacking = without("Cost", "Date", "UnitOfMeasure")
    with pytest.raises(DataError, match="required columns are missing") as caught:
        normal_form(normalise, csv_file(tmp_path / "x.csv", [lacking]))
    assert [problem.where for problem in caught.value.problems] == [
        "costinbillingcurrency", "date", "unitofmeasure",
    ]  # fmt: skip


def test_a_file_without_currency_is_of_currency_unknown_with_a_warning(tmp_path: Path) -> None:
    rows = normal_form(normalise, csv_file(tmp_path / "actual.csv", [without("BillingCurrency")]))
    assert rows[0]["currency"] == "unknown"
    assert rows.warnings == ("no currency column: amounts are of currency 'unknown'",)


def test_of_tags_and_tags_in_capitals_the_filled_one_counts(tmp_path: Path) -> None:
    row = {**BASE, "Tags": "", "tags": '{"team":"infra"}'}
    (read_row,) = normal_form(normalise, csv_file(tmp_path / "x.csv", [row]))
    assert read_row["tags"] == '{"team":"infra"}'


def test_broken_tags_are_kept_as_raw_text(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"Tags": '"team": "ml'})
    assert row["tags"] == '{"_raw": "{\\"team\\": \\"ml}"}'


@pytest.mark.parametrize(
    "software",
    [
        {"MeterCategory": "Virtual Machines Licenses", "MeterName": "96 vCPU VM License"},
        {"MeterSubCategory": "Windows Server Licenses"},
        {"MeterName": "RHEL 96 vCPU VM License"},
        {"UnitOfMeasure": "1 GB"},
        {"MeterCategory": "Storage"},
    ],
)
def test_software_and_other_meters_are_cost_and_no_hours(
    tmp_path: Path, software: dict[str, str]
) -> None:
    (row,) = read(tmp_path, {**software, "Cost": "4.5"})
    assert (row["instance_hours"], row["billed_cost"]) == (None, Decimal("4.5"))


@pytest.mark.parametrize(
    ("prices", "list_cost"),
    [
        ({"PayGPrice": "0"}, None),  # the row costs something: 0 means unknown
        ({"PayGPrice": "0", "Cost": "0"}, 0),  # free for everybody
        ({"PayGPrice": ""}, None),
        ({"PricingCurrency": "EUR"}, None),  # a price in another currency is not converted
        ({"PricingCurrency": "EUR", "paygCostInBillingCurrency": "2400.5"}, Decimal("2400.5")),
        ({"PricingCurrency": "usd", "PayGPrice": "100"}, 2400),  # 100 x 24
    ],
)
def test_list_cost_is_stated_or_price_times_quantity_or_unknown(
    tmp_path: Path, prices: dict[str, str], list_cost: Decimal | None
) -> None:
    (row,) = read(tmp_path, prices)
    assert row["list_cost"] == list_cost


def test_azure_ml_hours_are_those_of_a_managed_service(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"ConsumedService": "Microsoft.MachineLearningServices"})
    assert (row["managed_service"], row["instance_hours"]) == (True, 24)


def test_an_empty_capacity_reservation_is_unused_and_a_vm_in_one_is_used(tmp_path: Path) -> None:
    group = "/subscriptions/s1/providers/Microsoft.Compute/capacityReservationGroups/g"
    block = f"{group}/capacityReservations/c"
    inside = f'{{"ServiceType":"{ND}","VMCapacityReservationId":"{block}"}}'
    rows = read(tmp_path, {"ResourceId": block}, {"AdditionalInfo": inside})
    assert [row["commitment_status"] for row in rows] == ["unused", None]
    assert [row["instance_hours"] for row in rows] == [None, 24]
    assert [row["capacity_reservation_id"] for row in rows] == [block, block]


def test_a_refund_of_an_earlier_invoice_is_a_correction(tmp_path: Path) -> None:
    rows = read(tmp_path, {"previousInvoiceId": "E01", "invoiceId": "E02"}, {})
    assert [row["is_correction"] for row in rows] == [True, False]
    assert [row["invoice_id"] for row in rows] == ["E02", None]


@pytest.mark.parametrize("cell", ["NaN", "inf", "1,5", "1e13"])
def test_a_cost_that_is_no_number_fails_even_where_no_rule_reads_it(
    tmp_path: Path, cell: str
) -> None:
    # The reading of a view needs the cells, and names them; else writing would.
    with pytest.raises((DataError, duckdb.Error)):
        read(tmp_path, {}, {"PayGPrice": cell, "paygCostInBillingCurrency": "1"})


def test_a_bad_cost_is_named_by_row_and_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row 2, column Cost: 'NaN' is no number") as caught:
        read(tmp_path, {}, {"Cost": "NaN"}, {"Cost": "many"})
    wheres = [problem.where for problem in caught.value.problems]
    assert wheres == ["row 2, column Cost", "row 3, column Cost"]


def test_every_column_of_billing_is_given_but_those_of_the_common_last_step(
    tmp_path: Path,
) -> None:
    (row,) = read(tmp_path, {})
    assert set(BILLING.names) - {*FINISHED_LATER, *TOLD_BY_SOME} <= set(row)


def test_totals_of_the_real_amortized_file(tmp_path: Path) -> None:
    rows = normal_form(normalise, sample("azure/ea_amortized_bom_28.csv"))
    assert (len(rows), rows.dataset, rows.warnings) == (28, "amortized", ())
    assert rows.total("effective_cost") == Decimal("16.29693213663664462748541900")
    options = {
        "on_demand": (26, "15.79778013616864462748541900"),
        "reserved": (1, "0.493152"),
        "savings_plan": (1, "0.006000000468"),
    }
    for option, (count, cost) in options.items():
        chosen = [row for row in rows if row["purchase_option"] == option]
        assert len(chosen) == count
        assert rows.total("effective_cost", purchase_option=option) == Decimal(cost)
    assert rows.total("billed_cost") is None
    assert rows.total("list_cost", purchase_option="reserved") is None
    assert rows.total("usage_qty") == Decimal("185.35816553")
    assert {row["currency"] for row in rows} == {"USD"}
    assert {row["billing_period"] for row in rows} == {"2023-09"}


def test_totals_of_the_real_spot_file_in_canadian_dollars(tmp_path: Path) -> None:
    rows = normal_form(normalise, sample("azure/ea_spot_cad_27.csv"))
    assert len(rows) == 27
    for cost in ("billed_cost", "effective_cost"):
        assert rows.total(cost) == Decimal("1.26136926505726")
        assert rows.total(cost, purchase_option="on_demand") == Decimal("1.21310954805726")
        assert rows.total(cost, purchase_option="spot") == Decimal("0.048259717")
    assert {row["currency"] for row in rows} == {"CAD"}


def test_totals_of_the_real_mca_layout(tmp_path: Path) -> None:
    rows = normal_form(normalise, sample("azure/mca_camelcase_4.csv"))
    assert len(rows) == 4
    assert rows.total("billed_cost") == rows.total("list_cost") == Decimal("0.0000262412")
    assert [row["tags"] for row in rows] == [None, None, None, '{"project":"p1"}']
    assert {row["region"] for row in rows} == {"eastus", "eastus2"}
