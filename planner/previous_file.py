"""Reads the plan of an earlier answer of `solve --json`, or every fault of the file at once.

What the problem no longer sells is no fault: prices and offers change from night to night. Such
lines are left out, each with a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.errors import ConfigError, Problem
from planner.outcome import BlockCount, Commitment, Plan, ReservedCount
from planner.problem_fields import AMOUNT, Faults, Fields, nearest, show
from planner.strict_json import decode

if TYPE_CHECKING:
    from collections.abc import Set
    from pathlib import Path

    from planner import problem as ask

_ADVICE = "give an answer of `loadfactor solve --json` that holds a plan"


@dataclass(frozen=True, slots=True)
class Previous:
    """The earlier plan, as far as the problem sells its lines, and what was left out of it."""

    plan: Plan
    warnings: tuple[str, ...] = ()


def read(path: Path, problem: ask.Problem) -> Previous:
    """The earlier plan for a problem.

    Raises ConfigError with every fault of the file, each under its path and id.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        fault = Problem(str(path), reason, _ADVICE)
        raise ConfigError(f"{path}: the previous answer cannot be read", [fault]) from None
    document = decode(raw, str(path))
    faults = Faults(list(document.faults))
    found = Previous(Plan())
    if isinstance(document.value, dict):
        found = _Reader(document.value, faults, problem).read()
    else:
        faults.add("document", f"must be an object, is {show(document.value)}", _ADVICE)
    if faults.found:
        count = len(set(faults.found))
        noun = "1 fault" if count == 1 else f"{count} faults"
        raise ConfigError(f"{path} (--previous): {noun}, nothing solved", faults.found)
    return found


class _Reader:
    """The three lists of an answer."""

    def __init__(self, document: dict[str, object], faults: Faults, problem: ask.Problem) -> None:
        self._top = Fields(document, "", "", faults)
        self._problem = problem
        self._warnings: list[str] = []

    def read(self) -> Previous:
        """The plan, sorted, without lines of zero or that are not sold."""
        sold = {(offer.id, way.id) for offer in self._problem.offers for way in offer.reservations}
        plans = {one.provider for one in self._problem.savings_plans}
        blocks = {one.id for one in self._problem.blocks}
        plan = Plan(
            tuple(
                sorted(
                    ReservedCount(name[0], name[1], int(value))
                    for name, value in self._lines("reservations", ("offer", "id"))
                    if self._is_sold("reservations", name, sold) and value > 0
                )
            ),
            tuple(
                sorted(
                    Commitment(name[0], value)
                    for name, value in self._lines("savings_plans", ("provider",))
                    if self._is_sold("savings_plans", name, {(one,) for one in plans}) and value > 0
                )
            ),
            tuple(
                sorted(
                    BlockCount(name[0], int(value))
                    for name, value in self._lines("blocks", ("id",))
                    if self._is_sold("blocks", name, {(one,) for one in blocks}) and value > 0
                )
            ),
        )
        return Previous(plan, tuple(self._warnings))

    def _lines(self, name: str, keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], float]]:
        """The names and amounts of a list, each checked; a line of one name twice is a fault."""
        if name not in self._top.record:
            self._top.fault(name, "required, and missing", _ADVICE)
            return []
        found, first = [], dict[tuple[str, ...], int]()
        for index, record in self._top.records(name):
            label = ", ".join(
                f"{key} {show(record[key])}" for key in keys if isinstance(record.get(key), str)
            )
            entry = Fields(record, f"{name}[{index}]", label, self._top.faults)
            line = tuple(entry.text(key) for key in keys)
            if name == "savings_plans":
                amount = entry.number("usd_per_hour", AMOUNT)
            else:
                amount = float(entry.whole("count", 0))
            told = all(isinstance(record.get(key), str) for key in keys)
            if told and first.setdefault(line, index) != index:
                what = f"repeats the line of {name}[{first[line]}]"
                entry.fault(keys[-1], what, "leave one of them out")
            elif told:
                found.append((line, amount))
        return found

    def _is_sold(self, name: str, line: tuple[str, ...], sold: Set[tuple[str, ...]]) -> bool:
        """Whether the problem sells the line; else a warning is kept."""
        if line in sold:
            return True
        near = nearest(" ".join(line), {" ".join(one) for one in sold})
        shown = ", ".join(show(part) for part in line)
        tail = f" ({near})" if near else ""
        self._warnings.append(
            f"--previous {name}: the problem does not sell {shown}: left out{tail}"
        )
        return False
