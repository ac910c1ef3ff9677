from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pandas as pd
import pytest

from data import frames
from data.errors import DataError
from data.schema import DEMAND, QUALITY, TABLES, UTILIZATION

HOUR = "2026-11-01T05:00:00Z"


def utilization(**changes):
    row = {
        "unit": "u", "hour_start": HOUR, "cloud": "aws", "account": "0099", "instance_id": "i-1",
        "gpu_uuid": "GPU-1", "gpu_util": "55.5", "export_id": "e", "source_row_no": 1,
    }  # fmt: skip
    return row | changes


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_an_empty_frame_of_every_table_conforms(table):
    frame = frames.empty(table)
    assert list(frame.columns) == table.names
    assert frame.empty


def test_values_are_cast_and_columns_put_in_order():
    rows = [utilization(), utilization(source_row_no="2", gpu_util=None, extra="dropped")]
    frame = frames.conform(pd.DataFrame(rows), UTILIZATION)
    assert list(frame.columns) == UTILIZATION.names
    assert frame["hour_start"][0] == datetime(2026, 11, 1, 5, tzinfo=UTC)
    assert frame["account"].tolist() == ["0099", "0099"]
    assert frame["gpu_util"][0] == 55.5
    assert pd.isna(frame["gpu_util"][1])
    assert frame["source_row_no"].tolist() == [1, 2]


def test_money_becomes_exact_decimals_by_its_shortest_text():
    rows = [
        {"check": c, "scope": "s", "severity": "info", "detail": "d", "amount": amount}
        for c, amount in (("a", 0.1), ("b", "6.123E-7"), ("c", None))
    ]
    amounts = frames.conform(pd.DataFrame(rows), QUALITY)["amount"].tolist()
    assert amounts[:2] == [Decimal("0.1"), Decimal("6.123E-7")]
    assert amounts[2] is None


def test_every_fault_is_named_at_once():
    rows = [
        utilization(gpu_util=101, cloud=None),
        utilization(source_row_no=2, sm_active=-0.1),
    ]
    frame = pd.DataFrame(rows).drop(columns="gpu_uuid")
    with pytest.raises(DataError) as caught:
        frames.conform(frame, UTILIZATION)
    assert [f"{one.where}: {one.what}" for one in caught.value.problems] == [
        "utilization.cloud row 1: empty, and must not be",
        "utilization.gpu_util row 1: 101.0 above 100",
        "utilization.gpu_uuid: missing column",
        "utilization.sm_active row 2: -0.1 below 0",
    ]


def test_a_value_that_is_not_of_the_dtype_is_named():
    with pytest.raises(DataError, match=r"utilization\.gpu_util: not float"):
        frames.conform(pd.DataFrame([utilization(gpu_util="busy")]), UTILIZATION)


def test_a_value_that_is_not_allowed_is_named_with_the_choices():
    row = {"check": "c", "scope": "s", "severity": "bad", "detail": "d"}
    with pytest.raises(DataError, match="'bad' is none of info, warning, error"):
        frames.conform(pd.DataFrame([row]), QUALITY)


def test_rows_with_one_key_are_refused():
    with pytest.raises(DataError, match="2 rows share a key"):
        frames.conform(pd.DataFrame([utilization(), utilization()]), UTILIZATION)


def test_many_faults_of_a_column_are_counted_after_five():
    rows = [utilization(source_row_no=n, gpu_util=200) for n in range(1, 9)]
    with pytest.raises(DataError, match="and 3 more rows"):
        frames.conform(pd.DataFrame(rows), UTILIZATION)


def test_a_time_of_another_zone_becomes_utc():
    frame = pd.DataFrame([utilization(hour_start="2026-11-01T06:00:00+01:00")])
    assert frames.conform(frame, UTILIZATION)["hour_start"][0].isoformat() == (
        "2026-11-01T05:00:00+00:00"
    )


def test_conform_leaves_the_given_frame_alone():
    given = pd.DataFrame([utilization()])
    before = given.copy(deep=True)
    frames.conform(given, UTILIZATION)
    pd.testing.assert_frame_equal(given, before)


def test_demand_hours_must_not_repeat_for_one_class_and_family():
    numbers = dict.fromkeys(
        ("needed_gpus", "billed_gpus", "busy_gpus", "idle_held_gpus", "free_gpus", "unknown_gpus"),
        1.0,
    )
    row = {"hour_start": HOUR, "workload_class": "training", "gpu_family": "H100", **numbers}
    with pytest.raises(DataError, match="share a key"):
        frames.conform(pd.DataFrame([row, row]), DEMAND)
