"""An Ibis expression as BigQuery's SQL, to the same digits as where it runs on files.

What BigQuery writes otherwise is put in its words here, once for all expressions: decimals of a
stated scale, and the few functions that other engines have under another name.
"""

from __future__ import annotations

from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops

from data.errors import DataError

# BigQuery's one wide decimal, BIGNUMERIC: 38 places. A cast takes no scale there ("Parameterized
# data types" of the GoogleSQL reference, read 2026-11), so a scale is a rounding.
_WIDE = dt.Decimal(76, 38)
# With the prefix SAFE. a function gives null where it would fail. Ibis would quote a name with a
# dot: the dot is put in last.
_SAFE = ("SAFE_PARSE_JSON", "SAFE_JSON_VALUE")


def bigquery_sql(rows: Any) -> str:
    """The expression as one SELECT in GoogleSQL.

    Raises DataError where it calls a function that BigQuery lacks.
    """
    lowered = rows.op().replace(_lowered)
    foreign = sorted(
        node.__func_name__ for node in lowered.find(ops.ScalarUDF) if node.__func_name__ not in _OWN
    )
    if foreign:
        raise DataError(f"BigQuery has no function {', '.join(foreign)}")
    sql = str(ibis.to_sql(lowered.to_expr(), dialect="bigquery"))
    for name in _SAFE:
        sql = sql.replace(f"{name}(", f"{name.replace('_', '.', 1)}(")
    return sql


def _lowered(node: Any, changed: dict[str, Any] | None) -> Any:
    arguments = changed or dict(zip(node.__argnames__, node.__args__, strict=True))
    if isinstance(node, ops.Cast | ops.TryCast) and node.to.is_decimal():
        return _rounded(type(node), arguments["arg"], node.to)
    if isinstance(node, ops.ScalarUDF) and node.__func_name__ in _RENAMED:
        renamed = _RENAMED[node.__func_name__]
        return renamed(*(one.to_expr() for one in arguments.values())).op()
    return node.__recreate__(changed) if changed else node


def _rounded(cast: Any, value: Any, wanted: Any) -> Any:
    """The cast to a decimal of so many places: BigQuery rounds a half away from zero, as DuckDB."""
    wide = value if value.dtype == _WIDE else cast(value, _WIDE)
    if value.dtype.is_integer() or wanted.scale is None:
        return wide
    return _round(wide.to_expr(), wanted.scale).op()


def _value_and_places(value: Any, places: Any) -> Any:
    """The arguments of BigQuery's ROUND: a BIGNUMERIC, which it keeps, and a number of places."""


# Not Ibis's own rounding, which casts its result once more.
_round = ibis.udf.scalar.builtin(
    _value_and_places, name="ROUND", signature=((_WIDE, dt.int64), _WIDE)
)


@ibis.udf.scalar.builtin(name="TO_JSON_STRING")  # type: ignore[untyped-decorator]  # no types
def _json_string(text: str) -> str:  # type: ignore[empty-body]  # BigQuery's own function
    """The text as a JSON string."""


@ibis.udf.scalar.builtin(name="SAFE_JSON_VALUE")  # type: ignore[untyped-decorator]  # no types
def _json_value(document: str, path: str) -> str:  # type: ignore[empty-body]  # BigQuery's own
    """The scalar at the path of a JSON text, as text; null where there is none."""


@ibis.udf.scalar.builtin(name="SAFE_PARSE_JSON")  # type: ignore[untyped-decorator]  # no types
def _parsed(text: str) -> dt.JSON:
    """The text as JSON; null where it is none."""


def _is_json(text: Any) -> Any:
    return _parsed(text).notnull()


_RENAMED = {"to_json": _json_string, "json_extract_string": _json_value, "json_valid": _is_json}
_OWN = frozenset({"TO_JSON_STRING", "ROUND", *_SAFE})
