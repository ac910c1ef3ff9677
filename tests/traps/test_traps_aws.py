"""Traps of AWS bills, each with the right value worked out by hand, from the file to the answer.

All but one lie in one file, each in a linked account that is named like its trap.
"""

from __future__ import annotations

from decimal import Decimal as D
from typing import TYPE_CHECKING

import pytest

from planner import session
from tests.traps.books import (
    AWS,
    BLOCK_FEE,
    NO_MACHINE,
    RI,
    RI_COVERED,
    RI_FEE,
    SP,
    SP_COVERED,
    SP_FEE,
    SP_NEGATION,
    Books,
    at,
    changed,
    of_account,
)

if TYPE_CHECKING:
    from pathlib import Path

ID = {"identity_line_item_id": "abc", "identity_time_interval": "2026-11-02T03:00:00Z/..."}
POD = {"split_line_item_parent_resource_id": "i-26", "line_item_resource_id": "pod/train-0",
       "line_item_usage_type": "USE1-EKS-EC2-GPU-Hours", "line_item_unblended_cost": "49.16",
       "line_item_product_code": "AmazonEKS", "product_instance_type": ""}  # fmt: skip
SOFTWARE = {"line_item_product_code": "4w1nzgkvexample", "line_item_unblended_cost": "20",
            "bill_billing_entity": "AWS Marketplace", "pricing_public_on_demand_cost": "",
            "line_item_resource_id": "i-28",
            "line_item_usage_type": "USE1-SoftwareUsage:p5.48xlarge"}  # fmt: skip
SUPPORT = {**NO_MACHINE, "line_item_product_code": "AWSSupportEnterprise",
           "line_item_usage_type": "Dollar", "line_item_unblended_cost": "500"}  # fmt: skip
PLAN_FEE = {**NO_MACHINE, **at(0, 1), "line_item_line_item_type": "SavingsPlanUpfrontFee",
            "line_item_product_code": "ComputeSavingsPlans", "line_item_unblended_cost": "8760",
            "savings_plan_savings_plan_a_r_n": SP}  # fmt: skip
RI_UPFRONT = {
    **NO_MACHINE,
    **at(0, 1),
    "line_item_line_item_type": "Fee",
    "line_item_usage_type": "USE1-HeavyUsage:p5.48xlarge",
    "line_item_unblended_cost": "21600",
    "reservation_reservation_a_r_n": RI,
}
# A month at 1,600 on demand: 600 recurring and 21,600 / 36 = 600 upfront make 1,200 of it.
MONTH = {
    "line_item_usage_start_date": "2026-11-01T00:00:00Z",
    "line_item_usage_end_date": "2026-12-01T00:00:00Z",
    "line_item_usage_amount": "720",
}
RETURNED = {"line_item_line_item_type": "Refund", "line_item_unblended_cost": "-8760"}
BLOCK = "arn:aws:ec2:us-east-1:000000000024:capacity-reservation/cr-1"
DAY = {"line_item_usage_start_date": "2026-11-02T00:00:00Z",
       "line_item_usage_end_date": "2026-11-03T00:00:00Z"}  # fmt: skip
