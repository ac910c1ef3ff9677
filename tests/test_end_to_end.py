"""The whole night on the bundled fleet, against what its generator knows and its files say.

The fleet is worked on twice, in processes of different hash seeds: by `demo`, and by `load` in
another order and `plan`. Everything else uses its last day alone.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from data.sample.generate import generate
from tests.exports_by_hand import NAMES, sums
from tests.program import DAY, FLEET, Finished, call, contents, run

if TYPE_CHECKING:
    from pathlib import Path

TRUTH = json.loads((FLEET / "truth.json").read_text())
STATES = ("busy", "idle_held", "free", "unknown")
FILES = {
    "report.md", "recommendations.csv", "commitments.csv", "limits.csv", "idle.csv", "quality.csv",
    "demand.csv", "plan.json", "run.json", "timings.json",
}  # fmt: skip
# Written out as the contract has them, not taken from the declarations that they check.
HEADERS = {
    "recommendations.csv": (
        "rank,id,kind,cloud,account,region,resource,workload_class,action,current,proposed,gpus,"
        "gpu_hours_per_month,currency,cost_per_month_now,cost_per_month_after,saving_per_month,"
        "cash_saving_per_month,term_hours,payment,upfront,total_commitment,capacity_assured,team,"
        "owner,confidence,break_even_share,expected_share,binding_constraint,risk,why,decision,"
        "data_as_of,valid_until"
    ),
    "limits.csv": (
        "pool,kind,unit,cloud,account,region,name,min_now,desired_now,max_now,min_proposed,"
        "desired_proposed,max_proposed,running,schedule,why"
    ),
    "commitments.csv": (
        "id,cloud,account,kind,instance_type,region,count,usd_per_hour,payment,upfront,"
        "total_commitment,start,end,used_share,unused_cost_per_month,break_even_share,action,why"
    ),
    "idle.csv": (
        "cloud,account,region,instance_id,gpu_model,workload_class,team,state,reason,gpu_hours,"
        "cost,currency,stoppable_cost,committed_until,since,action"
    ),
    "quality.csv": "check,scope,severity,count,amount,currency,detail",
    "demand.csv": (
        "hour_start,workload_class,gpu_family,kind,needed_gpus,waiting_gpus,at_capacity,"
        "p10_gpus,p50_gpus,p90_gpus"
    ),
}


@dataclass(frozen=True)
class Demo:
    finished: Finished
    folder: Path

    @property
    def plan(self) -> Any:
        return json.loads((self.folder / "plan.json").read_text())

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Demo:
    out = tmp_path_factory.mktemp("demo")
    finished = run("demo", "--out", out, PYTHONHASHSEED="1")
    return Demo(finished, out / DAY)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """The store of the whole fleet, loaded in another order than `demo` loads it."""
    store = tmp_path_factory.mktemp("store")
    parts = [FLEET / name for name in ("utilization", "gcp", "azure", "aws")]
    assert run("load", *parts, "--store", store, PYTHONHASHSEED="2").code == 0
    return store


@pytest.fixture(scope="module")
def planned(store, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("planned")
    words = ["--config", FLEET / "loadfactor.toml", "--store", store, "--date", DAY, "--out", out]
    assert run("plan", *words, PYTHONHASHSEED="3").code == 0
    return out / DAY


@pytest.fixture(scope="module")
def day(tmp_path_factory) -> Path:
    """The fleet's last day."""
    fleet = tmp_path_factory.mktemp("fleet")
    generate(fleet, days=1)
    return fleet


# What is printed and written


def test_the_demo_ends_well_and_puts_every_file_in_place(demo):
    assert demo.finished.code == 0, demo.finished.err
    assert {path.name for path in demo.folder.iterdir()} == FILES
    assert [path.name for path in demo.folder.parent.iterdir()] == [DAY]


def test_the_demo_prints_idle_dollars_the_plan_three_moves_and_where_the_files_are(demo):
    text = demo.finished.out
    assert "$2,648,431 a year" in text
    assert "$435,358.51 x 8,760 / 1,440" in text
    assert len(re.findall(r"^ +(?:Moves +)?[123]\. ", text, re.MULTILINE)) >= 2
    assert re.search(r"^Moves +1\. .*\n.*saves \$", text, re.MULTILINE)
    assert "  3. " in text
    assert str(demo.folder) in text
    assert f"${round(Decimal(demo.plan['summary']['bill']['plan_per_month'])):,}" in text


