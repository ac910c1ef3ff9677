"""The hourly simulation: by hand, and against a simulator of single jobs."""

from __future__ import annotations

import time

import numpy as np
import pytest

from planner.backtest.simulate import bought_usd, costs, use
from tests.backtests import jobs_usd, load, random_case, terms


def test_firm_demand_runs_on_reserved_gpus_first_and_the_rest_on_demand():
    """Held 5: 3 + 5 + 5 used, 4 on demand in the last hour. 3 x 5 x 2 = 30, 4 x 4 = 16."""
    found = costs(load([3, 5, 9]), np.array([5.0, 5.0, 5.0]), terms())
    assert (found.reserved, found.on_demand, found.spot) == (30.0, 16.0, 0.0)
    assert found.usd == 46.0
    assert found.on_demand_gpu_hours == 4.0


def test_deferrable_work_fills_idle_reserved_gpus_before_spot():
    """4 GPUs held, 1 firm: 3 of the 5 released fill idle ones, 2 go to spot at 2 a useful hour."""
    found = costs(load([1], [5]), np.array([4.0]), terms())
    assert (found.reserved, found.on_demand, found.spot) == (8.0, 0.0, 4.0)


def test_without_spot_deferrable_work_waits_for_idle_gpus_up_to_its_deadline():
    """The shared example of gap filling: 12 idle GPU-hours, 18 wanted, 6 bought for 24 USD."""
    held = np.full(6, 8.0)
    found = costs(
        load([8, 8, 2, 2, 8, 8], [18, 0, 0, 0, 0, 0]), held, terms(spot=None, max_delay_hours=5)
    )
    assert found.on_demand == 24.0


def test_work_that_may_not_wait_long_enough_runs_on_demand_at_its_deadline():
    """Released in hour 0, idle GPUs in hour 3 only: too late for a wait of 2, in time for 3."""
    case, held = load([1, 1, 1, 0], [1, 0, 0, 0]), np.ones(4)
    short = use(case, held, terms(spot=None, max_delay_hours=2))
    assert short.on_demand[:, 0].tolist() == [0, 0, 1, 0]
    assert not use(case, held, terms(spot=None, max_delay_hours=3)).on_demand.any()


def test_work_left_at_the_end_of_the_window_runs_in_its_last_hour():
    bought = use(load([0, 0], [0, 3]), np.zeros(2), terms(spot=None, max_delay_hours=9))
    assert bought.on_demand[:, 0].tolist() == [0, 3]


def test_spot_takes_work_in_the_share_of_the_hour_in_which_it_is_there():
    """8 wanted: none, then half of 8, then half of the 4 left; 2 at the deadline on demand."""
    bought = use(load([0, 0, 0], [8, 0, 0], [0, 0.5, 0.5]), np.zeros(3), terms())
    assert bought.spot[:, 0].tolist() == [0, 4, 2]
    assert bought.on_demand[:, 0].tolist() == [0, 0, 2]


def test_spot_dearer_than_on_demand_is_left_alone():
    """2.5 a paid hour at half throughput is 5 a useful one, on demand 4."""
    found = costs(load([0], [3]), np.zeros(1), terms(spot=2.5))
    assert (found.on_demand, found.spot) == (12.0, 0.0)


def test_firm_demand_never_uses_spot():
    assert costs(load([7]), np.zeros(1), terms()).on_demand == 28.0


@pytest.mark.parametrize("seed", range(60))
def test_a_simulator_of_single_jobs_agrees(seed):
    case, held, rules = random_case(seed)
    assert costs(case, np.array(held), rules).usd == pytest.approx(jobs_usd(case, held, rules))


@pytest.mark.parametrize("seed", range(12))
def test_many_levels_at_once_cost_what_each_costs_alone(seed):
    case, _held, rules = random_case(seed)
    levels = np.arange(0.0, 15.0)
    alone = [jobs_usd(case, [level] * case.hours, rules) for level in levels]
    fixed = rules.reserved * levels * case.hours
    assert bought_usd(case, levels, rules) + fixed == pytest.approx(np.array(alone))


def test_half_a_year_of_hours_takes_under_a_tenth_of_a_second():
    rng = np.random.default_rng(1)
    case = load(rng.integers(0, 900, 4_400), rng.integers(0, 90, 4_400), rng.random(4_400))
    began = time.process_time()
    costs(case, np.full(4_400, 500.0), terms(max_delay_hours=24))
    assert time.process_time() - began < 0.1