IN_BLOCK = {
    "line_item_unblended_cost": "0",
    "line_item_resource_id": "i-24",
    "capacity_reservation_capacity_reservation_arn": BLOCK,
    "capacity_reservation_capacity_reservation_type": "EC2 Capacity Block for ML",
}
CASES = {
    "01": changed(AWS, {**RI_COVERED, **at(3)}, {**RI_COVERED, **at(4)}, RI_FEE),
    # An hour that a plan of 75 an hour covers at 60.
    "02": changed(AWS, SP_COVERED, SP_NEGATION, SP_FEE),
    "04": changed(AWS, RI_UPFRONT, PLAN_FEE, *({**RI_COVERED, **at(3, d)} for d in (1, 2, 3))),
    "19": changed(AWS, ID, {**ID, "line_item_resource_id": "i-2"}) * 2,
    "26": changed(AWS, {"line_item_resource_id": "i-26"}, POD, POD),
    "28": changed(AWS, {"line_item_resource_id": "i-28"}, SOFTWARE, SUPPORT),
    "10": changed(AWS, SP_COVERED, SP_NEGATION),
    "11": changed(AWS, PLAN_FEE, {**PLAN_FEE, **RETURNED}),
    "09": [
        {**AWS, "line_item_usage_type": f"USE1-BoxUsage:{kind}", "product_instance_type": kind,
         "line_item_resource_id": f"i-{kind}"}
        for kind in ("p5.48xlarge", "p5.4xlarge", "p5e.48xlarge", "p5en.48xlarge")
    ],
    "17": changed(AWS, {"line_item_currency_code": "NOK"}, {"line_item_currency_code": "USD"}),
    # A block of two nodes from 11:30 to 11:30, 2000 less 80: 1920 / 48 = 40 an instance-hour.
    "24": changed(
        AWS,
        {**BLOCK_FEE, **DAY, "line_item_unblended_cost": "2000"},
        {**BLOCK_FEE, **DAY, "line_item_unblended_cost": "-80",
         "line_item_line_item_type": "Refund"},
        {**IN_BLOCK, **at(11), "line_item_usage_start_date": "2026-11-02T11:30:00Z",
         "line_item_usage_amount": "0.5"},
        *({**IN_BLOCK, **at(hour)} for hour in range(12, 24)),
        {**at(11, 3), "line_item_resource_id": "i-25"},  # the bill reaches the block's end
    ),
    # Half of an hour is covered, half is on demand; and two rows that look alike are two.
    "30": changed(
        AWS,
        {**SP_COVERED, "line_item_usage_amount": "0.5", "line_item_resource_id": "i-30",
         "savings_plan_savings_plan_effective_cost": "30", "line_item_unblended_cost": "49.16"},
        {"line_item_usage_amount": "0.5", "line_item_unblended_cost": "49.16",
         "line_item_resource_id": "i-30"},
        {"line_item_usage_amount": "0.25", "line_item_unblended_cost": "24.58",
         "line_item_resource_id": "i-31"},
        {"line_item_usage_amount": "0.25", "line_item_unblended_cost": "24.58",
         "line_item_resource_id": "i-31"},
    ),
    "13": changed(
        AWS,
        {**RI_COVERED, **MONTH, "reservation_effective_cost": "1200",
         "pricing_public_on_demand_cost": "1600"},
        {**RI_FEE, **MONTH, "line_item_unblended_cost": "600",
         "reservation_unused_amortized_upfront_fee_for_billing_period": "0",
         "reservation_unused_recurring_fee": "0"},
        {**RI_UPFRONT, **MONTH},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    rows = [
        row
        for trap, case in CASES.items()
        for row in of_account(trap, case, line_item_usage_account_id="0000000000{}",
                              bill_payer_account_id="1000000000{}")
    ]  # fmt: skip
    found = Books(tmp_path_factory.mktemp("aws")).load_rows(rows)
    (found.folder / "commitments.csv").write_text(
        "id,cloud,account,kind,instance_type,region,count,start,end,payment\n"
        "cr-1,aws,000000000024,capacity_block,p5.48xlarge,us-east-1,2,"
        "2026-11-02T11:30:00Z,2026-11-03T11:30:00Z,all_upfront\n"
    )
    return found.load(found.folder / "commitments.csv")


def account(trap: str) -> dict[str, str]:
    return {"account": f"0000000000{trap}"}


def test_trap_01_the_recurring_fee_of_a_reservation_is_not_counted_beside_its_usage(
    books: Books,
) -> None:
    # 61.5 + 61.5 used; 12.25 + 3.5 unused; not the whole fee of 1000 once more (1123 or 1138.75)
    assert books.sum(**account("01")) == D("138.75")
    assert books.sum(**account("01"), commitment_status="unused") == D("15.75")
    assert books.sum("billed_cost", **account("01")) == 1000
    assert books.sum("gpu_hours", **account("01")) == 16
    assert books.sum("source_rows", **account("01"), purchase_option="reserved") == 3


def test_trap_02_negation_is_in_the_billed_sum_and_not_in_the_amortised_one(
    books: Books,
) -> None:
    # billed: 98.32 - 98.32 + 75; amortised: 60 used + (75 - 60) unused
    assert books.sum("billed_cost", **account("02")) == 75
    assert books.sum(**account("02")) == 75
    assert books.sum(**account("02"), charge_type="adjustment") == 0


def test_trap_03_the_recurring_fee_of_a_plan_costs_only_what_no_usage_took(
    books: Books,
) -> None:
    assert books.sum(**account("02"), commitment_status="used") == 60
    assert books.sum(**account("02"), commitment_status="unused") == 15  # not 75
    # All of it is in the fleet's hours: 60 on the node, 15 on what stood free.
    assert sum(books.fleet(**account("02"))["cost"]) == 75


def test_trap_04_an_upfront_fee_is_no_spike_in_the_amortised_days(books: Books) -> None:
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        assert books.sum(**account("04"), day=day) == D("61.5")
    assert books.sum("billed_cost", **account("04")) == 21600 + 8760


def test_trap_05_unused_commitments_are_money_without_hours(books: Books) -> None:
    # Of the reservation 15.75, of the plan 15.
    unused = {"commitment_status": "unused"}
    assert books.sum(**account("01"), **unused) + books.sum(**account("02"), **unused) == D("30.75")
    assert books.sum("gpu_hours", **unused) == books.sum("instance_hours", **unused) == 0
    # The node of the covered hour alone, not it and what was unused.
    assert books.sum("gpu_hours", **account("02")) == 8


def test_trap_09_p5e_and_p5en_are_no_h100(books: Books) -> None:
    def hours(model: str) -> D | None:
        return books.sum("gpu_hours", **account("09"), gpu_model=model)

    assert hours("H100-SXM5-80GB") == 9  # 8 + 1
    assert hours("H200-SXM5-141GB") == 16


def test_trap_17_amounts_of_two_currencies_are_never_added(books: Books) -> None:
    found = {}
    for currency in ("NOK", "USD"):
        found[currency] = books.sum(**account("17"), currency=currency)
    assert found == {"NOK": D("98.32"), "USD": D("98.32")}
    costs = {code: sum(part["cost"]) for code, part in
             books.fleet(**account("17")).groupby("currency")}  # fmt: skip
    assert costs == found


def test_trap_19_line_item_ids_repeat_and_no_row_is_lost(books: Books) -> None:
    assert books.sum("source_rows", **account("19")) == 4
    assert books.sum(**account("19")) == D("393.28")  # 4 x 98.32


def test_trap_24_a_capacity_block_costs_its_fee_in_its_own_hours_and_never_looks_free(
    books: Books,
) -> None:
    # The bill keeps the fee on its day, net of the refund.
    assert books.sum(**account("24"), purchase_option="capacity_block") == 1920
    hours = books.fleet(**account("24"), purchase_option="capacity_block")
    day = hours[hours["hour_start"].dt.day == 2]
    costs = {name: sum(part["cost"]) for name, part in day.groupby("instance_id")}
    # On the 2nd the block lasts 12.5 hours on two nodes: i-24 ran in them all, the other in none.
    assert costs == {"i-24": 500, "commitment:cr-1": 500}
    assert sum(hours["cost"]) == 1920
    assert sum(day.loc[day["instance_id"] == "i-24", "gpu_hours"]) == 100  # 12.5 x 8


def test_trap_26_pod_rows_of_split_allocation_repeat_no_money_of_their_node(books: Books) -> None:
    # The node's 98.32, not 98.32 + 49.16 + 49.16.
    assert books.sum(**account("26")) == books.sum("billed_cost", **account("26")) == D("98.32")
    assert books.sum("gpu_hours", **account("26")) == 8
    assert sum(books.fleet(**account("26"))["cost"]) == D("98.32")


def test_trap_27_a_commitment_that_other_accounts_use_is_one_commitment(tmp_path: Path) -> None:
    """The payer owns it, two linked accounts use it: 2 of 3 hours, the third is unused."""
    one = {**SP_COVERED, "line_item_usage_account_id": "000000000001"}
    two = {**SP_COVERED, **at(4), "line_item_usage_account_id": "000000000002",
           "line_item_resource_id": "i-2"}  # fmt: skip
    other = {**at(5), "line_item_usage_account_id": "000000000002"}
    fees = [{**SP_FEE, **at(hour), "savings_plan_total_commitment_to_date": "60",
             "savings_plan_used_commitment": used, "line_item_unblended_cost": "60",
             "line_item_usage_account_id": "000011112222"}
            for hour, used in ((3, "60"), (4, "60"), (5, "0"))]  # fmt: skip
    books = Books(tmp_path).load_rows(changed(AWS, one, two, other, *fees))
    # 60 in one account, 60 + 98.32 in the other, 60 unused in the payer's.
    assert books.by("account") == {
        "000000000001": D(60), "000000000002": D("158.32"), "000011112222": D(60),
    }  # fmt: skip
    (tmp_path / "commitments.csv").write_text(
        "id,cloud,account,kind,usd_per_hour,region,start,end,payment\n"
        f"{SP},aws,000011112222,savings_plan,60,,2026-11-01,2027-11-01,no_upfront\n"
    )
    books.load(tmp_path / "commitments.csv")
    (row,) = session.commitments_answer(books.session())["rows"]
    # A month of 730 hours: 60 x 730 = 43800, of which two thirds are used.
    assert (D(row["committed"]), D(row["used"]), D(row["unused"])) == (43800, 29200, 14600)
    assert row["used_share"] == pytest.approx(2 / 3)


def test_trap_28_marketplace_and_support_are_no_part_of_a_gpu_rate(books: Books) -> None:
    assert books.sum(**account("28")) == D("618.32")  # all of the bill's money
    fleet = books.fleet(**account("28"))
    # 98.32 over 8 GPU-hours: neither 118.32 nor 618.32.
    assert (sum(fleet["cost"]), sum(fleet["gpu_hours"])) == (D("98.32"), 8)


def test_bl_10_savings_plan_rows_are_one_hour_at_the_plans_price(books: Books) -> None:
    assert books.sum("instance_hours", **account("10")) == 1
    assert books.sum(**account("10")) == 60  # not 158.32
    assert books.sum("billed_cost", **account("10")) == 0  # 98.32 - 98.32
    # The negation has no resource: a sum by instance loses it, and loses nothing.
    assert sum(books.fleet(**account("10"))["cost"]) == 60


def test_bl_10_a_plan_that_is_returned_adds_nothing(books: Books) -> None:
    assert (books.sum(**account("11")), books.sum("billed_cost", **account("11"))) == (0, 0)


def test_bl_13_an_upfront_fee_is_in_the_amortised_rate_and_not_subtracted_once_more(
    books: Books,
) -> None:
    listed = books.sum("list_cost", **account("13"), charge_type="usage")
    cost = books.sum(**account("13"))
    assert (listed, cost) == (1600, 1200)
    assert (listed - cost) / listed == D("0.25")  # not (400 - 600) / 1600 = -0.125


def test_trap_30_rows_of_one_resource_and_hour_all_count_also_those_that_look_alike(
    books: Books,
) -> None:
    # 30 covered and 49.16 on demand; and 2 x 24.58
    assert books.sum("source_rows", **account("30")) == 4
    assert books.sum(**account("30")) == D("128.32")
    assert books.sum("gpu_hours", **account("30")) == 12  # 4 + 4, and 2 + 2
    hours = books.fleet(**account("30"), instance_id="i-30")
    costs = {option: sum(part["cost"]) for option, part in hours.groupby("purchase_option")}
    assert costs == {"savings_plan": 30, "on_demand": D("49.16")}
