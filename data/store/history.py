"""What each unit of the bill was in its last versions, and what a later one restated.

A version is what one or several deliveries said alike. Of each the totals by way of paying are
kept, for the whole unit and for the hours that the version before it held too: the first minus the
totals of that version is how much a period grew, the second minus them is what was restated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data import money

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_VERSIONS = 12
AMOUNTS = ("billed_cost", "effective_cost", "instance_hours", "gpu_hours")
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class OptionTotals:
    """Totals of the charges that were paid in one way, in one currency.

    A cost that no row states is None, hours that none states are 0.
    """

    purchase_option: str
    currency: str
    rows: int
    billed_cost: Decimal | None
    effective_cost: Decimal | None
    instance_hours: Decimal = _ZERO
    gpu_hours: Decimal = _ZERO

    @property
    def cost(self) -> Decimal | None:
        """The effective cost, or the billed one where the export states no effective cost."""
        return self.billed_cost if self.effective_cost is None else self.effective_cost

    def as_json(self) -> dict[str, Any]:
        """The totals as the catalogue keeps them, amounts as texts."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return plain | {name: money.text(plain[name]) for name in AMOUNTS}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> OptionTotals:
        """The totals as the catalogue kept them."""
        amounts = {n: None if record[n] is None else Decimal(record[n]) for n in AMOUNTS}
        return OptionTotals(**{**record, **amounts})


