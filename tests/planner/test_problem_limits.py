"""Reading of start and term, hourly availability and quotas, and every fault of them."""

from __future__ import annotations

import pytest

from planner import problem_file
from planner.problem import Quota, QuotaUse
from tests.planner.test_problem_file import GOOD, changed, faults_of

ONE = {"provider": "aws", "region": "us"}


def test_a_file_without_the_fields_means_what_it_always_did():
    asked = problem_file.parse(GOOD)
    (way,) = asked.offers[0].reservations
    assert (way.start, way.term) == (0, None)
    assert (asked.savings_plans[0].start, asked.savings_plans[0].term) == (0, None)
    first = asked.offers[0]
    assert (first.vcpus, first.spot_available, first.on_demand_available) == (None, None, None)
    assert asked.quotas == (Quota("aws", "us", 64.0, None, tuple(QuotaUse)),)
    assert (asked.scenarios[0].spot_available, asked.scenarios[0].on_demand_available) == ({}, {})


def test_start_and_term_are_read_and_may_reach_past_the_file():
    way = {"id": "1y", "rate": 2.4, "start": 1, "term": 8760}
    asked = problem_file.parse(changed("offers", 0, "reservations", to=[way]))
    (found,) = asked.offers[0].reservations
    assert (found.start, found.term) == (1, 8760)
    plans = [{"provider": "aws", "start": 1, "term": 3}]
    (plan,) = problem_file.parse(changed("savings_plans", to=plans)).savings_plans
    assert (plan.start, plan.term) == (1, 3)


def test_availability_of_an_offer_and_of_a_scenario_is_read():
    asked = problem_file.parse(changed("offers", 0, "spot_available", to=[0, 0.5]))
    assert asked.offers[0].spot_available == (0.0, 0.5)
    future = GOOD["scenarios"][0] | {"on_demand_available": {"a": [1, 0.25]}}
    asked = problem_file.parse(changed("scenarios", to=[future]))
    assert asked.scenarios[0].on_demand_available["a"].tolist() == [1.0, 0.25]


def test_a_quota_of_vcpus_for_spot_alone_is_read():
    document = changed("offers", 0, "vcpus", to=192)
    document["quotas"] = [
        ONE | {"vcpus": 384, "uses": ["spot"]},
        ONE | {"gpus": 8, "uses": ["on_demand"]},
    ]
    asked = problem_file.parse(document)
    assert asked.offers[0].vcpus == 192
    assert asked.quotas == (
        Quota("aws", "us", None, 384.0, (QuotaUse.SPOT,)),
        Quota("aws", "us", 8.0, None, (QuotaUse.ON_DEMAND,)),
    )
    assert asked.quotas[0].per_gpu(asked.offers[0]) == 24.0
    assert (asked.quotas[0].limit, asked.quotas[0].unit) == (384.0, "vCPUs")


RESERVATION = "offers[0].reservations[0]", '(offer "a", reservation "1y")'
FAULTS = [
    (
        ("offers", 0, "reservations", 0, "start"),
        2,
        "{0}.start {1}: must be <= 1, the last hour, is 2",
    ),
    (("offers", 0, "reservations", 0, "start"), -1, "{0}.start {1}: must be >= 0, is -1"),
    (
        ("offers", 0, "reservations", 0, "start"),
        0.5,
        "{0}.start {1}: must be a whole number, is 0.5",
    ),
    (("offers", 0, "reservations", 0, "term"), 0, "{0}.term {1}: must be >= 1, is 0"),
    (("offers", 0, "reservations", 0, "term"), None, "{0}.term {1}: must not be null"),
    (("savings_plans", 0, "start"), 5, "savings_plans[0].start: must be <= 1, the last hour, is 5"),
    (("savings_plans", 0, "term"), 1.5, "savings_plans[0].term: must be a whole number, is 1.5"),
    (
        ("offers", 0, "spot_available"),
        [1],
        'offers[0].spot_available (offer "a"): must have 2 hours, has 1',
    ),
    (
        ("offers", 0, "on_demand_available"),
        [0.5, 1.5],
        'offers[0].on_demand_available[1] (offer "a", hour 1): must be <= 1, is 1.5',
    ),
    (
        ("offers", 0, "on_demand_available"),
        "all",
        'offers[0].on_demand_available (offer "a"): must be a list of numbers, is "all"',
    ),
    (
        ("scenarios", 0, "spot_available"),
        {"c": [1, 1]},
        'scenarios[0].spot_available.c (scenario 0): unknown offer "c"',
    ),
    (
        ("scenarios", 0, "spot_available"),
        {"a": [1, -1]},
        'scenarios[0].spot_available.a[1] (offer "a", scenario 0, hour 1): must be >= 0, is -1',
    ),
    (("offers", 0, "vcpus"), 0, 'offers[0].vcpus (offer "a"): must be >= 1, is 0'),
    (("offers", 0, "vcpus"), 1.5, 'offers[0].vcpus (offer "a"): must be a whole number, is 1.5'),
    (
        ("quotas", 0, "uses"),
        [],
        'quotas[0].uses: must hold "on_demand", "spot" or both',
    ),
    (
        ("quotas", 0, "uses"),
        ["reserved"],
        'quotas[0].uses: must be "on_demand" or "spot", is "reserved"',
    ),
    (("quotas",), [ONE], "quotas[0].gpus: required, and missing"),
    (
        ("quotas",),
        [ONE | {"gpus": 4, "vcpus": -1}],
        "quotas[0].vcpus: a quota has either gpus or vcpus, not both",
    ),
    (
        ("quotas",),
        [ONE | {"vcpus": 8}],
        'offers[0].vcpus (offer "a"): required, as quotas[0] counts vCPUs, and missing',
    ),
    (
        ("quotas",),
        [ONE | {"gpus": 4}, ONE | {"gpus": 8}],
        'quotas[1].region: repeats "aws" in "us" of quotas[0]',
    ),
    (
        ("quotas",),
        [ONE | {"gpus": 4}, ONE | {"gpus": 8, "uses": ["spot"]}],
        'quotas[1].uses: spot of "aws" in "us" is limited by quotas[0] already',
    ),
]


@pytest.mark.parametrize(("path", "value", "message"), FAULTS)
def test_each_fault_is_named_at_its_place(path, value, message):
    assert message.format(*RESERVATION) in faults_of(changed(*path, to=value))


def test_every_offer_that_a_quota_of_vcpus_counts_must_tell_its_own():
    twin = GOOD["offers"][0] | {"id": "twin", "vcpus": 192}
    bare = GOOD["offers"][0] | {"id": "bare"}
    document = changed("offers", to=[*GOOD["offers"], twin, bare])
    document["quotas"] = [ONE | {"vcpus": 8}]
    assert faults_of(document) == [
        'offers[0].vcpus (offer "a"): required, as quotas[0] counts vCPUs, and missing',
        'offers[3].vcpus (offer "bare"): required, as quotas[0] counts vCPUs, and missing',
    ]
