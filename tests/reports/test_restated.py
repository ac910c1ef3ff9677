"""Restated periods in the report: largest first, small ones counted, and the advice on them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as D

from data.lineage import Restated, RestatedOption
from reports.recommendations import report_markdown
from tests.reports.night import plan, tables

ROW = Restated(
    night="2026-11-29", cloud="aws", account="111122223333", dataset="cur2", period="2026-10",
    currency="USD", before=D(218000), after=D(198000),
    options=(
        RestatedOption("on_demand", D(-25000), D(-2048)),
        RestatedOption("reserved", D(5000), D(0)),
    ),
    was="a", now="b", rested=("r-1", "r-2", "r-3"), gone=("r-2",),
)  # fmt: skip


def section(*rows: Restated) -> str:
    text = report_markdown(plan(restated=rows), tables())
    return text.partition("## Restated since the night of 2026-11-29")[2].partition("\n## ")[0]


def test_a_restated_month_is_told_in_dollars_by_way_of_paying_with_the_advice_on_it():
    text = section(ROW)
    assert (
        "October 2026 of aws 111122223333 (cur2) was restated from $218,000 to $198,000 "
        "(on_demand -$25,000 -2,048 GPU-hours; reserved +$5,000)"
    ) in text
    assert "3 recommendations of that night for aws rested on the old figures" in text
    assert "1 of them is not advised any more: r-2" in text
    assert section() == ""


def test_the_largest_change_stands_first_and_small_ones_are_counted():
    small = replace(ROW, account="2", after=D(218010),
                    options=(RestatedOption("on_demand", D(10), D(0)),))  # fmt: skip
    # Less than a thousandth in all, but two ways of paying changed places.
    there = (
        RestatedOption("on_demand", D(-9000), D(-99)),
        RestatedOption("reserved", D(9010), D(99)),
    )
    moved = replace(small, account="3", options=there)
    euros = replace(ROW, account="4", currency="EUR", after=D(100000), gone=())
    text = section(small, moved, ROW, euros)
    places = [text.index(f" of aws {one} ") for one in ("4", "111122223333", "3")]
    assert places == sorted(places)
    assert "from EUR 218,000 to EUR 100,000" in text
    assert " of aws 2 " not in text
    assert "1 period changed by less than a thousandth" in text
