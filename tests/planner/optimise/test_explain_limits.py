"""What more of a limit is worth, and why something was not bought: values by hand."""

from __future__ import annotations

import pytest

from planner.optimise import worth as pricing
from planner.problem import Block, CommitmentLimit, Existing, Quota, QuotaUse, Reservation
from planner.problem import SavingsPlan as Plan
from planner.solve import solve
from tests.planner.optimise.test_explain_lines import two_scarce
from tests.problems import close, firm, offer, problem

MONTH = 730


def why(asked):
    return solve(asked, method="decomposition", gap=1e-7, with_why=True).why


def limit(asked, name=None):
    (one,) = (one for one in why(asked).limits if name in (None, one.name))
    return one


def test_one_more_of_a_quota_is_priced_where_its_dual_is_many():
    # Blocks serve the one busy hour in full: an eighth of a GPU of spot would save nothing, one
    # vCPU less than none is not to be had.
    sold = [offer("a", None, spot=1.932, spot_throughput=0.851, vcpus=8)]
    one = Block("b", "a", 1, 0, 9, 0.943, 3)
    asked = problem(
        [firm("c", ["a"], shortage_penalty=1000.0)],
        sold,
        {"c": [0, 3, 0, 0, 0, 0, 0, 0, 0]},
        quotas=(Quota("aws", "us", vcpus=0.0),),
        blocks=(one,),
    )
    found = limit(asked)
    assert (found.usd_per_month, found.unit, found.exact) == (close(0.0), "vCPU", True)
    assert found.words == "one more vCPU would save nothing"


def test_one_more_of_a_quota_is_what_the_dispatch_saves_with_it():
    # Of 12 GPUs at 4.754 one could run at 3.572 if its region allowed any.
    sold = [offer("a", 3.572, gpus=8, sp_rate=3.019, region="c"), offer("b", 4.754, region="w")]
    asked = problem(
        [firm("c", ["a", "b"], shortage_penalty=50.0)],
        sold,
        {"c": [12]},
        savings_plans=(Plan("aws"),),
        quotas=(Quota("aws", "c", 0.0),),
    )
    found = limit(asked)
    assert (found.usd_per_month, found.exact) == (close(1.182 * MONTH), True)
    # A dollar an hour more of the plan for each 3.019 of it: 4.754 - 3.019 a GPU.
    assert found.words == (
        "one more GPU would save $862.86 a month; with $3.019 an hour more of the aws savings plan "
        "$1,266.55 a month"
    )


def test_the_part_of_one_more_that_is_of_use_is_all_that_it_saves():
    # Half a GPU is left over: a whole one more saves 0.5 x (100 - 4).
    asked = problem(
        [firm("c", ["a"])], [offer("a", 4.0)], {"c": [2.5]}, quotas=(Quota("aws", "us", 2.0),)
    )
    found = limit(asked)
    assert found.usd_per_month == close(48 * MONTH)
    assert found.at_most_usd_per_month == close(96 * MONTH)


def test_a_quota_that_no_demand_can_reach_is_listed_too():
    asked = problem(
        [firm("c", ["b"])], [offer("b", 3.0)], {"c": [5, 5]}, quotas=(Quota("aws", "us", 5.0),)
    )
    found = limit(asked)
    assert (found.name, found.usd_per_month) == ("aws us", 0.0)
    assert found.words == "no demand can reach it"


def test_a_quota_of_a_large_problem_is_told_as_a_bound(monkeypatch):
    monkeypatch.setattr(pricing, "_SMALL", 0)
    asked = problem(
        [firm("c", ["a"])], [offer("a", 4.0)], {"c": [2.5]}, quotas=(Quota("aws", "us", 2.0),)
    )
    found = limit(asked)
    assert (found.usd_per_month, found.exact) == (close(96 * MONTH), False)
    assert found.words == "one more GPU would save at most $70,080.00 a month"


def test_a_plan_may_be_what_a_quota_lacks():
    # x z: 3 GPUs, all under the plan; a fourth needs 2 more dollars an hour and saves 40.
    one, other = (limit(two_scarce(), name) for name in ("aws y", "aws z"))
    # Spot at 1.00 in place of 30.00, in 2 of 3 hours.
    assert (one.usd_per_month, one.exact) == (close(29 * 2 / 3 * MONTH), True)
    assert other.usd_per_month == pytest.approx(0.0, abs=0.1)
    assert other.words.endswith(
        "with $2 an hour more of the aws savings plan $27,740.00 a month"
    )  # fmt: skip


