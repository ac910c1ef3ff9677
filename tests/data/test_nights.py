"""The output folder of a night is replaced whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from data import nights
from data.errors import StoreError

OLD = {"report.md": "old\n", "plan.json": "{}\n"}
NEW = {"report.md": "new\n", "plan.json": '{"a": 1}\n', "idle.csv": "x\n"}


class Killed(Exception):
    pass


def read(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def steps_of(out: Path) -> list[str]:
    seen: list[str] = []
    nights.write_night(out, "2026-10-31", OLD)
    nights.write_night(out, "2026-10-31", NEW, seen.append)
    return seen


def test_the_newest_night_before_a_day_is_neither_that_day_nor_a_later_one(tmp_path: Path) -> None:
    assert nights.newest_before(tmp_path / "nowhere", "2026-10-31") is None
    for name in ("2026-10-28", "2026-10-30", "2026-10-31", "2026-11-01", "notes", ".staged-x"):
        (tmp_path / name).mkdir()
    assert nights.newest_before(tmp_path, "2026-10-31") == tmp_path / "2026-10-30"
    assert nights.newest_before(tmp_path, "2026-10-30") == tmp_path / "2026-10-28"
    assert nights.newest_before(tmp_path, "2026-10-28") is None


def test_a_night_holds_exactly_the_files_given(tmp_path: Path) -> None:
    nights.write_night(tmp_path, "2026-10-31", NEW)
    folder = nights.write_night(tmp_path, "2026-10-31", OLD)
    assert read(folder) == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["2026-10-31"]


@pytest.mark.parametrize("exchange", [True, False])
def test_a_stop_at_every_step_leaves_the_former_or_the_new_night(
    tmp_path: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr(nights, "_exchange", lambda _one, _other: False)
    steps = steps_of(tmp_path / "count")
    assert len(steps) >= 8
    for stop in range(len(steps)):
        out = tmp_path / f"stop{stop}"
        nights.write_night(out, "2026-10-31", OLD)
        taken = 0

        def kill(_step: str, stop: int = stop) -> None:
            nonlocal taken
            if taken == stop:
                raise Killed
            taken += 1

        with pytest.raises(Killed):
            nights.write_night(out, "2026-10-31", NEW, kill)
        if exchange:
            assert read(out / "2026-10-31") in (OLD, NEW), steps[stop]
        nights.repair(out)
        assert read(out / "2026-10-31") in (OLD, NEW), steps[stop]
        assert [path.name for path in out.iterdir()] == ["2026-10-31"], steps[stop]


def test_real_kills_leave_a_whole_night(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from data import nights\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    files = {f'f{i}.csv': str(n) * 1000 for i in range(6)}\n"
        "    nights.write_night(Path(sys.argv[1]), '2026-10-31', files)\n"
    )
    out = tmp_path / "out"
    seen = 0
    chance = random.Random(7)
    for _ in range(20):
        root = Path(__file__).parents[2]
        child = subprocess.Popen([sys.executable, "-c", script, str(out)], cwd=root)
        while not (out / "2026-10-31").exists() and child.poll() is None:
            time.sleep(0.005)
        time.sleep(chance.uniform(0.15, 0.35))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        night = read(out / "2026-10-31")
        assert len(night) == 6
        assert len(set(night.values())) == 1
        seen += 1
    assert seen == 20


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(StoreError, match="cannot write the night"):
        nights.write_night(tmp_path / "out", "2026-10-31", OLD)


def test_an_output_folder_that_cannot_be_made_is_known_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(StoreError, match="cannot write to the output folder"):
        nights.prepare(tmp_path / "out")
    nights.prepare(tmp_path / "other" / "deeper")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
