"""What deliveries changed after the fact: restated periods, forced losses, exports that overlap.

Everything is told from the catalogue's history of each unit: the manifests' times and the totals
by way of paying. Nothing here looks at a clock.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

from data import money
from data.quality import Finding
from data.store import history

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from data.store import OptionChange, UnitVersion

# Of each source, account and dataset, the periods whose versions are told one by one.
NEWEST_PERIODS = 3
_CENT = Decimal("0.01")


def findings(versions: Mapping[str, Sequence[UnitVersion]]) -> list[Finding]:
    """Rows of QUALITY on the units of the bill and their versions, oldest version first."""
    found: list[Finding] = []
    told = _newest(versions)
    for unit, kept in sorted(versions.items()):
        if not kept:
            continue
        found += _restated(unit, kept)
        found += _forced(unit, kept)
        found += _overlaps(unit, kept)
        if unit in told:
            found += _delivered(unit, kept)
    return found


def scope(unit: str) -> str:
    """The unit as the quality table names it.

    >>> scope("aws|0099|cur|2026-11")
    'aws/0099/cur/2026-11'
    """
    return "/".join(unit.split("|"))


def _newest(versions: Mapping[str, Sequence[UnitVersion]]) -> set[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for unit in versions:
        groups[unit.rpartition("|")[0]].append(unit)
    return {unit for units in groups.values() for unit in sorted(units)[-NEWEST_PERIODS:]}


def _restated(unit: str, kept: Sequence[UnitVersion]) -> list[Finding]:
    by_currency: dict[str, list[OptionChange]] = defaultdict(list)
    for one in history.restated(kept):
        by_currency[one.currency].append(one)
    times = sum(
        bool(history.restated((former, later))) for former, later in itertools.pairwise(kept)
    )
    found = []
    for currency, changes in sorted(by_currency.items()):
        amount = money.total(one.cost for one in changes if one.cost is not None)
        before = money.total(
            one.cost for one in kept[0].options if one.currency == currency and one.cost is not None
        )
        newest = kept[-1]
        since = f", last by the delivery of {newest.changed}" if newest.changed else ""
        detail = (
            f"{_plain(before)} -> {_plain(money.total([before, amount]))} in the hours that were "
            f"there before{since}: {'; '.join(map(_words, changes))}"
        )
        found.append(
            Finding("restated_period", scope(unit), "info", detail, times, amount, currency)
        )
    return found


def _words(one: OptionChange) -> str:
    parts = [one.purchase_option]
    if one.cost:
        parts.append(_signed(one.cost))
    elif one.billed_cost:
        parts.append(f"billed {_signed(one.billed_cost)}")
    if one.gpu_hours:
        parts.append(f"{_signed(one.gpu_hours)} GPU-hours")
    elif one.instance_hours:
        parts.append(f"{_signed(one.instance_hours)} instance-hours")
    return " ".join(parts)


def _forced(unit: str, kept: Sequence[UnitVersion]) -> list[Finding]:
    """A loss that somebody forced: a warning until another delivery says the same."""
    newest = kept[-1]
    if newest.waived is None:
        return []
    severity = "warning" if len(newest.deliveries) == 1 else "info"
    detail = f"{newest.path} was loaded with --force although {newest.waived.partition(';')[0]}"
    return [Finding("forced_loss", scope(unit), severity, detail, len(newest.deliveries))]


def _overlaps(unit: str, kept: Sequence[UnitVersion]) -> list[Finding]:
    """Two exports that deliver one period: a warning where they take turns."""
    exports = [one.export for one in kept if one.export is not None]
    changes = [one for n, one in enumerate(exports) if not n or exports[n - 1] != one]
    if len(changes) < 2:
        return []
    turns = len(changes) > len(set(changes))
    detail = (
        f"delivered by {len(set(changes))} exports ({', '.join(sorted(set(changes)))}); each "
        "charge counts once, of the newest delivery"
    )
    if turns:
        detail += ": they replace one another, so name only one of them as a source"
    return [
        Finding("overlapping_exports", scope(unit), "warning" if turns else "info", detail,
                len(set(changes)))
    ]  # fmt: skip


def _delivered(unit: str, kept: Sequence[UnitVersion]) -> list[Finding]:
    """When the unit was last delivered, and last changed, as far as manifests tell."""
    newest = kept[-1]
    if newest.confirmed is None:
        return []
    changed = f"it last changed with that of {newest.changed}"
    if newest.changed == newest.confirmed:
        changed = "that delivery changed it" if len(kept) > 1 else "nothing has changed it since"
    detail = f"last delivered at {newest.confirmed}; {changed}; {len(kept)} versions are known"
    if len(kept) == 1:
        detail = f"last delivered at {newest.confirmed}; {changed}"
    return [Finding("last_delivered", scope(unit), "info", detail, len(kept))]


def _plain(amount: Decimal) -> str:
    return f"{amount.quantize(_CENT):,}"


def _signed(amount: Decimal) -> str:
    return f"{amount.quantize(_CENT):+,}"


def deliveries_of(units: Iterable[str], active: Mapping[str, str]) -> tuple[str, ...]:
    """The ids of the deliveries that the units are read from, sorted, each once."""
    return tuple(sorted({active[unit] for unit in units if unit in active}))
