"""What every GPU of the made fleet did in every hour: the plan of events behind all files."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from data.sample.machines import fleet

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.sample.machines import Machine

START = datetime(2026, 9, 1, tzinfo=UTC)
DAYS = 60
HOURS = DAYS * 24
SECONDS = 3600

# The states of a GPU in an hour. The last two are one state, unknown, that telemetry shows in two
# ways: no row at all, or a row without readings.
BUSY, HELD, FREE, NO_ROW, BLANK = "b", "h", "f", "u", "x"
STATE_NAMES = {
    BUSY: "busy", HELD: "idle_held", FREE: "free", NO_ROW: "unknown", BLANK: "unknown",
}  # fmt: skip

_LOCAL = timedelta(hours=-4)
_LABOR_DAY = datetime(2026, 9, 7, tzinfo=UTC).date()
_BLANK_SHARE = 0.006


@dataclass(frozen=True, slots=True)
class Activity:
    """The life of one machine: billed seconds of each hour, and a state letter for each GPU.

    `states[hour]` is empty where nothing is billed.
    """

    machine: Machine
    seconds: tuple[int, ...]
    states: tuple[str, ...]


def activities() -> tuple[Activity, ...]:
    """What each machine of the fleet did in the whole 60 days, in the order of the fleet."""
    return tuple(_hide(_lived(machine)) for machine in fleet())


def hour_start(hour: int) -> datetime:
    """The UTC time at which an hour of the fleet's life starts."""
    return START + timedelta(hours=hour)


def hour_of(month: int, day: int, hour: int = 0) -> int:
    """The number of an hour of the year 2026 in the fleet's life."""
    return int((datetime(2026, month, day, hour, tzinfo=UTC) - START) / timedelta(hours=1))


def local(hour: int) -> datetime:
    """The hour as the fleet's people live it (US East, daylight saving time)."""
    return hour_start(hour) + _LOCAL


def works(hour: int) -> bool:
    """Whether the hour lies on a working day of the fleet's people."""
    day = local(hour)
    return day.weekday() < 5 and day.date() != _LABOR_DAY


def demand_share(hour: int) -> float:
    """The users' load on the serving replicas, as a share of its highest hour."""
    of_day = local(hour).hour
    share = 1.0 if 9 <= of_day < 21 else 0.7 if 7 <= of_day < 23 else 0.4
    return share if works(hour) else 0.65 * share


def _between(rng: random.Random, low: int, high: int) -> int:
    # Only random() is used: its sequence is promised to stay the same in every Python.
    return low + int(rng.random() * (high - low + 1))


def _lived(machine: Machine) -> Activity:
    rng = random.Random(f"loadfactor made fleet {machine.name}")
    live: Callable[[random.Random, Machine], tuple[list[int], list[str]]]
    if machine.workload_class == "training":
        live = _train_on_spot if machine.option == "spot" else _train
    elif machine.workload_class == "batch":
        live = _batch_on_spot if machine.option == "spot" else _batch
    elif machine.workload_class == "inference":
        live = _serve
    elif machine.workload_class == "evaluation":
        live = _evaluate
    else:
        live = _notebook
    seconds, states = live(rng, machine)
    states = [state if second else "" for second, state in zip(seconds, states, strict=True)]
    return Activity(machine, tuple(seconds), tuple(states))


def _runs(rng: random.Random, gpus: int, gap: tuple[int, int], held: float) -> list[str]:
    """Training runs with gaps; in a share of the gaps a finished run still holds its GPUs."""
    states: list[str] = []
    while len(states) < HOURS:
        run = [BUSY * gpus] * _between(rng, 22, 60)
        if rng.random() < 0.3:
            crash = _between(rng, 6, len(run) - 4)
            run[crash : crash + 3] = [HELD * gpus] * 3
        pause = HELD if rng.random() < held else FREE
        states += run + [pause * gpus] * _between(rng, *gap)
    return states[:HOURS]


def _train(rng: random.Random, machine: Machine) -> tuple[list[int], list[str]]:
    if machine.name in ("train-0", "train-1"):
        # One run on 16 GPUs: both nodes start, pause and stop together.
        rng = random.Random("loadfactor made fleet train-0+train-1")
    states = _runs(rng, machine.gpus, (4, 18), 0.6)
    if machine.name == "train-vision-2":
        parked = hour_of(10, 9, 14)
        states[parked:] = [FREE * machine.gpus] * (HOURS - parked)
    seconds = [SECONDS] * HOURS
    for hour in range(hour_of(9, 19, 6), hour_of(9, 20, 18)):
        seconds[hour] = 0  # the site upgrades its network: every training node is stopped
    return seconds, states


def _train_on_spot(rng: random.Random, machine: Machine) -> tuple[list[int], list[str]]:
    seconds = [0] * HOURS
    hour = 9
    while hour < HOURS:
        up = _between(rng, 18, 64)
        seconds[hour : hour + up] = [SECONDS] * len(seconds[hour : hour + up])
        seconds[hour] = _between(rng, 300, 3500)
        if hour + up < HOURS:
            seconds[hour + up - 1] = _between(rng, 200, 3500)
        hour += up + _between(rng, 8, 40)
    states = _runs(rng, machine.gpus, (1, 5), 0.5)
    return seconds, states


