"""Fetches killed with `kill -9`: the store holds the former month or the new one, whole.

Every fetch finds a month that was restated. Some are killed at any moment, some while an object is
half downloaded, some shortly after their first write to the store.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.providers.fetch.aws_exports import Bucket, Puller
from tests.test_kills import Server as Forks

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 20261130
ANYWHERE, WHILE_DOWNLOADING, WHILE_LOADING = 30, 8, 12
REPAIRED_EVERY = 10
PATIENCE_S = 120.0
FIRST, SECOND = Decimal("98.32"), Decimal("0.5")
DAY = "2026-11-04"


@dataclass
class Scene:
    """A month that is restated again and again, and the store that follows it."""

    folder: Path
    bucket: Bucket
    forks: Forks
    chance: random.Random
    restated: int = 0
    cost: Decimal = FIRST + SECOND
    keys: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def landing(self) -> Path:
        return self.store / "landing" / "aws-prod"

    @property
    def newest(self) -> Decimal:
        return FIRST + self.restated + SECOND

    def restate(self) -> None:
        """The first of its two charges is a dollar dearer each time."""
        self.restated += 1
        run = f"r{self.restated}"
        self.keys = self.bucket.data_export("2026-11", run, FIRST + self.restated, SECOND)

    def begin(self) -> None:
        config = self.folder / "loadfactor.toml"
        place = f"s3://{self.bucket.name}/exports"
        config.write_text(f'[sources.aws-prod]\nkind = "aws"\nbilling = "{place}"\n')
        self.restate()
        assert self.run() == 0
        self.cost = self.newest
        self.check()

    def words(self) -> list[str]:
        config = self.folder / "loadfactor.toml"
        return ["fetch", "--config", str(config), "--store", str(self.store), "--date", DAY]

    def run(self) -> int:
        """The exit code of a fetch that nobody kills."""
        began = time.monotonic()
        self.forks.start(self.words())
        code = self.forks.wait()
        self.seconds = time.monotonic() - began
        return code

    def kill_after(self, moment: Callable[[int], None]) -> int:
        """Start a fetch and kill it at the moment; how it ended."""
        process = self.forks.start(self.words())
        moment(process)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        self.bucket.server.freed.set()
        return self.forks.wait()

    def anywhere(self, _process: int) -> None:
        time.sleep(self.chance.uniform(0, self.seconds))

    def while_downloading(self, process: int) -> None:
        """Half of one of the parts has come, and no more does."""
        server = self.bucket.server
        server.freed.clear()
        server.faults.append((self.chance.choice(self.keys[:2]), "hang"))
        _wait_for(lambda: any(self.landing.glob("objects/*/*.part")), process)
        time.sleep(self.chance.uniform(0, 0.05))

    def while_loading(self, process: int) -> None:
        folder = self.store / "deliveries"
        _wait_for(
            lambda: any(one.name.startswith(".staging-") for one in folder.iterdir()), process
        )
        time.sleep(self.chance.uniform(0, 0.4 * self.seconds))

    def check(self) -> None:
        """The store holds the month as it was or as it is now, and the memory can be read."""
        (now,) = Puller(self.bucket, self.folder).costs().values()
        assert now in (self.cost, self.newest)
        self.cost = now
        json.loads((self.landing / "index.json").read_text())

    def repair(self) -> None:
        """A fetch that nobody kills: the newest month is there, and no leavings of killed ones."""
        self.bucket.server.faults.clear()
        assert self.run() == 0
        self.check()
        assert self.cost == self.newest
        assert list((self.landing / "objects").iterdir()) == []
        assert not list(self.landing.glob("*.tmp"))
        catalogue = json.loads((self.store / "catalogue.json").read_text())
        named = {one["folder"] for one in catalogue["deliveries"].values()}
        lying = {path.name for path in (self.store / "deliveries").iterdir()}
        assert not [name for name in lying if name.startswith(".staging-")]
        assert named <= lying


def _wait_for(is_so: Callable[[], bool], process: int) -> None:
    """Until it is so, or the process is gone."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and Path(f"/proc/{process}").exists():
        if is_so():
            return
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks and looks into /proc")
def test_fifty_killed_fetches_leave_the_former_month_or_the_new_and_the_next_repairs(
    bucket: Bucket, tmp_path: Path
) -> None:
    forks = Forks()
    scene = Scene(tmp_path, bucket, forks, random.Random(SEED))
    try:
        scene.begin()
        moments = [scene.anywhere] * ANYWHERE
        moments += [scene.while_downloading] * WHILE_DOWNLOADING
        moments += [scene.while_loading] * WHILE_LOADING
        scene.chance.shuffle(moments)
        ends = []
        for number, moment in enumerate(moments, start=1):
            scene.restate()
            ends.append(scene.kill_after(moment))
            scene.check()
            if number % REPAIRED_EVERY == 0:
                scene.repair()
    finally:
        forks.close()
    assert len(ends) == 50
    # A few fetches end before the moment comes.
    assert ends.count(-signal.SIGKILL) >= 35, ends
    assert set(ends) <= {0, -signal.SIGKILL}, ends
    fresh = Puller(bucket, tmp_path / "fresh")
    fresh.pull()
    assert fresh.costs() == {"2026-11": scene.newest}
