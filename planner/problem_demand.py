"""What a stage asks and may use: its scenarios, and the limits that bear on its offers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.future import shares_of
from planner.horizon import Horizon
from planner.problem import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.assemble import Part
    from planner.future import Future
    from planner.problem import CommitmentLimit, Offer, Quota


def scenarios_of(
    parts: Mapping[str, Sequence[Part]], ahead: Horizon | Future
) -> tuple[Scenario, ...]:
    """The past, repeated; or every way in which the demand may come."""
    if isinstance(ahead, Horizon):
        demand = {one.name: ahead.repeat(one.series) for some in parts.values() for one in some}
        return (Scenario(1.0, demand),)
    shares = {name: shares_of([one.series for one in some]) for name, some in parts.items()}
    return tuple(
        Scenario(
            p,
            {
                part.name: ahead.demand[name][number] * share
                for name, some in parts.items()
                for part, share in zip(some, shares[name], strict=True)
            },
        )
        for number, p in enumerate(ahead.probabilities)
    )


def counted_of(quotas: Sequence[Quota], sold: Sequence[Offer]) -> tuple[Quota, ...]:
    """The quotas of regions that the problem's offers are in."""
    regions = {(offer.provider, offer.region) for offer in sold}
    return tuple(one for one in quotas if (one.provider, one.region) in regions)


def limits_of(
    limits: Sequence[CommitmentLimit], sold: Sequence[Offer]
) -> tuple[CommitmentLimit, ...]:
    """The limits on the offers that the problem has."""
    names = {offer.id for offer in sold}
    kept = [replace(one, offers=tuple(o for o in one.offers if o in names)) for one in limits]
    return tuple(one for one in kept if one.offers)
