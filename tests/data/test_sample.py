"""The bundled fleet, read again without the product: csv, json and Decimal only."""

from __future__ import annotations

import csv
import gzip
import json
import tomllib
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from data.sample import activity, machines
from data.sample.generate import BY_HAND, FLEET, generate

CENT = Decimal("0.01")


def _text(path):
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def _files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _csv(folder, pattern):
    rows = []
    for path in sorted(folder.glob(pattern)):
        rows += csv.DictReader(_text(path).decode().splitlines())
    assert rows, pattern
    return rows


@pytest.fixture(scope="module")
def truth():
    return json.loads((FLEET / "truth.json").read_text())


@pytest.fixture(scope="module")
def cur():
    return _csv(FLEET, "aws/*/data/*/*.csv.gz")


@pytest.fixture(scope="module")
def gcp():
    lines = [
        line for path in sorted(FLEET.glob("gcp/*/*.json.gz")) for line in _text(path).splitlines()
    ]
    return [json.loads(line, parse_float=Decimal) for line in lines]


@pytest.fixture(scope="module")
def focus():
    return _csv(FLEET, "azure/*/*/*/*.csv")


@pytest.fixture(scope="module")
def readings():
    rows = _csv(FLEET, "utilization/*.csv.gz")
    for row in rows:
        row["instance_id"] = row["instance_id"].rsplit("/", 1)[-1]
    return rows


def _book(cloud, region, instance_type, option):
    with (Path(machines.__file__).parents[1] / "catalogue" / "price_book.csv").open() as file:
        key = ("provider", "region", "instance_type", "purchase_option")
        found = [
            row
            for row in csv.DictReader(file)
            if tuple(row[name] for name in key) == (cloud, region, instance_type, option)
        ]
    return Decimal(max(found, key=lambda row: row["as_of"])["usd_per_instance_hour"])


# The files


def test_generating_again_gives_the_shipped_files(tmp_path):
    generate(tmp_path)
    assert _files(tmp_path) == _files(FLEET)
    for name in sorted(_files(FLEET)):
        # Uncompressed, since another build of zlib may pack the same text otherwise.
        assert _text(tmp_path / name) == _text(FLEET / name), name


def test_a_one_day_fleet_is_small_the_same_twice_and_the_tail_of_the_long_one(tmp_path):
    generate(tmp_path / "a", days=1)
    generate(tmp_path / "b", days=1)
    names = _files(tmp_path / "a")
    assert names == _files(tmp_path / "b")
    assert all(
        (tmp_path / "a" / n).read_bytes() == (tmp_path / "b" / n).read_bytes() for n in names
    )
    assert sum((tmp_path / "a" / name).stat().st_size for name in names) < 200_000
    day = _csv(tmp_path / "a", "utilization/*.csv.gz")
    shipped = _csv(FLEET, "utilization/*.csv.gz")
    # The readings are drawn from the start of the window on; who is there is the same.
    seen = {(row["hour_start"], row["gpu_uuid"]) for row in day}
    assert seen == {
        (row["hour_start"], row["gpu_uuid"]) for row in shipped if row["hour_start"] >= "2026-10-30"
    }


@pytest.mark.parametrize("days", [0, 61])
def test_more_days_than_it_has_lived_are_refused(tmp_path, days):
    with pytest.raises(ValueError, match="must be 1 to 60"):
        generate(tmp_path, days=days)


def test_the_fleet_is_small_enough_to_ship():
    sizes = {name: (FLEET / name).stat().st_size for name in _files(FLEET)}
    assert sum(sizes.values()) < 4_000_000
    assert max(sizes.values()) < 2 * 1024 * 1024


def test_the_readme_says_that_it_is_made_and_its_figures_are_those_of_the_truth(truth):
    text = (FLEET / "README.md").read_text()
    assert "**Everything here is made.**" in text
    shown = {
        truth["total"]["billed_gpu_hours"]: 2,
        truth["idle"]["cost_on_machines"]: 2,
        truth["idle"]["cost_of_unused_commitments"]: 2,
        truth["idle"]["cost"]: 2,
        truth["idle"]["cost_per_year"]: 2,
    }
    for figure, places in shown.items():
        assert f"{round(Decimal(figure), places):,}" in text
    assert f"{truth['idle']['gpu_hour_share']:.1%} are idle" in text


