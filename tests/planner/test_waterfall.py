"""The steps from today's bill to the plan's, on fleets small enough to price by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from planner.assemble import PlanRules, Stage
from planner.horizon import horizon_of
from planner.needs import needs_from
from planner.owned import owned_from
from planner.settings import OfferRule, Settings, WorkloadClass
from planner.stage_solver import StageSolver
from planner.supply import Supply, offers_from
from planner.waterfall import Basis, Steps, Waterfall, run
from tests import bills

if TYPE_CHECKING:
    import pandas as pd

MONTH = 730  # hours


def work_out(
    fleet: pd.DataFrame,
    prices: pd.DataFrame,
    owned: pd.DataFrame | None = None,
    classes: tuple[WorkloadClass, ...] = (),
    terms: tuple[str, ...] = ("1y",),
) -> Waterfall:
    window = bills.window()
    bill = bills.as_numbers(fleet)
    settings = Settings(classes=classes)
    offers = offers_from(prices, bills.shapes(), bill, terms)
    table = bills.commitments() if owned is None else owned
    found, notes = owned_from(table, bill, offers, horizon_of(window.end, window.hours))
    supply = Supply(offers, found, notes)

    def everywhere(_rule: WorkloadClass, _family: str) -> set[str]:
        return set(offers)

    basis = Basis(
        needs=needs_from(bill, window.grid(), settings, supply, everywhere),
        supply=supply,
        horizon=horizon_of(window.end, window.hours),
        rules=PlanRules(upfront_budget=0.0),
        solve_stage=StageSolver(1e-6, 60.0, "highs"),
    )
    return run(bill, basis)


def identity(steps: Steps) -> float:
    gains = steps.release + steps.rightsize + steps.use_idle + steps.spot + steps.buy + steps.move
    changes = steps.repriced + steps.growth + steps.expiring
    return steps.today + changes - gains - steps.plan


ON_DEMAND = bills.price("on_demand", 6.88)


def test_a_parked_node_is_released_and_nothing_else_changes() -> None:
    fleet = bills.fleet(
        bills.node_hours("i-busy", range(24)),
        bills.node_hours("i-idle", range(24), needed=0, state="free", stoppable=True),
    )
    steps = work_out(fleet, bills.offers(ON_DEMAND)).steps
    node = 8 * 6.88 * MONTH  # 40,179.20
    assert steps.today == pytest.approx(2 * node)
    assert steps.release == pytest.approx(node)
    assert steps.plan == pytest.approx(node)
    for other in (steps.rightsize, steps.use_idle, steps.spot, steps.buy, steps.repriced):
        assert other == pytest.approx(0, abs=0.01)


def test_a_node_busy_at_all_hours_is_reserved() -> None:
    fleet = bills.fleet(bills.node_hours("i-busy", range(24)))
    made = work_out(fleet, bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30)))
    assert made.steps.buy == pytest.approx(8 * (6.88 - 4.30) * MONTH)
    assert made.steps.plan == pytest.approx(8 * 4.30 * MONTH)
    assert [(one.count, one.id) for one in made.plan.result.reservations] == [
        (1, "reserved_1y/monthly")
    ]


def test_a_node_busy_below_the_break_even_is_not_reserved() -> None:
    # 4.30 / 6.88 = 62.5%; the node works 14 of 24 hours, 58.3%.
    fleet = bills.fleet(bills.node_hours("i-busy", range(14)))
    made = work_out(fleet, bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30)))
    assert made.steps.buy == pytest.approx(0, abs=0.01)
    assert made.plan.result.reservations == ()


def test_an_interruptible_class_moves_to_spot_and_pays_for_lost_work() -> None:
    rule = WorkloadClass(
        name="training", interruptible=True, checkpoint_minutes=40, restart_minutes=10
    )
    fleet = bills.fleet(bills.node_hours("i-busy", range(24)))
    prices = bills.offers(ON_DEMAND, bills.price("spot", 2.5))
    steps = work_out(fleet, prices, classes=(rule,)).steps
    # 0.1 interruptions an hour lose 20 + 10 minutes each: throughput 1 - 0.1 x 0.5 = 0.95.
    assert steps.plan == pytest.approx(8 * 2.5 / 0.95 * MONTH)
    assert steps.spot == pytest.approx(8 * (6.88 - 2.5 / 0.95) * MONTH)


def test_a_class_on_spot_already_saves_nothing_by_it() -> None:
    rule = WorkloadClass(name="training", interruptible=True, checkpoint_minutes=40)
    on_spot = bills.node_hours("i-spot", range(24), rate="2.5", purchase_option="spot")
    prices = bills.offers(ON_DEMAND, bills.price("spot", 2.5))
    steps = work_out(bills.fleet(on_spot), prices, classes=(rule,)).steps
    assert steps.today == pytest.approx(8 * 2.5 * MONTH)
    assert steps.plan == pytest.approx(steps.today)
    assert steps.spot == pytest.approx(0, abs=0.01)


def committed(end_days: int) -> dict[str, Any]:
    return {
        "id": "ri-1",
        "kind": "reserved",
        "instance_type": "p5.48xlarge",
        "region": "us-east-1",
        "count": 1,
        "start": bills.START - timedelta(days=30),
        "end": bills.window().end + timedelta(days=end_days),
    }


IDLE_RESERVED: dict[str, Any] = {
    "rate": "4.00",
    "needed": 0,
    "state": "free",
    "purchase_option": "reserved",
    "commitment_id": "ri-1",
}


def test_work_paid_by_the_hour_moves_onto_idle_committed_gpus() -> None:
    fleet = bills.fleet(
        bills.node_hours("i-busy", range(24)),
        bills.node_hours("i-held", range(24), **IDLE_RESERVED),
    )
    steps = work_out(fleet, bills.offers(ON_DEMAND), bills.commitments(committed(400))).steps
    assert steps.today == pytest.approx(8 * (6.88 + 4.00) * MONTH)
    assert steps.use_idle == pytest.approx(8 * 6.88 * MONTH)
    assert steps.plan == pytest.approx(8 * 4.00 * MONTH)


def test_the_end_of_a_commitment_is_no_saving() -> None:
    fleet = bills.fleet(
        bills.node_hours("i-busy", range(24)),
        bills.node_hours("i-held", range(24), **IDLE_RESERVED),
    )
    # It ends after 73 of 365 days: a fifth of the year it is paid, four fifths on demand.
    steps = work_out(fleet, bills.offers(ON_DEMAND), bills.commitments(committed(73))).steps
    assert steps.plan == pytest.approx(8 * (0.2 * 4.00 + 0.8 * 6.88) * MONTH)
    assert steps.expiring == pytest.approx(8 * 0.8 * (6.88 - 4.00) * MONTH)
    assert identity(steps) == pytest.approx(0, abs=0.01)


def test_a_price_that_changed_since_the_bill_is_told_apart() -> None:
    fleet = bills.fleet(bills.node_hours("i-busy", range(24), rate="7.00"))
    steps = work_out(fleet, bills.offers(ON_DEMAND)).steps
    assert steps.repriced == pytest.approx(8 * (6.88 - 7.00) * MONTH)
    assert steps.release + steps.rightsize + steps.use_idle + steps.spot == pytest.approx(
        0, abs=0.01
    )
    assert identity(steps) == pytest.approx(0, abs=0.01)


def test_idle_gpus_on_a_node_at_work_are_rightsizing_not_release() -> None:
    fleet = bills.fleet(
        bills.node_hours("i-1", range(24), gpus=6),
        bills.node_hours("i-1", range(24), gpus=2, needed=0, state="free"),
    )
    steps = work_out(fleet, bills.offers(ON_DEMAND)).steps
    assert steps.release == 0
    assert steps.rightsize == pytest.approx(2 * 6.88 * MONTH)
    assert steps.plan == pytest.approx(6 * 6.88 * MONTH)


def test_every_stage_is_solved_to_its_gap() -> None:
    fleet = bills.fleet(bills.node_hours("i-busy", range(24)))
    made = work_out(fleet, bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30)))
    assert set(made.stages) == set(Stage)
    assert all(solved.result.status == "optimal" for solved in made.stages.values())
    assert identity(made.steps) == pytest.approx(0, abs=0.01)


def two_regions() -> pd.DataFrame:
    return bills.fleet(
        bills.node_hours("i-here", range(24)),
        bills.node_hours("i-there", range(24), rate="9.00", region="us-west-2"),
    )


THERE = bills.price("on_demand", 9.0, region="us-west-2")


def test_a_class_without_rules_stays_in_each_place_it_runs_in() -> None:
    steps = work_out(two_regions(), bills.offers(ON_DEMAND, THERE)).steps
    assert steps.move == pytest.approx(0, abs=0.01)
    assert steps.plan == pytest.approx(8 * (6.88 + 9.0) * MONTH)


def test_a_class_whose_rules_name_regions_moves_to_the_cheaper_one() -> None:
    places = OfferRule(regions=("us-east-1", "us-west-2"))
    rule = WorkloadClass(name="training", offers=places)
    steps = work_out(two_regions(), bills.offers(ON_DEMAND, THERE), classes=(rule,)).steps
    assert steps.move == pytest.approx(8 * (9.0 - 6.88) * MONTH)
    assert steps.plan == pytest.approx(2 * 8 * 6.88 * MONTH)


def test_hours_that_no_priced_offer_serves_are_hours_and_no_dollars() -> None:
    # A reserved node that ends after 73 days, of a type that nobody sells by the hour.
    held = bills.node_hours(
        "i-held", range(24), rate="4.00", purchase_option="reserved", commitment_id="ri-1"
    )
    made = work_out(
        bills.fleet(held), bills.offers(bills.price("spot", 2.5)), bills.commitments(committed(73))
    )
    assert made.steps.plan == pytest.approx(0.2 * 8 * 4.00 * MONTH)
    assert made.plan.short_gpu_hours == pytest.approx(0.8 * 8 * MONTH)


def test_whole_machines_are_told_where_gpus_are_counted() -> None:
    # Six of eight GPUs needed: a whole machine would cost two GPUs more in every hour.
    fleet = bills.fleet(bills.node_hours("i-1", range(24), gpus=6))
    made = work_out(fleet, bills.offers(ON_DEMAND))
    assert made.plan.whole_machines == pytest.approx(2 * 6.88 * MONTH)


def test_hours_of_a_savings_plan_share_machines_with_those_on_demand() -> None:
    # 8 GPUs in 12 of 24 hours, 6 in the others: a plan of 6 GPUs is at work all day (4.40 < 6.88)
    # and 2 GPUs come beside it; the 2 that 12 hours lack to a whole machine are the only extra.
    fleet = bills.fleet(
        bills.node_hours("i-1", range(12)), bills.node_hours("i-1", range(12, 24), gpus=6)
    )
    made = work_out(fleet, bills.offers(ON_DEMAND, bills.price("savings_plan_1y", 4.40)))
    (bought,) = made.plan.result.savings_plans
    assert bought.usd_per_hour == pytest.approx(6 * 4.40, rel=1e-4)
    assert made.plan.whole_machines == pytest.approx(12 / 24 * 2 * 6.88 * MONTH)


def test_a_commitment_that_ended_in_the_window_is_paid_no_more() -> None:
    held = bills.node_hours(
        "i-held", range(24), rate="4.00", purchase_option="reserved", commitment_id="ri-1"
    )
    owned = bills.commitments(committed(0))
    made = work_out(bills.fleet(held), bills.offers(ON_DEMAND), owned)
    assert made.steps.today == pytest.approx(8 * 4.00 * MONTH)
    assert made.steps.expiring == pytest.approx(8 * (6.88 - 4.00) * MONTH)
    assert made.steps.plan == pytest.approx(8 * 6.88 * MONTH)
    assert identity(made.steps) == pytest.approx(0, abs=0.01)


def test_a_class_without_rules_stays_on_machines_with_as_many_gpus() -> None:
    # Both run in one place: 8-GPU nodes at 9.00, single GPUs at 6.88 per GPU-hour.
    fleet = bills.fleet(
        bills.node_hours("i-node", range(24), rate="9.00"),
        bills.node_hours(
            "i-desk", range(24), gpus=1, gpu_count=1, instance_type="p5.4xlarge",
            gpu_model="H100-SXM5-80GB",
        ),
    )  # fmt: skip
    prices = bills.offers(
        bills.price("on_demand", 9.0),
        bills.price("on_demand", 6.88, instance_type="p5.4xlarge", gpus=1),
    )
    steps = work_out(fleet, prices).steps
    assert steps.move == pytest.approx(0, abs=0.01)
    assert steps.plan == pytest.approx((8 * 9.0 + 6.88) * MONTH)


def test_the_plan_keeps_the_most_and_the_fewest_gpus_of_each_place() -> None:
    # One node at all hours and a second one in hour 5: 8 to 16 GPUs, however they are paid for.
    fleet = bills.fleet(
        bills.node_hours("i-busy", range(24)), bills.node_hours("i-peak", range(5, 6))
    )
    made = work_out(fleet, bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30)))
    assert made.plan.peaks.to_numpy().tolist() == [
        ["training", "aws/us-east-1/p5.48xlarge", 8.0, 16.0, 8.0]
    ]
