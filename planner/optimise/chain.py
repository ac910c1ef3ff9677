"""A long scenario with waiting work: blocks of hours in a row that pass on their backlog.

With y0 the GPU-hours served before a block, and the later blocks known by cuts in (u, y),

    V_k(u, y0) = min  cost of the block + theta,   theta >= cuts of V_{k+1} at (u, y at the end)

so that a pass from the last block to the first gives the slopes of V_1 in u, a bound of the whole
scenario; and a pass from the first to the last, each block starting from what the one before
left, gives a dispatch that keeps every rule (nested decomposition). Cuts hold for every u, so
they stay from one evaluation to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from planner.optimise.blocks import Block

    Array = npt.NDArray[np.float64]

LONGEST = 400  # hours that one block may have
INNER = 168  # hours of a block where there are several
_START_SHARE = 0.5  # of the work that may wait is guessed to be done at a block's start


def pieces(hours: int, window: int) -> list[tuple[int, int]]:
    """Blocks (start, end) of a scenario.

    >>> pieces(168, 24), pieces(500, 24)
    ([(0, 168)], [(0, 168), (168, 336), (336, 500)])
    """
    inner = max(INNER, 2 * (window + 1))
    if hours <= max(LONGEST, 2 * inner):
        return [(0, hours)] if hours <= LONGEST else [(0, hours // 2), (hours // 2, hours)]
    starts = list(range(0, hours - inner // 2, inner))
    return list(zip(starts, [*starts[1:], hours], strict=True))


class Chain:
    """The blocks of one scenario, in order, and the backlog between them."""

    def __init__(self, blocks: list[Block], sources: int) -> None:
        self.blocks = blocks
        self._sources = sources
        self._served = [np.zeros(blocks[0].hours.due.shape[1])]
        for block in blocks[:-1]:
            due, released = block.hours.due[-1], block.hours.released[-1]
            self._served.append(due + _START_SHARE * (released - due))
            block.look_ahead(sources)
        self._started = False

    def backward(self, u: Array, solve: Callable[[Block], bool]) -> tuple[float, Array] | None:
        """Bound of the scenario's cost at u and its slopes; None where the time is over."""
        passes = 1 if self._started else 2
        for _ in range(passes):
            found = self._pass(u, solve)
            if found is None:
                return None
        self._started = True
        return found

    def forward(self, solve: Callable[[Block], bool]) -> bool:
        """Dispatch from the first block to the last, each from what the one before left."""
        for number, block in enumerate(self.blocks):
            block.begin_with(self._served[number])
            if not solve(block):
                return False
            if number + 1 < len(self.blocks):
                self._served[number + 1] = block.values()[1][-1]
        return True

    def cost(self) -> float:
        """USD of the dispatch as last solved."""
        return sum(block.own_cost for block in self.blocks)

    def _pass(self, u: Array, solve: Callable[[Block], bool]) -> tuple[float, Array] | None:
        ends = {}
        slope = np.zeros(self._sources)
        for number in reversed(range(len(self.blocks))):
            block = self.blocks[number]
            served = self._served[number]
            block.begin_with(served)
            if not solve(block):
                return None
            slope, worth = block.slopes(), block.worth_of_served()
            if number:
                constant = block.objective - float(slope @ u) - float(worth @ served)
                self.blocks[number - 1].cut(constant, slope, worth, u)
            if number + 1 < len(self.blocks):
                ends[number + 1] = block.values()[1][-1]
        for number, served in ends.items():
            self._served[number] = served
        return self.blocks[0].objective, slope
