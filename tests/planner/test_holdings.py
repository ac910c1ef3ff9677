"""Owned and advised commitments in one table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from planner.holdings import holdings, with_advised
from planner.planning import with_owned_ids
from planner.purchases import Purchase
from tests import bills

END = bills.window().end


def owned(days: int, **more: Any) -> dict[str, Any]:
    return {
        "id": "ri-1",
        "kind": "reserved",
        "instance_type": "p5.48xlarge",
        "region": "us-east-1",
        "count": 1,
        "usd_per_instance_hour": "32",
        "start": datetime(2026, 1, 1, tzinfo=UTC),
        "end": END + timedelta(days=days),
        **more,
    }


def bill() -> Any:
    used = bills.node_hours(
        "i-1", range(18), rate="4", purchase_option="reserved", commitment_id="ri-1"
    )
    unused = bills.node_hours(
        "commitment:ri-1", range(18, 24), rate="4", needed=0, state="free",
        reason="unused_commitment", purchase_option="reserved", commitment_id="ri-1",
    )  # fmt: skip
    return bills.as_numbers(bills.fleet(used, unused))


def test_used_share_and_unused_cost_come_from_the_bill() -> None:
    row = holdings(bills.commitments(owned(200)), bill(), 24, END).iloc[0]
    assert row["used_share"] == pytest.approx(0.75)  # 18 of 24 hours
    assert row["unused_cost_per_month"] == Decimal("5840.00")  # 6/24 of 8 x 4 x 730
    assert row["usd_per_hour"] == Decimal(32)
    assert row["action"] == "keep"


def test_a_commitment_that_ends_within_ninety_days_asks_for_a_decision() -> None:
    row = holdings(bills.commitments(owned(30)), bill(), 24, END).iloc[0]
    assert row["action"] == "decide"
    assert "30 days" in row["why"]


def test_a_commitment_that_only_the_bill_shows_is_listed_without_an_end() -> None:
    table = holdings(bills.commitments(), bill(), 24, END)
    assert list(table["id"]) == ["ri-1"]
    assert table["end"].isna().all()
    assert "unknown" in table.iloc[0]["why"]


def test_a_purchase_is_listed_beside_what_is_owned() -> None:
    one = Purchase(
        key=("reserved", "aws/us-east-1/p5.48xlarge", "reserved_1y/monthly"),
        kind="reserved", cloud="aws", region="us-east-1", name="p5.48xlarge reserved_1y monthly",
        action="Reserve", what="one node", gpus=8.0, count=1.0, usd_per_hour=34.4,
        term_hours=8760, payment="monthly", upfront=0.0, total_commitment=34.4 * 8760,
        capacity_assured="no", break_even_share=0.625, expected_share=0.9, why="used", weight=1.0,
    )  # fmt: skip
    ids = {"aws|us-east-1|p5.48xlarge reserved_1y monthly": "buy_reserved-1"}
    table = with_advised(holdings(bills.commitments(owned(200)), bill(), 24, END), [one], ids)
    assert list(table["id"]) == ["ri-1", "buy_reserved-1"]
    assert table.iloc[1]["total_commitment"] == Decimal("301344.00")  # 34.40 x 8,760
    assert table.iloc[1]["instance_type"] == "p5.48xlarge"


def test_one_commitment_spelled_in_two_ways_is_one() -> None:
    used = bills.node_hours(
        "i-1", range(24), rate="4", purchase_option="reserved", commitment_id="AB-12"
    )
    path = "/providers/microsoft.capacity/reservationorders/o/reservations/ab-12"
    table = bills.commitments(owned(200, id=path))
    bill_rows = with_owned_ids(bills.as_numbers(bills.fleet(used)), table)
    assert set(bill_rows["commitment_id"]) == {path}
    assert list(holdings(table, bill_rows, 24, END)["used_share"]) == [1.0]
