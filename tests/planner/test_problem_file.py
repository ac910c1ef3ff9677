"""The reader of the neutral format: what it accepts, and every fault it must name."""

from __future__ import annotations

import copy
import gzip
import json

import pytest

from data.errors import ConfigError
from planner import problem_file

GOOD = {
    "format": "loadfactor-problem/1",
    "id": "two-hours",
    "hours": 2,
    "classes": [
        {"id": "train", "kind": "firm", "offers": ["a", "b"], "shortage_penalty": 50.0},
        {
            "id": "prep",
            "kind": "deferrable",
            "window": 1,
            "offers": ["a"],
            "shortage_penalty": 20.0,
        },
    ],
    "offers": [
        {
            "id": "a",
            "provider": "aws",
            "region": "us",
            "gpus": 8,
            "on_demand": 4.0,
            "reservations": [{"id": "1y", "rate": 2.4, "upfront": 100}],
            "spot": 1.5,
            "spot_throughput": 0.9,
            "sp_rate": 2.8,
            "existing": [{"gpus": 8, "until_hour": 5}],
            "egress": {"train": 0.1},
        },
        {"id": "b", "provider": "gcp", "region": "eu", "gpus": 1, "on_demand": None},
    ],
    "scenarios": [{"p": 1.0, "demand": {"train": [4, 5.5], "prep": [3, 0]}}],
    "savings_plans": [{"provider": "aws"}],
    "quotas": [{"provider": "aws", "region": "us", "gpus": 64}],
    "blocks": [
        {"id": "k", "offer": "a", "gpus": 8, "start": 0, "length": 2, "price": 3.0, "max": 1}
    ],
    "upfront_budget": None,
    "cvar": {"lambda": 0.5, "beta": 0.9},
}


def changed(*path, to):
    document = copy.deepcopy(GOOD)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return document


def without(*path):
    document = copy.deepcopy(GOOD)
    place = document
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return document


def faults_of(document):
    with pytest.raises(ConfigError) as caught:
        problem_file.parse(document)
    assert caught.value.exit_code == 2
    assert [one for one in caught.value.problems if not one.remedy] == []
    return [f"{one.where}: {one.what}" for one in caught.value.problems]


def remedies_of(document):
    with pytest.raises(ConfigError) as caught:
        problem_file.parse(document)
    return [one.remedy for one in caught.value.problems]


def faults_of_text(tmp_path, text):
    path = tmp_path / "problem.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        problem_file.read(path)
    return [str(problem) for problem in caught.value.problems]


def test_every_field_of_a_correct_problem_is_read():
    problem = problem_file.parse(GOOD)
    assert (problem.hours, problem.hour_weight, problem.on_demand_integer) == (2, 1.0, False)
    train, prep = problem.classes
    assert (train.id, train.kind, train.offers) == ("train", "firm", ("a", "b"))
    assert (prep.kind, prep.window, prep.shortage_penalty) == ("deferrable", 1, 20.0)
    a, b = problem.offers
    assert (a.gpus, a.on_demand, a.spot, a.spot_throughput, a.sp_rate) == (8, 4.0, 1.5, 0.9, 2.8)
    assert (a.reservations[0].rate, a.reservations[0].upfront) == (2.4, 100.0)
    assert (a.existing[0].gpus, a.existing[0].until_hour) == (8.0, 5)
    assert dict(a.egress) == {"train": 0.1}
    assert (b.on_demand, b.spot, b.reservations) == (None, None, ())
    assert problem.scenarios[0].demand["train"].tolist() == [4.0, 5.5]
    assert problem.quotas[0].gpus == 64
    assert problem.blocks[0].price == 3.0
    assert problem.upfront_budget is None
    assert problem.cvar is not None
    assert (problem.cvar.weight, problem.cvar.beta) == (0.5, 0.9)


