"""The catalogue: which deliveries the store holds, and which of them each unit is read from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.errors import StoreError
from data.store.history import UnitVersion
from data.store.records import DeliveryRecord

if TYPE_CHECKING:
    from pathlib import Path

FILE = "catalogue.json"
FORMAT = "loadfactor-store"
VERSION = 2  # 1 kept no history of the units


@dataclass(frozen=True, slots=True)
class Superseded:
    """A delivery none of whose rows are read any more: its content, and what took its place."""

    delivery_id: str
    table: str
    dataset: str
    sha256: str
    path: str
    replaced_by: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`active` maps a unit to the id of the delivery it is read from; `sequence` counts writes.

    `history` has the last versions of each unit of the bill, oldest first; a catalogue of version
    1 has none, and the next replacement of a unit begins it.
    """

    deliveries: dict[str, DeliveryRecord] = field(default_factory=dict)
    active: dict[str, str] = field(default_factory=dict)
    superseded: tuple[Superseded, ...] = ()
    sequence: int = 0
    history: dict[str, tuple[UnitVersion, ...]] = field(default_factory=dict)

    def holder(self, unit: str) -> DeliveryRecord | None:
        """The delivery that the unit is read from, None where nothing was loaded for it."""
        holder = self.active.get(unit)
        return None if holder is None else self.deliveries[holder]

    def active_units(self, delivery: str) -> list[str]:
        """Units that are read from the delivery, sorted."""
        return sorted(unit for unit, holder in self.active.items() if holder == delivery)

    def text(self) -> str:
        """The catalogue as its file holds it."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "sequence": self.sequence,
            "deliveries": {name: one.as_json() for name, one in sorted(self.deliveries.items())},
            "active": dict(sorted(self.active.items())),
            "superseded": [
                {name: getattr(one, name) for name in Superseded.__slots__}
                for one in self.superseded
            ],
            "history": {
                unit: [one.as_json() for one in versions]
                for unit, versions in sorted(self.history.items())
            },
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read(store: Path) -> Catalogue:
    """The catalogue of the store folder, an empty one where there is none yet.

    Raises StoreError where it is damaged or was written by a newer version.
    """
    path = store / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Catalogue()
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error
    try:
        document = json.loads(text)
    except ValueError as error:
        raise _damaged(path, f"not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _damaged(path, f"its format is not {FORMAT!r}")
    version = document.get("version")
    if not isinstance(version, int) or version < 1:
        raise _damaged(path, f"its version is {version!r}")
    if version > VERSION:
        raise StoreError(
            f"the store {store} was written by a newer loadfactor: its version is {version}, this "
            f"program reads up to version {VERSION}. Upgrade loadfactor, or use another store "
            "(--store) and load the files again."
        )
    return _parsed(path, document)


def _parsed(path: Path, document: dict[str, Any]) -> Catalogue:
    try:
        catalogue = Catalogue(
            {name: DeliveryRecord.from_json(one) for name, one in document["deliveries"].items()},
            dict(document["active"]),
            tuple(Superseded(**one) for one in document["superseded"]),
            int(document["sequence"]),
            {
                unit: tuple(UnitVersion.from_json(one) for one in versions)
                for unit, versions in document.get("history", {}).items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise _damaged(path, f"{type(error).__name__} {error}") from error
    unknown = sorted(set(catalogue.active.values()) - set(catalogue.deliveries))
    if unknown:
        raise _damaged(path, f"it reads units from deliveries it does not list: {unknown[:3]}")
    return catalogue


def _damaged(path: Path, what: str) -> StoreError:
    return StoreError(
        f"the catalogue {path} cannot be read: {what}. Put back a copy of that file, or move the "
        "store folder away and load the exports again."
    )
