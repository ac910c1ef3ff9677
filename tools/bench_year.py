"""Measures a whole night's plan on a year of history: 50 classes on a cloud with two regions.

The method of each class is chosen and trained, its demand forecast, the back-test run, every stage
solved and the risks worked out. Prints one line: seconds, CPU seconds and peak memory of the
process, status and gap. Fails beyond a minute or 1 GiB.
"""

from __future__ import annotations

import resource
import sys
import time
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from data import catalogue
from data.frames import conform, empty
from data.hours import Window, day_start
from data.schema import COMMITMENTS, FLEET_HOURS, OFFERS, QUALITY
from planner.planning import NightInputs, plan_night
from planner.settings import Settings

CLASSES, DAYS = 50, 365
REGIONS = ("us-east-1", "us-west-2")
PRICES = {"on_demand": 6.88, "reserved_1y": 4.30, "savings_plan_1y": 4.40, "spot": 2.40}
_GPUS = 8
_SECONDS, _MIB = 60.0, 1024
_FIRST = date(2025, 10, 1)
_MACHINE: dict[str, Any] = {
    "cloud": "aws",
    "account": "111122223333",
    "instance_type": "p5.48xlarge",
    "gpu_model": "H100-SXM5-80GB",
    "gpu_family": "H100",
    "gpu_count": _GPUS,
    "purchase_option": "on_demand",
    "managed_service": False,
    "state": "busy",
    "currency": "USD",
    "stoppable": False,
    "estimated": False,
}


def window() -> Window:
    """The year that was observed."""
    return Window(day_start(_FIRST), day_start(_FIRST + timedelta(days=DAYS)))


def fleet(rng: np.random.Generator) -> pd.DataFrame:
    """Frame of FLEET_HOURS: every class with its own level, day, week and slow drift."""
    grid = window().grid()
    hour = np.arange(len(grid))
    parts = []
    for number in range(CLASSES):
        wave = 1 + 0.3 * np.sin(2 * np.pi * hour / 24 + number)
        wave += 0.1 * np.sin(2 * np.pi * hour / 168)
        drift = np.clip(np.exp(np.cumsum(rng.normal(0.0, 0.01, len(hour)))), 0.3, 3.0)
        gpus = np.round(rng.integers(4, 40) * wave * drift).astype(int)
        region = REGIONS[number % len(REGIONS)]
        part = {"hour_start": grid, "workload_class": f"class-{number:02d}", "region": region}
        parts.append(pd.DataFrame(part | {"gpus": gpus}))
    rows = pd.concat(parts)
    rows = rows[rows["gpus"] > 0]
    hours = {value: Decimal(int(value)) for value in rows["gpus"].unique()}
    price = Decimal(str(PRICES["on_demand"]))
    rows = rows.assign(
        **_MACHINE,
        instance_id="i-" + rows["workload_class"],
        gpu_hours=rows["gpus"].map(hours),
        needed_gpu_hours=rows["gpus"].map(hours),
        cost=rows["gpus"].map({value: price * gpus for value, gpus in hours.items()}),
    )
    return conform(rows.drop(columns="gpus"), FLEET_HOURS)


def offers() -> pd.DataFrame:
    """Frame of OFFERS: one machine type in both regions, sold in every way."""
    rows = [
        {
            "provider": "aws",
            "region": region,
            "instance_type": _MACHINE["instance_type"],
            "gpu_model": _MACHINE["gpu_model"],
            "gpus": _GPUS,
            "gpu_memory_gib": 80,
            "vcpus": 192,
            "memory_gib": 2048,
            "purchase_option": option,
            "payment_option": "monthly" if option == "reserved_1y" else "none",
            "usd_per_instance_hour": Decimal(str(price)) * _GPUS,
            "source": "made for this measurement",
            "as_of": _FIRST,
            "origin": "override",
            "status": "used",
        }
        for region in REGIONS
        for option, price in PRICES.items()
    ]
    return conform(pd.DataFrame(rows), OFFERS)


def settings() -> Settings:
    """A third of the classes may be interrupted, each with its own share that may not."""
    classes = [
        {
            "name": f"class-{number:02d}",
            "interruptible": number % 3 == 0,
            "min_firm_share": round(0.1 * (number % 8), 1),
        }
        for number in range(CLASSES)
    ]
    return Settings.model_validate({"classes": tuple(classes), "plan": {"history_days": DAYS}})


def main() -> int:
    """Exit code 0 if the year was planned within the limits."""
    whole = window()
    given = NightInputs(
        as_of=whole.end.date(),
        window=whole,
        covered=whole.grid(),
        fleet=fleet(np.random.default_rng(7)),
        offers=offers(),
        shapes=catalogue.shapes(),
        commitments=empty(COMMITMENTS),
        quality=empty(QUALITY),
        settings=settings(),
        deliveries=(),
        freshness=(),
        has_billing=True,
        has_utilization=True,
    )
    began, worked = time.perf_counter(), time.process_time()
    made = plan_night(given).plan.summary.solve
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    said = "no plan" if made is None else f"{made.status}, gap {made.gap:.1e}, {made.solver}"
    sys.stdout.write(
        f"year: {CLASSES} classes x {DAYS} days: {seconds:.1f} s ({cpu:.1f} s of CPU), "
        f"peak {peak:.0f} MiB, {said}\n"
    )
    return 0 if made is not None and seconds <= _SECONDS and peak <= _MIB else 1


if __name__ == "__main__":
    sys.exit(main())
