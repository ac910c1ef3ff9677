"""What must hold for every demand: advice that is sensible, blind to the future, and bounded."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backtest.demand import Demand, known
from planner.backtest.result import FORESIGHT, LOADFACTOR
from planner.backtest.run import backtest
from planner.forecast.inputs import Held, History
from planner.forecast.policy import advise
from tests.backtests import NAN, demand, terms

few = settings(max_examples=12, deadline=None, derandomize=True)
RULES = terms(
    on_demand=3.9, reserved=2.6, spot=1.6, spot_throughput=0.9, gpus_per_instance=8,
    term_hours=8_760, replan_hours=672, max_delay_hours=24,
)  # fmt: skip
THREE_YEARS = dataclasses.replace(RULES, reserved=1.7, term_hours=26_280)
WEEK = 168


def history(gpus, share: float = 0.0) -> History:
    made = np.array(gpus, dtype=float)
    return known(demand(made, made * share), len(made))


def noisy(level: float, hours: int, seed: int = 0) -> np.ndarray:
    """Demand that swings by a tenth about a level."""
    rng = np.random.default_rng(seed)
    hour = np.arange(hours)
    return np.maximum(
        level * (1 + 0.1 * np.sin(hour / 24 * 2 * math.pi) + rng.normal(0, 0.02, hours)), 0
    )


@st.composite
def shapes(draw):
    """Demand of several kinds, one to three classes, with a few hours missing."""
    hours, seed = draw(st.integers(2, 8)) * WEEK, draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    columns = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["noisy", "zero", "growing", "falling", "spiky", "ends"]))
        base = noisy(draw(st.sampled_from([1.0, 40.0, 900.0])), hours, seed)
        slope = np.linspace(0.1, 1.0, hours)
        columns.append(
            {
                "noisy": base,
                "zero": 0 * base,
                "growing": base * slope,
                "falling": base * slope[::-1],
                "spiky": base * (rng.random(hours) < 0.02),
                "ends": base * (np.arange(hours) < hours * 0.7),
            }[kind]
        )
    table = np.stack(columns, axis=1)
    table[rng.random(hours) < draw(st.sampled_from([0.0, 0.01]))] = NAN
    share = draw(st.sampled_from([0.0, 0.1, 0.3]))
    names = tuple("abc"[: table.shape[1]])
    return Demand(table, table * share, names)


# Advice for the demands that are hard to read


@pytest.mark.parametrize("rules", [RULES, THREE_YEARS])
def test_for_no_demand_nothing_is_reserved(rules):
    advice = advise(history(np.zeros(12 * WEEK)), rules)
    assert advice.gpus == 0
    assert advice.reason


@pytest.mark.parametrize("rules", [RULES, THREE_YEARS])
def test_one_hour_of_history_is_no_ground_for_a_promise_and_that_is_said(rules):
    advice = advise(history([640.0]), rules)
    assert advice.gpus <= 640
    assert advice.warnings


@pytest.mark.parametrize("rules", [RULES, THREE_YEARS])
def test_demand_of_a_single_hour_reserves_nothing(rules):
    """One hour of 400 GPUs in twelve weeks: busy in 1 of 2016 hours, far below 0.44."""
    gpus = np.zeros(12 * WEEK)
    gpus[777] = 400
    assert advise(history(gpus), rules).gpus == 0


@pytest.mark.parametrize("rules", [RULES, THREE_YEARS])
def test_constant_demand_is_nearly_all_reserved_and_never_more(rules):
    gpus = advise(history(np.full(12 * WEEK, 400.0)), rules).gpus
    assert 320 <= gpus <= 400


@pytest.mark.parametrize("rules", [RULES, THREE_YEARS])
def test_a_spike_does_not_steer_the_promise(rules):
    """Ten times the level in one hour, last of all or in the middle, moves at most an instance."""
    plain = noisy(400, 12 * WEEK)
    usual = advise(history(plain), rules).gpus
    for hour in (1_000, 12 * WEEK - 1):
        spiky = plain.copy()
        spiky[hour] *= 10
        assert abs(advise(history(spiky), rules).gpus - usual) <= 8


@pytest.mark.parametrize("rules", [RULES, THREE_YEARS])
def test_demand_that_fell_to_zero_weeks_ago_reserves_nothing(rules):
    gpus = noisy(400, 12 * WEEK)
    gpus[8 * WEEK :] = 0
    assert advise(history(gpus), rules).gpus == 0


@pytest.mark.parametrize("rules", [RULES, THREE_YEARS])
def test_one_hour_in_a_hundred_missing_changes_little_and_is_said(rules):
    plain = noisy(400, 12 * WEEK)
    holes = plain.copy()
    holes[np.random.default_rng(4).random(len(plain)) < 0.01] = NAN
    usual, patchy = advise(history(plain), rules), advise(history(holes), rules)
    assert abs(patchy.gpus - usual.gpus) <= 0.02 * usual.gpus + 8
    assert patchy.warnings


def test_reserving_that_saves_nothing_is_not_advised():
    dear = dataclasses.replace(RULES, reserved=3.9)
    assert advise(history(np.full(12 * WEEK, 400.0)), dear).gpus == 0


# What holds for every demand


@few
@given(made=shapes(), rules=st.sampled_from([RULES, THREE_YEARS]))
def test_advice_is_whole_instances_never_above_the_peak_and_always_with_a_reason(made, rules):
    past = known(made, made.hours)
    advice = advise(past, rules)
    highest = np.nansum(past.firm + past.deferrable, axis=1).max()
    assert 0 <= advice.gpus <= 8 * math.ceil(highest / 8)
    assert advice.gpus % 8 == 0
    assert advice.reason
    assert advice.gpus == advise(past, rules).gpus


@few
@given(made=shapes(), rules=st.sampled_from([RULES, THREE_YEARS]))
def test_what_is_held_is_not_bought_again(made, rules):
    past = known(made, made.hours)
    wanted = advise(past, rules).gpus
    enough = Held(past.next_hour, past.next_hour + rules.term_hours, wanted)
    assert advise(past, dataclasses.replace(rules, held=(enough,))).gpus <= max(wanted // 10, 8)


@few
@given(made=shapes(), factor=st.sampled_from([0.0, 3.0]))
def test_changing_the_future_changes_nothing_decided_before_it(made, factor):
    """Everything from the second step on is made different; the first purchase does not move."""
    rules = dataclasses.replace(RULES, replan_hours=WEEK)
    first = backtest(made, rules, 0.5, advise)
    at = first.train_hours + WEEK
    gpus, waiting = made.gpus.copy(), made.deferrable.copy()
    gpus[at:], waiting[at:] = gpus[at:] * factor + 7, 0.0
    second = backtest(Demand(gpus, waiting, made.classes), rules, 0.5, advise)
    for name in (one.policy for one in first.policies if one.policy != FORESIGHT):
        before = [one for one in first.named(name).decisions if one.hour <= at]
        assert before == [one for one in second.named(name).decisions if one.hour <= at], name


@few
@given(made=shapes(), rules=st.sampled_from([RULES, THREE_YEARS]))
def test_nothing_costs_less_than_foresight_where_all_is_bought_at_once(made, rules):
    once = dataclasses.replace(rules, replan_hours=made.hours)
    found = backtest(made, once, 0.5, advise)
    bound = found.named(FORESIGHT).costs.usd
    assert all(one.costs.usd >= bound * (1 - 1e-9) for one in found.policies)
    mine, peak = found.named(LOADFACTOR), found.named("peak")
    if mine.levels[0][1] <= peak.levels[0][1]:  # then, as cost is convex in the level:
        most = max(peak.costs.usd, found.named("all_on_demand").costs.usd)
        assert mine.costs.usd <= most * (1 + 1e-9)
