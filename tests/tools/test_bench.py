"""What the bench measures: the made bill adds up, and the made problem is one."""

from __future__ import annotations

import csv
import json
import sys
from decimal import Decimal

import pytest

from planner import problem_file
from tools.bench import make_cur, make_problem, measure


def test_the_made_bill_has_the_rows_and_the_money_that_were_asked_for(tmp_path):
    # Rows go round three machine types: 4 x 55.04 + 3 x 1.006 + 3 x 0.096 = 223.466
    make_cur(tmp_path / "cur.csv", rows=10)
    with (tmp_path / "cur.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 10
    assert sum(Decimal(row["lineItem/UnblendedCost"]) for row in rows) == Decimal("223.466")
    assert rows[0]["identity/TimeInterval"] == "2026-10-01T00:00:00Z/2026-10-01T01:00:00Z"


def test_the_made_problem_is_one_of_the_neutral_format(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(make_problem(classes=5, hours=24)))
    problem = problem_file.read(path)
    assert len(problem.classes) == 5
    assert problem.hours == 24


@pytest.mark.parametrize("code", [0, 3])
def test_a_measured_process_tells_its_exit_code_time_and_memory(tmp_path, code):
    run = measure("x", [sys.executable, "-c", f"raise SystemExit({code})"], tmp_path / "log")
    assert run.exit_code == code
    assert run.seconds > 0
    assert 1 < run.peak_mib < 1024
    assert run.is_good is (code == 0)
