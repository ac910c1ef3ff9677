"""What a back-test found: cost, levels and reasons of each policy, and how true the ranges were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from planner.backtest.simulate import Costs
    from planner.forecast.inputs import Held

LOADFACTOR, FORESIGHT = "loadfactor", "foresight"
FAILING_SHARES = (0.05, 0.2, 0.5)  # of on-demand requests


@dataclass(frozen=True, slots=True)
class Decision:
    """One planning step: the hour of the file, GPUs bought, and why."""

    hour: int
    bought: int
    reason: str


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """One policy over the test window.

    Attributes:
        policy: its name.
        costs: USD and on-demand GPU-hours.
        levels: (hour of the file, GPUs held from it on), at the start and at each change.
        decisions: its planning steps; empty for foresight.
        gpu_hours: useful GPU-hours of the whole demand.
    """

    policy: str
    costs: Costs
    levels: tuple[tuple[int, int], ...]
    decisions: tuple[Decision, ...] = ()
    gpu_hours: float = 0.0

    def lost_share(self, failing: float) -> float:
        """Share of all demand not served if `failing` of the on-demand requests find no GPU."""
        if not self.gpu_hours:
            return 0.0
        return failing * self.costs.on_demand_gpu_hours / self.gpu_hours


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often demand lay within the interval planned for.

    Attributes:
        share: the share of hours that it should cover.
        hours: recorded hours that were compared.
        covered: of them, those inside the interval of the last step before them.
        hours_ahead: recorded hours compared with the interval of the first step alone.
        covered_ahead: of them, those inside.
    """

    share: float
    hours: int
    covered: int
    hours_ahead: int
    covered_ahead: int

    def as_json(self) -> dict[str, Any]:
        """The counts and their shares; no share where nothing was compared."""
        return {
            "share": self.share,
            "hours": self.hours,
            "covered_share": self.covered / self.hours if self.hours else None,
            "hours_from_first_step": self.hours_ahead,
            "covered_share_from_first_step": (
                self.covered_ahead / self.hours_ahead if self.hours_ahead else None
            ),
        }


@dataclass(frozen=True, slots=True)
class Backtest:
    """All policies on one demand; foresight, the bound, stands last."""

    train_hours: int
    test_hours: int
    policies: tuple[PolicyResult, ...]
    coverage: Coverage | None
    warnings: tuple[str, ...]

    def named(self, policy: str) -> PolicyResult:
        """The result of one policy."""
        return next(one for one in self.policies if one.policy == policy)

    def over_foresight(self, policy: str) -> float | None:
        """Cost above the best constant level, as a share of it; None where that costs nothing."""
        usd, bound = self.named(policy).costs.usd, self.named(FORESIGHT).costs.usd
        if bound > 0:
            return usd / bound - 1
        return 0.0 if usd == 0 else None

    def as_json(self) -> dict[str, Any]:
        """The document of `loadfactor backtest --json`."""
        return {
            "train_hours": self.train_hours,
            "test_hours": self.test_hours,
            "policies": [self._policy_json(one) for one in self.policies],
            "interval": None if self.coverage is None else self.coverage.as_json(),
            "warnings": list(self.warnings),
        }

    def _policy_json(self, one: PolicyResult) -> dict[str, Any]:
        record: dict[str, Any] = {
            "policy": one.policy,
            "usd": one.costs.usd,
            "over_foresight": self.over_foresight(one.policy),
            "reserved_gpus": [{"from_hour": hour, "gpus": gpus} for hour, gpus in one.levels],
            "costs": {
                "reserved": one.costs.reserved,
                "on_demand": one.costs.on_demand,
                "spot": one.costs.spot,
            },
            "if_on_demand_fails": [
                {"failing_share": share, "lost_share": one.lost_share(share)}
                for share in FAILING_SHARES
            ],
        }
        if one.policy == LOADFACTOR:
            record["decisions"] = [
                {"hour": step.hour, "bought_gpus": step.bought, "reason": step.reason}
                for step in one.decisions
            ]
        return record


def levels_of(held: tuple[Held, ...], start: int, stop: int) -> np.ndarray:
    """Reserved GPUs held in each hour of [start, stop)."""
    change = np.zeros(stop - start + 1)
    for one in held:
        begin, end = (min(max(hour, start), stop) for hour in (one.from_hour, one.until_hour))
        change[begin - start] += one.gpus
        change[end - start] -= one.gpus
    return np.asarray(np.cumsum(change)[:-1])


def changes_of(levels: np.ndarray, start: int) -> tuple[tuple[int, int], ...]:
    """(hour, GPUs) at the start and wherever the level changes.

    >>> changes_of(np.array([8.0, 8.0, 16.0]), 100)
    ((100, 8), (102, 16))
    """
    at = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist()]
    return tuple((start + hour, round(float(levels[hour]))) for hour in at)
