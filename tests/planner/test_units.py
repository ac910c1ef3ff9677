"""Magnitudes: prices, demand and probabilities far from one, and prices far from each other."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from planner import problem_file
from planner.cli import main
from planner.model.units import Units, units_of
from planner.problem import Block, Existing, Quota, Reservation, SavingsPlan
from planner.solve import solve
from tests.problems import deferrable, firm, offer, problem

HERE = Path(__file__).parent / "magnitudes"
METHODS = ["decomposition", "direct"]
SOLVERS = ["highs", "cbc"]


def near(value):
    """Equal relative to its own size, however small that is."""
    return pytest.approx(value, rel=1e-6, abs=0.0)


def busy(price=1.0, gpus=1.0, size=2, p=1.0):
    """One class of 4, 2 and 0 GPUs in three hours; on demand 3, reserved 1.1 in instances of 2."""
    demand = {"c": [4 * gpus, 2 * gpus, 0.0]}
    nothing = {"c": [0.0, 0.0, 0.0]}
    futures = [(1.0, demand)] if p == 1.0 else [(p, demand), (1 - p, nothing)]
    return problem(
        [firm("c", ["a"], shortage_penalty=100.0 * price)],
        [offer("a", 3.0 * price, 1.1 * price, gpus=size)],
        futures,
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("*.json")))
def test_each_file_of_odd_magnitudes_reaches_the_optimum_of_a_plain_program(name, method, solver):
    # optimal_objective is that of a mixed-integer program written apart from this one, of prices
    # divided by the typical one.
    asked = problem_file.read(HERE / f"{name}.json")
    result = solve(asked, gap=1e-7, method=method, solver=solver)
    assert result.status == "optimal"
    assert result.objective == near(asked.optimal_objective)
    assert result.bound <= result.objective
    assert math.fsum(result.costs.values()) == near(result.objective)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("price", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9])
def test_a_plan_does_not_depend_on_the_unit_of_money(price, method):
    # One instance: 2 x 1.1 x 3 = 6.6, and 2 GPUs on demand in the first hour, 2 x 3 = 6: 12.6.
    # None: 6 x 3 = 18. Two: 13.2.
    result = solve(busy(price), gap=1e-7, method=method)
    assert result.status == "optimal"
    assert [one.count for one in result.reservations] == [1]
    assert result.objective == near(12.6 * price)
    assert result.costs["on_demand"] == near(6.0 * price)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("price", [1e-6, 1.0])
def test_demand_of_a_thousandth_of_a_gpu_is_bought_on_demand(price, method):
    # 0.006 GPU-hours x 3; an instance would cost 6.6.
    result = solve(busy(price, gpus=1e-3), gap=1e-7, method=method)
    assert result.status == "optimal"
    assert result.reservations == ()
    assert result.objective == near(0.018 * price)
    rows = result.dispatch.sort_values("hour")
    assert rows["gpus"].tolist() == [near(0.004), near(0.002)]


@pytest.mark.parametrize("method", METHODS)
def test_demand_of_a_million_gpus_is_reserved_to_the_same_share(method):
    # In instances of 2,000,000 GPUs it is the plan of one in instances of 2.
    result = solve(busy(gpus=1e6, size=2_000_000), gap=1e-7, method=method)
    assert result.status == "optimal"
    assert [one.count for one in result.reservations] == [1]
    assert result.objective == near(12.6e6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("price", [1e-3, 1.0])
def test_demand_of_a_rare_scenario_alone_is_served_at_the_least_price(price, method):
    # 6 GPU-hours x 3, once in a million; whatever is reserved costs its price for certain.
    result = solve(busy(price, p=1e-6), gap=1e-7, method=method)
    assert result.status == "optimal"
    assert result.reservations == ()
    assert result.objective == near(18e-6 * price)
    assert result.costs["shortage"] == 0.0


def test_a_rare_scenario_is_dispatched_as_if_it_were_certain():
    # 4 certain GPU-hours x 3; once in a million 4 more, on spot at 0.5 / 0.5 rather than at 3.
    offers = [offer("a", 3.0, spot=0.5, spot_throughput=0.5)]
    c = firm("c", ["a"], min_firm_share=0.5)
    asked = problem([c], offers, [(1 - 1e-6, {"c": [0.0]}), (1e-6, {"c": [8.0]})])
    for method in METHODS:
        result = solve(asked, gap=1e-7, method=method)
        assert result.objective == near(1e-6 * (4 * 3.0 + 4 * 1.0))


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30])
def test_every_kind_of_purchase_scales_with_the_unit_of_money(factor):
    plain = Units()
    scaled = Units(price=factor)
    asked = everything()
    first = solve(asked, gap=1e-7)
    second = solve(scaled.problem(asked), gap=1e-7)
    assert plain.problem(asked) is asked
    assert second.objective == near(first.objective * factor)
    assert [one.count for one in second.reservations] == [one.count for one in first.reservations]
    for kind, usd in first.costs.items():
        assert second.costs[kind] == pytest.approx(usd * factor, rel=1e-6, abs=1e-9 * factor)


@pytest.mark.parametrize("method", METHODS)
def test_a_cost_that_is_little_beside_what_is_owned_is_not_called_optimal_beyond_its_gap(method):
    # 1,000 GPUs are owned; 0.25 GPUs of the second hour cost 3 each on demand: 0.75.
    asked = problem(
        [firm("c", ["a"])],
        [offer("a", 3.0, 1.1, gpus=2, existing=(Existing(1000.0, 2),))],
        {"c": [900.0, 1000.25]},
    )
    result = solve(asked, gap=1e-9, method=method)
    assert result.bound <= result.objective
    assert result.objective == near(0.75)
    assert result.status == "optimal"
    assert result.gap <= 2e-9


def everything():
    """A class that waits and one that does not, a quota, a plan, a block, owned GPUs, a budget."""
    a = offer(
        "a",
        4.0,
        gpus=2,
        reservations=(Reservation("1y", 1.5, upfront=10.0),),
        spot=1.0,
        spot_throughput=0.5,
        sp_rate=2.5,
        existing=(Existing(1.0, 2),),
        egress={"w": 0.25},
    )
    return problem(
        [firm("c", ["a"], min_firm_share=0.5), deferrable("w", ["a"], window=1)],
        [a],
        {"c": [4.0, 6.0, 8.0], "w": [2.0, 0.0, 3.0]},
        quotas=(Quota("aws", "us", 4.0),),
        savings_plans=(SavingsPlan("aws"),),
        blocks=(Block("k", "a", 2, 1, 2, 1.2, 1),),
        upfront_budget=40.0,
    )


def test_units_there_and_back_change_no_digit():
    units = Units(price=2.0**20, gpus=2.0**7, upfront=2.0**-5)
    asked = everything()
    there = units.problem(asked)
    offered = there.offers[0]
    assert (offered.gpus, offered.on_demand, offered.sp_rate) == (256, 4 * 2.0**20, 2.5 * 2.0**20)
    # The row of the budget, upfront x GPUs <= budget, is multiplied by one factor.
    row = offered.reservations[0].upfront * offered.gpus
    assert there.upfront_budget / row == asked.upfront_budget / (10.0 * 2)
    found = solve(asked, gap=1e-7)
    away = replace(
        found,
        objective=found.objective * units.usd,
        bound=found.bound * units.usd,
        plan=units.plan(found.plan),
        costs={kind: usd * units.usd for kind, usd in found.costs.items()},
        dispatch=found.dispatch.assign(
            gpus=found.dispatch["gpus"] * units.gpus,
            useful_gpus=found.dispatch["useful_gpus"] * units.gpus,
        ),
    )
    back = units.back(away)
    assert (back.objective, back.bound, back.plan) == (found.objective, found.bound, found.plan)
    assert back.costs == found.costs
    assert back.dispatch.equals(found.dispatch)


def test_usual_magnitudes_keep_the_units_of_the_file():
    # 2,000 GPUs x 3 hours x 3 USD are 18,000 USD.
    week = problem([firm("c", ["a"])], [offer("a", 3.0, 1.1)], {"c": [2000.0, 2000.0, 2000.0]})
    assert units_of(week).same
    assert not units_of(busy(1e-9)).same


def test_the_previous_plan_and_the_reasons_are_told_in_the_money_of_the_file():
    # On demand 3e-9 in each of two hours, the plan's rate 2e-9: 1 GPU costs it 2e-9 an hour.
    asked = problem(
        [firm("c", ["a"], shortage_penalty=1e-7)],
        [offer("a", 3e-9, sp_rate=2e-9)],
        {"c": [1.0, 1.0]},
        savings_plans=(SavingsPlan("aws"),),
    )
    best = solve(asked, gap=1e-7, method="decomposition", with_why=True)
    assert best.savings_plans[0].usd_per_hour == near(2e-9)
    assert best.objective == near(4e-9)
    line = best.why.lines[0]
    assert (line.kind, line.count) == ("plan", near(2e-9))
    again = solve(asked, gap=1e-7, method="decomposition", previous=best.plan)
    assert again.plan == best.plan


def test_prices_a_thousand_million_times_apart_are_warned_of_and_not_called_optimal(
    tmp_path, capsys
):
    # A shortage at 4e9 against 3 on demand.
    document = {
        "hours": 1,
        "classes": [{"id": "c", "kind": "firm", "offers": ["a"], "shortage_penalty": 4e9}],
        "offers": [{"id": "a", "provider": "aws", "region": "us", "gpus": 1, "on_demand": 3.0}],
        "scenarios": [{"p": 1.0, "demand": {"c": [2.0]}}],
    }
    path = tmp_path / "apart.json"
    path.write_text(json.dumps(document))
    assert main(["solve", str(path), "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "feasible"
    assert answer["objective"] == near(6.0)
    assert "from 3 to 4e+09 USD per GPU-hour differ" in answer["warnings"][0]
