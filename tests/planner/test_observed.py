"""The window of hours that the data covers, and what is told of its tail and its gaps."""

from __future__ import annotations

from datetime import date

from planner.observed import covered_hours, extents, observed_window, window_findings
from tests import fleet as t


def observed(bill, readings, as_of, **more):
    return observed_window(t.billing(bill), t.utilization(readings), as_of, 365, **more)


def test_a_half_written_day_feeds_no_plan():
    # Two whole days and 16 hours of the third (66%): the window is the two days.
    bill = [t.charge(start=h) for h in range(64)]
    assert observed(bill, [], t.day(3)) == t.window(48)
    assert observed(bill, [], t.day(3), tails=None) == t.window(64)
    found = window_findings(
        extents(t.billing(bill), t.utilization([]), t.day(3)), t.window(48), t.day(3)
    )
    assert [(row.check, row.severity, row.count) for row in found] == [("late_tail", "info", 16)]


def test_the_day_asked_for_is_not_looked_at():
    bill = [t.charge(start=h) for h in range(72)]
    assert observed(bill, [], t.day(1)) == t.window(24)
    assert observed(bill, [], t.day(1), tails=None) == t.window(24)


def test_history_is_limited_to_whole_days_before_the_end():
    bill = [t.charge(start=h) for h in range(72)]
    window = observed_window(t.billing(bill), t.utilization([]), t.day(3), 2)
    assert window == t.window(48, first=24)


def test_the_cloud_that_ends_first_ends_the_window_unless_it_has_stopped():
    near = [t.charge(start=h) for h in range(72)]
    gcp = [t.charge("vm", start=h, source="gcp") for h in range(48)]
    assert observed(near + gcp, [], t.day(3)) == t.window(48)
    far = [t.charge(start=h) for h in range(10 * 24)]
    assert observed(far + gcp, [], t.day(10)) == t.window(240)
    tables = t.billing(far + gcp), t.utilization([])
    found = window_findings(extents(*tables, t.day(10)), t.window(240), t.day(10))
    assert {(row.check, row.scope) for row in found} == {
        ("late_tail", "gcp/billing"), ("stale_data", "gcp/billing"),
    }  # fmt: skip


def test_less_than_a_day_of_data_is_a_window_of_its_hours():
    assert observed([t.charge(start=h) for h in range(3, 9)], [], t.day(1)) == t.window(6, first=3)


def test_an_empty_store_has_an_empty_window():
    assert observed([], [], date(2026, 11, 2)).hours == 0


def test_telemetry_alone_makes_a_window():
    readings = [r for h in range(24) for r in t.node_readings(h)]
    assert observed([], readings, t.day(1)) == t.window(24)


def test_a_day_without_any_row_is_missing_and_a_shorter_pause_is_not():
    # Rows in hours 0 and 5 of the first day and in hour 3 of the third: the 45 hours between
    # are missing, the 4 hours before and the 20 after are a fleet of nothing.
    rows = [t.charge(start=0), t.charge(start=5, gpus=0, gpu_hours=None), t.charge(start=51)]
    covered = covered_hours(t.billing(rows), t.utilization([]), t.window(72))
    assert list(covered) == [t.hour(h) for h in (*range(6), *range(51, 72))]


def test_the_history_is_the_newest_that_has_data_however_long_ago():
    # 72 hours of data and a day far behind them: the newest 2 days of data, to the hour.
    bill = [t.charge(start=h) for h in range(72)]
    tables = t.billing(bill), t.utilization([])
    for late in (date(2027, 6, 1), date.max):
        window = observed_window(*tables, late, 2, tails=None)
        assert window == t.window(48, first=24)
        assert observed_window(*tables, late, 2) == window
        assert observed_window(*tables, late, 10**6, tails=None) == t.window(72)
        assert any(row.check == "stale_data" for row in
                   window_findings(extents(*tables, late), window, late))  # fmt: skip