@pytest.mark.parametrize("name", sorted(HEADERS))
def test_every_table_has_the_header_of_the_contract(demo, name):
    text = (demo.folder / name).read_text()
    assert text.partition("\n")[0] == HEADERS[name]


# Idle GPU-hours and dollars, against the generator


def test_hours_and_dollars_of_every_state_are_those_of_the_generator(demo):
    told = {row["state"]: row for row in demo.plan["summary"]["states"]}
    assert set(told) == set(STATES)
    unused = Decimal(TRUTH["idle"]["cost_of_unused_commitments"])
    for state in STATES:
        cost = Decimal(TRUTH["total"]["cost"][state])
        # Paid capacity on which nothing was started is free.
        wanted = cost + (unused if state == "free" else 0)
        assert Decimal(told[state]["cost"]) == wanted, state
        assert Decimal(told[state]["gpu_hours"]) == Decimal(TRUTH["total"]["gpu_hours"][state])


def test_billed_and_needed_hours_and_cost_of_every_class_are_those_of_the_generator(demo):
    told = {row["workload_class"]: row for row in demo.plan["summary"]["classes"]}
    assert set(told) == {*TRUTH["classes"], "unclassified"}
    for name, truth in TRUTH["classes"].items():
        row = told[name]
        assert {state: Decimal(row[state]) for state in STATES} == {
            state: Decimal(truth["gpu_hours"][state]) for state in STATES
        }, name
        assert Decimal(row["billed"]) == Decimal(truth["billed_gpu_hours"]), name
        assert Decimal(row["needed"]) == Decimal(truth["needed_gpu_hours"]), name
        assert Decimal(row["cost"]) == Decimal(truth["billed_cost"]), name


def test_idle_dollars_a_year_are_the_cost_times_8760_by_the_hours(demo):
    (idle,) = demo.plan["summary"]["idle"]
    hours = demo.plan["summary"]["hours_observed"]
    assert hours == TRUTH["window"]["hours"] == 60 * 24
    assert Decimal(idle["cost"]) == Decimal(TRUTH["idle"]["cost"])
    # 435,358.5071547754 x 8,760 / 1,440 = 2,648,430.9185...
    year = Decimal(TRUTH["idle"]["cost"]) * 8760 / 1440
    assert year > 1_000_000
    assert abs(Decimal(idle["cost_per_year"]) - year) < Decimal("0.005")
    assert Decimal(idle["gpu_hours"]) == sum(
        Decimal(TRUTH["total"]["gpu_hours"][state]) for state in ("idle_held", "free")
    )
    assert Decimal(idle["billed_gpu_hours"]) == Decimal(TRUTH["total"]["billed_gpu_hours"])


def test_only_what_can_be_stopped_is_called_stoppable(demo):
    (idle,) = demo.plan["summary"]["idle"]
    # A month is 730 hours of the 1,440 that were observed.
    month = Decimal(TRUTH["idle"]["stoppable_cost"]) * 730 / 1440
    assert abs(Decimal(idle["stoppable_per_month"]) - month) < Decimal("0.005")
    parts = ("stoppable_per_month", "committed_per_month", "partly_busy_per_month")
    whole = sum(Decimal(idle[name]) for name in parts)
    assert abs(whole - Decimal(idle["cost"]) * 730 / 1440) < Decimal("0.01")


def test_the_idle_table_is_the_generators_by_instance_and_state(demo):
    told: defaultdict[tuple[str, str], list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 2)
    for row in demo.rows("idle.csv"):
        if row["reason"] in ("unused_commitment", "unused_reservation"):
            continue
        key = (row["instance_id"].rpartition("/")[2].lower(), row["state"])
        hours, cost = told[key]
        told[key] = [hours + Decimal(row["gpu_hours"]), cost + Decimal(row["cost"])]
    wanted = {
        (name.rpartition("/")[2].lower(), state): [
            Decimal(truth["gpu_hours"][state]), Decimal(truth["cost"][state]),
        ]
        for name, truth in TRUTH["instances"].items()
        for state in ("idle_held", "free", "unknown")
        if Decimal(truth["gpu_hours"][state])
    }  # fmt: skip
    assert dict(told) == wanted


