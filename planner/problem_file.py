"""Reads `loadfactor-problem/1`: bytes in, a Problem out, or every fault of the file at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from data.errors import ConfigError, Problem
from planner import problem as ask
from planner.problem_fields import (
    AMOUNT,
    PRICE,
    SHARE,
    UNKNOWN_HOURS,
    Faults,
    Fields,
    Limits,
    join,
    nearest,
    show,
)
from planner.problem_ids import declared
from planner.problem_limits import (
    AVAILABLE_FIELDS,
    HELD_FIELDS,
    held,
    offer_shares,
    quotas,
    scenario_shares,
)
from planner.strict_json import Token, decode

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from planner.problem_ids import Ids

_P_TOLERANCE = 1e-9
_PROBLEM_FIELDS = (
    "format", "id", "title", "hours", "hour_weight", "classes", "offers", "scenarios",
    "on_demand_integer", "savings_plans", "quotas", "blocks", "upfront_budget",
    "commitment_limits", "cvar", "optimal_objective",
)  # fmt: skip
_CLASS_FIELDS = (
    "id", "kind", "offers", "shortage_penalty", "window", "min_firm_share",
    "spot_max_share_per_offer",
)  # fmt: skip
_OFFER_FIELDS = (
    "id", "provider", "region", "gpus", "on_demand", "reservations", "spot", "spot_throughput",
    "sp_rate", "existing", "egress", "vcpus", *AVAILABLE_FIELDS,
)  # fmt: skip
_BLOCK_FIELDS = ("id", "offer", "gpus", "start", "length", "price", "max")


def read(path: Path) -> ask.Problem:
    """The problem of a `.json` or `.json.gz` file.

    Raises ConfigError with every fault of the file, each under its path and id.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        fault = Problem(str(path), reason, "name a file that can be read")
        raise ConfigError(f"{path} cannot be read", [fault]) from None
    document = decode(raw, str(path))
    faults = Faults(list(document.faults))
    found = _problem(document.value, faults)
    if document.has_tokens:
        _name_tokens(document.value, "", faults)
    return _checked(found, faults, str(path))


def parse(document: object, name: str = "problem") -> ask.Problem:
    """The problem of a document already decoded, such as one built in memory.

    Raises ConfigError with every fault, each under its path and id.
    """
    faults = Faults()
    return _checked(_problem(document, faults), faults, name)


def _checked(found: ask.Problem | None, faults: Faults, name: str) -> ask.Problem:
    if faults.found or found is None:
        count = len(set(faults.found))
        fault = "1 fault" if count == 1 else f"{count} faults"
        raise ConfigError(f"{name}: {fault}, nothing solved", faults.found)
    return found


def _problem(document: object, faults: Faults) -> ask.Problem | None:
    if not isinstance(document, dict):
        what = f"must be an object, is {show(document)}"
        faults.add("document", what, "write one problem, in { }")
        return None
    top = Fields(document, "", "", faults)
    top.only(_PROBLEM_FIELDS)
    form = top.text("format", ask.FORMAT)
    if form != ask.FORMAT:
        what = f"must be {show(ask.FORMAT)}, is {show(form)}"
        top.fault("format", what, "leave it out, or convert the file")
    before = len(faults.found)
    hours = top.whole("hours", 1)
    if len(faults.found) > before:
        hours = UNKNOWN_HOURS
    ids = declared(top)
    return ask.Problem(
        hours=hours,
        classes=_classes(top, ids),
        offers=_offers(top, ids, hours),
        scenarios=_scenarios(top, ids, hours),
        hour_weight=top.number("hour_weight", PRICE, 1.0),
        on_demand_integer=top.flag("on_demand_integer"),
        savings_plans=_savings_plans(top, ids, hours),
        quotas=quotas(top, ids),
        blocks=_blocks(top, ids, hours),
        upfront_budget=top.number_or_null("upfront_budget", AMOUNT),
        commitment_limits=_commitment_limits(top, ids),
        cvar=_cvar(top),
        id=top.text("id", ""),
        title=top.text("title", ""),
        optimal_objective=_optimum(top),
    )


def _optimum(top: Fields) -> float | None:
    if "optimal_objective" not in top.record:
        return None
    return top.number("optimal_objective", Limits())


def _entries(parent: Fields, name: str, noun: str, *, required: bool = False) -> list[Fields]:
    """The objects of a list, each labelled by its id; a repeated id is noted with both places."""
    found: list[Fields] = []
    first: dict[str, int] = {}
    for index, record in parent.records(name, required=required):
        key = record.get("id")
        own = f"{noun} {show(key)}" if isinstance(key, str) else ""
        label = ", ".join(part for part in (parent.label, own) if part)
        entry = Fields(record, join(parent.path, f"{name}[{index}]"), label, parent.faults)
        if isinstance(key, str) and first.setdefault(key, index) != index:
            other = join(parent.path, f"{name}[{first[key]}]")
            entry.fault("id", f"repeats the id of {other}", "give each an id of its own")
        found.append(entry)
    return found


