"""The bills of the bundled fleet, read again without the product: csv, json, Decimal."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from data.sample import machines
from data.sample.generate import FLEET
from tests.data.sample_cases import csv_rows, readings_of_the_fleet, text_of, truth_of_the_fleet

CENT = Decimal("0.01")


@pytest.fixture(scope="module")
def truth():
    return truth_of_the_fleet()


@pytest.fixture(scope="module")
def cur():
    return csv_rows(FLEET, "aws/*/data/*/*.csv.gz")


@pytest.fixture(scope="module")
def gcp():
    lines = [
        line
        for path in sorted(FLEET.glob("gcp/*/*.json.gz"))
        for line in text_of(path).splitlines()
    ]
    return [json.loads(line, parse_float=Decimal) for line in lines]


@pytest.fixture(scope="module")
def focus():
    return csv_rows(FLEET, "azure/*/*/*/*.csv")


@pytest.fixture(scope="module")
def readings():
    return readings_of_the_fleet()


def _book(cloud, region, instance_type, option):
    with (Path(machines.__file__).parents[1] / "catalogue" / "price_book.csv").open() as file:
        key = ("provider", "region", "instance_type", "purchase_option")
        found = [
            row
            for row in csv.DictReader(file)
            if tuple(row[name] for name in key) == (cloud, region, instance_type, option)
        ]
    return Decimal(max(found, key=lambda row: row["as_of"])["usd_per_instance_hour"])


# AWS


def _by(rows, *kinds):
    return [row for row in rows if row["line_item_line_item_type"] in kinds]


def test_covered_usage_and_unused_commitment_make_the_savings_plan_in_every_hour(cur):
    used = defaultdict(Decimal)
    for row in _by(cur, "SavingsPlanCoveredUsage"):
        cost = Decimal(row["savings_plan_savings_plan_effective_cost"])
        used[row["line_item_usage_start_date"]] += cost
    fees = _by(cur, "SavingsPlanRecurringFee")
    assert len(fees) == 1440
    unused_hours = 0
    for fee in fees:
        total = Decimal(fee["savings_plan_total_commitment_to_date"])
        unused = total - Decimal(fee["savings_plan_used_commitment"])
        assert used[fee["line_item_usage_start_date"]] + unused == total == 75
        unused_hours += unused > 0
    # The training nodes stand still from 2026-09-19 06:00 to 2026-09-20 18:00.
    assert unused_hours == 36


def test_negation_takes_the_on_demand_price_of_covered_usage_off_in_every_hour(cur):
    sums = defaultdict(Decimal)
    for row in _by(cur, "SavingsPlanCoveredUsage", "SavingsPlanNegation"):
        sums[row["line_item_usage_start_date"]] += Decimal(row["line_item_unblended_cost"])
    assert len(sums) == 1440 - 36
    assert set(sums.values()) == {0}


def test_aws_machine_hours_cost_what_the_price_book_says(cur):
    checked = set()
    for row in _by(cur, "Usage", "SavingsPlanCoveredUsage"):
        if not row["product_instance_type"]:
            continue
        option = "spot" if "SpotUsage" in row["line_item_usage_type"] else "on_demand"
        key = ("aws", row["product_region_code"], row["product_instance_type"], option)
        checked.add((*key, _book(*key)) if key not in {c[:4] for c in checked} else key)
        price = next(c[4] for c in checked if c[:4] == key and len(c) == 5)
        amount = Decimal(row["line_item_usage_amount"])
        assert abs(Decimal(row["line_item_unblended_cost"]) - price * amount) < Decimal("1e-9")
        assert 0 < amount <= 1


def test_a_node_that_is_partly_covered_has_two_rows_that_make_its_hour(cur):
    amounts = defaultdict(list)
    for row in _by(cur, "Usage", "SavingsPlanCoveredUsage"):
        if row["product_instance_type"] == "p5.48xlarge" and "Box" in row["line_item_usage_type"]:
            key = (row["line_item_resource_id"], row["line_item_usage_start_date"])
            amounts[key].append(Decimal(row["line_item_usage_amount"]))
    assert {sum(parts) for parts in amounts.values()} == {1}
    assert {len(parts) for parts in amounts.values()} == {1, 2}


def test_the_aws_manifests_name_the_files_that_are_there():
    for manifest in FLEET.glob("aws/*/metadata/*/*-Manifest.json"):
        content = json.loads(manifest.read_text())
        for uri in content["dataFiles"]:
            tail = uri.split("/exports/")[1]
            path = FLEET / "aws" / tail
            header = text_of(path).decode().splitlines()[0].split(",")
            assert header == [column["name"] for column in content["columns"]]


# Google Cloud


def test_the_four_rows_of_a_google_vm_hour_make_the_price_of_the_book(gcp):
    # On demand: 78.3724 + 5.292976 + 4.167072 + 0.657552 = 88.49.
    # Spot: 44.952701 + 3.016 + 2.37744 + 0.2634 = 50.609541.
    sums, parts = defaultdict(Decimal), defaultdict(int)
    share, spot = {}, {}
    for row in gcp:
        if not row["system_labels"]:
            continue
        key = (row["resource"]["global_name"], row["usage_start_time"])
        sums[key] += row["cost"]
        parts[key] += 1
        if "H100" in row["sku"]["description"]:
            share[key] = row["usage"]["amount_in_pricing_units"] / 8
            spot[key] = "Spot" in row["sku"]["description"]
    assert set(parts.values()) == {4}
    book = {
        False: _book("gcp", "us-central1", "a3-highgpu-8g", "on_demand"),
        True: _book("gcp", "us-central1", "a3-highgpu-8g", "spot"),
    }
    assert book == {False: Decimal("88.49"), True: Decimal("50.609541")}
    for key, cost in sums.items():
        assert abs(cost - book[spot[key]] * share[key]) < CENT
        assert share[key] == 1 or spot[key]
    whole = {(spot[key], cost) for key, cost in sums.items() if share[key] == 1}
    assert whole == {(False, Decimal("88.490000")), (True, Decimal("50.609541"))}


def test_the_google_invoice_month_follows_pacific_time(gcp):
    months = defaultdict(set)
    for row in gcp:
        if row["cost_type"] == "regular":
            months[row["invoice"]["month"]].add(row["usage_start_time"])
    # Midnight in California (UTC-7) is 07:00 UTC.
    assert max(months["202608"]) == "2026-09-01 06:00:00 UTC"
    assert min(months["202609"]) == "2026-09-01 07:00:00 UTC"
    assert max(months["202609"]) == "2026-10-01 06:00:00 UTC"


# Azure


def test_used_and_unused_reservation_make_the_commitment_of_every_day_and_the_payments(focus):
    days = defaultdict(Decimal)
    for row in focus:
        if row["CommitmentDiscountStatus"] in ("Used", "Unused"):
            assert row["BilledCost"] == "0"
            days[row["ChargePeriodStart"]] += Decimal(row["EffectiveCost"])
    # 2 nodes x 24 h x 0.64 x 98.32 = 48 x 62.9248 = 3,020.3904 a day
    assert len(days) == 60
    assert set(days.values()) == {Decimal("3020.3904")}
    payments = [row for row in focus if row["ChargeCategory"] == "Purchase"]
    assert [row["EffectiveCost"] for row in payments] == ["0", "0"]
    # Twelve equal payments are the 365 days of the term: 12 x 91,870.208 = 365 x 3,020.3904.
    for row in payments:
        assert 12 * Decimal(row["BilledCost"]) == 365 * Decimal("3020.3904")


def test_the_reservation_is_unused_on_weekends_only(focus):
    unused = [row for row in focus if row["CommitmentDiscountStatus"] == "Unused"]
    # The 60 days from Tuesday 2026-09-01 have 8 Saturdays and 8 Sundays.
    assert len(unused) == 16
    assert {row["ConsumedQuantity"] for row in unused} == {""}
    assert sum(Decimal(row["PricingQuantity"]) for row in unused) == 16 * 24


def test_focus_list_cost_is_unit_price_times_quantity_and_costs_are_never_empty(focus):
    for row in focus:
        assert all(row[f"{kind}Cost"] for kind in ("Billed", "Effective", "List", "Contracted"))
        if row["ListUnitPrice"]:
            product = Decimal(row["ListUnitPrice"]) * Decimal(row["PricingQuantity"])
            assert product == Decimal(row["ListCost"])
        if row["ResourceType"] == "Virtual machine":
            size = json.loads(row["x_SkuDetails"])["ServiceType"]
            assert Decimal(row["ListUnitPrice"]) == _book("azure", "eastus", size, "on_demand")


def test_the_azure_manifests_count_rows_and_bytes():
    manifests = sorted(FLEET.glob("azure/*/*/*/manifest.json"))
    assert len(manifests) == 2
    for manifest in manifests:
        content = json.loads(manifest.read_text())
        (blob,) = content["blobs"]
        path = manifest.parent / blob["blobName"].rsplit("/", 1)[1]
        assert path.stat().st_size == blob["byteCount"] == content["byteCount"]
        rows = list(csv.reader(text_of(path).decode().splitlines()))
        assert len(rows) - 1 == blob["dataRowCount"]


# Money and hours


def test_what_machines_cost_on_the_three_bills_is_what_the_truth_says(cur, gcp, focus, truth):
    aws = sum(
        Decimal(row["savings_plan_savings_plan_effective_cost"] or row["line_item_unblended_cost"])
        for row in _by(cur, "Usage", "SavingsPlanCoveredUsage")
        if row["product_instance_type"]
    )
    google = sum(row["cost"] for row in gcp if row["system_labels"])
    azure = sum(
        Decimal(row["EffectiveCost"]) for row in focus if row["ResourceType"] == "Virtual machine"
    )
    assert aws + google + azure == Decimal(truth["total"]["billed_cost"])
    assert google == Decimal("382276.8") + Decimal("15524.518882")


def _gpu_hours_by_machine_hour(cur, gcp, focus):
    """GPU-hours of every billed machine and hour, by the last segment of its id."""
    billed = defaultdict(Decimal)
    for row in cur:
        kinds = ("Usage", "SavingsPlanCoveredUsage")
        if row["line_item_line_item_type"] in kinds and row["product_instance_type"]:
            gpus = {"p5.48xlarge": 8, "p5.4xlarge": 1}[row["product_instance_type"]]
            hour = row["line_item_usage_start_date"].replace(".000Z", "Z")
            amount = gpus * Decimal(row["line_item_usage_amount"])
            billed[row["line_item_resource_id"], hour] += amount
    for row in gcp:
        if "H100" in row["sku"]["description"]:
            hour = row["usage_start_time"].replace(" UTC", "Z").replace(" ", "T")
            machine = row["resource"]["global_name"].rsplit("/", 1)[1]
            billed[machine, hour] += row["usage"]["amount_in_pricing_units"]
    for row in focus:
        if row["ResourceType"] == "Virtual machine":
            gpus = 8 if "ND96isr" in row["SkuMeter"] else 1
            assert row["ConsumedQuantity"] == "24"
            for hour in range(24):
                moment = row["ChargePeriodStart"].replace("T00", f"T{hour:02}")
                billed[row["ResourceName"], moment] += gpus
    return billed


def test_states_counted_from_bills_and_readings_are_those_of_the_truth(
    cur, gcp, focus, readings, truth
):
    billed = _gpu_hours_by_machine_hour(cur, gcp, focus)
    seen = defaultdict(list)
    for row in readings:
        util, held = row["gpu_util"], row["process_count"]
        state = (
            "unknown"
            if not util
            else "busy"
            if float(util) > 5
            else "idle_held"
            if held == "1"
            else "free"
        )
        seen[row["instance_id"], row["hour_start"]].append(state)
    sums = defaultdict(Decimal)
    gpus = {m.instance_id: m.gpus for m in machines.fleet()}
    for key, hours in billed.items():
        states = seen[key]
        count = gpus[key[0]]
        assert len(states) in (0, count)
        for state in states or ["unknown"] * count:
            sums[state] += hours / count
    assert set(seen) <= set(billed)
    for state, hours in sums.items():
        assert abs(hours - Decimal(truth["total"]["gpu_hours"][state])) < Decimal("1e-6"), state


def test_idleness_costs_more_than_a_million_dollars_a_year(truth):
    cost = {state: Decimal(text) for state, text in truth["total"]["cost"].items()}
    lost = sum(Decimal(entry["unused_cost"]) for entry in truth["commitments"].values())
    # Savings plan: 36 hours x 75 = 2,700. Reservation: 16 days x 24 h x 62.9248 = 24,163.1232.
    assert lost == Decimal("2700") + Decimal("24163.1232")
    year = (cost["idle_held"] + cost["free"] + lost) * 8760 / 1440
    assert abs(year - Decimal(truth["idle"]["cost_per_year"])) < CENT
    assert year > 1_000_000


def test_the_classes_and_the_purchases_of_the_truth_add_up_to_its_total(truth):
    for what in ("billed_gpu_hours", "billed_cost", "needed_gpu_hours"):
        for parts in (truth["classes"], truth["instances"]):
            total = sum(Decimal(part[what]) for part in parts.values())
            assert total == Decimal(truth["total"][what])
    hours = sum(Decimal(part["gpu_hours"]) for part in truth["purchase"].values())
    assert hours == Decimal(truth["total"]["billed_gpu_hours"])
    assert set(truth["classes"]) == {
        "training", "batch", "inference", "interactive", "evaluation",
    }  # fmt: skip


def test_commitments_and_overrides_carry_the_ids_and_rates_of_the_bill(cur, focus):
    plan, reservation = csv_rows(FLEET, "commitments.csv")
    arns = {row["savings_plan_savings_plan_a_r_n"] for row in cur} - {""}
    assert arns == {plan["id"]}
    assert {row["CommitmentDiscountId"] for row in focus} - {""} == {reservation["id"]}
    rates = {
        (r["provider"], r["purchase_option"], r["gpus"]): r
        for r in csv_rows(FLEET, "overrides.csv")
    }
    # 0.62 x 55.04, 0.64 x 55.04, 0.64 x 98.32
    expected = {
        ("aws", "reserved_1y", "8"): "34.1248",
        ("aws", "savings_plan_1y", "8"): "35.2256",
        ("azure", "reserved_1y", "8"): "62.9248",
    }
    assert {key: rates[key]["usd_per_instance_hour"] for key in expected} == expected
    assert all("made for the bundled fleet" in row["source"] for row in rates.values())
    assert reservation["usd_per_instance_hour"] == "62.9248"
    covered = _by(cur, "SavingsPlanCoveredUsage")[0]
    assert covered["savings_plan_savings_plan_rate"] == "35.2256"
