"""The plan that buys nothing ahead, by hand, and a direct run that ends before it has another."""

from __future__ import annotations

import json

import pytest

from planner import solvers
from planner.optimise.buy_nothing import buy_nothing
from planner.problem import Existing, Quota
from planner.solve import solve
from tests.problems import broken_rules, close, firm, offer, problem
from tests.program import call
from tools.bench import make_problem


def costs(asked):
    """The entries that are not zero, the same with a dispatch and without."""
    told, dispatch = buy_nothing(asked, with_dispatch=True)
    assert buy_nothing(asked, with_dispatch=False)[0] == close(told)
    assert len(dispatch)
    return {kind: usd for kind, usd in told.items() if usd}


def test_what_a_quota_leaves_is_bought_by_the_hour_and_the_rest_is_short():
    offers = [offer("a", 4.0, 1.0)]
    asked = problem([firm("w", ["a"])], offers, {"w": [10]}, quotas=(Quota("aws", "us", 6),))
    # 6 GPUs at 4.00 and 4 short at 100; the reservation at 1.00 would pay and is not bought.
    assert costs(asked) == close({"on_demand": 24.0, "shortage": 400.0})


def test_hours_that_look_alike_in_several_scenarios_count_for_each_of_them():
    demand = [(0.9, {"w": [10, 2]}), (0.1, {"w": [10, 4]})]
    asked = problem([firm("w", ["a"])], [offer("a", 4.0)], demand)
    # 10 GPUs for sure, then 2 or 4: (10 + 0.9 x 2 + 0.1 x 4) x 4.00.
    assert costs(asked) == close({"on_demand": 48.8})


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, {"on_demand": 16 * 4.0}),  # 10 GPUs are two instances of 8
        ({"quotas": (Quota("aws", "us", 12),)}, {"shortage": 1000.0}),  # none is bought at all
    ],
)
def test_whole_instances_are_rounded_up_unless_a_quota_counts_them(more, found):
    offers = [offer("a", 4.0, gpus=8)]
    asked = problem([firm("w", ["a"])], offers, {"w": [10]}, on_demand_integer=True, **more)
    assert costs(asked) == close(found)


def test_what_is_owned_is_used_before_an_instance_is_bought():
    offers = [offer("a", 4.0, gpus=8, existing=(Existing(4, 1),))]
    asked = problem([firm("w", ["a"])], offers, {"w": [10, 10]}, on_demand_integer=True)
    # 6 GPUs are lacking in the first hour, one instance; 10 in the second, two.
    assert costs(asked) == close({"on_demand": 3 * 8 * 4.0})


@pytest.mark.parametrize("whole", [False, True])
def test_a_direct_run_without_time_gives_that_plan_with_its_gap(whole):
    offers = [offer("a", 4.0, 1.0, gpus=8)]
    asked = problem([firm("w", ["a"])], offers, {"w": [10] * 24}, on_demand_integer=whole)
    result = solve(asked, method="direct", time_limit=1e-6)
    assert (result.status, result.bound, result.gap) == ("feasible", 0.0, 1.0)
    assert result.objective == close((16 if whole else 10) * 4.0 * 24)
    assert result.solver == "highs (not reached)"
    assert result.audited.difference == close(0.0)
    assert result.warnings[0].startswith("the time ended before the direct model had a plan")
    assert broken_rules(asked, result) == []


def test_a_solver_that_ends_without_a_plan_leaves_its_bound(monkeypatch):
    def ends(lp, **how):
        return solvers.Run(False, False, 300_000.0, "highs 9", 0.1)

    monkeypatch.setattr(solvers, "run", ends)
    demand = {"w": [10_000] * 24}
    asked = problem([firm("w", ["a"])], [offer("a", 4.0, 1.0)], demand, hour_weight=2.0)
    result = solve(asked, method="direct")
    # 10,000 GPUs at 4.00 for 24 hours of weight 2; the bound is per hour weight.
    assert (result.objective, result.bound) == (close(1_920_000.0), close(600_000.0))
    assert result.solver == "highs 9"


def test_a_model_too_large_for_its_time_ends_in_time_with_exit_code_4(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(make_problem(classes=10, hours=2000)))
    answer = call("solve", path, "--method", "direct", "--time-limit", "0.1", "--json")
    assert (answer.code, answer.json["status"]) == (4, "feasible")
    assert answer.json["seconds"] < 10.0
    assert answer.json["gap"] > 1e-4
    assert "the time ended" in answer.err
