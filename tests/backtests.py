"""Builders of small back-tests, and a simulator of jobs that shares nothing with the product's."""

from __future__ import annotations

import math

import numpy as np

from planner.backtest.demand import Demand
from planner.backtest.simulate import Load
from planner.forecast.inputs import Advice, History, Terms

NAN = math.nan


def terms(**change) -> Terms:
    """On demand 4, reserved 2, spot 1 at half throughput (2 a useful hour), 1-GPU instances."""
    settings = {
        "on_demand": 4.0, "reserved": 2.0, "spot": 1.0, "spot_throughput": 0.5,
        "term_hours": 10_000, "gpus_per_instance": 1, "replan_hours": 4, "max_delay_hours": 2,
    }  # fmt: skip
    return Terms(**(settings | change))


def load(firm, deferrable=None, spot=None) -> Load:
    firm = np.array(firm, dtype=float)
    waiting = np.zeros(len(firm)) if deferrable is None else np.array(deferrable, dtype=float)
    return Load(firm, waiting, None if spot is None else np.array(spot, dtype=float))


def demand(gpus, deferrable=None, classes=("a",), **change) -> Demand:
    """Demand from one list of hours, or from hours x classes."""
    table = np.array(gpus, dtype=float).reshape(len(gpus), -1)
    part = np.zeros(table.shape) if deferrable is None else np.array(deferrable, dtype=float)
    part = np.where(np.isnan(table), NAN, part.reshape(table.shape))
    return Demand(table, part, tuple(classes), **change)


def last_hour(history: History, terms: Terms) -> Advice:
    """A policy for tests: reserve what the last known hour wanted, whole instances."""
    wanted = float(np.nansum(history.firm[-1] + history.deferrable[-1]))
    size = terms.gpus_per_instance
    more = wanted - terms.held_in(history.next_hour)
    return Advice(max(math.floor(more / size), 0) * size, f"the last hour wanted {wanted:g}")


def jobs_usd(load: Load, held: list[float], terms: Terms) -> float:
    """USD of the window, one job a release: each job looks for a GPU hour by hour."""
    usd, jobs, hours = 0.0, [], len(held)
    for hour in range(hours):
        usd += terms.reserved * held[hour] + terms.on_demand * max(load.firm[hour] - held[hour], 0)
        free = max(held[hour] - load.firm[hour], 0)
        last = min(hour + terms.max_delay_hours, hours - 1)
        jobs.append({"left": load.deferrable[hour], "last": last})
        jobs.sort(key=lambda job: job["last"])
        for job in jobs:
            ran = min(job["left"], free)
            job["left"], free = job["left"] - ran, free - ran
        spot = 0.0
        if terms.spot is not None and terms.spot / terms.spot_throughput < terms.on_demand:
            share = 1.0 if load.spot_available is None else load.spot_available[hour]
            spot = share * sum(job["left"] for job in jobs)
            usd += spot * terms.spot / terms.spot_throughput
        for job in jobs:
            ran = min(job["left"], spot)
            job["left"], spot = job["left"] - ran, spot - ran
            if job["last"] == hour:
                usd, job["left"] = usd + terms.on_demand * job["left"], 0.0
    assert sum(job["left"] for job in jobs) == 0
    return usd


def random_case(seed: int) -> tuple[Load, list[float], Terms]:
    """A window of up to 60 hours with held GPUs that change, and terms with or without spot."""
    rng = np.random.default_rng(seed)
    hours = int(rng.integers(1, 60))
    spot = [None, rng.integers(0, 2, hours), rng.random(hours)][seed % 3]
    case = load(rng.integers(0, 9, hours), rng.random(hours) * rng.integers(0, 6, hours), spot)
    held = [float(gpus) for gpus in np.repeat(rng.integers(0, 10, 6), 10)[:hours]]
    price = None if seed % 5 == 0 else float(rng.uniform(0.2, 4))
    rules = terms(
        spot=price, spot_throughput=1.0 if price is None else float(rng.uniform(0.4, 1)),
        max_delay_hours=int(rng.integers(0, 9)), reserved=float(rng.uniform(0.5, 4)),
        gpus_per_instance=int(rng.integers(1, 4)),
    )  # fmt: skip
    return case, held, rules
