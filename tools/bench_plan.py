"""Measures a month of planning: 50 classes over 10 offers, 720 hours, every class different.

Prints one line: seconds, peak memory of the process, status and gap. Fails beyond 1 GiB.
"""

from __future__ import annotations

import resource
import sys

import numpy as np

from planner.problem import (
    ClassKind,
    Existing,
    Offer,
    Problem,
    ProblemClass,
    Reservation,
    Scenario,
)
from planner.solve import solve

CLASSES, OFFERS, HOURS = 50, 10, 720
_LIMIT_MIB = 1024


def month(seed: int = 7) -> Problem:
    """A made problem in which no two classes may run on the same offers by the same rules."""
    rng = np.random.default_rng(seed)
    offers = tuple(_offer(number, rng) for number in range(OFFERS))
    hour = np.arange(HOURS)
    classes, demand = [], {}
    for number in range(CLASSES):
        name = f"class-{number:02d}"
        allowed = rng.choice(OFFERS, size=int(rng.integers(4, OFFERS + 1)), replace=False)
        classes.append(
            ProblemClass(
                id=name,
                kind=ClassKind.FIRM,
                offers=tuple(offers[place].id for place in sorted(allowed)),
                shortage_penalty=50.0,
                min_firm_share=round(float(rng.uniform(0.1, 0.9)), 3),
                spot_max_share_per_offer=round(float(rng.uniform(0.2, 0.5)), 3),
            )
        )
        daily = 1 + rng.uniform(0, 0.6) * np.sin(2 * np.pi * (hour - rng.integers(24)) / 24)
        level = np.repeat(rng.uniform(0.5, 1.5, HOURS // 24), 24)
        demand[name] = np.round(rng.choice([8, 16, 24, 40, 64, 96]) * daily * level)
    return Problem(
        hours=HOURS,
        hour_weight=8760 / HOURS,
        classes=tuple(classes),
        offers=offers,
        scenarios=(Scenario(1.0, demand),),
        upfront_budget=5e6,
    )


def _offer(number: int, rng: np.random.Generator) -> Offer:
    on_demand = round(float(rng.uniform(3, 5)), 3)
    owned = (Existing(8.0 * int(rng.integers(1, 4)), HOURS),) if number % 4 == 0 else ()
    return Offer(
        id=f"offer-{number}",
        provider=("aws", "gcp", "azure")[number % 3],
        region=f"region-{number}",
        gpus=(8, 8, 8, 4)[number % 4],
        on_demand=on_demand,
        reservations=(
            Reservation("1y", round(on_demand * 0.62, 3), upfront=2000.0),
            Reservation("3y", round(on_demand * 0.48, 3), upfront=6000.0),
        ),
        spot=round(on_demand * float(rng.uniform(0.35, 0.55)), 3),
        spot_throughput=round(float(rng.uniform(0.85, 0.97)), 3),
        existing=owned,
    )


def main() -> int:
    """Exit code 0 if the month was planned within the memory limit."""
    result = solve(month(), gap=1e-4, time_limit=300.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gap = "no plan" if result.gap is None else f"gap {result.gap:.1e}"
    sys.stdout.write(
        f"plan: {CLASSES} classes x {OFFERS} offers x {HOURS} h: {result.seconds:.1f} s, "
        f"peak {peak:.0f} MiB, {result.status}, {gap}, {result.solver}\n"
    )
    return 0 if result.has_plan and peak <= _LIMIT_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
