"""The choice of a model by its errors on the class's own unseen days."""

from __future__ import annotations

import numpy as np
import pytest

from planner.forecast.models import DAMPED_TREND, MEANS, SMOOTHING, _error, _mean, _smoothed, choose


def level(days, seed=0):
    """Random walk of the logarithm, 5% a day."""
    return 3 + np.cumsum(np.random.default_rng(seed).normal(0, 0.05, days))


def test_a_walk_is_forecast_by_its_last_days_and_noise_by_its_mean():
    walk = choose(3 + np.cumsum(np.random.default_rng(0).normal(0, 0.2, 300)))
    assert walk.past.name in ("the last day", SMOOTHING)
    noise = choose(3 + np.random.default_rng(1).normal(0, 0.3, 300))
    assert noise.past.name in ("mean of all days", "mean of the last weeks")
    assert noise.ahead(30) == pytest.approx(np.full(30, 3.0), abs=0.1)


def test_steady_growth_is_carried_on_but_damped():
    """A hundredth a day for 200 days: tomorrow it goes on, in a year it has not grown e^3.65."""
    growth = choose(0.01 * np.arange(200))
    assert growth.past.name == DAMPED_TREND
    ahead = growth.ahead(365)
    assert ahead[0] == pytest.approx(2.0, abs=0.02)
    assert ahead[27] > 2.1
    assert ahead[-1] < 1.99 + 3.65
    assert (np.diff(ahead, 2) <= 1e-12).all()


def test_demand_on_few_days_is_forecast_by_its_chance_and_size():
    """Every fifth day e^5 GPUs, else next to none: about a fifth of e^5 a day."""
    days = np.where(np.arange(200) % 5 == 0, 5.0, 0.0)
    found = choose(days)
    assert found.past.name == "intermittent demand"
    assert np.exp(found.ahead(30)).mean() == pytest.approx(np.exp(5) / 5, rel=0.35)


def test_a_constant_is_forecast_without_error():
    found = choose(np.full(100, 2.0))
    assert found.error == 0
    assert found.ahead(3).tolist() == [2.0, 2.0, 2.0]


def test_the_error_is_that_of_days_not_seen_by_hand():
    """1, 1, 3 and 3 GPUs a day, mean 2. At the end of day 2 the mean of all days is 1 and both
    days of 3 are missed by 2; at the end of day 3 it is the cube root of 3, for one day of 3.
    """
    days = np.log([1.0, 1.0, 3.0, 3.0])
    every = _mean("all", days, None)
    assert _error(every, days) == pytest.approx((2 + (3 - 3 ** (1 / 3))) / 2 / 2)


def test_past_forecasts_do_not_know_the_days_after_them():
    """Other last days change no forecast of a mean made before them."""
    first, second = level(40), level(40)
    second[-3:] += 1.0
    for name, half_life in MEANS.items():
        one, other = _mean(name, first, half_life), _mean(name, second, half_life)
        assert one.level[:-3].tolist() == other.level[:-3].tolist(), name


def test_smoothing_finds_its_parameters_on_the_first_half_alone():
    first, second = level(60), level(60)
    second[45:] -= 2.0
    one, other = _smoothed(SMOOTHING, first, 30), _smoothed(SMOOTHING, second, 30)
    assert one.level[:45] == pytest.approx(other.level[:45])


@pytest.mark.parametrize("days", [1, 2, 3, 8, 20, 21, 22])
def test_a_history_of_any_length_has_a_model(days):
    found = choose(level(days))
    assert np.isfinite(found.ahead(400)).all()
    assert len(found.past.level) == days
