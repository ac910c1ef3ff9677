"""The optimiser's problem, put together from needs and supply, one stage of the savings at a time.

Stages are cumulative relaxations of one problem, so that each saving is counted once:
`AS_IS` serves the needed hours where they run today with what is owned; `SPOT` lets interruptible
classes use spot as their rules allow; `EXPIRY` lets owned commitments end when they end; `BUY`
opens new commitments; `MOVE` opens every place that a class's rules allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from planner.problem import (
    ClassKind,
    Existing,
    Offer,
    Problem,
    ProblemClass,
    Reservation,
    SavingsPlan,
    Scenario,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from planner.horizon import Horizon
    from planner.supply import Supply, SupplyOffer

SPOT_PART = "~spot"
_SHORTAGE_FACTOR = 10.0


class Stage(IntEnum):
    """The stages in the order in which savings are counted."""

    AS_IS = 0
    SPOT = 1
    EXPIRY = 2
    BUY = 3
    MOVE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """What one class needs of one GPU family, over the hours of the window.

    `firm` are GPUs needed that ran on anything but spot, `spot` useful GPUs that ran on spot
    (paid GPUs x throughput). `present` are offers it runs on, `same_place` those its rules allow
    in the regions where it runs, `anywhere` all that its rules allow.
    """

    workload_class: str
    gpu_family: str
    firm: npt.NDArray[np.float64]
    spot: npt.NDArray[np.float64]
    present: tuple[str, ...]
    same_place: tuple[str, ...]
    anywhere: tuple[str, ...]
    interruptible: bool
    min_firm_share: float
    throughput: float

    @property
    def id(self) -> str:
        """Name of the problem class."""
        return f"{self.workload_class}|{self.gpu_family}"


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What the plan may do: upfront money in USD, and whether new commitments are allowed."""

    upfront_budget: float
    allow_commitments: bool = True


def spot_offer_id(offer: str, throughput: float) -> str:
    """The name under which an offer's spot is sold to classes of one throughput.

    >>> spot_offer_id("aws/us-east-1/p5.48xlarge", 0.9)
    'aws/us-east-1/p5.48xlarge~spot@0.9000'
    """
    return f"{offer}{SPOT_PART}@{throughput:.4f}"


def base_offer(name: str) -> str:
    """The offer behind a spot name, or the name itself."""
    return name.split(SPOT_PART, 1)[0]


def problem_at(
    stage: Stage, needs: Sequence[Need], supply: Supply, horizon: Horizon, rules: PlanRules
) -> Problem:
    """The problem of one stage, over the horizon."""
    classes: list[ProblemClass] = []
    demand: dict[str, np.ndarray] = {}
    penalty = _shortage_penalty(supply)
    for need in needs:
        for name, series, offers, firm in _parts(need, stage, supply):
            classes.append(
                ProblemClass(
                    id=name,
                    kind=ClassKind.FIRM,
                    offers=offers,
                    shortage_penalty=penalty,
                    min_firm_share=firm,
                )
            )
            demand[name] = horizon.repeat(series)
    named = {offer for one in classes for offer in one.offers}
    buying = stage >= Stage.BUY and rules.allow_commitments
    sold = _offers(needs, named, supply, horizon, (stage, buying))
    plans = sorted({offer.provider for offer in sold if offer.sp_rate is not None})
    return Problem(
        id=f"plan-{stage.name.lower()}",
        hours=horizon.hours,
        hour_weight=horizon.weight,
        classes=tuple(classes),
        offers=sold,
        scenarios=(Scenario(1.0, demand),),
        savings_plans=tuple(SavingsPlan(provider) for provider in plans),
        upfront_budget=rules.upfront_budget,
    )


def _parts(
    need: Need, stage: Stage, supply: Supply
) -> list[tuple[str, npt.NDArray[np.float64], tuple[str, ...], float]]:
    def with_spot(offers: tuple[str, ...]) -> tuple[str, ...]:
        spot = [
            spot_offer_id(o, need.throughput) for o in offers if supply.offers[o].spot is not None
        ]
        return (*offers, *spot)

    if stage is Stage.AS_IS:
        parts = [(need.id, need.firm, need.present, 1.0)]
        if need.spot.any():
            parts.append((need.id + SPOT_PART, need.spot, with_spot(need.present), 0.0))
        return parts
    offers = need.anywhere if stage is Stage.MOVE else need.same_place
    if need.interruptible:
        return [(need.id, need.firm + need.spot, with_spot(offers), need.min_firm_share)]
    return [(need.id, need.firm + need.spot, offers, 1.0)]


def _offers(
    needs: Sequence[Need],
    named: set[str],
    supply: Supply,
    horizon: Horizon,
    how: tuple[Stage, bool],
) -> tuple[Offer, ...]:
    stage, buying = how
    made: list[Offer] = []
    throughputs = sorted({need.throughput for need in needs})
    for name, offer in sorted(supply.offers.items()):
        if name in named:
            made.append(_plain_offer(offer, supply, horizon, stage, buying))
        for throughput in throughputs:
            spot_name = spot_offer_id(name, throughput)
            if spot_name in named and offer.spot is not None:
                made.append(
                    Offer(
                        id=spot_name,
                        provider=offer.cloud,
                        region=offer.region,
                        gpus=offer.gpus,
                        on_demand=None,
                        spot=offer.spot,
                        spot_throughput=throughput,
                    )
                )
    return tuple(made)


def _plain_offer(
    offer: SupplyOffer, supply: Supply, horizon: Horizon, stage: Stage, buying: bool
) -> Offer:
    ends = stage >= Stage.EXPIRY
    existing = tuple(
        Existing(one.gpus, one.until_hour if ends else horizon.hours)
        for one in supply.owned
        if one.offer == offer.id
    )
    terms = offer.terms if buying else ()
    return Offer(
        id=offer.id,
        provider=offer.cloud,
        region=offer.region,
        gpus=offer.gpus,
        on_demand=offer.on_demand,
        reservations=tuple(
            Reservation(f"{term.name}/{term.payment}", term.rate, term.upfront) for term in terms
        ),
        sp_rate=offer.plan_rate if buying else None,
        existing=existing,
    )


def _shortage_penalty(supply: Supply) -> float:
    prices = [offer.on_demand for offer in supply.offers.values() if offer.on_demand is not None]
    return _SHORTAGE_FACTOR * max(prices, default=100.0)
