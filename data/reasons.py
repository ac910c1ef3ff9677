"""Why a plan is what it is, as it stands in `plan.json`: its proof, its options and its changes.

Money is USD; shares are 0 to 1; a month is 730 hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal  # noqa: TC003  (pydantic reads it)

from data.known_events import EventCost, KnownEvent  # noqa: TC001  (pydantic reads them)
from data.ladder import EndingPart, LadderStep  # noqa: TC001  (pydantic reads them)
from data.unmet import UnmetDemand  # noqa: TC001  (pydantic reads it)


@dataclass(frozen=True, slots=True)
class StageProof:
    """How well one stage of the savings was solved, USD over the planned year.

    No plan of the stage can cost less than `bound`; `objective` is what its plan costs, and
    `audited` the same priced again hour by hour, by code that shares nothing with the model.
    """

    stage: str
    status: str
    solver: str
    objective: float
    bound: float
    gap: float
    audited: float


@dataclass(frozen=True, slots=True)
class PlanOption:
    """One way to commit, bought or not: `count` instances, or USD an hour of a savings plan.

    `usd_per_gpu_hour` is its price and `hourly_usd_per_gpu_hour` that on demand beside it.
    `needed_gpus` are the GPUs that the classes which may use it need on average, `owned_gpus` what
    of it is owned already. `saves_per_month` and `costs_per_month` are of all that is bought or,
    of what is not, of the first instance (USD an hour); `alternative` is what the best plan without
    it would do, and `alternative_per_month` what that costs more.
    """

    kind: str
    cloud: str
    region: str | None
    name: str
    term: str
    count: float
    usd_per_gpu_hour: float | None
    hourly_usd_per_gpu_hour: float | None
    break_even_share: float | None
    expected_share: float | None
    needed_gpus: float
    owned_gpus: float
    binding: str | None
    why: str
    saves_per_month: Decimal | None = None
    costs_per_month: Decimal | None = None
    alternative: str | None = None
    alternative_per_month: Decimal | None = None

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What tells one option from others, from night to night."""
        return self.kind, self.cloud, self.region or "", self.name, self.term


@dataclass(frozen=True, slots=True)
class PlanLimit:
    """A quota, the upfront budget or what may be committed to: what a `unit` more saves a month.

    None where it would serve hours that nothing serves now: those have no price.
    """

    kind: str
    cloud: str
    region: str
    unit: str
    saves_per_month: Decimal | None


@dataclass(frozen=True, slots=True)
class PlanShortage:
    """Needed hours of a class in the planned year that no offer can serve, and what is in the way.

    `first` and `last` are the days in which they begin and end.
    """

    workload_class: str
    gpu_family: str
    first: str
    last: str
    hours: float
    gpu_hours: float
    most_gpus: float
    limit: str


@dataclass(frozen=True, slots=True)
class OwnedPart:
    """A commitment that is owned, on one machine type: its instances, or USD an hour of a plan."""

    id: str
    cloud: str
    region: str
    name: str
    instances: float
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line to buy that is not what the last night advised, and why."""

    line: str
    before: str
    now: str
    why: str


@dataclass(frozen=True, slots=True)
class SinceLastNight:
    """What changed since the newest night before: lines to buy that are the same, and others.

    Among plans that cost at most `tolerance` (a share) more than the best, the nearest to that
    night's advice was taken.
    """

    date: str
    tolerance: float
    unchanged: int
    changes: tuple[LineChange, ...]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Everything said about why a plan is what it is, in a fixed order."""

    options: tuple[PlanOption, ...] = ()
    limits: tuple[PlanLimit, ...] = ()
    shortages: tuple[PlanShortage, ...] = ()
    owned: tuple[OwnedPart, ...] = ()
    since: SinceLastNight | None = None
    ladder: tuple[LadderStep, ...] = ()
    ending: tuple[EndingPart, ...] = ()
    events: tuple[KnownEvent, ...] = ()
    unmet: tuple[UnmetDemand, ...] = ()
    event_costs: tuple[EventCost, ...] = ()
