"""Which delivery counts: newer against older, final against not final, and what is refused.

For each unit (source, account, dataset, period), in this order:

1. The same content, or the same delivery, is read already: nothing changes.
2. The same content was read before and has been replaced since: it is older.
3. Both deliveries have a manifest's time: the newer counts (of equal ones the later load).
4. Else one with invoice ids outranks one without; else the later load counts.
5. A replacement that is empty, or loses more than MOST_LOST_SHARE of the unit's absolute cost (of
   its rows where a cost is not stated), is refused, but where an invoiced file replaces one that
   was not. Tables that people keep by hand may shrink. So is a bill that covers fewer days at
   either end (data.store.replacing). Where it is of another export than what it would replace, that
   is said first and no force is offered: the other export would be back with the next fetch.
6. Billing of one source, account and period is read from one dataset: a second one is refused, but
   for Azure's actual and amortized, of which one states the billed and one the effective cost of
   the same charges (not where a lone file fills both).

`force` waives 2, 5 and 6, and an unchanged content is then written anew; it waives no ranking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from data import money
from data.hours import iso
from data.store.records import Replaced, Status

if TYPE_CHECKING:
    from data.store.catalogue_file import Catalogue
    from data.store.records import DeliveryRecord, StagedDelivery, UnitFacts

# A month restated by credits and refunds loses a few percent; a pull cut short loses most of it.
MOST_LOST_SHARE = Decimal("0.5")
SHRINK_GUARDED = ("billing", "utilization")
TOLD_TWICE = frozenset({"actual", "amortized"})
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of a staged delivery.

    `take` are the units it is read from now on, `drop` units of another dataset that it displaces;
    `waived` are the units that were taken by force alone, with what spoke against them.
    """

    status: Status
    reason: str | None = None
    take: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    warnings: tuple[str, ...] = ()
    waived: tuple[tuple[str, str], ...] = ()
    forced: bool = False


def judge(catalogue: Catalogue, staged: StagedDelivery, force: bool, intact: bool) -> Verdict:
    """The verdict on a staged delivery. `intact` is false if its files in the store are gone."""
    same = _same_content(catalogue, staged)
    if same is not None and intact and not force:
        return Verdict(Status.UNCHANGED)
    clash = catalogue.deliveries.get(staged.delivery_id)
    if clash is not None and (clash.table, clash.dataset) != (staged.table, staged.dataset):
        text = f"its id {staged.delivery_id} is that of {clash.path}, loaded as {clash.dataset}"
        return Verdict(Status.REJECTED, text)
    if same is None and not force:
        former = _was_replaced(catalogue, staged)
        if former is not None:
            return Verdict(Status.IGNORED_OLDER, former)
    if not staged.rows and not force:
        return Verdict(Status.REJECTED, "it has no rows; what was loaded before stays")
    verdict = _by_unit(catalogue, staged, force)
    if same is None or same.delivery_id == staged.delivery_id:
        return verdict
    # One content under two ids (read with and without its manifest) must not count twice.
    twice = set(catalogue.active_units(same.delivery_id)) - set(verdict.take)
    return replace(verdict, drop=tuple(sorted({*verdict.drop, *twice})))


def _same_content(catalogue: Catalogue, staged: StagedDelivery) -> DeliveryRecord | None:
    for record in catalogue.deliveries.values():
        if (record.table, record.dataset) == (staged.table, staged.dataset) and (
            record.sha256 == staged.sha256 or record.delivery_id == staged.delivery_id
        ):
            return record
    return None


def _was_replaced(catalogue: Catalogue, staged: StagedDelivery) -> str | None:
    for former in catalogue.superseded:
        if (former.table, former.dataset) == (staged.table, staged.dataset) and (
            former.sha256 == staged.sha256 or former.delivery_id == staged.delivery_id
        ):
            return (
                f"this content was loaded before (as {former.path}) and then replaced by delivery "
                f"{former.replaced_by}; --force brings it back"
            )
    return None