def _batch(rng: random.Random, machine: Machine) -> tuple[list[int], list[str]]:
    states = []
    quiet = 0
    for hour in range(HOURS):
        now = hour_start(hour)
        if now.hour == 0:
            quiet = _between(rng, 8, 12)
        night = (now.hour >= 23 or now.hour < quiet) and now.weekday() != 6
        used = machine.gpus if night else 2 if now.hour in (15, 16) else 0
        states.append(BUSY * used + FREE * (machine.gpus - used))
    return [SECONDS] * HOURS, states


def _batch_on_spot(rng: random.Random, machine: Machine) -> tuple[list[int], list[str]]:
    seconds = [0] * HOURS
    for day in range(DAYS):
        if hour_start(day * 24).weekday() in (5, 6):
            continue
        length = _between(rng, 6, 10)
        first = day * 24 + 1
        seconds[first : first + length] = [SECONDS] * length
        seconds[first] = _between(rng, 1200, 3400)
        seconds[first + length - 1] = _between(rng, 600, 3500)
        if rng.random() < 0.25:
            taken = first + _between(rng, 2, 4)  # the cloud takes the VM back for an hour or two
            seconds[taken] = _between(rng, 200, 3000)
            seconds[taken + 1] = 0
    return seconds, [BUSY * machine.gpus] * HOURS


def _serve(rng: random.Random, machine: Machine) -> tuple[list[int], list[str]]:
    on_azure = machine.cloud == "azure"
    second = machine.name == "nd-serve-1"
    seconds, states = [], []
    for hour in range(HOURS):
        on = not (second and hour_start(hour).weekday() in (5, 6))
        seconds.append(SECONDS if on else 0)
        wanted = 15 if on_azure else 8
        replicas = max(3, round(wanted * demand_share(hour) - 0.4 + 0.8 * rng.random()))
        used = min(machine.gpus, max(0, replicas - 8) if second else replicas)
        held = 0
        if machine.name == "serve-0" and hour_of(9, 10) <= hour < hour_of(9, 24):
            held = min(1, machine.gpus - used)  # an old model version, loaded, without traffic
        states.append(BUSY * used + FREE * (machine.gpus - used - held) + HELD * held)
    return seconds, states


def _evaluate(rng: random.Random, machine: Machine) -> tuple[list[int], list[str]]:
    states = [FREE * machine.gpus] * HOURS
    hour = 5
    while hour < HOURS:
        used = 8 if rng.random() < 0.4 else 4
        burst, tail = _between(rng, 3, 8), _between(rng, 0, 2)
        rest = FREE * (machine.gpus - used)
        for k in range(hour, min(HOURS, hour + burst)):
            states[k] = BUSY * used + rest
        for k in range(hour + burst, min(HOURS, hour + burst + tail)):
            states[k] = HELD * used + rest
        hour += burst + tail + _between(rng, 3, 12 if works(min(hour, HOURS - 1)) else 30)
    return [SECONDS] * HOURS, states


def _notebook(rng: random.Random, machine: Machine) -> tuple[list[int], list[str]]:
    stops_at_night = machine.name in ("notebook-6", "notebook-7")
    seconds, states = [], []
    closed = False
    for hour in range(HOURS):
        of_day = local(hour).hour
        seconds.append(SECONDS if not stops_at_night or (works(hour) and 8 <= of_day < 20) else 0)
        if local(hour).weekday() == 4 and of_day == 19:
            closed = rng.random() < 0.3  # the kernel is shut for the weekend, the machine is not
        if works(hour) and of_day == 9:
            closed = False
        likely = 0.55 if 9 <= of_day < 18 else 0.1 if 18 <= of_day < 22 else 0.0
        busy = works(hour) and rng.random() < likely
        states.append(BUSY if busy else FREE if closed else HELD)
    return seconds, states


# Hours in which a machine's exporter sent nothing: the first days of a new node, crashes, a
# rotated certificate.
_OUTAGES = {
    "train-2": ((hour_of(9, 25, 2), hour_of(9, 25, 11)),),
    "batch-0": ((hour_of(9, 12, 3), hour_of(9, 15, 9)), (hour_of(10, 30, 4), hour_of(10, 30, 6))),
    "serve-0": ((hour_of(10, 3, 14), hour_of(10, 4, 4)),),
    "nd-serve-1": ((0, 30),),
    "nd-serve-0": ((hour_of(10, 20, 9), hour_of(10, 21, 1)),),
    "eval-0": ((hour_of(10, 14, 0), hour_of(10, 15, 16)),),
    "nc-desk-2": ((hour_of(9, 8, 0), hour_of(9, 13, 0)),),
}


def _hide(activity: Activity) -> Activity:
    """The activity as sensors saw it: outages without rows, and single rows without readings."""
    rng = random.Random(f"loadfactor made fleet sensors of {activity.machine.name}")
    states = list(activity.states)
    for hour, letters in enumerate(states):
        states[hour] = "".join(BLANK if rng.random() < _BLANK_SHARE else s for s in letters)
    for first, end in _OUTAGES.get(activity.machine.name, ()):
        for hour in range(first, end):
            states[hour] = NO_ROW * len(states[hour])
    return Activity(activity.machine, activity.seconds, tuple(states))
