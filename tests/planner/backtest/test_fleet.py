"""The back-test on the pools of a fleet."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from planner.backtest.fleet import Case, backtest_pools, demand_of
from planner.forecast.inputs import Advice, History
from tests.backtests import NAN, demand, last_hour, terms


def history(batch: list[float], training: list[float], **more) -> History:
    """Three quarters of batch may use spot; training may not."""
    gpus = np.array([batch, training]).T
    waiting = gpus * [0.75, 0.0]
    return History(gpus - waiting, waiting, ("batch", "training"), **more)


def test_hours_without_a_reading_are_gaps():
    start = datetime(2026, 10, 1, tzinfo=UTC)
    made = demand_of(history([2, 2, NAN, 2], [3, 3, NAN, 3], start_time=start))
    assert made.recorded.tolist() == [True, True, False, True]
    assert made.gpus[0].tolist() == [2.0, 3.0]
    assert made.deferrable[0].tolist() == [1.5, 0.0]
    assert "1 of 4 hours have no reading, the first 2026-10-01T02:00:00Z" in made.notes[0]


def test_hours_without_a_calendar_are_numbers():
    assert demand_of(history([1.0], [1.0], start_hour=7)).name(0) == "hour 7"


def test_one_back_test_a_pool_and_a_sentence_where_there_is_none():
    """5 GPUs reserved for 4 hours at 2 USD cost 40; a single hour cannot be parted."""
    cases = {
        "aws H100": Case(demand([5.0] * 8), terms(replan_hours=8)),
        "gcp A100": Case(demand([1.0]), terms()),
    }
    made, notes = backtest_pools(cases, last_hour)
    assert set(made) == {"aws H100"}
    found = made["aws H100"]
    mine = found.named("loadfactor")
    assert (mine.costs.usd, found.over_foresight("loadfactor")) == (40.0, 0.0)
    assert mine.levels == ((4, 5),)
    assert (found.train_hours, found.test_hours) == (4, 4)
    assert len(found.policies) == 9
    assert [note for note in notes if note.startswith("gcp A100: no back-test")]


def test_what_the_advice_warns_of_is_told_with_its_pool():
    def adviser(known: History, given) -> Advice:
        advice = last_hour(known, given)
        return Advice(advice.gpus, advice.reason, ("short history",))

    _made, notes = backtest_pools({"aws H100": Case(demand([5.0] * 8), terms())}, adviser)
    assert "aws H100: planning step of hour 4: short history" in notes
