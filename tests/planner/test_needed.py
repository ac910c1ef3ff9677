"""What plans must serve: work and silence whole, pauses only as long as the class allows."""

from __future__ import annotations

from decimal import Decimal as D

import pytest

from planner.fleet_hours import Policy
from planner.states import Thresholds
from tests import fleet as t


def needed(readings, hours=6, gpus=1, **threshold):
    """Needed GPU-hours by hour of one instance that is billed in every hour."""
    policy = Policy({"training": Thresholds(**threshold)}, t.SHAPES)
    bill = [t.charge(start=h, gpus=gpus) for h in range(hours)]
    found = t.fleet(bill, readings, hours, policy).hours
    return [int(v) for v in found.groupby("hour_start")["needed_gpu_hours"].sum()]


def test_64_gpus_at_70_percent_need_64():
    readings = [row for n in range(8) for row in t.node_readings(util=70.0, instance_id=f"i-{n}")]
    found = t.fleet([t.charge(f"i-{n}") for n in range(8)], readings, hours=1).hours
    assert sum(found["needed_gpu_hours"]) == 64
    assert t.by_state(found) == {"busy": 64}


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        # A job's hour, then 5 hours held: hour k of the pause is needed while 60 k < minutes.
        (0, [1, 0, 0, 0, 0, 0]),
        (30, [1, 1, 0, 0, 0, 0]),
        (60, [1, 1, 0, 0, 0, 0]),
        (61, [1, 1, 1, 0, 0, 0]),
        (240, [1, 1, 1, 1, 1, 0]),
    ],
)
def test_a_pause_is_needed_until_it_is_as_long_as_the_class_allows(minutes, expected):
    readings = [t.reading(at=0)] + [t.reading(at=h, **t.held()) for h in range(1, 6)]
    assert needed(readings, idle_after_minutes=minutes) == expected


def test_work_ends_a_pause_and_so_does_a_gap():
    # held, held, busy, held, (nothing), held: each pause begins anew; the gap is unknown.
    readings = [t.reading(at=h, **t.held()) for h in (0, 1, 3, 5)] + [t.reading(at=2)]
    assert needed(readings) == [1, 0, 1, 1, 1, 1]


def test_free_hours_are_never_needed_and_unknown_hours_always():
    readings = [t.reading(at=h, **t.idle()) for h in (0, 1)] + [t.reading(at=2, util=None)]
    assert needed(readings) == [0, 0, 1, 1, 1, 1]


def test_a_pause_that_began_before_the_window_is_not_new():
    policy = Policy({"training": Thresholds()}, t.SHAPES)
    readings = [t.reading(at=h, **t.held()) for h in range(-3, 2)]
    found = t.fleet([t.charge(start=h, gpus=1) for h in range(2)], readings, 2, policy).hours
    assert sum(found["needed_gpu_hours"]) == 0


def test_pauses_are_those_of_single_gpus():
    # GPU a pauses from hour 1, GPU b from hour 2; each has one needed hour of pause.
    readings = [t.reading("a", 0), t.reading("b", 0), t.reading("b", 1)]
    readings += [t.reading("a", h, **t.held()) for h in range(1, 4)]
    readings += [t.reading("b", h, **t.held()) for h in range(2, 4)]
    policy = Policy({}, t.SHAPES)
    found = t.fleet([t.charge(start=h, gpus=2) for h in range(4)], readings, 4, policy).hours
    by_hour = found.groupby("hour_start")["needed_gpu_hours"].sum().tolist()
    assert by_hour == [2, 2, 1, 0]


def test_a_partly_needed_pause_is_divided_with_its_hours():
    # Half an hour billed of 4 GPUs: 2 held just now, 2 held for hours: 1 of 2 GPU-hours needed.
    readings = [t.reading(f"old-{n}", h, **t.held()) for n in range(2) for h in range(-2, 1)]
    readings += [t.reading(f"new-{n}", 0, **t.held()) for n in range(2)]
    found = t.fleet([t.charge(hours=0.5, gpus=4)], readings, 1).hours
    assert found["gpu_hours"].tolist() == [2]
    assert found["needed_gpu_hours"].tolist() == [D(1)]
