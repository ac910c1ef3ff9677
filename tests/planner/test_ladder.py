"""What may be committed to now, what is left for later, and what is let go, by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from planner.assemble import Need
from planner.horizon import horizon_of
from planner.ladder import ladder, pool_terms, pools, unpriced
from planner.ladder_steps import committed_gpus, limits_of, sized
from planner.outcome import Commitment, Plan, ReservedCount
from planner.problem import CommitmentLimit, Offer, Problem
from planner.settings import EventRule
from planner.supply import Owned, Supply, SupplyOffer, Term
from planner.unpriced import unpriced_endings, unpriced_steps
from tests import bills
from tests.planner.test_last_night import ON_DEMAND, RESERVED, bought, night, nodes

if TYPE_CHECKING:
    from data.reasons import Reasons

AWS, GCP = "aws/us-east-1/p5.48xlarge", "gcp/us-central1/a3-highgpu-8g"
DAYS = 28
COVERED = bills.window(DAYS).grid()
YEAR = horizon_of(bills.window(DAYS).end, DAYS * 24)


def offer(name: str, rate: float, on_demand: float, **more: Any) -> SupplyOffer:
    cloud, region, instance_type = name.split("/")
    made = SupplyOffer(
        id=name, cloud=cloud, region=region, instance_type=instance_type, gpu_family="H100",
        gpus=8, on_demand=on_demand, spot=None, plan_rate=None, from_bill=False,
        terms=(Term("reserved_1y", "monthly", rate, 0.0, 8760),),
    )  # fmt: skip
    return replace(made, **more)


def supply(*offers: SupplyOffer, owned: tuple[Owned, ...] = ()) -> Supply:
    return Supply({one.id: one for one in offers}, owned)


def need(name: str, gpus: dict[str, float], **more: Any) -> Need:
    firm = {place: np.full(DAYS * 24, size) for place, size in gpus.items()}
    made = Need(
        workload_class=name, gpu_family="H100", firm=firm, spot={}, anywhere=tuple(firm),
        may_move=True, may_retype=True, interruptible=False, min_firm_share=0.0, throughput=1.0,
    )  # fmt: skip
    return replace(made, **more)


BOTH = supply(offer(AWS, 4.30, 6.88), offer(GCP, 7.70, 11.0))
STEADY = need("serve", {AWS: 24.0})


def test_steady_demand_may_be_committed_to_in_full():
    (rung,) = ladder([STEADY], BOTH, COVERED, YEAR)
    assert rung.pool.name == "aws H100"
    assert (rung.terms.reserved, rung.terms.on_demand) == (4.30, 6.88)
    assert (rung.needed, rung.advice.gpus) == (24.0, 24)


def test_what_is_held_is_not_committed_to_again_unless_it_ends():
    for until, allowed in ((YEAR.hours, 8), (0, 24)):
        owned = (Owned("ri-1", AWS, 16.0, until, 0.0, 0.0),)
        (rung,) = ladder([STEADY], replace(BOTH, owned=owned), COVERED, YEAR)
        assert rung.advice.gpus == allowed


def test_each_cloud_that_a_class_runs_on_is_a_pool_of_its_own_prices():
    found = pools([need("serve", {AWS: 24.0, GCP: 8.0}), need("train", {GCP: 8.0})], BOTH)
    assert [(one.name, one.offers, len(one.members)) for one in found] == [
        ("aws H100", (AWS,), 1), ("gcp H100", (GCP,), 2),
    ]  # fmt: skip
    assert [pool_terms(one).reserved for one in found] == [4.30, 7.70]


def test_work_that_nothing_may_be_committed_to_for_is_in_no_pool():
    hourly = supply(
        offer(AWS, 4.30, 6.88, terms=()), replace(offer(GCP, 7.70, 11.0), on_demand=None)
    )
    assert pools([need("serve", {AWS: 24.0, GCP: 8.0})], hourly) == []


def test_work_that_no_term_is_priced_for_is_told_with_what_is_owned_there():
    bare = supply(offer(AWS, 4.30, 6.88, terms=()), offer(GCP, 7.70, 11.0))
    needs = [need("serve", {AWS: 24.0, GCP: 8.0}), need("train", {AWS: 2.0})]
    owned = (
        Owned("ri-1", AWS, 16.0, YEAR.hours // 2, 0.0, 0.0),
        Owned("ri-2", AWS, 8.0, YEAR.hours, 0.0, 0.0),
    )
    bare = replace(bare, owned=owned)
    (one,) = unpriced(needs, bare, COVERED, YEAR)
    assert (one.cloud, one.family) == ("aws", "H100")
    assert (one.needed, one.held, one.on_demand) == (26.0, 24.0, 6.88)
    (step,) = unpriced_steps((one,), YEAR, ("3y",))
    assert (step.needed, step.allowed, step.reserved) == (26.0, 0.0, None)
    assert step.reason == "No price for 3 years."
    (end,) = unpriced_endings((one,), bare, YEAR, {"ri-1": "2027-03-01"}, ("3y",))
    assert (end.id, end.ends, end.action) == ("ri-1", "2027-03-01", "decide")
    assert (end.expected_share, end.break_even_share) == (None, None)


def test_a_pool_says_of_which_term_its_rate_is():
    three = Term("reserved_3y", "monthly", 3.0, 0.0, 26280)
    one = Term("reserved_1y", "monthly", 4.3, 0.0, 8760)
    for terms, said in (((one, three), "1 year"), ((three,), "3 years")):
        (rung,) = ladder([STEADY], supply(offer(AWS, 0.0, 6.88, terms=terms)), COVERED, YEAR)
        assert rung.term == said


def test_what_may_run_on_cheaper_spot_is_not_committed_to():
    with_spot = supply(offer(AWS, 4.30, 6.88, spot=2.0))
    batch = need("batch", {AWS: 24.0}, interruptible=True, min_firm_share=0.3334)
    (rung,) = ladder([batch], with_spot, COVERED, YEAR)
    # 24 x 0.3334 = 8.0016 must be firm.
    assert rung.terms.spot == pytest.approx(2.0)
    assert rung.advice.gpus == 8


def test_what_an_event_takes_away_soon_is_not_committed_to():
    # From the 28th day on nothing is needed: 28 / 365 of the year are less than 4.30 / 6.88.
    end = EventRule.model_validate(
        {"name": "end", "class": "serve", "from": date(2026, 10, 27), "factor": 0.0}
    )
    late = end.model_copy(update={"from_date": date(2027, 8, 1)})
    for event, allowed in ((end, 0), (late, 24)):
        (rung,) = ladder([STEADY], BOTH, COVERED, YEAR, (event,))
        assert rung.advice.gpus == allowed


def test_a_savings_plan_is_sized_on_the_family_with_the_most_to_commit_to():
    small = "aws/us-east-1/g6.12xlarge"
    cards = offer(small, 0.5, 0.8, gpu_family="L4", gpus=4, plan_rate=0.5)
    both = supply(offer(AWS, 4.30, 6.88, plan_rate=4.4), cards)
    needs = [STEADY, need("draw", {small: 40.0}, gpu_family="L4")]
    rungs = ladder(needs, both, COVERED, YEAR)
    made = sized(both, rungs)
    # 24 x 4.40 dollars an hour against 40 x 0.50.
    assert made.offers[AWS].plan_rate == 4.4
    assert made.offers[small].plan_rate is None
    assert [(one.id, one.gpus) for one in limits_of(rungs)] == [("aws H100", 24), ("aws L4", 40)]


def test_commitments_are_counted_as_their_limit_counts_them():
    sold = (
        Offer("a", "aws", "e", 8, 6.88, sp_rate=4.4),
        Offer("b", "aws", "e", 1, 6.88, sp_rate=4.0),
        Offer("c", "gcp", "e", 8, 11.0),
    )
    problem = Problem(1, (), sold, ())
    plan = Plan((ReservedCount("a", "1y", 2), ReservedCount("c", "1y", 5)), (Commitment("aws", 8),))
    # 2 x 8 reserved, and 8 dollars an hour at 4 each; what is bought elsewhere does not count.
    assert committed_gpus(CommitmentLimit("x", ("a", "b"), 99), plan, problem) == 16 + 2


def reasons_of(plan: Any) -> Reasons:
    assert plan.summary.reasons is not None
    return plan.summary.reasons


def test_the_plan_commits_to_what_the_rule_allows_and_no_more():
    made = night(nodes(3), ON_DEMAND, RESERVED)
    (step,) = reasons_of(made).ladder
    assert bought(made) == {"reserved": 3.0}
    assert (step.needed, step.allowed, step.bought, step.later) == (24.0, 24.0, 24.0, 0.0)


def test_what_pays_by_the_forecast_alone_is_left_for_the_next_step():
    # At work in 15 of 24 hours at 6.89: 103.35 dollars a GPU and day by the hour, 103.20 reserved.
    # The rule asks for more than that of what cannot be given back.
    made = night(nodes(1, hours=15), bills.price("on_demand", 6.89), RESERVED)
    (step,) = reasons_of(made).ladder
    assert bought(made) == {}
    assert (step.allowed, step.bought, step.later) == (0.0, 0.0, 8.0)
    assert step.next_step == "2026-09-30"  # 28 days after the window
    assert step.reason.startswith("Buy nothing yet")


def owned_node(days: int, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    row = {
        "id": "ri-1", "kind": "reserved", "instance_type": "p5.48xlarge", "region": "us-east-1",
        "count": 1, "start": bills.START - timedelta(days=30),
        "end": bills.window().end + timedelta(days=days), "usd_per_instance_hour": Decimal("34.4"),
    }  # fmt: skip
    hours = bills.node_hours(
        "i-0", range(24), rate="4.30", purchase_option="reserved", commitment_id="ri-1", **more
    )
    return row, hours


@pytest.mark.parametrize(("needed", "action"), [(8, "renew"), (3, "let_expire")])
def test_a_commitment_is_renewed_where_its_like_would_be_at_work(needed: int, action: str):
    # 8 of 8 GPUs at work are more than 4.30 / 6.88 = 62.5 %; 3 of 8, 37.5 %, are less.
    row, hours = owned_node(100, needed=needed)
    made = night(bills.fleet(hours), ON_DEMAND, RESERVED, owned=(row,))
    (part,) = reasons_of(made).ending
    assert (part.id, part.action, part.ends) == ("ri-1", action, "2026-12-11")
    assert part.expected_share == pytest.approx(needed / 8)
    assert part.break_even_share == pytest.approx(0.625)


def test_a_commitment_that_outlasts_the_year_does_not_end_in_it():
    row, hours = owned_node(400)
    made = night(bills.fleet(hours), ON_DEMAND, RESERVED, owned=(row,))
    assert reasons_of(made).ending == ()


def test_of_two_that_end_one_after_the_other_the_second_stands_above_the_first():
    first, hours = owned_node(100)
    second = first | {"id": "ri-2", "end": bills.window().end + timedelta(days=200)}
    idle = bills.node_hours(
        "i-1", range(24), rate="4.30", purchase_option="reserved", commitment_id="ri-2",
        needed=0, state="free",
    )  # fmt: skip
    made = night(bills.fleet(hours, idle), ON_DEMAND, RESERVED, owned=(first, second))
    # 8 GPUs are needed. Until ri-2 ends it serves them, so the like of ri-1 is at work in the
    # 165 of 265 days after; ri-1 is let go (62.3 % are less than 62.5 %), and ri-2 renewed.
    assert [(one.id, one.action) for one in reasons_of(made).ending] == [
        ("ri-1", "let_expire"), ("ri-2", "renew"),
    ]  # fmt: skip
