"""Second methods: a brute force, a closed form and dynamic programming find the same optimum."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.problem import Block, Cvar, Existing, Quota, Reservation
from tests.problems import checked, close, deferrable, firm, offer, problem


def brute_force(asked, most=3):
    """Least cost by trying every first stage and every way to serve each GPU of each hour.

    Sound where demand, capacity, shares of demand and quotas are whole and throughput is 1: then
    the dispatch is a network flow, whose best value is reached with whole GPUs.
    """
    ways = [(o, way) for o in asked.offers for way in o.reservations]
    stages = itertools.product(
        *[range(most + 1) for _ in ways], *[range(b.max + 1) for b in asked.blocks]
    )
    best = math.inf
    for stage in stages:
        counts, blocks = stage[: len(ways)], stage[len(ways) :]
        bought = sum(
            n * way.rate * o.gpus * asked.hours for n, (o, way) in zip(counts, ways, strict=True)
        )
        bought += sum(
            n * b.price * b.gpus * b.length for n, b in zip(blocks, asked.blocks, strict=True)
        )
        upfront = sum(n * way.upfront * o.gpus for n, (o, way) in zip(counts, ways, strict=True))
        if asked.upfront_budget is not None and upfront > asked.upfront_budget:
            continue
        totals = [
            sum(
                cheapest_hour(
                    asked,
                    tuple(float(s.demand[c.id][hour]) for c in asked.classes),
                    pools_at(asked, hour, ways, counts, blocks),
                )
                for hour in range(asked.hours)
            )
            for s in asked.scenarios
        ]
        p = [s.p for s in asked.scenarios]
        cost = bought + sum(a * b for a, b in zip(p, totals, strict=True))
        if asked.cvar:
            tail = 1 - asked.cvar.beta
            etas = [
                eta + sum(a * max(q - eta, 0) for a, q in zip(p, totals, strict=True)) / tail
                for eta in totals
            ]
            cost += asked.cvar.weight * min(etas)  # convex in eta, with its corners at the totals
            cost += asked.cvar.weight * bought if asked.cvar.of_all else 0.0
        best = min(best, cost)
    return best * asked.hour_weight


def pools_at(asked, hour, ways, counts, blocks):
    pools = []
    for one in asked.offers:
        pool = sum(e.gpus for e in one.existing if hour < e.until_hour)
        pool += sum(n * o.gpus for n, (o, _) in zip(counts, ways, strict=True) if o.id == one.id)
        for n, b in zip(blocks, asked.blocks, strict=True):
            if b.offer == one.id and b.start <= hour < b.start + b.length:
                pool += n * b.gpus
        pools.append(int(pool))
    return tuple(pools)


_HOURS = {}


def cheapest_hour(asked, demand, pools):
    key = (id(asked), demand, pools)
    if key not in _HOURS:
        quotas = tuple(int(q.gpus) for q in asked.quotas)
        _HOURS[key] = serve_class(asked, 0, demand, pools, quotas)
    return _HOURS[key]


def serve_class(asked, index, demand, pools, quotas):
    if index == len(asked.classes):
        return 0.0
    one = asked.classes[index]
    need = int(demand[index])
    limit = round((1 - one.min_firm_share) * need)
    cap = limit if one.spot_max_share_per_offer is None else one.spot_max_share_per_offer * need
    numbers = {o.id: n for n, o in enumerate(asked.offers)}
    choices = [("shortage", -1, one.shortage_penalty)]
    for name in one.offers:
        found = asked.offers[numbers[name]]
        extra = found.egress.get(one.id, 0.0)
        choices.append(("pool", numbers[name], extra))
        if found.on_demand is not None:
            choices.append(("on_demand", numbers[name], found.on_demand + extra))
        if found.spot is not None:
            choices.append(("spot", numbers[name], found.spot + extra))

    def place(rest, at, pools, quotas, spot, cost):
        """Every way to serve `rest` GPUs by the choices from `at` on."""
        if rest == 0:
            return cost + serve_class(asked, index + 1, demand, pools, quotas)
        if at == len(choices):
            return math.inf
        kind, number, price = choices[at]
        most = rest
        quota = None
        if kind == "pool":
            most = min(rest, pools[number])
        elif kind != "shortage":
            found = asked.offers[number]
            for position, q in enumerate(asked.quotas):
                if (q.provider, q.region) == (found.provider, found.region):
                    quota, most = position, min(rest, quotas[position])
            if kind == "spot":
                most = min(most, limit - spot, int(cap))
        best = math.inf
        for n in range(most + 1):
            left = tuple(
                v - n if kind == "pool" and k == number else v for k, v in enumerate(pools)
            )
            room = tuple(v - n if k == quota else v for k, v in enumerate(quotas))
            used = spot + n * (kind == "spot")
            best = min(best, place(rest - n, at + 1, left, room, used, cost + n * price))
        return best

    return place(need, 0, pools, quotas, 0, 0.0)


@st.composite
def tiny_problems(draw):
    price = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.5])
    offers = []
    for name in ["a", "b"][: draw(st.integers(1, 2))]:
        ways = tuple(
            Reservation(f"r{n}", draw(price), draw(st.sampled_from([0.0, 1.0, 2.0])))
            for n in range(draw(st.integers(0, 1)))
        )
        egress = {"v": draw(st.sampled_from([0.0, 0.5, 6.0]))} if draw(st.booleans()) else {}
        owned = (Existing(draw(st.integers(0, 2)), draw(st.integers(0, 3))),)
        offers.append(
            offer(
                name,
                draw(st.one_of(st.none(), price)),
                gpus=draw(st.integers(1, 2)),
                region=draw(st.sampled_from(["us", "eu"])),
                reservations=ways,
                spot=draw(st.one_of(st.none(), price)),
                existing=owned,
                egress=egress,
            )
        )
    names = [o.id for o in offers]
    classes = [
        firm(
            name,
            draw(st.lists(st.sampled_from(names), min_size=1, unique=True)),
            shortage_penalty=draw(st.sampled_from([3.0, 20.0])),
            min_firm_share=draw(st.sampled_from([0.0, 0.5, 1.0])),
            spot_max_share_per_offer=draw(st.sampled_from([None, 0.5])),
        )
        for name in ["w", "v"][: draw(st.integers(1, 2))]
    ]
    hours = draw(st.integers(1, 3))
    series = st.lists(st.sampled_from([0, 2, 2, 4]), min_size=hours, max_size=hours)
    weights = draw(st.sampled_from([[1.0], [0.25, 0.75]]))
    futures = [(p, {c.id: draw(series) for c in classes}) for p in weights]
    regions = sorted({("aws", o.region) for o in offers})
    quotas = tuple(Quota(*pair, draw(st.integers(0, 4))) for pair in regions if draw(st.booleans()))
    blocks = ()
    if draw(st.booleans()):
        start = draw(st.integers(0, hours - 1))
        length = draw(st.integers(1, hours - start))
        blocks = (Block("k", "a", 2, start, length, draw(price), 1),)
    return problem(
        classes,
        offers,
        futures,
        quotas=quotas,
        blocks=blocks,
        hour_weight=draw(st.sampled_from([1.0, 365 / 7])),
        upfront_budget=draw(st.sampled_from([None, 2.0])),
        cvar=draw(st.sampled_from([None, Cvar(0.5, 0.5), Cvar(0.5, 0.5, of_all=True)])),
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tiny_problems())
def test_brute_force_agrees_on_tiny_problems(asked):
    _HOURS.clear()
    # Four GPUs a class at most, so that four instances of one GPU serve all of both.
    assert checked(asked).objective == close(
        brute_force(asked, most=8 if len(asked.classes) > 1 else 4)
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
    st.floats(1.0, 6.0),
    st.floats(0.05, 0.99),
)
def test_the_closed_form_of_one_class_and_one_offer_agrees(series, on_demand, ratio):
    # Reserve the k-th GPU if its busy share exceeds rate / on demand; each GPU then costs the
    # less of rate x hours and on demand x busy hours.
    rate = on_demand * ratio
    busy = [sum(1 for d in series if d >= k) for k in range(1, 7)]
    expected = sum(min(rate * len(series), on_demand * hours) for hours in busy)
    asked = problem([firm("w", ["a"])], [offer("a", on_demand, rate)], {"w": series})
    assert checked(asked).objective == close(expected)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=6),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.integers(0, 3),
)
def test_dynamic_programming_agrees_on_work_that_may_wait(released, idle, window):
    # Whole GPU-hours served so far are the state; each hour's bought hours cost 4, owned none.
    # Capacity that changes by the hour comes from a firm class on 3 owned GPUs that wants the rest.
    hours = len(released)
    idle = idle[:hours]
    asked = problem(
        [deferrable("d", ["own", "a"], window), firm("f", ["own"], shortage_penalty=1000.0)],
        [offer("a", 4.0), offer("own", None, existing=(Existing(3, hours),))],
        {"d": released, "f": [3 - n for n in idle]},
    )
    ready = np.cumsum(released)

    @cache
    def least(hour, done):
        if hour == hours:
            return 0.0 if done == ready[-1] else math.inf
        due = ready[hour - window] if hour >= window else 0
        due = ready[-1] if hour == hours - 1 else due
        return min(
            (
                4.0 * max(0, upto - done - idle[hour]) + least(hour + 1, upto)
                for upto in range(max(done, due), ready[hour] + 1)
            ),
            default=math.inf,
        )

    assert checked(asked).objective == close(least(0, 0))