def _classes(top: Fields, ids: Ids) -> tuple[ask.ProblemClass, ...]:
    found = []
    for entry in _entries(top, "classes", "class", required=True):
        entry.only(_CLASS_FIELDS)
        kind, window = _kind(entry)
        found.append(
            ask.ProblemClass(
                id=entry.text("id"),
                kind=kind,
                offers=_known_offers(entry, ids),
                shortage_penalty=entry.number("shortage_penalty", PRICE),
                window=window,
                min_firm_share=entry.number("min_firm_share", SHARE, 0.0),
                spot_max_share_per_offer=entry.number_or_null("spot_max_share_per_offer", SHARE),
            )
        )
    return tuple(found)


def _known_offers(entry: Fields, ids: Ids) -> tuple[str, ...]:
    offers = entry.names("offers")
    for offer in offers:
        if ids.offers_told and offer not in ids.offers:
            entry.unknown("offers", "offer", (offer, ids.offers))
    return offers


def _kind(entry: Fields) -> tuple[ask.ClassKind, int]:
    kind = entry.text("kind")
    if kind == ask.ClassKind.DEFERRABLE:
        return ask.ClassKind.DEFERRABLE, entry.whole("window", 0)
    if kind == ask.ClassKind.FIRM:
        if "window" in entry.record:
            entry.fault("window", "a firm class has no window", "drop it, or make it deferrable")
    elif isinstance(entry.record.get("kind"), str):
        what = f'must be "firm" or "deferrable", is {show(kind)}'
        names = [str(one) for one in ask.ClassKind]
        entry.fault("kind", what, nearest(kind.lower(), names) or "write one of the two")
    return ask.ClassKind.FIRM, 0


def _offers(top: Fields, ids: Ids, hours: int) -> tuple[ask.Offer, ...]:
    found = []
    for entry in _entries(top, "offers", "offer", required=True):
        entry.only(_OFFER_FIELDS)
        throughput = Limits(above=0, high=1)
        sold_as_spot = entry.has("spot")
        with_throughput = sold_as_spot or "spot_throughput" in entry.record
        found.append(
            ask.Offer(
                id=entry.text("id"),
                provider=entry.text("provider"),
                region=entry.text("region"),
                gpus=entry.whole("gpus", 1),
                on_demand=entry.number_or_null("on_demand", PRICE, required=True),
                reservations=_reservations(entry, hours),
                spot=entry.number_or_null("spot", PRICE),
                spot_throughput=(
                    entry.number("spot_throughput", throughput) if with_throughput else 1.0
                ),
                sp_rate=entry.number_or_null("sp_rate", PRICE),
                existing=_existing(entry),
                egress=_egress(entry, ids),
                vcpus=entry.whole("vcpus", 1) if "vcpus" in entry.record else None,
                spot_available=offer_shares(entry, "spot_available", hours),
                on_demand_available=offer_shares(entry, "on_demand_available", hours),
            )
        )
    return tuple(found)


def _reservations(offer: Fields, hours: int) -> tuple[ask.Reservation, ...]:
    found = []
    for entry in _entries(offer, "reservations", "reservation"):
        entry.only(("id", "rate", "upfront", *HELD_FIELDS))
        start, term = held(entry, hours)
        found.append(
            ask.Reservation(
                id=entry.text("id"),
                rate=entry.number("rate", PRICE),
                upfront=entry.number("upfront", AMOUNT, 0.0),
                start=start,
                term=term,
            )
        )
    return tuple(found)


def _existing(offer: Fields) -> tuple[ask.Existing, ...]:
    found = []
    for index, record in offer.records("existing"):
        path = join(offer.path, f"existing[{index}]")
        entry = Fields(record, path, offer.label, offer.faults)
        entry.only(("gpus", "until_hour"))
        found.append(ask.Existing(entry.number("gpus", AMOUNT), entry.whole("until_hour", 0)))
    return tuple(found)


def _egress(offer: Fields, ids: Ids) -> dict[str, float]:
    record = offer.mapping("egress")
    entry = Fields(record, join(offer.path, "egress"), offer.label, offer.faults)
    if ids.classes_told:
        entry.only(ids.kinds, "class")
    return {key: entry.number(key, AMOUNT) for key in record if key in ids.kinds}