def test_the_budget_is_a_rate_and_the_next_instance_a_saving():
    # 8 GPUs at 1.00 in place of 4.00; of 8 x 1,000 upfront for the next 7,000 are missing.
    way = Reservation("1y", 1.0, upfront=1000.0)
    sold = offer("a", 4.0, gpus=8, reservations=(way,))
    asked = problem([firm("c", ["a"])], [sold], {"c": [16] * 4}, upfront_budget=9000.0)
    found = limit(asked)
    assert (found.unit, found.usd_per_month, found.exact) == ("USD", None, False)
    assert found.rate_usd_per_month == close(8 * 3.0 * MONTH / 8000)
    assert found.words == (
        "a rate of $2.19 a month for each USD, were instances sold in parts; the next instance of "
        "a/1y needs $7,000.00 more and would save $17,520.00 a month"
    )


def test_a_budget_that_forbids_no_instance_that_pays_says_so():
    # 3 GPUs do not pay for a second instance of 8: 24.00 saved, 3 x 4.00 replaced.
    way = Reservation("1y", 3.0, upfront=1000.0)
    sold = offer("a", 4.0, gpus=8, reservations=(way,))
    asked = problem([firm("c", ["a"])], [sold], {"c": [11] * 4}, upfront_budget=9000.0)
    found = limit(asked)
    assert (found.usd_per_month, found.rate_usd_per_month) == (None, close(8 * MONTH / 8000))
    assert found.words.endswith("; no whole instance more would pay")


def test_a_limit_of_commitments_tells_what_the_next_instance_needs():
    held = (CommitmentLimit("team", ("a",), 10.0),)
    asked = problem(
        [firm("c", ["a"])], [offer("a", 4.0, 2.0, gpus=8)], {"c": [16] * 2}, commitment_limits=held
    )
    found = limit(asked)
    assert found.words.endswith(
        "the next instance of a/1y needs 6 more GPUs and would save $11,680.00 a month"
    )


def test_a_dominated_reservation_saves_what_its_sibling_does():
    # An instance of 8 serves the one GPU: 4.00 an hour, of either.
    ways = (Reservation("1y", 0.6), Reservation("3y", 0.51))
    sold = offer("a", 4.0, gpus=8, reservations=ways)
    one, other = why(problem([firm("c", ["a"])], [sold], {"c": [1] * 4})).rejected
    assert (one.id, one.saves_usd_per_month, one.costs_usd_per_month) == (
        "1y", close(4.0 * MONTH), close(4.8 * MONTH),
    )  # fmt: skip
    assert one.reason == "another reservation that the same classes may use costs no more"
    assert (other.id, other.saves_usd_per_month) == ("3y", close(4.0 * MONTH))
    assert other.reason == "the first saves $2,920 a month and costs $2,978"
    assert one.exact
    assert other.exact


def test_a_reservation_of_other_hours_is_weighed_in_them():
    # "late" is there in 2 of 4 hours: the budget forbids it as it does its cheaper sibling.
    ways = (
        Reservation("late", 2.0, upfront=50.0, start=2, term=4),
        Reservation("all", 1.0, upfront=20.0),
    )
    sold = offer("a", 10.0, reservations=ways)
    asked = problem([firm("c", ["a"])], [sold], {"c": [1, 1, 1, 0]}, upfront_budget=10.0)
    found = {one.id: one for one in why(asked).rejected}
    # One busy hour of the last two, at 10.00, of 4; it costs 4 x 2.00.
    assert found["late"].saves_usd_per_month == close(10 / 4 * MONTH)
    assert found["late"].costs_usd_per_month == close(8 / 4 * MONTH)
    assert found["late"].exact
    assert found["late"].reason == "the upfront budget does not allow it"
    assert found["all"].saves_usd_per_month == close(30 / 4 * MONTH)
    assert found["all"].reason == "the upfront budget does not allow it"


def test_a_plan_that_a_quota_of_nothing_forbids_says_so():
    sold = [offer("a", 4.0, sp_rate=2.8, spot=1.0)]
    asked = problem(
        [firm("c", ["a"])],
        sold,
        {"c": [4, 4]},
        savings_plans=(Plan("aws"),),
        quotas=(Quota("aws", "us", 0.0),),
    )
    found = why(asked)
    (one,) = found.rejected
    assert (one.kind, one.id) == ("plan", "aws")
    assert one.reason == "the quota aws us (0 GPUs) does not allow what it would cover"
    assert [(u.kind, u.offer, u.reason) for u in found.unused] == [
        ("on_demand", "a", "the quota aws us (0 GPUs) does not allow it"),
        ("spot", "a", "the quota aws us (0 GPUs) does not allow it"),
    ]


