"""What each bought line is worth: the use of its last unit, its break-even, and what else serves.

All of it is of the last instance, block or USD an hour: the plan is priced again without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.money import HOURS_PER_MONTH
from planner.model.options import Use, quota_name
from planner.optimise.first_stage import UPFRONT_BUDGET

if TYPE_CHECKING:
    from planner.optimise.worth import Priced, Way, Worth

_NAMED = 3  # ways to buy told of one line
_HOURS = 1e-3  # GPU-hours a month; less is a solver's rounding
_CENT = 0.005  # USD a month


@dataclass(frozen=True, slots=True)
class Line:
    """One bought line. Both shares are of its last unit; None where no hour would use it.

    `expected_share` is the mean share of its own hours that the last unit is at work, over
    scenarios by probability; it pays where that is above `break_even_share`, the share at which
    what it replaces (at the prices of what would be bought instead) costs as much as it does.
    `one_fewer_usd_per_month` is what the plan would cost more a month with one unit less of it (a
    savings plan: 1 USD an hour, or all of it), `instead` how the work would then be served.
    """

    kind: str
    offer: str
    id: str
    count: float
    break_even_share: float | None
    expected_share: float | None
    binding: str
    one_fewer_usd_per_month: float
    instead: str


def bought_lines(worth: Worth) -> tuple[Line, ...]:
    """Every bought line, in the order of the first stage."""
    here = worth.priced(worth.z)
    return tuple(_line(worth, number, here) for number in (worth.z > 0).nonzero()[0].tolist())


def _line(worth: Worth, number: int, here: Priced) -> Line:
    one, count = worth.first.bought[number], float(worth.z[number])
    unit = min(1.0, count)
    without = worth.priced(worth.z - unit * worth.unit(number))
    saves, costs = without.usd - here.usd, unit * float(worth.costs[number])
    there = unit * _offered(worth, number)
    if one.kind == "plan":
        used = here.spent.get(one.id, 0.0) - without.spent.get(one.id, 0.0)
    else:
        used = without.useful - here.useful
    at_work = used > _HOURS * unit and saves > worth.least
    return Line(
        kind=one.kind,
        offer=one.offer,
        id=one.id,
        count=count,
        break_even_share=costs * used / (saves * there) if at_work else None,
        expected_share=min(max(used / there, 0.0), 1.0) if there else None,
        binding=_binding(worth, number),
        one_fewer_usd_per_month=saves - costs,
        instead=_instead(here, without, saves - costs),
    )


def _offered(worth: Worth, number: int) -> float:
    """GPU-hours a month that one unit of a column is there; of a savings plan USD a month."""
    source = worth.first.sources[worth.first.source[number]]
    hours = (source.end - source.start) / worth.problem.hours
    amount = float(worth.first.amount[number])
    found: float = amount * hours * float(HOURS_PER_MONTH)
    return found


def _instead(here: Priced, without: Priced, more: float) -> str:
    """What would be bought instead, the most GPU-hours first, and where that costs less."""
    added = [
        (hours - here.hours.get(way, 0.0), way)
        for way, hours in without.hours.items()
        if hours - here.hours.get(way, 0.0) > _HOURS
    ]
    added.sort(key=lambda one: (-one[0], str(one[1].use), one[1].offer))
    told = [_words(hours, way) for hours, way in added[:_NAMED]]
    if len(added) > _NAMED:
        rest = sum(hours for hours, _ in added[_NAMED:])
        told.append(f"{rest:,.1f} in {len(added) - _NAMED} other ways")
    words = ", ".join(told) or "nothing else would be bought"
    if more < -_CENT:
        words += f"; ${-more:,.2f} a month less, within the gap"
    return words


def _words(hours: float, way: Way) -> str:
    amount = f"{hours:,.1f} GPU-hours a month"
    if way.use is Use.SHORTAGE:
        return f"{amount} not served, at ${way.usd:,.4g} each"
    how = {
        Use.ON_DEMAND: "on demand on",
        Use.SPOT: "as spot on",
        Use.SAVINGS_PLAN: "under the savings plan on",
    }[way.use]
    return f"{amount} {how} {way.offer} at ${way.usd:,.4g}"


def _binding(worth: Worth, number: int) -> str:
    """What keeps the plan from buying more of the line."""
    first, limit = worth.first, worth.held_by(number)
    pays = worth.saves[number] > worth.costs[number]
    if limit is not None and (pays or limit.kind == UPFRONT_BUDGET):
        return limit.label
    kind = first.bought[number].kind
    if worth.z[number] >= first.upper[number]:
        return "as many as are sold" if kind == "block" else "peak demand"
    if kind == "plan":  # not sold in whole instances
        return _full_quota(worth, number) or "break-even"
    return "whole instances" if pays else "break-even"


def _full_quota(worth: Worth, number: int) -> str | None:
    """The quota that leaves a savings plan nothing more to cover, though more of it would pay."""
    if worth.quota_duals is None:
        return None
    units = {quota_name(one): one.unit for one in worth.problem.quotas}
    best: tuple[float, str | None] = (worth.least, None)
    for name in sorted(worth.found.reduced.quotas):
        more, _ = worth.with_plan(number, name)
        if more > best[0]:
            unit = [] if units[name] == "GPUs" else [units[name]]
            best = more, " ".join(["quota", *name, *unit])
    return best[1]
