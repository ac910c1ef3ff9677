"""The newest days of a bill count only where they look like the days before."""

from __future__ import annotations

from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pytest

from data import open_month
from planner.config import parse_config
from planner.observed import MAX_LAG, extents, observed_window
from planner.settled import Tail, findings, tails
from tests import fleet as t

TWO_DAYS = {"aws": 48, "gcp": 24}.__getitem__


def nodes(day: int, hours: int = 24, cost: str = "98.32", **more: Any) -> list[dict]:
    """One machine an hour for so many hours of the day, counted from the day's end backwards."""
    return [
        t.charge(start=24 * day + h, effective_cost=D(cost), **more) for h in range(24 - hours, 24)
    ]


def judged(bill: list[dict], days: int, settle=TWO_DAYS, tail_hours: int = 0) -> list[Tail]:
    return tails(t.billing(bill), t.day(days), settle, tail_hours)


def window(bill: list[dict], days: int, found: list[Tail]):
    return observed_window(t.billing(bill), t.utilization([]), t.day(days), 365, found)


def test_a_day_of_which_two_thirds_were_delivered_ends_the_window():
    # 150 less a credit of 30 a day is 5 an hour. Of the last day 66 % are there.
    whole = [row for day in range(2) for row in nodes(day, cost="5")]
    bill = whole + nodes(2, cost="3.3")
    (tail,) = judged(bill, 3)
    assert (tail.settled, tail.end) == (t.hour(48), t.hour(72))
    assert tail.why == "2026-11-04 has 66% of the cost of GPUs of the days like it"
    seen = window(bill, 3, [tail])
    assert seen == t.window(48)
    cost = sum(row["effective_cost"] for row in bill if row["period_start"] < seen.end)
    assert cost / 2 == 120  # a day; not (120 + 120 + 79.2) / 3 = 106.4
    (row,) = findings([tail], MAX_LAG)
    assert (row.check, row.scope, row.count) == ("incomplete_tail", "aws/payer", 24)
    assert "totals keep them" in row.detail


def test_rows_that_lack_all_over_the_day_end_the_window_too():
    two = [n for day in range(3) for node in ("a", "b") for n in nodes(day, resource=node)]
    late = [row for row in two if row["period_start"] < t.hour(48) or row["resource_id"] == "a"]
    late += nodes(2, 1, resource="b")
    # 25 of 48 rows of the last day: 52 %
    (tail,) = judged(late, 3)
    assert tail.settled == t.hour(48)
    assert "52% of the GPU rows, 52% of the GPU-hours" in str(tail.why)
    (whole,) = judged(two, 3)
    assert (whole.why, whole.settled) == (None, t.hour(72))
    (row,) = findings([whole], MAX_LAG)
    assert (row.check, row.severity, row.count) == ("unsettled_hours", "info", 48)


def test_a_weekend_is_compared_with_weekends():
    # Mondays to Fridays a machine runs all day, at weekends ten hours. DAY is a Monday.
    days = [nodes(day, 24 if day % 7 < 5 else 10) for day in range(20)]
    bill = [row for day in days for row in day]
    assert judged(bill, 20)[0].why is None  # ends on a Saturday of ten hours, as both before
    short = bill[:-10] + nodes(19, 7)
    (tail,) = judged(short, 20)
    assert "70% of the GPU rows" in str(tail.why)


def test_a_day_to_which_commitments_were_not_applied_yet_is_not_taken():
    plan = {"purchase_option": "savings_plan", "commitment_id": "sp-1"}
    bill = [row for day in range(3) for row in nodes(day, cost="60", **plan)]
    bill += nodes(3)  # the same hours at the price on demand
    (tail,) = judged(bill, 4)
    assert tail.settled == t.hour(72)
    assert "0% of the GPU-hours that commitments cover" in str(tail.why)


def test_only_the_hours_that_may_still_change_are_judged():
    bill = [row for day in range(2) for row in nodes(day)] + nodes(2, 5)
    bill += [row for day in (3, 4) for row in nodes(day)]
    assert judged(bill, 5)[0].why is None  # the short day lies more than 48 hours back
    assert judged(bill, 5, lambda _: 72)[0].settled == t.hour(48)
    assert judged(bill[: 48 + 5], 3, lambda _: 0)[0].why is None
    (never,) = judged(bill, 5, lambda _: 0, 30)
    assert (never.settled, never.why) == (t.hour(90), "tail_hours leaves out the last 30 hours")


def test_the_account_that_ends_first_ends_the_window_unless_it_has_stopped():
    other = {"billing_account": "second", "resource": "i-9"}
    first = [row for day in range(9) for row in nodes(day)]
    near = first + [row for day in range(8) for row in nodes(day, **other)]
    found = judged(near, 9)
    assert [(one.account, one.end) for one in found] == [
        ("payer", t.hour(216)),
        ("second", t.hour(192)),
    ]
    assert window(near, 9, found) == t.window(192)
    far = first + [row for day in range(4) for row in nodes(day, **other)]
    found = judged(far, 9)
    assert window(far, 9, found) == t.window(216)
    (row,) = (one for one in findings(found, MAX_LAG) if one.check == "account_ends_early")
    assert row.scope == "aws/second"
    assert {one.end for one in extents(t.billing(far), t.utilization([]), t.day(9))} == {
        t.hour(216)
    }


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("", (48, 24, 48, 24)),
        ("settle_hours = 36", (36, 36, 36, 36)),
        ("settle_hours = { gcp = 12 }", (48, 12, 48, 24)),
    ],
)
def test_the_hours_that_are_judged_can_be_set_for_all_clouds_or_each(text, hours):
    plan = parse_config(f"[plan]\n{text}\n", Path("loadfactor.toml")).plan
    clouds = ("aws", "gcp", "azure", "oracle")
    assert tuple(plan.settle_hours.of(cloud) for cloud in clouds) == hours


def test_a_month_that_is_not_final_is_told_with_what_the_month_before_had():
    def row(month: str, kind: str, cost: str, **more: Any) -> dict:
        return t.charge(None, 0, billing_period=month, charge_type=kind, gpu_hours=None,
                        effective_cost=D(cost), **more)  # fmt: skip

    bill = [
        row("2026-10", "usage", "1000"), row("2026-10", "discount", "-120"),
        row("2026-10", "credit", "-30"), row("2026-11", "usage", "700"),
        row("2026-11", "credit", "-10"),
    ]  # fmt: skip
    (told,) = open_month.findings(t.billing(bill), t.day(21))  # 23 November
    assert (told.scope, told.severity, told.amount) == ("aws/payer/2026-11", "info", 700)
    assert "discounts (-120.00) of 2026-10 have no counterpart" in told.detail
    assert "credits" not in told.detail
    both = open_month.findings(t.billing(bill), t.day(2))  # 4 November: October may change too
    assert [one.scope for one in both] == ["aws/payer/2026-10", "aws/payer/2026-11"]
