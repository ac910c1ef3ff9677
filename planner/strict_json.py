"""Strict JSON from bytes: one UTF-8 document, plain or gzip, with the place of every fault.

JSON has no NaN and no Infinity: such a token comes back as a `Token`, for the caller to name.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import zlib
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # untyped, but documented
from typing import TYPE_CHECKING

from data.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

_GZIP = b"\x1f\x8b"
_BLANK = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^ \t\r\n,\]}]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # escape of half a character beyond the first 65,536
_LONE = re.compile("[\ud800-\udfff]")
_WHOLE = "write both halves, or leave it out"
_LONGEST_INTEGER = 400  # digits; beyond it no float holds the number


@dataclass(frozen=True, slots=True, eq=False)
class Token:
    """A word that stands where JSON wants a value: NaN, Infinity or -Infinity."""

    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded document, its repeated keys as faults, and whether any `Token` is in it."""

    value: object
    faults: tuple[Problem, ...]
    has_tokens: bool


def decode(raw: bytes, name: str) -> Document:
    """The document in `raw`, with its repeated keys. Gzip is told by its first two bytes.

    Raises ConfigError, naming line and column, if it is no single JSON document, or if a string
    of it holds half a character (a lone surrogate), which nothing could write again.
    """
    text = _text(raw, name)
    tokens: list[Token] = []
    repeated: list[str] = []

    def token(word: str) -> Token:
        tokens.append(Token(word))
        return tokens[-1]

    def record(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated.extend(found)
        return found

    def load(parse_int: Callable[[str], int | float] | None) -> object:
        tokens.clear()
        repeated.clear()
        return json.loads(text, object_pairs_hook=record, parse_constant=token, parse_int=parse_int)

    try:
        try:
            value = load(None)
        except json.JSONDecodeError:
            raise
        except ValueError:  # more digits than Python reads: a rule of ours is slower
            value = load(_whole_number)
    except json.JSONDecodeError as error:
        what = "a second document begins here" if error.msg == "Extra data" else error.msg
        place = f"line {error.lineno} column {error.colno}"
        raise _unreadable(name, place, what) from None
    except RecursionError:
        raise _unreadable(name, name, "nested too deeply") from None
    if _HALF.search(text) and (halves := lone_halves(text)):
        raise ConfigError(f"{name} is no text that UTF-8 can hold", halves)
    faults = tuple(repeated_keys(text)) if repeated else ()
    return Document(value, faults, bool(tokens))


def lone_halves(text: str) -> list[Problem]:
    r"""Every string of a correct JSON text that holds a lone surrogate, with line and column.

    >>> [str(one) for one in lone_halves('{"a": "\\ud83d\\ude00", "b": "c\\ud83d"}')]
    ['line 1 column 28: "c\\ud83d" holds half a character (write both halves, or leave it out)']
    """
    found = []
    for match in _STRING.finditer(text):
        if _HALF.search(match[0]) and _LONE.search(json.loads(match[0])):
            what = f"{match[0]} holds half a character"
            found.append(Problem(_place(text, match.start()), what, _WHOLE))
    return found


def repeated_keys(text: str) -> list[Problem]:
    """Every key that an object of a correct JSON text holds twice, with line and column.

    >>> [str(fault) for fault in repeated_keys('{"a": 1, "b": {"c": 1, "c": 2}}')]
    ['line 1 column 24: repeated key "c" in b (leave one of them out)']
    """
    faults: list[Problem] = []

    skip = functools.partial(_skip, text)

    def read_object(at: int, path: str) -> int:
        seen: set[str] = set()
        at = skip(at + 1)
        while text[at] != "}":
            at = skip(at + 1) if text[at] == "," else at
            key, end = scanstring(text, at + 1, True)
            if key in seen:
                faults.append(_repeated(text, at, key, path))
            seen.add(key)
            at = skip(read(skip(skip(end) + 1), f"{path}.{key}" if path else key))
        return at + 1

    def read_list(at: int, path: str) -> int:
        at, index = skip(at + 1), 0
        while text[at] != "]":
            at = skip(at + 1) if text[at] == "," else at
            at, index = skip(read(at, f"{path}[{index}]")), index + 1
        return at + 1

    def read(at: int, path: str) -> int:
        if text[at] == "{":
            return read_object(at, path)
        if text[at] == "[":
            return read_list(at, path)
        if text[at] == '"':
            return int(scanstring(text, at + 1, True)[1])
        match = _SCALAR.match(text, at)
        return match.end() if match else at + 1

    read(skip(0), "")
    return faults


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _repeated(text: str, at: int, key: str, path: str) -> Problem:
    inside = f" in {path}" if path else ""
    what = f"repeated key {json.dumps(key)}{inside}"
    return Problem(_place(text, at), what, "leave one of them out")


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line} column {at - text.rfind(chr(10), 0, at)}"


def _text(raw: bytes, name: str) -> str:
    if raw[:2] == _GZIP:
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise _unreadable(name, name, f"broken gzip: {error}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        newline = b"\n"
        column = len(before) - before.rfind(newline)
        place = f"line {before.count(newline) + 1} column {column}"
        raise _unreadable(name, place, f"not UTF-8: {error.reason}") from None


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _unreadable(name: str, place: str, what: str) -> ConfigError:
    return ConfigError(
        f"{name} is not a JSON document", [Problem(place, what, "send one JSON document in UTF-8")]
    )
