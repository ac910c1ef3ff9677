"""What must hold for the optimum of every problem, whichever method finds it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.optimise import closed_form
from planner.problem import ClassKind, Existing, Scenario
from planner.solve import METHODS
from tests.problems import checked, close, offer
from tests.properties.test_model import priced, problems, with_demand

few = settings(max_examples=15, deadline=None, derandomize=True)
both = pytest.mark.parametrize("method", METHODS)
ROOM = 1 + 1e-6  # what solvers promise


def cost(asked, method):
    return checked(asked, gap=1e-7, method=method).objective


def firm_only(asked):
    """The problem with work that waits made firm, so that hours stand alone."""
    classes = tuple(
        dataclasses.replace(one, kind=ClassKind.FIRM, window=0) for one in asked.classes
    )
    return dataclasses.replace(asked, classes=classes)


def untimed(asked):
    """The problem with nothing that tells one hour from another but its demand."""
    offers = tuple(
        dataclasses.replace(
            one, existing=tuple(Existing(e.gpus, asked.hours) for e in one.existing)
        )
        for one in asked.offers
    )
    return dataclasses.replace(firm_only(asked), offers=offers, blocks=())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems())
def test_both_methods_find_the_same_optimum(asked):
    assert cost(asked, "decomposition") == close(cost(asked, "direct"))


@few
@given(problems())
def test_the_closed_form_and_linear_programs_find_the_same_optimum(asked):
    plain = dataclasses.replace(
        firm_only(asked),
        offers=tuple(dataclasses.replace(one, egress={}) for one in asked.offers),
        savings_plans=(),
        quotas=(),
    )
    by_form = cost(plain, "decomposition")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(closed_form, "MOST_UNIONS", 0)
        assert cost(plain, "decomposition") == close(by_form)


@both
@few
@given(problems(), st.sampled_from([0.25, 4.0]))
def test_scaling_every_price_scales_the_optimum(method, asked, factor):
    assert cost(priced(asked, factor), method) == close(cost(asked, method) * factor)


@both
@few
@given(problems(), st.sampled_from([0.25, 4.0]))
def test_the_weight_of_an_hour_scales_the_optimum(method, asked, factor):
    heavy = dataclasses.replace(asked, hour_weight=asked.hour_weight * factor)
    assert cost(heavy, method) == close(cost(asked, method) * factor)


@both
@few
@given(problems(), st.permutations(range(4)))
def test_the_order_of_hours_does_not_matter_where_nothing_ties_them(method, asked, order):
    asked = untimed(asked)
    turned = with_demand(asked, lambda name, series: series[list(order)])
    assert cost(turned, method) == close(cost(asked, method))


@both
@few
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_classes_offers_and_scenarios_does_not_matter(method, asked, random):
    classes, offers, scenarios = list(asked.classes), list(asked.offers), list(asked.scenarios)
    for one in (classes, offers, scenarios):
        random.shuffle(one)
    turned = dataclasses.replace(
        asked, classes=tuple(classes), offers=tuple(offers), scenarios=tuple(scenarios)
    )
    assert cost(turned, method) == close(cost(asked, method))


@both
@few
@given(problems(), st.floats(0.5, 6.0), st.floats(0.5, 6.0))
def test_one_more_offer_never_raises_cost(method, asked, on_demand, rate):
    one_more = offer("z", on_demand, rate, region="new")
    classes = tuple(dataclasses.replace(one, offers=(*one.offers, "z")) for one in asked.classes)
    wider = dataclasses.replace(asked, classes=classes, offers=(*asked.offers, one_more))
    assert cost(wider, method) <= cost(asked, method) * ROOM + 1e-6


@both
@few
@given(problems(), st.floats(0.0, 9.0), st.floats(0.0, 9.0))
def test_more_budget_never_raises_cost(method, asked, budget, more):
    costs = [
        cost(dataclasses.replace(asked, upfront_budget=limit), method)
        for limit in (budget, budget + more, None)
    ]
    assert costs[1] <= costs[0] * ROOM + 1e-6
    assert costs[2] <= costs[1] * ROOM + 1e-6


@both
@few
@given(problems(), st.integers(1, 9), st.integers(1, 3))
def test_more_quota_and_longer_windows_never_raise_cost(method, asked, gpus, hours):
    quotas = tuple(dataclasses.replace(one, gpus=one.gpus + gpus) for one in asked.quotas)
    classes = tuple(
        one if one.kind is ClassKind.FIRM else dataclasses.replace(one, window=one.window + hours)
        for one in asked.classes
    )
    eased = dataclasses.replace(asked, quotas=quotas, classes=classes)
    assert cost(eased, method) <= cost(asked, method) * ROOM + 1e-6


@both
@few
@given(problems(), st.sampled_from([0.0, 0.25, 0.5]))
def test_classes_of_equal_rules_cost_what_they_cost_as_one(method, asked, share):
    one = asked.classes[0]
    offers = tuple(
        dataclasses.replace(o, egress=o.egress | {"twin": o.egress.get(one.id, 0.0)})
        for o in asked.offers
    )
    scenarios = tuple(
        Scenario(
            s.p,
            s.demand | {one.id: s.demand[one.id] * share, "twin": s.demand[one.id] * (1 - share)},
        )
        for s in asked.scenarios
    )
    split = dataclasses.replace(
        asked,
        classes=(*asked.classes, dataclasses.replace(one, id="twin")),
        offers=offers,
        scenarios=scenarios,
    )
    assert cost(split, method) == close(cost(asked, method))


@both
@few
@given(problems(), st.sampled_from([0.3, 0.5]))
def test_a_future_told_twice_changes_nothing(method, asked, share):
    first, *others = asked.scenarios
    twice = (Scenario(first.p * share, first.demand), Scenario(first.p * (1 - share), first.demand))
    told = dataclasses.replace(asked, scenarios=(*twice, *others))
    assert cost(told, method) == close(cost(asked, method))


@both
@few
@given(problems())
def test_no_demand_costs_nothing_but_what_is_sunk(method, asked):
    result = checked(with_demand(asked, lambda name, series: series * 0), method=method)
    assert result.objective == 0.0
    assert not result.reservations
    assert not result.savings_plans
    assert not result.blocks


@both
@few
@given(problems())
def test_it_is_never_dearer_than_to_go_without_or_to_buy_on_demand_alone(method, asked):
    asked = dataclasses.replace(asked, cvar=None)
    sold = {one.id: one for one in asked.offers}
    limited = {(q.provider, q.region) for q in asked.quotas}
    most = 0.0
    for one in asked.classes:
        ways = [one.shortage_penalty]
        for name in one.offers:
            found = sold[name]
            if found.on_demand is not None and (found.provider, found.region) not in limited:
                ways.append(found.on_demand + found.egress.get(one.id, 0.0))
        hours = sum(s.p * float(np.sum(s.demand[one.id])) for s in asked.scenarios)
        most += hours * min(ways) * asked.hour_weight
    assert cost(asked, method) <= most * ROOM + 1e-6
