"""What the optimiser is asked: the records of `loadfactor-problem/1`, frozen.

Units everywhere: GPU, GPU-hour, USD per GPU-hour. Hours are numbered 0 to `hours - 1`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """One way to reserve an offer: amortised USD per GPU-hour, and USD per GPU paid upfront."""

    id: str
    rate: float
    upfront: float = 0.0


@dataclass(frozen=True, slots=True)
class Existing:
    """GPUs owned or already committed, there in the hours before `until_hour`."""

    gpus: float
    until_hour: int


@dataclass(frozen=True, slots=True)
class Offer:
    """One instance type in one region of one provider, with the ways it is sold."""

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


@dataclass(frozen=True, slots=True)
class SavingsPlan:
    """A spend commitment that may be made with one provider."""

    provider: str


@dataclass(frozen=True, slots=True)
class Quota:
    """The most GPUs bought by the hour (on demand, plan-covered, spot) in one region."""

    provider: str
    region: str
    gpus: float


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
    """Risk term: weight of the mean recourse cost of the worst `1 - beta` of the scenarios."""

    weight: float
    beta: float


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """One demand future: its probability, and per class id an array of `hours` numbers.

    For a firm class GPUs in use, for a deferrable one GPU-hours of work released in the hour.
    """

    p: float
    demand: Mapping[str, np.ndarray]


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
    cvar: Cvar | None = None
    id: str = ""
    title: str = ""
    optimal_objective: float | None = None
