"""The model: one golden LP for each constraint, and the reductions one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pulp
import pytest

from planner.model.build import CONSTRAINTS, build
from planner.model.columns import columns, labels
from planner.model.constraints import meet_demand
from planner.model.objective import minimise_cost
from planner.model.reductions import reduce
from planner.problem import Block, CommitmentLimit, Cvar, Existing, Quota, Reservation, SavingsPlan
from tests.problems import deferrable, firm, offer, problem, two_hours

GOLDEN_CASES = {
    "measure_scenario_cost": {"risk": True},
    "measure_excess": {"risk": True},
}


def case(name):
    if name == "cap_availability":
        made = two_hours()
        a, b = made.offers
        scarce = replace(a, spot_available=(0.5, 0.75), on_demand_available=(1.0, 0.25))
        return replace(made, offers=(scarce, b))
    if name == "cap_commitments":
        limits = (CommitmentLimit("both", ("a", "b"), 16.0), CommitmentLimit("b", ("b",), 0.0))
        return two_hours(commitment_limits=limits)
    if name in GOLDEN_CASES:
        futures = [
            (0.5, {"train": [10, 20], "prep": [6, 0]}),
            (0.5, {"train": [12, 8], "prep": [0, 4]}),
        ]
        return two_hours(demand=futures, cvar=Cvar(0.5, 0.9))
    return two_hours()


def lp_text(made, tmp_path):
    path = tmp_path / "model.lp"
    made.lp.writeLP(str(path))
    return path.read_text()


@pytest.mark.skipif(not pulp.__version__.startswith("3.3"), reason="PuLP 4 writes another layout")
@pytest.mark.parametrize("constrain", CONSTRAINTS, ids=lambda one: one.__name__)
def test_each_constraint_alone_is_as_its_golden_file(constrain, golden, tmp_path):
    made = columns(reduce(case(constrain.__name__), exact=False))
    made.lp.setObjective(pulp.LpAffineExpression())
    constrain(made)
    golden(f"lp/{constrain.__name__}.lp", lp_text(made, tmp_path))


@pytest.mark.skipif(not pulp.__version__.startswith("3.3"), reason="PuLP 4 writes another layout")
def test_the_cap_on_one_spot_pool_is_a_column_bound_as_its_golden_file(golden, tmp_path):
    made = columns(reduce(two_hours(), exact=False))
    minimise_cost(made)
    meet_demand(made)
    golden("lp/cap_spot_share_per_offer.lp", lp_text(made, tmp_path))


@pytest.mark.skipif(not pulp.__version__.startswith("3.3"), reason="PuLP 4 writes another layout")
def test_the_reduced_model_of_the_golden_case_is_as_its_golden_file(golden, tmp_path):
    golden("lp/reduced.lp", lp_text(build(reduce(two_hours())), tmp_path))


def test_labels_stay_different_after_pulp_replaces_signs():
    # PuLP makes a blank, a bracket, a plus and a minus all the same underscore.
    names = ["a b", "a-b", "a+b", "a[b]", "aws/us-east-1/p5|x", "é", "x" * 60, "x" * 61]
    made = labels(names)
    assert len(set(made.values())) == len(names)
    assert all(set("-+[] >/") & set(label) == set() for label in made.values())


def test_equal_hours_become_one_cell_that_stands_for_all_of_them():
    asked = problem([firm("w", ["a"])], [offer("a", rate=2.0)], {"w": [3, 5, 3, 3]})
    cells = reduce(asked).cells
    assert cells.of.tolist() == [[0, 1, 0, 0]]
    assert cells.mean_hours.tolist() == [3.0, 1.0]


def test_hours_before_and_after_an_expiry_stay_apart():
    owned = (Existing(2, 2),)
    asked = problem([firm("w", ["a"])], [offer("a", existing=owned)], {"w": [3, 3, 3, 3]})
    assert reduce(asked).cells.of.tolist() == [[0, 0, 1, 1]]


def test_hours_inside_and_outside_a_block_stay_apart():
    block = Block("k", "a", 8, start=1, length=2, price=2.0, max=1)
    asked = problem([firm("w", ["a"])], [offer("a")], {"w": [3, 3, 3, 3]}, blocks=(block,))
    assert reduce(asked).cells.of.tolist() == [[0, 1, 1, 0]]


def test_scenarios_merge_without_risk_and_stay_apart_with_it():
    futures = [(0.25, {"w": [3, 4]}), (0.75, {"w": [4, 3]})]
    asked = problem([firm("w", ["a"])], [offer("a")], futures)
    # 3 GPUs: 0.25 x 1 h + 0.75 x 1 h = 1 expected hour; 4 GPUs the same.
    assert reduce(asked).cells.mean_hours.tolist() == [1.0, 1.0]
    risky = problem([firm("w", ["a"])], [offer("a")], futures, cvar=Cvar(0.1, 0.5))
    assert len(reduce(risky).cells) == 4


def test_work_that_may_wait_keeps_every_hour():
    asked = problem([deferrable("w", ["a"], 1)], [offer("a")], {"w": [3, 3, 3]})
    assert len(reduce(asked).cells) == 3


def test_classes_with_equal_rules_merge_and_others_do_not():
    classes = [
        firm("a1", ["a"], min_firm_share=0.5),
        firm("a2", ["a"], min_firm_share=0.5),
        firm("a3", ["a"], min_firm_share=0.6),
    ]
    offers = [offer("a", spot=1.0, spot_throughput=0.9)]
    asked = problem(classes, offers, {"a1": [1, 2], "a2": [3, 4], "a3": [5, 6]})
    groups = reduce(asked).groups
    assert [[one.id for one in group.members] for group in groups] == [["a1", "a2"], ["a3"]]
    assert groups[0].demand.tolist() == [[4, 6]]


def test_whole_instances_forbid_merging_classes():
    asked = problem(
        [firm("a1", ["a"]), firm("a2", ["a"])],
        [offer("a", gpus=8)],
        {"a1": [4], "a2": [4]},
        on_demand_integer=True,
    )
    assert len(reduce(asked).groups) == 2


def test_dearer_on_demand_without_a_quota_is_left_out():
    asked = problem(
        [firm("w", ["a", "b", "c"])],
        [offer("a", 4.0), offer("b", 3.0), offer("c", 5.0, region="eu")],
        {"w": [1]},
        quotas=(Quota("aws", "eu", 0.5),),
    )
    (group,) = reduce(asked).groups
    assert [(option.use, option.offer) for option in group.menu.options] == [("on_demand", "b")]


def test_on_demand_of_each_quota_is_kept_while_nothing_outside_is_cheaper():
    asked = problem(
        [firm("w", ["a", "b", "c"])],
        [offer("a", 4.0), offer("b", 3.0, region="eu"), offer("c", 3.5, region="eu")],
        {"w": [9]},
        quotas=(Quota("aws", "eu", 2),),
    )
    (group,) = reduce(asked).groups
    assert [option.offer for option in group.menu.options] == ["b", "a"]


def test_a_quota_above_all_that_could_be_bought_is_left_out():
    classes, offers = [firm("w", ["a"])], [offer("a")]
    at_limit = problem(classes, offers, {"w": [9, 5]}, quotas=(Quota("aws", "us", 9),))
    below = problem(classes, offers, {"w": [9, 5]}, quotas=(Quota("aws", "us", 8),))
    assert (len(reduce(at_limit).quotas), len(reduce(below).quotas)) == (0, 1)


def test_spot_shares_are_filled_in_order_of_useful_price():
    # Useful prices: a 1.8 / 0.9 = 2.0, b 1.2 / 0.8 = 1.5, c 3.0: the share of 0.7 is filled
    # by b up to 0.4, then a up to the 0.3 left; c is never needed.
    offers = [
        offer("a", spot=1.8, spot_throughput=0.9),
        offer("b", spot=1.2, spot_throughput=0.8),
        offer("c", spot=3.0, spot_throughput=1.0),
    ]
    one = firm("w", ["a", "b", "c"], min_firm_share=0.3, spot_max_share_per_offer=0.4)
    (group,) = reduce(problem([one], offers, {"w": [10]})).groups
    spot = {option.offer: option.cap for option in group.menu.options if option.use == "spot"}
    assert list(spot) == ["b", "a"]
    assert spot == pytest.approx({"b": 0.4, "a": 0.3})
    assert group.menu.spot_share is None


def test_dominated_savings_plan_columns_are_left_out():
    offers = [
        offer("a", sp_rate=2.8),
        offer("b", sp_rate=2.9),
        offer("c", sp_rate=3.0, egress={}),
        offer("d", sp_rate=2.5, egress={"w": 0.2}),
    ]
    asked = problem(
        [firm("w", ["a", "b", "c", "d"])], offers, {"w": [1]}, savings_plans=(SavingsPlan("aws"),)
    )
    (group,) = reduce(asked).groups
    covered = [o.offer for o in group.menu.options if o.use == "savings_plan"]
    assert covered == ["d", "a"]  # d values least but costs egress; b and c only value more


def test_offers_that_the_same_classes_may_use_share_one_pool():
    classes = [firm("w", ["a", "b"]), firm("v", ["a", "b", "c"], shortage_penalty=9.0)]
    offers = [
        offer("a", rate=2.0, existing=(Existing(2, 9),)),
        offer("b", rate=2.1),
        offer("c", rate=2.2, on_demand=3.0),
    ]
    reduced = reduce(problem(classes, offers, {"w": [4], "v": [2]}))
    assert [[o.id for o in pool.offers] for pool in reduced.pools] == [["a", "b"], ["c"]]
    # b's reservation is a's at a higher rate, in the same pool: never better.
    assert [(o.id, way.rate) for o, way in reduced.pools[0].reservations] == [("a", 2.0)]
    assert reduced.pools[0].owned.tolist() == [2.0]
    assert (reduced.pools[0].peak, reduced.pools[1].peak) == (6.0, 2.0)


def test_a_cheaper_rate_with_more_upfront_does_not_replace_one_under_a_budget():
    ways = (Reservation("none", 2.5), Reservation("all", 2.3, upfront=9000.0))
    one = offer("a", reservations=ways)
    classes, demand = [firm("w", ["a"])], {"w": [4]}
    free = reduce(problem(classes, [one], demand))
    bound = reduce(problem(classes, [one], demand, upfront_budget=9e4))
    assert [way.id for _, way in free.pools[0].reservations] == ["all"]
    assert {way.id for _, way in bound.pools[0].reservations} == {"none", "all"}


def test_larger_instances_stay_unless_smaller_ones_replace_them():
    offers = [offer("big", rate=2.0, gpus=8), offer("small", rate=2.1, gpus=3)]
    reduced = reduce(problem([firm("w", ["big", "small"])], offers, {"w": [9]}))
    assert {o.id for o, _ in reduced.pools[0].reservations} == {"big", "small"}
    dear = [offer("big", rate=2.2, gpus=8), offer("small", rate=2.1, gpus=4)]
    reduced = reduce(problem([firm("w", ["big", "small"])], dear, {"w": [9]}))
    assert {o.id for o, _ in reduced.pools[0].reservations} == {"small"}


def test_no_column_is_made_where_nothing_is_needed():
    made = build(reduce(problem([firm("w", ["a"])], [offer("a", rate=2.0)], {"w": [0, 3]})))
    assert made.reserved[0, 0][0] is None
    assert made.reserved[0, 0][1] is not None
    assert np.isfinite([v.upBound for v in made.lp.variables() if v.name.startswith("count")]).all()
