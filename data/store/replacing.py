"""What a billing delivery changes of its units: totals old and new, and days it would lose.

A delivery that lacks days at either end of what it replaces is refused unless it is forced: it was
exported for a shorter span. A final bill may replace an open one whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data import money
from data.hours import iso
from data.store import measuring
from data.store.history import UnitVersion, appended
from data.store.ranking import Verdict, as_dataset, refusal
from data.store.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.store.catalogue_file import Catalogue
    from data.store.history import OptionTotals
    from data.store.records import Replaced, StagedDelivery

_MOST_NAMED = 3
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Weighed:
    """The verdict with the totals of what is replaced, and the new history of the taken units."""

    verdict: Verdict
    history: dict[str, tuple[UnitVersion, ...]]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where the rows of former deliveries and of the staged one lie, and what reads them."""

    catalogue: Catalogue
    deliveries: Path
    connection: Any


def weigh(
    catalogue: Catalogue, staged: StagedDelivery, verdict: Verdict, deliveries: Path, engine: Any
) -> Weighed:
    """What loading the staged billing delivery does to its units, day by day and dollar by dollar.

    Where days would be lost, and `verdict.forced` is not set, the verdict becomes a refusal.
    """
    if staged.table != "billing":
        return Weighed(verdict, {})
    scale = _Scale(catalogue, deliveries, engine)
    formers = _formers(scale, staged, verdict)
    path = staged.folder / f"{staged.table}.parquet"
    measured = measuring.measure(engine, path, verdict.take)
    bounds = {unit: (one[-1].first, one[-1].until) for unit, one in formers.items()}
    same = measuring.within(engine, path, bounds)
    made: dict[str, UnitVersion] = {}
    lost: dict[str, str] = {}
    waived = dict(verdict.waived)
    for unit in verdict.take:
        fresh = _version(staged, measured[unit], same.get(unit))
        if unit in formers and not _becomes_final(catalogue, staged, unit):
            missing = _lost_days(formers[unit][-1], fresh)
            if missing:
                lost[unit] = missing
        reason = waived.get(unit) or lost.get(unit)
        made[unit] = replace(fresh, waived=reason if verdict.forced else None)
    if lost and not verdict.forced:
        return Weighed(Verdict(Status.REJECTED, _refusal(lost)), {})
    history = {unit: appended(formers.get(unit, ()), one) for unit, one in made.items()}
    return Weighed(_with_totals(scale, staged, verdict, made), history)


def _formers(
    scale: _Scale, staged: StagedDelivery, verdict: Verdict
) -> dict[str, tuple[UnitVersion, ...]]:
    """The versions so far of each taken unit; of a displaced dataset where there are none."""
    found = {}
    for unit in sorted(verdict.drop):
        taken = as_dataset(unit, staged.dataset)
        if unit in scale.catalogue.active and taken in verdict.take:
            found[taken] = _versions(scale, unit)
    for unit in verdict.take:
        if unit in scale.catalogue.active:
            found[unit] = _versions(scale, unit)
    return {unit: versions for unit, versions in found.items() if versions}


def _versions(scale: _Scale, unit: str) -> tuple[UnitVersion, ...]:
    """The kept versions of an active unit; measured from its rows where none were kept."""
    kept = scale.catalogue.history.get(unit)
    if kept:
        return kept
    holder = scale.catalogue.deliveries[scale.catalogue.active[unit]]
    path = scale.deliveries / holder.folder / f"{holder.table}.parquet"
    if not path.is_file():
        return ()
    one = measuring.measure(scale.connection, path, [unit])[unit]
    return (
        UnitVersion(
            deliveries=(holder.delivery_id,), path=holder.path, options=one.options,
            first=one.first, until=one.until, days=one.days, export=holder.export,
        ),
    )  # fmt: skip


def _version(
    staged: StagedDelivery, one: measuring.Measured, same: Sequence[Any] | None
) -> UnitVersion:
    stated = staged.version_time if staged.is_dated else None
    moment = stated or staged.written
    time = None if moment is None else iso(moment)
    return UnitVersion(
        deliveries=(staged.delivery_id,), path=staged.path, options=one.options, first=one.first,
        until=one.until, days=one.days, export=staged.export, changed=time, confirmed=time,
        same_hours=None if same is None else tuple(same),
    )  # fmt: skip