@dataclass(frozen=True, slots=True)
class UnitVersion:
    """What deliveries said of one unit.

    `deliveries` are the newest ids that said the same, oldest first. `export` names the export
    that it came from, None for a lone file. `changed` and `confirmed` are the times (ISO, UTC) that
    the manifests of the first and of the newest of them state, or at which files without one were
    written to their bucket; None where neither is known.
    `first` and `until` (exclusive) bound the charges of at most a day, `days` are the UTC days that
    have any.
    `same_hours` are the totals over the hours of the version before, None where there is none.
    `waived` is why it would have been refused had it not been forced.
    """

    deliveries: tuple[str, ...]
    path: str
    options: tuple[OptionTotals, ...]
    first: str | None = None
    until: str | None = None
    days: int = 0
    export: str | None = None
    changed: str | None = None
    confirmed: str | None = None
    same_hours: tuple[OptionTotals, ...] | None = None
    waived: str | None = None

    def says_the_same(self, other: UnitVersion) -> bool:
        """True where both hold the same totals over the same hours."""
        mine = (self.options, self.first, self.until, self.days)
        return mine == (other.options, other.first, other.until, other.days)

    def as_json(self) -> dict[str, Any]:
        """The version as the catalogue keeps it."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain["deliveries"] = list(self.deliveries)
        plain["options"] = [one.as_json() for one in self.options]
        if self.same_hours is not None:
            plain["same_hours"] = [one.as_json() for one in self.same_hours]
        return plain

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> UnitVersion:
        """The version as the catalogue kept it."""
        same = record["same_hours"]
        read = OptionTotals.from_json
        return UnitVersion(
            **{
                **record,
                "deliveries": tuple(record["deliveries"]),
                "options": tuple(read(one) for one in record["options"]),
                "same_hours": None if same is None else tuple(read(one) for one in same),
            }
        )


@dataclass(frozen=True, slots=True)
class OptionChange:
    """What was restated of the charges paid in one way: how much more the newest version says.

    `before` is what the older version held; a cost is None where either version states none.
    """

    purchase_option: str
    currency: str
    before: Decimal | None
    cost: Decimal | None
    rows: int = 0
    billed_cost: Decimal | None = None
    instance_hours: Decimal = _ZERO
    gpu_hours: Decimal = _ZERO

    @property
    def is_nothing(self) -> bool:
        """True where money and hours are as they were."""
        amounts = (self.cost, self.billed_cost, self.instance_hours, self.gpu_hours)
        return not any(amounts)


def appended(
    versions: Sequence[UnitVersion], fresh: UnitVersion, most: int = MOST_VERSIONS
) -> tuple[UnitVersion, ...]:
    """The versions with the fresh one; where it says nothing new it confirms the newest."""
    if not versions:
        return (fresh,)
    newest = versions[-1]
    if not newest.says_the_same(fresh):
        return (*versions, fresh)[-most:]
    ids = tuple(dict.fromkeys((*newest.deliveries, *fresh.deliveries)))[-most:]
    confirmed = max(filter(None, (newest.confirmed, fresh.confirmed)), default=None)
    return (*versions[:-1], replace(newest, deliveries=ids, confirmed=confirmed))


def place_of(versions: Sequence[UnitVersion], deliveries: Iterable[str]) -> int | None:
    """The place of the newest version that one of the deliveries gave, None where none did."""
    wanted = set(deliveries)
    places = [n for n, one in enumerate(versions) if wanted & set(one.deliveries)]
    return max(places, default=None)


def restated(versions: Sequence[UnitVersion], start: int = 0) -> tuple[OptionChange, ...]:
    """What the versions after the one at `start` changed in hours that were there before.

    Every step is compared with the version before it over that version's own hours, so that a
    period that only grew was not restated. Sorted; ways of paying without a change are left out.
    """
    sums: dict[tuple[str, str], list[OptionChange]] = {}
    for former, later in zip(versions[start:], versions[start + 1 :], strict=False):
        if later.same_hours is None:
            continue
        for one in compared(former.options, later.same_hours):
            sums.setdefault((one.purchase_option, one.currency), []).append(one)
    base = {(one.purchase_option, one.currency): one.cost for one in versions[start].options}
    found = []
    for key, steps in sorted(sums.items()):
        whole = OptionChange(
            *key,
            before=base.get(key, _ZERO),
            cost=_sum(one.cost for one in steps),
            rows=sum(one.rows for one in steps),
            billed_cost=_sum(one.billed_cost for one in steps),
            instance_hours=money.total(one.instance_hours for one in steps),
            gpu_hours=money.total(one.gpu_hours for one in steps),
        )
        if not whole.is_nothing:
            found.append(whole)
    return tuple(found)


def compared(
    before: Iterable[OptionTotals], after: Iterable[OptionTotals]
) -> tuple[OptionChange, ...]:
    """Each way of paying with what the later totals hold more, sorted; unchanged ones too."""
    old = {(one.purchase_option, one.currency): one for one in before}
    new = {(one.purchase_option, one.currency): one for one in after}
    rows = []
    for key in sorted({*old, *new}):
        one, other = old.get(key), new.get(key)
        was = OptionTotals(*key, 0, *_empty(other)) if one is None else one
        now = OptionTotals(*key, 0, *_empty(one)) if other is None else other
        rows.append(
            OptionChange(
                *key,
                before=was.cost,
                cost=_less(now.cost, was.cost),
                rows=now.rows - was.rows,
                billed_cost=_less(now.billed_cost, was.billed_cost),
                instance_hours=money.total([now.instance_hours, -was.instance_hours]),
                gpu_hours=money.total([now.gpu_hours, -was.gpu_hours]),
            )
        )
    return tuple(rows)


def option_rows(
    before: Iterable[OptionTotals], after: Iterable[OptionTotals]
) -> list[dict[str, Any]]:
    """Old and new totals side by side as `load --json` writes them, one entry a way of paying."""
    old = {(one.purchase_option, one.currency): one for one in before}
    new = {(one.purchase_option, one.currency): one for one in after}
    rows = []
    for option, currency in sorted({*old, *new}):
        row: dict[str, Any] = {"purchase_option": option, "currency": currency}
        for name in ("rows", *AMOUNTS):
            for word, side in (("before", old), ("after", new)):
                one = side.get((option, currency))
                value = None if one is None else getattr(one, name)
                row[f"{name}_{word}"] = money.text(value) if name in AMOUNTS else value or 0
        rows.append(row)
    return rows


def _empty(other: OptionTotals | None) -> tuple[Decimal | None, Decimal | None]:
    """The costs of no charges at all: 0 of each cost that the other side states."""
    assert other is not None
    return (
        None if other.billed_cost is None else _ZERO,
        None if other.effective_cost is None else _ZERO,
    )


def _less(a: Decimal | None, b: Decimal | None) -> Decimal | None:
    return None if a is None or b is None else money.total([a, -b])


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    stated = [one for one in amounts if one is not None]
    return money.total(stated) if stated else None
