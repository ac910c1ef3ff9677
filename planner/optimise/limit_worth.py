"""What more of each limit is worth: quotas, limits of commitments and the upfront budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import quota_name
from planner.optimise.first_stage import UPFRONT_BUDGET
from planner.optimise.worth import usd

if TYPE_CHECKING:
    from planner.optimise.first_stage import Limit as Row
    from planner.optimise.worth import Worth
    from planner.problem import Quota

_TRIED = 4  # purchases that a limit forbids, the nearest to paying, that are priced
_ROUNDING = 1e-9  # of a unit


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota, limit of commitments or the budget, and what one more `unit` of it saves a month.

    `usd_per_month` leaves what is bought ahead as it is, but for what the unit allows; where not
    `exact` it is the most. None where one unit allows no whole purchase: then there is only the
    rate of a relaxation, `rate_usd_per_month` a unit, and `words` say what the next purchase needs.
    `at_most_usd_per_month` is the price of a quota in the dispatch: above the saving where what is
    bought ahead stands in for what the quota does not allow.
    """

    kind: str
    name: str
    usd_per_month: float | None
    unit: str = "GPU"
    exact: bool = True
    words: str = ""
    at_most_usd_per_month: float | None = None
    rate_usd_per_month: float | None = None

    @property
    def most(self) -> float:
        """The most that a little more of it saves a month, by the unit."""
        known = (self.usd_per_month, self.at_most_usd_per_month, self.rate_usd_per_month)
        return max((one for one in known if one is not None), default=0.0)


def limits(worth: Worth) -> tuple[Limit, ...]:
    """Every limit of the problem, the dearest first."""
    found = [_quota(worth, quota) for quota in worth.problem.quotas]
    prices = worth.found.search.master.limit_prices()
    for row, price in zip(worth.first.limits, prices, strict=True):
        found.append(_limit(worth, row, max(price * worth.per_month, 0.0)))
    return tuple(sorted(found, key=lambda one: (-(one.usd_per_month or 0.0), one.kind, one.name)))


def _quota(worth: Worth, quota: Quota) -> Limit:
    name, unit = quota_name(quota), quota.unit
    label = " ".join([*name, *([] if unit == "GPUs" else [unit])])
    one = unit.removesuffix("s")
    if name not in worth.found.reduced.quotas or worth.quota_duals is None:
        return Limit("quota", label, 0.0, one, True, "no demand can reach it")
    saved, exact = worth.saved_by_quota(name)
    most = "" if exact else "at most "
    words = f"one more {one} would save {most}{usd(saved, 2) if saved > worth.least else 'nothing'}"
    if saved > worth.least:
        words += " a month"
    words += _followed(worth, name, saved)
    saved = saved if saved > worth.least else 0.0
    return Limit("quota", label, saved, one, exact, words, worth.quota_price(name))


def _followed(worth: Worth, name: tuple[str, ...], saved: float) -> str:
    """What one more unit of a quota saves where a savings plan is raised with it."""
    for number, bought in enumerate(worth.first.bought):
        if bought.kind == "plan":
            more, rate = worth.with_plan(number, name)
            if more > saved + worth.least:
                return (
                    f"; with ${rate:,.4g} an hour more of the {bought.id} savings plan "
                    f"{usd(more, 2)} a month"
                )
    return ""


def _limit(worth: Worth, row: Row, rate: float) -> Limit:
    unit = "USD" if row.kind == UPFRONT_BUDGET else "GPU"
    if rate <= worth.least:
        return Limit(row.kind, row.name, 0.0, unit, True, "more would save nothing")
    found = _next(worth, row)
    rated = f"a rate of {usd(rate, 2)} a month for each {unit}, were instances sold in parts"
    if found is None:
        words = f"{rated}; no whole instance more would pay"
        return Limit(row.kind, row.name, None, unit, False, words, None, rate)
    more = usd(found.usd, 2) if found.exact else f"at most {usd(found.usd, 2)}"
    if found.need <= 1 + _ROUNDING:
        words = f"one more {unit}, for {found.name}, would save {more} a month"
        return Limit(row.kind, row.name, found.usd, unit, found.exact, words, None, rate)
    amount = f"${found.need:,.2f} more" if unit == "USD" else f"{found.need:,.4g} more GPUs"
    words = f"{rated}; {found.name} needs {amount} and would save {more} a month"
    return Limit(row.kind, row.name, None, unit, False, words, None, rate)


@dataclass(frozen=True, slots=True)
class _Next:
    """A purchase that a limit alone forbids: what it needs more of it, and saves a month."""

    name: str
    need: float
    usd: float
    exact: bool


def _next(worth: Worth, row: Row) -> _Next | None:
    """The purchase that the limit forbids and that saves the most; None where none would pay."""
    first = worth.first
    left = row.most - float(row.weights @ worth.z)
    # An instance; of what is sold by the dollar as much as one unit of the limit allows.
    steps = np.where(first.whole, 1.0, 1.0 / np.where(row.weights > 0, row.weights, 1.0))
    held = [
        number
        for number in range(len(first))
        if worth.z[number] < first.upper[number]
        and row.weights[number] * steps[number] > left
        and worth.saves[number] > worth.costs[number]
    ]
    held.sort(key=lambda number: float(worth.costs[number] - worth.saves[number]))
    best: _Next | None = None
    for number in held if worth.small else held[:_TRIED]:
        saved, exact = worth.saved_by(number, float(steps[number]))
        more, one = saved - float(worth.costs[number] * steps[number]), first.bought[number]
        name = f"the next instance of {one.offer}/{one.id}"
        if one.kind == "plan":
            name = f"${steps[number]:,.4g} an hour more of the {one.id} savings plan"
        need = float(row.weights[number] * steps[number]) - left
        if more > (worth.least if best is None else best.usd):
            best = _Next(name, need, more, exact)
    return best
