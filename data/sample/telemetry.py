"""The utilization table of the made fleet: one row per GPU and hour, a file a month.

A busy GPU reads well above the thresholds of `idle`, an idle one well below; a sensor gap is a
missing row or a row without readings, never a 0.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from data.sample import writing
from data.sample.activity import BLANK, BUSY, HELD, NO_ROW, demand_share, hour_start

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from data.sample.activity import Activity
    from data.sample.machines import Machine

COLUMNS = (
    "hour_start", "cloud", "account", "region", "instance_id", "gpu_uuid", "gpu_util", "sm_active",
    "memory_used_share", "process_count", "node", "user", "team",
)  # fmt: skip
# Percent of the hour with a kernel running: the least of a busy hour, and the range above it.
_BUSY_UTIL = {
    "training": (86, 10), "batch": (70, 20), "evaluation": (55, 35), "interactive": (18, 50),
}  # fmt: skip
_MEMORY_HELD = {
    "training": 0.91, "batch": 0.78, "inference": 0.62, "evaluation": 0.55, "interactive": 0.31,
}  # fmt: skip
_DRIVER_MEMORY = 0.01


def write(folder: Path, activities: Iterable[Activity], hours: range) -> None:
    """Writes `utilization-YYYY-MM.csv.gz` for each month of the hours."""
    lives = list(activities)
    rows: dict[str, list[str]] = {}
    sensors = {life.machine.name: _Sensors(life.machine) for life in lives}
    for hour in hours:
        month = rows.setdefault(f"{hour_start(hour):%Y-%m}", [])
        for life in lives:
            month += sensors[life.machine.name].read(hour, life.states[hour])
    for month_name, lines in rows.items():
        text = "\n".join((",".join(COLUMNS), *lines)) + "\n"
        writing.gz(folder / f"utilization-{month_name}.csv.gz", text)


class _Sensors:
    """The sensors of one machine; each machine has its own random sequence."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.random = random.Random(f"loadfactor made fleet readings of {machine.name}")
        # On Azure the agent reports the whole resource id, elsewhere its last segment.
        name = machine.resource_id if machine.cloud == "azure" else machine.instance_id
        start = f"{machine.cloud},{machine.account},{machine.region},{name}"
        self.heads = [f"{start},{machine.gpu_uuid(k)}" for k in range(machine.gpus)]
        self.tail = f"{machine.name},{machine.owner},{machine.team}"

    def read(self, hour: int, states: str) -> list[str]:
        """The hour's lines, one a GPU that sent a row."""
        moment = writing.zulu(hour_start(hour))
        base = self._base(hour)
        lines = []
        for head, state in zip(self.heads, states, strict=False):
            if state != NO_ROW:
                lines.append(f"{moment},{head},{self._readings(state, base)},{self.tail}")
        return lines

    def _base(self, hour: int) -> int:
        kind = self.machine.workload_class
        if kind == "inference":
            return 8 + round(52 * demand_share(hour) + 8 * self.random.random())
        low, spread = _BUSY_UTIL[kind]
        return low + int(spread * self.random.random())

    def _readings(self, state: str, base: int) -> str:
        if state == BLANK:
            return ",,,"
        held = _MEMORY_HELD[self.machine.workload_class]
        if state == BUSY:
            util = base + int(4 * self.random.random())
            return f"{util},{util * 0.007:.2f},{held},1"
        return f"0,0,{held if state == HELD else _DRIVER_MEMORY},{int(state == HELD)}"
