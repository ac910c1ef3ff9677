"""One night after another in one output folder: what is read of the former, and what is not."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from data.sample.generate import generate
from tests.program import contents, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program import Finished

FIRST, SECOND = "2026-10-30", "2026-10-31"


@dataclass(frozen=True)
class Fleet:
    """Two days of the made fleet, loaded; each plan goes to a folder of its own choice."""

    folder: Path
    store: Path

    def plan(self, day: str, out: Path, config: str = "loadfactor.toml") -> Finished:
        words = ["--config", self.folder / config, "--store", self.store, "--date", day]
        return run("plan", *words, "--out", out)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Fleet:
    folder, store = tmp_path_factory.mktemp("fleet"), tmp_path_factory.mktemp("store")
    generate(folder, days=2)
    parts = [folder / name for name in ("aws", "gcp", "azure", "utilization")]
    assert run("load", *parts, "--store", store).code == 0
    text = (folder / "loadfactor.toml").read_text()
    hurried = text.replace("[plan]", "[plan]\ntime_limit_seconds = 0.001")
    hurried = hurried.replace("[plan]", "[plan]\nmin_history_days = 1")
    (folder / "hurried.toml").write_text(hurried)
    return Fleet(folder, store)


@pytest.fixture(scope="module")
def nights(fleet, tmp_path_factory) -> Path:
    """The output folder of two nights."""
    out = tmp_path_factory.mktemp("out")
    assert fleet.plan(FIRST, out).code == 4  # a short history is a warning
    assert fleet.plan(SECOND, out).code == 4
    return out


def record(out: Path, day: str) -> Any:
    return json.loads((out / day / "run.json").read_text())


def test_a_night_reads_the_newest_before_it_and_says_so(nights):
    assert record(nights, FIRST)["last_night"] is None
    assert record(nights, SECOND)["last_night"] == FIRST
    assert f"## Since the night of {FIRST}" in (nights / SECOND / "report.md").read_text()
    assert "## Since the night" not in (nights / FIRST / "report.md").read_text()


def test_a_rerun_of_a_night_reads_neither_itself_nor_a_later_one(fleet, nights):
    before = contents(nights)
    assert fleet.plan(SECOND, nights).code == 4
    assert fleet.plan(FIRST, nights).code == 4
    assert contents(nights) == before


def test_a_night_that_was_edited_has_no_say_and_is_told(fleet, nights, tmp_path):
    shutil.copytree(nights / FIRST, tmp_path / FIRST)
    plan = tmp_path / FIRST / "plan.json"
    plan.write_text(plan.read_text().replace(f'"date": "{FIRST}"', '"date": "2026-10-29"'))
    finished = fleet.plan(SECOND, tmp_path)
    assert finished.code == 4
    assert f"the night of {FIRST} cannot be read and has no say: the plan was edited" in (
        finished.err
    )
    assert record(tmp_path, SECOND)["last_night"] is None


def test_every_stage_of_a_night_has_its_proof_in_the_run_record(nights):
    solve = record(nights, SECOND)["solve"]
    assert [one["stage"] for one in solve["stages"]] == [
        "as_is", "spot", "move", "demand", "expiry", "buy",
    ]  # fmt: skip
    for one in [*solve["stages"], solve]:
        assert one["solver"].startswith("highs ")
        assert one["bound"] <= one["objective"] * (1 + 1e-9)
        assert one["audited"] == pytest.approx(one["objective"], rel=1e-6)
        assert one["gap"] <= 1e-4


def test_a_time_limit_gives_the_best_plan_found_with_its_gap(fleet, tmp_path):
    finished = fleet.plan(SECOND, tmp_path, "hurried.toml")
    assert finished.code == 4
    assert "the time limit ended the search" in finished.err
    solve = record(tmp_path, SECOND)["solve"]
    assert solve["status"] == "feasible"
    assert 1e-4 < solve["gap"] <= 1
    assert solve["audited"] == pytest.approx(solve["objective"], rel=1e-6)
    report = (tmp_path / SECOND / "report.md").read_text()
    assert "stopped at its limit before the proof was complete" in report
    assert "Not solved to the end in the time allowed: " in report
