"""What the lists of a problem file declare, for the references between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.problem_fields import Faults, Fields


@dataclass(slots=True)
class Ids:
    """Ids, kinds and regions, and whether all of them could be read.

    Where one could not, a reference to what is not there is no fault of its own.
    """

    offers: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    regions: set[tuple[str, str]] = field(default_factory=set)
    classes_told: bool = False
    offers_told: bool = False
    regions_told: bool = False


def declared(top: Fields) -> Ids:
    """Ids, kinds and regions of the lists, read without noting faults."""
    ids = Ids()
    quiet = Fields(top.record, "", "", Faults())
    for _, record in quiet.records("classes"):
        if isinstance(record.get("id"), str):
            ids.kinds.setdefault(str(record["id"]), str(record.get("kind")))
    for _, record in quiet.records("offers"):
        if isinstance(record.get("id"), str):
            ids.offers.add(str(record["id"]))
        if isinstance(record.get("provider"), str):
            ids.regions.add((str(record["provider"]), str(record.get("region"))))
    ids.classes_told = _all_tell(top.record.get("classes"), "id")
    ids.offers_told = _all_tell(top.record.get("offers"), "id")
    ids.regions_told = _all_tell(top.record.get("offers"), "provider", "region")
    return ids


def _all_tell(records: object, *names: str) -> bool:
    """Whether it is a list of objects, at least one, each with a string in all those fields."""
    return (
        isinstance(records, list)
        and bool(records)
        and all(
            isinstance(one, dict) and all(isinstance(one.get(name), str) for name in names)
            for one in records
        )
    )
