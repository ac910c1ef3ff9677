"""Reads what limits or dates a purchase: quotas, hourly availability, start and term."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import problem as ask
from planner.problem_fields import AMOUNT, SHARE, UNKNOWN_HOURS, Fields, join, nearest, show

if TYPE_CHECKING:
    import numpy as np

    from planner.problem_ids import Ids

HELD_FIELDS = ("start", "term")
AVAILABLE_FIELDS = ("spot_available", "on_demand_available")
_MOST_NAMED = 5  # regions that a remedy lists
_QUOTA_FIELDS = ("provider", "region", "gpus", "vcpus", "uses")


def held(entry: Fields, hours: int) -> tuple[int, int | None]:
    """Start and term of a commitment; the term is None where it ends with the file."""
    start = entry.whole("start", 0, 0)
    if hours != UNKNOWN_HOURS and start >= hours:
        what = f"must be <= {hours - 1}, the last hour, is {start}"
        entry.fault("start", what, "begin within the file, or leave the commitment out")
    return start, entry.whole("term", 1) if "term" in entry.record else None


def offer_shares(entry: Fields, name: str, hours: int) -> tuple[float, ...] | None:
    """Hourly shares (0 to 1) of an offer, None where the field is left out."""
    if entry.missing(name, required=False):
        return None
    return tuple(entry.series(name, entry.label, hours, SHARE).tolist())


def scenario_shares(scenario: Fields, name: str, ids: Ids, hours: int) -> dict[str, np.ndarray]:
    """Hourly shares of each offer that a scenario names."""
    record = scenario.mapping(name)
    entry = Fields(record, join(scenario.path, name), scenario.label, scenario.faults)
    if ids.offers_told:
        entry.only(ids.offers, "offer")
    return {
        key: entry.series(key, f"offer {show(key)}, {scenario.label}", hours, SHARE)
        for key in record
        if key in ids.offers
    }


def quotas(top: Fields, ids: Ids) -> tuple[ask.Quota, ...]:
    """Quotas, each of GPUs or vCPUs, at most one for a provider, region and use."""
    found = []
    first: dict[tuple[str, str, ask.QuotaUse], int] = {}
    for index, record in top.records("quotas"):
        entry = Fields(record, f"quotas[{index}]", "", top.faults)
        entry.only(_QUOTA_FIELDS)
        pair = (entry.text("provider"), entry.text("region"))
        uses = _uses(entry)
        if isinstance(record.get("provider"), str) and isinstance(record.get("region"), str):
            names = f"{show(pair[0])} in {show(pair[1])}"
            if ids.regions_told and pair not in ids.regions:
                entry.fault("region", f"no offer is of {names}", _known_regions(ids))
            taken = [use for use in uses if first.setdefault((*pair, use), index) != index]
            for other in sorted({first[*pair, use] for use in taken}):
                _overlap(entry, names, f"quotas[{other}]", taken)
        gpus, vcpus = _limit(entry)
        if vcpus is not None:
            _need_vcpus(top, pair, entry.path)
        found.append(ask.Quota(*pair, gpus, vcpus, uses))
    return tuple(found)


def _known_regions(ids: Ids) -> str:
    """The remedy for a provider and region of no offer."""
    pairs = [f"{show(provider)} in {show(region)}" for provider, region in sorted(ids.regions)]
    return f"leave it out, or name one of: {', '.join(pairs[:_MOST_NAMED])}"


def _uses(entry: Fields) -> tuple[ask.QuotaUse, ...]:
    if "uses" not in entry.record:
        return tuple(ask.QuotaUse)
    if entry.record["uses"] == []:
        what = 'must hold "on_demand", "spot" or both'
        entry.fault("uses", what, "leave uses out where the quota limits both")
        return tuple(ask.QuotaUse)
    given = entry.names("uses")
    known = [str(use) for use in ask.QuotaUse]
    for name in given:
        if name not in known:
            what = f'must be "on_demand" or "spot", is {show(name)}'
            entry.fault("uses", what, nearest(name, known) or "leave it out")
    return tuple(use for use in ask.QuotaUse if str(use) in given)


def _overlap(entry: Fields, names: str, other: str, uses: list[ask.QuotaUse]) -> None:
    if len(uses) == len(ask.QuotaUse):
        entry.fault("region", f"repeats {names} of {other}", "leave one of them out")
        return
    use = ", ".join(uses)
    name = "uses" if "uses" in entry.record else "region"
    what = f"{use} of {names} is limited by {other} already"
    entry.fault(name, what, "name each use in one quota only")


def _limit(entry: Fields) -> tuple[float | None, float | None]:
    """GPUs or vCPUs, whichever the quota counts."""
    if "vcpus" not in entry.record:
        return entry.number("gpus", AMOUNT), None
    if "gpus" in entry.record:
        entry.fault("vcpus", "a quota has either gpus or vcpus, not both", "leave one of them out")
    return None, entry.number("vcpus", AMOUNT)


def _need_vcpus(top: Fields, pair: tuple[str, str], quota: str) -> None:
    """Note each offer of the provider and region that does not tell its vCPUs."""
    offers = top.record.get("offers")
    for index, record in enumerate(offers if isinstance(offers, list) else []):
        if not isinstance(record, dict) or "vcpus" in record:
            continue
        if (record.get("provider"), record.get("region")) == pair:
            label = f"offer {show(record.get('id'))}"
            entry = Fields(record, f"offers[{index}]", label, top.faults)
            what = f"required, as {quota} counts vCPUs, and missing"
            entry.fault("vcpus", what, "add the vCPUs of one instance")
