"""Every cell of an export file as text, in reading order: CSV, gzip, zip, Parquet, JSON.

Nothing is guessed: no type is sniffed from values, and a file that cannot be read whole is an
error. Nested values of JSON and Parquet become JSON text, with every number kept as a text.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from data.engines import path_list, quoted, run
from providers.files.expressions import TYPED
from providers.files.heads import Head, head_of, json_objects, read_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import ibis

ROW = "source_row_no"
# Words that exports write for a missing value (trap 14 of the billing facts).
MISSING = ("", "NULL", "null", "None")

_VIEWS = itertools.count(1)
_TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
_MAP = "MAP(VARCHAR, VARCHAR)"
_NEVER_WORDS = (*_TIMES, "DOUBLE", "FLOAT", "BIGINT", "INTEGER", "BOOLEAN", "DATE", _MAP)
# A number as the value of a JSON key: quoted, it keeps every digit that it was written with.
_NUMBER = r'([^\\]"\s*:\s*)(-?[0-9][0-9.eE+-]*)(\s*[,}\]])'


def read_raw(
    connection: Any, files: Sequence[Path], work: Path, *, clean: bool = False
) -> tuple[ibis.Table, tuple[str, ...]]:
    """The text table of the files, read in the order given, and its column names.

    A name that differs from an earlier one by case alone gets ` #2` (DuckDB cannot tell them
    apart). Columns that only some files have are missing in the others. `work` takes unpacked
    copies. With `clean`, CSV is re-read cell by cell first: slower, for files that are not strict
    CSV. Raises DataError for an empty file.
    """
    paths = [part for path in files for part in read_parts(path, work)]
    heads = [head_of(connection, path, work, clean=clean) for path in paths]
    return read_heads(connection, heads)


def read_heads(connection: Any, heads: Sequence[Head]) -> tuple[ibis.Table, tuple[str, ...]]:
    """The text table of files whose heads are known, and its column names."""
    columns = _merged(heads)
    groups = [list(group) for _, group in itertools.groupby(heads, key=lambda head: head.alike)]
    typed = _typed(groups, columns)
    selects = [f"SELECT * FROM ({_select(alike, typed)})" for alike in groups]
    name = f"raw_{next(_VIEWS)}"
    body = " UNION ALL BY NAME ".join(selects)
    run(
        connection,
        f"CREATE OR REPLACE TEMP VIEW {name} AS "
        f"SELECT row_number() OVER () AS {ROW}, * FROM ({body})",
    )
    return connection.table(name), columns


def _merged(heads: Iterable[Head]) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for head in heads:
        for column in head.columns:
            names.setdefault(column.lower(), column)
    return tuple(names.values())


def _typed(groups: Sequence[Sequence[Head]], columns: Sequence[str]) -> dict[str, str]:
    """SQL of each column that all files hold as times, or as maps of texts, by its name.

    Reading it spares a way through text that changes nothing.
    """
    taken = {column.lower() for column in columns}
    kinds: dict[str, list[str]] = {}
    for head in (heads[0] for heads in groups):
        # Files of no types have texts.
        for name, kind in zip(head.columns, head.types, strict=False):
            kinds.setdefault(name, []).append(kind)
    found = {}
    for name, seen in kinds.items():
        if len(seen) != len(groups) or f"{name}{TYPED}".lower() in taken:
            continue
        if all(kind in _TIMES for kind in seen):
            found[name] = "make_timestamptz(epoch_us({}))"
        elif all(kind == _MAP for kind in seen):
            found[name] = "{}"
    return found


def _select(heads: Sequence[Head], typed: Mapping[str, str]) -> str:
    first = heads[0]
    if first.kind == "parquet":
        return _parquet(heads, typed)
    if first.kind == "json":
        return _json(heads)
    return _csv(heads)


def _csv(heads: Sequence[Head]) -> str:
    first = heads[0]
    types = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in first.columns)
    words = ", ".join(quoted(word) for word in MISSING)
    return (
        f"SELECT * FROM read_csv({path_list(head.path for head in heads)}, "
        f"columns = {{{types}}}, auto_detect = false, header = true, skip = {first.skip}, "
        f"delim = {quoted(first.delimiter)}, quote = '\"', escape = '\"', "
        f"compression = {quoted(first.compression)}, nullstr = [{words}])"
    )


def _json(heads: Sequence[Head]) -> str:
    first = heads[0]
    keys = ", ".join(quoted(f'$."{key}"') for key in first.spelled)
    picked = ", ".join(
        f"{_present(f'cells[{position}]')} AS {identifier(key)}"
        for position, key in enumerate(first.columns, 1)
    )
    source = json_objects((head.path for head in heads), first.form, first.compression)
    text = f"regexp_replace(json, {quoted(_NUMBER)}, '\\1\"\\2\"\\3', 'g')"
    return (
        f"SELECT {picked} FROM (SELECT json_extract_string({text}, [{keys}]) AS cells "
        f"FROM {source})"
    )


def _parquet(heads: Sequence[Head], typed: Mapping[str, str]) -> str:
    first = heads[0]
    picked = []
    for original, name, kind in zip(first.spelled, first.columns, first.types, strict=True):
        text = _as_text(original, kind)
        # Only a text can be one of the words that stand for a missing value.
        text = text if kind in _NEVER_WORDS else _present(text)
        picked.append(f"{text} AS {identifier(name)}")
        if name in typed:
            value = typed[name].format(identifier(original))
            picked.append(f"{value} AS {identifier(name + TYPED)}")
    source = f"read_parquet({path_list(head.path for head in heads)})"
    return f"SELECT {', '.join(picked)} FROM {source}"


def _as_text(name: str, kind: str) -> str:
    column = identifier(name)
    if "(" not in kind.split("DECIMAL")[0] and "[]" not in kind:
        return f"CAST({column} AS VARCHAR)"
    return f"CAST(to_json(CAST({column} AS {_texts_of(kind)})) AS VARCHAR)"


def _texts_of(kind: str) -> str:
    """The nested type with a text in every leaf, so that no number goes through a float.

    >>> _texts_of('STRUCT("name" VARCHAR, amount DECIMAL(38,9))[]')
    'STRUCT("name" VARCHAR, amount VARCHAR)[]'
    """
    if kind.endswith("]"):
        cut = kind.rindex("[")
        return _texts_of(kind[:cut]) + kind[cut:]
    for word in ("STRUCT", "MAP"):
        if kind.startswith(f"{word}("):
            fields = _split(kind[len(word) + 1 : -1])
            if word == "MAP":
                return f"MAP({', '.join(_texts_of(field) for field in fields)})"
            pairs = (_name_and_type(field) for field in fields)
            return f"STRUCT({', '.join(f'{name} {_texts_of(inner)}' for name, inner in pairs)})"
    return "VARCHAR"


def _split(text: str) -> list[str]:
    parts, depth, quote, start = [], 0, False, 0
    for place, letter in enumerate(text):
        if letter == '"':
            quote = not quote
        elif not quote and letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "," and depth == 0 and not quote:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _name_and_type(field: str) -> tuple[str, str]:
    if field.startswith('"'):
        end = field.index('"', 1)
        while field[end + 1 : end + 2] == '"':
            end = field.index('"', end + 2)
        return field[: end + 1], field[end + 1 :].strip()
    name, _, kind = field.partition(" ")
    return name, kind


def _present(value: str) -> str:
    words = ", ".join(quoted(word) for word in MISSING)
    return f"CASE WHEN {value} NOT IN ({words}) THEN {value} END"


def identifier(name: str) -> str:
    """The name as a quoted SQL identifier.

    >>> identifier("lineItem/UsageType")
    '"lineItem/UsageType"'
    """
    return '"' + name.replace('"', '""') + '"'
