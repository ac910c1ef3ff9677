"""What stands in the way of demand that is not served, and how much of it: values by hand."""

from __future__ import annotations

import dataclasses

import pytest

from planner.problem import CommitmentLimit, Existing, Quota, QuotaUse, Reservation
from planner.solve import solve
from tests.planner.optimise.test_explain_lines import two_scarce
from tests.problems import close, deferrable, firm, offer, problem


def shortages(asked):
    return {
        one.workload_class: one
        for one in solve(asked, method="decomposition", gap=1e-7, with_why=True).why.shortages
    }


def limit(asked, name="c"):
    return shortages(asked)[name].limit


def test_a_quota_is_named_for_classes_that_only_spot_or_a_plan_serves():
    found = shortages(two_scarce())
    assert found["spotonly"].limit == "quotas used up: aws y (2 GPUs)"
    assert found["planonly"].limit == "quotas used up: aws z (3 GPUs)"


def test_hours_are_of_the_file_and_gpu_hours_the_mean_of_scenarios():
    # 2 GPUs short in hours 0 and 2 of both futures; 5 - 3 in all hours.
    found = shortages(two_scarce())
    assert (found["spotonly"].hours, found["spotonly"].gpu_hours) == (2, close(4.0))
    assert (found["planonly"].hours, found["planonly"].gpu_hours) == (3, pytest.approx(6.0, 1e-5))


def test_scenarios_with_a_shortage_are_named_with_their_probability():
    # Of 3 GPUs allowed 5 are needed in hour 1 of the first future, 9 in both of the second.
    futures = [(0.9, {"c": [3, 5]}), (0.1, {"c": [9, 9]})]
    asked = problem([firm("c", ["a"])], [offer("a", 4.0)], futures, quotas=(Quota("aws", "us", 3),))
    one = shortages(asked)["c"]
    assert (one.hours, one.first_hour, one.last_hour, one.gpus) == (2, 0, 1, 6.0)
    assert one.gpu_hours == close(0.9 * 2 + 0.1 * 12)
    assert one.mean_hours == close(0.9 * 1 + 0.1 * 2)
    assert [(s.scenario, s.p, s.hours, s.gpu_hours) for s in one.scenarios] == [
        (0, 0.9, 1, 2.0), (1, 0.1, 2, 12.0),
    ]  # fmt: skip


def test_two_quotas_of_one_region_are_told_apart():
    uses = ((QuotaUse.ON_DEMAND,), 5.0), ((QuotaUse.SPOT,), 2.0)
    quotas = tuple(Quota("aws", "us", gpus, uses=use) for use, gpus in uses)
    asked = problem([firm("c", ["a"])], [offer("a", 3.0, spot=1.0)], {"c": [9]}, quotas=quotas)
    assert limit(asked) == (
        "quotas used up: aws us (5 GPUs on demand), aws us (2 GPUs as spot)"
    )  # fmt: skip


def test_a_quota_that_other_hours_fill_is_not_named():
    # Hour 0 fills the quota and is served; in hour 1 the offer is half available.
    quota = (Quota("aws", "us", 10.0),)
    sold = [offer("a", 4.0, on_demand_available=(1.0, 0.5))]
    asked = problem([firm("c", ["a"])], sold, {"c": [10, 10]}, quotas=quota)
    assert limit(asked) == "not available in full: a"


def test_owned_capacity_that_ends_and_the_budget_are_named():
    # Two hours of 8 owned GPUs; another instance takes 8 x 100 of the 500 of the budget.
    way = Reservation("1y", 1.0, upfront=100.0)
    sold = offer("r", None, gpus=8, reservations=(way,), existing=(Existing(8.0, 2),))
    asked = problem(
        [firm("c", ["r"], shortage_penalty=30.0)], [sold], {"c": [8] * 4}, upfront_budget=500.0
    )
    assert limit(asked) == (
        "owned capacity on r ends at hour 2; "
        "the upfront budget ($500, $500 left): one more of r/1y takes $800"
    )


def test_a_budget_is_not_named_where_a_reservation_would_not_pay():
    # One GPU-hour of 4 short at 30.00 does not pay for 4 x 8.00.
    way = Reservation("1y", 8.0, upfront=100.0)
    sold = offer("r", None, reservations=(way,), existing=(Existing(1.0, 3),))
    asked = problem(
        [firm("c", ["r"], shortage_penalty=30.0)], [sold], {"c": [1] * 4}, upfront_budget=0.0
    )
    assert limit(asked) == "owned capacity on r ends at hour 3"


def test_a_limit_of_commitments_is_named():
    held = (CommitmentLimit("team", ("r",), 2.0),)
    asked = problem(
        [firm("c", ["r"])], [offer("r", None, 1.0)], {"c": [3] * 4}, commitment_limits=held
    )
    assert limit(asked) == "the commitment limit team (2 GPUs, 2 held)"


def test_owned_capacity_that_is_too_small_is_named():
    sold = offer("r", None, existing=(Existing(2.0, 9),))
    assert limit(problem([deferrable("c", ["r"], 1)], [sold], {"c": [3, 3, 3]})) == (
        "owned capacity on r (2 GPUs) is full"
    )


def test_the_shares_of_spot_are_named():
    sold = [offer("s", None, spot=1.0)]
    least = problem([firm("c", ["s"], min_firm_share=0.5)], sold, {"c": [4, 0, 4]})
    assert limit(least) == "min_firm_share 0.5: no more of it may run on spot"
    most = problem([firm("c", ["s"], spot_max_share_per_offer=0.25)], sold, {"c": [4]})
    assert limit(most) == "spot_max_share_per_offer 0.25 on s"


def test_a_class_that_may_not_run_on_spot_has_no_quota_of_spot_in_its_way():
    sold = [offer("s", None, spot=1.0, spot_available=(0.5,))]
    quota = (Quota("aws", "us", 0.0, uses=(QuotaUse.SPOT,)),)
    asked = problem([firm("c", ["s"], min_firm_share=1.0)], sold, {"c": [4]}, quotas=quota)
    assert limit(asked) == "min_firm_share 1: no more of it may run on spot"


def test_spot_that_is_not_available_in_full_is_named_as_spot():
    sold = [offer("s", None, spot=1.0, spot_available=(1.0, 0.5))]
    assert limit(problem([firm("c", ["s"])], sold, {"c": [4, 4]})) == (
        "not available in full: s as spot"
    )


def test_what_is_dearer_than_a_shortage_is_no_limit():
    asked = problem([firm("c", ["a"], shortage_penalty=1.0)], [offer("a", 4.0)], {"c": [1] * 3})
    text = "none of its offers is sold on demand below the price of a shortage"
    assert limit(asked) == text
    surcharge = problem(
        [firm("c", ["a"], shortage_penalty=5.0)], [offer("a", 4.0, egress={"c": 2.0})], {"c": [1]}
    )
    assert limit(surcharge) == text
    assert limit(dataclasses.replace(surcharge, quotas=(Quota("aws", "us", 0.0),))) == text
