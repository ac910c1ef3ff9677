"""Conservation over random fleets: no GPU-hour and no cent appears or is lost, in any row order."""

from __future__ import annotations

import random
from decimal import Decimal as D

import pandas as pd
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from data import money
from tests import fleet as t

HOURS = 6
# A fleet takes about a second, so a failing one is reported as it was drawn, not shrunk.
RUNS = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.too_slow],
)
AMOUNT = st.decimals("0.00000001", "5000", places=12)
CHARGE = st.fixed_dictionaries(
    {
        "resource": st.sampled_from(["i-1", "i-2", "vm/3"]),
        "start": st.sampled_from([0, 1, 2, 2.5, 3, 4, 5, 5.75]),
        "hours": st.sampled_from([0.1, 0.25, 1, 1, 1, 3, 6]),
        "gpus": st.sampled_from([1, 3, 8]),
        "effective_cost": AMOUNT,
        "purchase_option": st.sampled_from(["on_demand", "reserved", "spot", "unknown"]),
        "commitment_id": st.sampled_from([None, None, "ri-1"]),
        "currency": st.sampled_from(["USD", "USD", "NOK"]),
        "source": st.sampled_from(["aws", "gcp"]),
    }
)
EXTRA = st.fixed_dictionaries(
    {
        "resource": st.sampled_from(["i-1", "i-2", "no-gpu"]),
        "start": st.integers(0, 5),
        "effective_cost": AMOUNT,
        "gpu_hours": st.none(),
    }
)
READING = st.fixed_dictionaries(
    {
        "gpu": st.sampled_from([f"G{n}" for n in range(10)]),
        "at": st.integers(-2, 7),
        "util": st.sampled_from([None, 0.0, 3.0, 50.0, 100.0]),
        "instance_id": st.sampled_from(["i-1", "i-2", "3", "i-9"]),
        "cloud": st.sampled_from(["aws", "gcp"]),
        "memory_used_share": st.sampled_from([None, 0.0, 0.5]),
        "process_count": st.sampled_from([None, 0, 2]),
        "sm_active": st.sampled_from([None, None, 0.0, 0.4]),
        "mig_uuid": st.sampled_from([None, None, None, "M1"]),
        "pod": st.sampled_from([None, None, "p1", "p2"]),
        "user": st.sampled_from([None, "ana", "bo"]),
    }
)
FLEET = st.tuples(
    st.lists(CHARGE, min_size=1, max_size=12),
    st.lists(EXTRA, max_size=4),
    st.lists(READING, max_size=60),
)


def rows_of(drawn):
    charges, extras, readings = drawn
    # Both clouds have a bill, so that no hour is counted from telemetry alone.
    bill = [t.charge("anchor", source=cloud, gpus=1) for cloud in ("aws", "gcp")]
    bill += [t.charge(**row) for row in (*charges, *extras)]
    return bill, [t.reading(**row) for row in readings]


def nodes_and_hours(frame, column):
    sums = {}
    for row in frame.itertuples(index=False):
        key = (row.cloud, row.instance_id, row.hour_start, row.currency)
        sums[key] = money.total([sums.get(key, D(0)), getattr(row, column)])
    return sums


@RUNS
@given(FLEET)
def test_states_add_up_to_what_was_billed(drawn):
    bill, readings = rows_of(drawn)
    found = t.fleet(bill, readings, 12).hours
    # The second method: charge by charge, no hour of which may be lost.
    billed = money.total(row["gpu_hours"] for row in bill if row["gpu_hours"] is not None)
    assert money.total(found["gpu_hours"]) == billed
    assert (found["gpu_hours"] >= 0).all()
    assert (found["needed_gpu_hours"] <= found["gpu_hours"]).all()
    assert (found["needed_gpu_hours"] >= 0).all()
    dark = t.fleet(bill, [], 12).hours
    # Without telemetry each node and hour holds the same GPU-hours and money, all unknown.
    for column in ("gpu_hours", "cost"):
        by_hour = nodes_and_hours(dark, column)
        if not any(row["period_end"] - row["period_start"] > t.hour(1) - t.hour(0) for row in bill):
            assert nodes_and_hours(found, column) == by_hour
    assert set(dark["state"]) == {"unknown"}


@RUNS
@given(FLEET)
def test_money_of_instances_with_gpus_is_kept_to_the_last_digit(drawn):
    bill, readings = rows_of(drawn)
    bill = [row for row in bill if row["gpu_hours"] is not None]
    found = t.fleet(bill, readings, 12).hours
    for currency in ("USD", "NOK"):
        paid = money.total(row["effective_cost"] for row in bill if row["currency"] == currency)
        assert money.total(found.loc[found["currency"] == currency, "cost"]) == paid


@RUNS
@given(FLEET, st.integers(0, 2**16))
def test_the_order_of_rows_and_equal_readings_do_not_matter(drawn, seed):
    bill, readings = rows_of(drawn)
    bill = [{**row, "source_row_no": n} for n, row in enumerate(bill, start=1)]
    once = t.fleet(bill, readings, 12)
    mixed = random.Random(seed)
    shuffled_bill = mixed.sample(bill, len(bill))
    doubled = readings + readings[: len(readings) // 2]
    again = t.fleet(shuffled_bill, mixed.sample(doubled, len(doubled)), 12)
    pd.testing.assert_frame_equal(again.hours, once.hours)
