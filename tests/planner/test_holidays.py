"""Stated holidays: set aside in the history, and held against the days to come."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from planner.forecast.inputs import History
from planner.future import Future, expected, year_ahead
from planner.holidays import holiday_note, set_aside, with_holidays
from planner.horizon import Horizon, horizon_of
from planner.settings import Settings
from tests import bills
from tests.planner.test_unmet import EAST, hours, need

WEEKS = 4
OFF = date(2026, 9, 15)  # the first day of the third week
SLOT = slice(14 * 24, 15 * 24)


def gpus() -> np.ndarray:
    """8 GPUs in the first two weeks and 12 in the last two; a quarter of 10 on the holiday."""
    series = np.repeat([8.0, 12.0], WEEKS * 84)
    series[SLOT] = 2.5
    return series


def history(series: np.ndarray, **more) -> History:
    return History(series[:, None] * 0.75, series[:, None] * 0.25, ("a|H100",),
                   start_time=bills.START, **more)  # fmt: skip


def test_a_holiday_is_set_aside_for_what_its_weeks_needed_and_told_as_a_share():
    """The same day is 8, 8 and 12 GPUs in the other weeks: 28 / 3 on the mean; 2.5 is 26.8 %."""
    full = np.zeros((WEEKS * 168, 1), dtype=bool)
    full[SLOT.start - 1 : SLOT.stop] = True
    made, shares = set_aside(history(gpus(), at_capacity=full), (OFF, date(2027, 9, 15)))
    assert shares == {"a|H100": pytest.approx(2.5 * 3 / 28)}
    total = (made.firm + made.deferrable)[:, 0]
    assert total[SLOT] == pytest.approx(28 / 3)
    assert np.delete(total, range(SLOT.start, SLOT.stop)).tolist() == pytest.approx(
        np.delete(gpus(), range(SLOT.start, SLOT.stop)).tolist()
    )
    assert made.firm[SLOT, 0] == pytest.approx(7.0)
    # What is set aside is no bound on anything any more; the hour before still is.
    assert np.flatnonzero(made.at_capacity[:, 0]).tolist() == [SLOT.start - 1]


@pytest.mark.parametrize(
    ("series", "days"),
    [
        pytest.param(gpus(), (), id="none stated"),
        pytest.param(gpus(), (date(2027, 1, 1),), id="none in the history"),
        pytest.param(gpus()[: 6 * 24], (date(2026, 9, 2),), id="no other week"),
        pytest.param(np.zeros(WEEKS * 168), (OFF,), id="no demand"),
        pytest.param(gpus(), tuple(bills.START.date() + timedelta(days=n) for n in range(28)),
                     id="every day"),
    ],
)  # fmt: skip
def test_without_a_usual_day_beside_them_holidays_change_nothing(series, days):
    made, shares = set_aside(history(series), days)
    assert shares == {}
    assert (made.firm + made.deferrable)[:, 0] == pytest.approx(series)
    told = holiday_note((*days, date(2030, 1, 1)), shares, date(2026, 9, 28))
    assert told is not None
    assert "count as usual days" in told


def test_gaps_stay_gaps():
    series = gpus()
    series[SLOT.start] = np.nan
    made, shares = set_aside(history(series), (OFF,))
    assert np.isnan(made.firm[SLOT.start, 0])
    assert shares == {"a|H100": pytest.approx(2.5 * 3 / 28)}


def test_a_holiday_to_come_is_at_the_share_of_those_past_in_the_year_and_the_weeks():
    """A year of 1,344 modelled hours stands 365 days after: 3.68 of them are a day."""
    start = bills.START
    year = year_ahead(horizon_of(start, 24))
    near = Horizon(start, 24, 672, 672)
    paths = [{"a|H100": np.full((2, one.hours), 10.0)} for one in (year, near)]
    points = [{"a|H100": np.full(one.hours, 10.0)} for one in (year, near)]
    future = Future(year, paths[0], (0.5, 0.5), points[0],
                    near=Future(near, paths[1], (0.5, 0.5), points[1]))  # fmt: skip
    made = with_holidays(future, (date(2026, 9, 2), date(2020, 1, 1)), {"a|H100": 0.25})
    # The second day: modelled hours 24 / 6.518 = 3.68 to 7.36, which are 4 to 7.
    assert np.flatnonzero(made.demand["a|H100"][1] < 10).tolist() == [4, 5, 6]
    assert made.near is not None
    assert np.flatnonzero(made.near.demand["a|H100"][0] == 2.5).tolist() == list(range(24, 48))
    assert made.near.point["a|H100"][24] == 2.5
    assert with_holidays(future, (date(2026, 9, 2),), {}) is future


def test_a_history_with_a_holiday_is_forecast_as_without_it_but_on_the_next():
    """Four weeks of 12 GPUs with a day of 3: all days to come are at 12, the holiday at 3."""
    series = np.full(WEEKS * 168, 12.0)
    series[SLOT] = 3.0
    covered = hours(len(series))
    year = year_ahead(horizon_of(covered[-1].to_pydatetime() + timedelta(hours=1), len(series)))
    settings = Settings.model_validate({"plan": {"holidays": (OFF, date(2026, 10, 6))}})
    made = expected([need({EAST: series.tolist()})], covered, year, settings)
    assert made.near is not None
    point = made.near.point["training|H100"]
    # 2026-10-06 is a week after the first hour to come, 2026-09-29.
    assert np.flatnonzero(point < 10).tolist() == list(range(168, 192))
    assert point[168:192] == pytest.approx(3.0, rel=0.02)
    assert np.delete(point, range(168, 192)) == pytest.approx(12.0, rel=0.02)
    assert made.warnings[-1] == (
        "holidays to come (1) count at what past ones needed of a usual day: training on H100 25%"
    )
