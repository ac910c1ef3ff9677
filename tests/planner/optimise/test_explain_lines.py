"""What is said of each bought line: expected values by hand, from the last unit of it."""

from __future__ import annotations

import pytest

from planner.optimise import engine
from planner.optimise.explain import explain
from planner.outcome import Plan, ReservedCount
from planner.problem import Block, Existing, Quota, SavingsPlan
from planner.solve import solve
from tests.problems import close, deferrable, firm, offer, problem

MONTH = 730


def why(asked, **how):
    return solve(asked, method="decomposition", gap=1e-7, with_why=True, **how).why


def test_the_expected_share_weighs_scenarios_by_their_probabilities():
    # At work in all hours of a future of 0.9, in none of the other.
    futures = [(0.9, {"c": [1, 1]}), (0.1, {"c": [0, 0]})]
    asked = problem([firm("c", ["a"])], [offer("a", 4.0, 2.0)], futures)
    (line,) = why(asked).lines
    assert (line.expected_share, line.break_even_share) == (close(0.9), close(2.0 / 4.0))
    # 0.9 x 4.00 less 2.00 an hour.
    assert line.one_fewer_usd_per_month == close(1.6 * MONTH)
    # Spot is not sold: nothing is said of it.
    assert line.instead == "657.0 GPU-hours a month on demand on a at $4"


def test_a_block_beside_a_reservation_has_a_share_of_its_own():
    # 9 GPUs in the last two of four hours: 8 of a block, one reserved for all four.
    block = Block("b", "a", 8, 2, 2, 1.0, 1)
    asked = problem(
        [firm("c", ["a"])], [offer("a", 4.0, 2.0)], {"c": [1, 1, 9, 9]}, blocks=(block,)
    )
    one, other = why(asked).lines
    assert (one.kind, one.expected_share, one.break_even_share) == ("reservation", 1.0, close(0.5))
    assert (other.kind, other.expected_share, other.break_even_share) == ("block", 1.0, close(0.25))
    # Without the block 8 GPUs in 2 of 4 hours at 4.00 in place of 1.00.
    assert other.one_fewer_usd_per_month == close(8 * 3.0 / 2 * MONTH)


def test_the_share_is_of_the_last_instance_not_of_all():
    # The third GPU is at work in 6 of 10 hours, the others in all.
    asked = problem([firm("c", ["a"])], [offer("a", 4.0, 2.0)], {"c": [3] * 6 + [2] * 4})
    (line,) = why(asked).lines
    assert (line.count, line.expected_share) == (3.0, close(0.6))


def test_break_even_is_against_what_would_be_bought_instead():
    # W2: of the 14th GPU 10 hours a day replace on demand at 4.20, 14 hours spot at 2.00 a useful
    # hour: 70.00 for 24 hours, 2.9167 on average. 2.30 / 2.9167.
    inference = [6] * 8 + [14] * 10 + [8] * 6
    evaluation = [10] * 8 + [2] * 10 + [6] * 6
    sold = [
        offer("pool", None, 2.3),
        offer("od", 4.2),
        offer("sp", None, spot=1.8, spot_throughput=0.9),
    ]
    classes = [firm("inference", ["pool", "od"]), firm("eval", ["pool", "sp"])]
    asked = problem(classes, sold, {"inference": inference, "eval": evaluation})
    (line,) = why(asked).lines
    assert (line.count, line.expected_share) == (14.0, close(1.0))
    assert line.break_even_share == close(2.30 / (70 / 24))
    assert line.one_fewer_usd_per_month == close((70 - 24 * 2.30) / 24 * MONTH)
    assert line.instead == (
        "425.8 GPU-hours a month as spot on sp at $2, "
        "304.2 GPU-hours a month on demand on od at $4.2"
    )


def test_break_even_counts_the_surcharge_of_the_alternative():
    # On demand at 3.00 and 1.00 of egress, against 2.00 reserved without.
    sold = [offer("a", None, 2.0), offer("b", 3.0, egress={"c": 1.0})]
    (line,) = why(problem([firm("c", ["a", "b"])], sold, {"c": [1] * 4})).lines
    assert line.break_even_share == close(2.0 / 4.0)


