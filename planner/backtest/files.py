"""The back-test of the files that a user names: their faults all at once, then one result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from data.errors import ConfigError, Problem
from planner.backtest.demand_file import read_demand, read_spot_availability
from planner.backtest.prices_file import price_notes, read_noted_prices, with_rules
from planner.backtest.run import backtest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planner.backtest.result import Backtest
    from planner.backtest.run import Adviser

HOURS_PER_WEEK = 168
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a back-test.

    Attributes:
        demand: CSV of `hour,class,gpus,deferrable_gpus`.
        prices: TOML of prices and terms.
        spot_availability: CSV of `hour,available`; None: spot is always there.
    """

    demand: Path
    prices: Path
    spot_availability: Path | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """How a back-test is run.

    Attributes:
        train_share: share of the hours that are history when the test begins.
        replan_weeks: weeks between two planning steps.
        max_delay_hours: hours that deferrable work may start after its own hour.
    """

    train_share: float = 0.5
    replan_weeks: int = 4
    max_delay_hours: int = 24


def backtest_files(files: Files, rules: Rules, adviser: Adviser) -> Backtest:
    """The back-test of files.

    Raises ConfigError with every fault of all of them.
    """
    faults: list[Problem] = []
    demand = _read(read_demand, files.demand, faults)
    prices = _read(read_noted_prices, files.prices, faults)
    spot = None
    if files.spot_availability is not None:
        spot = _read(read_spot_availability, files.spot_availability, faults)
    if faults or demand is None or prices is None:
        raise ConfigError("nothing was computed", faults)
    terms, unsaid = prices
    notes = [*demand.notes, *unsaid, *price_notes(terms)]
    if spot is not None and terms.spot is None:
        notes.append(f"{files.spot_availability} has no effect: {files.prices} states no spot")
    elif terms.spot is None and np.nansum(demand.deferrable) > 0:
        notes.append(f"{files.prices} states no spot price: nothing runs on spot")
    available = None if spot is None else np.resize(spot, demand.hours)
    demand = dataclasses.replace(demand, spot_available=available, notes=tuple(notes))
    terms = with_rules(terms, rules.replan_weeks * HOURS_PER_WEEK, rules.max_delay_hours)
    return backtest(demand, terms, rules.train_share, adviser)


def _read(read: Callable[[Path], Read], path: Path, faults: list[Problem]) -> Read | None:
    """What the file says; its faults, each under its name, are added to `faults`."""
    try:
        return read(path)
    except ConfigError as error:
        for one in error.problems:
            where = one.where if one.where.startswith(str(path)) else f"{path}: {one.where}"
            faults.append(Problem(where, one.what, one.remedy))
        return None
