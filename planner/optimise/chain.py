"""A long scenario with waiting work: blocks of hours in a row, each knowing prices around it.

With pi_t any row duals that are feasible in hour t, and lambda_gt their price of a GPU-hour of
waiting work of group g, weak duality gives

    Q(u) >= sum_t pi_t . b_t(u) + sum_g sum_tau r_g,tau min_{tau <= t <= tau + L_g} lambda_gt

since work released in tau runs somewhere in its window. Where limit rows with duals m_t <= 0 and
shares a_t let work run only as a share of what waits, each hour of waiting is worth a_t m_t: with K
their sum up to an hour, lambda_t + K_t - K_(tau-1) takes the place of lambda_t.

A block may have work done outside at the lambda there; its optimum then is the best pi of its own
hours with the others as they are, so that the bound only rises. Blocks overlap by a window; every
other block is solved at the same time.

The bound is one cut. It also splits into parts of several blocks, each with a cut of its own that
knows nothing of the others: with l the least price after a border as first found, a the least
before it and b the least after it in the window of a release,

    min(a, b) >= min(a, l) - max(0, l - b)

gives the first term to the part that ends there and the second to the one that begins. Parts may
so cost less than nothing; only their sum may not.

A pass in order of time, each block taking over the backlog of the one before, gives a dispatch
that keeps every rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.options import Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from planner.model.reductions import Reduced
    from planner.optimise.blocks import Block
    from planner.optimise.template import Template

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]
    SolveAll = Callable[[Iterable[Block]], bool]

LONGEST = 400  # hours that one block may have
INNER = 168  # hours of a block where there are several
BLOCKS = 4  # of a part with cuts of its own


def pieces(hours: int, window: int, times: int = 1) -> list[tuple[int, int, int]]:
    """Blocks (start, end of its own hours, end with the overlap) of a scenario.

    They are `times` as long as blocks are at first.

    >>> pieces(168, 24), pieces(500, 24)
    ([(0, 168, 168)], [(0, 168, 192), (168, 336, 360), (336, 500, 500)])
    """
    inner = max(INNER, 3 * (window + 1)) * times
    if hours <= max(LONGEST, inner):
        return [(0, hours, hours)]
    starts = list(range(0, hours - inner // 2, inner))
    ends = [*starts[1:], hours]
    return [(a, b, min(b + window, hours)) for a, b in zip(starts, ends, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A lower bound of a scenario's cost at u and its slope; and the same of each part."""

    value: float
    slope: Array
    values: Array
    slopes: Array


