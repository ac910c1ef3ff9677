"""Utilization that users bring: checked, capped, and averaged to one row per GPU and hour.

A bad row is dropped, counted and listed; too many of them reject the file. An empty reading is
missing, never 0. The GPU is told by its UUID: pods, users and teams may change within the hour, and
the newest sample that names one counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.engines import SQL_TYPES, quoted, run
from data.errors import DataError, Problem
from data.schema import UTILIZATION, Column, Dtype
from data.store import UnitFacts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Words that tables and tools write for "no reading" (contract section 6 and nvidia-smi).
MISSING = ("", "n/a", "nan", "null", "none", "<na>", "[n/a]", "[not supported]")
TIMES = ("hour_start", "time")
IDENTITY = ("cloud", "account", "instance_id", "gpu_uuid")
READINGS = tuple(
    column.name
    for column in UTILIZATION.columns
    if column.nullable and column.dtype in (Dtype.FLOAT, Dtype.INT)
)
WORDS = tuple(
    column.name
    for column in UTILIZATION.columns
    if column.nullable and column.dtype is Dtype.TEXT and column.name != "mig_uuid"
)
# DCGM and averaging overshoot a ratio by rounding; five percent is beyond what rounding does.
CAPPED_ABOVE = 1.05
# Above this share of bad rows the file is not what it claims to be.
MOST_BAD_SHARE = 0.1
_LOWER = ("cloud", "region")
# A day of one GPU: fewer readings say nothing of the unit in which they are written.
_FEWEST_TO_TELL_A_SHARE = 24
_GROUP = ("cloud", "account", "instance_id", "gpu_uuid", "mig_uuid")


@dataclass(frozen=True, slots=True)
class Sampled:
    """What became of the samples: rows by unit, sources, months, and what a person should know."""

    units: dict[str, UnitFacts]
    sources: tuple[str, ...]
    months: tuple[str, ...]
    warnings: tuple[str, ...]
    quality: tuple[dict[str, Any], ...]


def write_hours(
    connection: Any, rows: str, columns: Mapping[str, str], export_id: str, target: Path
) -> Sampled:
    """What became of the samples of `rows` (SQL of a text table), written to `target` by hour.

    `columns` maps our names to those of the text table. Raises DataError where a needed column is
    missing, or more than MOST_BAD_SHARE of the rows are bad.
    """
    _check_columns(columns)
    samples = f"samples_{export_id.replace('-', '_').replace('.', '_')}"
    run(connection, f'CREATE OR REPLACE TEMP TABLE "{samples}" AS {_parsed(rows, columns)}')
    try:
        warnings, quality = _faults(connection, samples)
        found = _told_by_values(connection, samples)
        warnings += [row["detail"] for row in found if row["severity"] == "warning"]
        quality += found
        run(
            connection,
            f"COPY ({_hourly(samples, export_id)}) TO {quoted(target)} "
            "(FORMAT parquet, COMPRESSION zstd)",
        )
    finally:
        run(connection, f'DROP TABLE "{samples}"')
    counted = run(
        connection,
        f"SELECT unit, cloud, strftime(min(hour_start), '%Y-%m'), count(*) "
        f"FROM read_parquet({quoted(target)}) GROUP BY unit, cloud ORDER BY unit",
    )
    return Sampled(
        {unit: UnitFacts(rows=count) for unit, _, _, count in counted},
        tuple(sorted({cloud for _, cloud, _, _ in counted})),
        tuple(sorted({month for _, _, month, _ in counted})),
        tuple(warnings),
        tuple(quality),
    )


def _check_columns(columns: Mapping[str, str]) -> None:
    problems = [
        Problem(f"utilization.{name}", "missing column", "add the column")
        for name in IDENTITY
        if name not in columns
    ]
    if not any(name in columns for name in TIMES):
        problems.append(
            Problem("utilization.hour_start", "missing column", "add it, or `time` for samples")
        )
    if problems:
        raise DataError("the utilization table lacks columns that it needs", problems)


def cell(columns: Mapping[str, str], name: str) -> str:
    """The SQL of a trimmed text cell, null where the column or the reading is missing."""
    if name not in columns:
        return "CAST(NULL AS VARCHAR)"
    column = '"' + columns[name].replace('"', '""') + '"'
    words = ", ".join(quoted(word) for word in MISSING)
    return f"CASE WHEN lower(trim({column})) IN ({words}) THEN NULL ELSE trim({column}) END"


def _parsed(rows: str, columns: Mapping[str, str]) -> str:
    """SQL: one row per sample with its values as texts, its numbers, and its first fault."""
    time = " , ".join(cell(columns, name) for name in TIMES)
    texts = [f"coalesce({time}) AS time_text"]
    for name in (*IDENTITY, *WORDS, "mig_uuid"):
        value = cell(columns, name)
        texts.append(f'{f"lower({value})" if name in _LOWER else value} AS "{name}"')
    texts += [f"{cell(columns, name)} AS {name}_text" for name in READINGS]
    numbers = [f"try_cast({name}_text AS DOUBLE) AS {name}_number" for name in READINGS]
    kept = ", ".join(f'"{name}"' for name in (*IDENTITY, *WORDS, "mig_uuid"))
    values = ", ".join(_capped(UTILIZATION.column(name)) for name in READINGS)
    over = " OR ".join(_is_over(UTILIZATION.column(name)) for name in READINGS)
    return (
        f"SELECT source_row_no, sampled, {kept}, {values}, coalesce({over}, false) AS is_capped, "
        f"{_fault()} AS fault FROM (SELECT *, try_cast(time_text AS TIMESTAMPTZ) AS sampled, "
        f"{', '.join(numbers)} FROM (SELECT source_row_no, {', '.join(texts)} FROM ({rows})))"
    )


def _fault() -> str:
    cases = [
        "WHEN time_text IS NULL THEN 'hour_start is empty'",
        "WHEN sampled IS NULL OR NOT isfinite(sampled) THEN 'hour_start is not a time: ' "
        "|| time_text",
    ]
    cases += [f"""WHEN "{name}" IS NULL THEN '{name} is empty'""" for name in IDENTITY]
    for name in READINGS:
        column = UTILIZATION.column(name)
        number = f"{name}_number"
        cases.append(
            f"WHEN {name}_text IS NOT NULL AND ({number} IS NULL OR NOT isfinite({number})) "
            f"THEN '{name} is not a number: ' || {name}_text"
        )
        bounds = f"{number} < {column.low}"
        if column.high is not None:
            bounds += f" OR {number} > {column.high * CAPPED_ABOVE}"
        cases.append(f"WHEN {bounds} THEN '{name} is out of its range: ' || {name}_text")
        if column.dtype is Dtype.INT:
            cases.append(
                f"WHEN {number} <> floor({number}) OR {number} > 1e9 "
                f"THEN '{name} is not a count: ' || {name}_text"
            )
    return f"CASE {' '.join(cases)} END"


def _capped(column: Column) -> str:
    number = f"{column.name}_number"
    if column.high is None:
        return f"{number} AS {column.name}"
    # least() would take an empty reading for the bound.
    return (
        f"CASE WHEN {number} > {column.high} THEN {column.high} ELSE {number} END AS {column.name}"
    )


def _is_over(column: Column) -> str:
    return "false" if column.high is None else f"{column.name}_number > {column.high}"


def _faults(connection: Any, samples: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Warnings and findings on bad rows; DataError where there are too many, or nothing is left."""
    ((total, bad),) = run(connection, f'SELECT count(*), count(fault) FROM "{samples}"')
    if not total:
        raise DataError("the utilization table has a header and no rows")
    kinds = run(
        connection,
        "SELECT split_part(fault, ': ', 1) AS kind, count(*), min(source_row_no), "
        f'arg_min(fault, source_row_no) FROM "{samples}" WHERE fault IS NOT NULL '
        "GROUP BY kind ORDER BY kind",
    )
    if bad > total * MOST_BAD_SHARE:
        problems = [
            Problem(f"utilization row {first}", f"{example} ({count} rows: {kind})")
            for kind, count, first, example in kinds
        ]
        raise DataError(
            f"{bad} of {total} rows are bad, more than {MOST_BAD_SHARE:.0%}: the table is not "
            "taken",
            problems,
        )
    warnings, quality = [], []
    for kind, count, first, example in kinds:
        detail = f"{count} of {total} rows dropped: {kind}; first row {first}: {example}"
        warnings.append(detail)
        quality.append(_finding("bad_telemetry_rows", "warning", count, detail))
    return warnings, quality


