"""Bad input through the command line: said at once, with what to do, and nothing is half done."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from data.sample.generate import generate
from tests.exports import csv_file
from tests.program import DAY, Finished, call, contents, run

if TYPE_CHECKING:
    from pathlib import Path

CUR = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "BoxUsage:p5.48xlarge",
    "line_item_product_code": "AmazonEC2", "bill_payer_account_id": "0011",
    "bill_billing_period_start_date": "2026-10-01T00:00:00Z", "bill_invoice_id": "",
    "line_item_currency_code": "USD", "line_item_resource_id": "i-1",
    "line_item_usage_start_date": "2026-10-29T03:00:00Z",
    "line_item_usage_end_date": "2026-10-29T04:00:00Z", "line_item_usage_amount": "1",
    "pricing_unit": "Hrs", "line_item_unblended_cost": "100",
}  # fmt: skip
COST, START = "line_item_unblended_cost", "line_item_usage_start_date"
TOTALS = ("totals", "--by", "source,delivery_id,day", "--json")


def hour(number: int, **change: str) -> dict[str, str]:
    day = 29 + number // 24
    return {
        **CUR, START: f"2026-10-{day}T{number % 24:02d}:00:00Z",
        "line_item_usage_end_date": f"2026-10-{day}T{number % 24:02d}:59:59Z", **change,
    }  # fmt: skip


def without(*names: str) -> list[dict[str, str]]:
    return [{name: cell for name, cell in CUR.items() if name not in names}]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    generate(folder, days=1)
    return folder


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two days of one p5.48xlarge: 48 x 100 USD, 48 x 8 GPU-hours."""
    folder = tmp_path_factory.mktemp("good")
    good = csv_file(folder / "good.csv", [hour(number) for number in range(48)])
    assert call("load", good, "--store", folder / "store").code == 0
    return folder / "store"


@pytest.fixture
def store(two_days: Path, tmp_path: Path) -> Path:
    shutil.copytree(two_days, tmp_path / "store")
    return tmp_path / "store"


def totals(store: Path) -> Any:
    answer = call(*TOTALS, "--store", store)
    assert answer.code == 0, answer.out
    return answer.json


def rejected(store: Path, path: Path) -> str:
    """Why the file is rejected; the store is as it was and holds nothing half-written."""
    before, rows = contents(store), totals(store)
    answer = call("load", path, "--store", store, "--json")
    assert answer.code == 1
    (told,) = answer.json["deliveries"]
    assert (told["status"], told["rows"], told["path"]) == ("rejected", 0, str(path))
    assert told["reason"] in answer.err
    assert "Traceback" not in answer.err
    after = {name: text for name, text in contents(store).items() if not name.startswith(".")}
    assert after == {name: text for name, text in before.items() if not name.startswith(".")}
    assert totals(store) == rows
    return str(told["reason"])


# Files


def test_an_empty_file(store, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"")
    assert "empty" in rejected(store, tmp_path / "a.csv")


def test_a_header_and_no_rows(store, tmp_path):
    assert "no rows" in rejected(store, csv_file(tmp_path / "a.csv", [], list(CUR)))


@pytest.mark.parametrize("kept", [0.05, 0.5, 0.99])
def test_a_truncated_gzip(store, tmp_path, kept):
    text = csv_file(tmp_path / "a.csv", [hour(n % 48) for n in range(2000)]).read_bytes()
    whole = gzip.compress(text, mtime=0)
    (tmp_path / "a.csv.gz").write_bytes(whole[: int(kept * len(whole))])
    reason = rejected(store, tmp_path / "a.csv.gz")
    assert "gzip" in reason
    assert "fetch it again" in reason


def test_a_header_without_required_columns_lists_all_of_them(store, tmp_path):
    reason = rejected(store, csv_file(tmp_path / "a.csv", without(COST, START)))
    assert COST in reason
    assert START in reason


@pytest.mark.parametrize("cell", ["NaN", "inf", "-Infinity", "1.2.3", "12 USD", "1e15"])
def test_a_cost_that_is_no_number_is_named_by_row_and_column(store, tmp_path, cell):
    rows = [hour(0), hour(1, **{COST: cell}), hour(2)]
    reason = rejected(store, csv_file(tmp_path / "a.csv", rows))
    assert f"row 2, column {COST}: {cell!r}" in reason


def test_every_bad_cell_is_named_at_once(store, tmp_path):
    rows = [hour(0, **{COST: "NaN"}), hour(1, **{START: "noon"}), hour(2, **{COST: "x"})]
    reason = rejected(store, csv_file(tmp_path / "a.csv", rows))
    for where in (f"row 1, column {COST}", f"row 2, column {START}", f"row 3, column {COST}"):
        assert where in reason


def test_a_file_of_no_known_layout(store, tmp_path):
    reason = rejected(store, csv_file(tmp_path / "a.csv", [{"colour": "red", "size": "7"}]))
    assert "layout" in reason or "recognise" in reason


def test_the_others_are_loaded_beside_a_rejected_one(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"")
    good = csv_file(tmp_path / "b.csv", [hour(number) for number in range(3)])
    answer = call("load", tmp_path / "a.csv", good, "--store", tmp_path / "store", "--json")
    assert answer.code == 1
    assert [one["status"] for one in answer.json["deliveries"]] == ["rejected", "loaded"]
    (row,) = totals(tmp_path / "store")["rows"]
    assert (row["billed_cost"], row["gpu_hours"]) == ("300", "24")


