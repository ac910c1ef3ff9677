"""The back-test on a frame of DEMAND."""

from __future__ import annotations

import pandas as pd

from planner.backtest.fleet import backtest_families, demand_of
from tests.backtests import last_hour, terms


def frame_of(hours: int, leave_out: tuple[int, ...] = ()) -> pd.DataFrame:
    """H100: 3 GPUs of training and 2 of batch in every hour; one hour of A100."""
    rows = [
        (pd.Timestamp("2026-10-01", tz="UTC") + pd.Timedelta(hours=hour), name, "H100", gpus)
        for hour in range(hours)
        for name, gpus in (("training", 3.0), ("batch", 2.0))
        if hour not in leave_out
    ]
    rows.append((rows[0][0], "training", "A100", 1.0))
    return pd.DataFrame(rows, columns=["hour_start", "workload_class", "gpu_family", "needed_gpus"])


def test_hours_that_the_frame_leaves_out_are_gaps():
    made = demand_of(frame_of(6, leave_out=(2, 3)), "H100", {"batch": 0.75})
    assert made.classes == ("batch", "training")
    assert made.recorded.tolist() == [True, True, False, False, True, True]
    assert made.deferrable[0].tolist() == [1.5, 0.0]
    assert "2 of 6 hours have no reading, the first 2026-10-01T02:00:00Z" in made.notes[0]


def test_one_back_test_a_family_and_a_sentence_where_there_is_none():
    """5 GPUs reserved for 4 hours at 2 USD cost 40; a single hour cannot be parted."""
    made, notes = backtest_families(
        frame_of(8), {"H100": terms(replan_hours=8), "A100": terms()}, last_hour
    )
    assert set(made) == {"H100"}
    found = made["H100"]
    mine = found.named("loadfactor")
    assert (mine.costs.usd, found.over_foresight("loadfactor")) == (40.0, 0.0)
    assert mine.levels == ((4, 5),)
    assert (found.train_hours, found.test_hours) == (4, 4)
    assert len(found.policies) == 9
    assert [note for note in notes if note.startswith("A100: no back-test")]


def test_a_family_without_prices_is_named():
    made, notes = backtest_families(frame_of(8), {"H100": terms()}, last_hour)
    assert notes == ("A100: no prices, so no back-test",)
    assert list(made) == ["H100"]


def test_the_hours_are_those_of_the_calendar():
    seen = []

    def adviser(history, given):
        seen.append(history.start_time.isoformat())
        return last_hour(history, given)

    backtest_families(frame_of(8), {"H100": terms()}, adviser)
    assert seen == ["2026-10-01T00:00:00+00:00"]


def test_what_the_advice_warns_of_is_told_with_its_family():
    def adviser(history, given):
        advice = last_hour(history, given)
        return type(advice)(advice.gpus, advice.reason, ("short history",))

    _table, notes = backtest_families(frame_of(8), {"H100": terms()}, adviser)
    assert "H100: short history" in notes