@pytest.mark.parametrize("suffix", ["json", "json.gz", "dat"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_gzip_is_told_by_its_first_bytes_whatever_the_name(tmp_path, suffix, pack):
    path = tmp_path / f"problem.{suffix}"
    path.write_bytes(pack(json.dumps(GOOD).encode()))
    assert problem_file.read(path).id == "two-hours"


def test_fields_that_begin_with_x_are_ignored_at_every_level():
    document = copy.deepcopy(GOOD)
    document["x_note"] = {"any": "thing"}
    document["classes"][0]["x_team"] = "vision"
    document["offers"][0]["reservations"][0]["x_source"] = 1
    document["scenarios"][0]["demand"]["x_total"] = "none"
    document["cvar"]["x_why"] = None
    assert problem_file.parse(document).hours == 2


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (
            changed("offers", 0, "reservations", 0, "rate", to=-2.4),
            'offers[0].reservations[0].rate (offer "a", reservation "1y"): must be > 0, is -2.4',
        ),
        (
            changed("offers", 0, "on_demand", to=0),
            'offers[0].on_demand (offer "a"): must be > 0, is 0',
        ),
        (
            changed("offers", 0, "spot", to="1.5"),
            'offers[0].spot (offer "a"): must be a number, is "1.5"',
        ),
        (
            changed("offers", 0, "gpus", to=True),
            'offers[0].gpus (offer "a"): must be a number, is true',
        ),
        (
            changed("offers", 0, "gpus", to=7.5),
            'offers[0].gpus (offer "a"): must be a whole number, is 7.5',
        ),
        (
            changed("offers", 0, "spot_throughput", to=1.2),
            'offers[0].spot_throughput (offer "a"): must be <= 1, is 1.2',
        ),
        (
            without("offers", 0, "spot_throughput"),
            'offers[0].spot_throughput (offer "a"): required, and missing',
        ),
        (
            without("offers", 1, "on_demand"),
            'offers[1].on_demand (offer "b"): required, and missing',
        ),
        (
            changed("offers", 0, "ondemand", to=4.0),
            'offers[0].ondemand (offer "a"): unknown field',
        ),
        (
            changed("offers", 0, "egress", to={"trian": 0.1}),
            'offers[0].egress.trian (offer "a"): unknown class "trian"',
        ),
        (
            changed("offers", 1, "id", to="a"),
            'offers[1].id (offer "a"): repeats the id of offers[0]',
        ),
        (
            changed("classes", 0, "offers", to=["a", "c"]),
            'classes[0].offers (class "train"): unknown offer "c"',
        ),
        (
            changed("classes", 0, "offers", to=["a", "a"]),
            'classes[0].offers[1] (class "train"): repeats "a" of offers[0]',
        ),
        (
            changed("classes", 0, "offers", to=[]),
            'classes[0].offers (class "train"): must hold at least one id',
        ),
        (
            changed("classes", 0, "window", to=3),
            'classes[0].window (class "train"): a firm class has no window',
        ),
        (
            without("classes", 1, "window"),
            'classes[1].window (class "prep"): required, and missing',
        ),
        (
            changed("classes", 0, "kind", to="soft"),
            'classes[0].kind (class "train"): must be "firm" or "deferrable", is "soft"',
        ),
        (
            changed("classes", 0, "min_firm_share", to=1.5),
            'classes[0].min_firm_share (class "train"): must be <= 1, is 1.5',
        ),
        (
            changed("classes", 0, "min_firm_share", to=None),
            'classes[0].min_firm_share (class "train"): must not be null',
        ),
        (
            changed("scenarios", 0, "demand", "train", to=[4]),
            'scenarios[0].demand.train (class "train", scenario 0): must have 2 hours, has 1',
        ),
        (
            changed("scenarios", 0, "demand", "train", to=[4, -1]),
            'scenarios[0].demand.train[1] (class "train", scenario 0, hour 1): must be >= 0, is -1',
        ),
        (
            without("scenarios", 0, "demand", "prep"),
            'scenarios[0].demand.prep (class "prep", scenario 0): a class without a series',
        ),
        (
            changed("scenarios", 0, "p", to=0.75),
            "scenarios: the probabilities must sum to 1, sum to 0.75",
        ),
        (
            changed("quotas", 0, "region", to="eu"),
            'quotas[0].region: no offer is of "aws" in "eu"',
        ),
        (
            changed("savings_plans", 0, "provider", to="azure"),
            'savings_plans[0].provider: no offer is of provider "azure"',
        ),
        (
            changed("savings_plans", to=[{"provider": "aws"}, {"provider": "aws"}]),
            'savings_plans[1].provider: repeats "aws" of savings_plans[0]',
        ),
        (
            changed("blocks", 0, "length", to=3),
            'blocks[0].length (block "k"): start + length must be <= 2 hours, is 3',
        ),
        (changed("blocks", 0, "offer", to="z"), 'blocks[0].offer (block "k"): unknown offer "z"'),
        (changed("cvar", "beta", to=1), "cvar.beta: must be < 1, is 1"),
        (without("cvar", "lambda"), "cvar.lambda: required, and missing"),
        (changed("hours", to=0), "hours: must be >= 1, is 0"),
        (changed("format", to="other/2"), 'format: must be "loadfactor-problem/1", is "other/2"'),
        (changed("hour_weight", to=float("nan")), "hour_weight: must be a finite number, is NaN"),
        (changed("upfront_budget", to=-1), "upfront_budget: must be >= 0, is -1"),
        (changed("on_demand_integer", to=1), "on_demand_integer: must be true or false, is 1"),
        (
            changed("clases", to=[]),
            "clases: unknown field",
        ),
        ([], "document: must be an object, is a list of 0"),
    ],
)  # fmt: skip
def test_a_fault_is_named_by_path_and_id(document, fault):
    assert fault in faults_of(document)


