"""Bad words, settings, stores and folders: said at once, and nothing is half done."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bad_input_cases import CUR, store_of_two_days
from tests.exports import csv_file
from tests.program import DAY, call, contents, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of_two_days(tmp_path_factory.mktemp("good"))


@pytest.fixture
def store(two_days: Path, tmp_path: Path) -> Path:
    shutil.copytree(two_days, tmp_path / "store")
    return tmp_path / "store"


# The configuration


def test_three_mistakes_of_a_configuration_are_reported_at_once(store, tmp_path):
    config = tmp_path / "bad.toml"
    config.write_text(
        '[store]\nengin = "duckdb"\n\n[prices]\nmax_age_days = "many"\n\n[plan]\ntolerance = -1\n'
    )
    answer = call("totals", "--config", config, "--store", store, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "config")
    problems = {problem["where"]: problem for problem in answer.error["problems"]}
    assert set(problems) == {"store.engin", "prices.max_age_days", "plan.tolerance"}
    assert "engine" in problems["store.engin"]["remedy"]
    assert str(config) in answer.error["message"]
    plain = call("totals", "--config", config, "--store", store)
    assert (plain.code, plain.out) == (2, "")
    assert all(where in plain.err for where in problems)


def test_a_configuration_that_is_not_there(tmp_path):
    answer = call("totals", "--config", tmp_path / "no.toml", "--json")
    assert (answer.code, answer.error["kind"]) == (2, "config")
    assert answer.error["problems"][0]["where"] == str(tmp_path / "no.toml")


# The command line


@pytest.mark.parametrize(
    "words",
    [
        ["totals", "--bogus"], ["frobnicate"], [], ["totals", "--date", "2026-13-01"],
        ["totals", "--date", "today"], ["load"], ["totals", "--by"], ["solve", "a", "--gap", "x"],
        ["totals", "--sto", "x"],
    ],
)  # fmt: skip
def test_wrong_words_are_wrong_usage(words):
    answer = call(*words, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "usage")
    assert "--help" in answer.error["message"]
    plain = call(*words)
    assert (plain.code, plain.out) == (2, "")
    assert plain.err.startswith("loadfactor: ")


@pytest.mark.parametrize("command", ["totals", "idle"])
def test_an_unknown_column_lists_those_that_are_known(store, command):
    answer = call(command, "--by", "colour", "--store", store, "--date", DAY, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "usage")
    said = answer.error["message"] + json.dumps(answer.error["problems"])
    for column in ("colour", "account", "region", "purchase_option", "workload_class", "day"):
        assert column in said


def test_an_unknown_dataset_is_wrong_usage(store, tmp_path):
    path = csv_file(tmp_path / "a.csv", [CUR])
    answer = call("load", path, "--dataset", "invoiced", "--store", store, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "usage")


# The store


@pytest.mark.parametrize(
    "words", [["totals"], ["load", "a.csv"], ["plan"], ["check"], ["idle"], ["nightly"]]
)
def test_a_store_of_a_newer_version_is_left_alone(store, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    csv_file(tmp_path / "a.csv", [CUR])
    catalogue = store / "catalogue.json"
    catalogue.write_text(json.dumps(json.loads(catalogue.read_text()) | {"version": 3}))
    before = contents(store)
    answer = call(*words, "--store", store, "--json")
    assert (answer.code, answer.error["kind"]) == (1, "store")
    assert "newer" in answer.error["message"]
    assert "Upgrade" in answer.error["message"]
    assert contents(store) == before
    assert not (tmp_path / "loadfactor-out").exists()


def test_a_damaged_catalogue_is_named(store):
    (store / "catalogue.json").write_text('{"format": "loadfactor-store", ')
    answer = call("totals", "--store", store, "--json")
    assert (answer.code, answer.error["kind"]) == (1, "store")
    assert str(store / "catalogue.json") in answer.error["message"]


def test_a_store_that_is_a_file(tmp_path):
    (tmp_path / "a").write_text("x")
    answer = call("totals", "--store", tmp_path / "a", "--json")
    assert (answer.code, answer.error["kind"]) == (1, "store")
    assert "--store" in answer.error["message"]


@pytest.mark.parametrize("command", ["plan", "check", "idle", "commitments"])
def test_an_empty_store_has_nothing_to_plan_from_and_none_is_made(tmp_path, command):
    out = ["--out", tmp_path / "out"] if command == "plan" else []
    answer = call(command, "--store", tmp_path / "none", *out, "--json")
    assert (answer.code, answer.error["kind"]) == (1, "data")
    assert "load" in answer.error["message"]
    assert not list(tmp_path.iterdir())


def test_a_day_before_any_data_has_nothing_to_plan_from(store, tmp_path):
    words = ["--store", store, "--out", tmp_path / "out", "--date", "2026-10-01", "--json"]
    answer = call("plan", *words)
    assert (answer.code, answer.error["kind"]) == (1, "data")
    assert "2026-10-01" in answer.error["message"]
    assert "--date" in answer.error["message"]
    assert not (tmp_path / "out").exists()


# The output folder


@pytest.mark.parametrize("place", ["file", "file/out", "/proc/loadfactor-out"])
def test_an_output_folder_that_cannot_be_made_is_named(store, tmp_path, place):
    (tmp_path / "file").write_text("x")
    words = ["--store", store, "--out", tmp_path / place, "--date", DAY, "--json"]
    answer = call("plan", *words)
    assert (answer.code, answer.error["kind"]) == (1, "store")
    assert str(tmp_path / place) in answer.error["message"]
    assert (tmp_path / "file").read_text() == "x"


def test_a_folder_that_is_no_night_cannot_be_rendered(tmp_path):
    answer = call("report", tmp_path, "--json")
    assert (answer.code, answer.error["kind"]) == (1, "data")
    assert "plan.json" in answer.error["message"]


def test_a_night_that_lacks_a_table_cannot_be_rendered_and_says_which(store, tmp_path):
    out = tmp_path / "out"
    assert call("plan", "--store", store, "--out", out, "--date", DAY).code == 4  # a short history
    (out / DAY / "idle.csv").unlink()
    answer = call("report", out / DAY, "--json")
    assert (answer.code, answer.error["kind"]) == (1, "data")
    assert "idle.csv" in json.dumps(answer.error)


# Tracebacks


def test_a_traceback_is_shown_when_asked_for_and_only_then(store, tmp_path):
    (tmp_path / "a.toml").write_text("[store]\nengin = 1\n")
    words = ["totals", "--config", tmp_path / "a.toml", "--store", store]
    assert "Traceback" not in run(*words).err
    assert "Traceback" in run(*words, "--verbose").err


def test_an_error_that_nobody_thought_of_is_still_one_document(store, monkeypatch):
    from planner.cli import commands

    def fail(_options: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setitem(commands.COMMANDS, "totals", fail)
    answer = call("totals", "--store", store, "--json")
    assert (answer.code, answer.error["kind"]) == (1, "error")
    assert "out of luck" in json.dumps(answer.error["problems"])
    assert "Traceback" not in answer.err
