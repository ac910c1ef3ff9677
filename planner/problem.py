"""What the optimiser is asked: the records of `loadfactor-problem/1`, frozen.

Units everywhere: GPU, GPU-hour, USD per GPU-hour. Hours are numbered 0 to `hours - 1`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np

FORMAT = "loadfactor-problem/1"


class ClassKind(StrEnum):
    """Whether a workload class is served in its own hour or may wait."""

    FIRM = "firm"
    DEFERRABLE = "deferrable"


@dataclass(frozen=True, slots=True)
class ProblemClass:
    """A workload class: where it may run, what a GPU-hour not served costs, how long it waits.

    `min_firm_share` and `spot_max_share_per_offer` (None: no cap) have effect on firm classes only.
    """

    id: str
    kind: ClassKind
    offers: tuple[str, ...]
    shortage_penalty: float
    window: int = 0
    min_firm_share: float = 0.0
    spot_max_share_per_offer: float | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """One way to reserve an offer: amortised USD per GPU-hour, and USD per GPU paid upfront.

    There from hour `start` for `term` hours (None: to the end of the file). The whole term is
    paid for, also where it reaches past the file.
    """

    id: str
    rate: float
    upfront: float = 0.0
    start: int = 0
    term: int | None = None


@dataclass(frozen=True, slots=True)
class Existing:
    """GPUs owned or already committed, there in the hours before `until_hour`."""

    gpus: float
    until_hour: int


@dataclass(frozen=True, slots=True)
class Offer:
    """One instance type in one region of one provider, with the ways it is sold.

    `spot_available` and `on_demand_available` are shares (0 to 1) of each class's demand that can
    be had in each hour, None where all of it can. `vcpus` is per instance, None: not known.
    """

    id: str
    provider: str
    region: str
    gpus: int
    on_demand: float | None
    reservations: tuple[Reservation, ...] = ()
    spot: float | None = None
    spot_throughput: float = 1.0
    sp_rate: float | None = None
    existing: tuple[Existing, ...] = ()
    egress: Mapping[str, float] = field(default_factory=dict)
    vcpus: int | None = None
    spot_available: tuple[float, ...] | None = None
    on_demand_available: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class SavingsPlan:
    """A spend commitment that may be made with one provider; `start` and `term` as reserved."""

    provider: str
    start: int = 0
    term: int | None = None


class QuotaUse(StrEnum):
    """What a quota counts: purchases on demand (plan-covered ones too), or on spot."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that may be bought by the hour in one region: GPUs, or (gpus None) vCPUs."""

    provider: str
    region: str
    gpus: float | None = None
    vcpus: float | None = None
    uses: tuple[QuotaUse, ...] = tuple(QuotaUse)

    @property
    def limit(self) -> float:
        """The limit, in the unit of the quota."""
        limit = self.gpus if self.vcpus is None else self.vcpus
        return math.inf if limit is None else limit

    @property
    def unit(self) -> str:
        """What is counted: GPUs or vCPUs."""
        return "GPUs" if self.vcpus is None else "vCPUs"

    def per_gpu(self, offer: Offer) -> float:
        """What one bought GPU of the offer counts against the quota."""
        return 1.0 if self.vcpus is None else (offer.vcpus or 0) / offer.gpus


def plan_gpus(offers: Iterable[Offer]) -> dict[str, float]:
    """GPUs that 1 USD an hour of each provider's savings plan may hold, at its lowest rate."""
    rates: dict[str, float] = {}
    for one in offers:
        if one.sp_rate is not None:
            rates[one.provider] = min(one.sp_rate, rates.get(one.provider, math.inf))
    return {provider: 1 / rate for provider, rate in rates.items()}


@dataclass(frozen=True, slots=True)
class CommitmentLimit:
    """The most GPUs that new reservations and savings plans may hold on some offers in all."""

    id: str
    offers: tuple[str, ...]
    gpus: float

    def plan_gpus(self, offers: Iterable[Offer]) -> dict[str, float]:
        """GPUs that 1 USD an hour of each provider's savings plan may hold, at the lowest rate."""
        return plan_gpus(one for one in offers if one.id in self.offers)


@dataclass(frozen=True, slots=True)
class Block:
    """A capacity block: `gpus` of an offer for hours `start` to `start + length - 1`."""

    id: str
    offer: str
    gpus: int
    start: int
    length: int
    price: float
    max: int


@dataclass(frozen=True, slots=True)
class Cvar:
    """Risk term: weight of the mean cost of the worst `1 - beta` of the scenarios.

    That is the recourse cost; with `of_all` what is bought counts in it too, so that a dollar
    committed weighs as much as a dollar that it replaces.
    """

    weight: float
    beta: float
    of_all: bool = False

    @property
    def on_commitments(self) -> float:
        """Weight of what is bought, which is the same in every scenario, beside its own cost."""
        return self.weight if self.of_all else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """One demand future: its probability, and per class id an array of `hours` numbers.

    For a firm class GPUs in use, for a deferrable one GPU-hours of work released in the hour.
    `spot_available` and `on_demand_available` hold per offer id what replaces the offer's own.
    """

    p: float
    demand: Mapping[str, np.ndarray]
    spot_available: Mapping[str, np.ndarray] = field(default_factory=dict)
    on_demand_available: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything the optimiser is asked. Built by hand, or read by `planner.problem_file`."""

    hours: int
    classes: tuple[ProblemClass, ...]
    offers: tuple[Offer, ...]
    scenarios: tuple[Scenario, ...]
    hour_weight: float = 1.0
    on_demand_integer: bool = False
    savings_plans: tuple[SavingsPlan, ...] = ()
    quotas: tuple[Quota, ...] = ()
    blocks: tuple[Block, ...] = ()
    upfront_budget: float | None = None
    commitment_limits: tuple[CommitmentLimit, ...] = ()
    cvar: Cvar | None = None
    id: str = ""
    title: str = ""
    optimal_objective: float | None = None


def active(start: int, term: int | None, hours: int) -> tuple[int, int]:
    """First hour, and hour after the last, in which a commitment is there within the file.

    >>> active(0, None, 24), active(6, 8760, 24), active(6, 4, 24)
    ((0, 24), (6, 24), (6, 10))
    """
    return start, hours if term is None else min(hours, start + term)


def paid_hours(start: int, term: int | None, hours: int) -> int:
    """Hours of the file that a commitment is paid for: its whole term.

    >>> paid_hours(6, None, 24), paid_hours(6, 8760, 24)
    (18, 8760)
    """
    return hours - start if term is None else term
