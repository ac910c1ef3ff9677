"""The error tree: every way in which loadfactor can fail, with its exit code beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One fault of one input: where it is, what it is, and what to do about it."""

    where: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{self.where}: {self.what}{tail}"

    def in_order(self) -> tuple[tuple[tuple[str, int, str], ...], Problem]:
        """What problems are sorted by: their places with numbers as numbers, then the rest.

        >>> [one.where for one in sorted([Problem("line 10", ""), Problem("line 9", "")],
        ...                              key=Problem.in_order)]
        ['line 9', 'line 10']
        """
        parts = re.findall(r"([^0-9]*)([0-9]*)", self.where)
        numbers = ((text, digits.lstrip("0"), digits) for text, digits in parts)
        return tuple((text, len(short), short or digits) for text, short, digits in numbers), self


class LoadfactorError(Exception):
    """Root of the tree. `problems` holds every fault found, sorted; `exit_code` the process's."""

    kind = "error"
    exit_code = 1

    def __init__(self, message: str, problems: list[Problem] | tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.problems = tuple(sorted(set(problems), key=Problem.in_order))

    @property
    def one_line(self) -> str:
        """The message and its problems in one line.

        >>> ProviderError("cannot be read", [Problem("s3://b/k", "archived")]).one_line
        'cannot be read: s3://b/k: archived'
        """
        told = "; ".join(str(problem) for problem in self.problems)
        return f"{self.message}: {told}" if told else self.message

    def __str__(self) -> str:
        lines = [self.message, *(f"  - {problem}" for problem in self.problems)]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The error as `--json` writes it."""
        problems = [{"where": p.where, "what": p.what, "remedy": p.remedy} for p in self.problems]
        return {"kind": self.kind, "message": self.message, "problems": problems}


class UsageError(LoadfactorError):
    """The command line asks for something that does not exist."""

    kind = "usage"
    exit_code = 2


class ConfigError(LoadfactorError):
    """The configuration, or a problem file, is wrong; all faults are in `problems`."""

    kind = "config"
    exit_code = 2


class DataError(LoadfactorError):
    """A table or a delivery is not what it must be."""

    kind = "data"


class StoreError(LoadfactorError):
    """The store cannot be read or written as it stands."""

    kind = "store"


class ProviderError(LoadfactorError):
    """A cloud or a source did not give what was asked."""

    kind = "provider"


class MissingCredentials(ProviderError):
    """No credentials were found for a source."""

    kind = "credentials"


class ProviderUnavailable(ProviderError):
    """The source cannot be reached now; trying again may help."""

    kind = "unavailable"


class SolveError(LoadfactorError):
    """The optimiser gave no plan."""

    kind = "solve"


class Infeasible(SolveError):
    """No plan meets the limits; `problems` names the rows in conflict."""

    kind = "infeasible"


class UnsafePlan(LoadfactorError):
    """A guard refused the plan."""

    kind = "guard"
    exit_code = 3


class StalePlan(UnsafePlan):
    """The plan is older than, or differs from, what it would change."""

    kind = "stale_plan"