def _told_by_values(connection: Any, samples: str) -> list[dict[str, Any]]:
    """Findings on rows that were kept: capped ratios, averaged samples, a share for a percent."""
    group = ", ".join(_GROUP)
    ((capped, good, merged, most, parts, readings),) = run(
        connection,
        f"""SELECT count(*) FILTER (is_capped), count(*),
        count(*) - count(DISTINCT ({group}, date_trunc('hour', sampled))),
        max(gpu_util), count(*) FILTER (gpu_util > 0 AND gpu_util < 1), count(gpu_util)
        FROM "{samples}" WHERE fault IS NULL""",
    )
    found = []
    if capped:
        detail = f"{capped} of {good} rows had a ratio a little above its range; it was capped"
        found.append(_finding("capped_telemetry_rows", "info", capped, detail))
    if merged:
        detail = f"{good} samples were averaged to {good - merged} hours of GPUs"
        found.append(_finding("averaged_samples", "info", merged, detail))
    if readings >= _FEWEST_TO_TELL_A_SHARE and parts and most <= 1:
        detail = (
            f"gpu_util is never above {most:g} in {readings} readings: it is taken as "
            "percent (0 to 100); multiply it by 100 if it is a share"
        )
        found.append(_finding("gpu_util_looks_like_a_share", "warning", readings, detail))
    if not readings:
        detail = "no row has a gpu_util reading; without another one its hours are unknown"
        found.append(_finding("no_gpu_util", "info", good, detail))
    return found


