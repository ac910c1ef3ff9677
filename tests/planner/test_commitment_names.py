"""Google commitments that no export names, and the parts of a machine that they cover in part.

The commitments of all tests are of one bill, each under a billing account of its own.
"""

from __future__ import annotations

from decimal import Decimal as D
from functools import cache

from data import money
from planner.fees.given import with_fees
from planner.planning import with_owned_ids
from tests import fleet as t
from tests.planner.test_commitment_fees import GPU_FEE, PARTS, SPEND, SPEND_FEE, fee, part, usage

(CORE_FEE, CORE, _), (RAM_FEE, _, _), (SSD_FEE, SSD, _) = PARTS
NAMELESS = {"commitment_id": None, "account": "pays"}
FLEXIBLE = "Commitment - dollar based v1: Compute flexible for 1 year"
OTHER = "Commitment - dollar based v1: Compute flexible for 3 years"
BELGIUM = {"region": "europe-west1"}
PLAN = {**SPEND_FEE, **NAMELESS, "commitment_status": "unused"}
ON_DEMAND = {"covered_qty": None, "purchase_option": "on_demand", "commitment_status": None}
BILLS = {
    # Half of the GPUs and cores of a machine are covered; its disks know nothing of commitments.
    "half": [
        fee(GPU_FEE, 0, "4", "24", **NAMELESS), fee(CORE_FEE, 0, "104", "2.08", **NAMELESS),
        usage("vm-1", 0, 4, "39.2"),
        part("vm-1", 0, CORE, "208", covered_qty=D(104), effective_cost=D("3.0472")),
        part("vm-1", 0, SSD, "6000", effective_cost=D("0.6576"), **ON_DEMAND),
    ],
    # A quarter is covered, and no core: 2 of 8 GPU-hours bear as much of what the disks cost.
    "quarter": [
        fee(GPU_FEE, 0, "2", "12", **NAMELESS), usage("vm-2", 0, 2, "58.8"),
        part("vm-2", 0, CORE, "208", effective_cost=D(6), **ON_DEMAND),
        part("vm-2", 0, SSD, "6000", effective_cost=D(2), **ON_DEMAND),
    ],
    "places": [
        usage("vm-3", 0, 8, "0"),
        fee(GPU_FEE, 0, "16", "64", **NAMELESS), fee(GPU_FEE, 0, "8", "32", **NAMELESS, **BELGIUM),
        fee("Commitment v1: A2 Cpu in Iowa for 1 Year", 0, "96", "5", **NAMELESS),
        fee(SSD_FEE, 0, "6000", "3", **NAMELESS), fee(SSD_FEE, 0, "99", "9", commitment_id="ssd"),
    ],
    "newer": [
        usage("vm-4", 0, 0, "56", **SPEND), fee(FLEXIBLE, 0, "1", "14", **PLAN),
        fee(FLEXIBLE, 1, "1", "70", **(PLAN | {"commitment_status": None})),
    ],
    "plans": [
        usage("vm-5", 0, 0, "56", **SPEND), fee(FLEXIBLE, 0, "1", "11", **PLAN),
        fee(OTHER, 0, "1", "13", **PLAN),
    ],
    # Nothing but machines without GPUs uses this one.
    "others": [fee(FLEXIBLE, 0, "1", "17", **PLAN)],
}  # fmt: skip


@cache
def found():
    bill = [
        row | {"billing_account": payer, "account": f"{payer} {row['account']}"}
        for payer, rows in BILLS.items()
        for row in rows
    ]
    return t.fleet(bill, [], 2)


def costs(payer: str, *by: str) -> dict:
    frame = found().hours
    mine = frame[frame["account"].str.startswith(payer)].fillna({"gpu_model": "-"})
    return mine.groupby(list(by), dropna=False)["cost"].agg(money.total).to_dict()


def test_what_a_commitment_leaves_of_a_machine_is_bought_by_the_hour():
    # Reserved: 24 + 2.08 and half of 0.6576. On demand: 39.2 + 3.0472 and the other half.
    assert costs("half", "instance_id", "purchase_option") == {
        ("vm-1", "reserved"): D("26.4088"),
        ("vm-1", "on_demand"): D("42.5760"),
    }
    # Reserved: 12 and 2/8 of 8; on demand: 58.8 and 6/8 of 8.
    assert costs("quarter", "instance_id", "purchase_option") == {
        ("vm-2", "reserved"): 14,
        ("vm-2", "on_demand"): D("64.8"),
    }


def test_commitments_cost_their_fees_and_not_the_disks_of_what_they_cover():
    rows = with_owned_ids(with_fees(found().hours, found().fees), t.owned())
    mine = rows[rows["commitment_id"].fillna("").str.startswith("half pays")]
    assert mine.groupby("commitment_id")["cost"].agg(money.total).to_dict() == {
        "half pays|us-central1|gpu 80gb h100": 24,
        "half pays|us-central1|a3 core": D("2.08"),
    }


def test_unused_fees_without_an_id_are_told_by_place_and_resource():
    # Of 16 GPUs at 4.00, 8 are used. Of the disks, those bought in the GPUs' place are the GPUs'.
    assert costs("places", "instance_id", "region", "gpu_model") == {
        ("vm-3", "us-central1", "H100-SXM5-80GB"): 32,
        ("commitment:places pays|us-central1|gpu 80gb h100", "us-central1", "H100-SXM5-80GB"): 32,
        ("commitment:places pays|europe-west1|gpu 80gb h100", "europe-west1",
         "H100-SXM5-80GB"): 32,
        ("commitment:places pays|us-central1|a2 core", "us-central1", "-"): 5,
        ("commitment:places pays|us-central1|ssd", "us-central1", "-"): 3,
    }  # fmt: skip
    scopes = [row.scope for row in found().findings if row.check == "unused_capacity"]
    assert "gcp/places pays|europe-west1|gpu 80gb h100" in scopes
    assert "gcp/places pays|us-central1|gpu 80gb h100" in scopes


def test_what_a_newer_spend_plan_leaves_unused_is_idle_and_its_usage_is_used():
    name = "newer pays|us-central1|spend compute flexible for 1 year"
    # Its fee of 70 is 56 used and 14 unused in hour 0; in hour 1 nothing used it.
    assert costs("newer", "commitment_id", "instance_id") == {
        (name, "vm-4"): 56,
        (name, f"commitment:{name}"): 84,
    }


def test_of_several_plans_none_is_guessed_and_what_they_leave_counts_where_gpus_use_them():
    unused = "commitment:plans pays|us-central1|spend compute flexible for"
    by_id = costs("plans", "instance_id")
    assert by_id == {"vm-5": 56, f"{unused} 1 year": 11, f"{unused} 3 years": 13}
    hours = found().hours
    assert hours.loc[hours["instance_id"] == "vm-5", "commitment_id"].isna().all()
    assert costs("others", "instance_id") == {}
