"""Availability, dated commitments and vCPU quotas in the decomposition: chains, formula, audit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner import solve as solving
from planner.model.reductions import reduce
from planner.optimise import chain, closed_form
from planner.optimise.audit import audit
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import first_stage
from planner.optimise.greedy import Greedy
from planner.outcome import Plan, ReservedCount
from planner.problem import Quota, QuotaUse, Reservation
from tests.problems import close, deferrable, firm, offer, problem
from tests.weeks import week


def solve(asked, **how):
    return solving.solve(asked, **({"method": "decomposition"} | how))


def scarce(asked, seed):
    """The problem with hourly availability of every offer, and commitments of every start."""
    rng = np.random.default_rng(seed)
    hours = asked.hours

    def shares():
        return tuple(rng.choice([0.0, 0.05, 0.2, 0.5, 1.0], hours).tolist())

    def dated(one):
        start, term = int(rng.integers(0, hours // 2)), int(rng.integers(hours // 4, hours))
        return dataclasses.replace(one, start=start, term=term)

    offers = tuple(
        dataclasses.replace(
            one,
            spot_available=shares(),
            on_demand_available=None if one.sp_rate is None else shares(),
            reservations=tuple(dated(way) for way in one.reservations),
        )
        for one in asked.offers
    )
    plans = tuple(dated(one) for one in asked.savings_plans)
    return dataclasses.replace(asked, offers=offers, savings_plans=plans)


@pytest.mark.parametrize(("seed", "full"), [(1, False), (2, False), (1, True), (2, True)])
def test_both_methods_and_both_solvers_agree(seed, full):
    asked = scarce(week(seed, full=full), seed)
    direct = solve(asked, gap=1e-7, method="direct")
    for solver in ("highs", "cbc"):
        result = solve(asked, gap=1e-6, solver=solver)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(direct.objective, rel=2e-6)
        assert result.bound <= direct.objective * (1 + 1e-6)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_closed_form_costs_what_the_dispatch_programs_cost(seed):
    reduced = reduce(scarce(week(seed, full=False), seed))
    assert reduced.limits
    assert closed_form.holds(reduced)
    first = first_stage(reduced)
    formula = closed_form.ClosedForm(reduced, first)
    programs = DispatchOracle(reduced, first)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        u = rng.uniform(0, 40, len(first.sources))
        one, other = formula.evaluate(u, np.inf), programs.evaluate(u, np.inf)
        assert one.cost == pytest.approx(other.cost, rel=1e-9)
        assert formula.by_kind(u).sum(axis=1) == pytest.approx(other.cost, rel=1e-9)
        there = rng.uniform(0, 40, len(first.sources))
        cut = one.value + one.slope @ (there - u)
        assert (cut <= formula.evaluate(there, np.inf).value + 1e-6).all()


@pytest.mark.parametrize("seed", [1, 4])
def test_a_chain_of_blocks_bounds_what_one_block_costs(seed, monkeypatch):
    asked = scarce(week(seed, full=True, hours=200, scenarios=1 + seed % 2), seed)
    whole = solve(asked, gap=1e-6)
    monkeypatch.setattr(chain, "LONGEST", 50)
    monkeypatch.setattr(chain, "INNER", 40)
    result = solve(asked, gap=1e-4, with_dispatch=True)
    assert result.bound <= whole.objective * (1 + 1e-7)
    assert result.objective >= whole.bound * (1 - 1e-7)
    assert result.gap < 1e-3
    assert audit(asked, result.plan, result.dispatch).faults == ()


def test_the_quick_dispatch_costs_no_less_than_the_best():
    reduced = reduce(scarce(week(5, full=True), 5))
    first = first_stage(reduced)
    quick, best = Greedy(reduced, first), DispatchOracle(reduced, first)
    rng = np.random.default_rng(5)
    for _ in range(3):
        u = rng.uniform(0, 20, len(first.sources))
        dear, least = quick.by_kind(u).sum(axis=1), best.exact(u, np.inf)
        assert (dear >= least * (1 - 1e-9)).all()


def audited(asked, plan, gpus):
    """The faults of a dispatch of class w on offer a, GPUs by kind and hour."""
    result = solve(asked)
    row = result.dispatch.iloc[0].to_dict()
    rows = [
        row | {"hour": hour, "class": "w", "offer": "a", "kind": kind, "gpus": float(n)}
        for kind, series in gpus.items()
        for hour, n in enumerate(series)
        if n
    ]
    return audit(asked, plan, type(result.dispatch)(rows)).faults


def test_the_audit_names_use_of_what_is_not_there():
    way = Reservation("1y", 1.0, start=1, term=1)
    sold = offer("a", 4.0, reservations=(way,), spot=2.0, vcpus=4, on_demand_available=(0.5, 1.0))
    quota = Quota("aws", "us", vcpus=8.0, uses=(QuotaUse.SPOT,))
    asked = problem([firm("w", ["a"])], [sold], {"w": [5, 5]}, quotas=(quota,))
    plan = Plan((ReservedCount("a", "1y", 5),))
    assert audited(asked, plan, {"on_demand": [2, 0], "spot": [2, 0], "reserved": [1, 5]}) == (
        "offer a: pool exceeded by 1 in scenario 0, hour 0 (1 hours in all)",
    )
    assert audited(asked, plan, {"on_demand": [2, 0], "spot": [3, 0], "reserved": [0, 5]}) == (
        "quota of aws us: exceeded by 4 in scenario 0, hour 0 (1 hours in all)",
    )
    assert audited(asked, plan, {"on_demand": [3, 0], "spot": [2, 0], "reserved": [0, 5]}) == (
        "class w: on demand on a above by 0.5 in scenario 0, hour 0 (1 hours in all)",
    )


def test_the_audit_counts_what_still_waits():
    sold = [offer("a", 1.0, on_demand_available=(0.5, 0.5))]
    asked = problem([deferrable("w", ["a"], 1)], sold, {"w": [8, 0]})
    # 4 of 8 may run, then 2 of the 4 left; 3 are one too many.
    faults = audited(asked, Plan(), {"on_demand": [4, 3]})
    assert "class w: on demand on a above by 1 in scenario 0, hour 1 (1 hours in all)" in faults


def test_last_nights_later_start_is_kept_though_a_twin_is_a_little_cheaper():
    ways = (Reservation("x", 2.001, start=4), Reservation("y", 2.0, start=4))
    asked = problem([firm("w", ["a"])], [offer("a", 4.0, reservations=ways)], {"w": [10] * 24})
    night = Plan((ReservedCount("a", "x", 10),))
    assert solve(asked).reservations == (ReservedCount("a", "y", 10),)
    assert solve(asked, previous=night, tolerance=0.001).plan == night


def test_why_weighs_a_later_start_over_its_own_hours():
    # There in 12 of 24 hours and paid for 18: 1.00 x 18 / 12 = 1.50 an hour, against 4.00.
    way = Reservation("1y", 1.0, start=12, term=18)
    asked = problem([firm("w", ["a"])], [offer("a", 4.0, reservations=(way,))], {"w": [6] * 24})
    (line,) = solve(asked, with_why=True).why.lines
    assert (line.count, line.break_even_share) == (6.0, close(1.5 / 4))
    assert line.expected_share == close(1.0)
    # One fewer: 12 h x 4.00 dearer, 18 h x 1.00 saved, over 24 h: 30 / 24 x 730 a month.
    assert line.one_fewer_usd_per_month == close(30 / 24 * 730)


def test_why_names_the_quota_in_its_unit_and_what_is_not_available():
    sold = [offer("a", 4.0, gpus=8, vcpus=96)]
    limit = (Quota("aws", "us", vcpus=60.0, uses=(QuotaUse.ON_DEMAND,)),)
    asked = problem([firm("w", ["a"])], sold, {"w": [10] * 4}, quotas=limit)
    why = solve(asked, with_why=True).why
    # A vCPU more is 1 / 12 of a GPU: 96.00 a GPU-hour saved, 730 h a month.
    assert [(one.kind, one.name) for one in why.limits] == [("quota", "aws us on_demand vCPUs")]
    assert why.limits[0].usd_per_month == close(96 / 12 * 730)
    assert [one.limit for one in why.shortages] == ["quotas used up: aws us (60 vCPUs)"]
    gone = [offer("a", 4.0, on_demand_available=(1.0, 0.5))]
    why = solve(problem([firm("w", ["a"])], gone, {"w": [10, 10]}), with_why=True).why
    assert [one.limit for one in why.shortages] == ["not available in full: a"]


def test_a_run_out_of_time_answers_with_a_plan_that_keeps_every_rule():
    asked = scarce(week(3, full=True, classes=6, hours=168, scenarios=3), 3)
    result = solve(asked, gap=1e-9, time_limit=0.001, with_dispatch=True)
    assert result.status == "feasible"
    assert audit(asked, result.plan, result.dispatch).faults == ()
