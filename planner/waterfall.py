"""From today's bill to the plan's, each dollar counted once: the stages, solved one by one.

    today - release - rightsize + repriced - use_idle - spot - move + expiring - buy = plan

Every term is USD a month (730 hours). `repriced` is the difference between what the needed hours
did cost and what the model says they cost, so that a change of price is never called a saving;
`expiring` is what owned commitments change that end, or that were bought after the window. Hours
that no priced offer can serve are counted as hours, never as dollars.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data.errors import SolveError
from data.frames import records
from data.money import HOURS_PER_MONTH
from data.schema import COMMITTED_OPTIONS
from planner.alternatives import alternatives
from planner.assemble import Stage, problem_at
from planner.optimise.audit import audit
from planner.optimise.shortages import shortages
from planner.outcome import empty_dispatch
from planner.supply import offer_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.alternatives import Alternative, Key
    from planner.assemble import Need, PlanRules
    from planner.horizon import Horizon
    from planner.optimise.shortages import Shortage
    from planner.outcome import Result
    from planner.problem import Problem
    from planner.stage_solver import StageSolver
    from planner.supply import Supply

MONTHS = 12.0
_SMALLEST = 0.005  # USD a month


@dataclass(frozen=True, slots=True)
class Solved:
    """One stage: its problem, its result, and sunk plus chosen cost in USD a month.

    Of the dispatch, which is large, only its sums are kept: `used` are GPU-hours a month by
    class, offer and kind (paid or held), `reserved` the GPUs at work on reserved capacity by offer
    and hour; `short_gpu_hours` a month are served by no priced offer; `whole_machines` is what a
    month would cost more if each hour's GPUs were bought as whole machines; `audited` is the
    result's objective priced again, USD a year; `short` is who is short of what, and why.
    """

    stage: Stage
    problem: Problem
    result: Result
    usd_per_month: float
    used: pd.DataFrame
    reserved: pd.DataFrame
    short_gpu_hours: float
    whole_machines: float
    audited: float
    short: tuple[Shortage, ...] = ()

    @property
    def scarce(self) -> frozenset[str]:
        """Clouds and regions ("aws us-east-1") whose quota costs money, as far as explained."""
        limits = () if self.result.why is None else self.result.why.limits
        return frozenset(
            " ".join(one.name.split(" ")[:2])
            for one in limits
            if one.kind == "quota" and one.usd_per_month > _SMALLEST
        )


@dataclass(frozen=True, slots=True)
class Steps:
    """USD a month of every step of the identity above."""

    today: float
    release: float
    rightsize: float
    repriced: float
    use_idle: float
    spot: float
    move: float
    expiring: float
    buy: float
    plan: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The steps and the solved stages they come from, the last stage being the plan.

    `committed_now` are needed GPU-hours a month that run on commitments today, by class id and
    offer; `at_book` what the needed hours cost at the plan's prices, USD a month by class id;
    `instead` the next best to each purchase of the plan, where it was worked out.
    """

    steps: Steps
    stages: dict[Stage, Solved]
    committed_now: pd.Series
    at_book: dict[str, float]
    instead: dict[Key, Alternative] = field(default_factory=dict)

    @property
    def plan(self) -> Solved:
        """The solved plan."""
        return self.stages[Stage.BUY]

    @property
    def status(self) -> str:
        """Optimal where every stage is; the savings are differences between them."""
        statuses = {solved.result.status for solved in self.stages.values()}
        return "optimal" if statuses == {"optimal"} else "feasible"


@dataclass(frozen=True, slots=True)
class Basis:
    """What every stage shares."""

    needs: Sequence[Need]
    supply: Supply
    horizon: Horizon
    rules: PlanRules
    solve_stage: StageSolver


def run(bill: pd.DataFrame, basis: Basis) -> Waterfall:
    """The waterfall of a fleet. `bill` is FLEET_HOURS, planned rows only, money as float."""
    month = HOURS_PER_MONTH / basis.horizon.observed_hours
    stages = _solve_stages(basis, _sunk(bill, basis))
    hourly = with_needed_cost(bill[~bill["purchase_option"].isin(COMMITTED_OPTIONS)])
    paid = float(hourly["cost"].sum()) * month
    needed = float(hourly["needed_cost"].sum()) * month
    stoppable = float(hourly.loc[hourly["stoppable"], "cost"].sum()) * month
    today = float(bill["cost"].sum()) * month
    sunk = today - paid
    cost = {stage: solved.usd_per_month for stage, solved in stages.items()}
    at_book = {
        name: spent * month for name, spent in sorted(_at_book(hourly, basis.supply).items())
    }
    use_idle = max(0.0, sunk + sum(at_book.values()) - cost[Stage.AS_IS])
    steps = Steps(
        today=today,
        release=stoppable,
        rightsize=paid - stoppable - needed,
        repriced=cost[Stage.AS_IS] + use_idle - sunk - needed,
        use_idle=use_idle,
        spot=cost[Stage.AS_IS] - cost[Stage.SPOT],
        move=cost[Stage.SPOT] - cost[Stage.MOVE],
        expiring=cost[Stage.EXPIRY] - cost[Stage.MOVE],
        buy=cost[Stage.EXPIRY] - cost[Stage.BUY],
        plan=cost[Stage.BUY],
    )
    instead = alternatives(stages[Stage.BUY], basis.solve_stage)
    return Waterfall(steps, stages, _committed_now(bill) * month, at_book, instead)


def _committed_now(bill: pd.DataFrame) -> pd.Series:
    rows = bill[bill["purchase_option"].isin(COMMITTED_OPTIONS) & (bill["needed_gpu_hours"] > 0)]
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


