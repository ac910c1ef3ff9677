"""Runs every policy over the unseen part of a demand, stopping at each planning step."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from data.errors import ConfigError, Problem
from planner.backtest.demand import known, load
from planner.backtest.foresight import best_level
from planner.backtest.result import (
    FORESIGHT,
    LOADFACTOR,
    Backtest,
    Coverage,
    Decision,
    PolicyResult,
    changes_of,
    levels_of,
)
from planner.backtest.rivals import RULES, Step
from planner.backtest.simulate import costs
from planner.forecast.inputs import Advice, Held
from planner.forecast.known import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.backtest.demand import Demand
    from planner.backtest.rivals import Rule
    from planner.backtest.simulate import Load
    from planner.forecast.inputs import History, Terms


_NUMBER = re.compile(r"[0-9]+([.,][0-9]+)*")
_ROUNDING = 1e-9  # so that 0.29 of 100 hours are 29


class Adviser(Protocol):
    """The policy under test: what to reserve, from what is known at a planning step."""

    def __call__(self, history: History, terms: Terms) -> Advice:
        """The GPUs to reserve now, with the reason."""
        ...


@dataclass(frozen=True, slots=True)
class _Test:
    """The hours of the file from `start` on, and what ran in those that were recorded."""

    demand: Demand
    terms: Terms
    start: int
    window: Load

    @property
    def stop(self) -> int:
        return self.demand.hours

    @property
    def steps(self) -> range:
        """Hours at which may be bought."""
        return range(self.start, self.stop, self.terms.replan_hours)


def backtest(demand: Demand, terms: Terms, train_share: float, adviser: Adviser) -> Backtest:
    """Every policy over the hours after the first `train_share` of the demand.

    Raises ConfigError where one of the two parts has no recorded hour.
    """
    start = math.floor(demand.hours * train_share + _ROUNDING)
    _refuse_empty(demand, start)
    test = _Test(demand, terms, start, load(demand, start, demand.hours))
    advised: list[tuple[int, Advice]] = []
    policies = [_policy(LOADFACTOR, _advised(test, adviser, advised), test)]
    pasts = {hour: load(demand, 0, hour) for hour in test.steps}
    policies += [_policy(name, _ruled(test, rule, pasts), test) for name, rule in RULES.items()]
    level = best_level(test.window, terms)
    forever = (Decision(test.start, level, ""),)
    constant = dataclasses.replace(terms, term_hours=test.stop - test.start)
    foresight = _policy(FORESIGHT, forever, dataclasses.replace(test, terms=constant))
    return Backtest(
        train_hours=test.start,
        test_hours=test.stop - test.start,
        policies=(*policies, dataclasses.replace(foresight, decisions=())),
        coverage=_coverage(test, advised),
        warnings=tuple(dict.fromkeys((*demand.notes, *_step_warnings(demand, advised)))),
    )


def _step_warnings(demand: Demand, advised: list[tuple[int, Advice]]) -> list[str]:
    """What the planning steps warn of, each kind once: at its first step, and how often again.

    Warnings that differ in their numbers alone are of one kind. Of hours that are left out the
    notes on the demand tell already.
    """
    texts: dict[str, str] = {}
    again: Counter[str] = Counter()
    for hour, one in advised:
        for kind, text in {_NUMBER.sub("#", text): text for text in one.warnings}.items():
            if demand.notes and text.endswith(f"{LEFT_OUT}."):
                continue
            if kind in texts:
                again[kind] += 1
            else:
                texts[kind] = f"planning step of {demand.name(hour)}: {text}"
    more = {kind: f" The same at {count} later steps." for kind, count in again.items()}
    more |= {kind: " The same at a later step." for kind, count in again.items() if count == 1}
    return [text + more.get(kind, "") for kind, text in texts.items()]


def _refuse_empty(demand: Demand, start: int) -> None:
    recorded = demand.recorded
    faults = [
        Problem(f"the {name} part", "has no hour with a reading", "give a longer history")
        for name, hours in (("training", recorded[:start]), ("test", recorded[start:]))
        if not hours.any()
    ]
    if faults:
        raise ConfigError("the demand cannot be parted into training and test", faults)


def _advised(
    test: _Test, adviser: Adviser, advised: list[tuple[int, Advice]]
) -> tuple[Decision, ...]:
    """The purchases that the adviser asks for; its answers are added to `advised`."""
    decisions: list[Decision] = []
    for hour in test.steps:
        terms = dataclasses.replace(test.terms, held=_held(decisions, test.terms))
        advice = adviser(known(test.demand, hour), terms)
        if advice.gpus < 0 or advice.gpus % terms.gpus_per_instance:
            raise ValueError(f"advice of {advice.gpus} GPUs at hour {hour} is no whole instances")
        advised.append((hour, advice))
        decisions.append(Decision(hour, advice.gpus, advice.reason))
    return tuple(decisions)


def _ruled(test: _Test, rule: Rule, pasts: Mapping[int, Load]) -> tuple[Decision, ...]:
    """The purchases of a rule; `pasts` holds what is known at each step."""
    decisions: list[Decision] = []
    for hour, past in pasts.items():
        held = dataclasses.replace(test.terms, held=_held(decisions, test.terms)).held_in(hour)
        step = Step(pasts[test.start], past, held, test.terms)
        decisions.append(Decision(hour, rule(step), ""))
    return tuple(decisions)


def _held(decisions: list[Decision] | tuple[Decision, ...], terms: Terms) -> tuple[Held, ...]:
    return tuple(
        Held(one.hour, one.hour + terms.term_hours, one.bought) for one in decisions if one.bought
    )


def _policy(name: str, decisions: tuple[Decision, ...], test: _Test) -> PolicyResult:
    """What a series of purchases costs over the recorded hours of the test window."""
    levels = levels_of(_held(decisions, test.terms), test.start, test.stop)
    window = test.window
    recorded = test.demand.recorded[test.start :]
    return PolicyResult(
        policy=name,
        costs=costs(window, levels[recorded], test.terms),
        levels=changes_of(levels, test.start),
        decisions=decisions,
        gpu_hours=float(window.total.sum()),
    )


def _coverage(test: _Test, advised: list[tuple[int, Advice]]) -> Coverage | None:
    """How often the recorded demand lay inside the intervals of the advice."""
    actual = np.full(test.stop - test.start, np.nan)
    recorded = test.demand.recorded[test.start :]
    actual[recorded] = test.window.total
    given = [(hour - test.start, one.interval) for hour, one in advised if one.interval]
    if not given:
        return None
    counts = np.zeros((len(given) + 1, 2), dtype=int)
    for place, (at, interval) in enumerate(given):
        ahead = min(len(interval.low), len(actual) - at)
        inside = (actual[at : at + ahead] >= interval.low[:ahead]) & (
            actual[at : at + ahead] <= interval.high[:ahead]
        )
        compared = np.isfinite(actual[at : at + ahead])
        until = test.terms.replan_hours
        counts[place] = compared[:until].sum(), inside[:until].sum()
        if place == 0:
            counts[-1] = compared.sum(), inside.sum()
    hours, covered = counts[:-1].sum(axis=0).tolist()
    hours_ahead, covered_ahead = counts[-1].tolist()
    return Coverage(given[0][1].share, hours, covered, hours_ahead, covered_ahead)
