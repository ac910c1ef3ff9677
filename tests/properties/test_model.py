"""What must hold for every problem: rules kept, reductions exact, costs that move the right way."""

from __future__ import annotations

import dataclasses

import pulp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import solvers
from planner.model.build import build
from planner.model.objective import scale
from planner.model.reductions import reduce
from planner.problem import Block, Cvar, Existing, Quota, Reservation, SavingsPlan, Scenario
from planner.solve import solve
from tests.problems import checked, close, deferrable, firm, offer, problem

few = settings(max_examples=30, deadline=None, derandomize=True)
prices = st.floats(0.5, 6.0).map(lambda value: round(value, 2))


@st.composite
def offers_of(draw, names):
    made = []
    for name in names:
        ways = tuple(
            Reservation(f"r{n}", draw(prices), float(draw(st.integers(0, 3))))
            for n in range(draw(st.integers(0, 2)))
        )
        egress = {"w0": draw(st.sampled_from([0.0, 0.3, 9.0]))} if draw(st.booleans()) else {}
        made.append(
            offer(
                name,
                draw(st.one_of(st.none(), prices)),
                gpus=draw(st.sampled_from([1, 2, 4])),
                provider=draw(st.sampled_from(["aws", "gcp"])),
                region=draw(st.sampled_from(["us", "eu"])),
                reservations=ways,
                spot=draw(st.one_of(st.none(), prices)),
                spot_throughput=draw(st.sampled_from([0.7, 0.9, 1.0])),
                sp_rate=draw(st.one_of(st.none(), prices)),
                existing=(Existing(draw(st.integers(0, 4)), draw(st.integers(0, 5))),),
                egress=egress,
            )
        )
    return made


@st.composite
def classes_of(draw, count, names):
    made = []
    for number in range(count):
        where = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        penalty = draw(st.sampled_from([2.0, 10.0, 40.0]))
        if draw(st.integers(0, 3)) == 0:
            window = draw(st.integers(0, 3))
            made.append(deferrable(f"w{number}", where, window, shortage_penalty=penalty))
            continue
        made.append(
            firm(
                f"w{number}",
                where,
                shortage_penalty=penalty,
                min_firm_share=draw(st.sampled_from([0.0, 0.3, 1.0])),
                spot_max_share_per_offer=draw(st.sampled_from([None, 0.0, 0.35, 0.5])),
            )
        )
    return made


@st.composite
def problems(draw, hours=4, integer=False):
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    offers = draw(offers_of(names))
    classes = draw(classes_of(draw(st.integers(1, 4)), names))
    series = st.lists(st.sampled_from([0.0, 1.0, 3.0, 3.0, 5.5]), min_size=hours, max_size=hours)
    weights = draw(st.sampled_from([[1.0], [0.3, 0.7]]))
    futures = [(p, {one.id: draw(series) for one in classes}) for p in weights]
    pairs = sorted({(one.provider, one.region) for one in offers})
    start = draw(st.integers(0, hours - 1))
    block = Block("k", "a", 2, start, draw(st.integers(1, hours - start)), draw(prices), 2)
    return problem(
        classes,
        offers,
        futures,
        hour_weight=draw(st.sampled_from([1.0, 7.5])),
        on_demand_integer=integer,
        quotas=tuple(
            Quota(*pair, draw(st.integers(0, 9))) for pair in pairs if draw(st.booleans())
        ),
        savings_plans=tuple(SavingsPlan(name) for name in sorted({one.provider for one in offers})),
        blocks=(block,) if draw(st.booleans()) else (),
        upfront_budget=draw(st.sampled_from([None, 5.0])),
        cvar=draw(st.sampled_from([None, Cvar(0.0, 0.5), Cvar(0.4, 0.6)])),
    )


def unreduced_optimum(asked):
    made = build(reduce(asked, exact=False))
    solvers.run(made.lp, solver="highs", gap=1e-9, time_limit=60.0)
    return float(pulp.value(made.lp.objective)) * scale(made)


def priced(asked, factor):
    """The problem with every price times the factor."""

    def times(value):
        return None if value is None else value * factor

    offers = tuple(
        dataclasses.replace(
            one,
            on_demand=times(one.on_demand),
            spot=times(one.spot),
            sp_rate=times(one.sp_rate),
            reservations=tuple(
                dataclasses.replace(way, rate=way.rate * factor) for way in one.reservations
            ),
            egress={name: extra * factor for name, extra in one.egress.items()},
        )
        for one in asked.offers
    )
    classes = tuple(
        dataclasses.replace(one, shortage_penalty=one.shortage_penalty * factor)
        for one in asked.classes
    )
    blocks = tuple(dataclasses.replace(one, price=one.price * factor) for one in asked.blocks)
    return dataclasses.replace(asked, offers=offers, classes=classes, blocks=blocks)


