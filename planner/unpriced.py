"""Work that no allowed term has a price for: still a row of the ladder, and ends that are told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from data.ladder import EndingPart, LadderStep
from planner.ladder import STEP_HOURS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.horizon import Horizon
    from planner.ladder import Unpriced
    from planner.supply import Supply

_DIGITS = 6


def unpriced_steps(
    apart: Sequence[Unpriced], planned: Horizon, terms: Sequence[str]
) -> tuple[LadderStep, ...]:
    """One row for each family and cloud without a pool; `terms` are those allowed, as "3y"."""
    day = f"{planned.start + timedelta(hours=STEP_HOURS):%Y-%m-%d}"
    reason = _no_price(terms)
    return tuple(
        LadderStep(
            pool=f"{one.cloud} {one.family}",
            needed=round(one.needed, _DIGITS),
            held=round(one.held, _DIGITS),
            allowed=0.0,
            bought=0.0,
            later=0.0,
            next_step=day,
            reserved=None,
            on_demand=None if one.on_demand is None else round(one.on_demand, _DIGITS),
            reason=f"{reason[0].upper()}{reason[1:]}.",
        )
        for one in apart
    )


def unpriced_endings(
    apart: Sequence[Unpriced],
    supply: Supply,
    planned: Horizon,
    dates: Mapping[str, str],
    terms: Sequence[str],
) -> tuple[EndingPart, ...]:
    """What is owned there and ends in the planned year; `dates` are the days of the ends by id."""
    places = {(one.family, one.cloud) for one in apart}
    found = []
    for one in sorted(supply.owned, key=lambda one: (one.until_hour, one.id, one.offer)):
        offer = supply.offers[one.offer]
        ends = 0 < one.until_hour < planned.hours and one.gpus > 0
        if not ends or (offer.gpu_family, offer.cloud) not in places:
            continue
        found.append(
            EndingPart(
                id=one.id,
                place=f"{offer.instance_type} in {offer.region}",
                gpus=round(one.gpus, _DIGITS),
                ends=dates.get(one.id, ""),
                expected_share=None,
                break_even_share=None,
                action="decide",
                why=f"{_no_price(terms)}: whether to renew it cannot be told",
            )
        )
    return tuple(found)


def _no_price(terms: Sequence[str]) -> str:
    """Why nothing can be committed to.

    >>> _no_price(("3y",)), _no_price(("1y", "3y")), _no_price(())
    ('no price for 3 years', 'no price for 1 year or 3 years', 'the settings allow no term')
    """
    if not terms:
        return "the settings allow no term"
    years = [one.removesuffix("y") for one in terms]
    words = [f"{one} year{'' if one == '1' else 's'}" for one in years]
    return f"no price for {' or '.join(words)}"
