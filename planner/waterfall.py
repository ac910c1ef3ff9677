"""From today's bill to the plan's, each dollar counted once: the stages, solved one by one.

    today - release - rightsize + repriced - use_idle - spot - move + growth + expiring - buy = plan

Every term is USD a month (730 hours). `repriced` is the difference between what the needed hours
did cost and what the model says they cost, so that a change of price is never called a saving;
`growth` is what the demand to come costs more than that of the past; `expiring` is what owned
commitments change that end, or that were bought after the window. Hours that no priced offer can
serve are counted as hours, never as dollars.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pandas as pd

from data.errors import SolveError
from data.frames import records
from data.money import HOURS_PER_MONTH
from data.schema import COMMITTED_OPTIONS
from planner.alternatives import alternatives
from planner.assemble import Stage, problem_as_now, problem_at
from planner.dispatch_sums import expected, whole_machines
from planner.ladder_steps import unlimited
from planner.optimise.audit import audit
from planner.optimise.shortages import shortages
from planner.outcome import Plan, commitments, empty_dispatch, recourse
from planner.peaks import peaks
from planner.service_level import at_level
from planner.supply import offer_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.alternatives import Alternative, Key
    from planner.assemble import Need, PlanRules
    from planner.future import Future
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
    and hour, `peaks` the most and fewest GPUs of a class on an offer in any hour of any scenario;
    `short_gpu_hours` a month are served by no priced offer; `whole_machines` is what a month would
    cost more if each hour's GPUs were bought as whole machines; `audited` is the result's objective
    priced again, USD a year; `short` is who is short of what, and why; `by_scenario` is the cost in
    each way in which demand may come; `served` by class id the share of hours that a stated service
    level is about. Sums over scenarios are means.
    """

    stage: Stage
    problem: Problem
    result: Result
    usd_per_month: float
    used: pd.DataFrame
    reserved: pd.DataFrame
    peaks: pd.DataFrame
    short_gpu_hours: float
    whole_machines: float
    audited: float
    short: tuple[Shortage, ...] = ()
    by_scenario: tuple[float, ...] = ()
    served: tuple[tuple[str, float], ...] = ()

    @property
    def scarce(self) -> frozenset[str]:
        """Clouds and regions ("aws us-east-1") whose quota costs money, as far as explained."""
        limits = () if self.result.why is None else self.result.why.limits
        return frozenset(
            " ".join(one.name.split(" ")[:2])
            for one in limits
            if one.kind == "quota" and one.most > _SMALLEST
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
    growth: float
    expiring: float
    buy: float
    plan: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The steps and the solved stages they come from, the last stage being the plan.

    `committed_now` are needed GPU-hours a month that run on commitments today, by class id and
    offer; `at_book` what the needed hours cost at the plan's prices, USD a month by class id;
    `instead` the next best to each purchase of the plan, where it was worked out; `unlimited` what
    it would buy if it might commit to more. `as_now` is what running on as today would cost in each
    way in which demand may come, USD a month; empty where that is not known.
    """

    steps: Steps
    stages: dict[Stage, Solved]
    committed_now: pd.Series
    at_book: dict[str, float]
    instead: dict[Key, Alternative] = field(default_factory=dict)
    unlimited: Plan = field(default_factory=Plan)
    as_now: tuple[float, ...] = ()

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
    """What every stage shares; without a `future`, the past is taken to come again.

    `supply` counts what is owned in hours of the planned year.
    """

    needs: Sequence[Need]
    supply: Supply
    horizon: Horizon
    rules: PlanRules
    solve_stage: StageSolver
    future: Future | None = None

    @property
    def planned(self) -> Horizon:
        """The year that the plan is for."""
        return self.horizon if self.future is None else self.future.horizon


def run(bill: pd.DataFrame, basis: Basis) -> Waterfall:
    """The waterfall of a fleet. `bill` is FLEET_HOURS, planned rows only, money as float."""
    month = HOURS_PER_MONTH / basis.horizon.observed_hours
    paid_ahead = _sunk(bill, basis)
    stages = _solve_stages(basis, paid_ahead)
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
        growth=cost[Stage.DEMAND] - cost[Stage.MOVE],
        expiring=cost[Stage.EXPIRY] - cost[Stage.DEMAND],
        buy=cost[Stage.EXPIRY] - cost[Stage.BUY],
        plan=cost[Stage.BUY],
    )
    # No rival is asked for a stated level, so none would be like it.
    is_free = basis.rules.service_level is None
    instead = alternatives(stages[Stage.BUY], basis.solve_stage) if is_free else {}
    beyond = unlimited(stages[Stage.BUY], basis.solve_stage)
    now = _as_now(basis, paid_ahead[Stage.EXPIRY], stages[Stage.BUY])
    return Waterfall(steps, stages, _committed_now(bill) * month, at_book, instead, beyond, now)


def _as_now(basis: Basis, sunk: float, plan: Solved) -> tuple[float, ...]:
    """USD a month of running on as today in each way in which demand may come.

    Empty where that would leave more demand unserved than the plan: it could not be compared.
    """
    if basis.future is None or basis.solve_stage.left <= 0:
        return ()
    problem = problem_as_now(basis.needs, basis.supply, basis.future, basis.rules)
    result = basis.solve_stage.stage(problem)
    if result.objective is None:
        return ()
    made = _kept(Stage.EXPIRY, problem, result, sunk)
    is_alike = made.short_gpu_hours <= plan.short_gpu_hours + _SMALLEST
    return made.by_scenario if is_alike else ()


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
    """The rows with `needed_cost`: the part of their cost that needed GPU-hours bear.

    Money without GPU-hours is needed, but for what can be stopped: an empty reservation.
    """
    hours = rows["gpu_hours"].where(rows["gpu_hours"] > 0)
    share = (rows["needed_gpu_hours"] / hours).fillna(1.0).where(~rows["stoppable"].astype(bool), 0)
    return rows.assign(needed_cost=rows["cost"] * share)


def _solve_stages(basis: Basis, sunk: dict[Stage, float]) -> dict[Stage, Solved]:
    stages: dict[Stage, Solved] = {}
    former: Solved | None = None
    for stage in Stage:
        if former is not None and _is_same(stage, basis):
            cost = sunk[stage] - sunk[former.stage]
            stages[stage] = replace(
                former,
                stage=stage,
                usd_per_month=former.usd_per_month + cost,
                by_scenario=tuple(one + cost for one in former.by_scenario),
            )
        elif stage is Stage.BUY and former is not None and basis.rules.service_level is not None:
            stages[stage] = _at_level(basis.rules.service_level, sunk[stage], former, basis)
        else:
            ahead = basis.future if stage >= Stage.DEMAND and basis.future else basis.horizon
            problem = problem_at(stage, basis.needs, basis.supply, ahead, basis.rules)
            solve = basis.solve_stage.plan if stage is Stage.BUY else basis.solve_stage.stage
            # The result is named nowhere else: its dispatch is large, and goes with the call.
            stages[stage] = _checked((stage, problem, sunk[stage]), solve(problem), former, basis)
            if stage is Stage.BUY and former is not None:
                stages[stage] = _worth_it(stages[stage], former, basis)
        former = stages[stage]
    return stages


def _at_level(level: float, sunk: float, former: Solved, basis: Basis) -> Solved:
    """The plan that commits to a stated service level; its caution stands in `cvar` as unpaid."""
    ahead = basis.future or basis.horizon
    problem = problem_at(Stage.BUY, basis.needs, basis.supply, ahead, basis.rules)
    result, served = at_level(problem, level, basis.solve_stage.near)
    if result.objective is None:
        kept = basis.solve_stage.kept(former.result, result)
        return replace(former, stage=Stage.BUY, result=kept)
    made = _kept(Stage.BUY, replace(problem, cvar=None), result, sunk)
    return replace(made, audited=made.audited + result.costs["cvar"], served=served)


def without_level(bill: pd.DataFrame, waterfall: Waterfall, basis: Basis) -> Solved:
    """The plan beside that of a stated service level: what it would be without one.

    `basis` is without the level. `bill` is FLEET_HOURS, planned rows only, money as float.
    """
    ahead, former = basis.future or basis.horizon, waterfall.stages[Stage.EXPIRY]
    problem = problem_at(Stage.BUY, basis.needs, basis.supply, ahead, basis.rules)
    asked = (Stage.BUY, problem, _sunk(bill, basis)[Stage.BUY])
    solved = _checked(asked, basis.solve_stage.near(problem), former, basis)
    return _worth_it(solved, former, basis)


def _worth_it(bought: Solved, former: Solved, basis: Basis) -> Solved:
    """The plan; where its caution costs more than all that purchases save, the one without it.

    The weight of the dearest scenarios buys insurance against them. It may cost part of the saving
    on the mean, not more than there is.
    """
    if bought.problem.cvar is None or bought.usd_per_month <= former.usd_per_month + _SMALLEST:
        return bought
    problem, found = replace(bought.problem, cvar=None), former.result
    risk = found.costs["cvar"]
    objective = (found.objective or 0.0) - risk
    plain = replace(found, objective=objective, costs={**found.costs, "cvar": 0.0})
    without = replace(former, problem=problem, result=plain, audited=former.audited - risk)
    sunk = former.usd_per_month - (objective - plain.costs["shortage"]) / MONTHS
    return _checked((Stage.BUY, problem, sunk), basis.solve_stage.plan(problem), without, basis)


def _is_same(stage: Stage, basis: Basis) -> bool:
    """Whether a stage asks what the one before it asked."""
    if stage is Stage.DEMAND:
        return basis.future is None
    return stage is Stage.EXPIRY and _nothing_ends(basis)


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
    dispatch = expected(problem, result.dispatch)
    month = problem.hour_weight / MONTHS
    used = dispatch.groupby(["class", "offer", "kind"], sort=True)["gpus"].sum().reset_index()
    used["gpu_hours"] = used.pop("gpus") * month
    held = dispatch[dispatch["kind"] == "reserved"]
    reserved = held.groupby(["offer", "hour"], sort=True)["gpus"].sum().reset_index()
    short = float(used.loc[used["kind"] == "shortage", "gpu_hours"].sum())
    ways = recourse(problem, result.dispatch)
    spent = [math.fsum(one.values()) - one["shortage"] for one in ways]
    chosen = math.fsum(commitments(problem, result.plan).values())
    weighed = zip(problem.scenarios, spent, strict=True)
    cost = sunk + (chosen + math.fsum(one.p * usd for one, usd in weighed)) / MONTHS
    slim = replace(result, dispatch=empty_dispatch())
    return Solved(
        stage=stage,
        problem=problem,
        result=slim,
        usd_per_month=cost,
        used=used[used["kind"] != "shortage"].reset_index(drop=True),
        reserved=reserved,
        peaks=peaks(problem, result.dispatch),
        short_gpu_hours=short,
        whole_machines=whole_machines(result.dispatch, problem) * month,
        audited=audit(problem, result.plan, result.dispatch).usd,
        short=shortages(problem, result.dispatch, result.plan),
        by_scenario=tuple(sunk + (chosen + usd) / MONTHS for usd in spent),
    )


def _nothing_ends(basis: Basis) -> bool:
    """Whether what is owned today is all there is, for the whole planned year."""
    owned = basis.supply.owned
    return all(one.until_hour >= basis.planned.hours and not one.begins for one in owned)


def _sunk(bill: pd.DataFrame, basis: Basis) -> dict[Stage, float]:
    """USD a month paid for commitments whatever runs, before and after some of them end."""
    month = HOURS_PER_MONTH / basis.horizon.observed_hours
    committed = bill[bill["purchase_option"].isin(COMMITTED_OPTIONS)]
    all_year = float(committed["cost"].sum()) * month
    hours = basis.planned.hours
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
