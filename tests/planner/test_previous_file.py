"""The earlier answer that a plan stays near to: what is read of it, and every fault of the file."""

from __future__ import annotations

import json

import pytest

from data.errors import ConfigError
from planner.outcome import BlockCount, Commitment, Plan, ReservedCount
from planner.previous_file import read
from planner.problem import Block, SavingsPlan
from tests.planner.test_cli_solving import GOOD
from tests.problems import firm, offer, problem

ASKED = problem(
    [firm("w", ["a", "b"])],
    [offer("a", 4.0, 2.4, sp_rate=3.0), offer("b", 4.0, 2.4)],
    {"w": [8, 8]},
    savings_plans=(SavingsPlan("aws"),),
    blocks=(Block("k", "a", 8, 0, 2, 3.0, 2),),
)


def written(tmp_path, document):
    path = tmp_path / "former.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def faults_of(tmp_path, document):
    with pytest.raises(ConfigError) as caught:
        read(written(tmp_path, document), ASKED)
    assert caught.value.exit_code == 2
    assert all(one.remedy for one in caught.value.problems)
    return [f"{one.where}: {one.what}" for one in caught.value.problems]


def test_an_answer_is_read_sorted_and_without_lines_of_zero(tmp_path):
    lines = [
        {"offer": "b", "id": "1y", "count": 1.0},
        {"offer": "a", "id": "1y", "count": 3},
    ]
    document = GOOD | {"reservations": lines, "blocks": [{"id": "k", "count": 0}]}
    found = read(written(tmp_path, document), ASKED)
    assert found.plan == Plan(
        (ReservedCount("a", "1y", 3), ReservedCount("b", "1y", 1)), (Commitment("aws", 2.5),)
    )
    assert found.warnings == ()
    whole = read(written(tmp_path, GOOD), ASKED).plan
    assert whole.blocks == (BlockCount("k", 1),)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"count": -1}, "count {}: must be >= 0, is -1"),
        ({"count": 1.5}, "count {}: must be a whole number, is 1.5"),
        ({"count": True}, "count {}: must be a number, is true"),
        ({"count": "3"}, 'count {}: must be a number, is "3"'),
        ({"count": None}, "count {}: must not be null"),
        ({"count": 10**400}, "count {}: must be a finite number, is 1000000"),
        ({"offer": 3}, 'offer (id "1y"): must be a string, is 3'),
    ],
)
def test_a_fault_of_a_line_is_named_at_its_place(tmp_path, change, fault):
    line = {"offer": "a", "id": "1y", "count": 3} | change
    (found,) = faults_of(tmp_path, GOOD | {"reservations": [line]})
    wanted = fault.format('(offer "a", id "1y")')
    assert found.startswith(f"reservations[0].{wanted}")


def test_every_fault_is_told_at_once_in_words_of_the_file(tmp_path):
    line = {"offer": "a", "id": "1y", "count": 3}
    document = {
        "reservations": [line, line, 5],
        "savings_plans": [{"provider": "aws", "usd_per_hour": -2}, {"usd_per_hour": 1}],
    }
    text = json.dumps(document)[:-1] + ', "blocks": [{"id": "k", "count": 1e400}]}'
    assert faults_of(tmp_path, text) == [
        'blocks[0].count (id "k"): must be a finite number, is Infinity',
        'reservations[1].id (offer "a", id "1y"): repeats the line of reservations[0]',
        "reservations[2]: must be an object, is 5",
        'savings_plans[0].usd_per_hour (provider "aws"): must be >= 0, is -2',
        "savings_plans[1].provider: required, and missing",
    ]


def test_an_answer_without_a_plan_and_what_is_no_answer_are_told(tmp_path):
    wanted = [
        f"{name}: required, and missing" for name in ("blocks", "reservations", "savings_plans")
    ]
    assert faults_of(tmp_path, {"status": "infeasible", "objective": None}) == wanted
    assert faults_of(tmp_path, "[]") == ["document: must be an object, is a list of 0"]
    (fault,) = faults_of(tmp_path, '{"reservations": [}')
    assert fault.startswith("line 1 column 19: Expecting value")
    with pytest.raises(ConfigError, match="the previous answer cannot be read"):
        read(tmp_path / "none.json", ASKED)


def test_what_is_no_longer_sold_is_left_out_with_a_warning(tmp_path):
    document = {
        "reservations": [
            {"offer": "a", "id": "1y", "count": 2},
            {"offer": "a", "id": "3y", "count": 2},
            {"offer": "gone", "id": "1y", "count": 1},
        ],
        "savings_plans": [{"provider": "azure", "usd_per_hour": 2.0}],
        "blocks": [{"id": "last-week", "count": 1}],
    }
    found = read(written(tmp_path, document), ASKED)
    assert found.plan == Plan((ReservedCount("a", "1y", 2),))
    assert [one.split(": ")[1] for one in found.warnings] == [
        'the problem does not sell "a", "3y"',
        'the problem does not sell "gone", "1y"',
        'the problem does not sell "azure"',
        'the problem does not sell "last-week"',
    ]
