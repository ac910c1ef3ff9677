"""Limits follow what was needed, and never fall below what is at work."""

from __future__ import annotations

from planner.limits import changes, limits
from tests import bills


def test_the_ceiling_is_the_peak_need_with_headroom() -> None:
    # Ten nodes needed in one hour, two in the others: 10 x 1.1 = 11 nodes.
    parts = [bills.node_hours(f"i-{n}", range(24) if n < 2 else range(5, 6)) for n in range(10)]
    table = limits(bills.as_numbers(bills.fleet(*parts)), 24)
    assert len(table) == 1
    row = table.iloc[0]
    assert (row["min_proposed"], row["max_proposed"], row["running"]) == (2, 11, 2)
    assert row["pool"] == "aws/111122223333/us-east-1/p5.48xlarge/training"
    assert row["kind"] == "aws_asg"


def test_a_pool_that_was_off_for_some_hours_may_fall_to_zero() -> None:
    table = limits(bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(20)))), 24)
    assert table.iloc[0]["min_proposed"] == 0


def test_an_idle_pool_keeps_room_for_nothing() -> None:
    idle = bills.node_hours("i-1", range(24), needed=0, state="free", stoppable=True)
    row = limits(bills.as_numbers(bills.fleet(idle)), 24).iloc[0]
    assert (row["min_proposed"], row["max_proposed"], row["running"]) == (0, 0, 1)


def test_changes_name_pool_field_and_values() -> None:
    table = limits(bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24)))), 24)
    made = changes(table, "USD")
    assert [(one.field, one.current, one.proposed) for one in made] == [
        ("min", None, 1),
        ("max", None, 2),
    ]


def test_clouds_without_a_known_scaler_get_no_limit() -> None:
    other = bills.node_hours("n-1", range(24), cloud="lambda")
    assert limits(bills.as_numbers(bills.fleet(other)), 24).empty