def test_files_written_by_hand_are_the_only_ones_not_generated():
    assert set(BY_HAND) == {"loadfactor.toml", "README.md"}
    settings = tomllib.loads((FLEET / "loadfactor.toml").read_text())
    named = [path for source in settings["sources"].values() for path in source["paths"]]
    named += [settings["prices"]["overrides"], settings["inputs"]["commitments"]]
    assert all((FLEET / path).exists() for path in named)


# The GPUs


def test_there_are_one_hundred_gpus_in_three_clouds(readings):
    gpus = defaultdict(set)
    for row in readings:
        gpus[row["cloud"]].add(row["gpu_uuid"])
    # 5 x 8 + 8; 4 x 8; 2 x 8 + 4
    assert {cloud: len(found) for cloud, found in gpus.items()} == {
        "aws": 48, "gcp": 32, "azure": 20,
    }  # fmt: skip


def test_every_hour_of_sixty_days_is_there_and_none_else(readings):
    hours = {row["hour_start"] for row in readings}
    assert len(hours) == 60 * 24
    assert (min(hours), max(hours)) == ("2026-09-01T00:00:00Z", "2026-10-30T23:00:00Z")


def test_no_gpu_is_read_twice_in_an_hour(readings):
    keys = [(row["hour_start"], row["gpu_uuid"]) for row in readings]
    assert len(keys) == len(set(keys))


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


def test_two_fifths_of_the_gpu_hours_are_idle_and_about_two_percent_unknown(truth):
    hours = {state: Decimal(text) for state, text in truth["total"]["gpu_hours"].items()}
    total = sum(hours.values())
    assert Decimal("0.38") < (hours["idle_held"] + hours["free"]) / total < Decimal("0.42")
    assert Decimal("0.015") < hours["unknown"] / total < Decimal("0.025")
    assert total == Decimal(truth["total"]["billed_gpu_hours"])


def test_no_reading_lies_between_busy_and_idle(readings):
    # Busy reads 18 percent or more outside serving, 8 or more there; idle reads exactly 0.
    utils = [int(row["gpu_util"]) for row in readings if row["gpu_util"]]
    assert set(utils) & set(range(1, 20)) <= set(range(8, 20))
    assert max(utils) <= 100
    assert {row["sm_active"] for row in readings if row["gpu_util"] == "0"} == {"0"}


def test_the_parked_node_has_been_free_for_three_weeks(readings, truth):
    parked = [
        row
        for row in readings
        if row["instance_id"] == truth["parked"]["instance_id"]
        and row["hour_start"] >= truth["parked"]["since"]
    ]
    # 2026-10-09 14:00 to 2026-10-31 00:00 is 21 days and 10 hours: 514 hours of 8 GPUs.
    assert len(parked) == 514 * 8
    assert {row["process_count"] for row in parked} == {"0", ""}


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
            header = _text(path).decode().splitlines()[0].split(",")
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
        rows = list(csv.reader(_text(path).decode().splitlines()))
        assert len(rows) - 1 == blob["dataRowCount"]


# Money


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


def test_needed_hours_of_one_notebook_are_those_counted_by_hand(readings, truth):
    # One GPU: busy and unknown hours, and of each idle-held run its first two (120 minutes).
    notebook = next(m for m in machines.fleet() if m.name == "notebook-0")
    rows = sorted(
        (row for row in readings if row["instance_id"] == notebook.instance_id),
        key=lambda row: row["hour_start"],
    )
    needed = run = 0
    for row in rows:
        held = row["gpu_util"] == "0" and row["process_count"] == "1"
        run = run + 1 if held else 0
        needed += row["gpu_util"] != "0" or (held and run <= 2)
    assert len(rows) == 1440
    told = truth["instances"][notebook.instance_id]["needed_gpu_hours"]
    assert needed == Decimal(told)


def test_commitments_and_overrides_carry_the_ids_and_rates_of_the_bill(cur, focus):
    plan, reservation = _csv(FLEET, "commitments.csv")
    arns = {row["savings_plan_savings_plan_a_r_n"] for row in cur} - {""}
    assert arns == {plan["id"]}
    assert {row["CommitmentDiscountId"] for row in focus} - {""} == {reservation["id"]}
    rates = {
        (r["provider"], r["purchase_option"], r["gpus"]): r for r in _csv(FLEET, "overrides.csv")
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


def test_the_plan_of_events_covers_sixty_days():
    assert activity.HOURS == 1440
    assert activity.hour_start(activity.HOURS) == datetime(2026, 10, 31, tzinfo=UTC)