def _finding(check: str, severity: str, count: int, detail: str) -> dict[str, Any]:
    return {
        "check": check, "scope": "utilization", "severity": severity, "count": count,
        "amount": None, "currency": None, "detail": detail,
    }  # fmt: skip


def _hourly(samples: str, export_id: str) -> str:
    """SQL: the good samples as rows of UTILIZATION, one per GPU and hour, in reading order.

    A later file replaces a day of an account only where it speaks of the same machines: the unit
    holds a mark of them. Files of other hosts or clusters stand side by side.

    Averages go through decimals, so that the order in which threads add does not show.
    """
    values = {
        "unit": "replace(cloud, '|', '/') || '|' || replace(account, '|', '/') || '/' || "
        "any_value(machines) || '|utilization|' || strftime(hour_start, '%Y-%m-%d')",
        "export_id": quoted(export_id),
        "source_row_no": "min(source_row_no)",
    }
    for name in READINGS:
        if UTILIZATION.column(name).dtype is Dtype.INT:
            values[name] = f"max({name})"
            continue
        exact = f"CAST({name} AS DECIMAL(18, 6))"
        values[name] = (
            f"CASE WHEN count({name}) = 1 THEN max({name}) "
            f"ELSE CAST(sum({exact}) AS DOUBLE) / count({name}) END"
        )
    for name in WORDS:
        values[name] = f'arg_max("{name}", (sampled, source_row_no))'
    columns = ", ".join(
        f"CAST({values.get(column.name, column.name)} AS {SQL_TYPES[column.dtype]}) "
        f'AS "{column.name}"'
        for column in UTILIZATION.columns
    )
    group = ", ".join((*_GROUP, "hour_start"))
    marks = (
        "SELECT cloud, account, CAST(sampled AS DATE) AS day, "
        "left(md5(string_agg(DISTINCT instance_id, '|' ORDER BY instance_id)), 8) AS machines "
        f'FROM "{samples}" WHERE fault IS NULL GROUP BY ALL'
    )
    return (
        f"SELECT {columns} FROM (SELECT given.*, machines, date_trunc('hour', sampled) AS "
        f'hour_start FROM "{samples}" AS given JOIN ({marks}) AS marks ON '
        "given.cloud = marks.cloud AND given.account = marks.account AND "
        "CAST(given.sampled AS DATE) = marks.day WHERE fault IS NULL) "
        f"GROUP BY {group} ORDER BY min(source_row_no)"
    )
