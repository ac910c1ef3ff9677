"""Nights on a one-day fleet, killed with `kill -9`: what was there before or what came after.

Every night works on a restated bill, so that it has something to load, to plan and to write. Some
kills fall at any moment of a night, others shortly after its first write to the store, or while its
folder is put in place: of the time of a night these take the least, and they are what matters.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data.sample.generate import generate
from tests.program import DAY, ROOT, Finished, call, contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES = {
    "report.md", "recommendations.csv", "commitments.csv", "limits.csv", "idle.csv", "quality.csv",
    "demand.csv", "plan.json", "run.json", "timings.json",
}  # fmt: skip
OF_HISTORY = {"restated_period", "last_delivered"}
EARLIER = "2026-10-30"
SEED = 20261031
# How many kills of each kind: 50 in all.
ANYWHERE, WHILE_LOADING, WHILE_WRITING = 20, 24, 6
SHORT = 4  # what a night on one day of history ends with
REPAIRED_EVERY = 25
PATIENCE_S = 120.0


class Server:
    """A process that starts nights, each in a process of its own that can be killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("night_server.py"))],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._line() == "ready"

    def start(self, words: list[str]) -> int:
        """The id of the process that runs the words."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return int(self._line())

    def wait(self) -> int:
        """How the process ended: its exit code, or the signal as a negative number."""
        return int(self._line())

    def close(self) -> None:
        with self.process:
            assert self.process.stdin
            self.process.stdin.close()

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()


@dataclass
class Scene:
    """A fleet whose bill is restated again and again, its store, its output, and what they hold."""

    folder: Path
    server: Server
    chance: random.Random
    gcp: list[str] = field(default_factory=list)
    azure: list[dict[str, str]] = field(default_factory=list)
    restated: int = 0
    first: dict[str, Decimal] = field(default_factory=dict)
    cost: dict[str, Decimal] = field(default_factory=dict)
    earlier: dict[str, bytes] = field(default_factory=dict)
    night: dict[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def words(self, store: Path, out: Path) -> list[str]:
        config = self.folder / "fleet" / "loadfactor.toml"
        places = ["--store", str(store), "--out", str(out), "--config", str(config)]
        return ["nightly", "--date", DAY, "--quiet", *places]

    def restate(self) -> None:
        """Write the next bill: one row of GCP's and one of Azure's cost a dollar more each time."""
        self.restated += 1
        cost = re.search(r'"cost":([0-9.]+)', self.gcp[0])
        assert cost
        dearer = f'"cost":{Decimal(cost.group(1)) + self.restated}'
        first = self.gcp[0].replace(cost.group(), dearer, 1)
        _pack(_one(self.folder, "gcp/**/*.json.gz"), [first, *self.gcp[1:]])
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.azure[0]), lineterminator="\n")
        writer.writeheader()
        dear = next(n for n, row in enumerate(self.azure) if row["PricingCategory"] == "Standard")
        for number, row in enumerate(self.azure):
            more = self.restated if number == dear else 0
            cost = {
                name: str(Decimal(row[name]) + more) for name in ("BilledCost", "EffectiveCost")
            }
            writer.writerow(row | cost)
        part = _one(self.folder, "azure/**/*.csv")
        part.write_text(text.getvalue())
        manifest = _one(self.folder, "azure/**/manifest.json")
        body = json.loads(manifest.read_text())
        body["runInfo"]["runId"] = str(uuid.UUID(int=self.restated))
        body["runInfo"]["submittedTime"] = f"2026-10-31T06:{self.restated:02d}:00Z"
        body["byteCount"] = body["blobs"][0]["byteCount"] = part.stat().st_size
        manifest.write_text(json.dumps(body))

    def run(self) -> int:
        """The exit code of a night that nobody kills."""
        began = time.monotonic()
        self.server.start(self.words(self.store, self.out))
        code = self.server.wait()
        self.seconds = time.monotonic() - began
        return code

    def kill_after(self, moment: Callable[[int], None]) -> int:
        """Start a night and kill it at the moment; how it ended."""
        process = self.server.start(self.words(self.store, self.out))
        moment(process)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        return self.server.wait()

    def anywhere(self, _process: int) -> None:
        time.sleep(self.chance.uniform(0, self.seconds))

    def while_loading(self, process: int) -> None:
        _wait_for(self.store / "deliveries", ".staging-", process)
        time.sleep(self.chance.uniform(0, 0.25 * self.seconds))

    def while_writing(self, process: int) -> None:
        _wait_for(self.out, ".staged-", process)
        time.sleep(self.chance.uniform(0, 0.02))

    def check_store(self) -> None:
        """The cost of every source is what it was or what the newest bill says."""
        now = self.told()
        for source, cost in now.items():
            assert cost in (self.cost[source], self.newest(source)), source
        assert set(now) == set(self.cost)
        self.cost = now

    def check_nights(self) -> None:
        """The earlier night is untouched; this one is the former or whole, with the newest bill."""
        earlier, night = contents(self.out / EARLIER), contents(self.out / DAY)
        assert earlier == self.earlier
        if night == self.night:
            return
        assert {path.name for path in (self.out / DAY).iterdir()} == FILES
        report = call("report", self.out / DAY)
        assert (report.code, report.out.encode()) == (0, night["report.md"]), report.err
        inputs = [one["delivery_id"] for one in json.loads(night["run.json"])["inputs"]]
        assert inputs == json.loads(night["plan.json"])["inputs"]
        assert f"{uuid.UUID(int=self.restated)}-2026-10" in inputs
        for source in self.cost:
            assert self.cost[source] == self.newest(source)
        self.night = night

    def begin(self) -> None:
        """Generate the fleet and run its first night, which stands for an earlier one as well."""
        generate(self.folder / "fleet", days=1)
        with gzip.open(_one(self.folder, "gcp/**/*.json.gz"), "rt") as file:
            self.gcp = file.readlines()
        with _one(self.folder, "azure/**/*.csv").open(newline="") as part:
            self.azure = list(csv.DictReader(part))
        assert self.run() == SHORT
        self.first = self.cost = self.told()
        shutil.copytree(self.out / DAY, self.out / EARLIER)
        self.earlier = self.night = contents(self.out / DAY)
        self.restate()
        assert self.run() == SHORT  # takes the time of a night that has something to load
        self.check_store()
        self.check_nights()

    def newest(self, source: str) -> Decimal:
        return self.first[source] + (0 if source == "aws" else self.restated)

    def told(self) -> dict[str, Decimal]:
        answer: Finished = call("totals", "--store", self.store, "--by", "source", "--json")
        assert answer.code == 0, answer.out
        return {row["source"]: Decimal(row["billed_cost"]) for row in answer.json["rows"]}

    def named(self) -> set[str]:
        """The folders of deliveries that the catalogue names."""
        catalogue = json.loads((self.store / "catalogue.json").read_text())
        return {one["folder"] for one in catalogue["deliveries"].values()}

    def repair(self) -> None:
        """A night that nobody kills: all is well again, and nothing of the killed ones is left.

        What it replaced itself may still be read; the next night removes that.
        """
        before = self.named()
        assert self.run() == SHORT
        self.check_store()
        self.check_nights()
        assert self.cost == {source: self.newest(source) for source in self.cost}
        assert {path.name for path in self.out.iterdir()} == {DAY, EARLIER}
        assert {
            path.name for path in (self.store / "deliveries").iterdir()
        } <= self.named() | before


def but_for_history(night: Path) -> dict[str, object]:
    """The files of a night, without what a store tells of the versions that it held before.

    The report says the same as the other files, and is left out.
    """
    files: dict[str, object] = {**contents(night)}
    del files["report.md"]
    plan = json.loads((night / "plan.json").read_text())
    del plan["checksum"], plan["summary"]["restated"]
    files["plan.json"] = plan
    with (night / "quality.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    files["quality.csv"] = [row for row in rows if row["check"] not in OF_HISTORY]
    return files


def _one(folder: Path, pattern: str) -> Path:
    (path,) = (folder / "fleet").glob(pattern)
    return path


def _pack(path: Path, lines: list[str]) -> None:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        file.writelines(lines)


def _wait_for(folder: Path, prefix: str, process: int) -> None:
    """Until a name with the prefix is in the folder, or the process is gone."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and Path(f"/proc/{process}").exists():
        if any(path.name.startswith(prefix) for path in folder.iterdir()):
            return
        time.sleep(0.001)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    server = Server()
    yield Scene(tmp_path, server, random.Random(SEED))
    server.close()


