"""How sure a plan is, as it stands in `plan.json`: what is hoped for, and what was found before.

Money is USD; shares are 0 to 1; a month is 730 hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

PRICE_MOVES = (-0.2, -0.44, 0.15)  # of the price on demand
FAILING_SHARES = (0.05, 0.2, 0.5)  # of on-demand requests


@dataclass(frozen=True, slots=True)
class HopedFor:
    """One class: GPU-hours a month by what stands behind them.

    `assured` run on machines that are kept: owned ones, capacity blocks, and reservations that
    keep machines. `discounted` are committed to and paid for, and must still be requested on
    demand: savings plans, and reservations that are a discount only. `on_demand` and `spot` are
    what they say; spot hours are useful ones. `unserved` no offer serves at all.
    """

    workload_class: str
    gpu_family: str
    assured: float
    discounted: float
    on_demand: float
    spot: float
    unserved: float

    @property
    def requested(self) -> float:
        """GPU-hours a month that on-demand requests must be granted for.

        >>> HopedFor("train", "H100", 70.0, 20.0, 10.0, 0.0, 0.0).requested
        30.0
        """
        return self.discounted + self.on_demand

    @property
    def needed(self) -> float:
        """GPU-hours a month that the class needs."""
        return self.assured + self.discounted + self.on_demand + self.spot + self.unserved

    def lost(self, failing: float) -> float:
        """GPU-hours a month not served where `failing` of the on-demand requests find no GPU.

        >>> HopedFor("train", "H100", 70.0, 20.0, 10.0, 0.0, 0.0).lost(0.2)
        6.0
        """
        return failing * self.requested


@dataclass(frozen=True, slots=True)
class BacktestPolicy:
    """One way to commit, run over the unseen part of the history of all tested pools."""

    policy: str
    usd: float
    over_foresight: float | None


@dataclass(frozen=True, slots=True)
class BacktestPool:
    """The back-test of one pool: the work of a GPU family that may share commitments.

    `usd` is what this planner would have cost in the unseen hours, `foresight_usd` the best
    constant level with these hours known, `on_demand_usd` no commitment at all. `purchases` were
    made in `steps` planning steps; `under_break_even` of them were at work less than their
    break-even share in the rest of the unseen hours. `rate` and `on_demand` are USD per GPU-hour,
    `term_months` is what each purchase is made for: rate and term of what the plan buys there, or
    where it buys nothing those of the rule.
    """

    pool: str
    train_hours: int
    test_hours: int
    usd: float
    foresight_usd: float
    on_demand_usd: float
    best_rival: str
    best_rival_usd: float
    steps: int
    purchases: int
    under_break_even: int
    reserved_gpus: int
    rate: float
    on_demand: float
    term_months: int = 12


@dataclass(frozen=True, slots=True)
class Backtests:
    """The back-test on the user's own history; `notes` say what is left out and why."""

    pools: tuple[BacktestPool, ...] = ()
    policies: tuple[BacktestPolicy, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldBefore:
    """What one commitment would have been used for in the observed weeks.

    `commitment` is the id of what is owned, and what to do of what is to be bought; `place` the
    machine type and region of what is owned. `weeks` are counted back from the window's end; in
    `weeks_under` of them, its GPUs would have been at work less than `break_even_share` of the
    hours. `lowest_share` is the worst week.
    """

    commitment: str
    place: str
    is_owned: bool
    gpus: float
    break_even_share: float
    used_share: float
    lowest_share: float
    weeks: int
    weeks_under: int


@dataclass(frozen=True, slots=True)
class EventLoss:
    """New commitments that lose money if a known event does not come, or if it does (`comes`).

    They then cost `usd_per_month` more than they save: all of them together, or, where these still
    pay, the one that is named by what to do.
    """

    event: str
    comes: bool
    usd_per_month: Decimal
    commitment: str | None = None


@dataclass(frozen=True, slots=True)
class LosesIf:
    """What would have to happen for the new commitments to cost more than they save.

    `saves_per_month` is what they replace of purchases by the hour as planned, at
    `costs_per_month`. Demand would have to be `demand_share` of what is planned for their whole
    terms, of `least_term_months` to `most_term_months` (each year of them as the planned one), or
    the price on demand `price_share` of its own while all else stays, or all need to end after
    `months`, by which they have replaced what they cost over their whole term. `price_share` is 0
    where no fall of that price alone is enough. `events` are those that decide.
    """

    saves_per_month: Decimal
    costs_per_month: Decimal
    demand_share: float
    price_share: float
    months: float
    least_term_months: int = 12
    most_term_months: int = 12
    events: tuple[EventLoss, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceMove:
    """What a new commitment is worth over its whole term where prices on demand move.

    As planned it replaces `on_demand_per_month` of purchases on demand and `other_per_month` of
    others by the hour, at `costs_per_month`, in every month of its `term_months`: the planned year
    stands for each year of a longer term. It costs more than it saves where the price on demand
    falls at once by more than `breaking_fall` (a share of it; below 0 it does not pay as planned,
    None: it replaces nothing on demand).
    """

    commitment: str
    term_months: int
    costs_per_month: Decimal
    on_demand_per_month: Decimal
    other_per_month: Decimal
    breaking_fall: float | None

    @property
    def beyond_year(self) -> Decimal:
        """USD to pay after the planned year.

        >>> PriceMove("p5", 36, Decimal(500), Decimal(800), Decimal(0), 0.375).beyond_year
        Decimal('12000')
        """
        return max(self.term_months - 12, 0) * self.costs_per_month

    def worth(self, move: float) -> Decimal:
        """USD left over the whole term where the price on demand moves at once by a share.

        >>> P5 = PriceMove("p5", 12, Decimal(500), Decimal(800), Decimal(0), 0.375)
        >>> P5.worth(0.0), P5.worth(-0.44)
        (Decimal('3600.00'), Decimal('-624.00'))
        """
        month = self.on_demand_per_month * (1 + Decimal(repr(move)))
        left = self.term_months * (month + self.other_per_month - self.costs_per_month)
        return left.quantize(Decimal("0.01"))

    def safe_after(self, move: float) -> float | None:
        """Months after which such a fall cannot make it lose; None where it loses in any case.

        >>> PriceMove("p5", 12, Decimal(500), Decimal(800), Decimal(0), 0.375).safe_after(-0.44)
        1.7727272727272727
        """
        paid, lost = self.worth(0.0), -self.worth(move)
        if paid < 0:
            return None
        return float(self.term_months * max(lost, Decimal(0)) / (paid + lost)) if lost > 0 else 0.0


class LevelMissed(StrEnum):
    """Why a class stays below a stated service level."""

    NONE_SOLD = "none_sold"  # no commitment is sold to it
    BUDGET = "budget"  # without the limit of what may be paid upfront it would be reached
    QUOTA = "quota"  # without the quotas
    LIMIT = "limit"  # without the limits of commitments
    SEVERAL = "several"  # none of them by itself


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """How far a stated service level is reached for one class.

    `stated` is the share of hours, over all ways in which demand may come, in which what is
    committed to shall serve all that a class needs and may not run on spot; `reached` that share in
    the plan. `missed` tells why it is below (None: it is not, or the plan does not say).
    """

    workload_class: str
    gpu_family: str
    stated: float
    reached: float
    missed: LevelMissed | None = None


@dataclass(frozen=True, slots=True)
class Risks:
    """Everything said about how sure a plan is.

    `level_usd_per_month` is what a stated service level costs more than the plan without it (None:
    none is stated).
    """

    hoped_for: tuple[HopedFor, ...] = ()
    backtests: Backtests = Backtests()
    held_before: tuple[HeldBefore, ...] = ()
    loses_if: LosesIf | None = None
    price_moves: tuple[PriceMove, ...] = ()
    service: tuple[ServiceLevel, ...] = ()
    level_usd_per_month: Decimal | None = None
