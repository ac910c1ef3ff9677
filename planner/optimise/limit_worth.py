"""What more of each limit is worth: quotas, limits of commitments and the upfront budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.options import quota_name
from planner.optimise.first_stage import UPFRONT_BUDGET
from planner.optimise.worth import WORTH, usd

if TYPE_CHECKING:
    from planner.optimise.first_stage import Limit as Row
    from planner.optimise.worth import Worth
    from planner.problem import Quota

_TRIED = 4  # purchases that a limit forbids, the nearest to paying, that are priced


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota, limit of commitments or the budget, and what one more `unit` of it saves a month.

    Where `exact`, with what is bought ahead left as it is; else `usd_per_month` is the rate of a
    relaxation, not a saving that one unit brings, and `words` say what the next purchase needs.
    `at_most_usd_per_month` is the price of a quota in the dispatch: above the saving where what is
    bought ahead stands in for what the quota does not allow.
    """

    kind: str
    name: str
    usd_per_month: float
    unit: str = "GPU"
    exact: bool = True
    words: str = ""
    at_most_usd_per_month: float | None = None


def limits(worth: Worth) -> tuple[Limit, ...]:
    """Every limit of the problem, the dearest first."""
    found = [_quota(worth, quota) for quota in worth.problem.quotas]
    prices = worth.found.search.master.limit_prices()
    for row, price in zip(worth.first.limits, prices, strict=True):
        found.append(_limit(worth, row, max(price * worth.per_month, 0.0)))
    return tuple(sorted(found, key=lambda one: (-one.usd_per_month, one.kind, one.name)))


def _quota(worth: Worth, quota: Quota) -> Limit:
    name, unit = quota_name(quota), quota.unit
    label = " ".join([*name, *([] if unit == "GPUs" else [unit])])
    one = unit.removesuffix("s")
    if name not in worth.found.reduced.quotas or worth.quota_duals is None:
        return Limit("quota", label, 0.0, one, True, "no demand can reach it")
    saved, exact = worth.saved_by_quota(name)
    most = "" if exact else "at most "
    words = f"one more {one} would save {most}{usd(saved, 2) if saved > WORTH else 'nothing'}"
    if saved > WORTH:
        words += " a month"
    words += _followed(worth, name, saved)
    saved = saved if saved > WORTH else 0.0
    return Limit("quota", label, saved, one, exact, words, max(worth.quota_price(name), 0.0))


def _followed(worth: Worth, name: tuple[str, ...], saved: float) -> str:
    """What one more unit of a quota saves where a savings plan is raised with it."""
    for number, bought in enumerate(worth.first.bought):
        if bought.kind == "plan":
            more, rate = worth.with_plan(number, name)
            if more > saved + WORTH:
                return (
                    f"; with ${rate:,.4g} an hour more of the {bought.id} savings plan "
                    f"{usd(more, 2)} a month"
                )
    return ""


def _limit(worth: Worth, row: Row, rate: float) -> Limit:
    unit = "USD" if row.kind == UPFRONT_BUDGET else "GPU"
    words = _next(worth, row)
    if rate <= WORTH:
        return Limit(row.kind, row.name, 0.0, unit, not words, words or "more would save nothing")
    rated = f"a rate of {usd(rate, 2)} a month for each {unit}, were instances sold in parts"
    words = f"{rated}; {words or 'no whole instance more would pay'}"
    return Limit(row.kind, row.name, rate, unit, False, words)


def _next(worth: Worth, row: Row) -> str:
    """The purchase that the limit alone forbids and that saves the most, with what it needs."""
    first = worth.first
    left = row.most - float(row.weights @ worth.z)
    held = [
        number
        for number in range(len(first))
        if first.whole[number]
        and worth.z[number] < first.upper[number]
        and row.weights[number] > left
        and worth.saves[number] > worth.costs[number]
    ]
    held.sort(key=lambda number: float(worth.costs[number] - worth.saves[number]))
    best: tuple[float, str] = (WORTH, "")
    for number in held if worth.small else held[:_TRIED]:
        saved, exact = worth.saved_by(number)
        more, one = saved - float(worth.costs[number]), first.bought[number]
        need = float(row.weights[number]) - left
        if more > best[0]:
            amount = (
                f"${need:,.2f} more" if row.kind == UPFRONT_BUDGET else f"{need:,.4g} more GPUs"
            )
            most = "" if exact else "at most "
            best = (
                more,
                (
                    f"the next instance of {one.offer}/{one.id} needs {amount} and would save "
                    f"{most}{usd(more, 2)} a month"
                ),
            )
    return best[1]