@pytest.mark.parts
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks and looks into /proc")
def test_fifty_killed_nights_leave_the_former_state_or_the_new_and_the_next_repairs(
    scene: Scene,
) -> None:
    scene.begin()
    moments = [scene.anywhere] * ANYWHERE
    moments += [scene.while_loading] * WHILE_LOADING + [scene.while_writing] * WHILE_WRITING
    scene.chance.shuffle(moments)
    ends = []
    for number, moment in enumerate(moments, start=1):
        scene.restate()
        ends.append(scene.kill_after(moment))
        scene.check_store()
        scene.check_nights()
        if number % REPAIRED_EVERY == 0 or number == len(moments):
            scene.repair()
    assert len(ends) == 50
    # A few nights end before the moment comes, above all on a machine that grows faster.
    assert ends.count(-signal.SIGKILL) >= 35, ends
    assert set(ends) <= {SHORT, -signal.SIGKILL}, ends
    whole = scene.folder / "whole"
    # The night before is an input: its advice is stayed near to, and compared with.
    shutil.copytree(scene.out / EARLIER, whole / "out" / EARLIER)
    scene.server.start(scene.words(whole / "store", whole / "out"))
    assert scene.server.wait() == SHORT
    assert but_for_history(whole / "out" / DAY) == but_for_history(scene.out / DAY)
