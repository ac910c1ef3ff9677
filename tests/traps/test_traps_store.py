"""Traps of what arrives when: open months, late tails, overlapping exports, short files."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pytest

from data.store import Store
from planner import session
from tests.azure_runs import Run, days
from tests.exports import csv_file, json_lines
from tests.providers.gcp_cases import ON_DEMAND, charge, credit
from tests.traps.books import AWS, NO_MACHINE, Books, at, changed

if TYPE_CHECKING:
    from pathlib import Path

AFTER = date(2026, 11, 4)


def hour(day: int, at: int, cost: str, back: str) -> dict[str, Any]:
    start = f"2026-11-{day:02}T{at:02}:00:00Z"
    end = f"2026-11-{day + (at == 23):02}T{(at + 1) % 24:02}:00:00Z"
    return charge(ON_DEMAND, cost, credits=[credit(back)], usage_start_time=start,
                  usage_end_time=end, invoice={"month": "202611"})  # fmt: skip


@pytest.fixture(scope="module")
def half_delivered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Books, Any]:
    """Three days at 100 with a credit of 20: twenty hours of 5 and 1. Of the last, 66 % came."""
    folder = tmp_path_factory.mktemp("tail")
    rows = [hour(day, at, "5", "-1") for day in (1, 2) for at in range(4, 24)]
    # It reaches midnight, and lacks hours before.
    rows += [hour(3, at, "5", "-1") for at in range(10, 23)] + [hour(3, 23, "1", "-0.2")]
    books = Books(folder).load(json_lines(folder / "export.jsonl", rows))
    return books, session.observe(books.session(AFTER))


def test_trap_25_a_day_that_is_not_whole_feeds_nothing_and_its_money_stays(
    half_delivered: tuple[Books, Any],
) -> None:
    books, seen = half_delivered
    assert seen.window.end.isoformat() == "2026-11-03T00:00:00+00:00"
    assert max(seen.fleet.hours["hour_start"]).day == 2
    (tail,) = seen.tails
    assert (tail.settled, tail.end.day) == (seen.window.end, 4)
    assert "GPU rows" in str(tail.why)
    assert books.sum() == D("212.8")  # 80 + 80 + 52.8
    assert books.sum(day="2026-11-03") == D("52.8")


def test_bl_07_a_day_costs_what_is_left_of_whole_days(half_delivered: tuple[Books, Any]) -> None:
    _, seen = half_delivered
    hours = seen.fleet.hours
    whole_days = hours["hour_start"].dt.day.nunique()
    # 80 a day: not 100 before credits, and not (80 + 80 + 52.8) / 3 = 70.93
    assert sum(hours["cost"]) / whole_days == 80


def test_bl_02_overlapping_exports_do_not_add_up_and_a_short_one_wipes_nothing(
    tmp_path: Path,
) -> None:
    class Folder:
        address = ""

        def put(self, name: str, content: bytes) -> None:
            path = tmp_path / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    books = Books(tmp_path)
    once = Run("once", "2026-11-10T03:00:00Z", (days(*["768"] * 9),), "one-time", "amortized")
    once.put(Folder())
    daily = replace(once, run="d30", submitted="2026-12-01T03:00:00Z", export="daily",
                    parts=(days(*["768"] * 30),)).put(Folder())  # fmt: skip
    results = books.take(tmp_path / "in")
    # 30 x 768 = 23,040, not 39 x 768 = 29,952
    assert (books.sum(), books.sum("source_rows")) == (23040, 30)
    assert sorted(str(one.status) for one in results) == ["ignored_older", "loaded"]
    # The overlap is told, with the export that counts.
    (told,) = (str(one.reason) for one in results if one.reason)
    assert "azure|0086115|amortized|2026-11" in told
    assert "daily/daily/20261101-20261130/d30/manifest.json of 2026-12-01" in told
    short = replace(daily, run="short", submitted="2026-12-02T03:00:00Z", export="one-time-2",
                    parts=(days(*["768"] * 5),)).put(Folder())  # fmt: skip
    reason = books.refused(tmp_path / "in" / f"{short.root}/{short.export}/{short.month}/short")
    assert "another export" in reason
    assert "--force" not in reason  # the other export would be back with the next fetch
    assert (books.sum(), books.sum("source_rows")) == (23040, 30)


@pytest.mark.parametrize("is_old", [False, True])
def test_what_a_restated_bill_came_to_is_told_with_its_signs(tmp_path: Path, is_old: bool) -> None:
    """Two hours at 90; then a credit of 100 and a tax of 7 beside them: 180 and 87, not 287.

    A catalogue of before the signed sums were kept opens as it is.
    """
    ninety = {"line_item_unblended_cost": "90"}
    hours = changed(AWS, {**ninety, **at(3)}, {**ninety, **at(4)})
    more = changed(
        {**AWS, **NO_MACHINE},
        {"line_item_line_item_type": "Credit", "line_item_unblended_cost": "-100"},
        {"line_item_line_item_type": "Tax", "line_item_unblended_cost": "7"},
    )
    books = Books(tmp_path).load_rows(hours, "first.csv")
    if is_old:
        path = books.store.path / "catalogue.json"
        document = json.loads(path.read_text())
        for record in document["deliveries"].values():
            for facts in record["units"].values():
                assert facts.pop("net_cost") == "180"
        path.write_text(json.dumps(document))
        books.store = Store.open(books.store.path)
    (second,) = books.take(csv_file(tmp_path / "second.csv", [*hours, *more]))
    (replaced,) = second.as_json()["replaced"]
    assert (replaced["cost_before"], replaced["cost_after"]) == ("180", "87")
    # 90 is more than 87, yet a charge is gone: without signs 90 of 90 + 90 + 100 + 7.
    reason = books.refused(csv_file(tmp_path / "third.csv", hours[:1]))
    assert "its cost is 90 where 87 was loaded before" in reason
    assert "90 is less than half of the 287" in reason


def test_sums_of_two_currencies_are_not_told_as_one(tmp_path: Path) -> None:
    euros = {"line_item_currency_code": "EUR", **at(4)}
    books = Books(tmp_path).load_rows(changed(AWS, {}, euros), "first.csv")
    (second,) = books.take(csv_file(tmp_path / "second.csv", changed(AWS, {}, euros, at(5))))
    (replaced,) = second.as_json()["replaced"]
    assert (replaced["cost_before"], replaced["cost_after"]) == (None, None)
    assert {row["currency"] for row in replaced["by_option"]} == {"EUR", "USD"}
