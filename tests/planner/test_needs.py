"""Where a class may run follows its rules; what it needs follows its hours."""

from __future__ import annotations

import pytest

from planner.needs import needs_from, spot_throughput
from planner.settings import OfferRule, Settings, WorkloadClass
from planner.supply import Supply, SupplyOffer, offer_id
from tests import bills


def offer(region: str, instance_type: str = "p5.48xlarge") -> SupplyOffer:
    return SupplyOffer(
        id=offer_id("aws", region, instance_type), cloud="aws", region=region,
        instance_type=instance_type, gpu_family="H100", gpus=8, on_demand=6.88, spot=2.5,
        terms=(), plan_rate=None, from_bill=False,
    )  # fmt: skip


OFFERS = {
    one.id: one
    for one in (offer("us-east-1"), offer("us-west-2"), offer("us-east-1", "p5.4xlarge"))
}
HERE, THERE, SMALL = list(OFFERS)


def need_of(rule: WorkloadClass, eligible: set[str]) -> tuple[str, ...]:
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(3))))
    settings = Settings(classes=(rule,))
    needs = needs_from(
        bill, bills.window().grid(), settings, Supply(OFFERS, ()), lambda _rule, _family: eligible
    )
    assert len(needs) == 1
    assert needs[0].present == (HERE,)
    assert needs[0].firm[HERE].tolist() == [8.0] * 3 + [0.0] * 21
    return needs[0].anywhere


def test_a_class_without_rules_stays_where_it_is_and_on_what_it_runs_on() -> None:
    assert need_of(WorkloadClass(name="training"), set(OFFERS)) == (HERE,)


def test_a_class_that_names_regions_may_move_there() -> None:
    rule = WorkloadClass(name="training", offers=OfferRule(regions=("us-east-1", "us-west-2")))
    assert need_of(rule, {HERE, THERE}) == (HERE, THERE)


def test_an_interconnect_rule_opens_other_machine_types_in_the_same_place() -> None:
    rule = WorkloadClass(name="training", offers=OfferRule(interconnect="none"))
    assert need_of(rule, {HERE, SMALL}) == (HERE, SMALL)


def test_hours_on_spot_count_by_what_they_are_worth() -> None:
    rule = WorkloadClass(name="training", interruptible=True, checkpoint_minutes=40)
    rows = bills.node_hours("i-1", range(24), purchase_option="spot", rate="2.5")
    needs = needs_from(
        bills.as_numbers(bills.fleet(rows)),
        bills.window().grid(),
        Settings(classes=(rule,)),
        Supply(OFFERS, ()),
        lambda _rule, _family: set(OFFERS),
    )
    # 0.1 interruptions an hour x (20 + 10) minutes = 5% lost: 8 x 0.95 = 7.6 useful GPUs.
    assert needs[0].spot[HERE].tolist() == pytest.approx([7.6] * 24)
    assert needs[0].firm == {}


def test_an_hour_outside_the_observed_ones_is_left_out() -> None:
    bill = bills.as_numbers(bills.fleet(bills.node_hours("i-1", range(30))))
    rule = WorkloadClass(name="training")
    needs = needs_from(
        bill,
        bills.window().grid(),
        Settings(classes=(rule,)),
        Supply(OFFERS, ()),
        lambda _rule, _family: set(OFFERS),
    )
    assert needs[0].firm[HERE].tolist() == [8.0] * 24


def test_throughput_never_falls_below_one_half() -> None:
    rule = WorkloadClass(name="training", checkpoint_minutes=600)
    assert spot_throughput(rule, 5.0) == 0.5
