"""The demand to come as the plan takes it: its level, its spread, its weeks and its events."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from planner.assemble import Need
from planner.events import span_of, with_events
from planner.forecast.inputs import History
from planner.future import (
    WEEKS,
    Future,
    balanced,
    counted,
    expected,
    future_for,
    future_of,
    history_of,
    representative_hours,
    shares_of,
    spread,
    year_ahead,
)
from planner.horizon import horizon_of
from planner.settings import EventRule, Settings
from tests import bills

PLACE = "aws/us-east-1/p5.48xlarge"
OTHER = "aws/us-west-2/p5.48xlarge"


def need(series: np.ndarray, spot: np.ndarray | None = None) -> Need:
    return Need(
        workload_class="training", gpu_family="H100", firm={PLACE: series},
        spot={} if spot is None else {OTHER: spot}, anywhere=(PLACE,), may_move=False,
        may_retype=False, interruptible=spot is not None, min_firm_share=0.25, throughput=0.9,
    )  # fmt: skip


def history(gpus: np.ndarray) -> History:
    return History(gpus, np.zeros_like(gpus), tuple(f"c{n}" for n in range(gpus.shape[1])))


def future(scenarios: int, gpus: float = 10.0) -> Future:
    horizon = year_ahead(horizon_of(bills.window().end, 24))
    paths = np.full((scenarios, horizon.hours), gpus)
    return Future(horizon, {"a|H100": paths}, (1 / scenarios,) * scenarios, {"a|H100": paths[0]})


def event(**more: object) -> EventRule:
    return EventRule.model_validate({"name": "e", "class": "a", "from": date(2027, 3, 3)} | more)


def test_constant_demand_is_forecast_as_it_was():
    made = future_of(history(np.full((60 * 24, 1), 12.0)), horizon_of(bills.START, 1440), 1)
    assert made.demand["c0"] == pytest.approx(12.0)


def test_the_scenarios_are_on_the_mean_what_is_forecast_and_none_is_below_nothing():
    lots = np.random.default_rng(3)
    gpus = np.maximum(0.0, 40 + 12 * lots.standard_normal((60 * 24, 2)).cumsum(axis=0) / 20)
    year = year_ahead(horizon_of(bills.START, 1440))
    made = future_of(history(gpus), year, 6)
    for name, paths in made.demand.items():
        assert paths.shape == (6, WEEKS * 168)
        assert paths.min() >= 0
        assert paths.mean() == pytest.approx(made.point[name].mean(), rel=1e-6)
        assert paths.mean(axis=1).std() > 0


def test_the_middle_scenario_stays_and_the_upper_ones_come_down_to_the_mean():
    # Weeks at 40, 100 and 400: 60 below the middle, 300 above, so the upper one keeps a fifth.
    paths = np.array([40.0, 100.0, 400.0])[:, None, None] * np.ones((1, 168, 1))
    assert balanced(paths, np.array([100.0]))[:, 0, 0].tolist() == pytest.approx([40, 100, 160])


def test_a_class_of_no_demand_stays_at_nothing():
    assert not balanced(np.zeros((3, 168, 1)), np.array([0.0])).any()


def test_paths_are_kept_from_low_to_high():
    assert spread(np.array([6.0, 1.0, 5.0, 2.0, 4.0, 3.0]), 3) == [1, 5, 2]


def test_the_weeks_that_stand_for_a_year_lie_inside_what_is_forecast():
    for known in (1, 2, 5, 13, 52):
        hours = representative_hours(WEEKS, known)
        assert len(hours) == WEEKS * 168
        assert hours.min() >= 0
        assert hours.max() < known * 168


def test_an_hour_without_data_is_a_gap_of_the_history_and_not_a_zero():
    hours = bills.window().grid()
    covered = hours[:5].append(hours[8:])
    made = history_of([need(np.full(21, 8.0), np.full(21, 2.0))], pd.DatetimeIndex(covered))
    total = made.firm + made.deferrable
    assert np.isnan(total[5:8]).all()
    # 8 GPUs on demand and 2 useful ones on spot; a quarter must be firm.
    assert np.nansum(total) == pytest.approx(21 * 10)
    assert np.nansum(made.firm) == pytest.approx(21 * 2.5)


def test_a_class_divides_by_its_last_weeks():
    early = np.concatenate([np.full(672, 30.0), np.full(672, 1.0)])
    assert shares_of([early, np.full(1344, 3.0)]) == pytest.approx([0.25, 0.75])
    gone = np.concatenate([np.full(672, 30.0), np.zeros(672)])
    assert shares_of([gone, gone]) == pytest.approx([0.5, 0.5])
    assert shares_of([np.zeros(5), np.zeros(5), np.zeros(5), np.zeros(5)]) == [0.25] * 4


def test_an_event_that_is_sure_changes_every_scenario_from_its_day_on():
    # The window ends on 2026-09-02; 182 of 365 days later are hour 670.2 of 1,344.
    made = with_events(future(4), (event(factor=0.5, gpus=3.0),), {"a|H100": 10.0})
    paths = made.demand["a|H100"]
    assert (paths[:, :670] == 10.0).all()
    assert (paths[:, 670:] == 8.0).all()
    assert made.warnings == ()


def test_an_event_of_half_a_chance_happens_to_half_the_weight_of_every_way():
    made = with_events(future(4), (event(factor=0.0, chance=0.5),), {"a|H100": 10.0})
    assert made.demand["a|H100"][:, -1].tolist() == [10.0, 0.0] * 4
    assert made.probabilities == (0.125,) * 8
    assert made.point["a|H100"][-1] == pytest.approx(5.0)


def test_an_event_of_two_days_is_there_for_their_share_of_the_year():
    # 48 hours are 7.4 of 1,344 modelled ones.
    made = with_events(
        future(1), (event(factor=2.0, until=date(2027, 3, 5)),), {"a|H100": 10.0}
    )  # fmt: skip
    assert int((made.demand["a|H100"] == 20.0).sum()) == 8


def test_events_that_cannot_be_counted_are_told():
    rules = (
        event(name="past", factor=2.0, **{"from": date(2026, 8, 1)}),
        event(name="nobody", factor=2.0, **{"class": "z"}),
        event(name="never", factor=2.0, chance=0.0),
    )
    made = with_events(future(4), rules, {"a|H100": 10.0})
    assert (made.demand["a|H100"] == 10.0).all()
    assert [text.split(":")[0] for text in made.warnings] == [
        "the event past is left out", "the event nobody is left out",
        "the event never is left out",
    ]  # fmt: skip
    assert span_of(rules[0], made.horizon) is None


def test_gpus_that_an_event_adds_are_shared_by_what_the_class_needs():
    horizon = year_ahead(horizon_of(bills.window().end, 24))
    paths = np.zeros((1, horizon.hours))
    names = ("a|A100", "a|H100", "b|H100")
    made = Future(horizon, dict.fromkeys(names, paths), (1.0,), dict.fromkeys(names, paths[0]))
    recent = {"a|A100": 1.0, "a|H100": 3.0, "b|H100": 50.0}
    found = with_events(made, (event(gpus=8.0),), recent).demand
    assert [float(found[name][0, -1]) for name in names] == [2.0, 6.0, 0.0]


def test_a_fleet_that_needs_nothing_has_a_future_without_demand():
    horizon = year_ahead(horizon_of(bills.window().end, 24))
    made = future_for([], bills.window().grid(), horizon, Settings())
    assert made.demand == {}
    assert made.probabilities == (1.0,)


def test_the_first_weeks_are_forecast_by_the_hour_and_events_fall_on_their_days():
    """Four weeks of 12 GPUs; the class ends after three of the four that follow."""
    days = pd.date_range(bills.START, periods=28 * 24, freq="h", unit="us")
    needs = [need(np.full(len(days), 12.0))]
    year = year_ahead(horizon_of(days[-1].to_pydatetime() + timedelta(hours=1), len(days)))
    bare = expected(needs, days, year, Settings())
    ends = event(**{"class": "training", "from": date(2026, 10, 20), "factor": 0})
    near = counted(bare, needs, (ends,)).near
    assert near is not None
    # The hours begin on 2026-09-29: 21 days are before the end.
    paths = near.demand["training|H100"]
    assert paths.shape[1] == 28 * 24
    assert (paths[:, : 21 * 24] > 0).all()
    assert not paths[:, 21 * 24 :].any()
    assert counted(bare, needs, (ends,), without="e").demand["training|H100"].min() > 0
