"""The master problem: the first stage, with recourse cost known by its cuts.

    min  c.z + sum_s p_s q_s + lambda ( eta + sum_s p_s zeta_s / (1 - beta) )
    q_s = sum of the parts of s,  theta_part >= value + slope.(u(z) - u0)  for each cut
    zeta_s >= q_s - eta,  A z <= b (upfront budget, commitment limits),  0 <= z <= upper

Its relaxation is kept in HiGHS and grows by arrays, twice: once to bound, once to step. A step is
the plan nearest to the best one so far, in capacity, that the cuts price at a given level. With
whole counts it is a PuLP problem, so that either solver serves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np
import pulp

from data.errors import SolveError
from planner import solvers

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.optimise.first_stage import FirstStage
    from planner.optimise.recourse import Evaluation, Risk

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_NEAR_GAP = 1e-3  # relative, of the distance to last night's plan
_FAR = 0.003  # of the master's value, by which a cut is slack that is left out
_FREE = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A solution of the master: plan z and objective (of a relaxation: a lower bound)."""

    z: Array
    value: float


class Master:
    """Cuts as arrays, and the two models made of them."""

    def __init__(
        self, first: FirstStage, risk: Risk, scenario_of: Places, floor: float = 0.0
    ) -> None:
        self._first, self._risk, self._scenario_of, self._floor = first, risk, scenario_of, floor
        self._columns, self._parts = len(first), len(scenario_of)
        self._slopes = np.empty((0, self._columns))  # per unit of z
        self._constants = np.empty(0)
        self._weights = np.empty((0, self._parts))  # of each part in a cut
        self._resting = np.empty(0, dtype=bool)
        self._highs, self._stepper = silent_highs(), silent_highs()
        self._start(self._highs)
        self._start(self._stepper)
        self._start_steps()
        if math.isinf(floor):  # parts may cost less than nothing, a scenario may not
            sources, scenarios = len(first.sources), int(scenario_of.max()) + 1
            self.add_sums(np.zeros(sources), np.zeros(scenarios), np.zeros((scenarios, sources)))

    @property
    def cuts(self) -> int:
        """How many cuts it has."""
        return len(self._constants)

    def add(self, found: Evaluation) -> None:
        """Add the cuts of an evaluation: theta >= value + slope.(u(z) - u0)."""
        self._add(found.u, found.value, found.slope, np.eye(self._parts))
        if found.whole is not None:
            self.add_sums(found.u, found.cost, found.whole)

    def add_sums(self, u: Array, value: Array, slope: Array) -> None:
        """Add a cut for each scenario, of the sum of its parts."""
        scenarios = np.arange(len(value))
        self._add(u, value, slope, (self._scenario_of == scenarios[:, None]).astype(float))

    def _add(self, u: Array, value: Array, slope: Array, weights: Array) -> None:
        slopes = self._first.spread(slope)
        constants = value - slope @ u
        self._slopes = np.vstack([self._slopes, slopes])
        self._constants = np.append(self._constants, constants)
        self._weights = np.vstack([self._weights, weights])
        self._resting = np.append(self._resting, np.zeros(len(constants), dtype=bool))
        entries = np.hstack([-slopes, weights])
        row, column = np.nonzero(entries)
        starts = np.searchsorted(row, np.arange(len(entries))).astype(np.int32)
        index, amount = column.astype(np.int32), entries[row, column]
        top = np.full(len(entries), math.inf)
        for highs in (self._highs, self._stepper):
            highs.addRows(len(entries), constants, top, len(index), starts, index, amount)

    def rest(self) -> None:
        """Leave cuts far below the optimum of the relaxation out of the whole master from now on.

        Fewer cuts bound as truly, if less; those of later evaluations all stay.
        """
        value = self.relaxed().value
        point = np.array(self._highs.getSolution().col_value[: self._columns + self._parts])
        slack = np.hstack([-self._slopes, self._weights]) @ point - self._constants
        self._resting = slack > _FAR * abs(value)

    def relaxed(self) -> Point:
        """The optimum with counts continuous: a proven lower bound."""
        _solve(self._highs)
        z = np.array(self._highs.getSolution().col_value[: self._columns])
        value = self._highs.getInfo().objective_function_value
        return Point(np.clip(z, 0.0, self._first.upper), value)

    def step(self, center: Array, level: float) -> Array:
        """The plan nearest to `center`, in sources, whose value by the cuts is `level` or less."""
        at = self._first.feed(center)
        rows = self._distance
        both = np.concatenate([-at, at])
        self._stepper.changeRowsBounds(len(rows), rows, both, np.full(len(rows), math.inf))
        self._stepper.changeRowBounds(self._level, -math.inf, level)
        _solve(self._stepper)
        z = np.array(self._stepper.getSolution().col_value[: self._columns])
        stepped: Array = np.clip(z, 0.0, self._first.upper)
        return stepped

    @property
    def solver_name(self) -> str:
        """The solver of the relaxation and its version."""
        return f"highs {self._highs.version()}"

    def limit_prices(self) -> list[float]:
        """Of the relaxation: the worth of one more unit of each limit of the first stage."""
        dual = self._highs.getSolution().row_dual
        return [0.0 if row is None else float(-dual[row]) for row in self._limits]

    def whole(self, solver: str, gap: float, time_limit: float) -> tuple[Point | None, float, str]:
        """A plan with whole counts, the proven lower bound, and the solver's name."""
        lp, columns = self._as_pulp()
        run = solvers.run(lp, solver=solver, gap=gap, time_limit=time_limit)
        bound = -math.inf if run.bound is None else run.bound
        if not run.has_solution:
            return None, bound, run.solver
        z = np.array([column.varValue or 0.0 for column in columns])
        z = self._first.within(np.where(self._first.whole, np.round(z), z))
        value = pulp.value(lp.objective)
        return Point(np.clip(z, 0.0, self._first.upper), float(value)), bound, run.solver

    def nearest(
        self, target: Array, weights: Array, limit: float, solver: str, time_limit: float
    ) -> Array | None:
        """The whole plan nearest to `target` that the cuts price at `limit` or less; None: none."""
        lp, columns = self._as_pulp()
        lp.addConstraint(lp.objective <= limit, "stay_within_tolerance")
        goal = []
        for number, column in enumerate(columns):
            moved = lp.add_variable(f"moved_{number}", 0)
            goal.append((moved, float(weights[number])))
            for side, sign in (("up", 1.0), ("down", -1.0)):
                row = solvers.linear([(moved, 1.0), (column, -sign)]) >= -sign * target[number]
                lp.addConstraint(row, f"measure_{side}_{number}")
        lp.setObjective(solvers.linear(goal))
        if time_limit <= 0:
            return None
        run = solvers.run(lp, solver=solver, gap=_NEAR_GAP, time_limit=time_limit)
        if not run.has_solution:
            return None
        z = np.array([column.varValue or 0.0 for column in columns])
        whole = self._first.within(np.where(self._first.whole, np.round(z), z))
        return np.clip(whole, 0.0, self._first.upper)

    def _start(self, highs: highspy.Highs) -> None:
        risk, first = self._risk, self._first
        for cost, upper in zip(first.cost.tolist(), first.upper.tolist(), strict=True):
            highs.addCol(cost, 0.0, upper, 0, [], [])
        for scenario in self._scenario_of.tolist():
            highs.addCol(float(risk.p[scenario]), self._floor, math.inf, 0, [], [])
        self._limits: list[int | None] = []
        for limit in first.limits:
            used = np.flatnonzero(limit.weights).astype(np.int32)
            self._limits.append(highs.getNumRow() if len(used) else None)
            if len(used):
                highs.addRow(-math.inf, limit.most, len(used), used, limit.weights[used])
        if risk.weight:
            self._start_risk(highs)

    def _start_risk(self, highs: highspy.Highs) -> None:
        risk = self._risk
        eta = highs.getNumCol()
        highs.addCol(risk.weight, *_FREE, 0, [], [])
        for scenario, p in enumerate(risk.p.tolist()):
            zeta = highs.getNumCol()
            highs.addCol(risk.weight * p / (1 - risk.beta), 0.0, math.inf, 0, [], [])
            parts = self._columns + np.flatnonzero(self._scenario_of == scenario)
            index = np.concatenate([[eta, zeta], parts]).astype(np.int32)
            value = np.concatenate([[1.0, 1.0], np.full(len(parts), -1.0)])
            highs.addRow(0.0, math.inf, len(index), index, value)

    def _start_steps(self) -> None:
        """Level row, and distance columns with distance >= u - center, distance >= center - u."""
        highs, first = self._stepper, self._first
        columns = highs.getNumCol()
        every = np.arange(columns, dtype=np.int32)
        price = np.array(highs.getLp().col_cost_)
        self._level = highs.getNumRow()
        highs.addRow(-math.inf, math.inf, columns, every, price)
        highs.changeColsCost(columns, every, np.zeros(columns))
        sources = len(first.sources)
        for scale in self._scales().tolist():
            highs.addCol(1.0 / scale, 0.0, math.inf, 0, [], [])
        self._distance = (self._level + 1 + np.arange(2 * sources)).astype(np.int32)
        for sign in (-1.0, 1.0):
            for source in range(sources):
                fed = np.flatnonzero(first.source == source)
                index = np.append(fed, columns + source).astype(np.int32)
                value = np.append(sign * first.amount[fed], 1.0)
                highs.addRow(0.0, math.inf, len(index), index, value)

    def _scales(self) -> Array:
        """What counts as one unit of distance in each source: USD, by its cheapest column."""
        first = self._first
        scales = np.ones(len(first.sources))
        for source in range(len(first.sources)):
            own = first.source == source
            if own.any():
                scales[source] = 1.0 / float((first.cost[own] / first.amount[own]).min())
        relative: Array = scales / scales.min(initial=1.0)
        return relative

    def _as_pulp(self) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
        first, risk = self._first, self._risk
        lp = pulp.LpProblem("master", pulp.LpMinimize)
        columns = [
            lp.add_variable(
                f"z_{number}",
                0,
                upper if math.isfinite(upper) else None,
                pulp.LpInteger if whole else pulp.LpContinuous,
            )
            for number, (upper, whole) in enumerate(
                zip(first.upper.tolist(), first.whole.tolist(), strict=True)
            )
        ]
        floor = self._floor if math.isfinite(self._floor) else None
        parts = [lp.add_variable(f"theta_{number}", floor) for number in range(self._parts)]
        goal = list(zip(columns, first.cost.tolist(), strict=True))
        goal += [
            (part, float(risk.p[s]))
            for part, s in zip(parts, self._scenario_of.tolist(), strict=True)
        ]
        if risk.weight:
            goal += self._measure_excess(lp, parts)
        lp.setObjective(solvers.linear(goal))
        for place, limit in enumerate(first.limits):
            used = np.flatnonzero(limit.weights).tolist()
            terms = [(columns[number], float(limit.weights[number])) for number in used]
            if terms:
                lp.addConstraint(solvers.linear(terms) <= limit.most, f"limit_{place}")
        self._cut(lp, columns, parts)
        return lp, columns

    def _measure_excess(
        self, lp: pulp.LpProblem, parts: list[pulp.LpVariable]
    ) -> list[tuple[pulp.LpVariable, float]]:
        risk = self._risk
        eta = lp.add_variable("value_at_risk")
        goal = [(eta, risk.weight)]
        for scenario, p in enumerate(risk.p.tolist()):
            zeta = lp.add_variable(f"excess_{scenario}", 0)
            goal.append((zeta, risk.weight * p / (1 - risk.beta)))
            own = [
                (parts[number], -1.0) for number in np.flatnonzero(self._scenario_of == scenario)
            ]
            row = solvers.linear([(zeta, 1.0), (eta, 1.0), *own]) >= 0
            lp.addConstraint(row, f"measure_excess_{scenario}")
        return goal

    def _cut(
        self, lp: pulp.LpProblem, columns: list[pulp.LpVariable], parts: list[pulp.LpVariable]
    ) -> None:
        every = [*columns, *parts]
        entries = np.hstack([-self._slopes, self._weights])
        for number in np.flatnonzero(~self._resting).tolist():
            row, constant = entries[number], float(self._constants[number])
            terms = [(every[at], float(row[at])) for at in np.flatnonzero(row).tolist()]
            lp.addConstraint(solvers.linear(terms) >= constant, f"cut_{number}")


def _solve(highs: highspy.Highs) -> None:
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        highs.clearSolver()
        highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        status = highs.modelStatusToString(highs.getModelStatus())
        raise SolveError(f"the relaxed master problem was not solved: {status}")


def silent_highs() -> highspy.Highs:
    """A HiGHS that prints nothing and answers the same every time."""
    with solvers.silence():
        highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("parallel", "off")
    highs.setOptionValue("random_seed", 0)
    highs.setOptionValue("presolve", "off")
    return highs
