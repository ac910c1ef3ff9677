"""Back-tests the policy and its rivals over a folder of public traces, all with one setting.

    tools/bench_backtest.py TRACES [--gpus-per-instance 1] [--replan-weeks 4] [--cuts 0.5]

Prints, for each set of prices, the median and the worst cost over foresight of every policy, on
how many series the planner is more than 5 points worse than the best simple rule, and how many
hours lay in its 80% range. `--series` prints each series too.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from planner.backtest.demand import Demand
from planner.backtest.result import FORESIGHT, LOADFACTOR, Backtest
from planner.backtest.run import backtest
from planner.forecast.inputs import Terms
from planner.forecast.policy import advise

SHARES = (0.0, 0.1, 0.3)
PRICES = {
    "1 year": Terms(3.9, 2.6, 1.6, 0.9, term_hours=8_760),
    "3 years": Terms(3.9, 1.7, 1.6, 0.9, term_hours=26_280),
}
# Per file: the hour, what parts the file into series (None: it has one), the GPUs.
FILES = {
    "alibaba26": ("demand_alibaba26_pools_hourly.csv", "hour", "pool", ("gpus_requested",)),
    "philly": ("demand_philly_hourly.csv", "time", "class", ("gpus_avg",)),
    "openb": ("demand_alibaba_openb_hourly.csv", "hour", "class", ("gpus_avg",)),
    "dlrm": ("demand_alibaba_dlrm_inference_hourly.csv", "hour", "service", ("gpus_avg",)),
    "helios": (
        "demand_helios_earth_hourly.csv", "time", None,
        ("running_avg", "running_ge8_avg", "running_lt8_avg"),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One back-test: the set of prices, the series with its deferrable share, and the outcome."""

    prices: str
    series: str
    found: Backtest


def series(folder: Path) -> dict[str, np.ndarray]:
    """GPUs by hour of every series of the folder, by name."""
    found: dict[str, np.ndarray] = {}
    for name, (file, hour, part, columns) in FILES.items():
        frame = pd.read_csv(folder / file)
        for column in columns:
            whole = frame.groupby(hour, sort=True)[column].sum()
            found[f"{name} {column}" if len(columns) > 1 else f"{name} all"] = whole.to_numpy()
        if part is not None:
            table = frame.pivot_table(
                index=hour, columns=part, values=columns[0], aggfunc="sum", fill_value=0.0
            )
            for label in table:
                found[f"{name} {label}"] = table[label].to_numpy()
    return found


def demand_of(gpus: np.ndarray, deferrable_share: float) -> Demand:
    """One class with a constant deferrable share."""
    column = gpus.astype(float)[:, None]
    return Demand(column, column * deferrable_share, ("all",))


def run(options: argparse.Namespace) -> list[Case]:
    """Every series at every share, price and cut."""
    cases = []
    for name, gpus in series(options.traces).items():
        for share in SHARES:
            for label, terms in PRICES.items():
                for cut in options.cuts:
                    asked = dataclasses.replace(
                        terms,
                        gpus_per_instance=options.gpus_per_instance,
                        replan_hours=options.replan_weeks * 168,
                    )
                    found = backtest(demand_of(gpus, share), asked, cut, advise)
                    if found.named(FORESIGHT).costs.usd > 0:
                        title = f"{name}, {share:.0%} may wait, cut {cut:g}"
                        cases.append(Case(label, title, found))
    return cases


def summary(cases: list[Case]) -> list[str]:
    """Median and worst cost over foresight per policy, and the distance to the best rule."""
    names = [one.policy for one in cases[0].found.policies if one.policy != FORESIGHT]
    over = np.array([[case.found.over_foresight(name) for name in names] for case in cases])
    best = over[:, 1:].min(axis=1)
    behind = over[:, 0] - best
    lines = [f"{'policy':26s} {'median':>8s} {'mean':>8s} {'worst':>8s}"]
    lines += [
        f"{name:26s} {np.median(column):8.2%} {column.mean():8.2%} {column.max():8.2%}"
        for name, column in zip(names, over.T, strict=True)
    ]
    worst = int(behind.argmax())
    lines.append(
        f"against the best simple rule of each series: worst {behind[worst]:+.2%} "
        f"({cases[worst].series}), {int((behind > 0.05).sum())} of {len(cases)} over 5 points, "
        f"{int((behind > 0.02).sum())} over 2"
    )
    return lines


def coverage(cases: list[Case]) -> str:
    """The share of hours, pooled over the cases, that lay in the planned range."""
    ranges = [case.found.coverage for case in cases if case.found.coverage is not None]
    hours, ahead = sum(one.hours for one in ranges), sum(one.hours_ahead for one in ranges)
    if not hours:
        return "no ranges given"
    next_step = sum(one.covered for one in ranges) / hours
    whole = sum(one.covered_ahead for one in ranges) / max(ahead, 1)
    return f"80% range covers {next_step:.1%} to the next step, {whole:.1%} from the first step on"


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("traces", type=Path, help="folder of the demand_*.csv files")
    parser.add_argument("--gpus-per-instance", type=int, default=1)
    parser.add_argument("--replan-weeks", type=int, default=4)
    parser.add_argument("--cuts", type=float, nargs="+", default=[0.5], help="training shares")
    parser.add_argument("--series", action="store_true", help="print each series")
    options = parser.parse_args()
    began = time.process_time()
    cases = run(options)
    for label in PRICES:
        chosen = [case for case in cases if case.prices == label]
        print(f"\n{label}: {len(chosen)} back-tests")  # noqa: T201
        print("\n".join(summary(chosen)))  # noqa: T201
        print(coverage(chosen))  # noqa: T201
        if options.series:
            for case in chosen:
                rules = [
                    case.found.over_foresight(one.policy) or 0.0
                    for one in case.found.policies
                    if one.policy not in (LOADFACTOR, FORESIGHT)
                ]
                mine = case.found.over_foresight(LOADFACTOR)
                print(f"{case.series:60s} {mine:8.2%}  best rule {min(rules):8.2%}")  # noqa: T201
    print(f"\n{coverage(cases)}; CPU {time.process_time() - began:.1f} s")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
