"""Why a plan is what it is, on fleets small enough to price by hand. A node is 8 GPUs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from planner import alternatives
from planner.assemble import Stage
from planner.class_shares import class_shares
from planner.horizon import horizon_of
from planner.optimise.explain import Limit
from planner.outcome import Result
from planner.problem import CommitmentLimit
from planner.purchases import purchases
from planner.reasons import Basis, owned_parts, reasons
from planner.settings import OfferRule, WorkloadClass
from planner.solve import solve
from planner.stage_solver import StageSolver
from planner.supply import Owned, Supply, offers_from
from tests import bills
from tests.planner.test_waterfall import ON_DEMAND, committed, work_out

if TYPE_CHECKING:
    import pandas as pd

    from data.reasons import Reasons
    from planner.waterfall import Waterfall

MONTH = 730  # hours
RESERVED = bills.price("reserved_1y", 4.30)
BUSY_18 = bills.fleet(bills.node_hours("i-busy", range(18)))


def told(fleet: pd.DataFrame, prices: pd.DataFrame, made: Waterfall) -> Reasons:
    window = bills.window()
    supply = Supply(offers_from(prices, bills.shapes(), bills.as_numbers(fleet), ["1y"]), ())
    return reasons(Basis(made, supply, horizon_of(window.end, window.hours), ()), None)


def cents(amount: float) -> Decimal:
    return Decimal(str(round(amount, 2)))


# The proof


def test_every_stage_is_priced_again_and_lies_between_its_bounds() -> None:
    made = work_out(BUSY_18, bills.offers(ON_DEMAND, RESERVED))
    year = 8760 * 8
    wanted = dict.fromkeys(Stage, year * 18 / 24 * 6.88) | {Stage.BUY: year * 4.30}
    for stage, solved in made.stages.items():
        assert solved.audited == pytest.approx(wanted[stage], rel=1e-9), stage
        assert solved.result.objective == pytest.approx(solved.audited, rel=1e-9)
        assert solved.result.bound is not None
        assert solved.result.bound <= solved.audited * (1 + 1e-9)


def answer(status: str, objective: float | None, bound: float) -> Result:
    return Result(status, objective, bound, None, 0.0, "highs 1")


@pytest.mark.parametrize(
    ("bound", "status", "gap"), [(99.995, "optimal", 5e-5), (90.0, "feasible", 0.1)]
)
def test_a_former_plan_that_is_kept_has_the_newer_stages_bound(
    bound: float, status: str, gap: float
) -> None:
    # 100 was optimal with fewer choices; with more of them nobody has proven more than the bound.
    solver = StageSolver(gap=1e-4, time_limit=60.0, name="highs")
    kept = solver.kept(answer("optimal", 100.0, 100.0), answer("feasible", 100.5, bound))
    assert (kept.objective, kept.bound, kept.status) == (100.0, bound, status)
    assert kept.gap == pytest.approx(gap)


def test_a_plan_kept_to_stay_near_last_night_is_as_proven_as_its_tolerance() -> None:
    solver = StageSolver(1e-4, 60.0, "highs", last=None, tolerance=0.001)
    found = answer("optimal", 100.08, 99.95)
    former = answer("optimal", 100.0, 100.0)
    assert solver.kept(former, found).status == "feasible"  # a gap of 5e-4 where 1e-4 is asked
    near = replace(solver, last=found.plan)
    assert near.kept(former, found).status == "optimal"  # 1e-4 and 1e-3 together


# What to buy, and instead of what


def test_without_a_reservation_its_hours_are_bought_one_by_one() -> None:
    prices = bills.offers(ON_DEMAND, RESERVED)
    made = work_out(BUSY_18, prices)
    one = told(BUSY_18, prices, made).options[0]
    reserved, by_hour = 8 * 4.30 * MONTH, 8 * 6.88 * MONTH * 18 / 24  # 25,112 and 30,134.40
    assert (one.kind, one.count, one.binding) == ("reserved", 1.0, "demand")
    assert one.costs_per_month == cents(reserved)
    assert one.saves_per_month == cents(by_hour)
    assert one.alternative_per_month == cents(by_hour - reserved)
    assert one.alternative == ("buy these hours on demand or as spot, and cost $5,022 more a month")
    assert (one.break_even_share, one.expected_share) == (
        pytest.approx(4.30 / 6.88), pytest.approx(18 / 24),
    )  # fmt: skip
    assert one.needed_gpus == pytest.approx(8 * 18 / 24)


def test_where_no_other_plan_was_worked_out_the_last_instance_is_weighed() -> None:
    prices = bills.offers(ON_DEMAND, RESERVED)
    made = replace(work_out(BUSY_18, prices), instead={})
    one = told(BUSY_18, prices, made).options[0]
    assert one.alternative == (  # 30,134.40 - 25,112
        "serve the hours of its last instance otherwise, for $5,022.40 more a month"
    )
    assert one.alternative_per_month is None


def test_of_a_large_problem_only_the_largest_purchase_has_another_plan(monkeypatch) -> None:
    monkeypatch.setattr(alternatives, "MOST_SIZE", 1)
    # Two classes that may not share a machine: 8 GPUs at 4.30 and 16 at 4.50 are bought.
    fleet = bills.fleet(
        bills.node_hours("i-a", range(24)),
        *(
            bills.node_hours(f"i-{n}", range(24), region="us-west-2", workload_class="batch")
            for n in range(2)
        ),
    )
    there = {"region": "us-west-2"}
    prices = bills.offers(
        ON_DEMAND, RESERVED,
        bills.price("on_demand", 6.88, **there), bills.price("reserved_1y", 4.50, **there),
    )  # fmt: skip
    made = work_out(fleet, prices)
    assert [one.count for one in made.plan.result.reservations] == [1, 2]
    assert list(made.instead) == [
        ("reserved", "aws/us-west-2/p5.48xlarge", "reserved_1y/monthly")
    ]  # fmt: skip


def test_the_next_best_to_a_reservation_is_the_savings_plan_where_that_is_cheaper() -> None:
    # Of every hour: reserved at 4.30, or a plan of 8 x 4.50 = 36 dollars an hour.
    fleet = bills.fleet(bills.node_hours("i-busy", range(24)))
    prices = bills.offers(ON_DEMAND, RESERVED, bills.price("savings_plan_1y", 4.50))
    one = told(fleet, prices, work_out(fleet, prices)).options[0]
    assert one.alternative == (
        "buy the aws savings plan at $36.00 an hour, and cost $1,168 more a month"
    )
    assert one.alternative_per_month == cents(8 * 0.20 * MONTH)


def test_a_purchase_row_says_what_it_would_cost_to_do_without_it() -> None:
    prices = bills.offers(ON_DEMAND, RESERVED)
    made = work_out(BUSY_18, prices)
    supply = Supply(offers_from(prices, bills.shapes(), bills.as_numbers(BUSY_18), ["1y"]), ())
    (one,) = purchases(made.plan, supply, made.instead)
    assert one.why.endswith(
        "Without it the best plan would buy these hours on demand or as spot, "
        "and cost $5,022 more a month"
    )


# What was not chosen


def test_a_reservation_that_does_not_pay_is_told_with_its_dollars() -> None:
    # At work in 10 of 24 hours, it would pay above 62.5 %.
    fleet = bills.fleet(bills.node_hours("i-busy", range(10)))
    prices = bills.offers(ON_DEMAND, RESERVED)
    (one,) = told(fleet, prices, work_out(fleet, prices)).options
    assert (one.kind, one.count) == ("reserved", 0.0)
    assert one.costs_per_month == cents(8 * 4.30 * MONTH)
    assert one.saves_per_month == cents(8 * 6.88 * MONTH * 10 / 24)  # 16,741.33
    assert one.why == "the first saves $16,741 a month and costs $25,112"


def test_a_dearer_place_is_told_beside_what_the_class_pays() -> None:
    there = bills.price("on_demand", 9.0, region="us-west-2")
    rule = WorkloadClass(name="training", offers=OfferRule(regions=("us-east-1", "us-west-2")))
    fleet = bills.fleet(bills.node_hours("i-1", range(24)))
    prices = bills.offers(ON_DEMAND, there, bills.price("spot", 2.0, region="us-west-2"))
    (one,) = told(fleet, prices, work_out(fleet, prices, classes=(rule,))).options
    assert (one.kind, one.region) == ("on_demand", "us-west-2")
    assert one.costs_per_month == cents(8 * 9.0 * MONTH)
    assert one.saves_per_month == cents(8 * 6.88 * MONTH)
    assert one.why == (
        "it costs $9.0000 a GPU-hour; training pays at most $6.8800 "
        "(on demand, us-east-1 p5.48xlarge)"
    )


def test_what_was_not_chosen_stands_by_dollars_the_nearest_first() -> None:
    # Of 8 GPUs in 10 of 24 hours (16,741.33 a month) at 4.30, 4.80 and 5.00.
    fleet = bills.fleet(bills.node_hours("i-busy", range(10)))
    rule = WorkloadClass(name="training", offers=OfferRule(regions=("us-east-1", "us-west-2")))
    there = {"region": "us-west-2"}
    prices = bills.offers(
        ON_DEMAND,
        bills.price("reserved_1y", 5.0),
        bills.price("on_demand", 8.0, **there),
        bills.price("reserved_1y", 4.8, **there),
    )
    rows = told(fleet, prices, work_out(fleet, prices, classes=(rule,))).options
    # 8 x (8.00 - 6.88) x 730 = 6,540.80; 28,032 - 16,741.33; 29,200 - 16,741.33
    assert [(one.kind, one.region) for one in rows] == [
        ("on_demand", "us-west-2"), ("reserved", "us-west-2"), ("reserved", "us-east-1"),
    ]  # fmt: skip
    assert rows[2].why == "another reservation that the same classes may use costs no more"


# What holds the plan back


def test_more_upfront_budget_is_worth_what_a_thousand_dollars_of_it_save() -> None:
    # All upfront at 4.00: 4 x 8760 = 35,040 for a GPU that saves (6.88 - 4.00) x 730 = 2,102.40.
    fleet = bills.fleet(bills.node_hours("i-busy", range(24)))
    upfront = bills.price("reserved_1y", 4.0, payment_option="all_upfront")
    prices = bills.offers(ON_DEMAND, upfront)
    made = told(fleet, prices, work_out(fleet, prices))
    assert [(one.kind, one.unit, one.saves_per_month) for one in made.limits] == [
        ("upfront_budget", "$1,000", Decimal("60.00"))
    ]
    assert [one.why for one in made.options] == ["the upfront budget does not allow it"]


def test_a_quota_is_told_by_the_machine_and_binds_what_is_bought_there() -> None:
    prices = bills.offers(ON_DEMAND, RESERVED)
    made = work_out(BUSY_18, prices)
    why = made.plan.result.why
    assert why is not None
    held = replace(why, limits=(Limit("quota", "aws us-east-1", 5.0),))
    plan = replace(made.plan, result=replace(made.plan.result, why=held))
    made.stages[Stage.BUY] = plan
    found = told(BUSY_18, prices, made)
    assert [(one.unit, one.region, one.saves_per_month) for one in found.limits] == [
        ("p5.48xlarge", "us-east-1", Decimal(40))  # 8 GPUs at 5.00 a month
    ]
    assert found.options[0].binding == "quota"


def test_the_rule_of_commitments_is_told_in_its_own_words() -> None:
    prices = bills.offers(ON_DEMAND, RESERVED)
    made = work_out(BUSY_18, prices)
    offer = made.plan.problem.offers[0].id
    asked = replace(
        made.plan.problem, commitment_limits=(CommitmentLimit("aws H100", (offer,), 0),)
    )
    result = solve(asked, method="decomposition", with_dispatch=True, with_why=True)
    made.stages[Stage.BUY] = replace(made.plan, problem=asked, result=result)
    found = told(BUSY_18, prices, made)
    # 8 GPUs are needed in 18 of 24 hours: 8 x (6.88 x 18 / 24 - 4.30) = 6.88 an hour.
    limit = found.limits[0]
    assert (limit.kind, limit.cloud, limit.unit) == ("commitment_limit", "aws", "p5.48xlarge")
    assert limit.saves_per_month == cents(6.88 * MONTH)
    (one,) = [one for one in found.options if one.kind == "reserved"]
    assert one.why == 'the rule of "Commit now, or wait" allows no more of aws H100 now'


def test_a_quota_of_vcpus_on_one_use_is_told_by_the_machine_too() -> None:
    prices = bills.offers(ON_DEMAND, RESERVED)
    made = work_out(BUSY_18, prices)
    why = made.plan.result.why
    assert why is not None
    held = replace(why, limits=(Limit("quota", "aws us-east-1 spot vCPUs", 0.25),))
    sold = tuple(replace(one, vcpus=192) for one in made.plan.problem.offers)
    made.stages[Stage.BUY] = replace(
        made.plan,
        problem=replace(made.plan.problem, offers=sold),
        result=replace(made.plan.result, why=held),
    )
    (one,) = told(BUSY_18, prices, made).limits
    assert (one.unit, one.saves_per_month) == ("p5.48xlarge as spot", Decimal(48))  # 192 / 4


def test_a_shortage_names_its_days_hours_and_what_stands_in_the_way() -> None:
    # A reserved node that ends after 73 days, of a type that nobody sells by the hour.
    held = bills.node_hours(
        "i-held", range(24), rate="4.00", purchase_option="reserved", commitment_id="ri-1"
    )
    fleet, prices = bills.fleet(held), bills.offers(bills.price("spot", 2.5))
    made = work_out(fleet, prices, bills.commitments(committed(73)))
    (short,) = told(fleet, prices, made).shortages
    assert (short.workload_class, short.gpu_family, short.most_gpus) == ("training", "H100", 8.0)
    assert short.hours == pytest.approx(0.8 * 8760)
    assert short.gpu_hours == pytest.approx(8 * 0.8 * 8760)
    # The planned year begins on 2026-09-02.
    assert (short.first, short.last) == ("2026-11-14", "2027-09-01")
    assert short.limit == "owned capacity on p5.48xlarge in us-east-1 ends"


# What each class's move rests on


def test_spot_is_told_with_the_share_at_which_it_pays_and_what_holds_it_back() -> None:
    fleet = bills.fleet(bills.node_hours("i-1", range(24)))
    prices = bills.offers(ON_DEMAND, bills.price("spot", 2.58))
    supply = Supply(offers_from(prices, bills.shapes(), bills.as_numbers(fleet), ["1y"]), ())
    where = ("training|H100", "aws/us-east-1/p5.48xlarge")
    for share, cap, binding in (
        (0.5, None, "min_firm_share"), (0.0, None, "demand"), (0.0, 0.25, "spot_cap"),
    ):  # fmt: skip
        rule = WorkloadClass(
            name="training", interruptible=True, min_firm_share=share,
            spot_max_share_per_offer=cap, checkpoint_minutes=20,
        )  # fmt: skip
        made = work_out(fleet, prices, classes=(rule,))
        row = class_shares("move_to_spot", where, made, supply)
        # 20 / 2 + 10 minutes lost at 0.1 interruptions an hour: 1 - 0.1 / 3, to four places.
        assert row["expected_share"] == 0.9667
        assert row["break_even_share"] == pytest.approx(2.58 / 6.88)
        assert row["binding_constraint"] == binding
    # With the cap: a quarter of 8 GPUs is useful spot, the rest on demand.
    paid = 8 * MONTH * (0.25 * 2.58 / 0.9667 + 0.75 * 6.88)
    assert made.steps.plan == pytest.approx(paid)


def test_owned_parts_are_those_of_the_table_and_of_the_bill_that_have_not_ended() -> None:
    held = bills.node_hours(
        "i-held", range(24), rate="4.00", purchase_option="reserved", commitment_id="ri-bill"
    )
    bill = bills.as_numbers(bills.fleet(held))
    offers = offers_from(bills.offers(ON_DEMAND), bills.shapes(), bill, ["1y"])
    seen = Owned("ri-bill", "aws/us-east-1/p5.48xlarge", 8.0, 8760, 23360.0, 23360.0)
    plan = {
        "id": "sp-1", "kind": "savings_plan", "usd_per_hour": Decimal("12.5"),
        "start": committed(73)["start"], "end": committed(73)["end"],
    }  # fmt: skip
    gone = committed(0) | {"id": "ri-gone"}
    table = bills.commitments(plan, gone)
    parts = owned_parts(table, bill, Supply(offers, (seen,)), bills.window().end)
    assert [(one.id, one.instances, one.usd_per_hour) for one in parts] == [
        ("ri-bill", 1.0, 0.0), ("sp-1", 0.0, 12.5),
    ]  # fmt: skip
