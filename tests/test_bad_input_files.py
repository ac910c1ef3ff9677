"""Bad files and half of the input: said at once, with what to do, and nothing is half done."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from typing import TYPE_CHECKING

import pytest

from data.sample.generate import generate
from tests.bad_input_cases import (
    COST,
    CUR,
    START,
    hour,
    rejected,
    store_of_two_days,
    totals,
    without,
)
from tests.exports import csv_file
from tests.program import DAY, Finished, call

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    generate(folder, days=1)
    return folder


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of_two_days(tmp_path_factory.mktemp("good"))


@pytest.fixture
def store(two_days: Path, tmp_path: Path) -> Path:
    shutil.copytree(two_days, tmp_path / "store")
    return tmp_path / "store"


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
