"""Advice on histories plain enough to reckon by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.forecast.inputs import Held
from planner.forecast.known import known_of
from planner.forecast.policy import advise, held_on
from planner.forecast.scenarios import quick_interval
from planner.forecast.worth import fall, has_ended, price_of_waiting, worth_of
from tests.forecasts import NAN, history, terms

THREE_YEARS = {"reserved": 1.7, "term_hours": 26_280}
DAY, MONTH = 24, 30 * 24


def test_steady_demand_is_reserved_whole_and_the_numbers_are_those_of_the_formula():
    """Ten GPUs for 30 days never fall. Lags 1 to 7 give 182 pairs of days, 26 a lag; three days
    of a fall of 0.07 among 29: 0.07 x sqrt(3 / 29). Trust lost: 1 - exp(-6 x that).
    """
    past = history([10.0] * MONTH)
    known = known_of(past)
    assert fall(known.daily()) == pytest.approx(0.07 * math.sqrt(3 / 29))
    worth = worth_of(past, known, terms())
    doubt = 1 - math.exp(-6 * 0.07 * math.sqrt(3 / 29))
    assert worth.doubt == pytest.approx(doubt)
    assert worth.asked() == pytest.approx(2.6 * (1 + 0.06 * doubt))
    assert worth.of_next(9) == pytest.approx(3.9)
    assert worth.of_next(10) == 0
    assert advise(past, terms()).gpus == 10


def test_a_gpu_busy_half_of_the_time_pays_at_three_years_not_at_one():
    """Ten GPUs by day and four by night: 1/2 lies under 2.6 / 3.9 and over 1.7 / 3.9."""
    past = history(([4.0] * 12 + [10.0] * 12) * 30)
    assert advise(past, terms()).gpus == 4
    assert advise(past, terms(**THREE_YEARS)).gpus == 10


def test_work_that_may_wait_counts_at_the_price_of_spot():
    """Six firm and four that may wait: a useful spot hour costs 1.6 / 0.9 = 1.78."""
    past = history([10.0] * MONTH, share=0.4)
    assert price_of_waiting(past, terms()) == pytest.approx(1.6 / 0.9)
    assert advise(past, terms()).gpus == 6
    assert advise(past, terms(**THREE_YEARS)).gpus == 10
    assert advise(past, terms(spot=None)).gpus == 10


def test_work_released_once_a_day_needs_a_gpu_all_day_where_there_is_no_spot():
    """24 GPU-hours each midnight may run in any of the 25 hours: one GPU is busy enough."""
    waiting = np.zeros((MONTH, 1))
    waiting[::24] = 24
    past = history(np.zeros(MONTH))
    past = type(past)(past.firm, waiting, past.classes)
    assert advise(past, terms(spot=None)).gpus == 1
    assert advise(past, terms()).gpus == 0


def test_spot_counts_only_where_it_can_be_had_before_the_deadline():
    """None ever: the price is that of on demand; every other hour: always within a day."""
    none = history([1.0] * 100, spot_available=np.zeros(100))
    assert price_of_waiting(none, terms()) == pytest.approx(3.9)
    often = history([1.0] * 100, spot_available=np.tile([0.0, 1.0], 50))
    assert price_of_waiting(often, terms()) == pytest.approx(1.6 / 0.9)


def test_instances_are_whole_and_a_half_used_one_is_not_bought():
    """Twelve GPUs: the second instance of eight would save 3.9 / 2 = 1.95 an hour."""
    assert advise(history([12.0] * MONTH), terms(gpus_per_instance=8)).gpus == 8
    assert advise(history([12.0] * MONTH), terms(gpus_per_instance=8, **THREE_YEARS)).gpus == 16


def test_what_is_held_counts_in_full_and_too_much_is_let_expire():
    past = history([10.0] * MONTH)
    assert advise(past, terms(held=(Held(0, 9_000, 4.0),))).gpus == 6
    enough = advise(past, terms(held=(Held(0, 9_000, 10.0),)))
    assert enough.gpus == 0
    assert "enough" in enough.reason
    many = advise(past, terms(held=(Held(0, 9_000, 25.0),)))
    assert many.gpus == 0
    assert "expire" in many.reason


def test_what_is_owned_is_told_in_numbers_for_people():
    """A commitment in dollars holds parts of GPUs: 8.2 USD at 2.03 USD are 4.0394."""
    past = history([4.0] * MONTH)

    def told(gpus):
        return advise(past, terms(held=(Held(0, 9_000, gpus),))).reason

    assert told(4.0394).startswith("The 4 GPUs owned are enough")
    assert told(17.0331).startswith("Let part of the 17 GPUs owned expire")
    assert told(3_000_000.25).startswith("Let part of the 3,000,000 GPUs owned expire")
    one = advise(history([1.0] * MONTH), terms(held=(Held(0, 9_000, 1.0),))).reason
    assert one.startswith("The 1 GPU owned is enough")
    half = advise(history([0.5] * MONTH), terms(held=(Held(0, 9_000, 0.5),))).reason
    assert half.startswith("The 0.5 GPUs owned are enough")


def test_what_ends_soon_is_renewed_now_only_if_waiting_costs_more():
    """A third of the time to the next step, 224 of 672 hours, is where both cost the same."""
    assert held_on(terms(held=(Held(0, 1_000 + 223, 5.0),)), 1_000) == 0
    assert held_on(terms(held=(Held(0, 1_000 + 225, 5.0),)), 1_000) == 5
    assert held_on(terms(held=(Held(1_001, 9_000, 5.0),)), 1_000) == 0


def test_a_need_that_ends_before_the_reservation_pays_buys_none():
    """2.60 for 8,760 hours spread over 5,000 is 4.56 a useful hour; over 7,000 it is 3.25."""
    past = history([10.0] * MONTH)
    short = advise(past, terms(hours_left=5_000))
    assert short.gpus == 0
    assert "5000 hours" in short.reason
    assert advise(past, terms(hours_left=7_000)).gpus == 10
    assert advise(past, terms(hours_left=0)).gpus == 0


def test_growth_is_bought_as_it_comes_and_a_new_level_is_believed_after_a_while():
    grown = history(np.repeat([10.0, 20.0], [60 * DAY, 30 * DAY]))
    assert advise(grown, terms()).gpus == 20
    fallen = history(np.repeat([20.0, 10.0], [60 * DAY, 30 * DAY]))
    assert advise(fallen, terms()).gpus == 10


def test_demand_that_swings_is_reserved_with_more_caution_than_calm_demand():
    """Weeks of 2 and of 10 GPUs, now at 10: the first eight above two are not sure enough."""
    swinging = history(np.repeat([10.0, 2.0] * 6 + [10.0], 7 * DAY))
    calm = history(np.repeat([10.0] * 13, 7 * DAY))
    assert advise(swinging, terms()).gpus == 2
    assert advise(calm, terms()).gpus == 10


def test_a_weekend_is_no_fall():
    """Ten GPUs on five days and eight on two; today is Monday, after the weekend."""
    week = [10.0] * 5 + [8.0] * 2
    assert advise(history(np.repeat(week * 8, DAY)), terms()).gpus == 10


def test_demand_has_ended_when_it_is_away_for_longer_than_ever():
    def ended(*spans):
        gpus = [level for level, days in spans for _ in range(days * DAY)]
        return has_ended(known_of(history(gpus)))

    assert ended((5.0, 60), (0.0, 7))
    assert not ended((5.0, 60), (0.0, 6))
    assert not ended((5.0, 30), (0.0, 5), (5.0, 30), (0.0, 9))
    assert ended((5.0, 30), (0.0, 4), (5.0, 30), (0.0, 9))


def test_the_range_takes_in_more_of_the_scenarios_the_more_demand_has_fallen():
    """Calm demand: about 3/4 of them; demand that fell to a tenth and back: over 8 in 10.

    Trust lost is 1 - exp(-6 x fall) for each, and the range is said to hold 80% in both cases.
    """
    noise = np.random.default_rng(4).lognormal(0, 0.1, 60 * DAY)
    calm = history(100 * noise)
    fallen = history(np.repeat([100.0, 10.0] * 10, 3 * DAY) * noise)
    for past, doubt in ((calm, (0.0, 0.4)), (fallen, (0.99, 1.0))):
        known = known_of(past)
        assert doubt[0] < worth_of(past, known, terms()).doubt <= doubt[1]
        given = advise(past, terms()).interval
        least = quick_interval(past, len(given.low), 0.74 + 0.14 * doubt[0])
        most = quick_interval(past, len(given.low), 0.74 + 0.14 * doubt[1])
        assert given.share == 0.8
        assert (most.low <= given.low).all()
        assert (given.low <= least.low).all()
        assert (least.high <= given.high).all()
        assert (given.high <= most.high).all()


def test_the_reason_names_what_the_last_gpu_and_the_next_would_save():
    advice = advise(history(([4.0] * 12 + [10.0] * 12) * 30), terms())
    assert advice.reason.startswith("The last GPU saves 3.90 USD an hour and must save 2.6")
    assert "the next would save 1.95" in advice.reason
    none = advise(history(([0.0] * 12 + [10.0] * 12) * 30), terms())
    assert none.reason.startswith("Buy nothing yet: the first GPU would save 1.95")


def test_a_history_with_holes_gives_the_advice_of_the_whole_one():
    gpus = np.array(([4.0] * 12 + [10.0] * 12) * 30)
    holes = gpus.copy()
    holes[[100, 300, 301, 302]] = NAN
    assert advise(history(holes), terms()).gpus == advise(history(gpus), terms()).gpus
