"""What commitments are worth where prices on demand move, on plans that add up by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.loses_if import hourly_spend
from planner.outcome import Plan, ReservedCount
from planner.price_moves import price_moves
from planner.supply import Supply, offers_from
from reports.risks import breaking_words
from tests import bills
from tests.planner.test_waterfall import ON_DEMAND, work_out
from tests.problems import firm, offer, problem


def moves_of(busy: int, *prices, terms: tuple[str, ...] = ("1y",)):
    """The price moves of a node that works in the first `busy` hours of a day."""
    fleet = bills.fleet(bills.node_hours("i-busy", range(busy)))
    book = bills.offers(ON_DEMAND, *prices)
    supply = Supply(offers_from(book, bills.shapes(), bills.as_numbers(fleet), terms), ())
    return price_moves(work_out(fleet, book, terms=terms).plan, supply)


def test_a_node_at_work_18_of_24_hours_bears_a_fall_of_a_sixth():
    """It replaces 8 x 18 / 24 x 6.88 = 41.28 USD an hour on demand and costs 8 x 4.30 = 34.40."""
    (one,) = moves_of(18, bills.price("reserved_1y", 4.30))
    assert (one.on_demand_per_month, one.other_per_month) == (Decimal("30134.4"), 0)
    assert (one.costs_per_month, one.term_months) == (Decimal(25112), 12)
    assert one.breaking_fall == pytest.approx(1 / 6, abs=1e-4)
    # 12 x (30,134.40 x (1, 0.8, 0.56, 1.15) - 25,112)
    assert [one.worth(move) for move in (0.0, -0.2, -0.44, 0.15)] == [
        Decimal("60268.80"), Decimal("-12053.76"), Decimal("-98840.83"), Decimal("114510.72"),
    ]  # fmt: skip
    # After m months 60,268.80 m / 12 are left, and 12,053.76 (12 - m) / 12 lost: m = 2.
    assert one.safe_after(-0.2) == pytest.approx(2.0)
    assert one.safe_after(0.15) == 0.0
    text = breaking_words(one)
    assert text == "16.7%; a fall of 44% loses only within the first 7.45 months"


def test_the_months_beyond_the_planned_year_count_in_full():
    """At 3.00 for three years: 8 x 730 x 36 x (6.88 - 3.00)."""
    (one,) = moves_of(24, bills.price("reserved_3y", 3.00), terms=("3y",))
    assert one.term_months == 36
    assert one.worth(0.0) == Decimal("815731.20")


def test_without_purchases_there_is_nothing_to_move():
    assert moves_of(12, bills.price("reserved_1y", 4.30)) == ()


def test_what_a_line_replaces_of_spot_does_not_fall_with_the_price_on_demand():
    """Of two GPUs one may use spot at 1: a reserved GPU leaves 4 on demand and none of spot."""
    case = problem(
        [firm("t|H100", ["a"], min_firm_share=0.5)], [offer("a", 4.0, 2.0, spot=1.0)],
        {"t|H100": [2, 2]},
    )  # fmt: skip
    both, one = (Plan((ReservedCount("a", "1y", count),)) for count in (2, 1))
    without, first, second = hourly_spend(case, [Plan(), one, both])
    weight = case.hour_weight * 2
    assert (without["on_demand"], without["spot"]) == pytest.approx((4 * weight, 1 * weight))
    assert (first["on_demand"], first["spot"]) == pytest.approx((0.0, 1 * weight))
    assert sum(second.values()) == pytest.approx(0.0, abs=1e-9)
