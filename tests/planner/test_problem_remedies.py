"""What a message about a problem file advises, and that one fault is not told as several."""

from __future__ import annotations

import json

import pytest

from data.errors import ConfigError
from planner import problem_file
from tests.planner.test_problem_file import changed, faults_of, remedies_of, without


@pytest.mark.parametrize(
    ("document", "remedy"),
    [
        (changed("offers", 0, "ondemand", to=4.0), "perhaps on_demand was meant"),
        (changed("offers", 0, "colour", to=4.0), "leave it out, or let its name begin with x_"),
        (changed("offers", 0, "egress", to={"trian": 0.1}), "perhaps train was meant"),
        (changed("offers", 0, "egress", to={"zz": 0.1}), 'name one of: "prep", "train"'),
        (changed("scenarios", 0, "spot_available", to={"q": [1, 1]}), 'name one of: "a", "b"'),
        (changed("blocks", 0, "offer", to="q"), 'name one of: "a", "b"'),
        (changed("offers", 0, "on_demand", to="4"), "write 4 without quotes, or null where there"),
        (changed("classes", 0, "shortage_penalty", to=-1), "write a number > 0"),
        (changed("scenarios", 0, "p", to=0.8), "divide each p by the sum"),
        (changed("classes", 0, "kind", to="Firm"), "perhaps firm was meant"),
        (changed("quotas", 0, "uses", to=[]), "leave uses out where the quota limits both"),
        (changed("quotas", 0, "region", to="eu"), 'leave it out, or name one of: "aws" in "us"'),
        (without("offers", 0, "gpus"), "add it"),
    ],
)
def test_each_fault_tells_what_to_do(document, remedy):
    (found,) = remedies_of(document)
    assert found.startswith(remedy)


@pytest.mark.parametrize("hours", [0, -3, 1.5, True, "2", None, 10**400])
def test_wrong_hours_are_one_fault_and_no_series_is_blamed_for_them(hours):
    (fault,) = faults_of(changed("hours", to=hours))
    assert fault.startswith("hours: must ")


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (without("offers"), "offers: required, and missing"),
        (changed("offers", to=[]), "offers: must hold at least one entry"),
        (changed("offers", to={}), "offers: must be a list, is an object of 0"),
        (changed("classes", to=[]), "classes: must hold at least one entry"),
        (without("classes"), "classes: required, and missing"),
        (without("offers", 0, "id"), "offers[0].id: required, and missing"),
        (changed("classes", 0, "id", to=3), "classes[0].id: must be a string, is 3"),
        (without("offers", 0, "provider"), 'offers[0].provider (offer "a"): required, and missing'),
    ],
)
def test_what_refers_to_a_list_at_fault_is_not_blamed_for_it(document, fault):
    assert faults_of(document) == [fault]


def read_fault(tmp_path, text):
    path = tmp_path / "problem.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        problem_file.read(path)
    return caught.value


def test_half_a_character_is_named_with_its_place_wherever_it_stands(tmp_path):
    text = json.dumps(changed("x_note", to="whole: \U0001f600")).replace('"b"', r'"\ud800"', 2)
    error = read_fault(tmp_path, text)
    # The first "b" stands in the offers of a class, the second is the id of an offer.
    columns = [text.index(r'"\ud800"') + 1, text.rindex(r'"\ud800"') + 1]
    assert [one.where for one in error.problems] == [f"line 1 column {n}" for n in columns]
    assert error.problems[0].what == r'"\ud800" holds half a character'
    assert error.exit_code == 2
    str(error).encode()  # and so can be printed


def test_a_whole_pair_of_halves_is_a_character(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(changed("id", to="\U0001f600")), encoding="utf-8")
    assert problem_file.read(path).id == "\U0001f600"