def test_a_folder_with_no_exports(store, tmp_path):
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "notes.txt").write_text("later")
    answer = call("load", tmp_path / "nothing", "--store", store, "--json")
    assert (answer.code, answer.error["kind"]) == (1, "data")
    (problem,) = answer.error["problems"]
    assert problem["where"] == str(tmp_path / "nothing")
    assert "no CSV" in problem["what"]
    assert problem["remedy"]


def test_paths_that_do_not_exist_are_all_named(store, tmp_path):
    answer = call("load", tmp_path / "a.csv", tmp_path / "b", "--store", store, "--json")
    assert answer.code == 1
    named = [problem["where"] for problem in answer.error["problems"]]
    assert named == [str(tmp_path / "a.csv"), str(tmp_path / "b")]


def test_a_file_without_a_currency_is_loaded_as_of_currency_unknown(store, tmp_path):
    rows = [{**row, "bill_payer_account_id": "22"} for row in without("line_item_currency_code")]
    answer = call("load", csv_file(tmp_path / "a.csv", rows), "--store", store, "--json")
    assert answer.code == 4
    (told,) = answer.json["deliveries"]
    assert told["status"] == "loaded"
    assert any("currency" in warning for warning in told["warnings"])
    answer = call("totals", "--by", "currency", "--json", "--store", store)
    assert {row["currency"]: row["billed_cost"] for row in answer.json["rows"]} == {
        "USD": "4800",  # 48 x 100
        "unknown": "100",
    }
    found = call("check", "--store", store, "--date", DAY, "--json")
    assert found.code == 4
    assert any("currency" in row["check"] for row in found.json["rows"])


@pytest.mark.parametrize("known_too", [True, False])
def test_an_unknown_type_that_looks_like_an_h100_is_reported(tmp_path, known_too):
    rows = [hour(0, line_item_usage_type="BoxUsage:p5x.96xlarge", line_item_resource_id="i-9")]
    rows += [hour(number) for number in range(24)] if known_too else []
    path, store = csv_file(tmp_path / "a.csv", rows), tmp_path / "store"
    loaded = call("load", path, "--store", store)
    assert loaded.code == 4
    assert "p5x.96xlarge" in loaded.err
    found = call("check", "--store", store, "--date", DAY, "--json")
    assert found.code == 4
    told = [row for row in found.json["rows"] if "p5x.96xlarge" in row["scope"]]
    assert told
    assert all(row["severity"] == "warning" for row in told)
    assert any("looks like" in row["detail"] for row in told)


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
    answer = call("load", path, "--dataset", "invoices", "--store", store, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "usage")


# The store


@pytest.mark.parametrize(
    "words", [["totals"], ["load", "a.csv"], ["plan"], ["check"], ["idle"], ["nightly"]]
)
def test_a_store_of_a_newer_version_is_left_alone(store, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    csv_file(tmp_path / "a.csv", [CUR])
    catalogue = store / "catalogue.json"
    catalogue.write_text(json.dumps(json.loads(catalogue.read_text()) | {"version": 2}))
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


# Half of the input


def night(fleet: Path, parts: list[str], tmp_path: Path) -> tuple[Finished, Path]:
    config = ["--config", fleet / "loadfactor.toml", "--date", DAY, "--store", tmp_path / "store"]
    assert call("load", *[fleet / part for part in parts], *config).code == 0
    return call("plan", *config, "--out", tmp_path / "out"), tmp_path / "out" / DAY


def test_utilization_alone_is_priced_from_the_book_and_says_so(fleet, tmp_path):
    answer, folder = night(fleet, ["utilization"], tmp_path)
    assert answer.code in (0, 4)
    report = (folder / "report.md").read_text()
    assert "There is no billing data" in report
    assert "estimate" in report
    summary = json.loads((folder / "plan.json").read_text())["summary"]
    assert (summary["has_billing"], summary["has_utilization"]) == (False, True)
    idle = float(summary["idle"][0]["cost_per_year"])
    # The bill of that day: 8,671.64 USD idle, some of it on spot and commitments, so list is more.
    truth = json.loads((fleet / "truth.json").read_text())["idle"]
    assert float(truth["cost_on_machines"]) * 365 < idle
    # The machines of the fleet, as its README lists them, told by region and GPUs alone.
    with (folder / "quality.csv").open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["check"] == "assumed_machine_type"]
    counts = {row["detail"].split(" count as ")[1].split(",")[0]: row["count"] for row in found}
    assert counts == {
        "p5.48xlarge": "5", "p5.4xlarge": "8", "a3-highgpu-8g": "4",
        "Standard_ND96isr_H100_v5": "2", "Standard_NC40ads_H100_v5": "4",
    }  # fmt: skip
    # What is needed is planned for: nothing is free of charge.
    bill = summary["bill"]
    needed = float(bill["today_per_month"]) - float(bill["saving_per_month"])
    assert float(bill["plan_per_month"]) > 0.5 * needed > 0


def test_billing_alone_says_what_that_hides(fleet, tmp_path):
    answer, folder = night(fleet, ["aws", "gcp", "azure"], tmp_path)
    assert answer.code == 4  # a day of history is little
    assert "hides idle" in answer.out
    assert "There is no utilization data" in (folder / "report.md").read_text()
    summary = json.loads((folder / "plan.json").read_text())["summary"]
    assert (summary["has_billing"], summary["has_utilization"]) == (True, False)
    # Every hour is unknown and counts as needed; only unused commitments are free.
    assert summary["states"][-1]["state"] == "unknown"
    for row in summary["classes"]:
        assert row["needed"] == row["billed"] == row["unknown"]
    kinds = (folder / "recommendations.csv").read_text()
    assert "release_idle" not in kinds
