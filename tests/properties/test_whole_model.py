"""Random problems with dated commitments, availability and all quotas, against plain HiGHS."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.optimise.audit import audit
from planner.problem import Cvar, Existing, Quota, QuotaUse, Reservation, SavingsPlan
from planner.solve import solve
from tests.plain_highs import optimum
from tests.problems import checked, close, deferrable, firm, offer, problem

some = settings(max_examples=40, deadline=None, derandomize=True)
few = settings(max_examples=15, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)
BOTH, SPOT, ON_DEMAND = tuple(QuotaUse), (QuotaUse.SPOT,), (QuotaUse.ON_DEMAND,)


def held(rng, hours):
    """Start and term of a commitment; half of them as long as the file."""
    start = int(rng.integers(0, hours)) if rng.random() < 0.6 else 0
    return start, int(rng.integers(1, hours + 4)) if rng.random() < 0.5 else None


def shares(rng, hours):
    return tuple(rng.choice([0.0, 0.25, 0.5, 1.0], hours).tolist())


def sold(rng, number, hours):
    gpus = int(rng.choice([1, 2, 4]))
    ways = []
    for way in range(int(rng.integers(0, 3))):
        start, term = held(rng, hours)
        ways.append(
            Reservation(f"r{way}", rng.uniform(0.5, 3), float(rng.integers(0, 3)), start, term)
        )
    return offer(
        f"o{number}",
        rng.uniform(2, 6) if rng.random() < 0.8 else None,
        gpus=gpus,
        provider=str(rng.choice(["aws", "gcp"])),
        region=str(rng.choice(["us", "eu"])),
        reservations=tuple(ways),
        spot=rng.uniform(0.5, 4) if rng.random() < 0.7 else None,
        spot_throughput=float(rng.choice([0.7, 1.0])),
        sp_rate=rng.uniform(1, 4) if rng.random() < 0.6 else None,
        existing=(Existing(float(rng.integers(0, 3)), int(rng.integers(0, hours + 2))),),
        egress={"w0": 0.3} if rng.random() < 0.3 else {},
        vcpus=int(gpus * rng.choice([4, 12, 24])),
        spot_available=shares(rng, hours) if rng.random() < 0.5 else None,
        on_demand_available=shares(rng, hours) if rng.random() < 0.5 else None,
    )


def users(rng, names):
    found = []
    for number in range(int(rng.integers(1, 4))):
        where = [name for name in names if rng.random() < 0.7] or names[:1]
        rules = {"shortage_penalty": float(rng.choice([3.0, 20.0]))}
        if rng.random() < 0.4:
            found.append(deferrable(f"w{number}", where, int(rng.integers(0, 4)), **rules))
            continue
        rules["min_firm_share"] = float(rng.choice([0.0, 0.3, 1.0]))
        rules["spot_max_share_per_offer"] = rng.choice([None, 0.35, 0.5])
        found.append(firm(f"w{number}", where, **rules))
    return found


def quotas(rng, offers):
    found = []
    for pair in sorted({(one.provider, one.region) for one in offers}):
        kinds = ([], [BOTH], [SPOT], [ON_DEMAND, SPOT])
        for uses in kinds[rng.integers(0, 4)]:
            if rng.random() < 0.5:
                found.append(Quota(*pair, float(rng.integers(0, 9)), uses=uses))
            else:
                found.append(Quota(*pair, vcpus=float(rng.integers(0, 100)), uses=uses))
    return tuple(found)


def random_problem(seed, *, formula=False):
    """A small problem; with `formula` without what the closed form does not know."""
    rng = np.random.default_rng(seed)
    hours = int(rng.integers(2, 7))
    offers = [sold(rng, number, hours) for number in range(int(rng.integers(1, 4)))]
    classes = users(rng, [one.id for one in offers])
    if formula:
        classes = [firm(c.id, c.offers, shortage_penalty=c.shortage_penalty) for c in classes]
        offers = [dataclasses.replace(one, egress={}) for one in offers]
    futures = [
        (p, {one.id: rng.choice([0.0, 1.0, 3.0, 5.5], hours) for one in classes})
        for p in ([1.0], [0.3, 0.7])[rng.integers(0, 2)]
    ]
    plans = [SavingsPlan(name, *held(rng, hours)) for name in ("aws", "gcp")]
    asked = problem(
        classes,
        offers,
        futures,
        quotas=() if formula else quotas(rng, offers),
        savings_plans=() if formula else tuple(plans),
        hour_weight=float(rng.choice([1.0, 7.5])),
        upfront_budget=rng.choice([None, 5.0]),
        cvar=rng.choice([None, Cvar(0.4, 0.6)]),
    )
    if rng.random() < 0.5:
        first, *others = asked.scenarios
        mine = {offers[0].id: np.array(shares(rng, hours))}
        first = dataclasses.replace(first, spot_available=mine, on_demand_available=mine)
        asked = dataclasses.replace(asked, scenarios=(first, *others))
    return asked


@some
@given(seeds, st.booleans())
def test_both_methods_agree_with_plain_highs(seed, formula):
    asked = random_problem(seed, formula=formula)
    least = pytest.approx(optimum(asked), rel=1e-6, abs=1e-5)
    assert checked(asked, gap=1e-9).objective == least
    result = solve(asked, gap=1e-8, method="decomposition", with_dispatch=True)
    assert result.objective == least
    for one in (result, solve(asked, gap=1e-9)):
        found = audit(asked, one.plan, one.dispatch)
        assert found.faults == ()
        assert found.usd == pytest.approx(one.objective, rel=1e-6, abs=1e-6)


@few
@given(seeds)
def test_both_solvers_find_the_same_optimum(seed):
    asked = random_problem(seed)
    assert checked(asked, solver="cbc").objective == close(checked(asked).objective)


@few
@given(seeds)
def test_more_available_never_raises_cost(seed):
    asked = random_problem(seed)
    offers = tuple(
        dataclasses.replace(one, spot_available=None, on_demand_available=None)
        for one in asked.offers
    )
    scenarios = tuple(
        dataclasses.replace(one, spot_available={}, on_demand_available={})
        for one in asked.scenarios
    )
    eased = dataclasses.replace(asked, offers=offers, scenarios=scenarios)
    assert checked(eased).objective <= checked(asked).objective * (1 + 1e-6) + 1e-6


@few
@given(seeds)
def test_a_term_that_ends_with_the_file_is_as_if_it_were_not_given(seed):
    asked = random_problem(seed)

    def to_the_end(one):
        return dataclasses.replace(one, term=asked.hours - one.start)

    def without(one):
        return dataclasses.replace(one, term=None)

    def every(change):
        offers = tuple(
            dataclasses.replace(one, reservations=tuple(change(way) for way in one.reservations))
            for one in asked.offers
        )
        plans = tuple(change(one) for one in asked.savings_plans)
        return dataclasses.replace(asked, offers=offers, savings_plans=plans)

    given, bare = solve(every(to_the_end)), solve(every(without))
    assert given.as_json() | {"seconds": 0} == bare.as_json() | {"seconds": 0}
