"""What the store is given, what it answers, and what it remembers of a delivery."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from data import money
from data.store.history import option_rows, restated

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from data.store.history import UnitVersion


class Status(StrEnum):
    """What became of a delivery."""

    LOADED = "loaded"
    UNCHANGED = "unchanged"
    IGNORED_OLDER = "ignored_older"
    REJECTED = "rejected"


def unit_name(source: str, account: str, dataset: str, period: str) -> str:
    """The replacement unit as one text.

    >>> unit_name("aws", "0099", "cur", "2026-11")
    'aws|0099|cur|2026-11'
    """
    return "|".join(part.replace("|", "/") for part in (source, account, dataset, period))


def delivery_id(sha256: str, dataset: str, manifest_id: str | None = None, period: str = "") -> str:
    """The id of a delivery, safe as a folder name: of its manifest if it has one, else its content.

    The dataset is part of the id of a lone file, because `--dataset` can load one file as another.

    >>> delivery_id("3f2a9c01d4e5b6a7ffff", "cur")
    '3f2a9c01d4e5b6a7-cur'
    >>> delivery_id("3f2a9c01d4e5b6a7ffff", "cur", "20261101T00:00Z", "2026-11")
    '20261101T00_00Z-2026-11'
    """
    if manifest_id is None:
        return f"{sha256[:16]}-{dataset}"
    plain = f"{manifest_id}-{period}" if period else manifest_id
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", plain).strip(".") or "delivery"
    if len(safe) > 120:
        safe = f"{safe[:100]}-{hashlib.sha256(plain.encode()).hexdigest()[:16]}"
    return safe


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """What ranking asks of one unit of a delivery.

    `net` is the sum of the effective cost of its rows (billed where the export states no effective
    cost), None where it states neither, where currencies are mixed, and of deliveries that were
    loaded before it was kept. `cost` is the sum of the same amounts without their signs: it tells
    that charges are gone also where credits outweigh them, and is for comparison alone.
    `has_invoice` is true if a row has an invoice id; `states_both` if its rows state billed and
    effective cost.
    """

    rows: int
    has_invoice: bool = False
    cost: Decimal | None = None
    states_both: bool = False
    net: Decimal | None = None

    def as_json(self) -> dict[str, Any]:
        """The facts as the catalogue keeps them."""
        return {
            "rows": self.rows,
            "has_invoice": self.has_invoice,
            "cost": money.text(self.cost),
            "net_cost": money.text(self.net),
            "states_both": self.states_both,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> UnitFacts:
        """The facts as the catalogue kept them."""
        cost, net = (
            None if amount is None else Decimal(amount)
            for amount in (record["cost"], record.get("net_cost"))
        )
        both = bool(record["states_both"])
        return UnitFacts(int(record["rows"]), bool(record["has_invoice"]), cost, both, net)


@dataclass(frozen=True, slots=True)
class StagedDelivery:
    """A delivery in normal form, written to a staging folder and not yet part of the store.

    `path` is what is shown to people; `folder` holds `<table>.parquet` with exactly the declared
    columns, its `export_id` equal to `delivery_id` and its `unit` among `units`; `sha256` is that
    of the content as it arrived; `version_time` that of the manifest, None without one; `quality`
    are rows of QUALITY found while reading; `export` tells the export that it is of from others,
    None for a lone file; `is_dated` is false where the time is only that of a file on this disk;
    `written` is when files without a manifest were written to their bucket, which ranks nothing.
    """

    path: str
    table: str
    source: str
    dataset: str
    delivery_id: str
    folder: Path
    sha256: str
    units: dict[str, UnitFacts]
    rows: int
    billing_periods: tuple[str, ...]
    version_time: datetime | None = None
    warnings: tuple[str, ...] = ()
    quality: tuple[dict[str, Any], ...] = ()
    export: str | None = None
    is_dated: bool = True
    written: datetime | None = None


@dataclass(frozen=True, slots=True)
class Replaced:
    """One unit that a delivery took over: from which delivery, and what it held before and now.

    `versions` are the totals of both, None for tables that hold no bill.
    """

    unit: str
    delivery_id: str
    path: str
    before: UnitFacts
    after: UnitFacts
    versions: tuple[UnitVersion, UnitVersion] | None = None

    def as_json(self) -> dict[str, Any]:
        """The replacement as `load --json` writes it.

        `cost_before` and `cost_after` are signed sums: credits and refunds take away. `by_option`
        has both totals by way of paying; `restated` what changed in the hours that the former
        delivery held too.
        """
        return self._plain() | ({} if self.versions is None else self._by_option(*self.versions))

    def sentence(self) -> str:
        """What was replaced by what, in words: units, paths, and the days that each covers."""
        spans = ["", ""]
        if self.versions is not None:
            spans = [_span(one.first, one.until) for one in self.versions]
        return f"replaces {self.unit} of {self.path}{spans[0]}" + (
            f" by{spans[1]}" if spans[1] else ""
        )

    def _by_option(self, former: UnitVersion, later: UnitVersion) -> dict[str, Any]:
        return {
            "from_before": former.first,
            "until_before": former.until,
            "from_after": later.first,
            "until_after": later.until,
            "by_option": option_rows(former.options, later.options),
            "restated": [
                {
                    "purchase_option": one.purchase_option,
                    "currency": one.currency,
                    "cost": money.text(one.cost),
                    "billed_cost": money.text(one.billed_cost),
                    "instance_hours": money.text(one.instance_hours),
                    "gpu_hours": money.text(one.gpu_hours),
                }
                for one in restated((former, later))
            ],
        }

    def _plain(self) -> dict[str, Any]:
        former, later = (None, None) if self.versions is None else self.versions
        return {
            "unit": self.unit,
            "delivery_id": self.delivery_id,
            "path": self.path,
            "rows_before": self.before.rows,
            "rows_after": self.after.rows,
            "cost_before": money.text(_signed(self.before, former)),
            "cost_after": money.text(_signed(self.after, later)),
        }


def _signed(facts: UnitFacts, version: UnitVersion | None) -> Decimal | None:
    """What a unit comes to: as kept, else by the totals of its version, if of one currency."""
    if facts.net is not None or version is None:
        return facts.net
    stated = [one.cost for one in version.options if one.cost is not None]
    if not stated or len({one.currency for one in version.options}) > 1:
        return None
    return money.total(stated)


def _span(first: str | None, until: str | None) -> str:
    return f" {first[:16]} to {until[:16]}" if first and until else ""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What became of one delivery, and why."""

    path: str
    source: str
    dataset: str
    delivery_id: str
    billing_periods: tuple[str, ...]
    rows: int
    status: Status
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    replaced: tuple[Replaced, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The result as `load --json` writes it."""
        return {
            "path": self.path,
            "source": self.source,
            "dataset": self.dataset,
            "delivery_id": self.delivery_id,
            "billing_periods": list(self.billing_periods),
            "rows": self.rows,
            "status": str(self.status),
            "reason": self.reason,
            "warnings": list(self.warnings),
            "replaced": [one.as_json() for one in self.replaced],
        }


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """What the catalogue remembers of a delivery. `sequence` counts publications from 1."""

    delivery_id: str
    folder: str
    table: str
    source: str
    dataset: str
    path: str
    sha256: str
    version_time: str | None
    rows: int
    billing_periods: tuple[str, ...]
    sequence: int
    units: dict[str, UnitFacts]
    warnings: tuple[str, ...] = ()
    quality: tuple[dict[str, Any], ...] = ()
    export: str | None = None

    def unchanged(self, path: str) -> DeliveryResult:
        """The answer to a delivery that is this one again, found at the path."""
        return DeliveryResult(
            path=path,
            source=self.source,
            dataset=self.dataset,
            delivery_id=self.delivery_id,
            billing_periods=self.billing_periods,
            rows=self.rows,
            status=Status.UNCHANGED,
            warnings=self.warnings,
        )

    def as_json(self) -> dict[str, Any]:
        """The record as the catalogue keeps it."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["units"] = {unit: facts.as_json() for unit, facts in sorted(self.units.items())}
        return plain

    @staticmethod
    def from_json(record: dict[str, Any]) -> DeliveryRecord:
        """The record as the catalogue kept it."""
        plain = dict(record)
        plain["units"] = {u: UnitFacts.from_json(facts) for u, facts in record["units"].items()}
        for name in ("billing_periods", "warnings", "quality"):
            plain[name] = tuple(record[name])
        return DeliveryRecord(**plain)
