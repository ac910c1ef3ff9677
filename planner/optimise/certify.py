"""What an answer says of itself: its cost priced again, and its distance to an earlier plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.optimise.audit import audit, require

if TYPE_CHECKING:
    from planner.outcome import Plan, Result
    from planner.problem import Problem

_NO_DISPATCH = (
    "there is no dispatch to price: it is left out of the answer of a very large problem, and "
    "where the time limit ended the search"
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The cost priced again from the file's records alone, in USD, less the objective.

    Without figures where it was not priced again, and then with the reason.
    """

    usd: float | None
    difference: float | None
    reason: str | None

    def as_json(self) -> dict[str, object]:
        """The certificate as a plain record."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Moved:
    """How far a plan lies from an earlier one, and what it costs more than the best found.

    Instances count reservations and blocks, more or fewer; the earlier plan's lines that are no
    longer sold are not among them.
    """

    changed_instances: int
    changed_usd_per_hour: float
    extra_usd: float

    def as_json(self) -> dict[str, object]:
        """The distance as a plain record."""
        return asdict(self)


def certified(problem: Problem, found: Result) -> tuple[Certificate, tuple[str, ...]]:
    """The certificate of an answer with a plan, and the rules that it breaks, in words."""
    assert found.objective is not None
    if _lacks_dispatch(problem, found):
        return Certificate(None, None, _NO_DISPATCH), ()
    again = audit(problem, found.plan, found.dispatch)
    return Certificate(again.usd, again.usd - found.objective, None), again.faults


def confirmed(problem: Problem, found: Result) -> Certificate:
    """The certificate of an answer; SolveError where the plan breaks a rule or costs otherwise."""
    assert found.objective is not None
    if _lacks_dispatch(problem, found):
        return Certificate(None, None, _NO_DISPATCH)
    usd = require(problem, found.plan, found.dispatch, found.objective)
    return Certificate(usd, usd - found.objective, None)


def moved(previous: Plan, plan: Plan, objective: float, extra_share: float) -> Moved:
    """The distance of a plan from the previous one; `extra_share` is over the best plan found."""
    counts = _counts(plan)
    former = _counts(previous)
    instances = sum(
        abs(counts.get(name, 0) - former.get(name, 0)) for name in sorted(counts | former)
    )
    spends = {one.provider: one.usd_per_hour for one in plan.savings_plans}
    before = {one.provider: one.usd_per_hour for one in previous.savings_plans}
    usd = sum(
        abs(spends.get(name, 0.0) - before.get(name, 0.0)) for name in sorted(spends | before)
    )
    return Moved(instances, usd, objective * extra_share / (1 + extra_share))


def _counts(plan: Plan) -> dict[tuple[str, ...], int]:
    counts: dict[tuple[str, ...], int] = {
        (one.offer, one.id): one.count for one in plan.reservations
    }
    return counts | {(one.id,): one.count for one in plan.blocks}


def _lacks_dispatch(problem: Problem, found: Result) -> bool:
    """Whether work is to be done, and the answer does not tell how."""
    return not len(found.dispatch) and any(
        np.any(np.asarray(series) > 0)
        for one in problem.scenarios
        for series in one.demand.values()
    )
