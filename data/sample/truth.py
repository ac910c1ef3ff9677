"""What the generator knows of the made fleet: GPU-hours and dollars by state, class and option.

It is counted from the plan of events and the price rules of this folder, never by the product's
own code, so that tests can hold the product against it.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.sample import machines, writing
from data.sample.activity import BUSY, FREE, HELD, STATE_NAMES, hour_of, hour_start
from data.sample.charges import charges, reserved_rate, unused_plan, unused_reservation
from data.sample.writing import number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from data.sample.activity import Activity
    from data.sample.charges import Charge

_CONFIG = Path(__file__).parent / "fleet" / "loadfactor.toml"
_PLACES = Decimal(1).scaleb(-10)
_IDLE = ("idle_held", "free")


def truth(activities: Iterable[Activity], hours: range) -> dict[str, Any]:
    """The document `truth.json`: hours as decimals in text, dollars as decimals in text."""
    lives = list(activities)
    found = charges(lives, hours)
    counted = _Count(lives, hours)
    for charge in found:
        counted.add(charge)
    idle = sum((counted.total["cost", state] for state in _IDLE), Decimal(0))
    unused = _unused(found, hours)
    lost = sum((Decimal(entry["unused_cost"]) for entry in unused.values()), Decimal(0))
    return {
        "about": "Made by data/sample/generate.py from its own plan of events; not a measurement.",
        "window": {
            "start": writing.zulu(hour_start(hours.start)),
            "end": writing.zulu(hour_start(hours.stop)),
            "hours": len(hours),
        },
        "currency": "USD",
        "gpus": sum(life.machine.gpus for life in lives),
        "total": _states(counted.total),
        "classes": {name: _states(counted.classes[name]) for name in sorted(counted.classes)},
        "instances": {name: _states(part) for name, part in sorted(counted.instances.items())},
        "purchase": {name: _bought(part) for name, part in sorted(counted.bought.items())},
        "commitments": unused,
        "idle": {
            "gpu_hour_share": _share(counted.total),
            "cost_on_machines": number(idle),
            "cost_of_unused_commitments": number(lost),
            "cost": number(idle + lost),
            "cost_per_year": number(_year(idle + lost, len(hours))),
            "cost_per_year_is": "cost x 8760 / window hours",
            "stoppable_cost": number(counted.stoppable),
        },
        "parked": {
            "instance_id": _parked(lives).machine.instance_id,
            "since": writing.zulu(hour_start(hour_of(10, 9, 14))),
        },
    }


class _Count:
    """Sums by class, instance and purchase option; keys are (what, state)."""

    def __init__(self, lives: list[Activity], hours: range) -> None:
        classes = tomllib.loads(_CONFIG.read_text(encoding="utf-8"))["classes"]
        self.allowed = {entry["name"]: entry["idle_after_minutes"] for entry in classes}
        self.lives = {life.machine.name: life for life in lives}
        self.needed = {life.machine.name: self._needed(life, hours) for life in lives}
        self.first = hours.start
        self.total: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
        self.classes: defaultdict[str, defaultdict[tuple[str, str], Decimal]]
        self.classes = defaultdict(lambda: defaultdict(Decimal))
        self.instances = defaultdict(lambda: defaultdict(Decimal), self.classes)
        self.bought: defaultdict[str, defaultdict[tuple[str, str], Decimal]]
        self.bought = defaultdict(lambda: defaultdict(Decimal))
        self.stoppable = Decimal(0)

    def add(self, charge: Charge) -> None:
        """Counts one charge, its cost split over its GPUs; the largest share takes the rest."""
        machine = charge.machine
        letters = self.lives[machine.name].states[charge.hour]
        needed = self.needed[machine.name][charge.hour - self.first]
        counts: defaultdict[str, int] = defaultdict(int)
        for letter in letters:
            counts[STATE_NAMES[letter]] += 1
        shares = _split(charge.effective_cost, counts, machine.gpus)
        into = (
            self.total,
            self.classes[machine.workload_class],
            self.instances[machine.instance_id],
        )
        for part in into:
            for state, gpus in counts.items():
                part["gpu_hours", state] += charge.instance_hours * gpus
                part["cost", state] += shares[state]
            part["needed", ""] += charge.instance_hours * sum(needed)
        bought = self.bought[f"{machine.cloud} {charge.option}"]
        bought["gpu_hours", ""] += charge.gpu_hours
        bought["cost", ""] += charge.effective_cost
        bought["list", ""] += charge.list_cost
        if charge.option in ("on_demand", "spot") and not any(needed):
            self.stoppable += charge.effective_cost

    def _needed(self, life: Activity, hours: range) -> list[list[bool]]:
        """For each hour and GPU whether it is needed: busy, unknown, or held not too long."""
        allowed = self.allowed[life.machine.workload_class]
        held = [0] * life.machine.gpus
        rows = []
        for hour in hours:
            row = []
            for gpu, letter in enumerate(life.states[hour]):
                row.append(letter != FREE and (letter != HELD or held[gpu] * 60 < allowed))
                held[gpu] = held[gpu] + 1 if letter == HELD else 0
            if not row:
                held = [0] * life.machine.gpus
            rows.append(row)
        return rows


def _split(cost: Decimal, counts: dict[str, int], gpus: int) -> dict[str, Decimal]:
    shares = {
        state: (cost * count / gpus).quantize(_PLACES, ROUND_HALF_EVEN)
        for state, count in counts.items()
    }
    largest = max(sorted(counts), key=lambda state: counts[state])
    shares[largest] += cost - sum(shares.values())
    return shares


def _states(part: dict[tuple[str, str], Decimal]) -> dict[str, Any]:
    names = ("busy", "idle_held", "free", "unknown")
    sums = {
        what: {state: number(part.get((what, state), Decimal(0))) for state in names}
        for what in ("gpu_hours", "cost")
    }
    billed = {
        what: sum((part.get((what, state), Decimal(0)) for state in names), Decimal(0))
        for what in ("gpu_hours", "cost")
    }
    return sums | {
        "billed_gpu_hours": number(billed["gpu_hours"]),
        "needed_gpu_hours": number(part.get(("needed", ""), Decimal(0))),
        "billed_cost": number(billed["cost"]),
    }


def _bought(part: dict[tuple[str, str], Decimal]) -> dict[str, str]:
    return {
        "gpu_hours": number(part["gpu_hours", ""]),
        "effective_cost": number(part["cost", ""]),
        "list_cost": number(part["list", ""]),
    }


def _unused(found: list[Charge], hours: range) -> dict[str, dict[str, str]]:
    plan = sum(unused_plan(found, hours).values(), Decimal(0))
    reservation = sum(unused_reservation(found, hours).values(), Decimal(0))
    committed = machines.SAVINGS_PLAN_USD_PER_HOUR * len(hours)
    reserved = machines.RESERVED_NODES * reserved_rate() * len(hours)
    return {
        machines.SAVINGS_PLAN_ID: {
            "committed_cost": number(committed),
            "unused_cost": number(plan),
        },
        machines.RESERVATION_ID: {
            "committed_cost": number(reserved),
            "unused_cost": number(reservation * reserved_rate()),
            "unused_instance_hours": number(reservation),
        },
    }


def _share(total: dict[tuple[str, str], Decimal]) -> float:
    hours = {state: total["gpu_hours", state] for state in (*_IDLE, STATE_NAMES[BUSY], "unknown")}
    return round(float(sum(hours[state] for state in _IDLE) / sum(hours.values())), 6)


def _year(cost: Decimal, hours: int) -> Decimal:
    return (cost * 8760 / hours).quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def _parked(lives: list[Activity]) -> Activity:
    return next(life for life in lives if life.machine.name == "train-vision-2")
