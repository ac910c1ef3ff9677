"""The command line: help, exit codes, what goes to stdout, and where options may stand.

That `--help` is quick, and that every command is documented, is tested in test_docs.py.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from data import errors
from planner import __version__, answers
from planner.cli import build_parser, commands
from tests.exports import csv_file
from tests.program import ROOT, START, call, run
from tools.bench import make_problem

if TYPE_CHECKING:
    from pathlib import Path

# The contract's commands of this version, written out.
COMMANDS = (
    "demo", "init", "load", "fetch", "totals", "check", "idle", "plan", "report", "solve",
    "backtest", "prices", "commitments", "nightly",
)  # fmt: skip
COMMON = ("--config", "--store", "--date", "--json", "--quiet", "--verbose", "--help")
ROW = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "BoxUsage:p5.48xlarge",
    "line_item_product_code": "AmazonEC2", "bill_payer_account_id": "0011",
    "bill_billing_period_start_date": "2026-10-01T00:00:00Z", "bill_invoice_id": "",
    "line_item_currency_code": "USD", "line_item_resource_id": "i-1",
    "line_item_usage_start_date": "2026-10-29T03:00:00Z",
    "line_item_usage_end_date": "2026-10-29T04:00:00Z", "line_item_usage_amount": "1",
    "pricing_unit": "Hrs", "line_item_unblended_cost": "100.10",
}  # fmt: skip


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return csv_file(tmp_path_factory.mktemp("bill") / "bill.csv", [ROW, ROW])


@pytest.fixture(scope="module")
def store(bill: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("cli") / "store"
    assert call("load", bill, "--store", store).code == 0
    return store


def test_the_commands_are_those_of_the_contract():
    assert set(commands.COMMANDS) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_the_options_of_every_command(command):
    answer = call(command, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"usage: loadfactor {command}")
    for option in COMMON:
        assert option in answer.out


def test_the_help_lists_every_command_and_the_exit_codes():
    answer = call("--help")
    assert (answer.code, answer.err) == (0, "")
    for command in COMMANDS:
        assert f"\n    {command} " in answer.out
    text = " ".join(answer.out.split())
    for words in ("0 done", "1 failed", "2 wrong usage", "3 refused by a guard", "4 done, but"):
        assert words in text


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        (["--foo"], "--foo"),
        (["--foo", "prices"], "--foo"),
        (["load", "--foo"], "--foo"),
        (["solve", "-x=1"], "-x=1"),
        (["totals", "--bar"], "--bar"),
    ],
)
def test_an_unknown_option_is_named_before_what_is_lacking(words, unknown):
    answer = call(*words)
    assert (answer.code, answer.out) == (2, "")
    assert f"unrecognized arguments: {unknown};" in answer.err
    assert "required" not in answer.err


def test_without_a_command_or_a_path_it_says_what_is_lacking():
    assert "the following arguments are required: COMMAND" in call().err
    assert "the following arguments are required: PATH" in call("load").err


@pytest.mark.parametrize("day", ["1999-12-31", "2201-01-01", "0001-01-01", "9999-12-31", "soon"])
def test_a_day_outside_of_two_centuries_is_wrong_usage(store, day):
    answer = call("idle", "--store", store, "--date", day)
    assert (answer.code, answer.out) == (2, "")
    assert f"argument --date: '{day}'" in answer.err


@pytest.mark.parametrize("day", ["2000-01-01", "2200-12-31"])
def test_the_first_and_the_last_day_are_taken(store, day):
    assert call("totals", "--store", store, "--date", day).code == 0


def test_the_version_is_that_of_the_package():
    answer = call("--version")
    assert (answer.code, answer.out) == (0, f"loadfactor {__version__}\n")


def test_exit_codes_are_those_of_the_contract():
    assert (answers.DONE, answers.FAILED, answers.WITH_WARNINGS) == (0, 1, 4)
    kinds = [
        one
        for _, one in inspect.getmembers(errors, inspect.isclass)
        if issubclass(one, errors.LoadfactorError)
    ]
    codes = {one.__name__: one.exit_code for one in kinds}
    assert {codes.pop(name) for name in ("UsageError", "ConfigError")} == {2}
    assert {codes.pop(name) for name in ("UnsafePlan", "StalePlan")} == {3}
    assert set(codes.values()) == {1}
    assert len({one.kind for one in kinds}) == len(kinds)


def test_stdout_is_data_and_the_log_is_on_stderr(store, bill, tmp_path):
    out = ["--out", tmp_path / "out", "--date", "2026-10-31"]
    answer = call("plan", "--store", store, *out, "--json")
    assert set(answer.json) == {"folder", "warnings", "summary"}
    assert answer.err.splitlines()[:3] == ["observe ...", "plan ...", "report ..."]
    loaded = call("load", bill, "--store", store, "--json")
    assert set(loaded.json) == {"deliveries"}


def test_quiet_leaves_the_data_and_the_warnings(store, tmp_path):
    out = ["--out", tmp_path / "out", "--date", "2026-10-31"]
    loud = call("plan", "--store", store, *out)
    quiet = call("plan", "--store", store, *out, "--quiet")
    assert "observe ..." in loud.err
    assert quiet.err.splitlines() == [line for line in loud.err.splitlines() if "..." not in line]
    assert quiet.out == loud.out
    row = {name: cell for name, cell in ROW.items() if name != "line_item_currency_code"}
    path = csv_file(tmp_path / "a.csv", [row])
    warned = call("load", path, "--store", tmp_path / "store", "--quiet")
    assert warned.code == 4
    assert "currency" in warned.err


def test_options_of_every_command_stand_before_or_after_it(store):
    words = ["--store", store, "--json", "--date", "2026-10-31"]
    after = call("totals", *words, "--by", "day")
    assert after.code == 0
    assert after.json["rows"][0]["billed_cost"] == "200.2"  # 2 x 100.10
    assert call(*words, "totals", "--by", "day").out == after.out
    assert call("--store", store, "totals", "--by", "day", "--json").out == after.out
    assert call("--json", "totals", "--by", "day", "--store", store).out == after.out


def test_an_option_after_the_command_outranks_the_same_before_it(store, tmp_path):
    words = ["--by", "day", "--json"]
    assert call("--store", store, "totals", "--store", tmp_path / "no", *words).json == {"rows": []}


def test_the_table_for_people_and_the_document_say_the_same(store):
    rows = call("totals", "--store", store, "--json").json["rows"]
    header, line = call("totals", "--store", store).out.splitlines()
    assert header.split() == list(rows[0])
    told = ["-" if cell is None else str(cell) for cell in rows[0].values()]
    assert line.split() == told


def test_an_error_leaves_stdout_empty_for_people_and_is_one_document_for_programs(tmp_path):
    plain = call("report", tmp_path)
    assert (plain.code, plain.out) == (1, "")
    assert plain.err.startswith("loadfactor: ")
    programs = call("report", tmp_path, "--json")
    assert (programs.code, programs.err) == (1, "")
    assert json.loads(programs.out) == {"error": programs.error}


def test_a_configuration_in_the_working_folder_is_taken(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loadfactor.toml").write_text(f'[store]\npath = "{store}"\n')
    assert call("totals", "--by", "day", "--json").json["rows"][0]["source_rows"] == 2


def test_init_writes_a_configuration_that_is_read_and_never_over_another(tmp_path):
    config = tmp_path / "loadfactor.toml"
    answer = call("init", "--out", config, "--json")
    assert (answer.code, answer.json) == (0, {"path": str(config)})
    text = config.read_text()
    read = call("totals", "--config", config, "--store", tmp_path / "store", "--json")
    assert (read.code, read.json) == (0, {"rows": []})
    again = call("init", "--out", config, "--json")
    assert (again.code, again.error["kind"]) == (2, "usage")
    assert config.read_text() == text
    nowhere = call("init", "--out", tmp_path / "no" / "a.toml")
    assert (nowhere.code, nowhere.out) == (2, "")


def test_prices_name_what_is_used_and_what_is_rejected_and_why(tmp_path):
    answer = call("prices", "--store", tmp_path / "store", "--date", "2026-10-31", "--json")
    assert answer.code == 0  # known rejections in the shipped book change no exit code
    rows = answer.json["rows"]
    assert {row["status"] for row in rows} >= {"used", "stale"}
    assert all(row["reason"] for row in rows if row["status"] != "used")
    assert all(row["source"] and row["as_of"] for row in rows)


def test_a_problem_is_solved_from_a_file(tmp_path):
    assert set(vars(build_parser().parse_args(["solve", "a.json"]))) >= {"gap", "time_limit"}
    answer = call("solve", tmp_path / "no.json", "--json")
    assert (answer.code, answer.error["kind"]) == (2, "config")


def test_both_methods_solve_a_problem_to_one_cost_and_one_explains_it(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(make_problem(classes=3, hours=24)))
    first = call("solve", path, "--gap", "1e-7", "--json")
    direct = call("solve", path, "--gap", "1e-7", "--method", "direct", "--json")
    assert (first.code, direct.code) == (0, 0)
    assert first.json["objective"] == pytest.approx(direct.json["objective"], rel=1e-6)
    (tmp_path / "former.json").write_text(json.dumps(direct.json))
    again = call("solve", path, "--previous", tmp_path / "former.json", "--why", "--json")
    assert again.code == 0
    assert again.json["reservations"] == direct.json["reservations"]
    assert set(again.json["why"]) >= {"lines", "limits", "rejected", "shortages"}


def test_what_a_method_cannot_do_is_wrong_usage_and_a_short_time_a_plan_with_its_gap(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(make_problem(classes=20, hours=168)))
    refused = call("solve", path, "--method", "direct", "--why", "--json")
    assert (refused.code, refused.error["kind"]) == (2, "usage")
    short = call("solve", path, "--time-limit", "0.001", "--json")
    assert (short.code, short.json["status"]) == (4, "feasible")
    assert short.json["gap"] > 1e-4


def test_a_reader_that_goes_away_ends_the_program_quietly(store):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", START, "totals", "--store", str(store)],
        stdout=write, stderr=subprocess.PIPE, cwd=ROOT, text=True, check=False,
    )  # fmt: skip
    os.close(write)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_the_program_is_the_same_in_a_process_of_its_own(store):
    words = ["totals", "--store", store, "--by", "day,account", "--json"]
    there, here = run(*words), call(*words)
    assert (there.code, there.out, there.err) == (here.code, here.out, here.err)
