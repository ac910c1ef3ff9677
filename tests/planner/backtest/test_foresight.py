"""The best constant level, against every level priced alone."""

from __future__ import annotations

import numpy as np
import pytest

from planner.backtest.foresight import best_level
from planner.backtest.simulate import Load
from tests.backtests import jobs_usd, load, random_case, terms


def test_a_gpu_is_reserved_where_it_is_busy_in_more_than_the_share_of_the_prices():
    """Worked instance W1: at a ratio of 0.6, GPUs 4 to 9 are busy in 96 of 168 hours, 0.571."""
    week = load([3] * 72 + [9] * 48 + [12] * 48)
    assert best_level(week, terms(on_demand=3.9, reserved=2.34)) == 3


def test_idle_hours_that_waiting_work_fills_count_as_busy():
    """Firm 4 in half of the hours: busy share 0.5 does not pay at a ratio of 0.6; filled it does.

    With 4 reserved: 4 x 4 x 2.4 = 38.4. With none: 8 firm and 8 waiting GPU-hours at 4 = 64.
    """
    rules = terms(reserved=2.4, spot=None, max_delay_hours=2)
    assert best_level(load([4, 0, 4, 0]), rules) == 0
    assert best_level(load([4, 0, 4, 0], [4, 0, 4, 0]), rules) == 4


def test_nothing_is_reserved_for_no_demand_or_where_it_saves_nothing():
    assert best_level(load([0, 0]), terms()) == 0
    assert best_level(load([5, 5]), terms(reserved=4.0)) == 0
    assert best_level(Load(np.zeros(0), np.zeros(0)), terms()) == 0


@pytest.mark.parametrize("seed", range(45))
def test_no_level_of_whole_instances_is_cheaper(seed):
    case, _held, rules = random_case(seed)
    size = rules.gpus_per_instance
    usd = {
        level: jobs_usd(case, [level] * case.hours, rules) for level in range(0, 16 + size, size)
    }
    found = best_level(case, rules)
    assert found % size == 0
    assert usd[found] == pytest.approx(min(usd.values()))


def test_large_demand_is_searched_to_the_single_instance():
    """Demand 0 to 100,000 evenly: busy in more than half of the hours up to 50,000."""
    even = load(np.linspace(0, 100_000, 2_001))
    level = best_level(even, terms())
    assert level == pytest.approx(50_000, abs=50)
    costs = [
        2.0 * gpus * 2_001 + 4.0 * np.maximum(even.firm - gpus, 0).sum()
        for gpus in (level - 1, level, level + 1)
    ]
    assert costs[1] <= min(costs)
