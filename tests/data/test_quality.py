"""What the data is worth: each fault is found once, counted, and repaired by nobody."""

from __future__ import annotations

from decimal import Decimal as D

import pytest

from data import quality
from data.quality import Finding
from tests import fleet as t


def found(bill, readings=(), hours=24, commitments=None):
    rows = quality.checks(
        t.billing(bill),
        t.utilization(list(readings)),
        t.owned() if commitments is None else commitments,
        t.window(hours),
    )
    return {row.check: row for row in rows}


def test_a_clean_bill_with_telemetry_has_only_the_comparison():
    bill = [t.charge(start=h) for h in range(24)]
    rows = found(bill, [r for h in range(24) for r in t.node_readings(h)])
    assert set(rows) == {"billed_against_measured"}
    assert rows["billed_against_measured"].severity == "info"
    assert rows["billed_against_measured"].count == 192


def test_faults_of_rows_are_counted_with_their_money():
    bill = [
        t.charge(start=0),
        t.charge(start=0),  # looks like the row before it
        t.charge("i-2", start=1, billing_period="2026-10"),
        t.charge("i-3", start=2, currency="unknown"),
        t.charge("i-4", start=3, purchase_option="unknown"),
        t.charge(
            "i-5", start=4, instance_type="p6-b200.48xlarge", gpus=0, gpu_count=None, gpu_model=None
        ),
        t.charge("m5", start=5, instance_type="m5.large", gpus=0, gpu_count=None, gpu_model=None),
        t.charge(None, start=6, charge_type="fee", purchase_option="capacity_block", gpus=0,
                 billed_cost=D(500), effective_cost=D(0)),
        t.charge("i-7", start=7, account="222233334444"),
        t.charge("i-7", start=7, account="333344445555"),
        t.charge("i-8", period_start=None),
    ]  # fmt: skip
    rows = found(bill, hours=8)
    counted = {name: (row.severity, row.count, row.amount) for name, row in rows.items()}
    assert counted == {
        "duplicate_looking_rows": ("info", 1, None),
        "rows_outside_period": ("info", 1, D("98.32")),
        "unknown_currency": ("warning", 1, D("98.32")),
        "unknown_purchase_option": ("info", 1, D("98.32")),
        "unknown_gpu_type": ("warning", 1, D("98.32")),
        "same_rows_in_two_accounts": ("warning", 2, D("98.32")),
        "undated_rows": ("warning", 1, D("98.32")),
        "billed_against_measured": ("info", 0, None),
    }
    assert rows["unknown_gpu_type"].scope == "aws/p6-b200.48xlarge"
    assert rows["unknown_currency"].currency == "unknown"
    assert "no telemetry" in rows["billed_against_measured"].detail


def test_much_unmeasured_is_a_warning():
    rows = found([t.charge()], t.node_readings(gpus=6), hours=1)
    assert rows["billed_against_measured"].severity == "warning"
    assert "6 GPU-hours measured of 8.00 billed (75.0%)" in rows["billed_against_measured"].detail


def test_a_missing_day_is_a_warning_and_a_missing_hour_is_not():
    hour = found([t.charge(start=0), t.charge(start=2)])["gap_in_billing"]
    assert (hour.severity, hour.count) == ("info", 1)
    lost = found([t.charge(start=0), t.charge(start=26)], hours=48)["gap_in_billing"]
    assert (lost.severity, lost.count) == ("warning", 25)


def test_a_savings_plan_must_be_covered_and_unused_in_sum():
    # 75 an hour for 2 hours is 150: covered 60 + 60 and unused 15 + 15 add up; without one 15
    # they do not.
    plan = t.owned({"id": "sp-1", "kind": "savings_plan", "usd_per_hour": D(75)})
    sp = {"purchase_option": "savings_plan", "commitment_id": "sp-1"}
    used = [t.charge(start=h, effective_cost=D(60), **sp) for h in range(2)]
    spare = [
        t.charge(None, h, gpu_hours=None, effective_cost=D(15), commitment_status="unused", **sp)
        for h in range(2)
    ]
    assert "savings_plan_identity" not in found(used + spare, commitments=plan)
    short = found(used + spare[:1], commitments=plan)["savings_plan_identity"]
    assert (short.severity, short.amount) == ("warning", 135)


def test_the_table_has_the_worst_first_and_equal_findings_once():
    rows = [
        Finding("b", "aws", "info", "x"),
        Finding("a", "aws", "warning", "y", 3, D("1.5"), "USD"),
        Finding("b", "aws", "info", "x"),
        Finding("z", "aws", "error", "w"),
    ]
    frame = quality.table(rows)
    assert frame["check"].tolist() == ["z", "a", "b"]
    assert not len(quality.table([]))


def test_a_period_that_ends_before_it_starts_is_told():
    bad = t.charge("i-2", start=5, period_end=t.hour(3), effective_cost=D(7))
    told = found([t.charge(), bad])["bad_period"]
    assert (told.severity, told.count, told.amount) == ("warning", 1, 7)
    assert "bad_period" not in found([t.charge(), t.charge(period_end=t.hour(0))])


@pytest.mark.parametrize(
    "machine", ["p9h100", "gpu_8x_h100_sxm5", "Standard_ND96is_X_v9", "g9-standard-8", "mi300x-8"]
)
def test_a_type_that_names_gpus_and_has_no_shape_is_told_of_the_whole_bill(machine):
    row = t.charge(start=99, instance_type=machine, gpus=0, gpu_count=None, gpu_model=None)
    told = found([t.charge(), row], hours=1)["unknown_gpu_type"]
    assert (told.scope, told.count, told.amount) == (f"aws/{machine}", 1, D("98.32"))


def test_a_bill_of_corrections_alone_is_not_compared_with_telemetry():
    rows = [t.charge(), t.charge(gpu_hours=D(-25), is_correction=True)]
    assert "billed_against_measured" not in found(rows, t.node_readings())
