"""Hourly demand by class: a full grid, zero where nothing was billed, nothing where no data is."""

from __future__ import annotations

import pandas as pd

from planner.demand import demand
from tests import fleet as t


def test_every_hour_of_every_class_is_there():
    bill = [t.charge(start=0), t.charge("i-2", start=2, workload_class="batch")]
    found = demand(t.fleet(bill, t.node_readings()).hours, t.window(4))
    assert len(found) == 8
    training = found[found["workload_class"] == "training"]
    assert training["needed_gpus"].tolist() == [8, 0, 0, 0]
    assert training["busy_gpus"].tolist() == [8, 0, 0, 0]
    batch = found[found["workload_class"] == "batch"]
    assert batch["unknown_gpus"].tolist() == [0, 0, 8, 0]
    assert batch["needed_gpus"].tolist() == [0, 0, 8, 0]


def test_needed_lies_below_billed_by_what_is_free():
    # 5 of 8 GPUs work, 3 are free.
    readings = t.node_readings(gpus=5) + t.node_readings(gpus=8, **t.idle())[5:]
    row = demand(t.fleet([t.charge()], readings).hours, t.window(1)).iloc[0]
    assert (row["billed_gpus"], row["needed_gpus"], row["free_gpus"]) == (8, 5, 3)


def test_hours_without_any_data_are_left_out():
    # Nothing arrived from hour 1 to hour 29: those 29 hours are missing, not zero.
    fleet = t.fleet([t.charge(start=0), t.charge(start=30)], [], hours=31)
    found = demand(fleet.hours, t.window(31), fleet.covered)
    assert found["hour_start"].tolist() == [t.hour(0), t.hour(30)]


def test_managed_services_are_planned_apart():
    bill = [t.charge(), t.charge("nb", managed_service=True, instance_type="ml.p5.48xlarge")]
    hours = t.fleet(bill, []).hours
    assert demand(hours, t.window(1))["billed_gpus"].tolist() == [8]
    assert demand(hours, t.window(1), managed=True)["billed_gpus"].tolist() == [8]


def test_a_gpu_of_unknown_family_is_not_dropped():
    bill = [t.charge(instance_type="p9.huge", gpu_model="B900")]
    found = demand(t.fleet(bill, []).hours, t.window(1))
    assert found[["gpu_family", "billed_gpus"]].values.tolist() == [["unknown", 8]]


def test_a_fleet_without_hours_has_no_demand():
    assert not len(demand(t.fleet([], []).hours, t.window(4)))


def test_daily_bills_take_the_shape_that_telemetry_saw():
    # 2 nodes all day and 8 more for 8 h, billed by the day: 16 GPUs, and 80 from 8 to 16.
    # Evenly spread it would be (2 x 24 + 8 x 8) x 8 / 24 = 37.3 all day.
    azure = {"source": "azure", "instance_type": "Standard_ND96isr_H100_v5", "hours": 24}
    seen = {n: range(24) if n < 2 else range(8, 16) for n in range(10)}
    bill = [t.charge(f"vm-{n}", **azure, gpu_hours=8 * len(hours)) for n, hours in seen.items()]
    readings = [
        t.reading(f"g-{n}", h, cloud="azure", instance_id=f"vm-{n}")
        for n, hours in seen.items()
        for h in hours
    ]
    shaped = t.fleet(bill, readings).hours
    billed = demand(shaped, t.window(24))["billed_gpus"].tolist()
    assert billed == [16] * 8 + [80] * 8 + [16] * 8
    assert shaped["estimated"].all()
    # The break-even of the fault list: 24 h at 58.992 against 16 h and 8 h at 98.32.
    nodes = [gpus / 8 for gpus in billed]

    def cost(committed):
        on_demand = sum(max(n - committed, 0) for n in nodes)
        return committed * 24 * 58.992 + on_demand * 98.32

    assert min(range(11), key=cost) == 2
    assert round(cost(2), 2) == 9124.10
    flat = demand(t.fleet(bill, []).hours, t.window(24))["billed_gpus"]
    assert flat.round(4).tolist() == [round(112 * 8 / 24, 4)] * 24


def test_the_order_of_rows_does_not_matter():
    bill = [t.charge(f"i-{n}", start=h, hours=0.1 * (n + 1)) for n in range(5) for h in range(3)]
    hours = t.fleet(bill, []).hours
    mixed = hours.sample(frac=1, random_state=3).reset_index(drop=True)
    pd.testing.assert_frame_equal(demand(mixed, t.window(3)), demand(hours, t.window(3)))
