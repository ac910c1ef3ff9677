"""Traps of AWS bills, each with the right value worked out by hand, from the file to the answer."""

from __future__ import annotations

from decimal import Decimal as D
from typing import TYPE_CHECKING

import pytest

from planner import session
from tests.azure_runs import EA
from tests.traps.books import (
    AWS,
    FOCUS,
    NO_MACHINE,
    RI_COVERED,
    RI_FEE,
    SP,
    SP_COVERED,
    SP_FEE,
    SP_NEGATION,
    Books,
    at,
    changed,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books(tmp_path)


@pytest.fixture
def plan_hour(books: Books) -> Books:
    """An hour that a plan of 75 an hour covers at 60: covered row, negation, recurring fee."""
    return books.load_rows(changed(AWS, SP_COVERED, SP_NEGATION, SP_FEE))


def test_trap_01_the_recurring_fee_of_a_reservation_is_not_counted_beside_its_usage(
    books: Books,
) -> None:
    books.load_rows(changed(AWS, {**RI_COVERED, **at(3)}, {**RI_COVERED, **at(4)}, RI_FEE))
    # 61.5 + 61.5 used; 12.25 + 3.5 unused; not the whole fee of 1000 once more (1123 or 1138.75)
    assert books.sum() == D("138.75")
    assert books.sum(commitment_status="unused") == D("15.75")
    assert books.sum("billed_cost") == 1000
    assert books.sum("gpu_hours") == 16
    assert set(books.by("purchase_option")) == {"reserved"}


def test_trap_02_negation_is_in_the_billed_sum_and_not_in_the_amortised_one(
    plan_hour: Books,
) -> None:
    # billed: 98.32 - 98.32 + 75; amortised: 60 used + (75 - 60) unused
    assert plan_hour.sum("billed_cost") == 75
    assert plan_hour.sum() == 75
    assert plan_hour.by("charge_type") == {"usage": D(60), "adjustment": D(0), "fee": D(15)}


def test_trap_03_the_recurring_fee_of_a_plan_costs_only_what_no_usage_took(
    plan_hour: Books,
) -> None:
    assert plan_hour.by("commitment_status") == {"used": D(60), "unused": D(15), None: D(0)}
    assert plan_hour.sum("gpu_hours", commitment_status="unused") == 0
    # All of it is in the fleet's hours: 60 on the node, 15 free, none twice (135).
    assert sum(plan_hour.fleet()["cost"]) == 75


def test_trap_04_an_upfront_fee_is_no_spike_in_the_amortised_days(books: Books) -> None:
    upfront = {
        **NO_MACHINE,
        **at(0, 1),
        "line_item_line_item_type": "Fee",
        "line_item_usage_type": "USE1-HeavyUsage:p5.48xlarge",
        "line_item_unblended_cost": "21600",
        "reservation_reservation_a_r_n": RI_FEE["reservation_reservation_a_r_n"],
    }
    plan = {
        **NO_MACHINE,
        **at(0, 1),
        "line_item_line_item_type": "SavingsPlanUpfrontFee",
        "line_item_unblended_cost": "8760",
        "savings_plan_savings_plan_a_r_n": SP,
    }
    books.load_rows(changed(AWS, upfront, plan, *({**RI_COVERED, **at(3, d)} for d in (1, 2, 3))))
    days = {str(day): cost for day, cost in books.by("day").items()}
    assert days == {"2026-11-01": D("61.5"), "2026-11-02": D("61.5"), "2026-11-03": D("61.5")}
    assert books.sum("billed_cost") == 21600 + 8760


def test_trap_05_unused_commitments_are_money_without_hours(
    plan_hour: Books, tmp_path: Path
) -> None:
    """Of a plan 15, of a reservation 15.75, of an Azure reservation 9, of FOCUS 30."""
    reserved = changed(AWS, RI_COVERED, RI_FEE)
    other = {"bill_payer_account_id": "000055556666"}
    plan_hour.load_rows([{**row, **other} for row in reserved], "ri.csv")
    unused = {
        **EA,
        "ChargeType": "UnusedReservation",
        "PricingModel": "Reservation",
        "ReservationId": "r-1",
        "CostInBillingCurrency": "9",
        "ResourceId": "",
    }
    plan_hour.load_rows([unused], "amortized.csv")
    rest = {**FOCUS, "PricingCategory": "Committed", "CommitmentDiscountId": SP, "BilledCost": "0",
            "CommitmentDiscountStatus": "Unused", "EffectiveCost": "30", "ConsumedQuantity": "",
            "BillingAccountId": "000077778888"}  # fmt: skip
    plan_hour.load_rows([rest], "focus.csv")
    # 15 + 15.75 + 9 + 30
    assert plan_hour.sum(commitment_status="unused") == D("69.75")
    assert plan_hour.sum("gpu_hours", commitment_status="unused") == 0
    assert plan_hour.sum("instance_hours", commitment_status="unused") == 0
    # The two used node-hours alone.
    assert plan_hour.sum("gpu_hours") == 16


def test_trap_19_line_item_ids_repeat_and_no_row_is_lost(books: Books) -> None:
    same = {"identity_line_item_id": "abc", "identity_time_interval": "2026-11-02T03:00:00Z/..."}
    books.load_rows([{**AWS, **same}, {**AWS, **same, "line_item_resource_id": "i-2"}] * 2)
    assert books.sum("source_rows") == 4
    assert books.sum() == D("393.28")  # 4 x 98.32


def test_trap_26_pod_rows_of_split_allocation_repeat_no_money_of_their_node(books: Books) -> None:
    pod = {"split_line_item_parent_resource_id": "i-1", "line_item_resource_id": "pod/train-0",
           "line_item_usage_type": "USE1-EKS-EC2-GPU-Hours", "line_item_unblended_cost": "49.16",
           "split_line_item_split_cost": "49.16", "line_item_product_code": "AmazonEKS",
           "product_instance_type": ""}  # fmt: skip
    books.load_rows(changed(AWS, {"split_line_item_parent_resource_id": ""}, pod, pod))
    # The node's 98.32, not 98.32 + 49.16 + 49.16.
    assert (books.sum(), books.sum("billed_cost")) == (D("98.32"), D("98.32"))
    assert books.sum("gpu_hours") == 8
    assert sum(books.fleet()["cost"]) == D("98.32")


def test_trap_27_a_commitment_that_other_accounts_use_is_one_commitment(books: Books) -> None:
    """The payer owns it, two linked accounts use it: 2 of 3 hours, the third is unused."""
    one = {**SP_COVERED, "line_item_usage_account_id": "000000000001"}
    two = {**SP_COVERED, **at(4), "line_item_usage_account_id": "000000000002",
           "line_item_resource_id": "i-2"}  # fmt: skip
    other = {**at(5), "line_item_usage_account_id": "000000000002"}
    fees = [{**SP_FEE, **at(hour), "savings_plan_total_commitment_to_date": "60",
             "savings_plan_used_commitment": used, "line_item_unblended_cost": "60",
             "line_item_usage_account_id": "000011112222"}
            for hour, used in ((3, "60"), (4, "60"), (5, "0"))]  # fmt: skip
    books.load_rows(changed(AWS, one, two, other, *fees))
    # 60 in one account, 60 + 98.32 in the other, 60 unused in the payer's.
    assert books.by("account") == {
        "000000000001": D(60), "000000000002": D("158.32"), "000011112222": D(60),
    }  # fmt: skip
    (books.folder / "commitments.csv").write_text(
        "id,cloud,account,kind,usd_per_hour,region,start,end,payment\n"
        f"{SP},aws,000011112222,savings_plan,60,,2026-11-01,2027-11-01,no_upfront\n"
    )
    books.load(books.folder / "commitments.csv")
    (row,) = session.commitments_answer(books.session())
    # A month of 730 hours: 60 x 730 = 43800, of which two thirds are used.
    assert (D(row["committed"]), D(row["used"]), D(row["unused"])) == (43800, 29200, 14600)
    assert row["used_share"] == pytest.approx(2 / 3)


def test_trap_28_marketplace_and_support_are_no_part_of_a_gpu_rate(books: Books) -> None:
    software = {"line_item_product_code": "4w1nzgkvexample", "line_item_unblended_cost": "20",
                "bill_billing_entity": "AWS Marketplace", "pricing_public_on_demand_cost": "",
                "line_item_usage_type": "USE1-SoftwareUsage:p5.48xlarge"}  # fmt: skip
    support = {
        **NO_MACHINE,
        "line_item_product_code": "AWSSupportEnterprise",
        "line_item_usage_type": "Dollar",
        "line_item_unblended_cost": "500",
    }
    books.load_rows(changed(AWS, {}, software, support))
    assert books.sum() == D("618.32")  # all of the bill's money
    fleet = books.fleet()
    # 98.32 over 8 GPU-hours: neither 118.32 nor 618.32.
    assert (sum(fleet["cost"]), sum(fleet["gpu_hours"])) == (D("98.32"), 8)


def test_bl_10_savings_plan_rows_are_one_hour_at_the_plans_price(books: Books) -> None:
    books.load_rows(changed(AWS, SP_COVERED, SP_NEGATION))
    assert books.sum("instance_hours") == 1
    assert books.sum() == 60  # not 158.32
    assert books.sum("billed_cost") == 0  # 98.32 - 98.32
    # The negation has no resource: a sum by instance loses it, and loses nothing.
    assert sum(books.fleet()["cost"]) == 60


def test_bl_10_a_plan_that_is_returned_adds_nothing(books: Books) -> None:
    bought = {**NO_MACHINE, "line_item_line_item_type": "SavingsPlanUpfrontFee",
              "line_item_product_code": "ComputeSavingsPlans", "line_item_unblended_cost": "8760",
              "savings_plan_savings_plan_a_r_n": SP}  # fmt: skip
    returned = {**bought, "line_item_line_item_type": "Refund", "line_item_unblended_cost": "-8760"}
    books.load_rows(changed(AWS, bought, returned))
    assert (books.sum(), books.sum("billed_cost")) == (0, 0)


def test_bl_13_an_upfront_fee_is_in_the_amortised_rate_and_not_subtracted_once_more(
    books: Books,
) -> None:
    """A month at 1,600 on demand; 600 recurring and 21,600 / 36 = 600 upfront make 1,200."""
    month = {
        "line_item_usage_start_date": "2026-11-01T00:00:00Z",
        "line_item_usage_end_date": "2026-12-01T00:00:00Z",
        "line_item_usage_amount": "720",
    }
    covered = {**RI_COVERED, **month, "reservation_effective_cost": "1200",
               "pricing_public_on_demand_cost": "1600"}  # fmt: skip
    fee = {**RI_FEE, **month, "line_item_unblended_cost": "600",
           "reservation_unused_amortized_upfront_fee_for_billing_period": "0",
           "reservation_unused_recurring_fee": "0"}  # fmt: skip
    upfront = {**fee, "line_item_line_item_type": "Fee", "line_item_unblended_cost": "21600"}
    books.load_rows(changed(AWS, covered, fee, upfront))
    listed, cost = books.sum("list_cost", charge_type="usage"), books.sum()
    assert (listed, cost) == (1600, 1200)
    assert (listed - cost) / listed == D("0.25")  # not (400 - 600) / 1600 = -0.125
