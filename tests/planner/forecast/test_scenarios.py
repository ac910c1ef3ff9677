"""Forecasts and scenarios: what they keep of the past, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest

from planner.forecast.scenarios import Event, forecast, quick_interval
from tests.forecasts import NAN, history

DAY = 24


def walk(days: int, seed: int, step: float = 0.05) -> np.ndarray:
    """Hours of a demand whose level walks, with a daily swing."""
    rng = np.random.default_rng(seed)
    levels = 100 * np.exp(np.cumsum(rng.normal(0, step, days)))
    swing = 1 + 0.3 * np.sin(np.arange(DAY) / DAY * 2 * np.pi)
    return (levels[:, None] * swing * rng.lognormal(0, 0.05, (days, DAY))).ravel()


def test_the_same_arguments_give_the_same_and_another_seed_gives_others():
    past = history(walk(40, 0))
    first, again = forecast(past, 50, 5, seed=3), forecast(past, 50, 5, seed=3)
    assert first.scenarios.tolist() == again.scenarios.tolist()
    assert first.scenarios.tolist() != forecast(past, 50, 5, seed=4).scenarios.tolist()
    assert first.point.shape == (50, 1)
    assert first.scenarios.shape == (5, 50, 1)
    assert first.probabilities.sum() == pytest.approx(1)


def test_a_constant_is_forecast_as_itself_and_its_swing_in_phase():
    assert forecast(history([7.0] * 240), 30, 2).point[:, 0] == pytest.approx(np.full(30, 7.0))
    swing = [4.0] * 12 + [10.0] * 12
    assert forecast(history(swing * 20), 24, 2).point[:, 0] == pytest.approx(swing)


def test_what_moved_together_stays_together_and_what_did_not_does_not():
    """Two classes with one walk, and two with one each: correlation of the level 20 days on."""
    one = walk(120, 0)
    same = forecast(history(np.stack([one, 2 * one], axis=1)), 20 * DAY, 200)
    apart = forecast(history(np.stack([one, walk(120, 1)], axis=1)), 20 * DAY, 200)

    def together(found):
        last = np.log(found.scenarios[:, -DAY:].mean(axis=1))
        return np.corrcoef(last[:, 0], last[:, 1])[0, 1]

    assert together(same) > 0.8
    assert together(apart) < 0.7


def test_four_fifths_of_unseen_hours_lie_in_the_range_of_four_fifths():
    """Forty walks of 60 days each, forecast for 30 more: pooled, 70 to 92%."""
    inside = []
    for seed in range(40):
        gpus = walk(90, seed)
        found = quick_interval(history(gpus[: 60 * DAY]), 30 * DAY)
        assert found is not None
        inside.append(((gpus[60 * DAY :] >= found.low) & (gpus[60 * DAY :] <= found.high)).mean())
    assert 0.70 <= np.mean(inside) <= 0.92


def test_the_range_widens_with_the_days_ahead_and_with_less_history():
    gpus = walk(120, 5)
    wide = [np.log(one.high / one.low) for one in (quick_interval(history(gpus), 40 * DAY),) if one]
    assert wide[0][-DAY:].mean() > 1.3 * wide[0][:DAY].mean()
    short = quick_interval(history(np.full(14 * DAY, 50.0)), 14 * DAY)
    long = quick_interval(history(np.full(140 * DAY, 50.0)), 14 * DAY)
    assert short is not None
    assert long is not None
    assert (short.high - short.low).mean() > (long.high - long.low).mean()


def test_a_launch_adds_and_an_end_ends_from_its_hour_on():
    """240 hours of 10 GPUs; hour 250 of the file is the eleventh ahead."""
    past = history([10.0] * 240)
    launched = forecast(past, 20, 4, events=[Event(from_hour=250, gpus=5.0)])
    assert launched.point[:, 0] == pytest.approx([10.0] * 10 + [15.0] * 10)
    ended = forecast(past, 20, 4, events=[Event(from_hour=245, until_hour=250, factor=0.0)])
    assert ended.point[:, 0] == pytest.approx([10.0] * 5 + [0.0] * 5 + [10.0] * 10)
    assert (ended.scenarios[:, 5:10] == 0).all()
    assert (ended.scenarios[:, 10:] > 0).all()


def test_an_event_that_may_happen_does_so_in_its_share_of_the_scenarios():
    past = history([10.0] * 240)
    found = forecast(past, 5, 200, events=[Event(from_hour=240, factor=0.0, chance=0.3)])
    assert found.point[:, 0] == pytest.approx(np.full(5, 7.0))
    assert 0.2 < (found.scenarios[:, 0, 0] == 0).mean() < 0.4


def test_an_event_of_one_class_leaves_the_others_alone():
    past = history(np.full((240, 2), 10.0))
    found = forecast(past, 5, 3, events=[Event(from_hour=0, workload_class="b", factor=0.0)])
    assert found.point[:, 0] == pytest.approx(np.full(5, 10.0))
    assert found.point[:, 1].tolist() == [0.0] * 5


def test_a_class_that_began_last_week_does_not_grow_for_ever():
    gpus = np.zeros((60 * DAY, 2))
    gpus[:, 0] = 50
    gpus[53 * DAY :, 1] = 40
    found = forecast(history(gpus), 90 * DAY, 40)
    assert found.point[:, 1] == pytest.approx(np.full(90 * DAY, 40.0))
    assert found.scenarios[:, :, 1].max() < 40 * 20


def test_the_method_and_its_error_are_named_for_each_class():
    found = forecast(history(np.stack([np.full(480, 3.0), walk(20, 1)], axis=1)), 24, 2)
    assert [one.workload_class for one in found.methods] == ["a", "b"]
    assert found.methods[0].error == 0
    assert 0 < found.methods[1].error < 1


@pytest.mark.parametrize(
    "gpus",
    [
        [0.0] * 480,
        [3.0],
        [0.0] * 300 + [90.0] + [0.0] * 179,
        [20.0] * 300 + [0.0] * 180,
        [NAN] * 100 + [4.0] * 100,
        [NAN] * 60,
        [5.0] * 25,
        [5.0] * 47,
    ],
)
def test_forecasts_of_odd_histories_are_finite_bounded_and_come_with_a_word(gpus):
    found = forecast(history(gpus), 60 * DAY, 10)
    assert found.point.shape == (60 * DAY, 1)
    assert np.isfinite(found.scenarios).all()
    assert (found.scenarios >= 0).all()
    assert found.scenarios.max() <= 50 * max(np.nanmax([*gpus, 0.0]), 0.0) + 1e-9
    assert found.warnings


def test_demand_that_stepped_down_to_zero_is_forecast_near_zero():
    found = forecast(history([20.0] * 300 + [0.0] * 180), 24, 5)
    assert found.point.max() < 1.0


def test_no_range_is_given_for_less_than_two_days():
    assert quick_interval(history([5.0] * 47), 24) is None
    assert quick_interval(history([5.0] * 48), 0) is None


def test_readings_that_are_not_in_yet_do_not_steer_the_forecast():
    """Six zeros at the end of steady demand: the forecast is that of the demand without them."""
    steady = forecast(history([20.0] * 480), 48, 3)
    late = forecast(history([20.0] * 474 + [0.0] * 6), 48, 3)
    assert late.point == pytest.approx(steady.point)
    assert any("not yet recorded" in text for text in late.warnings)


def test_no_day_is_more_peaked_than_days_of_its_size_were():
    """Of ten days nine need 10 GPUs at every hour and one 12 GPUs at noon alone.

    Its shape, 24 times its mean at noon, never lies on a day of the others: up to a mean of 10
    GPUs no hour needs more than the 12 that were seen, and beyond it more in proportion.
    """
    gpus = np.full((60, 24), 10.0)
    gpus[::10] = 0.0
    gpus[::10, 12] = 12.0
    found = forecast(history(gpus.ravel()), 28 * 24, scenarios=40, seed=1)
    days = found.scenarios[:, :, 0].reshape(-1, 24)
    mean, peak = days.mean(axis=1), days.max(axis=1)
    assert (peak <= 12.0 * np.maximum(mean / 10.0, 1.0) + 1e-9).all()
    assert peak.max() > 11.0
