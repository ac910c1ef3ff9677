"""What a night says of the sources that it could not fetch: why, and what it knows of their bills.

Which deliveries are a source's own is told by its landing's memory, and by where they lay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.hours import day_start, iso
from data.plan import Freshness
from data.quality import Finding
from planner.cli.sources import landing_of
from planner.freshness import newest_of
from planner.settings.sources import FilesSource, Pulled
from providers.fetch.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from data.store import Store
    from planner.cli.sources import Outcome
    from planner.session import Session
    from planner.settings.sources import Source

CHECK = "not_fetched"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Unfetched:
    """One source that gave nothing: why, and one Freshness for each account read from it before.

    `has_bill` is false where the source is of a kind that has none, or names none.
    """

    source: str
    kind: str
    why: str
    has_bill: bool
    accounts: tuple[Freshness, ...]

    @property
    def finding(self) -> Finding:
        """The source as a row of QUALITY."""
        count = len(self.accounts) or None
        return Finding(CHECK, f"source {self.source}", "warning", self.detail, count)

    @property
    def detail(self) -> str:
        """What a person reads after the source's name."""
        if not self.has_bill:
            return f"was not fetched: {self.why}"
        if not self.accounts:
            return f"was not fetched, and no bill was ever read from it: {self.why}"
        told = [f"{one.account} to {one.data_to[:16]}Z" for one in self.accounts[:_MOST_NAMED]]
        more = len(self.accounts) - _MOST_NAMED
        named = ", ".join(told) + (f" and {more} more" if more > 0 else "")
        return f"was not fetched, its data stays (account {named}): {self.why}"


def unfetched(run: Session, outcomes: Sequence[Outcome]) -> tuple[Unfetched, ...]:
    """Every source that failed, or that gave no delivery and says why, in the order given."""
    found = []
    for one in outcomes:
        why = _why(one)
        if why is None:
            continue
        source = run.settings.sources[one.source]
        has_bill = isinstance(source, FilesSource) or (
            isinstance(source, Pulled) and source.billing is not None
        )
        accounts = _accounts(run, one.source, source) if has_bill else ()
        found.append(Unfetched(one.source, one.kind, why, has_bill, accounts))
    return tuple(found)


def _why(outcome: Outcome) -> str | None:
    if outcome.error is not None:
        return outcome.error.one_line
    if outcome.deliveries or not outcome.warnings:
        return None
    return "; ".join(outcome.warnings)


def _accounts(run: Session, name: str, source: Source) -> tuple[Freshness, ...]:
    """How far the active bills of a source reach, by account."""
    run.store.refresh()
    own = set(_own_deliveries(run, name, source))
    units: dict[tuple[str, str], list[str]] = {}
    for unit, holder in run.store.active().items():
        cloud, account, *_ = unit.split("|")
        if holder in own:
            units.setdefault((cloud, account), []).append(unit)
    found = []
    for (cloud, account), held in sorted(units.items()):
        end = _end(run.store, held, run.as_of)
        if end is not None:
            found.append(Freshness(cloud, "billing", account, end, stale=True))
    return tuple(found)


def _end(store: Store, units: Sequence[str], as_of: date) -> str | None:
    newest = newest_of(store, units)
    return None if newest is None else iso(min(newest, day_start(as_of)))


def _own_deliveries(run: Session, name: str, source: Source) -> Iterator[str]:
    remembered = Index.read(landing_of(run.store.path, name)).deliveries.values()
    yield from (one.delivery_id for one in remembered)
    places = _places(run, source)
    for record in run.store.deliveries():
        # A place ends at a folder's slash, at the blank before a table's month, or with the path.
        if any(f"{record.path}/".startswith((f"{place}/", f"{place} ")) for place in places):
            yield record.delivery_id


def _places(run: Session, source: Source) -> tuple[str, ...]:
    if isinstance(source, FilesSource):
        return tuple(str(run.settings.path(text)) for text in source.paths)
    if isinstance(source, Pulled) and source.billing is not None:
        return (source.billing.strip().rstrip("/"),)
    return ()