def _becomes_final(catalogue: Catalogue, staged: StagedDelivery, unit: str) -> bool:
    holder = catalogue.holder(unit)
    before = None if holder is None else holder.units[unit]
    return before is not None and staged.units[unit].has_invoice and not before.has_invoice


def _lost_days(former: UnitVersion, fresh: UnitVersion) -> str | None:
    """What is missing of the former version's days at its begin or end; None where nothing is."""
    if not former.first or not former.until or fresh.days >= former.days:
        return None
    was = _days(former.first, former.until)
    now = None if not fresh.first or not fresh.until else _days(fresh.first, fresh.until)
    if now is not None and now[0] <= was[0] and now[1] >= was[1]:
        return None
    told = "none" if now is None else f"{fresh.days} from {now[0]} to {now[1]}"
    lost = (
        f"it covers fewer days ({told}) than {former.path} ({former.days} from {was[0]} to "
        f"{was[1]}), so days would be lost"
    )
    return refusal(lost, former.path, former.export, fresh.export)


def _days(first: str, until: str) -> tuple[str, str]:
    last = datetime.fromisoformat(until) - _SECOND
    return first[:10], max(first[:10], f"{last:%Y-%m-%d}")


def _refusal(lost: dict[str, str]) -> str:
    texts = [f"{unit}: {what}" for unit, what in sorted(lost.items())]
    more = len(texts) - _MOST_NAMED
    return "; ".join(texts[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _with_totals(
    scale: _Scale, staged: StagedDelivery, verdict: Verdict, made: dict[str, UnitVersion]
) -> Verdict:
    replaced, warnings = [], list(verdict.warnings)
    for one in verdict.replaced:
        taken = as_dataset(one.unit, staged.dataset) if one.unit in verdict.drop else one.unit
        before = _versions(scale, one.unit)
        if before:
            replaced.append(replace(one, versions=(before[-1], made[taken])))
            warnings += _other_export(one, before[-1], made[taken])
            warnings += _lost_charges(one, before[-1], made[taken])
        else:
            replaced.append(one)
    return replace(verdict, replaced=tuple(replaced), warnings=tuple(warnings))


def _other_export(one: Replaced, before: UnitVersion, now: UnitVersion) -> list[str]:
    if before.export is None or now.export is None or before.export == now.export:
        return []
    return [
        f"two exports deliver {one.unit}: it takes the place of {before.path}, which is of another "
        "export; each charge counts once, but name only one of them as a source"
    ]


def _lost_charges(one: Replaced, before: UnitVersion, now: UnitVersion) -> list[str]:
    """A warning where an extract without a manifest lacks charges that it had.

    Google's export only grows: a correction is a charge more. Charges that are gone from the hours
    that were there before are those of files that are gone.
    """
    is_google = one.unit.partition("|")[0] == "gcp"
    if not is_google or before.export is not None or now.export is not None:
        return []
    if now.same_hours is None:
        return []
    held = sum(part.rows for part in before.options)
    rows = held - sum(part.rows for part in now.same_hours)
    lost = _lost_cost(before.options, now.same_hours)
    if rows <= 0 or not lost:
        return []
    return [
        f"{one.unit}: {rows} of {held} charges of hours that were there are gone, and {lost} with "
        f"them: if a file of the extract is gone ({before.path}), extract it again, whole"
    ]


def _lost_cost(before: Sequence[OptionTotals], now: Sequence[OptionTotals]) -> str:
    """By currency how much less it is now, where it is less, as `5.00 USD`."""
    lost: dict[str, Decimal] = {}
    for sign, options in ((1, before), (-1, now)):
        for part in options:
            if part.cost is not None:
                lost[part.currency] = lost.get(part.currency, Decimal(0)) + sign * part.cost
    return ", ".join(
        f"{money.text(amount)} {currency}"
        for currency, amount in sorted(lost.items())
        if amount > 0
    )
