"""Traps of GCP bills, each with the right value worked out by hand, from the file to the answer.

All lie in one extract, each in a project that is named like its trap.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal as D
from typing import Any

import pytest

from tests.exports import json_lines
from tests.providers.gcp_cases import CUD, ON_DEMAND, charge, credit
from tests.traps.books import Books

AFTER = date(2026, 11, 2)
GPU_FEE = "Commitment v1: Nvidia H100 80GB GPU running in Americas for 1 Year"
SPEND_FEE = "Commitment - dollar based v1: GCE for 1 year"
DWS = "DWS Defined Duration"


def quantity(amount: float, unit: str) -> dict[str, Any]:
    return {"amount": amount, "unit": unit, "amount_in_pricing_units": amount, "pricing_unit": unit}


def vm(name: str) -> dict[str, Any]:
    home = "//compute.googleapis.com/projects/ml/zones/us-central1-a/instances"
    return {"resource": {"name": name, "global_name": f"{home}/{name}"}}


def fee(sku: str, cost: str, name: str, **more: Any) -> dict[str, Any]:
    """The fee of an hour of a commitment of 16."""
    row = {"resource": None, "system_labels": [], "usage": quantity(16, "hour"),
           "subscription": {"instance_id": name}}  # fmt: skip
    return charge(sku, cost, **{**row, **more})


def hour(day: int, first: int, month: str) -> dict[str, Any]:
    """One hour of November 2026, billed in a month."""
    end = f"2026-11-{day + (first == 23):02}T{(first + 1) % 24:02}:00:00Z"
    start = f"2026-11-{day:02}T{first:02}:00:00Z"
    return {"usage_start_time": start, "usage_end_time": end, "invoice": {"month": month}}


CASES = {
    # 16 GPUs committed at 64 an hour; one VM of 8 runs in it, whose 78.4 a credit cancels.
    "trap-06": [
        fee(GPU_FEE, "64", "c-6", billing_account_id="06"),
        charge(ON_DEMAND, "78.4", credits=[credit("-78.4", CUD)], billing_account_id="06",
               **vm("vm-6")),
    ],
    # Older: fee 60, a credit that pays the VM's 78.4. Newer: VM at 50, fee 100 less offset 50.
    "trap-07": [
        fee(SPEND_FEE, "60", "old"),
        charge(ON_DEMAND, "78.4", credits=[credit("-78.4", f"{CUD}_DOLLAR_BASE")], **vm("old")),
        fee(SPEND_FEE, "100", "new", credits=[credit("-50", "FEE_UTILIZATION_OFFSET")]),
        charge(ON_DEMAND, "50", consumption_model={"id": "9", "description": "CUD 1 Year"},
               cost_at_list="78.4", **vm("new")),
    ],
    "trap-08": [
        # 8 x 4.200761, 208 x 0.010934, 1872 x 0.000952, 6000 x 0.0001096
        charge(f"Nvidia H100 80GB GPU attached to {DWS} VMs running in Americas", "33.606088",
               **vm("vm-8")),
        charge(f"{DWS} A3 Core running in Americas", "2.274272", usage=quantity(208, "hour"),
               **vm("vm-8")),
        charge(f"{DWS} A3 Ram running in Americas", "1.782144",
               usage=quantity(1872, "gibibyte hour"), **vm("vm-8")),
        charge(f"{DWS} SSD backed Local Storage in Americas", "0.6576",
               usage=quantity(6000, "gibibyte hour"), **vm("vm-8")),
    ],
    # The last hours of October in California, whose 1 November has 25 hours.
    "trap-18": [
        charge(ON_DEMAND, "80", **vm("vm-18"), **hour(1, 2, "202610")),
        *(charge(ON_DEMAND, "80", **vm("vm-18"), **hour(1, n, "202611")) for n in range(3, 24)),
    ],
    "trap-23": [
        charge(ON_DEMAND, "80", credits=[credit("-30", "PROMOTION")], **vm("vm-23")),
        charge("Tax", "8", cost_type="tax", resource=None, usage=quantity(0, "requests")),
        charge(ON_DEMAND, "-80", usage=quantity(-8, "hour"), adjustment_info={"id": "a"},
               **vm("vm-23")),
        charge(ON_DEMAND, "70", usage=quantity(7, "hour"), adjustment_info={"id": "a"},
               **vm("vm-23")),
        charge(ON_DEMAND, "-5", usage=quantity(0, "hour"), adjustment_info={"id": "b"},
               **vm("vm-23"), **hour(1, 5, "202611")),
    ],
    "trap-23-more": [
        charge(ON_DEMAND, "80", credits=[credit("-40", CUD), credit("-5", "RESELLER_MARGIN")],
               billing_account_id="23", **vm("vm-23-more")),
        fee(GPU_FEE, "48", "c-23", credits=[credit("-8", "PROMOTION")], usage=quantity(4, "hour"),
            billing_account_id="23"),
    ],
    "trap-28": [
        charge(ON_DEMAND, "80", transaction_type="GOOGLE", **vm("vm-28")),
        charge("Acme licence", "24", service={"id": "X", "description": "Model Server"},
               seller_name="Acme", transaction_type="THIRD_PARTY_RESELLER",
               usage=quantity(1, "hour"), **vm("vm-28")),
    ],
    "bl-05-two": [charge(ON_DEMAND, "10", credits=[credit("-2"), credit(-1)], **vm("vm-5"))],
    "bl-05-none": [charge(ON_DEMAND, "10", credits=[], **vm("vm-5"))],
}  # fmt: skip


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    folder = tmp_path_factory.mktemp("gcp")
    rows = [{**row, "project": {"id": trap}} for trap, case in CASES.items() for row in case]
    october = {"usage_start_time": "2026-10-31T10:00:00Z", "invoice": {"month": "202610"},
               "usage_end_time": "2026-10-31T11:00:00Z"}  # fmt: skip
    rows = [row if "2026-11" in row["usage_start_time"] else {**row, **october} for row in rows]
    return Books(folder).load(json_lines(folder / "export.jsonl", rows))


def test_trap_06_a_resource_commitment_is_its_fee_once_neither_doubled_nor_free(
    books: Books,
) -> None:
    assert books.sum(account="trap-06") == 64  # not 64 + 78.4, and not 0
    hours = books.fleet(AFTER, account="trap-06")
    # The VM bears half of the fee, the rest is unused: neither a free GPU nor 64 for one VM.
    used = hours[~hours["instance_id"].str.startswith("commitment:")]
    assert (sum(used["gpu_hours"]), sum(used["cost"]), sum(hours["cost"])) == (8, 32, 64)


def test_trap_07_both_spend_models_in_one_month_count_each_dollar_once(books: Books) -> None:
    # 60 + 0 + (100 - 50) + 50; not 60 + 78.4 + 100 + 50 = 288.4
    assert books.sum(account="trap-07") == 160
    assert books.sum(account="trap-07", charge_type="fee") == 110
    assert books.sum("gpu_hours", account="trap-07") == 16
    assert books.sum(account="trap-07", purchase_option="savings_plan") == 160
    assert books.sum("list_cost", account="trap-07") == D("78.4")  # of what states it


def test_trap_08_a_vm_hour_of_four_skus_is_eight_gpu_hours_at_the_cost_of_all_four(
    books: Books,
) -> None:
    assert books.sum("gpu_hours", account="trap-08") == 8  # not 8 + 208 + 1872 + 6000
    assert books.sum(account="trap-08") == D("38.320104")
    hours = books.fleet(AFTER, account="trap-08")
    # 4.79 a GPU-hour; the GPU SKU alone says 4.20, 12 % too little.
    assert (sum(hours["gpu_hours"]), sum(hours["cost"])) == (8, D("38.320104"))


def test_trap_18_the_month_of_the_bill_is_googles_and_the_hours_are_utc(books: Books) -> None:
    assert books.sum(account="trap-18", billing_period="2026-10") == 80
    assert books.sum(account="trap-18", billing_period="2026-11") == 1680  # 21 x 80
    assert books.sum(account="trap-18", day="2026-11-01") == 1760
    hours = books.fleet(AFTER, account="trap-18")["hour_start"]
    assert (len(hours), hours.nunique()) == (22, 22)  # 02:00 to 24:00 UTC, no hour twice
    assert hours.min().isoformat() == "2026-11-01T02:00:00+00:00"


def test_trap_23_corrections_keep_their_sign_and_tax_and_promotion_are_told_apart(
    books: Books,
) -> None:
    # 80 - 30 + 8 - 80 + 70 - 5; 8 - 8 + 7 GPU-hours; a day may be below zero.
    assert books.sum(account="trap-23") == 43
    assert books.sum("gpu_hours", account="trap-23") == 7
    assert books.sum(account="trap-23", day="2026-11-01") == -5
    assert books.sum(account="trap-23", charge_type="tax") == 8
    # The promotion pays 30 of the bill; the machine costs 80 - 80 + 70 - 5 without it.
    assert sum(books.fleet(AFTER, account="trap-23")["cost"]) == 65


def test_trap_23_a_reseller_margin_and_a_promotion_are_in_no_unit_price(books: Books) -> None:
    # The fee of 48 has a promotion of 8, the VM half a margin of 5: in the totals both.
    assert books.sum(account="trap-23-more") == 80 - 40 - 5 + 48 - 8
    hours = books.fleet(AFTER, account="trap-23-more")
    costs = {option: sum(part["cost"]) for option, part in hours.groupby("purchase_option")}
    # 4 GPUs at their price of 10, and 4 of the commitment at 12: neither 35 / 4 nor 40 / 4.
    assert costs == {"on_demand": 40, "reserved": 48}
    assert {sum(part["gpu_hours"]) for _, part in hours.groupby("purchase_option")} == {4}


def test_trap_28_what_google_only_resells_is_no_part_of_a_gpu_rate(books: Books) -> None:
    assert books.sum(account="trap-28") == 104
    assert sum(books.fleet(AFTER, account="trap-28")["cost"]) == 80


def test_bl_05_two_credits_on_a_row_are_both_taken_off_once(books: Books) -> None:
    # 10 - 2 - 1, not 2 x 10 - 3 = 17
    assert books.sum(account="bl-05-two") == 7
    assert books.sum("source_rows", account="bl-05-two") == 1
    assert books.sum("gpu_hours", account="bl-05-two") == 8


def test_bl_05_a_row_with_an_empty_list_of_credits_stays(books: Books) -> None:
    assert books.sum(account="bl-05-none") == 10
    assert books.sum("source_rows", account="bl-05-none") == 1
