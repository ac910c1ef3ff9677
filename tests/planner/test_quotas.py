"""Quotas of the configuration: what they limit in a plan, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data.errors import ConfigError
from planner.assemble import PlanRules, Stage, problem_at
from planner.config import parse_config
from planner.horizon import horizon_of
from planner.needs import needs_from
from planner.problem import Quota, QuotaUse
from planner.quotas import quotas_from
from planner.settings import QuotaRule, Settings, WorkloadClass
from planner.solve import solve
from planner.supply import Supply, offers_from
from tests import bills

if TYPE_CHECKING:
    from planner.assemble import Need
    from planner.problem import Problem

RULE = WorkloadClass(name="training", interruptible=True, min_firm_share=0.0)
HERE = {"cloud": "aws", "region": "us-east-1"}


def fleet_of_two() -> tuple[list[Need], Supply]:
    """Two nodes of 8 GPUs, busy a day on demand at 6.88; spot costs 2.50."""
    bill = bills.as_numbers(
        bills.fleet(bills.node_hours("i-1", range(24)), bills.node_hours("i-2", range(24)))
    )
    prices = bills.offers(bills.price("on_demand", 6.88), bills.price("spot", 2.5))
    supply = Supply(offers_from(prices, bills.shapes(), bill, ["1y"]), ())
    settings = Settings(classes=(RULE,))

    def everywhere(_rule: WorkloadClass, _family: str) -> set[str]:
        return set(supply.offers)

    needs = needs_from(bill, bills.window().grid(), settings, supply, everywhere)
    return list(needs), supply


def planned(*rules: QuotaRule) -> tuple[Problem, tuple[str, ...]]:
    needs, supply = fleet_of_two()
    quotas, notes = quotas_from(rules, needs, supply)
    window = bills.window()
    horizon = horizon_of(window.end, window.hours)
    problem = problem_at(Stage.SPOT, needs, supply, horizon, PlanRules(0.0, quotas=quotas))
    return problem, notes


def most_on_spot(problem: Problem) -> float:
    dispatch = solve(problem, method="decomposition", with_dispatch=True).dispatch
    spot = dispatch[dispatch["kind"] == "spot"]
    return float(spot.groupby("hour")["gpus"].sum().max()) if len(spot) else 0.0


def test_a_quota_of_spot_holds_back_what_moves_there() -> None:
    problem, notes = planned()
    assert most_on_spot(problem) > 16  # more than 16 are paid for 16 useful ones
    problem, notes = planned(QuotaRule(**HERE, gpus=8.0, uses=("spot",)))
    assert notes == ()
    assert problem.quotas == (Quota("aws", "us-east-1", 8.0, uses=(QuotaUse.SPOT,)),)
    assert most_on_spot(problem) == pytest.approx(8.0)


def test_a_quota_in_vcpus_counts_those_of_the_machine_type() -> None:
    # 192 vCPUs of 8 GPUs: 24 a GPU, so 240 allow 10 GPUs.
    problem, notes = planned(QuotaRule(**HERE, vcpus=240.0, uses=("spot",)))
    assert notes == ()
    assert {offer.vcpus for offer in problem.offers} == {192}
    assert most_on_spot(problem) == pytest.approx(10.0)


def test_a_quota_below_what_runs_today_is_raised_to_it_and_said() -> None:
    problem, notes = planned(QuotaRule(**HERE, gpus=4.0))
    assert [one.gpus for one in problem.quotas] == [16.0]
    assert notes == (
        "the quota of aws us-east-1 (4 GPUs) is below the 16 GPUs that ran there at once: "
        "these are taken as the limit",
    )


def test_a_quota_where_nothing_is_offered_limits_nothing_and_is_named() -> None:
    problem, notes = planned(QuotaRule(cloud="gcp", region="us-east5", gpus=8.0))
    assert problem.quotas == ()
    assert notes == (
        "the quota of gcp us-east5 limits nothing: no machine type of the plan is offered there",
    )


def read(text: str) -> Settings:
    return parse_config(text, Path("loadfactor.toml"))


def test_quotas_are_read_from_the_configuration() -> None:
    text = '[[quotas]]\ncloud = "aws"\nregion = "us-east-1"\n'
    (rule,) = read(text + 'vcpus = 1152\nuses = ["on_demand"]\n').quotas
    assert (rule.vcpus, rule.gpus, rule.uses) == (1152.0, None, ("on_demand",))
    for more, fault in (
        ("", "quotas[0]: needs a limit in one unit"),
        ("gpus = 1\nvcpus = 2\n", "quotas[0]: needs a limit in one unit"),
        (f"gpus = 1\n{text}gpus = 2\n", "quotas[1]: on_demand there is limited by quotas[0]"),
    ):
        with pytest.raises(ConfigError) as caught:
            read(text + more)
        assert any(str(one).startswith(fault) for one in caught.value.problems)
