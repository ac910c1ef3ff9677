"""Solving: hand-computed optima, a brute force, the closed form, and truthful status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner import outcome, problem_file
from planner.problem import Block, Cvar, Existing, Quota, Reservation, SavingsPlan
from planner.solve import solve
from tests.problems import checked, close, deferrable, firm, offer, problem, two_hours

SHARED = Path(__file__).parents[2].parent / "shared" / "problems"
SOLVERS = ["highs", "cbc"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the solved examples are not beside the checkout")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["W1", "W2", "W3", "W4", "R1", "R2", "R3", "R4", "R5", "R6"])
def test_each_solved_example_reaches_its_known_optimum(name, solver):
    asked = problem_file.read(SHARED / f"{name}.json")
    assert checked(asked, solver=solver).objective == close(asked.optimal_objective)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_class_on_one_offer_reserves_what_is_busy_beyond_the_price_ratio(solver):
    # 168 h: 3 GPUs for 72 h, 9 for 48 h, 12 for 48 h. Reserved 2.34, on demand 3.90: a GPU must be
    # busy 60%. GPUs 1-3 are busy always, 4-9 for 96 / 168 = 57%: so 3. Then 6 GPUs x 48 h and
    # 9 x 48 h are bought: (3 x 2.34 x 168 + 288 x 3.90 + 432 x 3.90) x 365 / 7.
    demand = [3] * 72 + [9] * 48 + [12] * 48
    asked = problem(
        [firm("w", ["a"])], [offer("a", 3.90, 2.34)], {"w": demand}, hour_weight=365 / 7
    )
    result = checked(asked, solver=solver)
    assert [(r.offer, r.id, r.count) for r in result.reservations] == [("a", "1y", 3)]
    assert result.objective == close((3 * 2.34 * 168 + 720 * 3.90) * 365 / 7)
    assert result.costs["reserved"] == close(3 * 2.34 * 168 * 365 / 7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_dearest_alternative_takes_the_shared_pool_first(solver):
    # A pool at 2.30 serves inference (else 4.20 on demand) before evaluation (else spot, 1.80 /
    # 0.9 = 2.00 a useful hour). One day: inference 6 x 8 h, 14 x 10 h, 8 x 6 h; evaluation
    # 10 x 8 h, 2 x 10 h, 6 x 6 h. The 14th GPU displaces 2.20 of 4.20 ... in 24 h; with 14:
    # 14 x 2.30 x 24 = 772.80, and evaluation lacks 2 x 8 h and 2 x 10 h: 36 x 2.00 = 72.
    day = {"inf": [6] * 8 + [14] * 10 + [8] * 6, "eval": [10] * 8 + [2] * 10 + [6] * 6}
    offers = [
        offer("pool", None, 2.30),
        offer("od", 4.20),
        offer("spot", None, spot=1.80, spot_throughput=0.9),
    ]
    asked = problem([firm("inf", ["pool", "od"]), firm("eval", ["pool", "spot"])], offers, day)
    result = checked(asked, solver=solver)
    assert [r.count for r in result.reservations] == [14]
    assert result.objective == close(772.80 + 72.0)
    # 36 useful GPU-hours are 40 paid ones.
    assert result.dispatch.query("kind == 'spot'")["gpus"].sum() == close(40.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_waiting_work_fills_the_gaps_of_owned_capacity(solver):
    # 8 owned GPUs, training 8 8 2 2 8 8: 12 GPU-hours are idle. 18 GPU-hours of preparation may
    # run in any of the six hours: 12 are free, 6 cost 4.
    asked = problem(
        [firm("train", ["a"]), deferrable("prep", ["a"], 5)],
        [offer("a", 4.0, gpus=8, existing=(Existing(8, 6),))],
        {"train": [8, 8, 2, 2, 8, 8], "prep": [18, 0, 0, 0, 0, 0]},
    )
    result = checked(asked, solver=solver)
    assert result.objective == close(24.0)
    # All 48 owned GPU-hours are used, whoever uses them.
    assert result.dispatch.query("kind == 'reserved'")["gpus"].sum() == close(48.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_savings_plan_commits_for_what_is_busy_beyond_its_discount(solver):
    # 4 GPUs for 5 h, 12 for 5 h; on demand 4.00, plan 2.80: a GPU must be busy 70%. 1-4 are
    # always, the others half the time: 4 x 2.80 x 10 h + 8 x 4.00 x 5 h.
    asked = problem(
        [firm("w", ["a"])],
        [offer("a", 4.0, sp_rate=2.8)],
        {"w": [4] * 5 + [12] * 5},
        savings_plans=(SavingsPlan("aws"),),
    )
    result = checked(asked, solver=solver)
    assert result.objective == close(112 + 160)
    assert [(p.provider, p.usd_per_hour) for p in result.savings_plans] == [("aws", close(11.2))]


@pytest.mark.parametrize("solver", SOLVERS)
def test_whole_instances_on_demand_are_paid_whole(solver):
    # 5 GPUs for 2 h on 8-GPU machines: one instance, 8 x 4.00 x 2 h, three GPUs for nothing.
    asked = problem(
        [firm("w", ["a"])], [offer("a", 4.0, gpus=8)], {"w": [5, 5]}, on_demand_integer=True
    )
    result = checked(asked, solver=solver)
    assert result.objective == close(64.0)
    assert result.dispatch["gpus"].tolist() == [8.0, 8.0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_capacity_block_is_bought_where_it_is_cheaper_than_on_demand(solver):
    # 8 GPUs in hours 1 and 2. A block of 8 costs 3.00 x 8 x 2 = 48, on demand 4.00 x 8 x 2 = 64.
    block = Block("k", "a", 8, start=1, length=2, price=3.0, max=2)
    asked = problem([firm("w", ["a"])], [offer("a", 4.0)], {"w": [0, 8, 8, 0]}, blocks=(block,))
    result = checked(asked, solver=solver)
    assert [(b.id, b.count) for b in result.blocks] == [("k", 1)]
    assert result.costs["blocks"] == close(48.0)
    assert result.objective == close(48.0)


def test_a_quota_sends_the_rest_to_the_next_offer_and_then_to_shortage():
    # 10 GPUs: 4 at 3.00 in the full region, 3 at 5.00 in the other, 3 not served at 100.
    offers = [offer("a", 3.0), offer("b", 5.0, region="eu")]
    quotas = (Quota("aws", "us", 4), Quota("aws", "eu", 3))
    result = checked(problem([firm("w", ["a", "b"])], offers, {"w": [10]}, quotas=quotas))
    assert result.objective == close(4 * 3.0 + 3 * 5.0 + 3 * 100.0)
    assert result.costs["shortage"] == close(300.0)


def test_a_quota_counts_paid_spot_and_not_useful_spot():
    # Quota 4, throughput 0.5: 4 paid spot GPUs at 1.00 are 2 useful; the third is on demand
    # elsewhere at 9.00. On demand inside the quota costs 8.00 a GPU, so spot and on demand mix:
    # s + z <= 4 paid, 0.5 s + z + e = 3. All spot: 4 + 9 = 13. z = 1, s = 3: 3 + 8 + 0.5 x 9 =
    # 15.5. z = 2, s = 2: 2 + 16 = 18. So 13.
    offers = [offer("a", 8.0, spot=1.0, spot_throughput=0.5), offer("b", 9.0, region="eu")]
    quotas = (Quota("aws", "us", 4),)
    result = checked(problem([firm("w", ["a", "b"])], offers, {"w": [3]}, quotas=quotas))
    assert result.objective == close(13.0)


def test_the_upfront_budget_limits_reservations_and_is_no_cost():
    # 10 GPUs always busy, reserved 2.00 with 1000 upfront, on demand 4.00, budget 3500: 3 GPUs.
    way = Reservation("all", 2.0, upfront=1000.0)
    one = offer("a", 4.0, reservations=(way,))
    result = checked(problem([firm("w", ["a"])], [one], {"w": [10] * 5}, upfront_budget=3500.0))
    assert [r.count for r in result.reservations] == [3]
    assert result.objective == close((3 * 2.0 + 7 * 4.0) * 5)


def test_egress_makes_a_near_offer_win_and_is_told_apart():
    # 2 GPUs: at home 4.00, away 3.00 + 0.50 egress: away. 2 x 3.00 and 2 x 0.50.
    offers = [offer("home", 4.0), offer("away", 3.0, egress={"w": 0.5})]
    result = checked(problem([firm("w", ["home", "away"])], offers, {"w": [2]}))
    assert (result.costs["on_demand"], result.costs["egress"]) == (close(6.0), close(1.0))


def test_risk_aversion_reserves_for_the_bad_scenario():
    # 10 or 20 GPUs for 10 h, each with p 0.5; reserved 2, on demand 3. Without risk the GPUs
    # 11-20 are busy 50% < 2 / 3: R = 10, cost 200 + 0.5 x 300 = 350. With lambda 1 and beta 0.5
    # the worst case counts once more: each of them saves (0.5 + 1) x 3 > 2: R = 20, cost 400.
    futures = [(0.5, {"w": [10] * 10}), (0.5, {"w": [20] * 10})]
    classes, offers = [firm("w", ["a"])], [offer("a", 3.0, 2.0)]
    calm = checked(problem(classes, offers, futures))
    wary = checked(problem(classes, offers, futures, cvar=Cvar(1.0, 0.5)))
    assert (calm.objective, wary.objective) == (close(350.0), close(400.0))
    assert calm.reservations[0].count == 10
    assert wary.reservations[0].count == 20


def test_with_one_scenario_the_risk_term_is_a_factor_on_usage():
    # 5 GPUs at 4.00 for one hour: 20, and lambda 0.5 x CVaR 20 = 10.
    asked = problem([firm("w", ["a"])], [offer("a", 4.0)], {"w": [5]}, cvar=Cvar(0.5, 0.9))
    result = checked(asked)
    assert (result.objective, result.costs["cvar"]) == (close(30.0), close(10.0))


def test_existing_capacity_is_free_until_it_expires():
    # 4 owned until hour 2, 6 needed: 2 bought for two hours, 6 in the third. 10 x 4.00.
    one = offer("a", 4.0, existing=(Existing(3, 2), Existing(1, 2)))
    result = checked(problem([firm("w", ["a"])], [one], {"w": [6, 6, 6]}))
    assert result.objective == close(40.0)


def test_no_demand_costs_nothing_though_capacity_is_owned():
    one = offer("a", 4.0, 2.0, existing=(Existing(8, 2),))
    result = checked(problem([firm("w", ["a"])], [one], {"w": [0, 0]}))
    assert (result.objective, result.bound, len(result.dispatch)) == (0.0, 0.0, 0)


def test_merged_classes_are_split_again_by_demand_and_by_release():
    # Two firm classes of equal rules, 3 and 1 GPUs: the one spot share is theirs 3 to 1. Two
    # waiting classes of equal rules: what was released first is served first.
    offers = [offer("a", 4.0, spot=1.0, spot_throughput=1.0, existing=(Existing(2, 9),))]
    classes = [firm("f1", ["a"], min_firm_share=0.5), firm("f2", ["a"], min_firm_share=0.5)]
    asked = problem(classes, offers, {"f1": [3.0], "f2": [1.0]})
    spot = checked(asked).dispatch.query("kind == 'spot'").set_index("class")["gpus"]
    assert dict(spot) == {"f1": close(1.5), "f2": close(0.5)}

    owned = [offer("a", 4.0, existing=(Existing(2, 9),))]
    waits = [deferrable("d1", ["a"], 3), deferrable("d2", ["a"], 3)]
    asked = problem(waits, owned, {"d1": [4, 0, 0, 0], "d2": [0, 4, 0, 0]})
    result = checked(asked)
    assert result.objective == close(0.0)
    served = result.dispatch.pivot_table(index="hour", columns="class", values="gpus", fill_value=0)
    assert served["d1"].tolist() == [close(2), close(2), close(0), close(0)]
    assert served["d2"].tolist() == [close(0), close(0), close(2), close(2)]


def test_the_same_problem_gives_the_same_bytes():
    first, second = (solve(two_hours()) for _ in range(2))
    documents = [result.as_json() | {"seconds": 0} for result in (first, second)]
    assert json.dumps(documents[0]) == json.dumps(documents[1])
    assert first.dispatch.equals(second.dispatch)


def test_the_document_has_the_fields_of_the_contract():
    document = solve(two_hours()).as_json()
    assert list(document) == [
        "status", "objective", "bound", "gap", "seconds", "solver",
        "reservations", "savings_plans", "blocks", "costs", "audited",
    ]  # fmt: skip
    assert list(document["costs"]) == list(outcome.COSTS)
    assert json.loads(json.dumps(document)) == document
