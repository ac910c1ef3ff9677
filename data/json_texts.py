"""DuckDB's functions on JSON texts in Python, for engines that have none of the same meaning.

Spark's own read numbers as floats and take single quotes for JSON; these keep every number as it
is written. Only the standard library is used, so that Spark can send the functions to its workers.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = re.compile(r'\."([^"]*)"|\.([^."\[\]]+)')


_ESCAPES = {number: f"\\u{number:04X}" for number in range(32)}
_ESCAPES |= {
    ord('"'): '\\"', ord("\\"): "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r",
}  # fmt: skip


class Written(str):
    """A number, as its text."""

    __slots__ = ()


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in pairs:
        kept.setdefault(key, value)
    return kept


def _constant(word: str) -> Written:
    # DuckDB, too, takes NaN and Infinity for numbers.
    return Written(word.lower())


def read(text: str) -> tuple[bool, Any]:
    """Whether the text is JSON, and what it says, numbers as `Written`."""
    try:
        value = json.loads(
            text,
            parse_float=Written,
            parse_int=Written,
            parse_constant=_constant,
            object_pairs_hook=_first,
        )
    except (ValueError, RecursionError):
        return False, None
    return True, value


def quote(text: str | None) -> str | None:
    r"""The text as a JSON string.

    >>> print(quote('a "b"'))
    "a \"b\""
    """
    return None if text is None else '"' + text.translate(_ESCAPES) + '"'


def is_json(text: str | None) -> bool | None:
    """Whether the text is JSON; None where it is missing.

    >>> is_json('{"a": 1}'), is_json("{'a': 1}")
    (True, False)
    """
    return None if text is None else read(text)[0]


def text_at(text: str | None, path: str) -> str | None:
    """The value at a path such as `$."a"."b"` as text; None where there is none.

    >>> text_at('{"a": {"b": 0.10}}', '$."a"."b"')
    '0.10'
    """
    if text is None:
        return None
    _, value = read(text)
    for quoted, plain in _STEP.findall(path):
        if not isinstance(value, dict):
            return None
        value = value.get(quoted or plain)
    return as_text(value)


def as_text(value: Any) -> str | None:
    """What `->>` gives: a string or a number as it is, anything else as JSON."""
    if value is None:
        return None
    return str(value) if isinstance(value, str) else written(value)


def written(value: Any) -> str:
    """The value as JSON without blanks, numbers as they were written."""
    if isinstance(value, Written):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{quote(key)}:{written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(one) for one in value) + "]"
    return str(quote(value)) if isinstance(value, str) else json.dumps(value)


def objects_of(fields: tuple[str, ...]) -> Callable[[str | None], Any]:
    """The function that gives the objects of a JSON array, each as the texts of the fields."""

    def objects(text: str | None) -> list[tuple[str | None, ...] | None] | None:
        if text is None:
            return None
        _, value = read(text)
        if not isinstance(value, list):
            return None
        return [None if one is None else fields_of(one) for one in value]

    def fields_of(one: Any) -> tuple[str | None, ...]:
        known = one if isinstance(one, dict) else {}
        return tuple(as_text(known.get(field)) for field in fields)

    return objects