def _by_unit(catalogue: Catalogue, staged: StagedDelivery, force: bool) -> Verdict:
    take: list[str] = []
    older: list[str] = []
    refused: list[str] = []
    replaced: list[Replaced] = []
    waived: list[tuple[str, str]] = []
    for unit, facts in sorted(staged.units.items()):
        holder = catalogue.holder(unit)
        if holder is None:
            take.append(unit)
            continue
        before = holder.units[unit]
        why_older = _why_older(staged, facts, holder, before)
        if why_older and holder.delivery_id != staged.delivery_id:
            older.append(f"{unit}: {why_older}")
            continue
        loss = _loss(staged, facts, before)
        loss = loss and refusal(loss, holder.path, holder.export, staged.export)
        if loss and not force:
            refused.append(f"{unit}: {loss}")
            continue
        if loss:
            waived.append((unit, loss))
        take.append(unit)
        if holder.delivery_id != staged.delivery_id:
            replaced.append(Replaced(unit, holder.delivery_id, holder.path, before, facts))
    displaced = [] if staged.table != "billing" else _same_money(catalogue, staged, take)
    if displaced and not force:
        refused.extend(_told_twice(unit, staged.dataset) for unit in displaced)
    if refused:
        return Verdict(Status.REJECTED, _some(refused))
    if not take:
        return Verdict(Status.IGNORED_OLDER, _some(older))
    for unit in displaced:
        other = catalogue.deliveries[catalogue.active[unit]]
        facts = staged.units[as_dataset(unit, staged.dataset)]
        replaced.append(Replaced(unit, other.delivery_id, other.path, other.units[unit], facts))
    warnings = (f"kept what was loaded for {_some(older)}",) if older else ()
    return Verdict(
        Status.LOADED, None, tuple(take), tuple(displaced), tuple(replaced), warnings,
        tuple(waived), force,
    )  # fmt: skip


def _why_older(
    staged: StagedDelivery, facts: UnitFacts, holder: DeliveryRecord, before: UnitFacts
) -> str | None:
    if staged.version_time is not None and holder.version_time is not None:
        time = iso(staged.version_time)
        if time < holder.version_time:
            return f"its manifest is of {time}, that of {holder.path} of {holder.version_time}"
        return None
    if before.has_invoice and not facts.has_invoice:
        return f"it has no invoice ids, {holder.path} has them"
    return None


def _loss(staged: StagedDelivery, facts: UnitFacts, before: UnitFacts) -> str | None:
    if staged.table not in SHRINK_GUARDED or not before.rows:
        return None
    if not facts.rows:
        return f"it has no rows where {before.rows} were loaded before"
    if facts.has_invoice and not before.has_invoice:
        return None
    keep = 1 - MOST_LOST_SHARE
    if facts.cost is not None and before.cost is not None:
        if facts.cost < before.cost * keep:
            return _less_than_half(facts, before)
    elif facts.rows < before.rows * keep:
        return f"its {facts.rows} rows are less than half of the {before.rows} loaded before"
    return None


def _less_than_half(facts: UnitFacts, before: UnitFacts) -> str:
    """The loss in words: what the bills come to, and what is compared where that is not all."""
    bare = f"{money.text(facts.cost)} is less than half of the {money.text(before.cost)}"
    if facts.net is None or before.net is None:
        return f"its cost of {bare} loaded before, both summed without the signs of charges"
    if (facts.net, before.net) == (facts.cost, before.cost):
        return f"its cost of {bare} loaded before"
    return (
        f"its cost is {money.text(facts.net)} where {money.text(before.net)} was loaded before, "
        f"and the sum of its charges without their signs, {bare} of before"
    )


def refusal(lost: str, former: str, its_export: str | None, export: str | None) -> str:
    """What would be lost, and what to do; `former` is the path of what is held of `its_export`.

    >>> refusal("days would be lost", "a.csv", None, "gpu")
    'days would be lost; --force replaces it'
    >>> refusal("days would be lost", "a.csv", "gpu", "other")
    'it is of another export than a.csv, and days would be lost; name only one of them as a source'
    """
    if its_export is None or export is None or its_export == export:
        return f"{lost}; --force replaces it"
    other = f"it is of another export than {former}"
    return f"{other}, and {lost}; name only one of them as a source"


def as_dataset(unit: str, dataset: str) -> str:
    """The unit of the same account and period, read from another dataset."""
    source, account, _, period = unit.split("|")
    return "|".join((source, account, dataset, period))


def _same_money(catalogue: Catalogue, staged: StagedDelivery, take: list[str]) -> list[str]:
    """Active units of another dataset that state the money of a unit that is to be taken."""
    wanted = set(take)
    found = []
    for unit, holder in catalogue.active.items():
        record = catalogue.deliveries[holder]
        taken = as_dataset(unit, staged.dataset)
        if record.table != "billing" or taken == unit or taken not in wanted:
            continue
        is_pair = {unit.split("|")[2], staged.dataset} == TOLD_TWICE
        both = record.units[unit].states_both or staged.units[taken].states_both
        if not is_pair or both:
            found.append(unit)
    return sorted(found)


def _told_twice(unit: str, dataset: str) -> str:
    source, account, other, period = unit.split("|")
    return (
        f"{source} account {account} has dataset {other} for {period}, and {dataset} would count "
        f"the same money twice; name only one of them as a source (--force puts {dataset} in its "
        "place)"
    )


def _some(texts: list[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return "; ".join(texts[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
