"""All that is particular to PuLP and the solvers: spellings, silence, status, bound.

PuLP 3.3 and 4 differ in how an expression is made and in what `solve` returns; both call a run
that stopped at its limit optimal somewhere. So nothing that PuLP says of status is used: HiGHS
answers through its own object, CBC through its log.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import highspy
import pulp

from data.errors import Problem, SolveError, UsageError
from planner.branching import Search

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOLVERS = ("highs", "cbc")
_SEED = 0
_THREADS = 1  # more make the choice among equal plans depend on timing
_ABSOLUTE_GAP = 1e-9
_GAP_MARGIN = 0.9  # of the gap asked for, so that rounding a plan does not break the proof
_LEAST_SECONDS = 1e-3
_LARGE = 20_000  # columns from which a general search costs more than branching here
_MOST_TO_BRANCH_ON = 500
_FEASIBLE = 2  # HiGHS: kSolutionStatusFeasible


@dataclass(frozen=True, slots=True)
class Run:
    """What a solver run proved. `bound` is in the units of its objective, None where unknown."""

    has_solution: bool
    infeasible: bool
    bound: float | None
    solver: str
    seconds: float


def linear(terms: Iterable[tuple[pulp.LpVariable, float]]) -> pulp.LpAffineExpression:
    """The sum of coefficient times variable, made the way the installed PuLP makes it fastest."""
    from_list = getattr(pulp.LpAffineExpression, "from_list", None)
    return from_list(list(terms)) if from_list else pulp.LpAffineExpression(terms)


def run(lp: pulp.LpProblem, *, solver: str, gap: float, time_limit: float) -> Run:
    """What the named solver proves about `lp`, whose variables then hold the solution, if any.

    Raises UsageError for an unknown solver and SolveError for one that is not there or breaks.
    """
    if solver not in SOLVERS:
        raise UsageError(f"unknown solver {solver!r}: choose one of {', '.join(SOLVERS)}")
    begin = time.perf_counter()
    try:
        with silence():
            found = (_run_highs if solver == "highs" else _run_cbc)(
                lp, gap * _GAP_MARGIN, max(time_limit, _LEAST_SECONDS)
            )
    except pulp.PulpError as error:
        remedy = "put a cbc program on the PATH, or use highs" if solver == "cbc" else ""
        raise SolveError(
            f"{solver} could not be run", [Problem(solver, str(error), remedy)]
        ) from error
    has_solution, infeasible, bound, name = found
    seconds = time.perf_counter() - begin
    return Run(has_solution, infeasible, bound, name, seconds)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Nothing that C code prints within reaches standard output: HiGHS greets there regardless."""
    sys.stdout.flush()
    _flush_c()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        _flush_c()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _flush_c() -> None:
    ctypes.CDLL(None).fflush(None)


def _run_highs(
    lp: pulp.LpProblem, gap: float, time_limit: float
) -> tuple[bool, bool, float | None, str]:
    columns = _in_order(lp)
    whole = [place for place, column in enumerate(columns) if column.cat == pulp.LpInteger]
    if whole and len(whole) <= _MOST_TO_BRANCH_ON and len(columns) >= _LARGE:
        return _branch_highs(lp, whole, gap, time_limit)
    highs = _solved_by_highs(lp, time_limit, gapRel=gap, gapAbs=_ABSOLUTE_GAP)
    info = highs.getInfo()
    has_solution = int(info.primal_solution_status) == _FEASIBLE
    if whole:
        bound = info.mip_dual_bound
    else:
        bound = info.objective_function_value if _ended(highs, "kOptimal") else -math.inf
    proved = bound if math.isfinite(bound) else None
    return has_solution, _ended(highs, "kInfeasible"), proved, f"highs {highs.version()}"


def _branch_highs(
    lp: pulp.LpProblem, whole: list[int], gap: float, time_limit: float
) -> tuple[bool, bool, float | None, str]:
    """The relaxation by PuLP, then a search on its live HiGHS object."""
    begin = time.perf_counter()
    highs = _solved_by_highs(lp, time_limit, mip=False)
    name = f"highs {highs.version()}"
    if not _ended(highs, "kOptimal"):
        return False, _ended(highs, "kInfeasible"), None, name
    relaxed = float(highs.getInfo().objective_function_value)
    left = time_limit - (time.perf_counter() - begin)
    found = Search(highs, whole, gap, left).run()
    if found.values is not None:
        for column, value in zip(_in_order(lp), found.values.tolist(), strict=True):
            column.varValue = value
    return found.values is not None, found.proven_empty, max(relaxed, found.bound), name


