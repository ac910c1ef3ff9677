"""Telemetry that users bring: readings, hours, bad rows, and files of one day."""

from __future__ import annotations

import gzip
import hashlib
from datetime import UTC, datetime

import pandas as pd
import pytest

from data import frames
from data.errors import DataError
from data.schema import QUALITY
from data.store import Store
from providers.files import tables
from providers.files.telemetry import MOST_BAD_SHARE
from tests.providers.table_cases import HEAD, load, write

# The mark of the one machine of most tests.
I_1 = hashlib.md5(b"i-1").hexdigest()[:8]


def sample(hour="2026-11-01T05:00:00Z", gpu="GPU-1", util="50", sm="0.4", memory="0.5", count="1"):
    return f"{hour},aws,0099,us-east-1,i-1,{gpu},{util},{sm},{memory},{count}"


def load_lines(tmp_path, *lines, head=HEAD):
    return load(tmp_path, write(tmp_path / "utilization.csv", head, *lines))


def many(good, *bad):
    """`good` good samples, one an hour, and the bad lines."""
    hours = pd.date_range("2026-11-01", periods=good, freq="h").strftime("%Y-%m-%dT%H:%M:%SZ")
    return [*(sample(hour) for hour in hours), *bad]


def checks(staged):
    return {row["check"]: row["count"] for row in staged.quality}


def test_an_hourly_sample_is_read_as_it_is(tmp_path):
    staged, (row,) = load_lines(tmp_path, sample())
    assert (staged.source, staged.rows, staged.warnings) == ("aws", 1, ())
    assert row["unit"] == f"aws|0099/{I_1}|utilization|2026-11-01"
    assert row["hour_start"] == datetime(2026, 11, 1, 5, tzinfo=UTC)
    assert (row["cloud"], row["account"], row["instance_id"]) == ("aws", "0099", "i-1")
    assert (row["gpu_util"], row["sm_active"], row["memory_used_share"]) == (50, 0.4, 0.5)
    assert (row["process_count"], row["team"]) == (1, None)


@pytest.mark.parametrize("word", ["", "N/A", "n/a", "NaN", "null", "[N/A]", " [Not Supported] "])
def test_no_reading_stays_missing_and_never_becomes_zero(tmp_path, word):
    _, (row,) = load_lines(tmp_path, sample(util=word, sm=word, memory=word, count=word))
    readings = ("gpu_util", "sm_active", "memory_used_share", "process_count")
    assert [row[name] for name in readings] == [None] * 4


def test_missing_columns_and_other_spellings_and_order_are_read(tmp_path):
    head = "GPU_UUID, Instance_Id ,cloud,account,HOUR_START,note"
    staged, (row,) = load_lines(tmp_path, "GPU-1,i-1,AWS,0099,2026-11-01 05:00:00,x", head=head)
    assert (row["cloud"], row["gpu_util"], row["process_count"]) == ("aws", None, None)
    assert checks(staged) == {"no_gpu_util": 1}


def test_zero_is_a_reading(tmp_path):
    _, (row,) = load_lines(tmp_path, sample(util="0", sm="0", memory="0", count="0"))
    assert (row["gpu_util"], row["sm_active"], row["process_count"]) == (0, 0, 0)


def test_finer_samples_are_averaged_to_hours_by_device(tmp_path):
    head = HEAD.replace("hour_start", "time") + ",pod"
    lines = [
        sample("2026-11-01T05:00:00Z", util="100", count="0") + ",first",
        sample("2026-11-01T05:30:00Z", util="0", count="2") + ",second",
        sample("2026-11-01T05:45:00Z", util="N/A", count="N/A") + ",",
        sample("2026-11-01T06:00:00Z", util="10") + ",third",
    ]
    staged, rows = load_lines(tmp_path, *lines, head=head)
    assert [row["gpu_util"] for row in rows] == [50, 10]  # (100 + 0) / 2; the empty one is none
    assert [row["process_count"] for row in rows] == [2, 1]  # held in any sample is held
    assert [row["pod"] for row in rows] == ["second", "third"]  # the newest that names one
    assert [row["source_row_no"] for row in rows] == [1, 4]
    assert checks(staged) == {"averaged_samples": 2}
    assert staged.warnings == ()


def test_three_pods_on_a_gpu_in_one_hour_are_one_gpu(tmp_path):
    head = HEAD + ",pod"
    lines = [sample(util=util) + f",pod-{util}" for util in ("30", "60", "90")]
    _, rows = load_lines(tmp_path, *lines, head=head)
    assert [row["gpu_util"] for row in rows] == [60]  # (30 + 60 + 90) / 3


def test_mig_instances_of_one_gpu_stay_apart(tmp_path):
    lines = [sample(util="N/A") + ",MIG-1", sample(util="N/A") + ",MIG-2"]
    _, rows = load_lines(tmp_path, *lines, head=HEAD + ",mig_uuid")
    assert [row["mig_uuid"] for row in rows] == ["MIG-1", "MIG-2"]


