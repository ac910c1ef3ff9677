"""Refunds of Capacity Blocks, fees outside of the hours, and sums that divide exactly.

The blocks of all tests are of one bill, each in an account of its own.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as D
from functools import cache

from data import money, quality
from data.quality import Finding
from planner.fleet_hours import Policy
from tests import fleet as t
from tests.planner.test_block_fees import arn, block, fee, run

ALL_HOURS = [11.5, *range(12, 35)]
HALF = {"period_end": t.hour(35.5), "gpu_hours": D(4)}


def named(account: str, cost: str, block_id: str, **more) -> dict:
    return fee(account, cost, capacity_reservation_id=arn(block_id), **more)


def refund(account: str, cost: str, **more) -> dict:
    return fee(account, cost, charge_type="refund", **more)


BILL = [
    # The refund undoes the second fee to the cent.
    named("undone", "1920", "cr-undone"), named("undone", "960", "cr-u2"), refund("undone", "-960"),
    *run("undone", "i-1", [12, 13]),
    # It is of both: 300 of 3,000 are 200 of 2,000 and 100 of 1,000.
    named("both", "2000", "cr-both"), named("both", "1000", "cr-b2"), refund("both", "-300"),
    # A fee that names no reservation is of the block that no other fee names.
    named("plain", "960", "cr-plain"), fee("plain", "1440"),
    # 8,000 over 2 x 24 instance-hours is 166.666... an hour.
    fee("thirds", "9000"), refund("thirds", "-1000"),
    *run("thirds", "i-1", ALL_HOURS), *run("thirds", "i-1", [35], **HALF),
    *run("thirds", "i-2", ALL_HOURS[:12]), *run("thirds", "i-2", [23], **HALF),
    # Nobody states the dates of these.
    fee("loose", "9000"), fee("loose", "4000", day=1), named("loose", "5000", "cr-x"),
    refund("loose", "-1000"), fee("loose", "700", currency="EUR"),
    fee("loose", "600", day=-1), fee("loose", "500", day=-200), fee("loose", "400", day=2),
    fee("loose", "300", day=4), *run("loose", "i-1", [12]),
]  # fmt: skip
OWNED = (
    block("undone"), block("undone", id="cr-u2"), block("both"), block("both", id="cr-b2"),
    block("plain"), block("plain", id="cr-p2"), block("thirds"),
)  # fmt: skip


@cache
def found():
    policy = Policy(shapes=t.SHAPES, as_of=t.hour(96))
    return t.fleet(BILL, [], 48, policy, t.owned(*OWNED))


def costs_of(account: str) -> dict:
    hours = found().hours[found().hours["account"] == account]
    return hours.groupby("instance_id")["cost"].agg(money.total).to_dict()


def test_a_refund_that_names_no_block_is_of_the_fee_that_it_undoes_else_of_all_by_amount():
    # 1,920 over 48 instance-hours: 40 an hour, two of them used.
    assert costs_of("undone") == {"i-1": 80, "commitment:cr-undone": 1840}
    assert costs_of("both") == {"commitment:cr-both": 1800, "commitment:cr-b2": 900}
    assert costs_of("plain") == {"commitment:cr-plain": 960, "commitment:cr-p2": 1440}


def test_what_divides_exactly_stays_exact_where_its_hours_do_not():
    # 24 of 48 instance-hours are i-1's, 12 are i-2's and 12 stood unused.
    assert costs_of("thirds") == {"i-1": 4000, "i-2": 2000, "commitment:cr-thirds": 2000}


def test_fees_that_are_not_spread_are_summed_by_reason_and_currency_wherever_they_are_dated():
    # In the two days: 9,000 + 4,000 and 5,000 - 1,000; before them 600, which may last into them,
    # not 500 of 200 days ago; after them 400 of the third day, not 300 of a day yet to come.
    table = quality.table(found().findings)
    told = table[table["check"] == "capacity_block_not_spread"]
    assert set(told["scope"]) == {"aws/loose"}
    assert sorted(zip(told["amount"], told["count"], told["currency"], strict=True)) == [
        (400, 1, "USD"), (600, 1, "USD"), (700, 1, "EUR"), (17000, 4, "USD"),
    ]  # fmt: skip
    where = dict(zip(told["amount"], told["detail"], strict=True))
    assert "before the first hour" in where[D(600)]
    assert "after the last hour" in where[D(400)]
    inside = [one.amount for one in found().unspread if one.is_inside and one.currency == "USD"]
    assert money.total(inside) == 17000


def test_the_fees_alone_tell_what_a_block_costs_and_used_and_unused_add_up():
    fees = found().fees
    mine = fees[fees["commitment_id"] == "cr-thirds"].set_index("instance_id")["cost"]
    assert mine.to_dict() == {"": 6000, "commitment:cr-thirds": 2000}


def test_findings_of_the_same_words_are_one_row_in_each_currency():
    one = Finding("fee", "aws/a", "info", "a fee", 1, D(5), "USD")
    more = [one, one, replace(one, severity="warning", amount=D(7), count=None),
            replace(one, currency="EUR")]  # fmt: skip
    table = quality.table(more)
    rows = table[["detail", "severity", "count", "amount"]].values.tolist()
    assert rows == [["a fee (USD)", "warning", 1, 12], ["a fee (EUR)", "info", 1, 5]]
