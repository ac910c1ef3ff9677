"""From today's bill to the plan's, each dollar counted once: the stages, solved one by one.

    today - release - rightsize + repriced - use_idle - spot + expiring - buy - move = plan

Every term is USD a month (730 hours). `repriced` is the difference between what the needed hours
did cost and what the model says they cost, so that a change of price is never called a saving;
`expiring` is what the end of owned commitments changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from data.errors import SolveError
from data.frames import records
from data.money import HOURS_PER_MONTH
from planner.assemble import Stage, problem_at
from planner.solve import solve
from planner.supply import offer_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.assemble import Need, PlanRules
    from planner.horizon import Horizon
    from planner.outcome import Result
    from planner.problem import Problem
    from planner.supply import Supply

MONTHS = 12.0
COMMITTED = ("reserved", "savings_plan", "capacity_block")


@dataclass(frozen=True, slots=True)
class Solved:
    """One stage: its problem, its result, and sunk plus chosen cost in USD a month.

    Of the dispatch, which is large, only its sums are kept: `used` are GPU-hours a month by
    class, offer and kind (paid or held), `reserved` the GPUs at work on reserved capacity by offer
    and hour.
    """

    stage: Stage
    problem: Problem
    result: Result
    usd_per_month: float
    used: pd.DataFrame
    reserved: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Steps:
    """USD a month of every step of the identity above."""

    today: float
    release: float
    rightsize: float
    repriced: float
    use_idle: float
    spot: float
    expiring: float
    buy: float
    move: float
    plan: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The steps and the solved stages they come from, the last stage being the plan.

    `committed_now` are needed GPU-hours a month that run on commitments today, by class id and
    offer; `movable` the class ids that may run elsewhere than today.
    """

    steps: Steps
    stages: dict[Stage, Solved]
    committed_now: pd.Series
    movable: frozenset[str]

    @property
    def plan(self) -> Solved:
        """The solved plan."""
        return self.stages[Stage.MOVE]


@dataclass(frozen=True, slots=True)
class Basis:
    """What every stage shares."""

    needs: Sequence[Need]
    supply: Supply
    horizon: Horizon
    rules: PlanRules
    solve_stage: Callable[[Problem], Result]


def run(bill: pd.DataFrame, basis: Basis) -> Waterfall:
    """The waterfall of a fleet. `bill` is FLEET_HOURS, planned rows only, money as float."""
    month = HOURS_PER_MONTH / basis.horizon.observed_hours
    stages = _solve_stages(basis, _sunk(bill, basis))
    hourly = with_needed_cost(bill[~bill["purchase_option"].isin(COMMITTED)])
    paid = float(hourly["cost"].sum()) * month
    needed = float(hourly["needed_cost"].sum()) * month
    stoppable = float(hourly.loc[hourly["stoppable"], "cost"].sum()) * month
    today = float(bill["cost"].sum()) * month
    sunk = today - paid
    cost = {stage: solved.usd_per_month for stage, solved in stages.items()}
    use_idle = max(0.0, sunk + _at_book(hourly, basis.supply) * month - cost[Stage.AS_IS])
    steps = Steps(
        today=today,
        release=stoppable,
        rightsize=paid - stoppable - needed,
        repriced=cost[Stage.AS_IS] + use_idle - sunk - needed,
        use_idle=use_idle,
        spot=cost[Stage.AS_IS] - cost[Stage.SPOT],
        expiring=cost[Stage.EXPIRY] - cost[Stage.SPOT],
        buy=cost[Stage.EXPIRY] - cost[Stage.BUY],
        move=cost[Stage.BUY] - cost[Stage.MOVE],
        plan=cost[Stage.MOVE],
    )
    movable = frozenset(need.id for need in basis.needs if need.anywhere != need.same_place)
    return Waterfall(steps, stages, _committed_now(bill) * month, movable)


def _committed_now(bill: pd.DataFrame) -> pd.Series:
    rows = bill[bill["purchase_option"].isin(COMMITTED) & (bill["needed_gpu_hours"] > 0)]
    rows = rows.dropna(subset=["cloud", "region", "instance_type", "gpu_family"])
    names = pd.DataFrame(
        {
            "class": rows["workload_class"].astype(str) + "|" + rows["gpu_family"].astype(str),
            "offer": rows["cloud"].astype(str)
            + "/"
            + rows["region"].astype(str)
            + "/"
            + rows["instance_type"].astype(str),
            "gpu_hours": rows["needed_gpu_hours"],
        }
    )
    return names.groupby(["class", "offer"], sort=True)["gpu_hours"].sum()