def test_times_of_other_zones_become_utc_and_times_without_one_are_utc(tmp_path):
    lines = [sample("2026-11-01T05:00:00+01:00"), sample("2026-11-01 09:00")]
    _, rows = load_lines(tmp_path, *lines)
    assert [row["hour_start"].hour for row in rows] == [4, 9]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (sample(util="busy"), "gpu_util is not a number"),
        (sample(util="-1"), "gpu_util is out of its range"),
        (sample(util="106"), "gpu_util is out of its range"),
        (sample(sm="inf"), "sm_active is not a number"),
        (sample(memory="1.06"), "memory_used_share is out of its range"),
        (sample(count="1.5"), "process_count is not a count"),
        (sample(hour=""), "hour_start is empty"),
        (sample(hour="01/11/2026 5 pm"), "hour_start is not a time"),
        (sample(hour="infinity"), "hour_start is not a time"),
        (sample(gpu="N/A"), "gpu_uuid is empty"),
    ],
)
def test_a_bad_row_is_dropped_counted_and_told(tmp_path, bad, kind):
    staged, rows = load_lines(tmp_path, *many(20, bad))
    assert len(rows) == 20
    (warning,) = staged.warnings
    assert warning.startswith(f"1 of 21 rows dropped: {kind}; first row 21")
    assert checks(staged) == {"bad_telemetry_rows": 1}
    frames.conform(pd.DataFrame(staged.quality), QUALITY)


def test_a_ratio_a_little_above_its_range_is_capped_and_counted(tmp_path):
    staged, rows = load_lines(tmp_path, sample(util="105", sm="1.0000001", memory="1.05"))
    assert (rows[0]["gpu_util"], rows[0]["sm_active"], rows[0]["memory_used_share"]) == (100, 1, 1)
    assert checks(staged) == {"capped_telemetry_rows": 1}
    assert staged.warnings == ()


def test_a_tenth_of_bad_rows_is_dropped_and_more_reject_the_file(tmp_path):
    assert MOST_BAD_SHARE == 0.1
    staged, rows = load_lines(tmp_path, *many(18, sample(util="x"), sample(count="y")))
    assert (len(rows), len(staged.warnings)) == (18, 2)  # 2 of 20 is a tenth
    path = write(tmp_path / "bad.csv", HEAD, *many(17, sample(util="x"), sample(count="y")))
    with pytest.raises(DataError, match="2 of 19 rows are bad") as caught:
        tables.stage_files([path], "utilization", tmp_path, "bad.csv")
    assert [problem.where for problem in caught.value.problems] == [
        "utilization row 18",
        "utilization row 19",
    ]


def test_every_missing_column_is_named_at_once(tmp_path):
    path = write(tmp_path / "bad.csv", "cloud,gpu_util,sm_active,process_count", "aws,1,1,1")
    with pytest.raises(DataError) as caught:
        tables.stage_files([path], "utilization", tmp_path, "bad.csv")
    assert [problem.where for problem in caught.value.problems] == [
        "utilization.account",
        "utilization.gpu_uuid",
        "utilization.hour_start",
        "utilization.instance_id",
    ]


def test_a_header_without_rows_is_an_error(tmp_path):
    path = write(tmp_path / "none.csv", HEAD)
    with pytest.raises(DataError, match="no rows"):
        tables.stage_files([path], "utilization", tmp_path, "none.csv")


def test_a_share_written_where_percent_is_meant_is_told(tmp_path):
    hours = pd.date_range("2026-11-01", periods=24, freq="h").strftime("%Y-%m-%dT%H:%M:%SZ")
    staged, _ = load_lines(tmp_path, *(sample(hour, util="0.75") for hour in hours))
    (warning,) = staged.warnings
    assert "0.75 in 24 readings" in warning
    assert "multiply it by 100" in warning


def test_gzip_parquet_and_parts_are_read_as_the_csv_is(tmp_path):
    lines = [sample(gpu=f"GPU-{n}", util=f"{n}.5") for n in range(4)]
    _, wanted = load_lines(tmp_path, *lines)
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress("\n".join([HEAD, *lines]).encode()))
    columns = HEAD.split(",")
    frame = pd.DataFrame([line.split(",") for line in lines], columns=columns)
    frame = frame.astype({"gpu_util": float, "sm_active": float, "process_count": int})
    frame["hour_start"] = pd.to_datetime(frame["hour_start"])
    frame.to_parquet(tmp_path / "frame.parquet")
    parts = [
        write(tmp_path / "1.csv", HEAD, *lines[:2]),
        write(tmp_path / "2.csv", HEAD, *lines[2:]),
    ]
    for number, paths in enumerate([[packed], [tmp_path / "frame.parquet"], parts]):
        _, rows = load(tmp_path / str(number), *paths)
        for row, other in zip(rows, wanted, strict=True):
            assert row | {"export_id": ""} == other | {"export_id": ""}


@pytest.mark.parametrize("machines", [("i-1", "i-2"), ("i-1,i-3", "i-2,i-4")])
def test_files_of_other_machines_for_one_day_stand_side_by_side(tmp_path, machines):
    store = Store.open(tmp_path / "store")
    for position, util in ((0, "40"), (1, "50"), (0, "60")):
        names = machines[position].split(",")
        lines = [sample(util=util).replace("i-1", name) for name in names]
        path = write(tmp_path / f"{position}.csv", HEAD, *lines)
        with store.staging() as folder:
            store.publish(tables.stage_files([path], "utilization", folder, path.name))
    rows = store.table("utilization").to_pyarrow().to_pylist()
    found = sorted((row["instance_id"], row["gpu_util"]) for row in rows)
    firsts = [(name, 60.0) for name in machines[0].split(",")]
    assert found == sorted([*firsts, *((name, 50.0) for name in machines[1].split(","))])


def test_a_day_that_comes_again_replaces_that_day_alone(tmp_path):
    load_lines(tmp_path, sample("2026-11-01T00:00:00Z"), sample("2026-11-02T00:00:00Z"))
    _, rows = load_lines(tmp_path, sample("2026-11-02T00:00:00Z", util="75"))
    assert sorted(row["gpu_util"] for row in rows) == [50, 75]
