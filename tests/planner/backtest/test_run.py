"""The run of all policies: by hand, and blind to what lies ahead of each step."""

from __future__ import annotations

import numpy as np
import pytest

from data.errors import ConfigError
from planner.backtest.result import FORESIGHT, LOADFACTOR
from planner.backtest.run import backtest
from planner.forecast.inputs import Advice, Interval
from tests.backtests import NAN, demand, last_hour, terms

RULES = [
    "loadfactor", "all_on_demand", "peak", "mean", "quantile", "quantile_firm_spot_defer",
    "lp_on_history", "cloud_replay", "foresight",
]  # fmt: skip


def random_demand(seed: int, missing: float = 0.03):
    rng = np.random.default_rng(seed)
    gpus = rng.integers(0, 12, (60, 2)).astype(float)
    gpus[rng.random((60, 2)) < missing] = NAN
    return demand(gpus, gpus * rng.random((60, 2)), classes=("a", "b"))


def test_every_policy_of_the_contract_stands_in_its_order():
    found = backtest(demand([1] * 8), terms(), 0.5, last_hour)
    assert [one.policy for one in found.policies] == RULES
    assert (found.train_hours, found.test_hours) == (4, 4)


def test_the_odd_hour_belongs_to_the_test():
    found = backtest(demand([1] * 4_419), terms(replan_hours=672), 0.5, last_hour)
    assert (found.train_hours, found.test_hours) == (2_209, 2_210)


def test_reservations_are_bought_at_steps_and_charged_for_the_held_hours_of_the_test():
    """History 3; then 5 GPUs for 8 hours. Step at hour 4: buy 3; at hour 8: 2 more.

    Reserved 2 x (3 x 8 + 2 x 4) = 64, on demand 4 x 2 x 4 = 32. Best constant level: 5 for 80.
    """
    found = backtest(demand([3] * 4 + [5] * 8), terms(), 1 / 3, last_hour)
    mine = found.named(LOADFACTOR)
    assert mine.levels == ((4, 3), (8, 5))
    assert (mine.costs.reserved, mine.costs.on_demand) == (64.0, 32.0)
    assert found.named(FORESIGHT).levels == ((4, 5),)
    assert found.named(FORESIGHT).costs.usd == 80.0
    assert found.over_foresight(LOADFACTOR) == pytest.approx(0.2)
    assert found.named("all_on_demand").costs.usd == 160.0
    assert [(step.hour, step.bought) for step in mine.decisions] == [(4, 3), (8, 2)]


def test_a_reservation_ends_after_its_term_and_is_bought_again_at_a_step():
    """Term 6, steps every 4: bought at 4, ended at 10, bought again at 12 of 16 hours."""
    found = backtest(demand([2] * 16), terms(term_hours=6), 0.25, last_hour)
    assert found.named(LOADFACTOR).levels == ((4, 2), (10, 0), (12, 2))
    assert found.named("peak").levels == ((4, 2), (10, 0), (12, 2))
    assert found.named(LOADFACTOR).costs.reserved == 2 * 2 * 10
    assert found.named(FORESIGHT).costs.reserved == 2 * 2 * 12


def test_the_step_is_told_what_is_held_and_when_it_ends():
    seen = []

    def adviser(history, given):
        seen.append((history.next_hour, given.held, given.hours_left))
        return last_hour(history, given)

    backtest(demand([2] * 12), terms(), 1 / 3, adviser)
    assert seen == [(4, (), None), (8, ((4, 10_004, 2),), None)]


@pytest.mark.parametrize("seed", range(8))
def test_changing_the_future_changes_nothing_decided_before_it(seed):
    """From each step on, everything is made different; no earlier purchase of any policy moves."""
    made = random_demand(seed)
    rules = terms(replan_hours=7, term_hours=20, gpus_per_instance=2)
    before = backtest(made, rules, 0.4, last_hour)
    for hour in range(24, made.hours, 7):
        gpus, waiting = made.gpus.copy(), made.deferrable.copy()
        gpus[hour:], waiting[hour:] = 500 * (1 + seed % 3), 0.0
        changed = demand(gpus, waiting, made.classes)
        after = backtest(changed, rules, 0.4, last_hour)
        for name in RULES[:-1]:
            old, new = before.named(name).decisions, after.named(name).decisions
            steps = [step for step in old if step.hour <= hour]
            assert steps == [step for step in new if step.hour <= hour], (name, hour)
        assert before.named("peak").costs.usd != after.named("peak").costs.usd


def test_a_class_that_appears_later_does_not_show_before():
    table = np.full((400, 2), NAN)
    table[:, 0], table[350:, 1] = 1.0, 9.0
    seen = []

    def adviser(history, given):
        seen.append(history.classes)
        return last_hour(history, given)

    backtest(demand(table, classes=("a", "b")), terms(replan_hours=160), 0.5, adviser)
    assert seen == [("a",), ("a", "b")]


