"""The rival rules, each on a history small enough to reckon by head."""

from __future__ import annotations

from planner.backtest.rivals import RULES, Step
from tests.backtests import load, terms

HISTORY = load([2, 4, 6, 12], [0, 0, 2, 4])  # in all 2, 4, 8, 16


def bought(rule, history=HISTORY, past=None, held=0.0, **change):
    return RULES[rule](Step(history, past or history, held, terms(**change)))


def test_levels_of_the_training_half():
    """Totals 2, 4, 8, 16: peak 16, mean 7.5, median 6. Firm 2, 4, 6, 12: median 5."""
    assert bought("all_on_demand") == 0
    assert bought("peak") == 16
    assert bought("mean") == 8
    assert bought("quantile") == 6
    assert bought("quantile_firm_spot_defer") == 5


def test_the_quantile_follows_the_ratio_of_the_prices():
    """Reserved at a quarter of on demand: the level that is reached in a quarter of the hours."""
    assert bought("quantile", reserved=1.0) == 10  # 0.75 of 2, 4, 8, 16: 8 + 0.25 x 8
    assert bought("quantile", reserved=4.0) == 0


def test_levels_are_whole_instances():
    """Nearest multiple of 8 to 7.5 and to 6 is 8, to 16 it is 16; a peak is never cut."""
    assert bought("mean", gpus_per_instance=8) == 8
    assert bought("quantile", gpus_per_instance=8) == 8
    assert bought("peak", gpus_per_instance=10) == 20
    assert bought("quantile_firm_spot_defer", gpus_per_instance=11) == 0


def test_what_is_held_is_not_bought_again():
    assert bought("peak", held=10.0) == 6
    assert bought("peak", held=20.0) == 0


def test_the_best_level_of_history_counts_waiting_work():
    """Firm 4, 0, 4, 0 with 4 waiting in each busy hour: 4 reserved serve all of it."""
    history = load([4, 0, 4, 0], [4, 0, 4, 0])
    assert bought("lp_on_history", history, spot=None) == 4


def test_the_clouds_look_at_on_demand_hours_of_the_last_30_days_alone():
    """10 GPUs long ago do not count; the last 720 hours had 6 in two thirds of the time, then 3."""
    past = load([10] * 500 + [6] * 480 + [3] * 240)
    assert bought("cloud_replay", past, past) == 6
    assert bought("cloud_replay", past, past, reserved=3.0) == 3
    assert bought("cloud_replay", past, past, held=4.0) == 2
    assert bought("cloud_replay", past, past, held=6.0) == 0


def test_the_clouds_see_no_spot_and_count_whole_instances():
    """Work on spot is on no on-demand bill; of 6 firm GPUs the second instance of 4 is half full.

    Its saving: 2 GPUs x 4 USD against 4 x 2 USD an hour, nothing; so one instance.
    """
    past = load([6] * 720, [100] * 720)
    assert bought("cloud_replay", past, past) == 6
    assert bought("cloud_replay", past, past, gpus_per_instance=4) == 4
    assert bought("cloud_replay", past, past, gpus_per_instance=4, reserved=1.9) == 8


def test_the_clouds_recommend_nothing_for_no_bill():
    assert bought("cloud_replay", load([0] * 24)) == 0