def _solve_stages(basis: Basis, sunk: dict[Stage, float]) -> dict[Stage, Solved]:
    stages: dict[Stage, Solved] = {}
    former: Solved | None = None
    for stage in Stage:
        if former is not None and stage is Stage.EXPIRY and _nothing_ends(basis):
            cost = former.usd_per_month + sunk[stage] - sunk[former.stage]
            stages[stage] = replace(former, stage=stage, usd_per_month=cost)
        else:
            problem = problem_at(stage, basis.needs, basis.supply, basis.horizon, basis.rules)
            solve = basis.solve_stage.plan if stage is Stage.BUY else basis.solve_stage.stage
            # The result is named nowhere else: its dispatch is large, and goes with the call.
            stages[stage] = _checked((stage, problem, sunk[stage]), solve(problem), former, basis)
        former = stages[stage]
    return stages


def _checked(
    asked: tuple[Stage, Problem, float], result: Result, former: Solved | None, basis: Basis
) -> Solved:
    """The solved stage; the former one where that is no worse.

    MOVE and BUY only add choices, so the former plan is still allowed: where the newer one comes
    out dearer (within the solver's gap, or to stay near the last night's advice), or is not found
    in time, the former one is kept, with the bound of the newer stage.
    """
    stage, problem, sunk = asked
    allowed = former is not None and stage in (Stage.MOVE, Stage.BUY)
    if former is None or not allowed:
        if result.objective is None:
            raise SolveError(f"no plan: stage {stage.name} of the plan is {result.status}")
        return _kept(stage, problem, result, sunk)
    if result.objective is None or result.objective > (former.result.objective or 0.0):
        kept = basis.solve_stage.kept(former.result, result)
        return replace(former, stage=stage, result=kept)
    return _kept(stage, problem, result, sunk)


def _kept(stage: Stage, problem: Problem, result: Result, sunk: float) -> Solved:
    dispatch = result.dispatch
    month = problem.hour_weight / MONTHS
    used = dispatch.groupby(["class", "offer", "kind"], sort=True)["gpus"].sum().reset_index()
    used["gpu_hours"] = used.pop("gpus") * month
    held = dispatch[dispatch["kind"] == "reserved"]
    reserved = held.groupby(["offer", "hour"], sort=True)["gpus"].sum().reset_index()
    short = float(used.loc[used["kind"] == "shortage", "gpu_hours"].sum())
    cost = sunk + ((result.objective or 0.0) - result.costs["shortage"]) / MONTHS
    slim = replace(result, dispatch=empty_dispatch())
    used = used[used["kind"] != "shortage"].reset_index(drop=True)
    whole = _whole_machines(dispatch, problem) * month
    again = audit(problem, result.plan, dispatch).usd
    missing = shortages(problem, dispatch)
    return Solved(stage, problem, slim, cost, used, reserved, short, whole, again, missing)


def _whole_machines(dispatch: pd.DataFrame, problem: Problem) -> float:
    """USD over the horizon's hours that whole machines would cost more than the GPUs in use.

    What a savings plan covers runs on the same machines as what is on demand beside it.
    """
    hourly = dispatch[dispatch["kind"].isin(["on_demand", "savings_plan", "spot"])]
    ways = hourly["kind"].where(hourly["kind"] == "spot", "on_demand")
    sums = hourly.assign(kind=ways).groupby(["offer", "kind"], sort=True)
    extra = 0.0
    for key, part in sums:
        offer = next(one for one in problem.offers if one.id == key[0])
        price = offer.on_demand if key[1] == "on_demand" else offer.spot
        gpus = part.groupby("hour")["gpus"].sum().to_numpy()
        whole = np.ceil(gpus / offer.gpus - 1e-9) * offer.gpus
        extra += float((whole - gpus).sum()) * (price or 0.0)
    return extra


def _nothing_ends(basis: Basis) -> bool:
    """Whether what is owned today is all there is, for the whole planned year."""
    owned = basis.supply.owned
    return all(one.until_hour >= basis.horizon.hours and not one.begins for one in owned)


def _sunk(bill: pd.DataFrame, basis: Basis) -> dict[Stage, float]:
    """USD a month paid for commitments whatever runs, before and after some of them end."""
    month = HOURS_PER_MONTH / basis.horizon.observed_hours
    committed = bill[bill["purchase_option"].isin(COMMITTED_OPTIONS)]
    all_year = float(committed["cost"].sum()) * month
    hours = basis.horizon.hours
    change = sum(
        one.ahead_usd_per_month * one.until_hour / hours - one.usd_per_month
        for one in basis.supply.owned
    )
    return {stage: all_year + (change if stage >= Stage.EXPIRY else 0.0) for stage in Stage}


def _at_book(hourly: pd.DataFrame, supply: Supply) -> dict[str, float]:
    """USD in the window that the needed hours cost at the plan's prices, by class id."""
    by = ["workload_class", "gpu_family", "cloud", "region", "instance_type", "purchase_option"]
    sums = hourly.groupby(by, dropna=False)[["needed_gpu_hours", "needed_cost"]].sum()
    totals: dict[str, float] = {}
    for row in records(sums.reset_index()):
        name = offer_id(str(row["cloud"]), str(row["region"]), str(row["instance_type"]))
        offer = supply.offers.get(name)
        spot = row["purchase_option"] == "spot"
        price = None if offer is None else (offer.spot if spot else offer.on_demand)
        spent = float(row["needed_cost"])
        if price is not None:
            spent = float(row["needed_gpu_hours"]) * price
        need = f"{row['workload_class']}|{row['gpu_family']}"
        totals[need] = totals.get(need, 0.0) + spent
    return totals