@pytest.mark.parametrize("seed", range(6))
def test_hours_without_a_reading_cost_no_policy_anything(seed):
    """With them cut out of the test half, every policy that buys once costs the same."""
    made = random_demand(seed, missing=0.0)
    holes = made.gpus.copy()
    holes[40:45] = NAN
    rules = terms(replan_hours=1_000, spot=None, max_delay_hours=0)
    with_gap = demand(holes, made.deferrable, made.classes)
    keep = np.r_[0:40, 45:60]
    without = demand(holes[keep], made.deferrable[keep], made.classes)
    train = 24
    first = backtest(with_gap, rules, train / 60, last_hour)
    second = backtest(without, rules, train / 55, last_hour)
    for name in RULES:
        assert first.named(name).costs.usd == pytest.approx(second.named(name).costs.usd), name


def test_foresight_is_a_bound_for_every_policy_that_buys_once():
    for seed in range(12):
        rules = terms(replan_hours=1_000, gpus_per_instance=1 + seed % 3)
        found = backtest(random_demand(seed), rules, 0.5, last_hour)
        least = min(one.costs.usd for one in found.policies)
        assert found.named(FORESIGHT).costs.usd == pytest.approx(least)


def test_intervals_are_compared_until_the_next_step_and_from_the_first():
    """Demand 1 to 8 after 4 hours of 0: the first range covers 1 to 4, the second 7 alone."""

    def adviser(history, given):
        low, high = (0.0, 4.0) if history.hours == 4 else (7.0, 7.0)
        ranges = Interval(0.8, np.full(99, low), np.full(99, high))
        return Advice(0, "none", interval=ranges)

    found = backtest(demand([0] * 4 + list(range(1, 9))), terms(), 1 / 3, adviser)
    assert (found.coverage.hours, found.coverage.covered) == (8, 5)
    assert (found.coverage.hours_ahead, found.coverage.covered_ahead) == (8, 4)
    assert found.as_json()["interval"]["covered_share"] == 5 / 8


def test_what_is_lost_if_on_demand_requests_fail():
    """2 of 5 GPUs run on demand in half of the hours: a fifth of all demand; half of it fails."""
    found = backtest(demand([3] * 4 + [5] * 8), terms(), 1 / 3, last_hour)
    mine = found.named(LOADFACTOR)
    assert mine.lost_share(0.5) == pytest.approx(0.5 * 8 / 40)
    assert [case["failing_share"] for case in found.as_json()["policies"][0]["if_on_demand_fails"]]


def test_no_demand_costs_nothing_and_is_nothing_over_foresight():
    found = backtest(demand([0] * 8), terms(), 0.5, last_hour)
    assert all(one.costs.usd == 0 for one in found.policies)
    assert found.over_foresight("peak") == 0.0


def test_a_cost_over_a_bound_of_nothing_has_no_ratio():
    found = backtest(demand([5] * 4 + [0] * 4), terms(), 0.5, last_hour)
    assert found.named("peak").costs.usd == 2 * 5 * 4
    assert found.over_foresight("peak") is None
    assert found.as_json()["policies"][2]["over_foresight"] is None


def test_a_part_without_a_reading_is_refused():
    with pytest.raises(ConfigError, match="training") as caught:
        backtest(demand([NAN] * 4 + [1] * 4), terms(), 0.5, last_hour)
    assert [one.where for one in caught.value.problems] == ["the training part"]
    with pytest.raises(ConfigError) as caught:
        backtest(demand([1]), terms(), 0.5, last_hour)
    assert caught.value.exit_code == 2


def test_advice_that_is_no_whole_number_of_instances_is_no_advice():
    with pytest.raises(ValueError, match="whole instances"):
        backtest(demand([1] * 8), terms(gpus_per_instance=2), 0.5, lambda *_known: Advice(3, "odd"))


def test_a_warning_of_several_steps_is_told_once_with_the_first_of_them():
    """Steps at hours 4, 8 and 12 of a demand that begins at hour 100."""

    def adviser(history, given):
        said = [f"only {history.hours} hours.", "3 hours (25.0%) have no reading and are left out."]
        return Advice(0, "none", (*said, "odd") if history.hours == 12 else tuple(said))

    rules = terms(replan_hours=4)
    gaps = demand([1] * 16, start=100, notes=("3 of 16 hours have no reading",))
    assert backtest(gaps, rules, 0.25, adviser).warnings == (
        "3 of 16 hours have no reading",
        "planning step of hour 104: only 4 hours. The same at 2 later steps.",
        "planning step of hour 112: odd",
    )
