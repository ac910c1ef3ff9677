"""The ladder on scenarios of thirteen steps of four weeks, reckoned by hand per GPU and step."""

from __future__ import annotations

import numpy as np
import pytest

from planner.forecast.inputs import Held
from planner.forecast.ladder import Market, Offer, ladder

STEP, STEPS = 672, 13
ONE_YEAR = Offer("1 year", 2.6, 13 * STEP)
THREE_YEARS = Offer("3 years", 1.7, 39 * STEP)


def scenario(*levels: float) -> np.ndarray:
    """Hours of thirteen steps; the last level goes on."""
    return np.repeat([*levels, *[levels[-1]] * (STEPS - len(levels))], STEP)


def weigh(*scenarios, offers=(ONE_YEAR,), **change):
    return ladder(np.stack(scenarios), Market(3.9, offers, **change))


def bought(found):
    return {one.offer: one.gpus for one in found.rungs}


def test_what_is_sure_is_bought_now_and_saves_the_step_that_waiting_would_lose():
    """Ten GPUs for ever: 1.30 x 672 hours x 10 over waiting, 13 times that in all."""
    found = weigh(scenario(10), scenario(10))
    assert bought(found) == {"1 year": 10}
    assert found.rungs[0].saves == pytest.approx(1.3 * STEP * 10)
    assert found.rungs[0].pays_in == 1
    assert found.saves == pytest.approx(13 * 1.3 * STEP * 10)
    assert found.reason == "Buy 10 GPUs for 1 year."


def test_what_may_end_at_once_is_better_waited_for():
    """In one of four scenarios demand falls to half within this step and to nothing after it.

    Now: 13 x 1.3 = 16.9 in three; 1.95 - 2.6 - 12 x 2.6 = -31.85 in the fourth: 4.7125 on average.
    Waiting: 12 x 1.3 = 15.6 in three, and nothing is bought in the fourth: 11.7.
    """
    ends = scenario(10, 0)
    ends[STEP // 2 : STEP] = 0
    found = weigh(scenario(10), scenario(10), scenario(10), ends)
    assert bought(found) == {}
    assert found.waiting_gpus == 10
    assert found.worth_of_waiting == pytest.approx((11.7 - 4.7125) * STEP * 10)
    assert found.saves == pytest.approx(11.7 * STEP * 10)
    assert found.saves_in_the_tail == 0
    assert found.reason.startswith("Buy nothing yet: 10 GPUs would pay, and pay better")


def test_only_the_layers_that_are_sure_are_bought():
    """Four GPUs stay in every scenario, six are gone for good in one."""
    ends = scenario(4, 4)
    ends[: STEP // 2] = 10
    found = weigh(scenario(10), scenario(10), scenario(10), ends)
    assert bought(found) == {"1 year": 4}
    assert found.waiting_gpus == 6


def test_the_long_term_is_cheaper_where_it_is_sure_and_dearer_where_it_is_not():
    """Where all end after six steps in half of the scenarios, three years lose
    (13 x 2.2 + 6 x 2.2 - 33 x 1.7) / 2 = -7.15, one year saves (16.9 + 7.8 - 18.2) / 2 = 3.25.
    """
    both = (ONE_YEAR, THREE_YEARS)
    assert bought(weigh(scenario(10), offers=both)) == {"3 years": 10}
    ends = scenario(*[10] * 6, 0)
    unsure = weigh(scenario(10), ends, offers=both)
    assert bought(unsure) == {"1 year": 10}


def test_caution_looks_at_the_worst_scenarios():
    """One in ten ends after six steps: 16.9 x 0.9 - 10.4 x 0.1 pays on average, not in the tail."""
    many = [scenario(10)] * 9 + [scenario(*[10] * 6, 0)]
    assert bought(weigh(*many)) == {"1 year": 10}
    careful = weigh(*many, caution=1.0)
    assert bought(careful) == {}


def test_prices_that_fall_fast_are_waited_for():
    """Sure demand, but in a year all costs a tenth: reserving at 2.60 soon exceeds on demand."""
    found = weigh(scenario(10), price_change_per_year=-0.9)
    assert bought(found) == {}
    assert bought(weigh(scenario(10), price_change_per_year=0.2)) == {"1 year": 10}


def test_what_is_held_is_renewed_only_when_it_ends():
    held = (Held(0, 4 * STEP, 6.0),)
    found = weigh(scenario(10), held=held)
    assert bought(found) == {"1 year": 4}
    assert found.saves == pytest.approx((13 * 4 + 9 * 6) * 1.3 * STEP)


def test_instances_are_whole():
    """Twelve GPUs: the second eight would be half used and save 1.95 for 2.60."""
    assert bought(weigh(scenario(12), gpus_per_instance=8)) == {"1 year": 8}


def test_many_layers_are_taken_together():
    found = weigh(scenario(100_000.0))
    assert bought(found)["1 year"] == pytest.approx(100_000, rel=0.02)


def test_without_demand_or_offers_nothing_is_bought():
    assert (
        weigh(scenario(0)).reason == "Buy nothing: no layer of the demand pays for a reservation."
    )
    assert weigh(scenario(10), offers=()).rungs == ()
    dear = Offer("1 year", 4.0, 8_760)
    assert weigh(scenario(10), offers=(dear,)).waiting_gpus == 0


def test_nothing_is_worse_than_never_buying_on_average():
    rng = np.random.default_rng(0)
    for _ in range(20):
        walks = 20 * np.exp(np.cumsum(rng.normal(0, 0.3, (10, STEPS)), axis=1)).repeat(STEP, axis=1)
        found = ladder(walks, Market(3.9, (ONE_YEAR, THREE_YEARS)))
        assert found.saves >= -1e-6
        assert found.saves_in_the_tail <= found.saves + 1e-6
