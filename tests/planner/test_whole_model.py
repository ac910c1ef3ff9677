"""Later starts, paid terms, hourly availability and quotas by use and unit: optima by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner.model.reductions import reduce
from planner.problem import Quota, QuotaUse, Reservation, SavingsPlan
from tests.problems import checked, close, deferrable, firm, offer, problem

METHODS = ["direct", "decomposition"]
SPOT, ON_DEMAND = (QuotaUse.SPOT,), (QuotaUse.ON_DEMAND,)


def later(term, start=2):
    """Four GPUs needed from hour 2 of six on, at 4.00 on demand or 1.00 reserved from hour 2."""
    ways = (Reservation("1y", 1.0, start=start, term=term),)
    demand = {"w": [0, 0, 4, 4, 4, 4]}
    return problem([firm("w", ["a"])], [offer("a", 4.0, reservations=ways)], demand)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("term", "cost", "count"),
    [
        (None, 16.0, 4),  # 4 GPUs x 4 h to the end of the file
        (4, 16.0, 4),
        (3, 12.0 + 16.0, 4),  # 4 x 3 h reserved, and the last hour 4 x 4.00 on demand
        (10, 40.0, 4),  # paid for 10 h, of which 4 lie within the file
        (20, 64.0, 0),  # 80.00 would be paid: on demand costs 4 x 4 h x 4.00
    ],
)
def test_a_reservation_is_paid_for_its_whole_term(method, term, cost, count):
    result = checked(later(term), method=method)
    assert result.objective == close(cost)
    assert sum(one.count for one in result.reservations) == count


@pytest.mark.parametrize("method", METHODS)
def test_a_reservation_is_not_there_before_it_starts(method):
    # From hour 3: three of four hours at 1.00, one at 4.00: 4 x (3 + 4) = 28.
    assert checked(later(None, start=3), method=method).objective == close(28.0)


@pytest.mark.parametrize("method", METHODS)
def test_upfront_counts_in_full_whatever_the_term(method):
    ways = (Reservation("1y", 1.0, upfront=10.0, start=2, term=4),)
    asked = dataclasses.replace(
        later(None), offers=(offer("a", 4.0, reservations=ways),), upfront_budget=25.0
    )
    # 25.00 pays two of 10.00: 2 x 4 h x 1.00 + 2 x 4 h x 4.00 = 40.
    assert checked(asked, method=method).objective == close(40.0)


def test_a_reservation_that_another_outlasts_at_less_is_left_out():
    ways = (
        Reservation("all", 1.0),  # 6 h x 1.00
        Reservation("late", 1.4, start=2),  # 4 h x 1.40 = 5.60: kept, it costs less
        Reservation("long", 1.0, start=2, term=8),  # 8.00 for less than "all" gives
    )
    asked = problem([firm("w", ["a"])], [offer("a", reservations=ways)], {"w": [1] * 6})
    kept = [way.id for _, way in reduce(asked).pools[0].reservations]
    assert kept == ["all", "late"]


def planned(term):
    """Five GPUs for four hours at 4.00; a plan from hour 1 covers them at 2.00."""
    return problem(
        [firm("w", ["a"])],
        [offer("a", 4.0, sp_rate=2.0)],
        {"w": [5] * 4},
        savings_plans=(SavingsPlan("aws", start=1, term=term),),
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("term", "cost"),
    [
        (None, 10 * 3 + 20.0),  # 10.00 an hour for hours 1 to 3, and hour 0 on demand
        (2, 10 * 2 + 40.0),
        (5, 10 * 5 + 20.0),  # two of the five hours paid lie past the file
        (7, 80.0),  # 90.00: on demand is cheaper
    ],
)
def test_a_savings_plan_is_paid_for_its_whole_term(method, term, cost):
    assert checked(planned(term), method=method).objective == close(cost)


def scarce(**rules):
    """Ten GPUs for two hours: on demand 4.00, useful spot 2.00, a quarter of it in hour 1."""
    sold = offer("a", 4.0, spot=1.0, spot_throughput=0.5, spot_available=(1.0, 0.25))
    return problem([firm("w", ["a"], **rules)], [sold], {"w": [10, 10]})


@pytest.mark.parametrize("method", METHODS)
def test_spot_serves_no_more_than_is_available(method):
    # Hour 0: 10 x 2.00. Hour 1: 2.5 x 2.00 + 7.5 x 4.00 = 35.
    assert checked(scarce(), method=method).objective == close(55.0)
    # With half at most on one offer: 5 x 2 + 5 x 4 = 30, and 35 as before.
    half = scarce(spot_max_share_per_offer=0.5)
    assert checked(half, method=method).objective == close(65.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_scenario_replaces_the_availability_of_an_offer(method):
    asked = scarce()
    (one,) = asked.scenarios
    none = {"a": np.zeros(2)}
    both = (
        dataclasses.replace(one, p=0.25),
        dataclasses.replace(one, p=0.75, spot_available=none),
    )
    asked = dataclasses.replace(asked, scenarios=both)
    assert checked(asked, method=method).objective == close(0.25 * 55 + 0.75 * 80)


def test_full_availability_is_as_if_it_were_not_given():
    sold = offer("a", 4.0, 2.0, spot=1.0, spot_available=(1.0, 1.0), on_demand_available=(1.0, 1.0))
    given = problem([firm("w", ["a"])], [sold], {"w": [3, 3]})
    bare = dataclasses.replace(sold, spot_available=None, on_demand_available=None)
    assert reduce(given).limits == ()
    assert len(reduce(given).cells) == len(reduce(dataclasses.replace(given, offers=(bare,))).cells)


@pytest.mark.parametrize("method", METHODS)
def test_on_demand_serves_no_more_than_is_available(method):
    sold = [offer("a", 4.0, on_demand_available=(0.3, 1.0)), offer("b", 6.0)]
    asked = problem([firm("w", ["a", "b"])], sold, {"w": [10, 10]})
    # Hour 0: 3 x 4 + 7 x 6 = 54, hour 1: 40.
    assert checked(asked, method=method).objective == close(94.0)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_plan_covers_counts_as_on_demand_there(method):
    sold = [offer("a", 4.0, sp_rate=2.2, on_demand_available=(0.3, 1.0)), offer("b", 6.0)]
    plans = (SavingsPlan("aws"),)
    asked = problem([firm("w", ["a", "b"])], sold, {"w": [10, 10]}, savings_plans=plans)
    # Covering 3 GPUs pays in both hours: 3 x 2.2 x 2 = 13.2. A fourth pays in hour 1 only, 2.2 x 2
    # against 4. So 13.2 + 7 x 6 (hour 0) + 7 x 4 (hour 1) = 83.2.
    assert checked(asked, method=method).objective == close(83.2)


@pytest.mark.parametrize("method", METHODS)
def test_work_that_waits_gets_a_share_of_what_still_waits(method):
    sold = [offer("a", 1.0, on_demand_available=(0.5, 0.5, 0.5)), offer("b", 10.0)]
    asked = problem([deferrable("d", ["a", "b"], 2)], sold, {"d": [8, 0, 0]})
    # 4 of 8, 2 of 4, 1 of 2 on a; the last GPU-hour costs 10 on b.
    assert checked(asked, method=method).objective == close(7 * 1.0 + 10.0)


@pytest.mark.parametrize("method", METHODS)
def test_waiting_for_spot_to_come_back_costs_nothing(method):
    sold = [offer("a", 4.0, spot=1.0, spot_throughput=0.8, spot_available=(0.0, 0.0, 1.0))]
    work = {"d": [8, 0, 0]}
    # 8 useful GPU-hours at 1.00 / 0.8 in hour 2; with a window of one hour, 32 on demand.
    patient = problem([deferrable("d", ["a"], 2)], sold, work)
    assert checked(patient, method=method).objective == close(10.0)
    hasty = problem([deferrable("d", ["a"], 1)], sold, work)
    assert checked(hasty, method=method).objective == close(32.0)


def test_waiting_classes_that_use_such_an_offer_stay_apart():
    sold = [offer("a", 4.0, on_demand_available=(0.5, 1.0))]
    classes = [deferrable("d", ["a"], 1), deferrable("e", ["a"], 1)]
    asked = problem(classes, sold, {"d": [1, 1], "e": [1, 1]})
    assert len(reduce(asked).groups) == 2
    firms = problem([firm("d", ["a"]), firm("e", ["a"])], sold, {"d": [1, 1], "e": [1, 1]})
    assert len(reduce(firms).groups) == 1


def test_hours_with_other_availability_stay_apart():
    sold = [offer("a", 4.0, spot=1.0, spot_available=(0.5, 1.0, 0.5))]
    asked = problem([firm("w", ["a"])], sold, {"w": [3, 3, 3]})
    assert reduce(asked).cells.of.tolist() == [[0, 1, 0]]


def test_a_dearer_offer_stays_beside_one_that_is_not_always_there():
    sold = [offer("a", 3.0, on_demand_available=(0.5, 1.0)), offer("b", 4.0), offer("c", 5.0)]
    (group,) = reduce(problem([firm("w", ["a", "b", "c"])], sold, {"w": [1, 1]})).groups
    assert [option.offer for option in group.menu.options] == ["a", "b"]


@pytest.mark.parametrize(("share", "cost"), [(0.5, 42.0), (1.0, 42.0), (0.0, 50.0)])
def test_the_last_whole_instance_is_had_for_any_part_of_it(share, cost):
    # Of 10 GPUs at most 5 on a: one instance of 8 at 32.00, and 2 on b at 5.00. All on b: 50.
    sold = [offer("a", 4.0, gpus=8, on_demand_available=(share,)), offer("b", 5.0)]
    asked = problem([firm("w", ["a", "b"])], sold, {"w": [10]}, on_demand_integer=True)
    assert checked(asked).objective == close(cost)


def two_shapes(**quota):
    """Twenty GPUs: 2.00 with 12 vCPUs each, or 3.00 with 4 vCPUs each, under one quota."""
    sold = [offer("big", 2.0, gpus=8, vcpus=96), offer("small", 3.0, gpus=1, vcpus=4)]
    limit = (Quota("aws", "us", **quota),)
    return problem([firm("w", ["big", "small"])], sold, {"w": [20]}, quotas=limit)


@pytest.mark.parametrize("method", METHODS)
def test_a_quota_of_vcpus_counts_the_vcpus_of_each_shape(method):
    # 12 big + 4 (20 - big) <= 96: big = 2, so 2 x 2.00 + 18 x 3.00 = 58.
    assert checked(two_shapes(vcpus=96.0), method=method).objective == close(58.0)
    # In GPUs the cheaper shape is always better: 16 x 2.00 + 4 x 100 short.
    assert checked(two_shapes(gpus=16.0), method=method).objective == close(432.0)


def test_a_dearer_shape_stays_where_it_uses_less_of_a_quota():
    (group,) = reduce(two_shapes(vcpus=96.0)).groups
    assert [o.offer for o in group.menu.options] == ["big", "small", ""]
    (group,) = reduce(two_shapes(gpus=16.0)).groups
    assert [o.offer for o in group.menu.options] == ["big", ""]
    assert reduce(two_shapes(vcpus=240.0)).quotas == {}  # 20 x 12: it can never bind
    assert reduce(two_shapes(vcpus=239.0)).quotas == {("aws", "us"): 239.0}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("spot", "quotas", "cost"),
    [
        (1.0, [(4.0, SPOT)], 4 * 1 + 6 * 3.0),
        (5.0, [(4.0, ON_DEMAND)], 4 * 3 + 6 * 5.0),
        (1.0, [(4.0, ON_DEMAND), (3.0, SPOT)], 4 * 3 + 3 * 1 + 3 * 100.0),
        (1.0, [(4.0, tuple(QuotaUse))], 4 * 1 + 6 * 100.0),
    ],
)
def test_a_quota_limits_its_own_use(method, spot, quotas, cost):
    limits = tuple(Quota("aws", "us", gpus, uses=uses) for gpus, uses in quotas)
    sold = [offer("a", 3.0, spot=spot)]
    asked = problem([firm("w", ["a"])], sold, {"w": [10]}, quotas=limits)
    assert checked(asked, method=method).objective == close(cost)


@pytest.mark.parametrize("method", METHODS)
def test_a_quota_of_whole_instances_in_vcpus_holds(method):
    sold = [offer("a", 2.0, gpus=8, vcpus=96), offer("b", 3.0, gpus=1, vcpus=4)]
    asked = problem(
        [firm("w", ["a", "b"])],
        sold,
        {"w": [10]},
        quotas=(Quota("aws", "us", vcpus=104.0),),
        on_demand_integer=True,
    )
    # One a of 96 vCPUs at 16.00 and two b of 4 each at 3.00 = 22; ten b would be 30.
    assert checked(asked, method=method).objective == close(22.0)
