"""Limits follow what was needed and what the plan runs, and never fall below what is at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.limits import changes
from planner.limits import limits as limits_of
from planner.peaks import PEAKS, peaks
from planner.problem import ClassKind, Offer, Problem, ProblemClass, Scenario
from tests import bills

if TYPE_CHECKING:
    from collections.abc import Sequence

P5 = "aws/us-east-1/p5.48xlarge"


def limits(
    bill: pd.DataFrame, hours: int, most: float = 0.0, least: float | None = None
) -> pd.DataFrame:
    """Limits under a plan that runs `least` to `most` GPUs of training where the bill has it."""
    rows = [("training", P5, 8.0, most, most if least is None else least)]
    return limits_of(bill, hours, planned(rows))


def planned(rows: Sequence[tuple[str, str, float, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(PEAKS))


def test_the_ceiling_is_the_peak_need_with_headroom() -> None:
    # Ten nodes needed in one hour, two in the others: 10 x 1.1 = 11 nodes.
    parts = [bills.node_hours(f"i-{n}", range(24) if n < 2 else range(5, 6)) for n in range(10)]
    table = limits(bills.as_numbers(bills.fleet(*parts)), 24, most=80, least=16)
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
    table = limits(bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24)))), 24, most=8)
    made = changes(table, "USD")
    assert [(one.field, one.current, one.proposed) for one in made] == [
        ("min", None, 1),
        ("max", None, 2),
    ]


def test_clouds_without_a_known_scaler_get_no_limit() -> None:
    other = bills.node_hours("n-1", range(24), cloud="lambda")
    table = limits_of(bills.as_numbers(bills.fleet(other)), 24, planned([]))
    assert table.empty


def test_the_ceiling_covers_the_peak_hour_of_the_plan() -> None:
    # One node ran; the plan runs 201 GPUs in its peak hour: 26 nodes, 28.6 with headroom.
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24))))
    row = limits(bill, 24, most=201, least=8).iloc[0]
    assert (row["min_proposed"], row["max_proposed"]) == (1, 29)
    assert "the plan runs at least 1 there and in 99% of the hours" in row["why"]
    assert "at most 26; 10% headroom" in row["why"]


def test_a_floor_holds_no_machine_that_the_plan_does_not_run() -> None:
    # Work moves away at some hours: what ran at all hours is no floor any more, but may still run.
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24))))
    row = limits(bill, 24, most=8, least=0).iloc[0]
    assert (row["min_proposed"], row["max_proposed"]) == (0, 2)


def test_accounts_of_one_place_share_what_the_plan_runs_there() -> None:
    # 3 nodes and 1: of 80 GPUs, 10 nodes, 7.5 and 2.5, so 8 and 3; 8.8 and 3.3 with headroom.
    parts = [bills.node_hours(f"i-{n}", range(24)) for n in range(3)]
    parts.append(bills.node_hours("i-3", range(24), account="444455556666"))
    table = limits(bills.as_numbers(bills.fleet(*parts)), 24, most=80, least=0)
    assert list(table["account"]) == ["111122223333", "444455556666"]
    assert list(table["max_proposed"]) == [9, 4]


def test_a_place_that_the_plan_adds_has_a_row_without_a_pool() -> None:
    rows = [
        ("training", P5, 8.0, 8.0, 8.0),
        ("training", "gcp/us-east4/a3-highgpu-8g", 8.0, 33.0, 0.0),
        ("training", "lambda/us-south-1/gpu_8x_h100_sxm5", 8.0, 8.0, 0.0),
    ]
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(24))))
    table = limits_of(bill, 24, planned(rows))
    assert list(table["pool"]) == [
        "aws/111122223333/us-east-1/p5.48xlarge/training",
        "gcp/new/us-east4/a3-highgpu-8g/training",
    ]
    row = table.iloc[1]
    # 33 GPUs take 5 nodes, 5.5 with headroom.
    assert (row["min_proposed"], row["max_proposed"], row["running"]) == (0, 6, 0)
    assert row["unit"] == "nodes"
    assert row[["min_now", "max_now", "account"]].isna().all()
    assert "the plan runs work here" in row["why"]
    assert "no pool of it is known" in row["why"]


def test_the_peak_of_a_plan_is_of_one_hour_and_one_scenario() -> None:
    problem = Problem(
        id="p",
        hours=2,
        classes=(ProblemClass("training|H100", ClassKind.FIRM, (P5,), 100.0),),
        offers=(Offer(id=P5, provider="aws", region="us-east-1", gpus=8, on_demand=6.88),),
        scenarios=tuple(Scenario(p=0.5, demand={"training|H100": np.ones(2)}) for _ in range(2)),
    )
    used = [
        (0, 0, P5, "reserved", 8.0),
        (0, 0, P5, "on_demand", 4.0),
        (0, 1, f"{P5}~spot@0.9", "spot", 9.0),
        (1, 0, f"{P5}~owned", "reserved", 5.0),
        (1, 1, P5, "reserved", 6.0),
        (1, 1, "", "shortage", 50.0),
    ]
    dispatch = pd.DataFrame(used, columns=["scenario", "hour", "offer", "kind", "gpus"])
    dispatch["class"] = "training|H100"
    found = peaks(problem, dispatch)
    assert found.to_numpy().tolist() == [["training", P5, 8.0, 12.0, 5.0]]
    # Without one of the four hours the least is nothing.
    assert peaks(problem, dispatch.iloc[1:3])["least_gpus"].tolist() == [0.0]


def test_the_one_peak_of_a_way_that_hardly_ever_comes_is_no_ceiling() -> None:
    """Two ways of 100 hours: 9 GPUs, and in the rarer one (1 of 10) 40 in five hours, 30 in six.

    The 40 weigh 0.1 x 5 / 100 = 0.5 % of all hours and the 30 another 0.6 %: together more than one
    in a hundred. Were there four of the 30, these would be 0.9 % and the 9 what is run.
    """
    problem = Problem(
        id="p",
        hours=100,
        classes=(ProblemClass("training|H100", ClassKind.FIRM, (P5,), 100.0),),
        offers=(Offer(id=P5, provider="aws", region="us-east-1", gpus=8, on_demand=6.88),),
        scenarios=tuple(Scenario(p, {"training|H100": np.ones(100)}) for p in (0.9, 0.1)),
    )
    often = [(0, hour, 9.0) for hour in range(100)]
    for high, most in ((6, 30.0), (4, 9.0)):
        gpus = [40.0] * 5 + [30.0] * high + [9.0] * (95 - high)
        rows = [*often, *((1, hour, one) for hour, one in enumerate(gpus))]
        dispatch = pd.DataFrame(rows, columns=["scenario", "hour", "gpus"])
        dispatch = dispatch.assign(offer=P5, kind="reserved", **{"class": "training|H100"})
        assert peaks(problem, dispatch)["most_gpus"].tolist() == [most]
