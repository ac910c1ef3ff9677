"""JSON functions for other engines give what DuckDB's own give, text by text."""

from __future__ import annotations

import duckdb
import pytest

from data import json_texts

TEXTS = (
    '{"a": 1}', '{"a":0.10,"b":[1.50,{"c":null}]}', '{"a": "x\\"y\\u00e9\\n"}', "{'a': 1}", "",
    " ", "null", '"text"', "1e400", "[]", "{}", '{"a": {"b": "deep", "b c": -0.0}}', '{"a": null}',
    '{"a": true, "A": false}', '{"a": 1} x', '[{"a": "1"}, 2, {"b": 3}]',
    '{"a": 123456789012345678901234567890.12345678901234567890}', "{broken", '{"a": ""}',
    '{"a": "1", "a": "2"}',
)  # fmt: skip
PLAIN = ("plain", 'quo"te', "back\\slash", "tab\tline\nend\r", "é ß 漢 🙂", "\x01\x1f", "", "a/b")
PATHS = ('$."a"', '$."a"."b"', '$."a"."b c"', "$.a", '$."missing"')


@pytest.fixture(scope="module")
def ask():
    with duckdb.connect() as connection:
        yield lambda sql, *values: connection.execute(f"SELECT {sql}", values).fetchone()[0]


def number(text):
    """The number that the text is: DuckDB writes 0.10 as 0.1; any other text as it is."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_json_is_json_for_both(ask, text):
    assert json_texts.is_json(text) == ask("json_valid(?::VARCHAR)", text)


@pytest.mark.parametrize("path", PATHS)
def test_the_text_at_a_path_is_that_of_duckdb(ask, path):
    texts = [text for text in TEXTS if json_texts.is_json(text)]
    found = [number(json_texts.text_at(text, path)) for text in texts]
    theirs = [ask("json_extract_string(?::VARCHAR, ?)", text, path) for text in texts]
    assert found == [number(text) for text in theirs]


@pytest.mark.parametrize("text", PLAIN)
def test_a_quoted_text_is_that_of_duckdb(ask, text):
    assert json_texts.quote(text) == ask("to_json(?::VARCHAR)::VARCHAR", text)


@pytest.mark.parametrize(
    "text",
    [
        '[{"type": "A", "amount": -0.10}, {"amount": "1E-7", "other": 1}]', "[]", '{"type": "A"}',
        '[{"type": null, "amount": {"a": [1, 2.5]}}, 7, null, "x"]', '"text"',
    ],
)  # fmt: skip
def test_objects_of_a_list_are_those_of_duckdb(ask, text):
    ours = json_texts.objects_of(("type", "amount"))(text)
    theirs = ask(
        """json_transform(?::VARCHAR, '[{"type": "VARCHAR", "amount": "VARCHAR"}]')""", text
    )
    assert (ours is None) == (theirs is None)
    wanted = [one and (one["type"], number(one["amount"])) for one in theirs or []]
    assert [one and (one[0], number(one[1])) for one in ours or []] == wanted


def test_what_is_missing_stays_missing():
    assert json_texts.is_json(None) is None
    assert json_texts.text_at(None, "$.a") is None
    assert json_texts.quote(None) is None
    assert json_texts.objects_of(("a",))(None) is None
