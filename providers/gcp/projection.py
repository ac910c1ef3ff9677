"""A BigQuery export table as the raw texts that the normaliser reads: one SELECT over its schema.

A scalar becomes the text that an extract of the table would hold; a list stays a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis

from providers.files.raw import MISSING, ROW
from providers.focus.columns import NAMES
from providers.gcp.columns import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ALIAS = "t"
EXPORT = "export"
_LIST_FIELDS = {
    "credits": ("type", "name", "amount"),
    "labels": ("key", "value"),
    "system_labels": ("key", "value"),
    "tags": ("key", "value"),
}
_FLOATS = ("FLOAT", "FLOAT64", "DOUBLE")
_RECORDS = ("RECORD", "STRUCT")
# Digits of a float's text: the first with which it reads back is the shortest.
_DIGITS = (15, 16, 17)


@dataclass(frozen=True, slots=True)
class TableField:
    """One field of a table's schema: its type in BigQuery's words, and what it holds if nested."""

    name: str
    kind: str
    repeated: bool = False
    fields: tuple[TableField, ...] = ()


def fields_of(schema: Iterable[Any]) -> tuple[TableField, ...]:
    """The schema of the BigQuery client as fields."""
    return tuple(
        TableField(one.name, one.field_type.upper(), one.mode == "REPEATED", fields_of(one.fields))
        for one in schema
    )


def columns_of(schema: Sequence[TableField]) -> tuple[str, ...]:
    """The column names of the export as a flattened file spells them (`usage.amount`)."""
    names: list[str] = []
    for one in schema:
        nested = one.kind in _RECORDS and not one.repeated
        names += [f"{one.name}.{inner.name}" for inner in one.fields] if nested else [one.name]
    return tuple(names)


def field_at(schema: Sequence[TableField], name: str) -> tuple[TableField, str] | None:
    """The field of that dotted name and its SQL path; None where the table lacks it."""
    path, inside, found = ALIAS, tuple(schema), None
    for part in name.split("."):
        found = next((one for one in inside if one.name.lower() == part.lower()), None)
        if found is None:
            return None
        path, inside = f"{path}.`{found.name}`", found.fields
    return (found, path) if found else None


def is_focus(schema: Sequence[TableField]) -> bool:
    """Whether the table is of a FOCUS export."""
    return field_at(schema, "ChargePeriodStart") is not None


def projection(schema: Sequence[TableField], source: str, where: str) -> tuple[str, Any]:
    """The SELECT of the raw texts from the table, and the Ibis table that stands for it.

    `source` is the table as SQL names it, `where` the condition on its rows (their alias is
    ALIAS). A field of the table that no rule reads does not travel, nor is it paid for.
    """
    selected = {ROW: ("0", "int64")}
    selected |= _of_focus(schema) if is_focus(schema) else _of_google(schema)
    body = ",\n  ".join(f"{sql} AS `{name}`" for name, (sql, _) in selected.items())
    select = f"SELECT\n  {body}\nFROM {source} AS {ALIAS}\nWHERE {where}"
    return select, ibis.table({name: kind for name, (_, kind) in selected.items()}, name=EXPORT)


def _of_google(schema: Sequence[TableField]) -> dict[str, tuple[str, str]]:
    """SQL and Ibis type of each column of Google's own export that the normaliser reads."""
    selected: dict[str, tuple[str, str]] = {}
    for field in FIELDS:
        found = field_at(schema, field)
        if found and found[0].kind not in _RECORDS and not found[0].repeated:
            text = _cell(found[0], found[1], nested="." in field)
            selected[field.replace(".", "_")] = (text, "string")
    for field, inner in _LIST_FIELDS.items():
        kind = ", ".join(f"{name}: string" for name in inner)
        selected[field] = (_list(schema, field, inner), f"array<struct<{kind}>>")
    return selected


def _of_focus(schema: Sequence[TableField]) -> dict[str, tuple[str, str]]:
    """The same of a FOCUS export, whose maps become JSON texts."""
    selected: dict[str, tuple[str, str]] = {}
    for column in dict.fromkeys(name for names in NAMES.values() for name in names):
        found = field_at(schema, column)
        if found is None:
            continue
        field, path = found
        if field.repeated and {one.name.lower() for one in field.fields} >= {"key", "value"}:
            selected[field.name] = (_object(path), "string")
        elif field.repeated or field.kind in (*_RECORDS, "JSON"):
            selected[field.name] = (f"TO_JSON_STRING({path})", "string")
        else:
            selected[field.name] = (_cell(field, path, nested=False), "string")
    return selected


def _object(path: str) -> str:
    """A list of keys and values as the text of one JSON object; null where it is empty."""
    pair = "CONCAT(TO_JSON_STRING(e.key), ': ', TO_JSON_STRING(IFNULL(e.value, '')))"
    joined = f"ARRAY_TO_STRING(ARRAY(SELECT {pair} FROM UNNEST({path}) AS e), ', ')"
    return f"CONCAT('{{', NULLIF({joined}, ''), '}}')"


def text_of(kind: str, value: str) -> str:
    """The SQL of the value as text: a float by its shortest text, any other type as it prints."""
    if kind == "STRING":
        return value
    if kind not in _FLOATS:
        return f"CAST({value} AS STRING)"
    texts = [f"FORMAT('%.{digits}g', {value})" for digits in _DIGITS]
    tried = " ".join(
        f"WHEN SAFE_CAST({text} AS FLOAT64) = {value} THEN {text}" for text in texts[:-1]
    )
    return f"CASE WHEN {value} IS NULL THEN NULL {tried} ELSE {texts[-1]} END"


def _cell(field: TableField, path: str, *, nested: bool) -> str:
    """A scalar as the files' readers give it, with what they take for missing as null."""
    text = text_of(field.kind, path)
    if field.kind != "STRING":
        return text
    if nested:
        return f"NULLIF(NULLIF(TRIM({text}), ''), 'null')"
    words = ", ".join(f"'{word}'" for word in MISSING)
    return f"IF({text} IN ({words}), NULL, {text})"


def _list(schema: Sequence[TableField], name: str, inner: Sequence[str]) -> str:
    found = field_at(schema, name)
    if found is None or not found[0].repeated:
        empty = ", ".join(f"CAST(NULL AS STRING) AS `{key}`" for key in inner)
        return f"ARRAY(SELECT AS STRUCT {empty} FROM UNNEST(CAST([] AS ARRAY<INT64>)) AS e)"
    kinds = {one.name.lower(): one for one in found[0].fields}
    cells = ", ".join(
        f"{text_of(kinds[key].kind, f'e.`{kinds[key].name}`')} AS `{key}`"
        if key in kinds
        else f"CAST(NULL AS STRING) AS `{key}`"
        for key in inner
    )
    return f"ARRAY(SELECT AS STRUCT {cells} FROM UNNEST({found[1]}) AS e)"
