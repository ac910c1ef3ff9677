"""The optimiser's problem, put together from needs and supply, one stage of the savings at a time.

Each stage opens more than the one before, so that each saving is counted once: `AS_IS` serves the
needed hours where they run today, or on what is owned; `SPOT` lets interruptible classes use spot
as their rules allow; `MOVE` opens every place that a class's rules allow; `DEMAND` is the same
with the demand to come instead of that of the past; `EXPIRY` lets owned commitments end when they
end; `BUY` opens new commitments, and is the plan.

An offer `o` stands in a problem under three names: `o` what is bought by the hour and reserved
anew, `o~owned` what is paid for already, `o~spot@phi` its spot for classes of throughput phi. A
class stands under its id, or in parts `id~...`, one for each offer it runs on today.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from planner.horizon import Horizon
from planner.problem import (
    ClassKind,
    CommitmentLimit,
    Cvar,
    Existing,
    Offer,
    Problem,
    ProblemClass,
    Quota,
    Reservation,
    SavingsPlan,
)
from planner.problem_demand import counted_of, limits_of, scenarios_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from planner.future import Future
    from planner.supply import Supply, SupplyOffer

PART = "~"
_SHORTAGE_FACTOR = 10.0


class Stage(IntEnum):
    """The stages in the order in which savings are counted."""

    AS_IS = 0
    SPOT = 1
    MOVE = 2
    DEMAND = 3
    EXPIRY = 4
    BUY = 5


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """What one class needs of one GPU family, over the observed hours.

    `firm` are GPUs needed that ran on anything but spot, by offer; `spot` useful GPUs that ran on
    spot (paid GPUs x throughput), by offer. `anywhere` are the offers that its rules allow and
    those it runs on. A class that is not `may_move` stays in each place (cloud and region) with
    what runs there, and one that is not `may_retype` on machines with as many GPUs: nobody has said
    that its work could run otherwise.

    `waited` are GPUs that its queued jobs waited for, by the offer that they count at: demand that
    no bill shows, so only what is to come counts it. `full` are the hours in which an offer's place
    was full, so that what ran there is a lower bound.
    """

    workload_class: str
    gpu_family: str
    firm: Mapping[str, npt.NDArray[np.float64]]
    spot: Mapping[str, npt.NDArray[np.float64]]
    anywhere: tuple[str, ...]
    may_move: bool
    may_retype: bool
    interruptible: bool
    min_firm_share: float
    throughput: float
    spot_max_share_per_offer: float | None = None
    waited: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    read: npt.NDArray[np.bool_] | None = None
    full: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Name of the problem class."""
        return f"{self.workload_class}|{self.gpu_family}"

    @property
    def total(self) -> npt.NDArray[np.float64]:
        """Useful GPUs that it had on all offers, by observed hour."""
        return np.asarray(np.sum([*self.firm.values(), *self.spot.values()], axis=0))

    @property
    def wanted(self) -> npt.NDArray[np.float64]:
        """The same with the GPUs that its queued jobs waited for."""
        return np.asarray(np.sum([self.total, *self.waited.values()], axis=0))

    @property
    def waiting(self) -> npt.NDArray[np.float64]:
        """GPUs that its queued jobs waited for, by observed hour; NaN where nobody knows."""
        total = np.asarray(np.sum([0.0 * self.total, *self.waited.values()], axis=0))
        return total * np.nan if self.read is None else np.where(self.read, total, np.nan)

    def had(self, offer: str) -> npt.NDArray[np.float64]:
        """Useful GPUs that it had on one offer that it runs on, by observed hour."""
        parts = [one[offer] for one in (self.firm, self.spot) if offer in one]
        return np.asarray(np.sum(parts, axis=0))

    def wanted_at(self, offer: str) -> npt.NDArray[np.float64]:
        """The same with the GPUs that its queued jobs waited for."""
        had = self.had(offer)
        return had + self.waited[offer] if offer in self.waited else had

    def bounded_on(self, offers: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Observed hours in which full places held at least half of what it had on the offers.

        What it had in them is a lower bound on what it wanted.

        >>> import numpy as np
        >>> gpus = {"a": np.array([8.0, 8.0]), "b": np.array([2.0, 9.0])}
        >>> need = Need("t", "H100", gpus, {}, ("a", "b"), False, False, False, 0.0, 1.0,
        ...             full={"a": np.array([True, True])})
        >>> need.bounded_on(["a", "b"]).tolist(), need.bounded_on(["b"]).tolist()
        ([True, False], [False, False])
        """
        total = np.sum([self.had(o) for o in offers], axis=0)
        full = np.sum([self.had(o) * self.full[o] for o in offers if o in self.full], axis=0)
        return np.asarray((full > 0) & (2 * full >= total))

    @property
    def present(self) -> tuple[str, ...]:
        """The offers that it runs on today."""
        return tuple(sorted({*self.firm, *self.spot}))


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What the plan may do: upfront money in USD, new commitments at all, purchases by the hour.

    `cvar` is how much the worst of the demand to come counts beside its mean, `limits` the most
    that may be committed to now. A `service_level` takes the place of `cvar`.
    """

    upfront_budget: float
    allow_commitments: bool = True
    quotas: tuple[Quota, ...] = ()
    cvar: Cvar | None = None
    limits: tuple[CommitmentLimit, ...] = ()
    service_level: float | None = None


def spot_offer_id(offer: str, throughput: float) -> str:
    """The name under which an offer's spot is sold to classes of one throughput.

    >>> spot_offer_id("aws/us-east-1/p5.48xlarge", 0.9)
    'aws/us-east-1/p5.48xlarge~spot@0.9000'
    """
    return f"{offer}{PART}spot@{throughput:.4f}"


def owned_offer_id(offer: str) -> str:
    """The name of what is paid for already of an offer."""
    return f"{offer}{PART}owned"


def base_name(name: str) -> str:
    """The offer, or the class id, that a name of the problem speaks of.

    >>> base_name("aws/us-east-1/p5.48xlarge~owned"), base_name("batch|H100")
    ('aws/us-east-1/p5.48xlarge', 'batch|H100')
    """
    return name.split(PART, 1)[0]


def problem_at(
    stage: Stage, needs: Sequence[Need], supply: Supply, ahead: Horizon | Future, rules: PlanRules
) -> Problem:
    """The problem of one stage, over the horizon of the past or the demand to come."""
    parts = {need.id: _parts(need, stage, supply) for need in needs}
    return _problem(stage, parts, supply, ahead, rules)


def problem_as_now(
    needs: Sequence[Need], supply: Supply, ahead: Horizon | Future, rules: PlanRules
) -> Problem:
    """The problem of running on as today, on what is owned then: nothing moves, nothing is bought.

    What the plan saves in the demand to come is counted against it.
    """
    parts = {need.id: _parts(need, Stage.AS_IS, supply) for need in needs}
    return replace(_problem(Stage.EXPIRY, parts, supply, ahead, rules), cvar=None)


def _problem(
    stage: Stage,
    parts: Mapping[str, Sequence[Part]],
    supply: Supply,
    ahead: Horizon | Future,
    rules: PlanRules,
) -> Problem:
    horizon = ahead if isinstance(ahead, Horizon) else ahead.horizon
    classes = _classes(list(itertools.chain.from_iterable(parts.values())), supply)
    named = {offer for one in classes for offer in one.offers}
    buying = stage >= Stage.BUY and rules.allow_commitments
    sold = _offers(named, supply, horizon, stage >= Stage.EXPIRY, buying)
    plans = sorted({offer.provider for offer in sold if offer.sp_rate is not None})
    return Problem(
        id=f"plan-{stage.name.lower()}",
        hours=horizon.hours,
        hour_weight=horizon.weight,
        classes=classes,
        offers=sold,
        scenarios=scenarios_of(parts, ahead),
        savings_plans=tuple(SavingsPlan(provider) for provider in plans),
        quotas=counted_of(rules.quotas, sold),
        upfront_budget=rules.upfront_budget,
        commitment_limits=limits_of(rules.limits, sold) if buying else (),
        cvar=None if isinstance(ahead, Horizon) or len(ahead.probabilities) < 2 else rules.cvar,
    )


def _classes(parts: Sequence[Part], supply: Supply) -> tuple[ProblemClass, ...]:
    penalty = _shortage_penalty(supply)
    return tuple(
        ProblemClass(
            id=part.name,
            kind=ClassKind.FIRM,
            offers=part.offers,
            shortage_penalty=penalty,
            min_firm_share=part.min_firm_share,
            spot_max_share_per_offer=part.spot_cap,
        )
        for part in parts
    )


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What of a class stays together at a stage: GPUs by observed hour, and where they may run."""

    name: str
    series: npt.NDArray[np.float64]
    offers: tuple[str, ...]
    min_firm_share: float
    spot_cap: float | None = None


def _parts(need: Need, stage: Stage, supply: Supply) -> list[Part]:
    """The class in the parts that stay together at this stage.

    Until MOVE there is one part for each offer that it runs on; from then on one for all that can
    reach the same offers.
    """
    if stage >= Stage.MOVE:
        return reachable_parts(need, supply)
    if stage is Stage.SPOT:
        return [
            Part(
                f"{need.id}{PART}at@{o}",
                series,
                (o, *_owned(need, o, supply), *_spot(need, o, supply)),
                _least_firm(need),
                need.spot_max_share_per_offer,
            )
            for o, series in ((o, need.had(o)) for o in need.present)
        ]
    parts = [
        Part(f"{need.id}{PART}at@{o}", series, (o, *_owned(need, o, supply)), 1.0)
        for o, series in sorted(need.firm.items())
    ]
    for o, series in sorted(need.spot.items()):
        sold = (spot_offer_id(o, need.throughput),) if supply.offers[o].spot is not None else ()
        offers = (o, *_owned(need, o, supply), *sold)
        parts.append(Part(f"{need.id}{PART}spot@{o}", series, offers, 0.0))
    return parts


def reachable_parts(need: Need, supply: Supply) -> list[Part]:
    """The class in parts of which all work may go to the same offers, from MOVE on."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for o in need.present:
        groups.setdefault(reachable(need, o, supply), []).append(o)
    parts = []
    for number, (allowed, present) in enumerate(sorted(groups.items())):
        owned = tuple(owned_offer_id(o) for o in allowed if supply.owns(o))
        total = np.sum([need.had(o) for o in present], axis=0)
        offers = (*allowed, *owned, *_spot(need, present[0], supply))
        name = need.id if len(groups) == 1 else f"{need.id}{PART}{number}"
        cap = need.spot_max_share_per_offer
        parts.append(Part(name, total, offers, _least_firm(need), cap))
    return parts


def _least_firm(need: Need) -> float:
    return need.min_firm_share if need.interruptible else 1.0


def reachable(need: Need, offer: str, supply: Supply) -> tuple[str, ...]:
    """The allowed offers that work on `offer` may go to."""
    here = supply.offers[offer]

    def reaches(there: SupplyOffer) -> bool:
        stays = (there.cloud, there.region) == (here.cloud, here.region)
        return (need.may_move or stays) and (need.may_retype or there.gpus == here.gpus)

    return tuple(o for o in need.anywhere if reaches(supply.offers[o]))


def _owned(need: Need, offer: str, supply: Supply) -> tuple[str, ...]:
    """What is paid for already, of the offers the class runs on, within reach of `offer`."""
    reach = set(reachable(need, offer, supply)) & set(need.present)
    return tuple(owned_offer_id(o) for o in sorted(reach) if supply.owns(o))


def _spot(need: Need, offer: str, supply: Supply) -> tuple[str, ...]:
    if not need.interruptible:
        return ()
    return tuple(
        spot_offer_id(o, need.throughput)
        for o in reachable(need, offer, supply)
        if supply.offers[o].spot is not None
    )


def _offers(
    named: set[str], supply: Supply, horizon: Horizon, ends: bool, buying: bool
) -> tuple[Offer, ...]:
    made: list[Offer] = []
    for name in sorted(named):
        offer = supply.offers[base_name(name)]
        if name == offer.id:
            made.append(_hourly(offer, buying))
        elif name == owned_offer_id(offer.id):
            existing = tuple(
                Existing(one.gpus, one.until_hour if ends else horizon.hours)
                for one in supply.owned
                if one.offer == offer.id and (ends or not one.begins)
            )
            made.append(replace(_bare(offer, name), existing=existing))
        else:
            throughput = float(name.rsplit("@", 1)[1])
            made.append(replace(_bare(offer, name), spot=offer.spot, spot_throughput=throughput))
    return tuple(made)


def _bare(offer: SupplyOffer, name: str) -> Offer:
    return Offer(
        id=name,
        provider=offer.cloud,
        region=offer.region,
        gpus=offer.gpus,
        on_demand=None,
        vcpus=offer.vcpus,
    )


def _hourly(offer: SupplyOffer, buying: bool) -> Offer:
    terms = offer.terms if buying else ()
    reservations = tuple(
        Reservation(f"{term.name}/{term.payment}", term.rate, term.upfront) for term in terms
    )
    return replace(
        _bare(offer, offer.id),
        on_demand=offer.on_demand,
        reservations=reservations,
        sp_rate=offer.plan_rate if buying else None,
    )


def _shortage_penalty(supply: Supply) -> float:
    prices = [offer.on_demand for offer in supply.offers.values() if offer.on_demand is not None]
    return _SHORTAGE_FACTOR * max(prices, default=100.0)