class Chain:
    """The blocks of one scenario, in order, and the duals of all its hours."""

    def __init__(self, reduced: Reduced, template: Template, blocks: list[Block]) -> None:
        self.blocks, self._template = blocks, template
        scenario = blocks[0].hours.scenario
        groups = [reduced.groups[number] for number in template.deferrable]
        self._windows = [group.rules.window for group in groups]
        self._released = np.stack([group.demand[scenario] for group in groups], axis=1)
        self._demand = np.stack([group.demand[scenario] for group in reduced.groups], axis=1)
        hours = reduced.problem.hours
        self._owned = np.stack([p.owned for p in reduced.pools], axis=1) if reduced.pools else None
        self._limited = np.flatnonzero(np.isfinite(template.cap))
        self._limits_by_hour(scenario)
        self._duals = np.zeros((hours, template.rows.size))
        for place, group in zip(template.deferrable.tolist(), groups, strict=True):
            prices = [o.unit_price for o in group.menu.options if o.use is not Use.SAVINGS_PLAN]
            self._duals[:, place] = min(prices)
        for block in blocks:
            block.open_ends(self._released)
        self._started = False
        self._part = np.arange(len(blocks)) // BLOCKS
        self.starts = np.array([block.start for block in blocks[::BLOCKS]])
        self._borders: dict[tuple[int, int], Array] = {}

    def _limits_by_hour(self, scenario: int) -> None:
        """Shares of limit rows and caps by the hour, and GPUs that firm groups' rows allow."""
        form = self._template
        hour = np.arange(len(self._demand))
        here = np.full_like(hour, scenario)
        self._hourly = form.hourly_caps(here, hour)
        self._offered = form.shares_offered(here, hour)
        waits = np.isin(form.limited, form.deferrable)
        self._room = self._offered * self._demand[:, form.limited] * ~waits

    @property
    def _caps(self) -> Array:
        """GPUs that each limited column may buy, hours x columns: large, so made when needed."""
        form, limited = self._template, self._limited
        caps: Array = form.cap[limited] * self._demand[:, form.group[limited]]
        if form.hourly:
            columns = np.array(list(form.hourly), dtype=np.intp)
            at = np.searchsorted(limited, columns)
            caps[:, at] = self._hourly * self._demand[:, form.group[columns]]
        return caps

    def bound(self, u: Array, solve: SolveAll) -> Bound | None:
        """The lower bound of the formula above and its slopes in u; None where time is over."""
        for _ in range(1 if self._started else 2):
            for half in (self.blocks[0::2], self.blocks[1::2]):
                prices, worth = self._prices, self._worth
                for block in half:
                    block.price_outside(prices, worth)
                if not solve(half):
                    return None
                for block in half:
                    self._duals[block.start : block.start + len(block.hours)] = block.duals()
        self._started = True
        rows = self._template.rows
        self._duals[:, rows.pool :] = np.minimum(self._duals[:, rows.pool :], 0.0)
        slopes = np.zeros((len(self.starts), len(u)))
        for block, part in zip(self.blocks, self._part.tolist(), strict=True):
            inner = block.hours.inner
            slopes[part] += block.slopes_of(self._duals[block.start : block.start + inner])
        constant = self._firm() + self._waiting()
        values = np.add.reduceat(constant, self.starts) + slopes @ u
        slope = slopes.sum(axis=0)
        value = float(constant.sum()) + float(slope @ u)
        return Bound(value, slope, values + self._shifts(), slopes)

    def forward(self, solve: Callable[[Block], bool]) -> bool:
        """Dispatch from the first block to the last, each from what the one before left."""
        served = np.zeros(len(self._windows))
        prices, worth = self._prices, self._worth
        for block in self.blocks:
            block.price_outside(prices, worth)
            block.begin_with(served)
            solved = solve(block)
            served = block.values()[1][block.hours.inner - 1] if solved else served
            block.begin_anyhow()
            if not solved:
                return False
        return True

    @property
    def _prices(self) -> Array:
        """Prices of waiting work, with what waiting until then is worth: hours x groups."""
        return self._duals[:, self._template.deferrable] + self._worth

    @property
    def _worth(self) -> Array:
        """K, what waiting from the first hour to the end of each is worth: 0 or less."""
        return worth_of_waiting(self._template, self._duals, self._offered)

    def _firm(self) -> Array:
        """The bound at u = 0 without waiting work, hour by hour."""
        form, rows, duals = self._template, self._template.rows, self._duals
        firm = np.setdiff1d(np.arange(rows.pool), form.deferrable)
        total: Array = (duals[:, firm] * self._demand[:, firm]).sum(axis=1)
        if self._owned is not None:
            total += (duals[:, rows.pool : rows.plan] * self._owned).sum(axis=1)
        total += duals[:, rows.quota : rows.share] @ form.limits
        shares = form.shares * self._demand[:, form.sharing]
        total += (duals[:, rows.share : rows.limit] * shares).sum(axis=1)
        total += (duals[:, rows.limit :] * self._room).sum(axis=1)
        costs = np.minimum(form.reduced_costs(duals, self._limited), 0.0)
        costs *= self._caps
        total += costs.sum(axis=1)
        return total

    def _waiting(self) -> Array:
        """What waiting work released in each hour costs at the least price of its window."""
        total = np.zeros(len(self._released))
        prices, worth = self._prices, self._worth
        for number, window in enumerate(self._windows):
            least = least_ahead(prices[:, number], window)
            total += self._released[:, number] * (least - before_each(worth[:, number]))
        return total

    def _shifts(self) -> Array:
        """What each part's bound changes by at its borders, for it to hold beside any others."""
        shifts, every, worth = np.zeros(len(self.starts)), self._prices, self._worth
        for part, start in enumerate(self.starts.tolist()[1:], start=1):
            prices = every - worth[start - 1]  # waiting counted from the border, in both parts
            for number, window in enumerate(self._windows):
                before, after = prices[start - window : start], prices[start : start + window]
                a = np.minimum.accumulate(before[::-1, number])[::-1]
                b = np.minimum.accumulate(after[:, number])
                known = self._borders.setdefault((part, number), b)
                work = self._released[start - window : start, number]
                shifts[part - 1] += float(work @ (np.minimum(a, known) - np.minimum(a, b)))
                shifts[part] -= float(work @ np.maximum(known - b, 0.0))
        return shifts


def worth_of_waiting(template: Template, duals: Array, offered: Array) -> Array:
    """K of waiting groups from row duals and the shares of limit rows, hours x groups."""
    each = np.zeros((len(duals), len(template.deferrable)))
    for row, group in enumerate(template.limited.tolist()):
        place = np.flatnonzero(template.deferrable == group)
        each[:, place] += (offered[:, row] * duals[:, template.rows.limit + row])[:, None]
    return np.cumsum(each, axis=0)


def before_each(series: Array) -> Array:
    """The series one hour earlier, nothing before the first.

    >>> before_each(np.array([3.0, 1.0, 2.0])).tolist()
    [0.0, 3.0, 1.0]
    """
    return np.concatenate([[0.0], series[:-1]])


def least_ahead(prices: Array, window: int) -> Array:
    """For each hour the least price from it to `window` hours later.

    >>> least_ahead(np.array([3.0, 1.0, 2.0]), 1).tolist()
    [1.0, 1.0, 2.0]
    """
    padded = np.append(prices, np.full(window, np.inf))
    least: Array = np.lib.stride_tricks.sliding_window_view(padded, window + 1).min(axis=1)
    return least
