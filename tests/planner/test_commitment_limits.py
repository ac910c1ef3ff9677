"""Limits of commitments: their file format, hand-computed plans, and what is said of them."""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from data.errors import ConfigError
from planner import problem_file
from planner.model.reductions import reduce
from planner.optimise.audit import audit
from planner.optimise.first_stage import first_stage
from planner.optimise.search import Search
from planner.outcome import Commitment, Plan, ReservedCount
from planner.problem import Block, CommitmentLimit, Reservation, SavingsPlan
from planner.solve import METHODS, solve
from tests.problems import checked, close, firm, offer, problem

both = pytest.mark.parametrize("method", METHODS)
solvers = pytest.mark.parametrize("solver", ["highs", "cbc"])
DOCUMENT = {
    "hours": 1,
    "classes": [{"id": "w", "kind": "firm", "offers": ["a"], "shortage_penalty": 9}],
    "offers": [{"id": "a", "provider": "aws", "region": "us", "gpus": 8, "on_demand": 4.0}],
    "scenarios": [{"p": 1.0, "demand": {"w": [4]}}],
    "commitment_limits": [{"id": "team", "offers": ["a"], "gpus": 16}],
}


def limit(gpus, *offers, name="l"):
    return CommitmentLimit(name, offers, float(gpus))


def flat(offers, gpus, *limits, **more):
    """Four hours in which one class needs `gpus` on any of the offers."""
    classes = [firm("w", [one.id for one in offers])]
    return problem(classes, offers, {"w": [gpus] * 4}, commitment_limits=limits, **more)


def covered(name="a", on_demand=4.0, sp_rate=2.0, **more):
    return offer(name, on_demand, sp_rate=sp_rate, **more)


def decomposed(asked, **how):
    return solve(asked, method="decomposition", with_dispatch=True, with_why=True, **how)


def faults_of(**changes):
    document = copy.deepcopy(DOCUMENT)
    document["commitment_limits"][0] |= changes
    with pytest.raises(ConfigError) as caught:
        problem_file.parse(document)
    assert all(one.remedy for one in caught.value.problems)
    return [f"{one.where}: {one.what}" for one in caught.value.problems]


def test_a_limit_is_read_and_may_be_left_out():
    assert problem_file.parse(DOCUMENT).commitment_limits == (limit(16, "a", name="team"),)
    without = {name: value for name, value in DOCUMENT.items() if name != "commitment_limits"}
    assert problem_file.parse(without).commitment_limits == ()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"gpus": -1}, 'gpus (commitment limit "team"): must be >= 0, is -1'),
        ({"gpus": None}, 'gpus (commitment limit "team"): must not be null'),
        ({"id": 7}, "id: must be a string, is 7"),
        ({"offers": []}, 'offers (commitment limit "team"): must hold at least one id'),
        ({"offers": "a"}, 'offers (commitment limit "team"): must be a list of ids, is "a"'),
        ({"offers": ["z"]}, 'offers (commitment limit "team"): unknown offer "z"'),
        (
            {"offers": ["a", "a"]},
            'offers[1] (commitment limit "team"): repeats "a" of offers[0]',
        ),
        (
            {"gpu": 8},
            'gpu (commitment limit "team"): unknown field',
        ),
    ],
)
def test_a_fault_of_a_limit_is_named_at_its_place(changes, fault):
    assert faults_of(**changes) == [f"commitment_limits[0].{fault}"]


def test_faults_of_the_list_of_limits_are_named_all_at_once():
    one = DOCUMENT["commitment_limits"][0]
    document = DOCUMENT | {"commitment_limits": [one, one, {}, 5]}
    with pytest.raises(ConfigError) as caught:
        problem_file.parse(document)
    assert sorted(f"{one.where}: {one.what}" for one in caught.value.problems) == [
        'commitment_limits[1].id (commitment limit "team"): repeats the id of commitment_limits[0]',
        "commitment_limits[2].gpus: required, and missing",
        "commitment_limits[2].id: required, and missing",
        "commitment_limits[2].offers: required, and missing",
        "commitment_limits[3]: must be an object, is 5",
    ]


@both
@solvers
def test_a_limit_holds_reservations_back(method, solver):
    # Two instances of 2 GPUs fit into 5: 4 at 2.00 and 6 on demand at 4.00, in 4 hours.
    asked = flat([offer("a", 4.0, 2.0, gpus=2)], 10, limit(5, "a"))
    result = checked(asked, method=method, solver=solver)
    assert result.reservations == (ReservedCount("a", "1y", 2),)
    assert result.objective == close(4 * (4 * 2.0 + 6 * 4.0))