def with_needed_cost(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `needed_cost`: the part of their cost that needed GPU-hours bear."""
    hours = rows["gpu_hours"].where(rows["gpu_hours"] > 0)
    share = (rows["needed_gpu_hours"] / hours).fillna(1.0)
    return rows.assign(needed_cost=rows["cost"] * share)


def solver(gap: float, time_limit: float, name: str) -> Callable[[Problem], Result]:
    """How every stage is solved."""

    def solve_stage(problem: Problem) -> Result:
        return solve(problem, gap=gap, time_limit=time_limit, solver=name, with_dispatch=True)

    return solve_stage


def _solve_stages(basis: Basis, sunk: dict[Stage, float]) -> dict[Stage, Solved]:
    stages: dict[Stage, Solved] = {}
    former: Solved | None = None
    for stage in Stage:
        if former is not None and _same_problem(stage, basis):
            stages[stage] = replace(former, stage=stage)
        else:
            problem = problem_at(stage, basis.needs, basis.supply, basis.horizon, basis.rules)
            result = basis.solve_stage(problem)
            if result.objective is None:
                raise SolveError(f"no plan: stage {stage.name} of the plan is {result.status}")
            cost = sunk[stage] + result.objective / MONTHS
            stages[stage] = _kept(stage, problem, result, cost)
        if former is not None and stage >= Stage.BUY:
            stages[stage] = _not_dearer(stages[stage], former)
        former = stages[stage]
    return stages


def _not_dearer(solved: Solved, former: Solved) -> Solved:
    # BUY and MOVE only add choices, so the former plan is still allowed: within the solver's gap
    # the newer one can come out a little dearer, and then the former one is kept.
    if solved.usd_per_month <= former.usd_per_month:
        return solved
    return replace(former, stage=solved.stage)


def _kept(stage: Stage, problem: Problem, result: Result, cost: float) -> Solved:
    dispatch = result.dispatch
    used = dispatch.groupby(["class", "offer", "kind"], sort=True)["gpus"].sum().reset_index()
    used["gpu_hours"] = used.pop("gpus") * problem.hour_weight / MONTHS
    held = dispatch[dispatch["kind"] == "reserved"]
    reserved = held.groupby(["offer", "hour"], sort=True)["gpus"].sum().reset_index()
    slim = replace(result, dispatch=dispatch.head(0).copy())
    return Solved(stage, problem, slim, cost, used, reserved)


def _same_problem(stage: Stage, basis: Basis) -> bool:
    if stage is Stage.EXPIRY:
        return all(one.until_hour >= basis.horizon.hours for one in basis.supply.owned)
    if stage is Stage.BUY:
        return not basis.rules.allow_commitments
    if stage is Stage.MOVE:
        return all(need.anywhere == need.same_place for need in basis.needs)
    return False


def _sunk(bill: pd.DataFrame, basis: Basis) -> dict[Stage, float]:
    """USD a month paid for commitments whatever runs, before and after some of them end."""
    month = HOURS_PER_MONTH / basis.horizon.observed_hours
    committed = bill[bill["purchase_option"].isin(COMMITTED)]
    all_year = float(committed["cost"].sum()) * month
    hours = basis.horizon.hours
    ended = sum(one.usd_per_month * (1 - one.until_hour / hours) for one in basis.supply.owned)
    return {stage: all_year - (ended if stage >= Stage.EXPIRY else 0.0) for stage in Stage}


def _at_book(hourly: pd.DataFrame, supply: Supply) -> float:
    """USD in the window that the needed hours cost at the prices the plan uses."""
    by = ["cloud", "region", "instance_type", "purchase_option"]
    sums = hourly.groupby(by, dropna=False)[["needed_gpu_hours", "needed_cost"]].sum()
    total = 0.0
    for row in records(sums.reset_index()):
        name = offer_id(str(row["cloud"]), str(row["region"]), str(row["instance_type"]))
        offer = supply.offers.get(name)
        spot = row["purchase_option"] == "spot"
        price = None if offer is None else (offer.spot if spot else offer.on_demand)
        if price is None:
            total += float(row["needed_cost"])
        else:
            total += float(row["needed_gpu_hours"]) * price
    return total
