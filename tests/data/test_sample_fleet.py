"""The bundled fleet, read again without the product: its files, its GPUs, their readings."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from data.sample import activity, machines
from data.sample.generate import BY_HAND, FLEET, generate
from tests.data.sample_cases import csv_rows, readings_of_the_fleet, text_of, truth_of_the_fleet


def _files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def truth():
    return truth_of_the_fleet()


@pytest.fixture(scope="module")
def readings():
    return readings_of_the_fleet()


# The files


def test_generating_again_gives_the_shipped_files(tmp_path):
    generate(tmp_path)
    assert _files(tmp_path) == _files(FLEET)
    for name in sorted(_files(FLEET)):
        # Uncompressed, since another build of zlib may pack the same text otherwise.
        assert text_of(tmp_path / name) == text_of(FLEET / name), name


def test_a_one_day_fleet_is_small_the_same_twice_and_the_tail_of_the_long_one(tmp_path):
    generate(tmp_path / "a", days=1)
    generate(tmp_path / "b", days=1)
    names = _files(tmp_path / "a")
    assert names == _files(tmp_path / "b")
    assert all(
        (tmp_path / "a" / n).read_bytes() == (tmp_path / "b" / n).read_bytes() for n in names
    )
    assert sum((tmp_path / "a" / name).stat().st_size for name in names) < 200_000
    day = csv_rows(tmp_path / "a", "utilization/*.csv.gz")
    shipped = csv_rows(FLEET, "utilization/*.csv.gz")
    # The readings are drawn from the start of the window on; who is there is the same.
    seen = {(row["hour_start"], row["gpu_uuid"]) for row in day}
    assert seen == {
        (row["hour_start"], row["gpu_uuid"]) for row in shipped if row["hour_start"] >= "2026-10-30"
    }


@pytest.mark.parametrize("days", [0, 61])
def test_more_days_than_it_has_lived_are_refused(tmp_path, days):
    with pytest.raises(ValueError, match="must be 1 to 60"):
        generate(tmp_path, days=days)


def test_the_fleet_is_small_enough_to_ship():
    sizes = {name: (FLEET / name).stat().st_size for name in _files(FLEET)}
    assert sum(sizes.values()) < 4_000_000
    assert max(sizes.values()) < 2 * 1024 * 1024


def test_the_readme_says_that_it_is_made_and_its_figures_are_those_of_the_truth(truth):
    text = (FLEET / "README.md").read_text()
    assert "**Everything here is made.**" in text
    shown = {
        truth["total"]["billed_gpu_hours"]: 2,
        truth["idle"]["cost_on_machines"]: 2,
        truth["idle"]["cost_of_unused_commitments"]: 2,
        truth["idle"]["cost"]: 2,
        truth["idle"]["cost_per_year"]: 2,
    }
    for figure, places in shown.items():
        assert f"{round(Decimal(figure), places):,}" in text
    assert f"{truth['idle']['gpu_hour_share']:.1%} are idle" in text


def test_files_written_by_hand_are_the_only_ones_not_generated():
    assert set(BY_HAND) == {"loadfactor.toml", "README.md"}
    settings = tomllib.loads((FLEET / "loadfactor.toml").read_text())
    named = [path for source in settings["sources"].values() for path in source["paths"]]
    named += [settings["prices"]["overrides"], settings["inputs"]["commitments"]]
    assert all((FLEET / path).exists() for path in named)


# The GPUs


def test_there_are_one_hundred_gpus_in_three_clouds(readings):
    gpus = defaultdict(set)
    for row in readings:
        gpus[row["cloud"]].add(row["gpu_uuid"])
    # 5 x 8 + 8; 4 x 8; 2 x 8 + 4
    assert {cloud: len(found) for cloud, found in gpus.items()} == {
        "aws": 48, "gcp": 32, "azure": 20,
    }  # fmt: skip


def test_every_hour_of_sixty_days_is_there_and_none_else(readings):
    hours = {row["hour_start"] for row in readings}
    assert len(hours) == 60 * 24
    assert (min(hours), max(hours)) == ("2026-09-01T00:00:00Z", "2026-10-30T23:00:00Z")


def test_no_gpu_is_read_twice_in_an_hour(readings):
    keys = [(row["hour_start"], row["gpu_uuid"]) for row in readings]
    assert len(keys) == len(set(keys))


def test_two_fifths_of_the_gpu_hours_are_idle_and_about_two_percent_unknown(truth):
    hours = {state: Decimal(text) for state, text in truth["total"]["gpu_hours"].items()}
    total = sum(hours.values())
    assert Decimal("0.38") < (hours["idle_held"] + hours["free"]) / total < Decimal("0.42")
    assert Decimal("0.015") < hours["unknown"] / total < Decimal("0.025")
    assert total == Decimal(truth["total"]["billed_gpu_hours"])


def test_no_reading_lies_between_busy_and_idle(readings):
    # Busy reads 18 percent or more outside serving, 8 or more there; idle reads exactly 0.
    utils = [int(row["gpu_util"]) for row in readings if row["gpu_util"]]
    assert set(utils) & set(range(1, 20)) <= set(range(8, 20))
    assert max(utils) <= 100
    assert {row["sm_active"] for row in readings if row["gpu_util"] == "0"} == {"0"}


def test_the_parked_node_has_been_free_for_three_weeks(readings, truth):
    parked = [
        row
        for row in readings
        if row["instance_id"] == truth["parked"]["instance_id"]
        and row["hour_start"] >= truth["parked"]["since"]
    ]
    # 2026-10-09 14:00 to 2026-10-31 00:00 is 21 days and 10 hours: 514 hours of 8 GPUs.
    assert len(parked) == 514 * 8
    assert {row["process_count"] for row in parked} == {"0", ""}


def test_needed_hours_of_one_notebook_are_those_counted_by_hand(readings, truth):
    # One GPU: busy and unknown hours, and of each idle-held run its first two (120 minutes).
    notebook = next(m for m in machines.fleet() if m.name == "notebook-0")
    rows = sorted(
        (row for row in readings if row["instance_id"] == notebook.instance_id),
        key=lambda row: row["hour_start"],
    )
    needed = run = 0
    for row in rows:
        held = row["gpu_util"] == "0" and row["process_count"] == "1"
        run = run + 1 if held else 0
        needed += row["gpu_util"] != "0" or (held and run <= 2)
    assert len(rows) == 1440
    told = truth["instances"][notebook.instance_id]["needed_gpu_hours"]
    assert needed == Decimal(told)


def test_the_plan_of_events_covers_sixty_days():
    assert activity.HOURS == 1440
    assert activity.hour_start(activity.HOURS) == datetime(2026, 10, 31, tzinfo=UTC)
