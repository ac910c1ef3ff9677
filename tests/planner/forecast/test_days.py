"""Level, profile and rest of the days, and how gaps, full pools and spikes are settled."""

from __future__ import annotations

import numpy as np
import pytest

from planner.forecast.days import days_of
from tests.forecasts import NAN, history

DAY = 24


def test_level_profile_and_rest_multiply_to_the_hours():
    rng = np.random.default_rng(0)
    gpus = rng.uniform(1, 9, (20 * DAY, 2))
    days = days_of(history(gpus))
    place = np.arange(-20, 0) % 7
    again = np.exp(days.level)[:, None, :] * days.profile[place] * days.rest
    assert again.reshape(-1, 2) == pytest.approx(gpus)


def test_a_daily_swing_is_profile_and_not_level():
    """Four and ten by turns of 12 hours, mean 7: profile 4/7 and 10/7, level log 7."""
    days = days_of(history(([4.0] * 12 + [10.0] * 12) * 10))
    assert np.exp(days.level[:, 0]) == pytest.approx(np.full(10, 7.0))
    assert days.profile[0, [0, 23], 0] == pytest.approx([4 / 7, 10 / 7])
    assert not days.weekly[0]


def test_a_week_that_comes_back_is_profile_and_a_steady_fall_is_not():
    week = days_of(history(np.repeat(([10.0] * 5 + [5.0] * 2) * 8, DAY)))
    assert week.weekly[0]
    assert np.ptp(week.level) < 0.2  # log 2, 0.69, without the week
    assert not days_of(history(np.linspace(100, 20, 56 * DAY))).weekly[0]


def test_the_profile_ahead_starts_with_the_weekday_that_comes_next():
    """Eight weeks from Monday to Sunday: the first day ahead is a Monday."""
    days = days_of(history(np.repeat(([10.0] * 5 + [5.0] * 2) * 8, DAY)))
    ahead = days.profile_ahead(9)[:, 0, 0]
    assert ahead[:5].min() > 1 > ahead[5:7].max()
    assert ahead[7:] == pytest.approx(ahead[:2])


def test_a_gap_is_filled_with_the_day_before():
    gpus = np.tile(np.arange(1.0, 25.0), 5)
    holes = gpus.copy()
    holes[[30, 31, 100]] = NAN
    assert days_of(history(holes)).level == pytest.approx(days_of(history(gpus)).level)


def test_days_begin_with_the_first_reading_and_a_class_with_its_own():
    """66 hours are two whole days; a class that starts 24 hours later has none before."""
    days = days_of(history([NAN] * 30 + [6.0] * 66))
    assert np.exp(days.level[:, 0]) == pytest.approx([6.0, 6.0])
    two = days_of(history([[6.0, NAN]] * 24 + [[6.0, 2.0]] * 24))
    assert two.started.tolist() == [0, 1]
    assert two.mean.tolist() == [6.0, 1.0]


def test_hours_at_capacity_count_as_the_free_hours_that_wanted_more():
    """Full at 8 GPUs for two hours; free hours above 8 wanted 10 and 14: 12."""
    gpus = np.full(48, 6.0)
    gpus[[1, 2]] = 8
    gpus[[3, 4]] = 10, 14
    full = np.zeros((48, 1), dtype=bool)
    full[[1, 2]] = True
    days = days_of(history(gpus, at_capacity=full))
    # 20 x 6 + 2 x 12 + 10 + 14 = 168, and a day of 144: 156 a day on average, 6.5 an hour
    assert days.mean[0] == pytest.approx(6.5)


def test_one_hour_far_above_all_others_is_cut_and_that_is_said():
    gpus = np.full(20 * DAY, 5.0)
    gpus[100] = 500
    days = days_of(history(gpus))
    assert days.mean[0] == pytest.approx((5 * 479 + 15) / 480)  # 3 x 5
    assert days.warnings == ("a: 1 hour far above all others counts as 15 GPUs.",)
    assert days_of(history(np.r_[np.full(240, 5.0), np.full(240, 500.0)])).warnings == ()


def test_a_class_without_demand_has_no_level_that_matters():
    days = days_of(history(np.zeros((10 * DAY, 1))))
    assert days.mean[0] == 0
    assert days.started[0] == 10
    assert np.isfinite(days.level).all()
