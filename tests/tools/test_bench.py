"""What the bench measures: the made bill adds up, and the made problem is one."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from decimal import Decimal

import pytest

from planner import problem_file
from tests.program import ROOT
from tools.bench import make_cur, make_problem


def test_the_made_bill_has_the_rows_and_the_money_that_were_asked_for(tmp_path):
    # One hour of 1,345 machines: 100 with H100s, of the rest each ninth number (149 - 11 = 138) a
    # g5: 100 x 55.04 + 138 x 1.006 + 1,107 x 0.096 = 5,504 + 138.828 + 106.272 = 5,749.1
    make_cur(tmp_path / "cur.csv", rows=1345)
    with (tmp_path / "cur.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 1345
    assert sum(Decimal(row["lineItem/UnblendedCost"]) for row in rows) == Decimal("5749.1")
    assert rows[0]["identity/TimeInterval"] == "2026-10-01T00:00:00Z/2026-10-01T01:00:00Z"


def test_the_made_problem_is_one_of_the_neutral_format(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(make_problem(classes=5, hours=24)))
    problem = problem_file.read(path)
    assert len(problem.classes) == 5
    assert problem.hours == 24


@pytest.mark.parametrize("code", [0, 3])
def test_a_measured_process_tells_its_exit_code_time_and_memory(tmp_path, code):
    # Measured from a small process: on Linux a child's peak begins with that of its parent.
    script = (
        "import sys; from pathlib import Path; from tools.bench import measure; "
        f"run = measure('x', [sys.executable, '-c', 'raise SystemExit({code})'], Path('log')); "
        "print(run.exit_code, run.seconds, run.peak_mib, run.is_good)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    exit_code, seconds, peak_mib, is_good = done.stdout.split()
    assert int(exit_code) == code
    assert float(seconds) > 0
    assert 1 < float(peak_mib) < 1024
    assert is_good == str(code == 0)
