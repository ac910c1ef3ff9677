"""The back-test of every night, on demand whose cost can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from planner.forecast.inputs import Advice, Held, History
from planner.ladder import Pool, Rung
from planner.own_backtest import backtests, used_shares
from tests.backtests import demand, terms

if TYPE_CHECKING:
    from planner.purchases import Purchase

HOURS = 2 * 28 * 24  # half of it unseen: one planning step of 28 days


def rung(family: str, gpus: np.ndarray, **prices) -> Rung:
    """A pool that needs `gpus` and owns 5 for good, which no back-test knows of."""
    history = History(gpus[:, None], np.zeros((len(gpus), 1)), ("training",))
    rules = terms(
        spot=None, term_hours=8760, replan_hours=672, held=(Held(0, 9999, 5.0),), **prices
    )
    return Rung(Pool(family, "aws", (), ()), history, rules, Advice(0, ""), 0.0, 5.0)


def test_constant_demand_is_reserved_and_regrets_nothing():
    """8 GPUs for 672 unseen hours: 8 x 2 x 672 = 10,752 USD reserved, 21,504 on demand."""
    found = backtests([rung("H100", np.full(HOURS, 8.0))], HOURS, 336)
    (pool,) = found.pools
    assert (pool.pool, pool.train_hours, pool.test_hours) == ("aws H100", 672, 672)
    assert (pool.usd, pool.foresight_usd, pool.on_demand_usd) == (10752.0, 10752.0, 21504.0)
    assert (pool.steps, pool.purchases, pool.under_break_even) == (1, 1, 0)
    assert pool.reserved_gpus == 8
    mine = found.policies[0]
    assert (mine.policy, mine.usd, mine.over_foresight) == ("loadfactor", 10752.0, 0.0)
    assert found.policies[-1].policy == "foresight"


def test_demand_that_ends_where_nobody_could_know_it_is_regretted_and_told():
    """8 GPUs reserved for 672 hours in which nothing runs: 10,752 USD, where 0 was possible."""
    gpus = np.full(HOURS, 8.0)
    gpus[HOURS // 2 :] = 0.0
    found = backtests([rung("H100", gpus)], HOURS, 336)
    (pool,) = found.pools
    assert (pool.usd, pool.foresight_usd, pool.on_demand_usd) == (10752.0, 0.0, 0.0)
    assert (pool.purchases, pool.under_break_even) == (1, 1)
    assert found.policies[0].over_foresight is None


def test_policies_are_summed_over_pools():
    """8 GPUs at 2 USD and 3 GPUs at 2 of 3 USD: (8 + 3) x 2 x 672."""
    rungs = [
        rung("H100", np.full(HOURS, 8.0)),
        rung("A100", np.full(HOURS, 3.0), on_demand=3.0),
    ]
    found = backtests(rungs, HOURS, 336)
    assert [one.pool for one in found.pools] == ["aws A100", "aws H100"]
    usd = {one.policy: one.usd for one in found.policies}
    assert usd["foresight"] == 11 * 2 * 672
    assert usd["all_on_demand"] == 8 * 4 * 672 + 3 * 3 * 672


def purchase(gpus: float, rate: float, years: int, **more: object) -> Purchase:
    """A reservation on the offer o, as far as the back-test asks of it."""
    made = {
        "kind": "reserved", "cloud": "aws", "key": ("reserved", "o", ""), "gpus": gpus,
        "usd_per_hour": gpus * rate, "term_hours": years * 8760,
    }  # fmt: skip
    return cast("Purchase", SimpleNamespace(**(made | more)))


def test_where_the_plan_buys_the_test_is_at_the_rate_and_for_the_term_bought():
    """8 GPUs for 672 unseen hours at 1.10 USD: of 32 GPUs bought 24 are for three years, at
    (16 x 1 + 8 x 1.3) / 24. What is bought on another cloud is another pool's.
    """
    pool = rung("H100", np.full(HOURS, 8.0))
    pool = replace(pool, pool=replace(pool.pool, offers=("o",)))
    bought = (
        purchase(16.0, 1.0, 3), purchase(8.0, 1.9, 1),
        purchase(8.0, 1.3, 3, kind="savings_plan", key=("savings_plan", "aws", "aws")),
        purchase(99.0, 0.5, 5, kind="savings_plan", cloud="gcp"),
        purchase(99.0, 0.5, 5, key=("reserved", "elsewhere", "")),
    )  # fmt: skip
    (found,) = backtests([pool], HOURS, 336, bought).pools
    assert (found.rate, found.term_months) == (1.1, 36)
    assert found.usd == pytest.approx(8 * 1.1 * 672)
    (plain,) = backtests([pool], HOURS, 336).pools
    assert (plain.rate, plain.term_months) == (2.0, 12)


def test_a_history_that_is_too_short_has_none_and_says_so():
    found = backtests([rung("H100", np.full(100, 8.0))], 100, 336)
    assert found.pools == ()
    assert "100 hours of history, fewer than the 336" in found.notes[0]


def test_purchases_fill_in_the_order_in_which_they_were_made():
    """The window is hours 2 to 5: 4 GPUs from hour 2 and 2 more from hour 4, of 4, 2, 5, 6 needed.

    The first are at work (4 + 2 + 4 + 4) / 16, the second (1 + 2) / 4.
    """
    wanted = demand([9, 9, 4, 2, 5, 6])
    bought = [Held(2, 99, 4), Held(4, 99, 2)]
    assert used_shares(wanted, 2, bought, terms()) == pytest.approx([14 / 16, 3 / 4])


def test_work_that_spot_serves_for_less_does_not_fill_a_reservation():
    """Of 4 GPUs needed 3 may use spot: at 1.5 USD a useful hour, less than 2, one is left."""
    wanted = demand([4, 4, 4, 4], deferrable=[3, 3, 3, 3])
    cheap = terms(spot=1.5, spot_throughput=1.0)
    assert used_shares(wanted, 2, [Held(2, 99, 4)], cheap) == [0.25]
    dear = terms(spot=2.5, spot_throughput=1.0)
    assert used_shares(wanted, 2, [Held(2, 99, 4)], dear) == [1.0]
