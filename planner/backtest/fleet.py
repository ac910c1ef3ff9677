"""The same back-test on the user's own demand: one a pool of work that shares commitments."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.errors import ConfigError
from planner.backtest.demand import Demand, gap_notes
from planner.backtest.run import backtest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.backtest.result import Backtest
    from planner.backtest.run import Adviser
    from planner.forecast.inputs import History, Terms


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The demand of one pool, and the prices and rules of its planning steps."""

    demand: Demand
    terms: Terms


def demand_of(history: History) -> Demand:
    """A whole history as the demand of a back-test; hours without a reading are gaps."""
    found = Demand(
        history.firm + history.deferrable,
        history.deferrable,
        history.classes,
        history.start_hour if history.start_time is None else history.start_time,
        history.spot_available,
    )
    return dataclasses.replace(found, notes=tuple(gap_notes(found)))


def backtest_pools(
    cases: Mapping[str, Case], adviser: Adviser, train_share: float = 0.5
) -> tuple[dict[str, Backtest], tuple[str, ...]]:
    """The back-test of each pool by name, and what a reader must know of them.

    A pool whose history cannot be parted has none, and a sentence says so.
    """
    made: dict[str, Backtest] = {}
    notes: list[str] = []
    for name in sorted(cases):
        case = cases[name]
        try:
            found = backtest(case.demand, case.terms, train_share, adviser)
        except ConfigError as error:
            notes += [f"{name}: no back-test: {one}" for one in error.problems]
            continue
        notes += [f"{name}: {text}" for text in found.warnings]
        made[name] = found
    return made, tuple(notes)
