"""Status, bound and gap are told truthfully, whatever a solver says of itself."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data.errors import UsageError
from planner import branching, solvers
from planner.problem import Reservation
from planner.solve import relative_gap, solve
from tests.problems import broken_rules, checked, close, firm, offer, problem, two_hours

SOLVERS = ["highs", "cbc"]


def hard_problem(hours=400, seed=3):
    """Many near-tied reservations of odd sizes, with whole instances on demand: slow to prove."""
    rng = np.random.default_rng(seed)
    offers = [
        offer(
            f"o{n}",
            4.0 + n / 100,
            2.4 + n / 1000,
            gpus=int(rng.integers(3, 9)),
            region=f"r{n}",
            spot=2.0,
            spot_throughput=0.7,
        )
        for n in range(8)
    ]
    classes = [
        firm(f"w{n}", [o.id for o in offers if rng.random() < 0.7] or ["o0"], min_firm_share=0.6)
        for n in range(6)
    ]
    demand = {one.id: rng.integers(1, 60, hours) for one in classes}
    return problem(classes, offers, demand, on_demand_integer=True)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("limit", [0.01, 2.0])
def test_a_run_that_stops_at_its_limit_is_never_called_optimal(solver, limit):
    result = solve(hard_problem(), gap=1e-9, time_limit=limit, solver=solver)
    if result.has_plan:
        # A machine fast enough to prove it may say so: then the bound must say it as well.
        assert result.gap == pytest.approx(relative_gap(result.objective, result.bound))
        assert result.status == ("optimal" if result.gap <= 2e-9 else "feasible")
        assert broken_rules(hard_problem(), result) == []
    else:
        assert result.status == "no_solution"
        assert "costs" not in result.as_json()
        assert result.as_json()["objective"] is None


def test_optimal_means_proven_within_the_gap_asked_for():
    asked = two_hours()
    loose, tight = solve(asked, gap=0.5), solve(asked, gap=1e-9)
    assert loose.gap <= 0.5
    assert tight.gap <= 1e-9
    assert loose.bound <= tight.objective * (1 + 1e-9) <= loose.objective * (1 + 2e-9)


def test_a_claim_beyond_the_bound_is_feasible_whatever_the_solver_says(monkeypatch):
    true_run = solvers.run

    def boasts(lp, **how):
        run = true_run(lp, **how)
        return solvers.Run(True, False, run.bound * 0.9, run.solver, run.seconds)

    monkeypatch.setattr(solvers, "run", boasts)
    result = solve(two_hours(), gap=1e-4)
    assert (result.status, result.gap) == ("feasible", close(0.1))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("Result - Problem proven infeasible\n", (False, True, None)),
        ("Result - Stopped on time limit\n\nNo feasible solution found\n", (False, False, None)),
        (
            "Continuous objective value is 90.5 - 0.00 seconds\nResult - Stopped on time limit\n\n"
            "Objective value:                100.00\nLower bound:                    95.123\n",
            (True, False, 95.1225),
        ),
        (
            "Result - Optimal solution found (within gap tolerance)\n\n"
            "Objective value:   1000.0\nLower bound:  999.9\n",
            (True, False, 999.9),  # what the tolerance of 1e-4 proves, and 999.85 does not
        ),
        ("Optimal - objective value 12.5\n", (True, False, 12.5)),
        ("", (False, False, None)),
    ],
)
def test_the_log_of_cbc_is_read_without_flattering(log, expected):
    assert solvers.read_cbc_log(log, 1e-4) == pytest.approx(expected, nan_ok=True)


def test_nothing_is_printed_on_standard_output():
    script = (
        "from tests.problems import two_hours\nfrom planner.solve import solve\n"
        "for name in ('highs', 'cbc'): solve(two_hours(), solver=name)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b""


@pytest.mark.parametrize(
    "how", [{"gap": -1}, {"gap": math.nan}, {"time_limit": 0}, {"solver": "glpk"}]
)
def test_settings_out_of_range_are_usage_errors(how):
    with pytest.raises(UsageError):
        solve(two_hours(), **how)


@pytest.mark.parametrize("budget", [None, 9000.0])
def test_branching_on_commitments_reaches_the_optimum_of_the_general_search(monkeypatch, budget):
    rng = np.random.default_rng(1)
    offers = [
        offer(
            f"o{n}",
            4.0 + n / 10,
            gpus=(8, 5, 3)[n],
            reservations=(Reservation("1y", 2.2 + n / 7, upfront=100.0),),
        )
        for n in range(3)
    ]
    classes = [firm("w", ["o0", "o1"]), firm("v", ["o1", "o2"]), firm("u", ["o0", "o2"])]
    demand = {one.id: rng.integers(0, 40, 48) for one in classes}
    asked = problem(classes, offers, demand, upfront_budget=budget)
    general = checked(asked)
    monkeypatch.setattr(solvers, "_LARGE", 0)
    used = []
    search = branching.Search.run
    monkeypatch.setattr(branching.Search, "run", lambda self: used.append(1) or search(self))
    branched = checked(asked)
    assert used == [1]
    assert branched.objective == close(general.objective)


def test_branching_that_runs_out_of_time_tells_its_bound(monkeypatch):
    monkeypatch.setattr(solvers, "_LARGE", 0)
    asked = hard_problem(hours=60)
    monkeypatch.setattr(solvers, "_MOST_TO_BRANCH_ON", 10**6)
    result = solve(asked, gap=1e-9, time_limit=2.0)
    assert result.status in ("feasible", "no_solution")
    best = solve(asked, gap=1e-2, time_limit=30.0, solver="cbc")
    assert result.bound <= best.objective * (1 + 1e-6)
