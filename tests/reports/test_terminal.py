"""What stands on the terminal: the summary of the demo, and aligned tables."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from reports.terminal import WIDTH, demo_summary, table_text
from tests.reports.night import plan

OUT = Path("loadfactor-out/2026-11-30")


def test_the_summary_of_a_night_is_the_golden_one(golden):
    golden("reports/demo.txt", demo_summary(plan(), OUT) + "\n")


def test_the_summary_fits_the_terminal():
    assert max(len(line) for line in demo_summary(plan(), OUT).splitlines()) <= WIDTH


def test_the_summary_shows_the_arithmetic_of_the_yearly_figure():
    # 800 dollars in 100 hours: 800 x 8,760 / 100 = 70,080
    text = demo_summary(plan(), OUT)
    assert "$70,080 a year" in text
    assert "$800.00 x 8,760 / 100" in text


def test_without_moves_the_summary_says_so():
    assert "none would save money" in demo_summary(plan(moves=()), OUT)


def test_numbers_stand_to_the_right_and_text_to_the_left():
    rows = [{"cloud": "aws", "cost": "1000.5"}, {"cloud": "azure", "cost": "-2"}]
    assert table_text(rows, ["cloud", "cost"]) == (
        "cloud    cost\naws    1000.5\nazure      -2"
    )  # fmt: skip


def test_a_missing_value_is_a_dash_and_zero_is_zero():
    rows = [{"cost": None}, {"cost": "0"}]
    assert table_text(rows, ["cost"]).split() == ["cost", "-", "0"]


def test_no_rows_leave_the_header():
    assert table_text([], ["cloud", "cost"]) == "cloud  cost"


def test_a_name_cannot_steer_the_terminal():
    text = table_text([{"name": "a\x1b[31mb\nc"}], ["name"])
    assert text == "name\na [31mb c"
    (move, *_) = plan().summary.moves
    foreign = dataclasses.replace(move, title="x\x1b]0;y\x07")
    assert "\x1b" not in demo_summary(plan(moves=(foreign,)), OUT)
