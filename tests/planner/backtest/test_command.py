"""`loadfactor backtest` as a person and a script meet it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.program import call

PRICES = (
    "on_demand = 3.9\nreserved = 2.6\nspot = 1.6\nspot_throughput = 0.9\n"
    "term_hours = 8760\ngpus_per_instance = 8\n"
)
POLICIES = [
    "loadfactor", "all_on_demand", "peak", "mean", "quantile", "quantile_firm_spot_defer",
    "lp_on_history", "cloud_replay", "foresight",
]  # fmt: skip


def write(folder, gpus, waiting_share=0.0, leave_out=()):
    rows = "".join(
        f"{hour},all,{value:g},{value * waiting_share:g}\n"
        for hour, value in enumerate(gpus)
        if hour not in leave_out
    )
    demand, prices = folder / "demand.csv", folder / "prices.toml"
    demand.write_text("hour,class,gpus,deferrable_gpus\n" + rows)
    prices.write_text(PRICES)
    return "backtest", demand, "--prices", prices


@pytest.fixture(scope="module")
def weekly():
    """Twelve weeks around 400 GPUs, days above nights, working days above weekends."""
    hour = np.arange(12 * 168)
    day = 40 * np.sin(2 * np.pi * hour / 24) - 60 * ((hour // 24) % 7 >= 5)
    return np.round(400 + day + np.random.default_rng(3).normal(0, 8, len(hour)))


def test_the_document_has_the_form_of_the_contract(tmp_path, weekly):
    answer = call(*write(tmp_path, weekly, 0.1), "--json")
    assert answer.code in (0, 4), answer.err
    found = answer.json
    assert (found["train_hours"], found["test_hours"]) == (1008, 1008)
    assert [one["policy"] for one in found["policies"]] == POLICIES
    by_name = {one["policy"]: one for one in found["policies"]}
    bound = by_name["foresight"]["usd"]
    assert by_name["foresight"]["over_foresight"] == 0.0
    for one in found["policies"]:
        assert one["usd"] == pytest.approx(sum(one["costs"].values()))
        assert one["over_foresight"] == pytest.approx(one["usd"] / bound - 1)
        levels = one["reserved_gpus"]
        assert levels[0]["from_hour"] == 1008
        assert all(level["gpus"] % 8 == 0 for level in levels)
    assert (answer.code == 4) == bool(found["warnings"])
    everything = 3.9 * 0.9 * weekly[1008:].sum() + 1.6 / 0.9 * 0.1 * weekly[1008:].sum()
    assert by_name["all_on_demand"]["usd"] == pytest.approx(everything)


def test_on_steady_demand_the_plan_is_near_the_bound(tmp_path, weekly):
    """Nothing drifts: half a year's half leaves little to be lost."""
    found = call(*write(tmp_path, weekly), "--json").json
    mine = next(one for one in found["policies"] if one["policy"] == "loadfactor")
    assert mine["over_foresight"] < 0.03


def test_the_same_files_give_the_same_bytes(tmp_path, weekly):
    words = write(tmp_path, weekly, 0.3)
    assert call(*words, "--json").out == call(*words, "--json").out


def test_people_read_the_same_numbers(tmp_path, weekly):
    words = write(tmp_path, weekly, 0.1)
    text, found = call(*words).out, call(*words, "--json").json
    assert text.startswith("1,008 hours of history, 1,008 hours unseen")
    lines = {line.split()[0]: line for line in text.splitlines() if "$" in line}
    for one in found["policies"]:
        assert f"${one['usd']:,.0f}" in lines[one["policy"]]
        assert f"{one['over_foresight']:.2%}" in lines[one["policy"]]
    assert "if 20.0% of them fail" in text
    plan = found["policies"][0]
    for step in plan["decisions"]:
        assert step["reason"]
        assert f"hour {step['hour']}: " in text
        assert step["reason"] in text


def test_a_gap_is_a_warning_and_exit_code_4(tmp_path, weekly):
    answer = call(*write(tmp_path, weekly, leave_out=(5, 6, 1500)), "--json")
    assert answer.code == 4
    assert any("3 of 2016 hours have no reading" in one for one in answer.json["warnings"])
    assert "warning: 3 of 2016 hours" in answer.err
    assert sum("no reading" in one for one in answer.json["warnings"]) == 1


def test_the_options_move_the_cut_and_the_steps(tmp_path, weekly):
    words = write(tmp_path, weekly)
    found = call(*words, "--train-share", "0.75", "--replan-weeks", "1", "--json").json
    assert (found["train_hours"], found["test_hours"]) == (1512, 504)
    steps = [step["hour"] for step in found["policies"][0]["decisions"]]
    assert steps == [1512, 1680, 1848]


def test_spot_availability_is_taken_from_its_file(tmp_path, weekly):
    never = tmp_path / "spot.csv"
    never.write_text("hour,available\n0,0\n")
    words = write(tmp_path, weekly, 0.5)
    found = call(*words, "--spot-availability", never, "--json").json
    assert all(one["costs"]["spot"] == 0 for one in found["policies"])
    usd = next(one["usd"] for one in found["policies"] if one["policy"] == "all_on_demand")
    assert usd == pytest.approx(3.9 * weekly[1008:].sum())


@pytest.mark.parametrize(
    "words",
    [
        ["--train-share", "0"], ["--train-share", "1"], ["--train-share", "half"],
        ["--replan-weeks", "0"], ["--replan-weeks", "1.5"], ["--max-delay-hours", "-1"],
        ["--spot", "x"],
    ],
)  # fmt: skip
def test_wrong_words_are_wrong_usage(tmp_path, words):
    answer = call(*write(tmp_path, [1] * 8), *words, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "usage")


def test_the_prices_must_be_named(tmp_path):
    assert call("backtest", tmp_path / "d.csv", "--json").error["kind"] == "usage"


def test_faults_of_both_files_are_one_error_of_configuration(tmp_path):
    words = write(tmp_path, [-1, 2])
    (tmp_path / "prices.toml").write_text("on_demand = 0\n")
    answer = call(*words, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "config")
    told = json.dumps(answer.error["problems"])
    for part in ("demand.csv: line 2", "on_demand", "reserved", "term_hours"):
        assert part in told
    plain = call(*words)
    assert (plain.code, plain.out) == (2, "")
    assert "Traceback" not in plain.err
