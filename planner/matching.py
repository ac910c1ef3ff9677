"""Patterns of class rules: one regular expression a condition, the same in SQL and in pandas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# RE2, Java and Python agree on these flags: letter case does not count, `.` is any character.
_FLAGS = "(?is)"
# Cost exports put these before a user's own tag keys: AWS CUR `user:Team`, CUR 2.0 `user_team`.
_TAG_PREFIX = "(?:user[:_])?"
_JSON_PAIR = r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
_JSON_CHAR = rf'(?:[^"\\]|{_JSON_PAIR}|\\u[0-9a-f]{{4}}|\\[^u])'
_JSON_SHORT = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", '"': '"', "\\": "\\"}


def whole_text(globs: Iterable[str]) -> str:
    """A pattern that finds a text which as a whole is one of the globs (`*`, `?`).

    >>> bool(compiled(whole_text(["p5*"])).search("P5.48xlarge"))
    True
    >>> bool(compiled(whole_text(["p5"])).search("p5.48xlarge"))
    False
    """
    bodies = ["".join(_plain(char) for char in glob) for glob in globs]
    return rf"{_FLAGS}^(?:{'|'.join(bodies)})$"


def json_member(key: str, globs: Iterable[str]) -> str:
    r"""A pattern that finds, in one JSON object of texts, the key with one of the values.

    >>> pattern = json_member("team", ["res*"])
    >>> bool(compiled(pattern).search('{"user:Team": "research"}'))
    True
    >>> bool(compiled(pattern).search('{"note": "\\"team\\": \\"res\\""}'))
    False
    """
    bodies = ["".join(_in_json(char) for char in glob) for glob in globs]
    name = "".join(_json_literal(char) for char in key)
    return rf'{_FLAGS}[{{,]\s*"{_TAG_PREFIX}{name}"\s*:\s*"(?:{"|".join(bodies)})"'


def compiled(pattern: str) -> re.Pattern[str]:
    r"""A pattern of this module for Python, where `$` alone would also stand before a last "\n"."""
    return re.compile(rf"{pattern[:-1]}\Z" if pattern.endswith("$") else pattern)


def _plain(char: str) -> str:
    return {"*": ".*", "?": "."}.get(char) or re.escape(char)


def _in_json(char: str) -> str:
    if char == "*":
        return f"{_JSON_CHAR}*"
    return _JSON_CHAR if char == "?" else _json_literal(char)


def _json_literal(char: str) -> str:
    """One character as JSON may spell it: itself, its short escape, or its code."""
    units = char.encode("utf-16-be")
    code = "".join(rf"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    if char in _JSON_SHORT:
        return rf"(?:\\{re.escape(_JSON_SHORT[char])}|{code})"
    if char.isascii() and char.isalnum():
        return char
    slash = r"|\\/" if char == "/" else ""
    return f"(?:{re.escape(char)}|{code}{slash})"
