"""`loadfactor solve` as its user meets it: tables, sentences on stderr, and its proof."""

from __future__ import annotations

import json

import pytest

from tests.program import call

GOOD = {
    "reservations": [{"offer": "a", "id": "1y", "count": 3}],
    "savings_plans": [{"provider": "aws", "usd_per_hour": 2.5}],
    "blocks": [{"id": "k", "count": 1}],
}
# 9 GPUs for 12 hours, 10 for 12; a reservation at 1.999 of 4.00 pays where busy half of the time.
NIGHT = {
    "hours": 24,
    "classes": [{"id": "w", "kind": "firm", "offers": ["a"], "shortage_penalty": 100}],
    "offers": [
        {
            "id": "a", "provider": "aws", "region": "us", "gpus": 1, "on_demand": 4.0,
            "reservations": [{"id": "1y", "rate": 1.999}],
        }
    ],
    "scenarios": [{"p": 1, "demand": {"w": [9] * 12 + [10] * 12}}],
}  # fmt: skip


@pytest.fixture
def night(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(NIGHT))
    return path


def previous(tmp_path, *lines):
    path = tmp_path / "former.json"
    path.write_text(json.dumps({"reservations": lines, "savings_plans": [], "blocks": []}))
    return path


def test_the_cost_priced_again_stands_in_the_answer_of_both_methods(night):
    for method in ("decomposition", "direct"):
        answer = call("solve", night, "--method", method, "--json")
        # 10 GPUs at 1.999 for 24 hours.
        assert answer.json["audited"]["usd"] == pytest.approx(10 * 1.999 * 24)
        assert answer.json["audited"]["difference"] == pytest.approx(0.0, abs=1e-6)
        assert answer.json["audited"]["reason"] is None


def test_an_answer_without_a_dispatch_says_why_it_is_not_priced_again(tmp_path):
    long = json.loads(json.dumps(NIGHT))
    # Two waves that never meet: no hour of use is like another, so nothing merges; 3 x 70,000.
    hours = 70_000
    long["hours"] = hours
    long["classes"] = [long["classes"][0] | {"id": f"w{n}"} for n in range(3)]
    demand = {f"w{n}": [1 + hour % 7 for hour in range(hours)] for n in range(3)}
    long["scenarios"] = [{"p": 1, "demand": demand}]
    path = tmp_path / "long.json"
    path.write_text(json.dumps(long))
    answer = call("solve", path, "--json")
    assert answer.code == 0
    assert answer.json["audited"]["usd"] is None
    assert answer.json["audited"]["difference"] is None
    assert "no dispatch to price" in answer.json["audited"]["reason"]
    assert "not priced again: there is no dispatch" in call("solve", path).out


def test_the_answer_tells_the_distance_to_the_earlier_plan_and_its_price(night, tmp_path):
    former = previous(tmp_path, {"offer": "a", "id": "1y", "count": 8})
    answer = call("solve", night, "--previous", former, "--json")
    # The ninth is busy always and is bought: with 9 the tenth runs on demand, 12 hours at 4.00
    # instead of 24 at 1.999: 0.024 more, within a thousandth of 479.76. One instance changed.
    assert answer.json["reservations"] == [{"offer": "a", "id": "1y", "count": 9}]
    assert answer.json["previous"]["changed_instances"] == 1
    assert answer.json["previous"]["changed_usd_per_hour"] == 0
    assert answer.json["previous"]["extra_usd"] == pytest.approx(48 - 24 * 1.999, abs=1e-6)
    assert (
        "1 instance more or fewer than in the earlier plan"
        in call("solve", night, "--previous", former).out
    )


def test_a_line_that_is_no_longer_sold_is_a_warning_and_the_plan_is_made(night, tmp_path):
    former = previous(tmp_path, {"offer": "b", "id": "1y", "count": 8})
    answer = call("solve", night, "--previous", former, "--json")
    assert (answer.code, answer.json["status"]) == (4, "optimal")
    assert answer.err.startswith('warning: --previous reservations: the problem does not sell "b"')
    assert len(answer.json["warnings"]) == 1


def test_a_faulty_earlier_answer_is_wrong_configuration_with_its_place(night, tmp_path):
    former = previous(tmp_path, {"offer": "a", "id": "1y", "count": -8})
    answer = call("solve", night, "--previous", former, "--json")
    assert (answer.code, answer.error["kind"]) == (2, "config")
    assert [one["where"] for one in answer.error["problems"]] == [
        'reservations[0].count (offer "a", id "1y")'
    ]
    assert "Error" not in answer.error["message"]


def test_people_read_tables_with_their_units(night):
    answer = call("solve", night)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "status     optimal: proven within the gap"
    assert lines[1] == "cost       479.76 USD over the hours of the file"
    assert "reservation  a   1y  10 instances" in lines
    assert "reserved      479.76  100.0%" in lines
    assert "audited    priced again from the file by code of its own: 479.76 USD, no" in lines
    assert not any(mark in answer.out for mark in "{}[]'")


def test_the_explanation_is_in_tables_and_words(night):
    answer = call("solve", night, "--why")
    assert answer.code == 0
    assert "Why these purchases (USD a month of 730 hours)" in answer.out
    assert not any(mark in answer.out for mark in "{}[]")
    assert "_" not in answer.out
    assert max(len(line) for line in answer.out.splitlines()) <= 100


def test_demand_that_is_not_served_is_told_with_its_scenarios_and_the_limit(tmp_path):
    short = json.loads(json.dumps(NIGHT))
    short["quotas"] = [{"provider": "aws", "region": "us", "gpus": 2}]
    short["offers"][0]["reservations"] = []
    path = tmp_path / "short.json"
    path.write_text(json.dumps(short))
    answer = call("solve", path, "--why")
    # 12 hours of 7 and 12 of 8 GPUs are beyond the quota of 2.
    assert "Demand that is not served" in answer.out
    assert "\n    in conflict: quotas used up: aws us (2 GPUs)\n" in answer.out
    (row,) = [line for line in answer.out.splitlines() if line.startswith("w  ")]
    assert row.split()[1:6] == ["24", "0", "23", "8", "180"]
    assert not any(mark in answer.out for mark in "{}[]")


def test_a_search_that_its_limit_ended_says_so_in_a_sentence(tmp_path):
    from tools.bench import make_problem

    path = tmp_path / "problem.json"
    path.write_text(json.dumps(make_problem(classes=20, hours=168)))
    answer = call("solve", path, "--time-limit", "0.001")
    assert answer.code == 4
    assert answer.err.startswith("the search stopped at its time limit of 0.001 seconds before ")
    assert "the plan is within" in answer.err
    assert answer.out.startswith("status     feasible: a plan, not proven")


def test_the_solver_of_whole_counts_is_named_with_that_of_the_relaxations(night, tmp_path):
    name = call("solve", night, "--solver", "cbc", "--json").json["solver"]
    assert name.startswith("highs ")
    assert name.endswith(" (relaxations; cbc not needed)")
    assert call("solve", night, "--json").json["solver"].startswith("highs ")
    split = json.loads(json.dumps(NIGHT))
    # Instances of 4: 9 or 10 GPUs are no whole number of them, so a whole master is solved.
    split["offers"][0]["gpus"] = 4
    path = tmp_path / "split.json"
    path.write_text(json.dumps(split))
    name = call("solve", path, "--solver", "cbc", "--gap", "0", "--json").json["solver"]
    assert name.startswith("cbc ")
    assert "(relaxations: highs " in name
