"""Gaps stay gaps: in what a step knows, in what a window costs, and in what is said of them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from planner.backtest.demand import gap_notes, known, load
from tests.backtests import NAN, demand


def test_a_step_knows_the_hours_before_it_and_no_later_one():
    history = known(demand([5, 6, 7, 8], [1, 2, 3, 4]), 2)
    assert history.firm.tolist() == [[4.0], [4.0]]
    assert history.deferrable.tolist() == [[1.0], [2.0]]
    assert (history.hours, history.next_hour) == (2, 2)
    assert history.firm.base is None or len(history.firm.base) == 2


def test_an_hour_without_any_reading_is_unknown_and_left_out_of_the_cost():
    made = demand([4, NAN, 6], [1, 0, 2], spot_available=np.array([0.1, 0.2, 0.3]))
    assert np.isnan(known(made, 3).firm[1, 0])
    window = load(made, 0, 3)
    assert window.firm.tolist() == [3.0, 4.0]
    assert window.deferrable.tolist() == [1.0, 2.0]
    assert window.spot_available.tolist() == [0.1, 0.3]
    (note,) = gap_notes(made)
    assert note.startswith("1 of 3 hours have no reading, the first hour 1")


def test_a_class_without_a_reading_among_others_lies_between_its_neighbours():
    """b: 10, unknown, 20 is taken as 15 where a has a reading."""
    made = demand([[1, 10], [1, NAN], [1, 20]], classes=("a", "b"))
    assert load(made, 0, 3).firm.tolist() == [11.0, 16.0, 21.0]
    assert np.isnan(known(made, 3).firm[1]).tolist() == [False, True]
    (note,) = gap_notes(made)
    assert 'class "b"' in note
    assert "taken between its neighbours" in note


def test_a_class_without_rows_for_over_a_week_was_not_running():
    table = np.ones((400, 2))
    table[200:, 1] = NAN
    made = demand(table, classes=("a", "gone"))
    assert load(made, 0, 400).firm.tolist() == [2.0] * 200 + [1.0] * 200
    assert known(made, 400).firm[:, 1].tolist() == [1.0] * 200 + [0.0] * 200
    # A week after its last row nobody knows yet whether it is gone or was not recorded.
    assert np.isnan(known(made, 368).firm[200:, 1]).all()
    (note,) = gap_notes(made)
    assert 'class "gone" has no row in 200 hours, the first hour 200' in note


def test_a_class_that_is_not_there_yet_is_unknown_to_a_step():
    table = np.full((400, 2), 3.0)
    table[:300, 0] = NAN
    made = demand(table, classes=("later", "now"))
    assert known(made, 300).classes == ("now",)
    assert known(made, 301).classes == ("later", "now")
    assert known(made, 301).firm[:, 0].tolist() == [0.0] * 300 + [3.0]


def test_a_window_is_filled_from_its_own_hours_alone():
    """The last reading before the gap is held, whatever stands after the window."""
    made = demand([[1, 10], [1, NAN], [1, 90]], classes=("a", "b"))
    assert load(made, 0, 2).firm.tolist() == [11.0, 11.0]


def test_hours_are_named_as_the_file_names_them():
    table = [1.0, NAN, 1.0]
    assert "hour 8:" in gap_notes(demand(table, start=7))[0]
    dated = demand(table, start=datetime(2026, 11, 30, 23, tzinfo=UTC))
    assert "2026-12-01T00:00:00Z" in gap_notes(dated)[0]
    assert known(dated, 2).start_time == datetime(2026, 11, 30, 23, tzinfo=UTC)
    assert not gap_notes(demand([1.0, 2.0]))