def test_every_fault_is_reported_at_once():
    document = copy.deepcopy(GOOD)
    document["offers"][0]["on_demand"] = -4
    document["classes"][1]["shortage_penalty"] = 0
    document["scenarios"][0]["demand"]["prep"] = [1, "2"]
    del document["quotas"][0]["gpus"]
    assert faults_of(document) == [
        'classes[1].shortage_penalty (class "prep"): must be > 0, is 0',
        'offers[0].on_demand (offer "a"): must be > 0, is -4',
        "quotas[0].gpus: required, and missing",
        'scenarios[0].demand.prep[1] (class "prep", scenario 0, hour 1): must be a number, is "2"',
    ]


def test_nan_and_infinity_are_rejected_wherever_they_stand(tmp_path):
    text = json.dumps(GOOD).replace('"rate": 2.4', '"rate": NaN').replace("5.5", "Infinity")
    text = text.replace('"id": "two-hours"', '"x_deep": {"list": [1, -Infinity]}')
    assert faults_of_text(tmp_path, text) == [
        'offers[0].reservations[0].rate (offer "a", reservation "1y"): '
        "must be a finite number, is NaN (JSON has no such number)",
        'scenarios[0].demand.train[1] (class "train", scenario 0, hour 1): '
        "must be a finite number, is Infinity (JSON has no such number)",
        "x_deep.list[1]: -Infinity stands where a number must (JSON has no such number)",
    ]


@pytest.mark.parametrize("digits", [309, 500, 5000])  # Python itself reads 4300 at most
def test_a_number_too_large_for_a_float_is_no_finite_number(tmp_path, digits):
    text = (
        json.dumps(GOOD).replace("5.5", "1e999").replace('"rate": 2.4', f'"rate": {"9" * digits}')
    )
    found = faults_of_text(tmp_path, text.replace('"id": "two-hours"', '"x_a": NaN'))
    assert len(found) == 3
    assert 'reservation "1y"): must be a finite number, is ' in found[0]
    assert '(class "train", scenario 0, hour 1): must be a finite number' in found[1]
    assert found[2].startswith("x_a: NaN stands where a number must")


def test_a_repeated_key_is_named_with_its_line_and_column(tmp_path):
    text = json.dumps(GOOD, indent=1).replace('"hours": 2,', '"hours": 2,\n "hours": 3,')
    # Lines: {, format, id, hours, hours: the second stands in line 5, after one blank.
    assert 'line 5 column 2: repeated key "hours" (leave one of them out)' in faults_of_text(
        tmp_path, text
    )


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('{"hours": 1', "line 1 column 12", "Expecting ',' delimiter"),
        ("{}\n{}", "line 2 column 1", "a second document begins here"),
        (b'{"id": "\xff"}', "line 1 column 9", "not UTF-8"),
        (gzip.compress(b"{}" * 99, mtime=0)[:-9], "problem.json", "broken gzip"),
        ("", "line 1 column 1", "Expecting value"),
        ("[" * 100_000, "problem.json", "nested too deeply"),
    ],
)
def test_what_is_no_single_document_is_named_with_its_place(tmp_path, text, place, what):
    (fault,) = faults_of_text(tmp_path, text)
    assert place in fault
    assert what in fault


def test_a_file_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        problem_file.read(tmp_path / "none.json")


def test_a_long_series_of_faults_is_cut_with_a_count():
    document = changed("hours", to=100)
    document["scenarios"][0]["demand"] = {"train": [-1] * 100, "prep": [0] * 100}
    found = faults_of(document)
    assert len(found) == 21  # twenty hours, and one line for the other eighty
    assert any("and 80 more hours" in fault for fault in found)
