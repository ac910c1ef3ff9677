"""A writer stopped at every step, and killed at random moments: one state or the other is read."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from data.store import Status, Store, steps
from tests.staged import Charges, total

FORMER = Charges(("10", "5"), name="former.csv")
LATER = Charges(("10", "6"), name="later.csv")
LAST = Charges(("10", "7"), name="last.csv")
KILLS = 50


class Crash(BaseException):
    """The process is gone: no clean-up of ours may run, so every later step fails as well."""


class Stop:
    """Lets the first `after` steps pass, then stops this step and every later one."""

    def __init__(self, after):
        self.after = after
        self.taken = []

    def __call__(self, step):
        if len(self.taken) >= self.after:
            raise Crash(step)
        self.taken.append(step)


def steps_of_a_publication(path):
    FORMER.publish(Store(path))
    count = Stop(10**6)
    LATER.publish(Store(path, count))
    return count.taken


def test_a_publication_takes_every_named_step(tmp_path):
    assert set(steps_of_a_publication(tmp_path / "store")) == set(steps.STEPS)


def test_after_a_crash_at_every_step_one_state_is_read_and_the_next_writer_repairs(tmp_path):
    taken = steps_of_a_publication(tmp_path / "count")
    swap = taken.index("rename_catalogue")
    for after in range(len(taken)):
        path = tmp_path / f"stop-{after}"
        FORMER.publish(Store(path))
        with pytest.raises(Crash):
            LATER.publish(Store(path, Stop(after)))
        # 10 + 5 until the catalogue is swapped, 10 + 6 from then on
        assert total(Store(path)) == Decimal(15 if after <= swap else 16), taken[after]
        store = Store(path)
        assert LAST.publish(store).status is Status.LOADED
        assert total(store) == Decimal(17), taken[after]
        store.close()
        again = Store(path)
        again.close()
        assert LAST.publish(again, force=True).status is Status.LOADED
        left = {entry.name for entry in path.iterdir()}
        assert left == {".lock", ".readers", "catalogue.json", "deliveries"}, taken[after]
        folders = {entry.name for entry in (path / "deliveries").iterdir()}
        assert folders == {record.folder for record in again.deliveries()}, taken[after]


def test_a_crash_at_every_step_of_the_first_publication_leaves_an_empty_or_a_full_store(tmp_path):
    count = Stop(10**6)
    FORMER.publish(Store(tmp_path / "count", count))
    for after in range(len(count.taken)):
        path = tmp_path / f"stop-{after}"
        with pytest.raises(Crash):
            FORMER.publish(Store(path, Stop(after)))
        assert total(Store(path)) in (None, Decimal(15))
        store = Store(path)
        FORMER.publish(store)
        assert total(store) == Decimal(15)


# Forks writers from a process that has loaded everything and started no thread.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
from data.store import Store
from tests.staged import Charges

def write(number):
    while True:
        number += 1
        Charges(("10", str(number)), name=f"{number}.csv").publish(Store(Path(sys.argv[1])))

moments = random.Random(20261130)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        write(int(line) * 1000)
    time.sleep(moments.uniform(0.0, 0.2))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("killed", flush=True)
"""


def test_fifty_kills_leave_a_readable_store_that_the_next_writer_repairs(tmp_path):
    path = tmp_path / "store"
    FORMER.publish(Store(path))
    root = Path(__file__).parents[2]
    killer = subprocess.Popen(
        [sys.executable, "-c", KILLER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    halves = 0
    with killer:
        for kill in range(1, KILLS + 1):
            killer.stdin.write(f"{kill}\n")
            killer.stdin.flush()
            assert killer.stdout.readline() == "killed\n"
            store = Store(path)
            (record,) = store.deliveries()
            assert total(store) == record.units["aws|1|cur|2026-11"].cost, kill
            store.close()
            entries = {entry.name for entry in (path / "deliveries").iterdir()}
            halves += record.folder not in entries or any(".staging" in name for name in entries)
        killer.stdin.close()
    assert killer.returncode == 0
    assert halves > 0  # some kills did strike while a delivery was half written
    last = Store(path)
    LAST.publish(last, force=True)
    assert total(last) == Decimal(17)
    folders = {entry.name for entry in (path / "deliveries").iterdir()}
    assert not any(".staging" in name for name in folders)
