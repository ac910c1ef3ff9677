"""Which deliveries a plan rests on, and which of them were restated since the night before.

It stands in `plan.json`, so that a later night can tell what its advice was computed from.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

# Late rows and roundings change every open month a little every night: below this share of what
# the period cost, by each way of paying, a change is only counted.
SMALL_SHARE = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the recommendations of one cloud rest on.

    `deliveries` are the ids of the cloud's bill and of its telemetry of the window, sorted;
    `recommendations` the ids of what is advised there. Prices and commitments are in `inputs`.
    """

    cloud: str
    deliveries: tuple[str, ...]
    recommendations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestatedOption:
    """What was restated of the charges paid in one way. `cost` is None where none is stated."""

    purchase_option: str
    cost: Decimal | None
    gpu_hours: Decimal


@dataclass(frozen=True, slots=True)
class Restated:
    """A period of the bill that says something else than it did on the last night.

    `before` and `after` are its cost over the hours that were known then, in its currency;
    `was` and `now` name the deliveries. `rested` are the recommendations of the last night for
    that cloud, which were computed from the old figures, and `gone` those of them that are not
    advised any more.
    """

    night: str
    cloud: str
    account: str
    dataset: str
    period: str
    currency: str
    before: Decimal
    after: Decimal
    options: tuple[RestatedOption, ...]
    was: str
    now: str
    rested: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def is_small(self) -> bool:
        """True where no way of paying moved by SMALL_SHARE of the period, nor hours alone."""
        least = SMALL_SHARE * abs(self.before)
        return all(part.cost is not None and abs(part.cost) < least for part in self.options)
