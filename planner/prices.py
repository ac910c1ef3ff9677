"""Which prices a plan may use: every row of the book and the overrides, judged with its reason."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import catalogue, money
from data.frames import conform, empty, records
from data.schema import OFFERS, QUALITY
from planner.discounts import Discount, applying, discounts
from planner.quotes import (
    BUNDLED,
    COMMITTED,
    FETCHED,
    OPTIONS,
    OVERRIDE,
    REJECTED,
    STALE,
    SUPERSEDED,
    USED,
    Quote,
    Shapes,
    from_book,
    from_overrides,
    judged_alone,
    shapes_by_type,
)
from planner.settings import PriceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date

# No purchase option of a GPU family costs less than this share of the family's median: the widest
# spot discount that a cloud announces is 91 % ("up to 91 % off", Google Cloud, read 2026-08-20).
# What lies below is a fee or a wrong unit, such as 0.336 USD for an operating system.
LEAST_SHARE = 0.05
# A list price that one region alone has at half of the others' is another product's: the flex-start
# GPU price taken as on demand gives 43.07 for a3-highgpu-8g in us-central1, in place of 88.49.
_UNIFORM = ("on_demand", "reserved_1y", "reserved_3y")
_FEWEST_REGIONS = 3
_CONFLICT = "different prices for one key"
_REPLACED = f"{SUPERSEDED}replaced by "
_REPEATED = f"{SUPERSEDED}repeats another row"


def check(
    book: pd.DataFrame,
    overrides: pd.DataFrame | None,
    shapes: pd.DataFrame,
    as_of: date,
    limits: PriceSettings | None = None,
) -> pd.DataFrame:
    """Frame of OFFERS: every price with its status, and the reason where it is not used.

    `book` is a frame of PRICE_BOOK (a column `origin` may mark fetched rows), `overrides` one of
    PRICES. For each key the latest price on or before `as_of` serves, an override before the book;
    the reason of those that it stands in for begins with SUPERSEDED: nothing is wrong with them.
    Raises DataError where overrides contradict each other or are not complete.
    """
    limits = limits or PriceSettings()
    known = shapes_by_type(shapes)
    quotes = from_book(book, known)
    stated: list[Discount] = []
    if overrides is not None and len(overrides):
        quotes += from_overrides(overrides, known)
        stated = discounts(overrides)
    quotes = judged_alone(_distinct(quotes), known, as_of, limits.max_age_days)
    quotes = _within_bands(quotes, limits)
    quotes = _one_per_key(quotes, as_of)
    quotes = _discounted(quotes, stated, known, as_of)
    return _frame(_below_on_demand(quotes))


def offer_table(
    offers: pd.DataFrame, shapes: pd.DataFrame | None = None, allow_upfront: bool = True
) -> pd.DataFrame:
    """One row per provider, region and machine type: used prices in USD per GPU-hour, as floats.

    Columns: offer_id, provider, region, instance_type, family, gpu_model, gpu_family, gpus,
    gpu_memory_gib, and for each purchase option its rate (missing: not sold); where it can be
    committed to, also its payment. The cheapest payment serves; `allow_upfront` False leaves out
    what must be paid at once.
    """
    known = shapes_by_type(catalogue.shapes() if shapes is None else shapes)
    used = [row for row in records(offers) if row["status"] == USED]
    if not allow_upfront:
        used = [row for row in used if "all" not in row["payment_option"].split("_")]
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in sorted(used, key=lambda one: (one["usd_per_instance_hour"], one["payment_option"])):
        place = (row["provider"], row["region"], row["instance_type"])
        made = rows.setdefault(place, _offer_row(row, known))
        option = row["purchase_option"]
        if made.get(option) is None:
            made[option] = float(row["usd_per_instance_hour"]) / int(row["gpus"])
            if option in COMMITTED:
                made[f"{option}_payment"] = row["payment_option"]
    payments = [f"{option}_payment" for option in COMMITTED]
    columns = [*_OFFER_COLUMNS, *OPTIONS, *payments]
    frame = pd.DataFrame([rows[place] for place in sorted(rows)], columns=columns)
    return frame.astype(dict.fromkeys(OPTIONS, "float64"))


def findings(offers: pd.DataFrame, as_of: date) -> pd.DataFrame:
    """Frame of QUALITY on the prices.

    A conflict is an error, and a row of the user's own (or a fetched one) that is not used a
    warning. What the shipped book holds of unusable rows is information, one row a reason.
    """
    found: list[dict[str, Any]] = []
    grouped: dict[str, int] = defaultdict(int)
    for row in records(offers):
        reason = str(row["reason"])
        if row["status"] == USED or reason.startswith(SUPERSEDED):
            continue
        if reason.startswith(_CONFLICT):
            found.append(_finding("error", 1, _price_place(row), f"price not used: {reason}"))
        elif row["origin"] != BUNDLED:
            detail = f"{row['origin']} price not used: {reason}"
            found.append(_finding("warning", 1, _price_place(row), detail))
        elif row["status"] == STALE:
            grouped["stale prices of the shipped book are not used: fetch or state prices"] += 1
        else:
            kind = re.split(r"[:,;]", reason)[0]
            grouped[f"prices of the shipped book are not used: {kind}"] += 1
    later = int((offers["as_of"].dt.date > as_of)[offers["status"] == USED].sum())
    if later:
        grouped[f"prices read after {as_of} are used: no earlier ones are known"] = later
    found += [_finding("info", count, "price book", text) for text, count in grouped.items()]
    if not found:
        return empty(QUALITY)
    rows = pd.DataFrame(found).drop_duplicates(list(QUALITY.key))
    return conform(rows.sort_values(["severity", "scope", "detail"]), QUALITY)


_OFFER_COLUMNS = (
    "offer_id", "provider", "region", "instance_type", "family", "gpu_model", "gpu_family", "gpus",
    "gpu_memory_gib",
)  # fmt: skip


def _offer_row(row: dict[str, Any], known: Shapes) -> dict[str, Any]:
    shape = known.get((row["provider"], str(row["instance_type"]).lower()), {})
    place = (row["provider"], row["region"], row["instance_type"])
    return {
        "offer_id": "/".join(place),
        **{name: row[name] for name in ("provider", "region", "instance_type", "gpus")},
        "family": shape.get("family", row["instance_type"]),
        "gpu_model": shape.get("gpu_model", row["gpu_model"]),
        "gpu_family": shape.get("gpu_family") or catalogue.gpu_family(str(row["gpu_model"])),
        "gpu_memory_gib": shape.get("gpu_memory_gib", row["gpu_memory_gib"]),
    }


def _distinct(quotes: Iterable[Quote]) -> list[Quote]:
    """The quotes without literal repetitions, in an order that no shuffling of rows changes."""
    by_content = {_order(quote): quote for quote in reversed(list(quotes))}
    return [by_content[content] for content in sorted(by_content)]


def _order(quote: Quote) -> tuple[str, ...]:
    price = "" if quote.price is None else f"{quote.price:050.26f}"
    facts = (str(quote.values[name]) for name in ("gpu_model", "gpus", "gpu_memory_gib"))
    return (*quote.key, f"{quote.day}", quote.origin, price, str(quote.values["source"]), *facts)


def _within_bands(quotes: list[Quote], limits: PriceSettings) -> list[Quote]:
    """The quotes, turned down where they lie far from what their like costs.

    The book alone sets the medians (overrides only where it is silent), so that a contract does
    not move the yardstick of the others. Stale prices count: they were true.
    """
    sound = [quote for quote in quotes if quote.status != REJECTED]
    listed = [quote for quote in sound if quote.origin != OVERRIDE]
    option_rates = _yardstick(listed, sound, lambda one: (one.family, one.option))
    family_rates = _yardstick(listed, sound, lambda one: (one.family,))
    type_rates = _grouped(listed, lambda one: (one.place[0], one.place[2], *one.key[3:]))
    clouds: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in listed:
        clouds[one.family, one.option].add(one.place[0])

    def fault(quote: Quote) -> str | None:
        group = (quote.family, quote.option)
        middle = median(option_rates[group])
        low, high = middle / limits.band_factor, middle * limits.band_factor
        if group in clouds and quote.place[0] not in clouds[group]:
            low = 0.0  # a cloud that the book does not know may well be far cheaper than those
        low = max(low, LEAST_SHARE * median(family_rates[quote.family,]))
        if not low <= quote.rate <= high:
            band = f"{low:.2f} to {high:.2f}, the band of {quote.family} {quote.option}"
            return f"out of band: {quote.rate:.4g} USD per GPU-hour is not within {band}"
        rates = type_rates.get((quote.place[0], quote.place[2], *quote.key[3:]), [])
        if quote.origin == OVERRIDE or quote.option not in _UNIFORM or len(rates) < _FEWEST_REGIONS:
            return None
        if quote.rate < limits.floor_share * median(rates):
            return (
                f"below {limits.floor_share:.0%} of the median over regions: {quote.rate:.4g} "
                f"against {median(rates):.4g} USD per GPU-hour"
            )
        return None

    judged = []
    for quote in quotes:
        reason = fault(quote) if quote.status != REJECTED else None
        judged.append(quote.turned_down(reason) if reason else quote)
    return judged


def _yardstick(
    listed: list[Quote], sound: list[Quote], group: Callable[[Quote], tuple[str, ...]]
) -> dict[tuple[str, ...], list[float]]:
    return {**_grouped(sound, group), **_grouped(listed, group)}


def _grouped(
    quotes: list[Quote], group: Callable[[Quote], tuple[str, ...]]
) -> dict[tuple[str, ...], list[float]]:
    rates: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for quote in quotes:
        rates[group(quote)].append(quote.rate)
    return rates


def _one_per_key(quotes: list[Quote], as_of: date) -> list[Quote]:
    """The quotes, of which for each key only the one that serves is still used."""
    rank = {BUNDLED: 0, FETCHED: 1, OVERRIDE: 2}

    def order(quote: Quote) -> tuple[int, ...]:
        in_time = quote.day <= as_of
        nearness = quote.day.toordinal() if in_time else -quote.day.toordinal()
        return (quote.origin == OVERRIDE, in_time, nearness, rank.get(quote.origin, 1))

    by_key: dict[tuple[str, ...], list[Quote]] = defaultdict(list)
    for quote in quotes:
        by_key[quote.key].append(quote)
    chosen: list[Quote] = []
    for rivals in by_key.values():
        best = max((order(one) for one in rivals if one.status == USED), default=None)
        first = [one for one in rivals if one.status == USED and order(one) == best]
        prices = sorted({one.price for one in first if one.price is not None})
        for one in rivals:
            whose = "an override" if first and first[0].origin == OVERRIDE else "the price"
            if one.status == STALE and len(prices) == 1 and order(one) < order(first[0]):
                newer = f"{_REPLACED}{whose} of {first[0].day} ({one.reason})"
                chosen.append(one.turned_down(newer, STALE))
            elif one.status != USED:
                chosen.append(one)
            elif order(one) != best:
                chosen.append(one.turned_down(f"{_REPLACED}{whose} of {first[0].day}"))
            elif len(prices) > 1:
                texts = " and ".join(str(money.text(price)) for price in prices)
                chosen.append(one.turned_down(f"{_CONFLICT}: {texts}"))
            else:
                chosen.append(one if one is first[0] else one.turned_down(_REPEATED))
    return chosen


def _discounted(
    quotes: list[Quote], stated: list[Discount], known: Shapes, as_of: date
) -> list[Quote]:
    """The quotes, and in place of list prices under a discount the discounted ones."""
    result: list[Quote] = []
    for quote in quotes:
        shape = known.get((quote.place[0], quote.place[2].lower()), {})
        found = None
        if quote.status == USED and quote.origin != OVERRIDE and quote.price is not None:
            found = applying(stated, quote, str(shape.get("family", "")), as_of)
        if found is None or quote.price is None:
            result.append(quote)
            continue
        result.append(quote.turned_down(f"{_REPLACED}the discount of {found.row}"))
        price = money.product(quote.price, Decimal(1) - money.exact(found.share))
        source = f"{quote.values['source']}; {found.share:.6g} off by {found.row}"
        values = {**quote.values, "usd_per_instance_hour": price, "source": source}
        made = replace(quote, values=values, origin=OVERRIDE, row=found.row)
        result.append(made if price > 0 else made.turned_down("the discount leaves no price"))
    return result


def _below_on_demand(quotes: list[Quote]) -> list[Quote]:
    """The quotes without spot prices that save nothing: such a pool has no spare capacity."""
    on_demand: dict[tuple[str, str, str], Decimal] = {}
    for quote in quotes:
        if quote.status == USED and quote.option == "on_demand" and quote.price is not None:
            dearer = on_demand.get(quote.place)
            on_demand[quote.place] = min(quote.price, dearer) if dearer else quote.price
    judged = []
    for quote in quotes:
        rival = on_demand.get(quote.place)
        price = quote.price if quote.status == USED and quote.option == "spot" else None
        if price is not None and rival is not None and price >= rival:
            quote = quote.turned_down(f"no discount: on demand costs {money.text(rival)}")
        judged.append(quote)
    return judged


def _frame(quotes: list[Quote]) -> pd.DataFrame:
    if not quotes:
        return empty(OFFERS)
    rows = [
        {**quote.values, "origin": quote.origin, "status": quote.status, "reason": quote.reason}
        for quote in sorted(quotes, key=lambda one: (_order(one), one.status))
    ]
    return conform(pd.DataFrame(rows), OFFERS)


def _finding(severity: str, count: int, scope: str, detail: str) -> dict[str, Any]:
    return {
        "check": "prices", "scope": scope, "severity": severity, "count": count, "amount": None,
        "currency": None, "detail": detail,
    }  # fmt: skip


def _price_place(row: dict[str, Any]) -> str:
    names = ("provider", "region", "instance_type", "purchase_option", "payment_option")
    return "/".join(str(row[name]) for name in names)
