"""The back-test of every night: what this planner would have cost on the user's own history.

The second half of the history is planned as if it were not known yet, at the plan's own prices, by
the rule that the plan itself follows, and where the plan buys, at the rate and for the term bought.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from data.money import HOURS_PER_MONTH
from data.risks import BacktestPolicy, BacktestPool, Backtests
from planner.backtest.demand import load
from planner.backtest.fleet import Case, backtest_pools, demand_of
from planner.backtest.result import FORESIGHT, LOADFACTOR, levels_of
from planner.forecast.inputs import Held
from planner.forecast.policy import advise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.backtest.demand import Demand
    from planner.backtest.result import Backtest
    from planner.forecast.inputs import Terms
    from planner.ladder import Rung
    from planner.purchases import Purchase

_CENTS = 2
_NONE_BOUGHT = "all_on_demand"


def backtests(
    rungs: Sequence[Rung], hours: int, least_hours: int, bought: Sequence[Purchase] = ()
) -> Backtests:
    """The back-test of each pool of the ladder, at its own prices, with nothing held before.

    Where the plan buys for a pool, rate and term are those of what is `bought`.
    Below `least_hours` of the `hours` of history there is none: half of it is too short to plan on.
    """
    if hours < least_hours:
        return Backtests(
            notes=(
                f"no back-test: there are {hours:,} hours of history, fewer than the "
                f"{least_hours:,} that it needs (min_history_days)",
            )
        )
    cases = {rung.pool.name: Case(demand_of(rung.past), _terms(rung, bought)) for rung in rungs}
    made, notes = backtest_pools(cases, advise)
    pools = tuple(_pool(name, found, cases[name]) for name, found in made.items())
    return Backtests(pools, _policies(made), notes)


def _terms(rung: Rung, bought: Sequence[Purchase]) -> Terms:
    """The prices of a pool at the rate and term bought for it: of several terms, that of most."""
    mine = [one for one in bought if one.gpus and _is_of(one, rung)]
    terms = replace(rung.terms, held=())
    if not mine:
        return terms
    gpus: dict[int, float] = {}
    for one in mine:
        gpus[one.term_hours] = gpus.get(one.term_hours, 0.0) + (one.gpus or 0.0)
    term = max(gpus, key=lambda hours: (gpus[hours], -hours))
    usd = math.fsum(one.usd_per_hour for one in mine if one.term_hours == term)
    return replace(terms, reserved=usd / gpus[term], term_hours=term)


def _is_of(one: Purchase, rung: Rung) -> bool:
    """Whether a purchase is for a pool: on its offers, or a savings plan of its cloud."""
    if one.kind == "savings_plan":
        return one.cloud == rung.pool.cloud
    return one.key[1] in rung.pool.offers


def _policies(made: Mapping[str, Backtest]) -> tuple[BacktestPolicy, ...]:
    """Every policy over all pools, this planner first and then the cheapest."""
    sums: dict[str, float] = {}
    for found in made.values():
        for one in found.policies:
            sums[one.policy] = sums.get(one.policy, 0.0) + one.costs.usd
    bound = sums.get(FORESIGHT, 0.0)
    rows = [
        BacktestPolicy(name, round(usd, _CENTS), round(usd / bound - 1, 6) if bound > 0 else None)
        for name, usd in sums.items()
    ]
    last = {LOADFACTOR: 0, FORESIGHT: 2}
    return tuple(sorted(rows, key=lambda row: (last.get(row.policy, 1), row.usd, row.policy)))


def _pool(name: str, found: Backtest, case: Case) -> BacktestPool:
    terms = case.terms
    mine = found.named(LOADFACTOR)
    rivals = [one for one in found.policies if one.policy not in (LOADFACTOR, FORESIGHT)]
    best = min(rivals, key=lambda one: (one.costs.usd, one.policy))
    bought = [
        Held(one.hour, one.hour + terms.term_hours, one.bought)
        for one in mine.decisions
        if one.bought
    ]
    shares = used_shares(case.demand, found.train_hours, bought, terms)
    return BacktestPool(
        pool=name,
        train_hours=found.train_hours,
        test_hours=found.test_hours,
        usd=round(mine.costs.usd, _CENTS),
        foresight_usd=round(found.named(FORESIGHT).costs.usd, _CENTS),
        on_demand_usd=round(found.named(_NONE_BOUGHT).costs.usd, _CENTS),
        best_rival=best.policy,
        best_rival_usd=round(best.costs.usd, _CENTS),
        steps=len(mine.decisions),
        purchases=len(bought),
        under_break_even=sum(share < terms.reserved / terms.on_demand for share in shares),
        reserved_gpus=mine.levels[-1][1],
        rate=round(terms.reserved, 6),
        on_demand=round(terms.on_demand, 6),
        term_months=round(terms.term_hours / HOURS_PER_MONTH),
    )


def used_shares(demand: Demand, start: int, bought: list[Held], terms: Terms) -> list[float]:
    """Share of the recorded hours from each purchase to its end in which its GPUs were at work.

    Purchases fill in the order in which they were made. Work that may run on spot counts where a
    reserved GPU-hour is no dearer than that.
    """
    window = load(demand, start, demand.hours)
    need = window.firm + (window.deferrable if terms.spot_useful >= terms.reserved else 0.0)
    recorded = demand.recorded[start:]
    hours = np.arange(start, demand.hours)[recorded]
    shares = []
    for number, one in enumerate(bought):
        below = levels_of(tuple(bought[:number]), start, demand.hours)[recorded]
        there = (hours >= one.from_hour) & (hours < one.until_hour)
        used = np.clip(need - below, 0.0, one.gpus)[there]
        shares.append(float(used.mean()) / one.gpus if len(used) else math.nan)
    return shares
