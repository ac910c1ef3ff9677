"""Demand that a plan does not serve, and the limit in conflict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.optimise.shortage_reasons import Short, reasons_of

if TYPE_CHECKING:
    import pandas as pd

    from planner.outcome import Plan
    from planner.problem import Problem


@dataclass(frozen=True, slots=True)
class InScenario:
    """A scenario with a shortage: its number, its probability, and the shortage there."""

    scenario: int
    p: float
    hours: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class Shortage:
    """Demand not served: who, in how many hours, how much at most, and the limit in conflict.

    `hours` are hours of the file in which some scenario is short, `gpus` the most of them;
    `gpu_hours` and `mean_hours` are means over scenarios by probability.
    """

    workload_class: str
    hours: int
    first_hour: int
    last_hour: int
    gpus: float
    gpu_hours: float
    limit: str
    mean_hours: float = 0.0
    scenarios: tuple[InScenario, ...] = ()


def shortages(
    problem: Problem, dispatch: pd.DataFrame, plan: Plan | None = None
) -> tuple[Shortage, ...]:
    """Each class that falls short, with the limits that stand in the way of more in those hours.

    Without the `plan` nothing is said of limits of what is bought ahead.
    """
    short = dispatch[dispatch["kind"] == "shortage"]
    classes = {one.id: one for one in problem.classes}
    found = []
    for name, rows in short.groupby("class", sort=True):
        there = tuple(
            _in_scenario(problem, number, rows[rows["scenario"] == number])
            for number in sorted(set(rows["scenario"].tolist()))
        )
        hours = sorted(set(rows["hour"].tolist()))
        case = Short(problem, classes[str(name)], dispatch, rows, plan)
        found.append(
            Shortage(
                workload_class=str(name),
                hours=len(hours),
                first_hour=int(hours[0]),
                last_hour=int(hours[-1]),
                gpus=float(rows["gpus"].max()),
                gpu_hours=sum(one.p * one.gpu_hours for one in there),
                limit=reasons_of(case),
                mean_hours=sum(one.p * one.hours for one in there),
                scenarios=there,
            )
        )
    return tuple(found)


def _in_scenario(problem: Problem, number: int, rows: pd.DataFrame) -> InScenario:
    p = problem.scenarios[number].p
    return InScenario(number, p, len(rows), float(rows["gpus"].sum()))
