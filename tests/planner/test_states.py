"""Every reading has one state, and silence is none of busy, held or free."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.config import load_config
from planner.scratch import scratch
from planner.states import READINGS, Thresholds, gpu_hour_states, threshold_table, thresholds_of
from tests import fleet as t

TYPES = {
    "node_id": "int", "hour": "int", "gpu_uuid": "text", "gpu_util": "float", "sm_active": "float",
    "memory_used_share": "float", "process_count": "int", "power_watts": "float", "pod": "text",
    "mig_uuid": "text", "workload_class": "text", "team": "text", "user": "text", "node": "text",
}  # fmt: skip


def judged(samples, thresholds=None):
    """State and reason of each GPU; `samples` are (gpu, reading) pairs of one hour."""
    texts = {name: "" for name, kind in TYPES.items() if kind == "text"}
    rows = [{**texts, "node_id": 0, "hour": 0, "gpu_uuid": gpu, **row} for gpu, row in samples]
    with scratch(t.connection()) as tables:
        readings = tables.upload(pd.DataFrame(rows), TYPES)
        found = tables.fetch(gpu_hour_states(readings, threshold_table(thresholds or {}, tables)))
    return {
        row.gpu_uuid: f"{row.state} {row.reason}".strip() for row in found.itertuples(index=False)
    }


SINGLE = {
    # One reading: what it says. Busy is more than 5% of the hour or more than 0.05 of the card.
    "busy_by_util": ({"gpu_util": 70.0}, "busy"),
    "at_the_threshold_is_not_busy": ({"gpu_util": 5.0, "process_count": 1}, "idle_held"),
    "busy_by_sm": ({"sm_active": 0.2}, "busy"),
    "busy_by_sm_beside_little_util": ({"gpu_util": 4.0, "sm_active": 0.06}, "busy"),
    "held_by_memory": (
        {"gpu_util": 0.0, "memory_used_share": 0.4, "process_count": 0}, "idle_held",
    ),
    "held_by_process": ({"gpu_util": 0.0, "memory_used_share": 0.0, "process_count": 2},
                        "idle_held"),
    "held_by_pod": ({"gpu_util": 0.0, "memory_used_share": 0.0, "pod": "p"}, "idle_held"),
    "nobody_measured_what_it_holds": ({"gpu_util": 0.0}, "idle_held"),
    "free": ({"gpu_util": 0.0, "memory_used_share": 0.01, "process_count": 0}, "free"),
    "free_by_memory_alone": ({"gpu_util": 0.0, "memory_used_share": 0.0}, "free"),
    "silent": ({"memory_used_share": 0.0, "process_count": 0}, "unknown no_reading"),
    "mig_silent": ({"mig_uuid": "m", "memory_used_share": 0.0}, "unknown mig"),
    "mig_zero_is_no_reading": ({"mig_uuid": "m", "gpu_util": 0.0}, "unknown mig"),
    "mig_with_sm_is_read": ({"mig_uuid": "m", "gpu_util": 0.0, "sm_active": 0.5}, "busy"),
    "mig_sm_alone": ({"mig_uuid": "m", "sm_active": 0.5}, "busy"),
    "sm_beyond_util": ({"gpu_util": 0.0, "sm_active": 0.6}, "unknown contradicting"),
    "sm_stuck_at_zero": ({"gpu_util": 95.0, "sm_active": 0.0}, "unknown contradicting"),
    "util_stuck_at_zero": ({"gpu_util": 0.0, "power_watts": 600.0}, "unknown contradicting"),
    "idle_power": ({"gpu_util": 0.0, "power_watts": 70.0, "process_count": 1}, "idle_held"),
}  # fmt: skip


def test_each_reading_has_the_state_that_its_sensors_say():
    expected = {name: state for name, (_, state) in SINGLE.items()}
    assert judged([(name, row) for name, (row, _) in SINGLE.items()]) == expected


IDLE = {"gpu_util": 0.0, "memory_used_share": 0.0, "process_count": 0}
HELD = {"gpu_util": 0.0, "process_count": 1}
BUSY = {"gpu_util": 90.0}
NONE: dict[str, float] = {}
SEVERAL = {
    "equal_twice": ([BUSY, BUSY], "busy"),
    "both_busy": ([BUSY, {"gpu_util": 80.0}], "busy"),
    "contradicting": ([BUSY, IDLE], "unknown contradicting"),
    "held_or_free": ([HELD, IDLE], "unknown contradicting"),
    "one_of_two_sensors_silent": ([BUSY, NONE], "busy"),
    "pods_in_turn": ([{**BUSY, "pod": "a"}, {**HELD, "pod": "b"}], "busy"),
    "pods_that_all_wait": ([{**HELD, "pod": "a"}, {**HELD, "pod": "b"}], "idle_held"),
    "one_mig_instance_silent": (
        [{"mig_uuid": "1", "sm_active": 0.0, "process_count": 0}, {"mig_uuid": "2"}],
        "unknown mig",
    ),
    "one_mig_instance_busy": (
        [{"mig_uuid": "1", "sm_active": 0.4}, {"mig_uuid": "2"}], "busy",
    ),
}  # fmt: skip


def test_several_readings_of_one_gpu_hour_make_one_state():
    samples = [(name, row) for name, (rows, _) in SEVERAL.items() for row in rows]
    assert judged(samples) == {name: state for name, (_, state) in SEVERAL.items()}
    assert judged(samples[::-1]) == judged(samples)


def test_a_threshold_of_zero_is_honoured():
    zero = {"": Thresholds(busy_util_percent=0.0, busy_sm_active=0.0, memory_held_share=0.0)}
    samples = [
        ("little", {"gpu_util": 0.5}),
        ("nothing", {"gpu_util": 0.0, "memory_used_share": 0.0}),
        ("some_memory", {"gpu_util": 0.0, "memory_used_share": 0.001}),
        ("silent", {}),
    ]
    assert judged(samples, zero) == {
        "little": "busy", "nothing": "free", "some_memory": "idle_held",
        "silent": "unknown no_reading",
    }  # fmt: skip


def test_thresholds_are_those_of_the_class():
    lenient = {"serving": Thresholds(busy_util_percent=1.0)}
    samples = [
        ("serving", {"gpu_util": 3.0, "process_count": 1, "workload_class": "serving"}),
        ("other", {"gpu_util": 3.0, "process_count": 1, "workload_class": "other"}),
    ]
    assert judged(samples, lenient) == {"serving": "busy", "other": "idle_held"}


def test_settings_give_each_class_its_thresholds(tmp_path):
    path = tmp_path / "loadfactor.toml"
    path.write_text(
        "[thresholds]\nbusy_util_percent = 0\n"
        '[[classes]]\nname = "serving"\nbusy_util_percent = 2\nidle_after_minutes = 0\n'
    )
    found = thresholds_of(load_config(path))
    assert found[""].busy_util_percent == 0
    assert found[""].idle_after_minutes == 30
    assert found["serving"].busy_util_percent == 2
    assert found["serving"].idle_after_minutes == 0


@pytest.mark.parametrize("name", READINGS)
def test_every_declared_reading_column_is_tested(name):
    assert name in TYPES