def test_a_plan_dearer_than_a_shortage_and_one_of_no_class_say_so():
    # All is reserved at 1.00; less of it would be a shortage, not the plan.
    sold = [offer("a", 4.9, 1.0, sp_rate=3.2, gpus=8), offer("b", 4.0, sp_rate=2.0, provider="gcp")]
    asked = problem(
        [firm("c", ["a"], shortage_penalty=3.0)],
        sold,
        {"c": [8]},
        savings_plans=(Plan("aws"), Plan("gcp")),
    )
    found = why(asked)
    assert [(one.id, one.reason) for one in found.rejected] == [
        ("aws", "its rate on a ($3.2) is not below the price of a shortage of c ($3)"),
        ("gcp", "no class with demand may use it"),
    ]
    assert [one.costs_usd_per_month for one in found.rejected] == [close(MONTH)] * 2


def test_every_offer_by_the_hour_that_is_not_used_has_a_reason():
    sold = [
        offer("cheap", 2.0),
        offer("dear", 3.0, spot=2.5, spot_throughput=0.5),
        offer("other", 1.0),
        offer("never", 1.5, on_demand_available=(0.0, 0.0)),
        offer("ransom", 200.0),
        offer("far", None, spot=1.0),
    ]
    names = ["cheap", "dear", "never", "ransom", "far"]
    classes = [firm("c", names, min_firm_share=1.0)]
    found = why(problem(classes, sold, {"c": [4, 4]})).unused
    assert [(one.kind, one.offer, one.usd_per_gpu_hour, one.reason) for one in found] == [
        ("on_demand", "dear", 3.0, "cheap on demand at $2 a useful GPU-hour is no dearer"),
        ("spot", "dear", 5.0, "c may not run on spot"),
        ("spot", "far", 1.0, "c may not run on spot"),
        ("on_demand", "never", 1.5, "it is available in no hour"),
        ("on_demand", "other", 1.0, "no class with demand may use it"),
        ("on_demand", "ransom", 200.0, "a shortage of c costs $100, no more than this does"),
    ]


def test_what_owned_capacity_serves_is_not_bought():
    sold = [offer("a", 3.0, existing=(Existing(4.0, 9),))]
    (one,) = why(problem([firm("c", ["a"])], sold, {"c": [4, 4]})).unused
    assert one.reason == "what is owned or bought ahead serves its classes at no more cost"


def test_the_first_of_a_large_problem_is_told_as_a_bound(monkeypatch):
    monkeypatch.setattr(pricing, "_SMALL", 0)
    monkeypatch.setattr(pricing, "_WEIGHED", 0)
    asked = problem([firm("c", ["a"])], [offer("a", 4.0, 3.0, gpus=8)], {"c": [5] * 4})
    (one,) = why(asked).rejected
    # The slope of the first GPU, of all 8: 32.00; no more than 5 have a use.
    assert (one.saves_usd_per_month, one.exact) == (close(32 * MONTH), False)
    assert "at most $23,360" in one.reason


def test_quotas_of_spot_and_of_demand_are_told_apart():
    quotas = (
        Quota("aws", "us", 5.0, uses=(QuotaUse.ON_DEMAND,)),
        Quota("aws", "us", 2.0, uses=(QuotaUse.SPOT,)),
    )
    futures = [(0.9, {"c": [5, 9]}), (0.1, {"c": [50, 90]})]
    asked = problem(
        [firm("c", ["b"], shortage_penalty=50.0)],
        [offer("b", 3.0, spot=1.0)],
        futures,
        quotas=quotas,
    )
    # More spot saves 2.00 in hour 0 of the first future and 49.00 in the other hours; more on
    # demand 47.00 in those.
    short = 0.9 * 1 + 0.1 * 2
    assert limit(asked, "aws us spot").usd_per_month == close((0.9 * 2 + 49 * short) / 2 * MONTH)
    assert limit(asked, "aws us on_demand").usd_per_month == close(47 * short / 2 * MONTH)


def test_what_is_little_money_is_weighed_all_the_same():
    # 5 of 8 GPUs have a use, at 4e-11 in place of 3e-11: far less than a cent a month.
    one = firm("c", ["a"], shortage_penalty=1e-9)
    asked = problem([one], [offer("a", 4e-11, 3e-11, gpus=8)], {"c": [5] * 4})
    (found,) = why(asked).rejected
    assert found.saves_usd_per_month == pytest.approx(20e-11 * MONTH, rel=1e-6)
    assert found.costs_usd_per_month == pytest.approx(24e-11 * MONTH, rel=1e-6)
    assert found.reason == "the first saves $1.46e-07 a month and costs $1.75e-07"