def with_demand(asked, change):
    scenarios = tuple(
        Scenario(one.p, {name: change(name, series) for name, series in one.demand.items()})
        for one in asked.scenarios
    )
    return dataclasses.replace(asked, scenarios=scenarios)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(problems())
def test_every_plan_keeps_every_rule_and_the_reductions_are_exact(asked):
    assert checked(asked, gap=1e-9).objective == close(unreduced_optimum(asked))


@few
@given(problems(hours=3, integer=True))
def test_whole_instances_keep_every_rule_and_the_reductions_are_exact(asked):
    assert checked(asked, gap=1e-9).objective == close(unreduced_optimum(asked))


@few
@given(problems())
def test_both_solvers_find_the_same_optimum(asked):
    assert checked(asked, solver="cbc").objective == close(checked(asked).objective)


@few
@given(problems(), st.integers(0, 3), st.sampled_from([0.5, 2.0]))
def test_cost_is_not_lower_with_more_demand(asked, hour, more):
    def raise_one(name, series):
        raised = series.copy()
        if name == "w0":
            raised[hour] += more
        return raised

    assert checked(with_demand(asked, raise_one)).objective >= checked(asked).objective * (1 - 1e-6)


@few
@given(problems(), st.floats(0.3, 1.0))
def test_a_cheaper_offer_never_raises_cost(asked, factor):
    first = priced(asked, factor).offers[0]
    cheaper = dataclasses.replace(asked, offers=(first, *asked.offers[1:]))
    assert checked(cheaper).objective <= checked(asked).objective * (1 + 1e-6) + 1e-6


@few
@given(problems(), st.integers(1, 9))
def test_more_quota_never_raises_cost(asked, more):
    wider = tuple(dataclasses.replace(one, gpus=one.gpus + more) for one in asked.quotas)
    eased = dataclasses.replace(asked, quotas=wider, upfront_budget=None)
    assert checked(eased).objective <= checked(asked).objective * (1 + 1e-6) + 1e-6


@few
@given(problems())
def test_zero_demand_costs_only_what_is_sunk(asked):
    result = checked(with_demand(asked, lambda name, series: series * 0))
    assert result.objective == 0.0


@few
@given(problems())
def test_a_plan_is_never_dearer_than_shortage_or_all_on_demand(asked):
    sold = {one.id: one for one in asked.offers}
    free = not asked.quotas
    total = 0.0
    for scenario in asked.scenarios:
        for one in asked.classes:
            ways = [one.shortage_penalty]
            if free:
                ways += [
                    sold[name].on_demand + sold[name].egress.get(one.id, 0.0)
                    for name in one.offers
                    if sold[name].on_demand is not None
                ]
            total += scenario.p * min(ways) * scenario.demand[one.id].sum() * asked.hour_weight
    result = checked(asked)
    risk_free = result.objective - result.costs["cvar"]
    if asked.cvar is None or asked.cvar.weight == 0:
        assert risk_free <= total * (1 + 1e-6) + 1e-6


@few
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_classes_and_offers_changes_nothing(asked, random):
    classes, offers = list(asked.classes), list(asked.offers)
    random.shuffle(classes)
    random.shuffle(offers)
    shuffled = dataclasses.replace(asked, classes=tuple(classes), offers=tuple(offers))
    one, other = solve(asked), solve(shuffled)
    assert one.as_json() | {"seconds": 0} == other.as_json() | {"seconds": 0}
    assert one.dispatch.equals(other.dispatch)


@few
@given(problems(), st.sampled_from([0.5, 2.0, 8.0]))
def test_scaling_every_price_scales_the_cost_and_keeps_the_plan_as_good(asked, factor):
    plain, scaled = checked(asked), checked(priced(asked, factor))
    assert scaled.objective == close(plain.objective * factor)


@few
@given(problems(), st.integers(1, 3))
def test_a_longer_window_never_raises_cost(asked, more):
    longer = tuple(
        dataclasses.replace(one, window=one.window + more) if one.kind == "deferrable" else one
        for one in asked.classes
    )
    eased = dataclasses.replace(asked, classes=longer)
    assert checked(eased).objective <= checked(asked).objective * (1 + 1e-6) + 1e-6
