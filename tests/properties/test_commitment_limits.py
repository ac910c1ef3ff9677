"""Random problems with limits of commitments: methods and solvers agree, and more never costs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.optimise.audit import audit
from planner.problem import CommitmentLimit
from planner.solve import METHODS, solve
from tests.plain_highs import optimum
from tests.problems import checked, close
from tests.properties.test_whole_model import random_problem

some = settings(max_examples=40, deadline=None, derandomize=True)
few = settings(max_examples=15, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


def limited(seed, *, formula=False):
    """A random problem with one or two limits, most of them tight."""
    asked = random_problem(seed, formula=formula)
    rng = np.random.default_rng(seed + 1)
    limits = []
    for number in range(int(rng.integers(1, 3))):
        names = [one.id for one in asked.offers if rng.random() < 0.7] or [asked.offers[0].id]
        gpus = float(rng.choice([0.0, 1.0, 2.5, 4.0, 6.0]))
        limits.append(CommitmentLimit(f"l{number}", tuple(names), gpus))
    return dataclasses.replace(asked, commitment_limits=tuple(limits), upfront_budget=None)


@some
@given(seeds, st.booleans())
def test_both_methods_agree_with_plain_highs(seed, formula):
    asked = limited(seed, formula=formula)
    least = pytest.approx(optimum(asked), rel=1e-6, abs=1e-5)
    assert checked(asked, gap=1e-9, method="direct").objective == least
    result = solve(asked, gap=1e-8, method="decomposition", with_dispatch=True)
    assert result.objective == least
    assert audit(asked, result.plan, result.dispatch).faults == ()


@few
@given(seeds, st.sampled_from(METHODS))
def test_both_solvers_find_the_same_optimum(seed, method):
    asked = limited(seed)
    found = [checked(asked, solver=solver, method=method).objective for solver in ("highs", "cbc")]
    assert found[0] == close(found[1])


@few
@given(seeds, st.floats(0.5, 6.0), st.sampled_from(METHODS))
def test_a_larger_limit_never_raises_the_optimum(seed, more, method):
    asked = limited(seed)
    wider = tuple(dataclasses.replace(one, gpus=one.gpus + more) for one in asked.commitment_limits)
    costs = [
        checked(dataclasses.replace(asked, commitment_limits=limits), method=method).objective
        for limits in (asked.commitment_limits, wider, ())
    ]
    assert costs[1] <= costs[0] * (1 + 1e-6) + 1e-6
    assert costs[2] <= costs[1] * (1 + 1e-6) + 1e-6


@few
@given(seeds)
def test_a_former_plan_without_limits_is_not_stayed_near_to_beyond_them(seed):
    asked = limited(seed, formula=seed % 2 == 0)
    former = solve(dataclasses.replace(asked, commitment_limits=())).plan
    how = {"method": "decomposition", "with_dispatch": True, "with_why": True}
    result = solve(asked, previous=former, tolerance=0.2, **how)
    assert audit(asked, result.plan, result.dispatch).faults == ()
    assert result.objective <= solve(asked).objective * (1.2 + 1e-3) + 1e-6
    assert {one.name for one in result.why.limits if one.kind == "commitment_limit"} == (
        {one.id for one in asked.commitment_limits} if result.dispatch.size else set()
    )
