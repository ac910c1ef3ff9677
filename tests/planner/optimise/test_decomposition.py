"""The decomposition against known optima, the direct model, and identities that need no solver."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import SolveError, UsageError
from planner import solve as solving
from planner.model.reductions import reduce
from planner.optimise import chain, closed_form, engine
from planner.optimise.audit import audit
from planner.optimise.dispatch_oracle import DispatchOracle
from planner.optimise.first_stage import first_stage
from planner.outcome import Plan, ReservedCount
from planner.problem import Cvar, Quota, Reservation, Scenario
from planner.problem_file import read
from tests.problems import checked, close, firm, offer, problem, two_hours
from tests.weeks import week

PROBLEMS = Path(__file__).parents[3].parent / "shared" / "problems"
NAMES = [f"R{n}" for n in range(1, 7)] + [f"W{n}" for n in range(1, 5)]
few = settings(max_examples=10, deadline=None, derandomize=True)


def solve(asked, **how):
    return solving.solve(asked, **({"method": "decomposition"} | how))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("method", ["decomposition", "direct"])
def test_every_shared_instance_solves_to_its_known_optimum(name, solver, method):
    path = PROBLEMS / f"{name}.json"
    if not path.exists():
        pytest.skip("the shared problems are not beside this checkout")
    asked = read(path)
    result = solve(asked, gap=1e-7, solver=solver, method=method)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(asked.optimal_objective, rel=1e-6)
    assert solver in result.solver or method == "decomposition"


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_both_methods_and_both_solvers_agree(seed, full):
    asked = week(seed, full=full)
    direct = solve(asked, gap=1e-7, method="direct")
    for solver in ("highs", "cbc"):
        result = solve(asked, gap=1e-6, solver=solver)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(direct.objective, rel=2e-6)
        assert result.bound <= direct.objective * (1 + 1e-6)


@pytest.mark.parametrize("full", [False, True])
def test_the_audit_prices_the_plan_as_the_answer_does_and_finds_no_fault(full):
    asked = week(7, full=full)
    result = solve(asked, gap=1e-6)
    found = audit(asked, result.plan, result.dispatch)
    assert found.faults == ()
    assert found.usd == pytest.approx(result.objective, rel=1e-7)


def test_the_audit_names_what_a_wrong_dispatch_breaks():
    asked = problem([firm("w", ["a"])], [offer("a", 4.0)], {"w": [5, 5]})
    result = solve(asked)
    wrong = result.dispatch.assign(gpus=result.dispatch["gpus"] * 0.8)
    assert (
        "class w: demand not met by 1 in scenario 0, hour 0 (2 hours in all)"
        in audit(asked, result.plan, wrong).faults
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_costs_what_the_dispatch_programs_cost(seed):
    reduced = reduce(week(seed, full=False))
    assert closed_form.holds(reduced)
    first = first_stage(reduced)
    formula = closed_form.ClosedForm(reduced, first)
    programs = DispatchOracle(reduced, first)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        u = rng.uniform(0, 40, len(first.sources))
        one, other = formula.evaluate(u, np.inf), programs.evaluate(u, np.inf)
        assert one.cost == pytest.approx(other.cost, rel=1e-9)
        # Both slopes are of the same convex function: each cut lies below the cost elsewhere.
        there = rng.uniform(0, 40, len(first.sources))
        cut = one.value + one.slope @ (there - u)
        assert (cut <= formula.evaluate(there, np.inf).value + 1e-6).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_of_blocks_bounds_what_one_block_costs(seed, monkeypatch):
    asked = week(seed, full=True, hours=200, scenarios=1)
    whole = solve(asked, gap=1e-6)
    monkeypatch.setattr(chain, "LONGEST", 50)
    monkeypatch.setattr(chain, "INNER", 40)
    result = solve(asked, gap=1e-4)
    assert result.bound <= whole.objective * (1 + 1e-7)
    assert result.objective >= whole.bound * (1 - 1e-7)
    assert result.gap < 1e-3
    assert audit(asked, result.plan, result.dispatch).faults == ()


def test_a_plan_near_enough_to_last_nights_keeps_it():
    # 9 GPUs for 12 hours and 10 for 12: the tenth pays at 2.0 of 4.0, busy half of the time.
    series = {"w": [9] * 12 + [10] * 12}
    asked = problem([firm("w", ["a"])], [offer("a", 4.0, 1.999)], series)
    best = solve(asked, gap=1e-7)
    assert best.reservations == (ReservedCount("a", "1y", 10),)
    night = Plan((ReservedCount("a", "1y", 9),))
    assert solve(asked, previous=night, tolerance=0.001).plan == night
    assert solve(asked, previous=night, tolerance=0.0).plan == best.plan


def test_last_nights_offer_is_kept_though_a_twin_is_a_little_cheaper():
    twins = [offer("a", None, 2.001, region="r1"), offer("b", None, 2.0, region="r2")]
    asked = problem([firm("w", ["a", "b"])], twins, {"w": [10] * 24})
    night = Plan((ReservedCount("a", "1y", 10),))
    assert solve(asked).reservations == (ReservedCount("b", "1y", 10),)
    assert solve(asked, previous=night, tolerance=0.001).plan == night


def test_the_direct_method_refuses_a_model_too_large_for_it(monkeypatch):
    monkeypatch.setattr(solving, "MOST_COLUMNS", 3)
    with pytest.raises(UsageError, match="use --method decomposition"):
        solve(two_hours(), method="direct")


def test_an_unknown_method_is_named():
    with pytest.raises(UsageError, match="unknown method 'magic'"):
        solve(two_hours(), method="magic")


def test_a_run_out_of_time_answers_with_a_plan_and_its_gap():
    asked = week(3, full=True, classes=12, offers=8, hours=168, scenarios=6)
    result = solve(asked, gap=1e-9, time_limit=0.05)
    assert result.status == "feasible"
    assert 0 < result.gap <= 1
    assert result.dispatch.empty
    assert result.objective >= solve(asked, gap=1e-3).bound


def test_a_dispatch_wanted_after_the_time_is_over_costs_what_the_answer_says():
    asked = week(3, full=True, classes=6, hours=168, scenarios=3)
    result = solve(asked, gap=1e-9, time_limit=0.001, with_dispatch=True)
    assert result.status == "feasible"
    found = audit(asked, result.plan, result.dispatch)
    assert found.faults == ()
    assert found.usd == pytest.approx(result.objective, rel=1e-7)


def test_an_answer_that_fails_its_audit_is_no_answer(monkeypatch):
    asked = problem([firm("w", ["a"])], [offer("a", 4.0)], {"w": [5, 5]})
    real = engine.dispatch
    monkeypatch.setattr(engine, "dispatch", lambda found: real(found).assign(gpus=4.0))
    with pytest.raises(SolveError, match=r"its cost is 32\.000000, not 40\.000000"):
        solve(asked)


def whole_instances():
    sold = [offer("a", 4.0, 2.0, gpus=8)]
    return problem([firm("w", ["a"])], sold, {"w": [5, 5]}, on_demand_integer=True)


@pytest.mark.parametrize("how", [{"previous": Plan()}, {"with_why": True}])
def test_whole_instance_billing_refuses_what_only_the_decomposition_has(how):
    with pytest.raises(UsageError, match="on_demand_integer"):
        solve(whole_instances(), **how)
    with pytest.raises(UsageError, match="only --method decomposition has this"):
        solve(two_hours(), method="direct", **how)


def test_whole_instance_billing_is_solved_by_the_direct_method_all_the_same():
    # Reserved, one instance of 8 costs 2 hours * 8 * 2 = 32; on demand it would be 64.
    assert solve(whole_instances()).objective == close(32.0)


def test_equal_input_gives_equal_bytes():
    one, other = (solve(week(5, full=True), with_why=True).as_json() for _ in range(2))
    assert one | {"seconds": 0} == other | {"seconds": 0}


def test_why_tells_break_even_and_the_reason_of_each_rejection():
    # Busy share: 6 GPUs all 24 hours. Break-even 2.4 / 4 = 0.6; "dear" at 3.9 saves less.
    asked = problem(
        [firm("w", ["a", "dear"])],
        [offer("a", 4.0, 2.4), offer("dear", 4.0, 3.9, region="eu")],
        {"w": [6] * 24},
    )
    why = solve(asked, with_why=True).why
    (line,) = why.lines
    assert (line.offer, line.count, line.break_even_share) == ("a", 6.0, close(0.6))
    assert line.expected_share == close(1.0)
    # One fewer: 730 hours at 4.00 instead of 2.40.
    assert line.one_fewer_usd_per_month == close(730 * 1.6)
    assert [(r.offer, r.reason) for r in why.rejected] == [
        ("dear", "another reservation that the same classes may use costs no more")
    ]
    # "dear" shares the pool of "a": all six GPUs are held, a seventh has no use.
    assert (why.rejected[0].saves_usd_per_month, why.rejected[0].costs_usd_per_month) == (
        close(0.0), close(730 * 3.9),
    )  # fmt: skip


def test_why_weighs_the_whole_of_an_instance_that_was_not_bought():
    # An instance of 8 costs 8 * 3.00 = 24 an hour, and would replace 5 GPUs at 4.00 = 20.
    asked = problem([firm("w", ["a"])], [offer("a", 4.0, 3.0, gpus=8)], {"w": [5] * 4})
    (one,) = solve(asked, with_why=True).why.rejected
    assert one.saves_usd_per_month == close(730 * 20)
    assert one.costs_usd_per_month == close(730 * 24)
    assert one.reason == "the first saves $14,600 a month and costs $17,520"


def test_why_tells_what_more_upfront_budget_saves_a_month():
    # One GPU at 100 upfront saves 4 - 2 = 2 an hour:
    # 730 * 2 / 100 = 14.60 a month for each dollar more.
    sold = offer("a", 4.0)
    way = Reservation("all", 2.0, upfront=100.0)
    asked = problem([firm("w", ["a"])], [dataclasses.replace(sold, reservations=(way,))],
                    {"w": [5] * 4}, upfront_budget=200.0, hour_weight=8760 / 4)  # fmt: skip
    why = solve(asked, with_why=True).why
    assert [(one.kind, one.usd_per_month, one.rate_usd_per_month) for one in why.limits] == [
        ("upfront_budget", None, close(14.6))
    ]


def test_why_names_class_hours_and_limit_of_a_shortage():
    asked = problem(
        [firm("w", ["a"])],
        [offer("a", 4.0)],
        {"w": [5, 12, 12]},
        quotas=(Quota("aws", "us", 10.0),),
    )
    why = solve(asked, with_why=True).why
    (short,) = why.shortages
    assert (short.workload_class, short.hours, short.first_hour, short.gpus) == ("w", 2, 1, 2.0)
    assert (short.last_hour, short.gpu_hours) == (2, 4.0)
    assert short.limit == "quotas used up: aws us (10 GPUs)"
    # One more GPU in 2 of 3 hours saves 100 - 4: 96 * 2 / 3 * 730 a month.
    assert why.limits[0].usd_per_month == close(96 * 2 / 3 * 730)


seeds = st.integers(0, 10_000)


@few
@given(seeds, st.booleans(), st.sampled_from([0.5, 3.0]))
def test_scaling_every_price_scales_the_cost(seed, full, factor):
    asked = week(seed, full=full, hours=12, classes=3, offers=3)
    scaled = dataclasses.replace(
        asked,
        classes=tuple(
            dataclasses.replace(c, shortage_penalty=c.shortage_penalty * factor)
            for c in asked.classes
        ),
        offers=tuple(
            dataclasses.replace(
                o,
                on_demand=o.on_demand * factor,
                spot=o.spot * factor,
                sp_rate=None if o.sp_rate is None else o.sp_rate * factor,
                reservations=tuple(Reservation(w.id, w.rate * factor) for w in o.reservations),
            )
            for o in asked.offers
        ),
        blocks=tuple(dataclasses.replace(b, price=b.price * factor) for b in asked.blocks),
    )
    whole, part = solve(scaled, gap=1e-7).objective, solve(asked, gap=1e-7).objective
    assert whole == pytest.approx(factor * part, rel=1e-6)


@few
@given(seeds, st.booleans())
def test_the_order_of_classes_and_offers_does_not_matter(seed, full):
    asked = week(seed, full=full, hours=12, classes=3, offers=3)
    turned = dataclasses.replace(asked, classes=asked.classes[::-1], offers=asked.offers[::-1])
    assert solve(turned, gap=1e-7).objective == pytest.approx(
        solve(asked, gap=1e-7).objective, rel=1e-6
    )


@settings(max_examples=5, deadline=None, derandomize=True)
@given(seeds)
def test_more_of_any_limit_never_costs_more(seed):
    asked = week(seed, full=True, hours=12, classes=3, offers=3)
    cost = solve(asked, gap=1e-7).objective
    for more in (
        {"quotas": tuple(dataclasses.replace(q, gpus=q.gpus + 5) for q in asked.quotas)},
        {"quotas": ()},
        {"upfront_budget": None},
        {"blocks": tuple(dataclasses.replace(b, max=b.max + 1) for b in asked.blocks)},
        {"classes": tuple(_longer(c) for c in asked.classes)},
    ):
        eased = solve(dataclasses.replace(asked, **more), gap=1e-7)
        assert eased.objective <= cost * (1 + 1e-6)


def _longer(one):
    return dataclasses.replace(one, window=one.window + 2) if one.window else one


@few
@given(seeds, st.booleans())
def test_no_plan_costs_more_than_buying_nothing_ahead(seed, full):
    asked = week(seed, full=full, hours=12, classes=3, offers=3)
    bare = dataclasses.replace(
        asked,
        offers=tuple(dataclasses.replace(o, reservations=()) for o in asked.offers),
        savings_plans=(),
        blocks=(),
    )
    assert solve(asked, gap=1e-7).objective <= solve(bare, gap=1e-7).objective * (1 + 1e-6)


@few
@given(seeds)
def test_splitting_a_class_in_two_of_equal_rules_changes_nothing(seed):
    asked = week(seed, full=True, hours=12, classes=3, offers=3)
    one, *others = asked.classes
    twins = (dataclasses.replace(one, id="twin_a"), dataclasses.replace(one, id="twin_b"))
    scenarios = []
    for scenario in asked.scenarios:
        demand = {k: v for k, v in scenario.demand.items() if k != one.id}
        whole = scenario.demand[one.id]
        demand |= {"twin_a": whole * 0.25, "twin_b": whole * 0.75}
        scenarios.append(Scenario(scenario.p, demand))
    split = dataclasses.replace(asked, classes=(*twins, *others), scenarios=tuple(scenarios))
    assert solve(split, gap=1e-7).objective == pytest.approx(
        solve(asked, gap=1e-7).objective, rel=1e-6
    )


def test_no_demand_costs_nothing_beyond_what_is_sunk():
    asked = week(1, full=True)
    silent = [Scenario(s.p, {k: v * 0 for k, v in s.demand.items()}) for s in asked.scenarios]
    result = solve(dataclasses.replace(asked, scenarios=tuple(silent)))
    assert (result.objective, result.plan) == (0.0, Plan())


@pytest.mark.parametrize("seed", range(3))
def test_every_rule_holds_row_by_row(seed):
    checked(week(seed, full=True, hours=24), gap=1e-6, method="decomposition")


@pytest.mark.parametrize("method", ["decomposition", "direct"])
def test_a_risk_term_of_all_cost_weighs_commitments_as_what_they_replace(method):
    """One GPU at work in 6 of 10 hours: reserving it for 2.6 an hour replaces 0.6 x 4 = 2.4.

    A risk term of the recourse alone weighs that by 1.2: 2.88, more than 2.6. One of all cost
    weighs both, and the plan stays on demand: 24 USD, and 0.2 x 24 of risk.
    """
    series = {"w": [1] * 6 + [0] * 4}
    bought = {}
    for of_all in (False, True):
        asked = problem(
            [firm("w", ["a"])], [offer("a", 4.0, 2.6)], series, cvar=Cvar(0.2, 0.5, of_all)
        )
        bought[of_all] = solve(asked, gap=1e-7, method=method)
    assert [one.count for one in bought[False].reservations] == [1]
    assert bought[False].objective == close(26.0)
    assert bought[True].reservations == ()
    assert bought[True].objective == close(28.8)


@pytest.mark.parametrize("method", ["decomposition", "direct"])
def test_what_is_bought_stands_in_the_risk_of_all_cost(method):
    """Reserved for 2.0 an hour and 10 hours: 20 USD, and 0.2 x 20 of risk; nothing else."""
    asked = problem(
        [firm("w", ["a"])],
        [offer("a", 4.0, 2.0)],
        {"w": [1] * 10},
        cvar=Cvar(0.2, 0.5, of_all=True),
    )
    result = solve(asked, gap=1e-7, method=method, with_dispatch=True)
    assert (result.costs["reserved"], result.costs["cvar"]) == (close(20.0), close(4.0))
    assert audit(asked, result.plan, result.dispatch).usd == close(24.0)
