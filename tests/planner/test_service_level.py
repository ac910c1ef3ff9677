"""A stated service level: what is bought for it, what it costs, and how far it is reached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from data.errors import ConfigError
from data.risks import LevelMissed
from planner.config import parse_config
from planner.outcome import Plan, ReservedCount
from planner.problem import CommitmentLimit, Quota, Reservation, SavingsPlan
from planner.service_level import at_level, limits_at, raised, reached, repaid
from planner.service_reasons import why_below
from planner.solve import solve
from tests import bills
from tests.planner.test_ladder import need, supply
from tests.planner.test_ladder import offer as ladder_offer
from tests.planner.test_plan_ahead import HOURS, bought, left_over, night_of, node
from tests.planner.test_waterfall_ahead import reserved, work_out
from tests.problems import close, firm, offer, problem

if TYPE_CHECKING:
    from planner.future import Future
    from planner.outcome import Result
    from planner.problem import Problem
    from planner.waterfall import Solved


def steps(**more):
    """Ten hours of 1 to 10 GPUs, one GPU an instance, on demand 4 and reserved 2 USD."""
    return problem([firm("t|H100", ["a"])], [offer("a", 4.0, 2.0)],
                   {"t|H100": range(1, 11)}, **more)  # fmt: skip


@pytest.mark.parametrize(("level", "gpus", "share"), [(0.0, 5, 0.5), (0.75, 8, 0.8)])
def test_as_many_are_reserved_as_serve_the_stated_share_of_hours(level, gpus, share):
    """The k-th GPU works in 11 - k of 10 hours. At 4 USD it pays where that is over 2 / 4, and at
    2 / (1 - 0.75) = 8 USD where it is over a quarter: up to the eighth, at work in 3 hours.
    """
    case = steps()
    asked, more = raised(case, level)
    assert more == {"a": max(0.0, 2 / (1 - level) - 4)}
    found = solve(asked, gap=1e-9)
    if level:
        assert found.plan == Plan((ReservedCount("a", "1y", gpus),))
    result = repaid(case, found, more)
    # On demand: 1 and 2 GPUs beyond the eight, at 4 USD; 4 more on each are caution.
    beyond = sum(max(k - result.plan.reservations[0].count, 0) for k in range(1, 11))
    assert result.costs["on_demand"] == close(4 * beyond * case.hour_weight)
    assert result.costs["cvar"] == close(more["a"] * beyond * case.hour_weight)
    assert sum(result.costs.values()) == close(found.objective)
    if level:
        assert reached(case, result.dispatch) == (("t|H100", close(share)),)


def test_offers_that_share_work_are_raised_alike_and_others_not():
    """At 0.8 the cheaper commitment of a and b asks for 2 / 0.2 = 10 USD, 6 more than 4."""
    case = problem(
        [firm("t|H100", ["a", "b"]), firm("u|A100", ["c"]), firm("v|L4", ["d"])],
        [offer("a", 4.0, 2.0), offer("b", 5.0), offer("c", 1.0, 0.1), offer("d", 3.0)],
        {"t|H100": [1], "u|A100": [1], "v|L4": [1]},
    )
    asked, more = raised(case, 0.8)
    assert more == {"a": close(6.0), "b": close(6.0), "c": 0.0, "d": 0.0}
    assert [one.on_demand for one in asked.offers] == close([10.0, 11.0, 1.0, 3.0])


def test_the_level_is_reached_on_the_mean_of_the_ways_and_nobody_pays_for_caution():
    """8, 16 or 24 GPUs alike: at 5.00 against 4.30 the second node pays in no more than 2 of 3
    ways. Nine of ten ask for 4.30 / 0.1 = 43, at which the third pays in one way of three.
    """
    plain, sure = work_out((8.0, 16.0, 24.0), 5.0), work_out((8.0, 16.0, 24.0), 5.0, level=0.9)
    assert (reserved(plain), reserved(sure)) == (1, 3)
    assert sure.plan.served == (("training|H100", 1.0),)
    # 24 reserved GPUs all year: nothing is left to buy on demand, so caution costs nothing.
    assert sure.steps.plan == pytest.approx(24 * 4.30 * 730)
    half = work_out((8.0, 16.0, 24.0), 5.0, level=0.6)
    assert reserved(half) == 2
    assert half.plan.served == (("training|H100", pytest.approx(2 / 3)),)
    # 16 reserved and 8 on demand in a third of the ways; each of them asks 10.75 - 5 more.
    assert half.steps.plan == pytest.approx((16 * 4.30 + 8 * 5.0 / 3) * 730)
    assert half.plan.result.costs["cvar"] / 12 == pytest.approx(8 * 5.75 / 3 * 730)
    assert half.plan.audited == pytest.approx(half.plan.result.objective)


def test_a_plan_at_a_service_level_commits_beyond_the_rule_and_its_bill_adds_up():
    """A node all day and another by day, which at 4.30 against 6.88 pays above 62 % of hours."""
    fleet = bills.fleet(node("i-0", range(HOURS)),
                        node("i-1", [h for h in range(HOURS) if h % 24 < 12]))  # fmt: skip
    plain = night_of(fleet, 21, (), {}).plan
    made = night_of(fleet, 21, (), {"plan": {"service_level": 0.95}}).plan
    assert bought(plain) == 1
    assert bought(made) >= 2
    assert left_over(made.summary.bill) == 0
    (row,) = made.summary.risks.service
    assert (row.workload_class, row.gpu_family, row.stated) == ("training", "H100", 0.95)
    assert row.reached >= 0.95
    assert plain.summary.risks.service == ()
    (step,) = made.summary.reasons.ladder
    assert step.reason == "The stated service level asks for it; the rule alone allows 8 GPUs."
    assert [one.binding for one in made.summary.reasons.options if one.count] == ["service_level"]
    assert any("the service level of 95% takes the place of cvar" in n for n in made.summary.notes)


def test_a_machine_that_only_its_last_gpus_need_is_bought_for_the_level():
    """12 hours of 8 GPUs and 8 of 9: the second machine is at work for 1 / 8 x 0.4 = 5 % of it.

    At 2 / (1 - 0.9) = 20 USD that is worth 1, less than its rate of 2, though 40 % of the hours
    lack a GPU: at eight times as much, one for each GPU of the machine, it is worth 8.
    """
    case = problem([firm("t|H100", ["a"])], [offer("a", 4.0, 2.0, gpus=8)],
                   {"t|H100": [8] * 12 + [9] * 8})  # fmt: skip
    result, shares = at_level(case, 0.9, lambda one: solve(one, gap=1e-9))
    assert result.plan == Plan((ReservedCount("a", "1y", 2),))
    assert shares == (("t|H100", 1.0),)


def test_where_nothing_can_be_committed_to_the_level_is_not_reached_and_said_so():
    case = problem([firm("t|H100", ["a"])], [offer("a", 4.0)], {"t|H100": [1, 0, 2]})
    result, shares = at_level(case, 0.9, solve)
    assert (result.plan, shares) == (Plan(), (("t|H100", 0.0),))
    assert result.costs["cvar"] == 0.0


def test_the_level_is_about_the_hours_in_which_a_class_needs_anything():
    """1 to 10 GPUs in ten of 100 hours: the k-th works in 11 - k of 100.

    At 2 / (1 - 0.75) = 8 USD even the first is worth no more than 8 x 0.1. At ten times as much,
    all hours over those of need, the eighth is worth 80 x 0.03 = 2.4 and the ninth 1.6: less than
    their rate of 2. With eight, two of the ten hours lack a GPU.
    """
    case = problem([firm("t|H100", ["a"])], [offer("a", 4.0, 2.0)],
                   {"t|H100": [*range(1, 11), *[0] * 90]})  # fmt: skip
    result, shares = at_level(case, 0.75, lambda one: solve(one, gap=1e-9))
    assert result.plan == Plan((ReservedCount("a", "1y", 8),))
    assert shares == (("t|H100", close(0.8)),)


def below(case: Problem) -> dict[str, LevelMissed]:
    """The reasons of a plan at 0.9, as it was solved."""

    def solved(one: Problem) -> Result:
        return solve(one, gap=1e-9)

    result, served = at_level(case, 0.9, solved)
    plan = cast("Solved", SimpleNamespace(problem=case, result=result, served=served))
    return why_below(plan, 0.9, solved)


def test_one_true_reason_is_told_for_each_class_below_the_level():
    """Ten hours of 10 GPUs each, that a reservation or a plan at 2 USD would serve to the last."""
    ten = {"t|H100": [10] * 10}
    dear = (Reservation("1y", 2.0, upfront=9.0),)
    assert below(problem([firm("t|H100", ["a"])], [offer("a", rate=2.0)], ten)) == {}
    sold = problem([firm("t|H100", ["a"])], [offer("a")], ten)
    assert below(sold) == {"t|H100": LevelMissed.NONE_SOLD}
    budget = problem([firm("t|H100", ["a"])], [offer("a", reservations=dear)], ten,
                     upfront_budget=45.0)  # fmt: skip
    assert below(budget) == {"t|H100": LevelMissed.BUDGET}
    limit = problem([firm("t|H100", ["a"])], [offer("a", rate=2.0)], ten,
                    commitment_limits=(CommitmentLimit("aws H100", ("a",), 4.0),))  # fmt: skip
    assert below(limit) == {"t|H100": LevelMissed.LIMIT}
    # What a savings plan pays for must be requested, within the quota.
    quota = problem([firm("t|H100", ["a"])], [offer("a", sp_rate=2.0)], ten,
                    savings_plans=(SavingsPlan("aws"),),
                    quotas=(Quota("aws", "us", 6.0),))  # fmt: skip
    assert below(quota) == {"t|H100": LevelMissed.QUOTA}
    both = replace(budget, commitment_limits=limit.commitment_limits)
    assert below(both) == {"t|H100": LevelMissed.SEVERAL}


def test_limits_follow_what_may_come_to_a_pool_and_not_what_ends_there():
    """8 GPUs at a and 24 at b, of a class that may run on either: 32 may be asked of each pool.

    A second class stays at a. In the ten hours in which it needs any, 90 % of them need up to 12
    GPUs, of which three quarters must be firm: what it needs in all hours is mostly nothing.
    """
    a, b = "aws/us-east-1/p5", "gcp/us-east4/a3"
    offers = supply(ladder_offer(a, 4.3, 6.88, spot=3.0), ladder_offer(b, 7.7, 11.0))
    moves = need("t", {a: 8.0, b: 24.0})
    stays = need("u", {a: 12.0}, interruptible=True, min_firm_share=0.75)
    gpus = {moves.id: np.full((1, 100), 32.0), stays.id: np.zeros((1, 100))}
    gpus[stays.id][0, :10] = [*[12.0] * 9, 40.0]
    future = cast("Future", SimpleNamespace(demand=gpus, probabilities=(1.0,)))
    limits = [CommitmentLimit(name, (name,), 0.0) for name in (a, b)]
    found = limits_at(limits, [moves, stays], offers, future, 0.9)
    # 32 + 0.75 x 12 = 41 GPUs are six machines of 8.
    assert [one.gpus for one in found] == [48.0, 32.0]


def test_a_missed_level_is_a_warning_with_its_reason_and_what_the_level_costs():
    fleet = bills.fleet(node("i-0", range(HOURS)))
    offers = bills.offers(bills.price("on_demand", 6.88))
    made = night_of(fleet, 21, (), {"plan": {"service_level": 0.95}}, offers)
    (row,) = made.plan.summary.risks.service
    assert (row.reached, row.missed) == (0.0, LevelMissed.NONE_SOLD)
    assert (
        "the service level of 95% is missed: training on H100 reaches 0.0%: the report says why"
    ) in made.warnings
    assert made.plan.summary.risks.level_usd_per_month == 0


def test_what_the_level_costs_is_what_the_plan_costs_more_than_without_it():
    fleet = bills.fleet(node("i-0", range(HOURS)),
                        node("i-1", [h for h in range(HOURS) if h % 24 < 12]))  # fmt: skip
    plain = night_of(fleet, 21, (), {}).plan.summary
    made = night_of(fleet, 21, (), {"plan": {"service_level": 0.95}})
    costs = made.plan.summary.risks.level_usd_per_month
    assert costs == made.plan.summary.bill.plan_per_month - plain.bill.plan_per_month
    assert costs > 0
    assert not [text for text in made.warnings if "service level" in text]


@pytest.mark.parametrize("text", ["1.0", "-0.1", '"high"'])
def test_a_level_that_is_no_share_below_one_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        parse_config(f"[plan]\nservice_level = {text}\n", Path("loadfactor.toml"))
    assert [one.where for one in caught.value.problems] == ["plan.service_level"]
