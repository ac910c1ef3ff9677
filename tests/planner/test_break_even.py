"""How commitments would have been used in the past, on fleets small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from planner.break_even import held_before, used_over, weekly
from planner.horizon import horizon_of
from planner.owned import owned_from
from planner.settings import WorkloadClass
from planner.supply import Supply, offers_from
from tests import bills
from tests.planner.test_waterfall import IDLE_RESERVED, ON_DEMAND, committed, work_out

RESERVED = bills.price("reserved_1y", 4.30)


def rows_of(fleet, prices, owned=None, classes=()):
    window = bills.window()
    horizon = horizon_of(window.end, window.hours)
    bill = bills.as_numbers(fleet)
    offers = offers_from(prices, bills.shapes(), bill, ["1y"])
    table = bills.commitments() if owned is None else owned
    supply = Supply(offers, owned_from(table, bill, offers, horizon)[0])
    return held_before(work_out(fleet, prices, owned, classes), supply, window.hours)


def test_a_reserved_node_that_works_18_of_24_hours_stays_above_its_break_even():
    fleet = bills.fleet(bills.node_hours("i-busy", range(18)))
    (row,) = rows_of(fleet, bills.offers(ON_DEMAND, RESERVED))
    assert row.commitment == "Reserve 1 x p5.48xlarge in us-east-1 for 1 year"
    assert (row.gpus, row.is_owned, row.used_share) == (8.0, False, 0.75)
    assert row.break_even_share == pytest.approx(4.30 / 6.88)
    assert (row.weeks, row.weeks_under, row.lowest_share) == (1, 0, 0.75)


def test_an_owned_node_without_work_is_under_its_break_even():
    """It costs 4.00 of 6.88 USD, and 6 of its 24 hours have work."""
    fleet = bills.fleet(
        bills.node_hours("i-ri", range(24), **IDLE_RESERVED),
        bills.node_hours("i-busy", range(6)),
    )
    (row,) = rows_of(fleet, bills.offers(ON_DEMAND), bills.commitments(committed(400)))
    assert (row.commitment, row.place) == ("ri-1", "p5.48xlarge in us-east-1")
    assert (row.is_owned, row.used_share, row.weeks_under) == (True, 0.25, 1)
    assert row.break_even_share == pytest.approx(4.00 / 6.88, abs=1e-6)


def test_a_purchase_stands_above_what_is_owned_for_as_long_as_that_lasts():
    """Work for two nodes, the second for 18 hours; the owned one ends after 73 days."""
    fleet = bills.fleet(
        bills.node_hours("i-ri", range(24), **IDLE_RESERVED),
        bills.node_hours("i-1", range(24)),
        bills.node_hours("i-2", range(18)),
    )
    rows = rows_of(fleet, bills.offers(ON_DEMAND, RESERVED), bills.commitments(committed(73)))
    # The owned node fills first. Above it the one that is bought works in 18 of 24 hours for a
    # fifth of the year, and without it in all. A second would work in 0.8 x 18 / 24 = 60%: too few.
    assert [row.is_owned for row in rows] == [True, False]
    assert rows[1].gpus == 8.0
    assert rows[1].used_share == pytest.approx(0.2 * 0.75 + 0.8 * 1.0)


def test_work_that_is_cheaper_on_spot_counts_only_where_it_must_be_firm():
    rule = WorkloadClass(name="training", interruptible=True, min_firm_share=0.5)
    fleet = bills.fleet(bills.node_hours("i-1", range(24)), bills.node_hours("i-2", range(24)))
    prices = bills.offers(ON_DEMAND, RESERVED, bills.price("spot", 2.0))
    (row,) = rows_of(fleet, prices, classes=(rule,))
    # Half of 16 GPUs must be firm: the one node bought is at work in every hour, no more.
    assert (row.gpus, row.used_share) == (8.0, 1.0)


def test_weeks_are_counted_back_from_the_end():
    """24 hours at the start fill no week."""
    assert weekly(np.repeat([1.0, 0.25], [24, 168])).tolist() == [0.25]
    assert weekly(np.array([0.5, 1.0])).tolist() == [0.75]


def test_a_commitment_is_judged_while_it_lasts():
    """It lasts a quarter of the year, as what stands below it for longer does: 2 of 4 GPUs work."""
    assert used_over(np.array([10.0]), 4.0, 0.25, [(8.0, 1.0)]).tolist() == [0.5]