def _solved_by_highs(lp: pulp.LpProblem, time_limit: float, **settings: object) -> highspy.Highs:
    solver = pulp.HiGHS(
        msg=False,
        threads=_THREADS,
        timeLimit=time_limit,
        random_seed=_SEED,
        parallel="off",
        **settings,
    )
    lp.solve(solver)
    highs = lp.solverModel
    lp.solverModel = None  # the caller holds it, and lets it go: it is a second copy of the model
    return highs


def _ended(highs: highspy.Highs, status: str) -> bool:
    return bool(highs.getModelStatus() == getattr(highspy.HighsModelStatus, status))


def _in_order(lp: pulp.LpProblem) -> list[pulp.LpVariable]:
    """The variables in the order of the solver's columns."""
    exported = getattr(lp, "exported_variables", lp.variables)
    return list(exported())


def _run_cbc(
    lp: pulp.LpProblem, gap: float, time_limit: float
) -> tuple[bool, bool, float | None, str]:
    with tempfile.TemporaryDirectory(prefix="loadfactor-") as folder:
        log = Path(folder) / "cbc.log"
        options = {"gapRel": gap, "gapAbs": _ABSOLUTE_GAP, "threads": _THREADS}
        solver = pulp.COIN_CMD(
            msg=False,
            path=_cbc_path(),
            timeLimit=time_limit,
            options=[f"randomCbcSeed {_SEED + 1}"],
            logPath=str(log),
            **options,
        )
        solver.tmpDir = folder
        lp.solve(solver)
        text = log.read_text(errors="replace")
    version = re.search(r"^Version\s*:?\s*(\S+)", text, re.MULTILINE)
    name = f"cbc {version[1]}" if version else "cbc"
    return *read_cbc_log(text, gap), name


def _cbc_path() -> str | None:
    bundled = getattr(pulp, "PULP_CBC_CMD", None)
    path = getattr(bundled, "pulp_cbc_path", None)
    return str(path) if path else None


def read_cbc_log(text: str, gap: float = 0.0) -> tuple[bool, bool, float | None]:
    r"""Whether CBC has a solution, whether it proved that there is none, and its bound.

    `gap` is the relative gap at which it was told to stop. A printed bound is rounded, so half of
    its last digit is taken off. A search that ended without a limit has proved its own value.

    >>> read_cbc_log("Result - Optimal solution found\n\nObjective value:  441.6\n")
    (True, False, 441.6)
    >>> read_cbc_log("Result - Stopped on time limit\n\nObjective value: 9\nLower bound: 7.5\n")
    (True, False, 7.45)
    """
    if re.search(r"infeasible", text, re.IGNORECASE) and "Objective value" not in text:
        return False, "Stopped on time" not in text, None
    result = re.search(r"^Result - (.*)$", text, re.MULTILINE)
    value = _read("Objective value", text)
    if result is None:
        optimum = _read("Optimal - objective value", text)
        return optimum is not None, False, optimum
    has_solution = value is not None and "No feasible solution found" not in text
    known = [_read("Continuous objective value is", text), _read("Lower bound", text)]
    ending = result[1].strip()
    if value is not None and ending == "Optimal solution found":
        known.append(value)
    if value is not None and ending == "Optimal solution found (within gap tolerance)":
        known.append(value - max(gap * abs(value), _ABSOLUTE_GAP))
    bounds = [bound for bound in known if bound is not None]
    return has_solution, False, max(bounds, default=None)


def _read(name: str, text: str) -> float | None:
    """The number after a name in the log; of a bound, what it is at least before rounding."""
    found = re.search(rf"^{name}\s*:?\s*([-+0-9.eE]+)", text, re.MULTILINE)
    if not found:
        return None
    value = float(found[1])
    if name != "Lower bound" or "e" in found[1].lower():
        return value
    decimals = len(found[1].partition(".")[2])
    return value - 0.5 * 10.0**-decimals