def test_the_node_that_was_parked_is_told_with_the_hour_since_when(demo):
    name = TRUTH["parked"]["instance_id"]
    (row,) = (r for r in demo.rows("recommendations.csv") if r["resource"] == name)
    assert row["kind"] == "release_idle"
    assert "2026-10-09 14:00 UTC" in row["why"]
    assert TRUTH["parked"]["since"] == "2026-10-09T14:00:00Z"


# The plan's figures


def test_recommendations_add_up_to_the_saving_of_the_report(demo):
    rows, bill = demo.rows("recommendations.csv"), demo.plan["summary"]["bill"]
    saving = sum(Decimal(row["saving_per_month"]) for row in rows)
    assert saving == Decimal(bill["saving_per_month"])
    cash = sum(Decimal(row["cash_saving_per_month"]) for row in rows)
    assert cash == Decimal(bill["cash_saving_per_month"])
    assert f"${round(saving):,}" in demo.finished.out


def test_today_and_what_changes_it_make_the_plan_to_the_cent(demo):
    bill = {
        name: Decimal(text)
        for name, text in demo.plan["summary"]["bill"].items()
        if name != "currency"
    }
    assert (
        bill["today_per_month"]
        + bill["repriced_per_month"]
        + bill["growth_per_month"]
        + bill["expiring_per_month"]
        - bill["saving_per_month"]
        == bill["plan_per_month"]
    )
    # 926,785.2454082183 for machines + 26,863.1232 unused = 953,648.3686... x 730 / 1,440
    spent = Decimal(TRUTH["total"]["billed_cost"])
    spent += Decimal(TRUTH["idle"]["cost_of_unused_commitments"])
    assert bill["today_per_month"] == (spent * 730 / 1440).quantize(Decimal("0.01"))


def test_recommendations_are_ranked_by_dollars_and_have_ids_of_their_own(demo):
    rows = demo.rows("recommendations.csv")
    assert [row["rank"] for row in rows] == [str(n) for n in range(1, len(rows) + 1)]
    savings = [Decimal(row["saving_per_month"]) for row in rows]
    assert savings == sorted(savings, reverse=True)
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        if row["cost_per_month_now"]:
            left = Decimal(row["cost_per_month_now"]) - Decimal(row["saving_per_month"])
            assert left == Decimal(row["cost_per_month_after"]), row["id"]


def test_the_solver_proved_its_plan_within_the_gap(demo):
    solve = demo.plan["summary"]["solve"]
    assert solve["status"] == "optimal"
    assert solve["bound"] <= solve["objective"] * (1 + 1e-9)
    assert (solve["objective"] - solve["bound"]) <= 1.0001e-4 * solve["objective"] + 1e-6


def test_the_run_record_names_every_delivery_and_its_content(demo):
    record = json.loads((demo.folder / "run.json").read_text())
    told = {one["sha256"]: one for one in record["inputs"]}
    # Deliveries of one file have that file's hash: a second way to the same name.
    lone = [*FLEET.rglob("*.csv.gz"), *(FLEET / "azure").rglob("*.csv")]
    for path in lone:
        assert hashlib.sha256(path.read_bytes()).hexdigest() in told, path
    assert len(record["inputs"]) == len(lone) + 1  # and the two GCP parts as one delivery
    kept = {one["table"]: one["sha256"] for one in record["kept"]}
    for table, name in (("commitments", "commitments.csv"), ("prices", "overrides.csv")):
        assert kept[table] == hashlib.sha256((FLEET / name).read_bytes()).hexdigest()
    assert {one["delivery_id"] for one in record["inputs"]} == set(demo.plan["inputs"])
    assert {one["source"] for one in record["inputs"]} >= {"aws", "gcp", "azure"}
    assert {"pulp", "highspy", "duckdb"} <= set(record["libraries"])
    assert record["solve"] == demo.plan["summary"]["solve"]


# The same again


def test_the_checksum_of_the_plan_is_that_of_its_canonical_json(demo):
    body = demo.plan
    stated = body.pop("checksum")
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert stated == f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def test_a_plan_of_which_one_digit_was_edited_is_refused(demo, tmp_path):
    night = tmp_path / "night"
    shutil.copytree(demo.folder, night)
    text = (night / "plan.json").read_text()
    saving = demo.plan["summary"]["bill"]["saving_per_month"]
    digit = "1" if saving[0] != "1" else "2"
    edited = text.replace(f'"saving_per_month": "{saving}"', f'"saving_per_month": "{digit}'
                          f'{saving[1:]}"')  # fmt: skip
    assert len(edited) == len(text)
    assert edited != text
    (night / "plan.json").write_text(edited)
    answer = call("report", night, "--json")
    assert answer.code == 3
    assert answer.error["kind"] == "guard"
    assert "edited" in answer.error["message"]