def test_owned_capacity_is_used_before_the_last_instance():
    # 2 GPUs are owned; of 4 needed for 6 hours and 3 for 4, the last reserved one has 6 hours.
    sold = offer("a", 4.0, 2.0, existing=(Existing(2.0, 10),))
    asked = problem([firm("c", ["a"])], [sold], {"c": [4] * 6 + [3] * 4})
    (line,) = why(asked).lines
    assert (line.count, line.expected_share) == (2.0, close(0.6))


def test_waiting_work_counts_as_use():
    # One GPU for 4 hours of work that may wait for all of them.
    asked = problem([deferrable("c", ["a"], 3)], [offer("a", 4.0, 2.0)], {"c": [4, 0, 0, 0]})
    (line,) = why(asked).lines
    assert (line.expected_share, line.break_even_share) == (close(1.0), close(0.5))


def test_a_savings_plan_has_shares_of_its_last_dollar():
    # W4: 4 GPUs for 5 hours, then 12: the commitment for four pays above 2.80 / 4.00.
    asked = problem(
        [firm("c", ["a"])],
        [offer("a", 4.0, sp_rate=2.8)],
        {"c": [4] * 5 + [12] * 5},
        savings_plans=(SavingsPlan("aws"),),
    )
    (line,) = why(asked).lines
    assert line.count == pytest.approx(11.2, rel=1e-5)
    assert line.break_even_share == pytest.approx(0.7, rel=1e-5)
    assert line.expected_share == pytest.approx(1.0, abs=1e-5)
    assert line.binding == "break-even"  # never whole instances: it is sold by the dollar
    assert line.instead == ("260.7 GPU-hours a month on demand on a at $4")


def two_scarce():
    """A class that only spot serves, under a quota of 2, and one of plans alone, under one of 3."""
    sold = [
        offer("s", None, spot=1.0, region="y"),
        offer("p", None, sp_rate=2.0, region="z"),
    ]
    classes = [
        firm("spotonly", ["s"], shortage_penalty=30.0),
        firm("planonly", ["p"], shortage_penalty=40.0),
    ]
    one = {"spotonly": [4, 1, 4], "planonly": [5, 5, 5]}
    return problem(
        classes,
        sold,
        [(0.5, one), (0.5, one)],
        savings_plans=(SavingsPlan("aws"),),
        quotas=(Quota("aws", "y", 2.0), Quota("aws", "z", 3.0)),
    )


def test_a_plan_that_a_quota_keeps_small_names_that_quota_and_the_shortage_without_it():
    (line,) = why(two_scarce()).lines
    assert line.binding == "quota aws z"
    # A dollar less is half a GPU that nobody else sells.
    assert line.instead == "365.0 GPU-hours a month not served, " \
        "at $40 each"  # fmt: skip
    # 20 of shortage less 1 saved, for each dollar.
    assert line.one_fewer_usd_per_month == pytest.approx(19 * MONTH, rel=1e-5)


def test_an_alternative_under_a_quota_of_nothing_is_not_named():
    # The cheaper offer may not be bought at all.
    sold = [offer("a", 4.7, 1.3), offer("b", 3.5, region="c")]
    asked = problem([firm("c", ["a", "b"])], sold, {"c": [2] * 4}, quotas=(Quota("aws", "c", 0.0),))
    (line,) = why(asked).lines
    assert line.instead == "730.0 GPU-hours a month on demand on a at " \
        "$4.7"  # fmt: skip


def test_a_line_that_pays_only_within_the_gap_says_so():
    # The second GPU is at work in 9 of 20 hours and pays at 10: a wide gap leaves it bought.
    asked = problem([firm("c", ["a"])], [offer("a", 4.0, 2.0)], {"c": [2] * 9 + [1] * 11})
    found = engine.at_plan(asked, Plan((ReservedCount("a", "1y", 2),)), "highs")
    (line,) = explain(asked, found, engine.dispatch(found)).lines
    # 20 x 2.00 less 9 x 4.00, in 20 hours.
    assert line.one_fewer_usd_per_month == close(-4 / 20 * MONTH)
    assert line.instead.endswith("; $146.00 a month less, within the gap")
    assert (line.expected_share, line.break_even_share) == (close(0.45), close(0.5))
