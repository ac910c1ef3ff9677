"""On made demand of many kinds, the same settings for all, the plan costs less than every rule.

Half of the series have no pattern that a forecast could know: levels that wander, jump or fall.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.backtest.result import LOADFACTOR, Backtest
from planner.backtest.rivals import RULES
from planner.backtest.run import backtest
from planner.forecast.policy import advise
from tests.backtests import demand, terms

SERIES = 30
PRICES = {
    "one year": terms(
        on_demand=3.9, reserved=2.6, spot=1.6, spot_throughput=0.9, replan_hours=672,
        max_delay_hours=24,
    ),
    "three years": terms(
        on_demand=3.9, reserved=1.7, spot=1.6, spot_throughput=0.9, replan_hours=672,
        max_delay_hours=24, term_hours=26_280,
    ),
}  # fmt: skip


def made(seed: int) -> np.ndarray:
    """One to six months: days and weeks, noise, a level that wanders, drifts and jumps."""
    rng = np.random.default_rng(seed)
    hours = int(rng.choice([720, 1500, 2900, 4400]))
    hour = np.arange(hours)
    level = float(np.exp(rng.uniform(2, 7)))
    daily = rng.uniform(0, 0.4) * np.sin(2 * np.pi * (hour - rng.integers(24)) / 24)
    weekend = -rng.uniform(0, 0.4) * ((hour // 24 + rng.integers(7)) % 7 >= 5)
    walk = np.cumsum(rng.normal(0, rng.choice([0.0, 0.003, 0.01]), hours))
    drift = rng.choice([-1, 0, 0, 1]) * rng.uniform(0, 0.8) * hour / hours
    for _ in range(rng.integers(0, 3)):
        walk[rng.integers(0, hours) :] += rng.normal(-0.1, 0.5)
    noise = rng.normal(0, rng.uniform(0.02, 0.25), hours)
    return level * np.exp(walk + drift) * np.maximum(1 + daily + weekend + noise, 0)


@pytest.fixture(scope="module")
def results() -> dict[str, list[Backtest]]:
    """The back-test of each series by prices."""
    cases = [demand(made(seed), made(seed) * [0, 0.1, 0.3][seed % 3]) for seed in range(SERIES)]
    return {
        name: [backtest(case, rules, 0.5, advise) for case in cases]
        for name, rules in PRICES.items()
    }


def over(found: list[Backtest], policy: str) -> np.ndarray:
    """Cost over foresight, one entry a series."""
    return np.array([one.over_foresight(policy) for one in found], dtype=float)


@pytest.mark.parametrize("prices", PRICES)
def test_the_plan_costs_less_than_every_rule_in_the_median_and_in_the_mean(results, prices):
    mine = over(results[prices], LOADFACTOR)
    for rule in RULES:
        theirs = over(results[prices], rule)
        assert np.median(mine) < np.median(theirs), rule
        assert mine.mean() < theirs.mean(), rule


@pytest.mark.parametrize(("prices", "most"), [("one year", 0.02), ("three years", 0.04)])
def test_the_plan_is_near_the_bound_in_the_median(results, prices, most):
    assert np.median(over(results[prices], LOADFACTOR)) < most


def test_four_hours_in_five_lie_in_the_planned_range(results):
    """Pooled over the series, up to the next step and, from the first step, over all the test."""
    ranges = [one.coverage for one in results["one year"]]
    assert all(one is not None and one.share == 0.8 for one in ranges)
    to_next = sum(one.covered for one in ranges) / sum(one.hours for one in ranges)
    ahead = sum(one.covered_ahead for one in ranges) / sum(one.hours_ahead for one in ranges)
    assert 0.75 <= to_next <= 0.85
    assert 0.75 <= ahead <= 0.85
