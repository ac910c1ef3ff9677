"""The ladder of commitments in a plan: what to buy now, what to wait for, and what to let go.

GPUs are useful ones; shares are 0 to 1; prices are USD per GPU-hour.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One pool: work of a GPU family and the clouds in which it may be committed to.

    `needed` is the mean of the last four weeks, `held` what is owned and lasts until the next step.
    The rule allows to commit `allowed` GPUs now, of which the plan buys `bought`. Without the rule
    it would buy `later` more, which pay if demand holds until `next_step` (a day): decide then.
    `reserved` is the rate that the rule judged by, of the cheapest commitment of the term `term`,
    beside `on_demand`; None where no allowed term has a price. `counted` is what known events leave
    of `needed` to commit on (None: all of it). `withdrawn` tells why no allowed term is offered now
    (None: some are).
    """

    pool: str
    needed: float
    held: float
    allowed: float
    bought: float
    later: float
    next_step: str
    reserved: float | None
    on_demand: float | None
    reason: str
    term: str | None = None
    counted: float | None = None
    withdrawn: str | None = None


@dataclass(frozen=True, slots=True)
class EndingPart:
    """A commitment that ends in the planned year: whether another like it would pay from then on.

    `expected_share` of its GPU-hours would be at work after the end, above what else is held and
    bought; it pays above `break_even_share`. Both are None where no allowed term has a price.
    `action` is renew or let_expire, or without a price decide.
    """

    id: str
    place: str
    gpus: float
    ends: str
    expected_share: float | None
    break_even_share: float | None
    action: str
    why: str
