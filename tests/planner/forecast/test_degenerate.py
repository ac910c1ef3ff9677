"""Forecast and advice on every kind of broken demand: sensible, bounded, said to be doubtful."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.forecast.inputs import Held
from planner.forecast.policy import advise
from planner.forecast.scenarios import forecast
from tests.forecasts import NAN, history, terms

DAY, WEEK = 24, 168
few = settings(max_examples=25, deadline=None, derandomize=True)
prices = st.sampled_from([2.6, 1.7])
sizes = st.sampled_from([1, 8])
levels = st.sampled_from([0.3, 1.0, 12.0, 400.0, 1e6])
weeks = st.integers(2, 10)


@few
@given(weeks=weeks, reserved=prices, size=sizes)
def test_no_demand(weeks, reserved, size):
    past = history(np.zeros(weeks * WEEK))
    advice = advise(past, terms(reserved=reserved, gpus_per_instance=size))
    assert advice.gpus == 0
    assert any("No demand" in text for text in advice.warnings)
    assert forecast(past, DAY, 3).scenarios.max() == 0


@few
@given(level=levels, reserved=prices, size=sizes)
def test_one_hour_of_history(level, reserved, size):
    advice = advise(history([level]), terms(reserved=reserved, gpus_per_instance=size))
    assert advice.gpus == 0
    assert any("Only 1 hour of demand is known;" in text for text in advice.warnings)
    assert "yet" in advice.reason


@few
@given(weeks=weeks, level=levels, reserved=prices, size=sizes)
def test_constant_demand(weeks, level, reserved, size):
    """The full instances, and one more only where its share in use is worth its price."""
    advice = advise(
        history(np.full(weeks * WEEK, level)), terms(reserved=reserved, gpus_per_instance=size)
    )
    full = math.floor(level / size)
    used = level / size - full
    asked_at_most = reserved * 1.06 / 3.9
    assert advice.gpus // size == full + (used > asked_at_most)  # no share lies in between
    assert advice.warnings == () or weeks < 2
    again = forecast(history(np.full(weeks * WEEK, level)), WEEK, 3)
    assert again.point == pytest.approx(np.full((WEEK, 1), level))


@few
@given(weeks=weeks, hour=st.integers(0, WEEK), level=levels, reserved=prices)
def test_a_single_spike(weeks, hour, level, reserved):
    gpus = np.zeros(weeks * WEEK)
    gpus[hour] = level
    advice = advise(history(gpus), terms(reserved=reserved))
    assert advice.gpus == 0
    assert any("hours only" in text for text in advice.warnings)
    found = forecast(history(gpus), WEEK, 5)
    assert found.point.mean() <= 0.1 * level
    # and on top of a steady demand it moves nothing
    steady = np.full(weeks * WEEK, 10.0)
    steady[hour] += 100 * level
    assert advise(history(steady), terms(reserved=reserved)).gpus == 10


@few
@given(before=st.integers(2, 8), after=st.integers(1, 4), level=levels, reserved=prices)
def test_a_step_down_to_zero(before, after, level, reserved):
    gpus = np.repeat([level, 0.0], [before * WEEK, after * WEEK])
    advice = advise(history(gpus), terms(reserved=reserved))
    assert advice.gpus == 0
    assert any("no demand for the last" in text for text in advice.warnings)
    assert forecast(history(gpus), WEEK, 3).point.max() < 0.2 * level
    held = Held(0, 10**6, math.ceil(level))
    assert "expire" in advise(history(gpus), terms(reserved=reserved, held=(held,))).reason


@few
@given(seed=st.integers(0, 99), level=st.sampled_from([12.0, 400.0]), reserved=prices)
def test_one_hour_in_a_hundred_missing(seed, level, reserved):
    rng = np.random.default_rng(seed)
    gpus = level * (1 + 0.3 * np.sin(np.arange(8 * WEEK) / DAY * 2 * math.pi))
    holes = np.where(rng.random(len(gpus)) < 0.01, NAN, gpus)
    whole, patchy = (advise(history(one), terms(reserved=reserved)) for one in (gpus, holes))
    assert abs(whole.gpus - patchy.gpus) <= max(0.02 * whole.gpus, 1)
    if np.isnan(holes).any():
        assert any("have no reading" in text for text in patchy.warnings)
    ahead = forecast(history(holes), WEEK, 3).point
    assert ahead == pytest.approx(forecast(history(gpus), WEEK, 3).point, rel=0.05)


@st.composite
def anything(draw):
    """Hours x classes of numbers without any order, some missing."""
    hours, classes = draw(st.integers(1, 12 * DAY)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    gpus = rng.exponential(10, (hours, classes)) * (rng.random((hours, classes)) < 0.7)
    gpus[rng.random((hours, classes)) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = NAN
    return history(gpus, draw(st.sampled_from([0.0, 0.3, 1.0])))


@few
@given(past=anything(), reserved=prices, size=sizes, spot=st.sampled_from([None, 1.6]))
def test_any_history_gives_whole_bounded_advice_with_a_reason(past, reserved, size, spot):
    rules = terms(reserved=reserved, gpus_per_instance=size, spot=spot)
    advice = advise(past, rules)
    highest = np.nansum(np.nanmax(np.nan_to_num(past.firm + past.deferrable), axis=0))
    assert 0 <= advice.gpus <= size * math.ceil(highest / size)
    assert advice.gpus % size == 0
    assert advice.reason
    if advice.interval is not None:
        assert (advice.interval.low <= advice.interval.high).all()
        assert (advice.interval.low >= 0).all()
    found = forecast(past, 50, 3)
    assert np.isfinite(found.scenarios).all()
    assert (found.scenarios >= 0).all()


@few
@given(past=anything(), reserved=prices, size=sizes)
def test_following_the_advice_leaves_nothing_to_advise(past, reserved, size):
    rules = terms(reserved=reserved, gpus_per_instance=size)
    first = advise(past, rules).gpus
    held = Held(0, past.next_hour + rules.term_hours, first)
    assert advise(past, terms(reserved=reserved, gpus_per_instance=size, held=(held,))).gpus == 0


@few
@given(past=anything(), factor=st.sampled_from([2.0, 10.0]))
def test_prices_times_any_factor_change_no_advice(past, factor):
    rules = terms()
    dear = terms(on_demand=3.9 * factor, reserved=2.6 * factor, spot=1.6 * factor)
    assert advise(past, dear).gpus == advise(past, rules).gpus


@few
@given(past=anything())
def test_a_cheaper_reservation_never_reserves_less(past):
    bought = [advise(past, terms(reserved=price)).gpus for price in (3.9, 3.0, 2.6, 2.0, 1.7, 0.5)]
    assert bought == sorted(bought)


@few
@given(past=anything())
def test_the_order_of_the_classes_changes_nothing(past):
    turned = type(past)(past.firm[:, ::-1], past.deferrable[:, ::-1], past.classes[::-1])
    assert advise(turned, terms()).gpus == advise(past, terms()).gpus


@pytest.mark.slow
def test_fifty_classes_and_a_year_take_less_than_forty_seconds():
    """Choice of methods, training and 50 scenarios of a year, in seconds of CPU."""
    rng = np.random.default_rng(1)
    level = np.exp(np.cumsum(rng.normal(0, 0.02, (365, 50)), axis=0)).repeat(DAY, axis=0)
    gpus = rng.uniform(5, 400, 50) * level * rng.lognormal(0, 0.1, (8_760, 50))
    gpus[:, ::7] *= rng.random((8_760, 8)) < 0.1
    names = tuple(f"c{place:02d}" for place in range(50))
    past = type(history([1.0]))(gpus * 0.8, gpus * 0.2, names)
    began = time.process_time()
    found = forecast(past, 8_760, 50)
    assert time.process_time() - began < 40
    assert found.scenarios.shape == (50, 8_760, 50)
    assert len(found.methods) == 50
