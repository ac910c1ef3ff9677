"""Reads what limits or dates a purchase: quotas, hourly availability, start and term."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import problem as ask
from planner.problem_fields import AMOUNT, SHARE, Fields, join, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

HELD_FIELDS = ("start", "term")
AVAILABLE_FIELDS = ("spot_available", "on_demand_available")
_QUOTA_FIELDS = ("provider", "region", "gpus", "vcpus", "uses")


def held(entry: Fields, hours: int) -> tuple[int, int | None]:
    """Start and term of a commitment; the term is None where it ends with the file."""
    start = entry.whole("start", 0, 0)
    if start >= hours:
        entry.fault("start", f"must be <= {hours - 1}, the last hour, is {start}")
    return start, entry.whole("term", 1) if "term" in entry.record else None


def offer_shares(entry: Fields, name: str, hours: int) -> tuple[float, ...] | None:
    """Hourly shares (0 to 1) of an offer, None where the field is left out."""
    if entry.missing(name, required=False):
        return None
    return tuple(entry.series(name, entry.label, hours, SHARE).tolist())


def scenario_shares(
    scenario: Fields, name: str, offers: Iterable[str], hours: int
) -> dict[str, np.ndarray]:
    """Hourly shares of each offer that a scenario names."""
    record = scenario.mapping(name)
    known = sorted(offers)
    entry = Fields(record, join(scenario.path, name), scenario.label, scenario.faults)
    entry.only(known)
    return {
        key: entry.series(key, f"offer {show(key)}, {scenario.label}", hours, SHARE)
        for key in record
        if key in known
    }


def quotas(top: Fields, regions: set[tuple[str, str]]) -> tuple[ask.Quota, ...]:
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
            if pair not in regions:
                entry.fault("region", f"no offer is of {names}")
            taken = [use for use in uses if first.setdefault((*pair, use), index) != index]
            for other in sorted({first[*pair, use] for use in taken}):
                _overlap(entry, names, f"quotas[{other}]", taken)
        gpus, vcpus = _limit(entry)
        if vcpus is not None:
            _need_vcpus(top, pair, entry.path)
        found.append(ask.Quota(*pair, gpus, vcpus, uses))
    return tuple(found)


def _uses(entry: Fields) -> tuple[ask.QuotaUse, ...]:
    if "uses" not in entry.record:
        return tuple(ask.QuotaUse)
    given = entry.names("uses")
    known = [str(use) for use in ask.QuotaUse]
    for name in given:
        if name not in known:
            entry.fault("uses", f'must be "on_demand" or "spot", is {show(name)}')
    return tuple(use for use in ask.QuotaUse if str(use) in given)


def _overlap(entry: Fields, names: str, other: str, uses: list[ask.QuotaUse]) -> None:
    if len(uses) == len(ask.QuotaUse):
        entry.fault("region", f"repeats {names} of {other}")
        return
    use = ", ".join(uses)
    name = "uses" if "uses" in entry.record else "region"
    entry.fault(name, f"{use} of {names} is limited by {other} already")


def _limit(entry: Fields) -> tuple[float | None, float | None]:
    """GPUs or vCPUs, whichever the quota counts."""
    if "vcpus" not in entry.record:
        return entry.number("gpus", AMOUNT), None
    if "gpus" in entry.record:
        entry.fault("vcpus", "a quota has either gpus or vcpus, not both")
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
            entry.fault("vcpus", f"required, as {quota} counts vCPUs, and missing")