@both
@solvers
def test_a_limit_holds_a_savings_plan_back_at_the_lowest_rate_listed(method, solver):
    offers = [covered("a"), offer("b", 5.0, sp_rate=2.5), offer("c", 5.0, provider="gcp")]
    plans = {"savings_plans": (SavingsPlan("aws"),)}
    # 6 GPUs at 2.00 are 12 USD an hour, which covers 6 GPUs of a.
    asked = flat(offers, 10, limit(6, "a", "b", "c"), **plans)
    result = checked(asked, method=method, solver=solver)
    assert result.objective == close(4 * (12 + 4 * 4.0))
    # 6 GPUs at the 2.50 of b alone are 15 USD an hour, which covers 7.5 GPUs of a.
    asked = flat(offers, 10, limit(6, "b"), **plans)
    result = checked(asked, method=method, solver=solver)
    assert [one.usd_per_hour for one in result.savings_plans] == [close(15.0)]
    assert result.objective == close(4 * (15 + 2.5 * 4.0))
    # c has no rate, so that no plan counts there.
    asked = flat(offers, 10, limit(0, "c"), **plans)
    assert checked(asked, method=method, solver=solver).objective == close(4 * 20)


@both
@solvers
def test_reservations_and_a_savings_plan_share_a_limit(method, solver):
    # A reserved GPU saves 1.80 and a covered one 1.50: two instances of 4, and 2 GPUs of plan.
    asked = flat(
        [covered("a", sp_rate=2.5, rate=2.2, gpus=4)],
        12,
        limit(10, "a"),
        savings_plans=(SavingsPlan("aws"),),
    )
    result = checked(asked, method=method, solver=solver)
    assert result.reservations == (ReservedCount("a", "1y", 2),)
    assert [one.usd_per_hour for one in result.savings_plans] == [close(5.0)]
    assert result.objective == close(4 * (8 * 2.2 + 5.0 + 2 * 4.0))


@both
@solvers
def test_a_limit_of_nothing_leaves_blocks_and_other_offers(method, solver):
    offers = [covered("a", rate=2.0), offer("b", 9.0, 3.0, gpus=4)]
    block = Block("k", "a", 3, 0, 4, 1.0, 1)
    plans = (SavingsPlan("aws"),)
    asked = flat(offers, 9, limit(0, "a"), savings_plans=plans, blocks=(block,))
    result = checked(asked, method=method, solver=solver)
    # 3 GPUs of the block at 1.00, one instance of b at 3.00, and 2 on demand at 4.00.
    assert result.reservations == (ReservedCount("b", "1y", 1),)
    assert result.savings_plans == ()
    assert result.objective == close(4 * (3 * 1.0 + 4 * 3.0 + 2 * 4.0))


@both
def test_a_reservation_that_starts_later_counts_in_full(method):
    # Each GPU has two hours: early saves 2 * (4 - 2), late 2 * (4 - 1), and 3 fit in all.
    ways = (Reservation("early", 2.0, term=2), Reservation("late", 1.0, start=2))
    asked = flat([offer("a", reservations=ways)], 3, limit(3, "a"))
    result = checked(asked, method=method)
    assert result.reservations == (ReservedCount("a", "late", 3),)
    assert result.objective == close(2 * 3 * 4.0 + 2 * 3 * 1.0)


@both
def test_whole_instances_on_demand_keep_the_limit(method):
    # 2 of 9 GPUs reserved at 1.00; the other 7 are four instances of 2 at 4.00.
    asked = flat([offer("a", 4.0, 1.0, gpus=2)], 9, limit(3, "a"), on_demand_integer=True)
    assert checked(asked, method=method).objective == close(4 * (2 * 1.0 + 8 * 4.0))


@both
def test_a_dearer_offer_of_the_same_pool_is_kept_for_what_the_limit_does_not_allow(method):
    offers = [offer("a", rate=2.0), offer("b", rate=2.1)]
    asked = flat(offers, 10, limit(4, "a"))
    result = checked(asked, method=method)
    assert result.reservations == (ReservedCount("a", "1y", 4), ReservedCount("b", "1y", 6))
    assert result.objective == close(4 * (4 * 2.0 + 6 * 2.1))


def test_only_what_counts_against_no_further_limit_replaces_another():
    offers = [offer("a", rate=2.0), offer("b", rate=2.1)]

    def kept(*limits):
        (pool,) = reduce(flat(offers, 10, *limits)).pools
        return [one.id for one, _ in pool.reservations]

    assert kept(limit(4, "a")) == ["a", "b"]
    assert kept(limit(4, "b")) == ["a"]
    assert kept(limit(4, "a", "b")) == ["a"]
    assert kept(limit(4, "a", "b"), limit(4, "a", name="m")) == ["a", "b"]