def _scenarios(top: Fields, ids: Ids, hours: int) -> tuple[ask.Scenario, ...]:
    found = []
    for index, record in top.records("scenarios", required=True):
        entry = Fields(record, f"scenarios[{index}]", f"scenario {index}", top.faults)
        entry.only(("p", "demand", *AVAILABLE_FIELDS))
        p = entry.number("p", Limits(above=0, high=1))
        demand = entry.mapping("demand", required=True)
        shares = (scenario_shares(entry, name, ids, hours) for name in AVAILABLE_FIELDS)
        found.append(ask.Scenario(p, _demand(entry, demand, ids, hours), *shares))
    total = math.fsum(scenario.p for scenario in found)
    if found and abs(total - 1) > _P_TOLERANCE:
        what = f"the probabilities must sum to 1, sum to {total!r}"
        top.fault("scenarios", what, "divide each p by the sum")
    return tuple(found)


def _demand(
    scenario: Fields, record: dict[str, object], ids: Ids, hours: int
) -> dict[str, np.ndarray]:
    path = join(scenario.path, "demand")
    entry = Fields(record, path, scenario.label, scenario.faults)
    if scenario.has("demand"):
        if ids.classes_told:
            entry.only(ids.kinds, "class")
        for missing in sorted(set(ids.kinds) - set(record)):
            label = f"class {show(missing)}, {scenario.label}"
            named = Fields(record, path, label, scenario.faults)
            named.fault(missing, "a class without a series", "give its demand, zeros for none")
    return {
        key: entry.series(key, f"class {show(key)}, {scenario.label}", hours)
        for key in record
        if key in ids.kinds
    }


def _savings_plans(top: Fields, ids: Ids, hours: int) -> tuple[ask.SavingsPlan, ...]:
    found = []
    first: dict[str, int] = {}
    for index, record in top.records("savings_plans"):
        entry = Fields(record, f"savings_plans[{index}]", "", top.faults)
        entry.only(("provider", *HELD_FIELDS))
        provider = entry.text("provider")
        if isinstance(record.get("provider"), str):
            known = {one for one, _ in ids.regions}
            if ids.regions_told and provider not in known:
                remedy = nearest(provider, known) or "leave the plan out"
                entry.fault("provider", f"no offer is of provider {show(provider)}", remedy)
            if first.setdefault(provider, index) != index:
                what = f"repeats {show(provider)} of savings_plans[{first[provider]}]"
                entry.fault("provider", what, "leave one of them out")
        found.append(ask.SavingsPlan(provider, *held(entry, hours)))
    return tuple(found)


def _blocks(top: Fields, ids: Ids, hours: int) -> tuple[ask.Block, ...]:
    found = []
    for entry in _entries(top, "blocks", "block"):
        entry.only(_BLOCK_FIELDS)
        block = ask.Block(
            id=entry.text("id"),
            offer=entry.text("offer"),
            gpus=entry.whole("gpus", 1),
            start=entry.whole("start", 0),
            length=entry.whole("length", 1),
            price=entry.number("price", PRICE),
            max=entry.whole("max", 0),
        )
        named = isinstance(entry.record.get("offer"), str) and ids.offers_told
        if named and block.offer not in ids.offers:
            entry.unknown("offer", "offer", (block.offer, ids.offers))
        if hours != UNKNOWN_HOURS and block.start + block.length > hours:
            what = f"start + length must be <= {hours} hours, is {block.start + block.length}"
            entry.fault("length", what, "end it within the file, or leave the block out")
        found.append(block)
    return tuple(found)


def _commitment_limits(top: Fields, ids: Ids) -> tuple[ask.CommitmentLimit, ...]:
    found = []
    for entry in _entries(top, "commitment_limits", "commitment limit"):
        entry.only(("id", "offers", "gpus"))
        offers = _known_offers(entry, ids)
        found.append(ask.CommitmentLimit(entry.text("id"), offers, entry.number("gpus", AMOUNT)))
    return tuple(found)


def _cvar(top: Fields) -> ask.Cvar | None:
    if top.missing("cvar", required=False):
        return None
    record = top.mapping("cvar")
    if not isinstance(top.record["cvar"], dict):
        return None
    entry = Fields(record, "cvar", "", top.faults)
    entry.only(("lambda", "beta"))
    return ask.Cvar(entry.number("lambda", AMOUNT), entry.number("beta", Limits(low=0, below=1)))


def _name_tokens(value: object, path: str, faults: Faults) -> None:
    """Note each NaN or Infinity that no field has named, such as those below `x_` fields."""
    if isinstance(value, Token) and id(value) not in faults.named:
        faults.add(path, f"{value.text} stands where a number must", "JSON has no such number")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _name_tokens(inner, join(path, key), faults)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if isinstance(inner, dict | list | Token):
                _name_tokens(inner, f"{path}[{index}]", faults)
