"""What a plan rests on, and what of the last night's data was restated since."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from data import money
from data.lineage import Lineage, Restated, RestatedOption
from data.store import history
from data.store.history import UnitVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from data.hours import Window
    from data.plan import Plan
    from data.store import OptionChange

Versions = dict[str, tuple[UnitVersion, ...]]
_BY_HAND = "user"


def lineage(active: Mapping[str, str], window: Window) -> tuple[Lineage, ...]:
    """The deliveries that each cloud's part of the window is read from, sorted by cloud.

    `active` maps each unit of the store to the delivery it is read from. Tables that people keep
    by hand have no period and are in none.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for unit, delivery in active.items():
        cloud, _, _, period = unit.split("|")
        if cloud != _BY_HAND and _touches(period, window):
            found[cloud].add(delivery)
    return tuple(Lineage(cloud, tuple(sorted(ids))) for cloud, ids in sorted(found.items()))


def _touches(period: str, window: Window) -> bool:
    """True where the month or the day may hold hours of the window.

    Charges stand in the bill of the month before or after their hours too: such a month counts.
    """
    first, last = f"{window.start:%Y-%m-%d}", f"{window.end:%Y-%m-%d}"
    if len(period) == len(first):
        return first <= period <= last
    return len(period) == len("2026-11") and first[:7] <= period <= last[:7]


def with_advice(
    made: Iterable[Lineage], advised: Iterable[Mapping[str, object]]
) -> tuple[Lineage, ...]:
    """The lineage with the ids of the recommendations of each cloud, in their order."""
    ids: dict[str, list[str]] = defaultdict(list)
    for row in advised:
        ids[str(row["cloud"])].append(str(row["id"]))
    known = {one.cloud: one.deliveries for one in made}
    clouds = sorted({*known, *ids})
    return tuple(Lineage(name, known.get(name, ()), tuple(ids.get(name, ()))) for name in clouds)


def restated_since(
    last: Plan | None, versions: Mapping[str, Sequence[UnitVersion]], advised: Iterable[str]
) -> tuple[Restated, ...]:
    """The units of the last night's bill that were restated since, in order of unit and currency.

    Compared are the hours that the last night knew; what came on top of them is growth. `advised`
    are the ids of this night's recommendations.
    """
    if last is None:
        return ()
    now = set(advised)
    rested = {one.cloud: one for one in last.lineage}
    found = []
    for unit, kept in sorted(versions.items()):
        cloud, account, dataset, period = unit.split("|")
        basis = rested.get(cloud)
        start = history.place_of(kept, last.inputs if basis is None else basis.deliveries)
        if start is None or start == len(kept) - 1:
            continue
        ids = () if basis is None else basis.recommendations
        by_currency: dict[str, list[OptionChange]] = defaultdict(list)
        for one in history.restated(kept, start):
            by_currency[one.currency].append(one)
        for currency, changes in sorted(by_currency.items()):
            before = money.total(
                one.cost
                for one in kept[start].options
                if one.currency == currency and one.cost is not None
            )
            moved = money.total(one.cost for one in changes if one.cost is not None)
            found.append(
                Restated(
                    night=last.date, cloud=cloud, account=account, dataset=dataset, period=period,
                    currency=currency, before=before, after=money.total([before, moved]),
                    options=tuple(
                        RestatedOption(one.purchase_option, one.cost, one.gpu_hours)
                        for one in changes
                    ),
                    was=kept[start].deliveries[-1], now=kept[-1].deliveries[-1], rested=ids,
                    gone=tuple(one for one in ids if one not in now),
                )
            )  # fmt: skip
    return tuple(found)
