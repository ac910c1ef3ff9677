"""Traps of what arrives when: open months, late tails, overlapping exports, short files."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pytest

from planner import session
from tests.azure_runs import Run, days
from tests.exports import json_lines
from tests.providers.gcp_cases import ON_DEMAND, charge, credit
from tests.traps.books import Books

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
    assert "--force" in reason
    assert (books.sum(), books.sum("source_rows")) == (23040, 30)
