"""What a history is taken to say: recorded hours only, and a warning for what is doubtful."""

from __future__ import annotations

import numpy as np

from planner.forecast.known import known_of, together
from tests.forecasts import NAN, history


def test_hours_without_a_reading_are_left_out_and_never_zero():
    known = known_of(history([5.0, NAN, 5.0] * 20))
    assert known.total.tolist() == [5.0] * 40
    assert known.age.tolist()[-2:] == [2.0, 0.0]
    assert known.span == 60
    assert any("20 hours (33.3%) have no reading" in text for text in known.warnings)


def test_a_class_without_a_reading_keeps_its_last_one_and_has_not_started_before_its_first():
    known = known_of(history([[NAN, 1.0], [2.0, 1.0], [NAN, 1.0]] * 12))
    assert known.total.tolist() == [1.0, 3.0, 3.0] * 1 + [3.0] * 33
    assert any("24 hours a class has no reading" in text for text in known.warnings)


def test_days_are_counted_back_from_the_step_and_what_fills_none_is_dropped():
    """30 hours: the last 24 hold 1 to 24, mean 12.5; the six before them are no day."""
    known = known_of(history([100.0] * 6 + [float(hour) for hour in range(1, 25)]))
    assert known.daily().tolist() == [12.5]


def test_a_day_without_a_reading_is_no_day_of_zero():
    known = known_of(history([4.0] * 24 + [NAN] * 24 + [4.0] * 24))
    days = known.daily()
    assert days[[0, 2]].tolist() == [4.0, 4.0]
    assert np.isnan(days[1])


def test_a_few_zeros_at_the_end_of_steady_demand_are_readings_not_yet_in():
    known = known_of(history([5.0] * 400 + [0.0] * 5))
    assert known.total.min() == 5.0
    assert any("last 5 recorded hours read 0" in text for text in known.warnings)


def test_zeros_for_more_than_a_day_or_as_often_before_are_zeros():
    ended = known_of(history([5.0] * 400 + [0.0] * 30))
    assert (ended.total == 0).sum() == 30
    assert any("no demand for the last 30 hours" in text for text in ended.warnings)
    nightly = known_of(history(([5.0] * 18 + [0.0] * 6) * 20))
    assert (nightly.total == 0).sum() == 120


def test_what_is_wrong_with_a_history_is_said():
    def said(gpus, **more):
        return " ".join(known_of(history(gpus, **more)).warnings)

    assert "Only 5 hours" in said([1.0] * 5)
    assert "Only 3 days" in said([1.0] * 72)
    assert "No demand was recorded" in said([0.0] * 400)
    assert "in 1 of 400 hours only" in said([0.0] * 399 + [9.0])
    assert "last 10 hours have no reading" in said([1.0] * 400 + [NAN] * 10)
    full = np.zeros((400, 1), dtype=bool)
    full[7:9] = True
    assert "In 2 hours a pool was full" in said([1.0] * 400, at_capacity=full)
    assert said([1.0] * 400) == ""


def test_classes_are_summed_and_hours_without_any_reading_stay_unknown():
    one = together(history([[1.0, 2.0], [NAN, NAN], [NAN, 4.0]]))
    assert one.firm[:, 0].tolist()[::2] == [3.0, 5.0]
    assert np.isnan(one.firm[1, 0])