def test_the_report_rendered_again_is_the_file_byte_for_byte(demo):
    before = contents(demo.folder)
    answer = call("report", demo.folder)
    assert answer.code == 0
    assert answer.out.encode() == before["report.md"]
    assert contents(demo.folder) == before


def test_another_loading_order_and_hash_seed_give_the_same_folder(demo, planned):
    assert contents(planned) == contents(demo.folder)


def test_the_same_night_twice_gives_the_same_folder_and_the_same_words(day, tmp_path):
    words = ["nightly", "--config", day / "loadfactor.toml", "--date", DAY, "--json"]
    words += ["--store", tmp_path / "store", "--out", tmp_path / "out"]
    first = run(*words, PYTHONHASHSEED="4")
    assert first.code == 4, first.err
    assert "only 24 hours of history" in first.err
    before = contents(tmp_path / "out")
    assert {name.rpartition("/")[2] for name in before} == FILES - {"timings.json"}
    second = run(*words, PYTHONHASHSEED="5")
    assert (second.code, second.out) == (first.code, first.out)
    assert contents(tmp_path / "out") == before


# The store


def test_totals_are_those_of_the_files_summed_one_by_one(store):
    by = "source,billing_period,currency"
    answer = call("totals", "--store", store, "--by", by, "--json")
    assert answer.code == 0
    told = {
        (row["source"], row["billing_period"], row["currency"]): {
            "source_rows": row["source_rows"],
            **{name: Decimal(row[name]) for name in NAMES},
        }
        for row in answer.json["rows"]
    }
    wanted = sums(FLEET)
    assert set(told) == set(wanted)
    # GCP's instance-hours are GPU-hours / 8 and so the only quotients; the rest is exact.
    for key, amounts in wanted.items():
        for name, amount in amounts.items():
            assert told[key][name] == amount, (key, name)


def test_hours_and_cost_of_every_purchase_option_are_those_of_the_generator(store):
    by = ["--by", "source,purchase_option,gpu_model,charge_type,commitment_status", "--json"]
    told: defaultdict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for row in call("totals", "--store", store, *by).json["rows"]:
        if row["gpu_model"] and row["charge_type"] == "usage":
            option = told[f"{row['source']} {row['purchase_option']}"]
            option["gpu_hours"] += Decimal(row["gpu_hours"])
    wanted = {name: Decimal(truth["gpu_hours"]) for name, truth in TRUTH["purchase"].items()}
    assert {name: option["gpu_hours"] for name, option in told.items()} == wanted


def test_loading_the_fleet_again_changes_nothing(store):
    totals = ["totals", "--store", store, "--by", "source,dataset,delivery_id,day", "--json"]
    before, catalogue = call(*totals).out, (store / "catalogue.json").read_bytes()
    paths = [FLEET / name for name in ("aws", "azure", "utilization", "gcp")]
    again = call("load", *paths, "--store", store, "--json")
    assert again.code == 0
    assert {one["status"] for one in again.json["deliveries"]} == {"unchanged"}
    assert call(*totals).out == before
    assert (store / "catalogue.json").read_bytes() == catalogue


def test_idle_by_class_is_the_generators_to_the_last_digit(store):
    config = ["--config", FLEET / "loadfactor.toml", "--store", store, "--date", DAY]
    answer = call("idle", *config, "--by", "workload_class", "--json")
    assert answer.code == 0
    told = {(row["workload_class"], row["state"]): row for row in answer.json["rows"]}
    for name, truth in TRUTH["classes"].items():
        for state in STATES:
            hours, cost = Decimal(truth["gpu_hours"][state]), Decimal(truth["cost"][state])
            row = told.get((name, state), {"gpu_hours": "0", "cost": "0"})
            assert (Decimal(row["gpu_hours"]), Decimal(row["cost"])) == (hours, cost)
    year = Decimal(answer.json["idle_cost_per_year"]["USD"])
    assert abs(year - Decimal(TRUTH["idle"]["cost_per_year"])) <= Decimal("0.01")
