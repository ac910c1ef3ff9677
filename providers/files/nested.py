"""Nested values that stand as JSON text in a cell, read as expressions.

DuckDB's own JSON functions are called here and in `expressions` only; another engine needs the
same few functions under its names.
"""

from __future__ import annotations

from typing import Any

import ibis

from providers.files.expressions import json_text, to_json


@ibis.udf.scalar.builtin(name="json_valid")  # type: ignore[untyped-decorator]  # ibis has no types
def is_json(text: str) -> bool:  # type: ignore[empty-body]  # DuckDB's own function
    """Whether the text is JSON; null where it is missing."""


def valid_json(text: Any) -> Any:
    """The text where it is JSON, else null."""
    return is_json(text).ifelse(text, ibis.null("string"))


def value_at(text: Any, *keys: str) -> Any:
    """The text of the value under nested keys: null where it is missing."""
    path = "$" + "".join(f'."{key}"' for key in keys)
    return json_text(text, path).strip().nullif("").nullif("null")


def objects(text: Any, fields: tuple[str, ...]) -> Any:
    """The list of objects in a JSON array, each a struct of the fields as texts.

    Null where the text is missing or no valid JSON; a field that an object lacks is null.
    """
    shape = ", ".join(f'"{field}": "VARCHAR"' for field in fields)
    struct = ", ".join(f"{field}: string" for field in fields)

    signature = (("string", "string"), f"array<struct<{struct}>>")
    transform = ibis.udf.scalar.builtin(_two_texts, name="json_transform", signature=signature)
    return transform(valid_json(text), "[{" + shape + "}]")


def _two_texts(text: Any, structure: Any) -> Any:
    """The arguments of DuckDB's json_transform: a JSON text and the structure to give it."""


def object_or_raw(text: Any) -> Any:
    """The text as it is where it is JSON; else an object that keeps it under the key `_raw`."""
    kept = ibis.literal('{"_raw": ') + to_json(text) + "}"
    return is_json(text).ifelse(text, kept)


# A text stands between a structural sign and a structural sign; \x01 and \x02 are never in cells.
_OPENS, _CLOSES = r"([\[{,:]\s*)", r"(\s*[\]},:])"
_PYTHON_STEPS = (
    (r"Decimal\('([^']*)'\)", r"'\1'"),
    (r"\\x([0-9a-f]{2})", r"\\u00\1"),
    (r"\\'", "\x02"),
    (_OPENS + '"', "\\1\x01"),
    ('"' + _CLOSES, "\x01\\1"),
    ('"', r"\\" + '"'),
    (_OPENS + "'", r'\1"'),
    ("'" + _CLOSES, r'"\1'),
    ("\x01", '"'),
    ("\x02", "'"),
    (r"(:\s*)None" + _CLOSES, r"\1null\2"),
    (r"(:\s*)(?:True)" + _CLOSES, r"\1true\2"),
    (r"(:\s*)(?:False)" + _CLOSES, r"\1false\2"),
)


def from_python(text: Any) -> Any:
    """The text as JSON: as it is where it is JSON, else read as what Python prints.

    Flattened exports write lists as Python does (`[{'key': 'a', 'value': None}]`). The result is
    to be checked with `is_json`: a text in neither form stays broken.
    """
    read = text
    for pattern, replacement in _PYTHON_STEPS:
        read = read.re_replace(pattern, replacement)
    return is_json(text).ifelse(text, read)
