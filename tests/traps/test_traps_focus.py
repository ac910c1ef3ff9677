"""Traps of FOCUS datasets, each with the right value worked out by hand.

All lie in one file, each in a sub account that is named like its trap.
"""

from __future__ import annotations

from decimal import Decimal as D

import pytest

from tests.traps.books import FOCUS, SP, Books, changed, of_account

COVERED = {
    "PricingCategory": "Committed",
    "BilledCost": "0",
    "CommitmentDiscountId": SP,
    "CommitmentDiscountStatus": "Used",
    "CommitmentDiscountCategory": "Spend",
}
PURCHASE = {"ChargeCategory": "Purchase", "ConsumedQuantity": "", "ResourceId": SP,
            "SkuPriceDetails": "", "CommitmentDiscountId": SP, "EffectiveCost": "0",
            "CommitmentDiscountCategory": "Spend", "ChargeFrequency": "One-Time"}  # fmt: skip
MOVED = {"ChargeClass": "Correction", "BillingPeriodStart": "2026-12-01T00:00:00Z",
         "BillingPeriodEnd": "2027-01-01T00:00:00Z"}  # fmt: skip


def costs(billed: str, effective: str, listed: str) -> dict[str, str]:
    return {"BilledCost": billed, "EffectiveCost": effective, "ListCost": listed}


CASES = {
    "trap-05": changed(
        FOCUS,
        {**COVERED, "EffectiveCost": "60"},
        {**COVERED, "EffectiveCost": "30", "CommitmentDiscountStatus": "Unused",
         "ConsumedQuantity": "", "ResourceId": SP, "SkuPriceDetails": ""},
    ),
    "trap-12": changed(FOCUS, {"BillingPeriodStart": ""}, {}),
    # 100 of i-1 is taken back and charged to two others: hours and dollars move, none is made.
    "trap-23": changed(
        FOCUS,
        {**MOVED, **costs("-100", "-100", "-100"), "ConsumedQuantity": "-1"},
        {**MOVED, **costs("80", "80", "80"), "ConsumedQuantity": "0.8", "ResourceId": "i-2"},
        {**MOVED, **costs("20", "20", "20"), "ConsumedQuantity": "0.2", "ResourceId": "i-3"},
    ),
    "trap-28": changed(
        FOCUS,
        {"ResourceId": "i-28"},
        {**costs("20", "20", "20"), "PublisherName": "Red Hat Inc.", "ResourceId": "i-28",
         "ConsumedUnit": "Units", "SkuPriceDetails": "", "ServiceName": "AWS Marketplace"},
        {"ResourceId": "i-29", "PublisherName": "Amazon Web Services EMEA SARL"},
    ),
    "bl-11": changed(
        FOCUS,
        {**PURCHASE, **costs("20000", "0", "20000")},
        {**COVERED, **costs("0", "12000", "18000")},
        {**COVERED, **costs("0", "8000", "12000")},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    rows = [
        row for trap, case in CASES.items() for row in of_account(trap, case, SubAccountId="{}")
    ]
    return Books(tmp_path_factory.mktemp("focus")).load_rows(rows, "focus.csv")


def test_trap_05_the_unused_part_of_a_commitment_is_money_without_hours(books: Books) -> None:
    assert books.sum(account="trap-05", commitment_status="unused") == 30
    assert books.sum("gpu_hours", account="trap-05", commitment_status="unused") == 0
    assert books.sum("gpu_hours", account="trap-05") == 8


def test_trap_12_an_exclusive_end_of_the_period_is_not_the_next_month(books: Books) -> None:
    # Both rows end on 1 December and are November's; one does not say where it starts.
    assert books.sum("source_rows", account="trap-12", billing_period="2026-11") == 2


def test_trap_23_a_correction_nets_to_zero_and_moves_cost_between_resources(books: Books) -> None:
    assert books.sum(account="trap-23") == 0
    assert books.sum("gpu_hours", account="trap-23") == 0  # -8 + 6.4 + 1.6
    assert books.sum("source_rows", account="trap-23", billing_period="2026-12") == 3
    moved = {row[0]: row[1] for row in books.rows("resource_id", "effective_cost", "is_correction")
             if row[2]}  # fmt: skip
    assert moved == {"i-1": -100, "i-2": 80, "i-3": 20}


def test_trap_28_another_publisher_is_no_part_of_a_gpu_rate(books: Books) -> None:
    assert books.sum(account="trap-28") == D("216.64")  # 98.32 + 20 + 98.32
    sellers = [row[1:] for row in books.rows("account", "resource_id", "seller")
               if row[0] == "trap-28"]  # fmt: skip
    # A subsidiary of the provider is the provider.
    assert sellers == [("i-28", None), ("i-28", "Red Hat Inc."), ("i-29", None)]


def test_bl_11_savings_are_list_less_effective_cost_of_usage_alone(books: Books) -> None:
    usage = {"account": "bl-11", "charge_type": "usage"}
    listed, cost = books.sum("list_cost", **usage), books.sum(**usage)
    assert (listed, cost, listed - cost) == (30000, 20000, 10000)
    # Beside the purchase, whose list cost is that of the same hours, it would be 30,000.
    assert books.sum("list_cost", account="bl-11") == 50000
    assert books.sum(account="bl-11") == 20000