def test_why_tells_what_a_limit_costs_and_what_it_holds_back():
    asked = flat([offer("a", 4.0, 2.0)], 5, limit(2, "a", name="team_a"))
    why = decomposed(asked).why
    # One more GPU at 2.00 instead of 4.00, all 730 hours of a month.
    (one,) = why.limits
    assert (one.kind, one.name) == ("commitment_limit", "team_a")
    assert one.usd_per_month == close(730 * 2.0)
    assert [line.binding for line in why.lines] == ["commitment_limit team_a"]


def test_why_tells_that_a_limit_is_free_where_break_even_comes_first():
    # A third GPU would cost 3.00 in four hours and save 4.00 in one: the limit is not why.
    one, demand = offer("a", 4.0, 3.0), {"w": [6, 2, 2, 2]}
    asked = problem([firm("w", ["a"])], [one], demand, commitment_limits=(limit(2.5, "a"),))
    why = decomposed(asked).why
    assert [found.usd_per_month for found in why.limits] == [close(0.0)]
    assert [line.binding for line in why.lines] == ["break-even"]


@pytest.mark.parametrize("kind", ["reservation", "plan"])
def test_why_names_the_limit_that_forbids_a_purchase(kind):
    sold = offer("a", 4.0, 2.0) if kind == "reservation" else covered("a")
    plans = () if kind == "reservation" else (SavingsPlan("aws"),)
    why = decomposed(flat([sold], 5, limit(0, "a"), savings_plans=plans)).why
    (one,) = why.rejected
    assert (one.kind, one.reason) == (kind, "the commitment limit l does not allow it")
    # 1 USD an hour of the plan covers half a GPU.
    worth = 2.0 if kind == "reservation" else 1.0
    assert [found.usd_per_month for found in why.limits] == [close(730 * 2.0)]
    assert one.saves_usd_per_month - one.costs_usd_per_month == close(730 * worth)


def test_a_plan_beyond_the_limit_is_not_stayed_near_to():
    offers = [covered("a", rate=2.0, gpus=2), offer("b", rate=2.1, gpus=2)]
    asked = flat(offers, 10, limit(5, "a"), savings_plans=(SavingsPlan("aws"),))
    former = Plan((ReservedCount("a", "1y", 4),), (Commitment("aws", 7.0),))
    result = decomposed(asked, previous=former, tolerance=0.5)
    assert audit(asked, result.plan, result.dispatch).faults == ()
    # 8 GPUs and 3.5 that 7 USD an hour could pay for are 11.5; the limit leaves 5, so 6.5 must go.
    counts = {one.offer: one.count for one in result.reservations}
    usd = sum(one.usd_per_hour for one in result.savings_plans)
    moved = abs(2 * counts.get("a", 0) - 8) + 2 * counts.get("b", 0) + abs(usd - 7) / 2
    assert moved == close(6.5)


def test_rounding_to_whole_counts_keeps_every_limit():
    offers = [covered("a", rate=2.0, gpus=4), offer("b", rate=2.1, gpus=3)]
    limits = (limit(10, "a"), limit(11.5, "a", "b", name="m"))
    asked = flat(offers, 30, *limits, savings_plans=(SavingsPlan("aws"),))
    first = first_stage(reduce(asked))
    assert [one.kind for one in first.bought] == ["reservation", "reservation", "plan"]
    rows = np.array([[4.0, 0.0, 0.5], [4.0, 3.0, 0.5]])
    most = np.array([10.0, 11.5])
    rng = np.random.default_rng(5)
    for _ in range(200):
        z = rng.uniform(0, 3, 3) * (1, 1, 6)
        z *= min(1.0, (most / (rows @ z)).min())  # on the edge, or within
        near = Search.nearest(SimpleNamespace(first=first), z)
        assert (rows @ near <= most + 1e-9).all()
        assert (near[:2] == np.round(near[:2])).all()
        assert (near >= 0).all()


def test_the_audit_finds_a_plan_beyond_its_limit():
    asked = flat([covered("a", rate=2.0, gpus=2)], 9, limit(5, "a"),
                 savings_plans=(SavingsPlan("aws"),))  # fmt: skip
    found = checked(asked)
    more = Plan((ReservedCount("a", "1y", 2),), (Commitment("aws", 3.0),))
    assert audit(asked, more, found.dispatch).faults[0] == "commitment limit l: 5.5 GPUs of 5"
    within = dataclasses.replace(more, savings_plans=(Commitment("aws", 2.0),))
    assert not any("limit" in fault for fault in audit(asked, within, found.dispatch).faults)
