"""Ibis expressions in Spark's words, where Ibis leaves to the engine what it means.

DuckDB's own functions on JSON get a function of the same meaning; a text that is no time stays
none; groups of a pattern are written as Java writes them.
"""

from __future__ import annotations

import re
from typing import Any

import sqlglot.expressions as sge
from ibis.backends.sql.compilers.pyspark import PySparkCompiler

from data import json_texts

# What a text must be to be a time: Spark alone would take `2026` or `10:30` for one.
_TIME = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(.*\S)?$"
# Forms that DuckDB reads and Spark does not, and what to make of them: no seconds before a zone
# (as Azure writes), and slashes.
_FORMS = (
    (r"([T ][0-9]{2}:[0-9]{2})(Z|[+-][0-9:]+)$", "$1:00$2"),
    (r"^([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})", "$1-$2-$3"),
)
# DuckDB's function -> ours, and the type of what it gives.
_FUNCTIONS = {
    "json_valid": (json_texts.is_json, "boolean"),
    "json_extract_string": (json_texts.text_at, "string"),
}


class SparkCompiler(PySparkCompiler):  # type: ignore[misc]  # ibis has no types
    """Ibis's compiler for Spark, with what it leaves to the engine said in Spark's words."""

    def __init__(self, session: Any) -> None:
        super().__init__()
        self._session = session
        self._known: set[str] = set()

    def visit_RegexReplace(self, op: Any, *, arg: Any, pattern: Any, replacement: Any) -> Any:
        """Java writes groups as `$1`, and so must escape a dollar sign."""
        if isinstance(replacement, sge.Literal):
            text = replacement.this.replace("\\", "\0").replace("$", r"\$")
            text = re.sub("\0([0-9])", r"$\1", text).replace("\0\0", r"\\").replace("\0", r"\\")
            replacement = sge.convert(text)
        return self.f.regexp_replace(arg, pattern, replacement)

    def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
        """A cast that fails for what is none of its kind."""
        return super().visit_Cast(op, arg=self._strict(op, arg, to), to=to)

    def visit_TryCast(self, op: Any, *, arg: Any, to: Any) -> Any:
        """A cast that gives null for what is none of its kind."""
        return super().visit_TryCast(op, arg=self._strict(op, arg, to), to=to)

    def _strict(self, op: Any, arg: Any, to: Any) -> Any:
        if not (op.arg.dtype.is_string() and to.is_timestamp()):
            return arg
        for pattern, form in _FORMS:
            arg = self.f.regexp_replace(arg, sge.convert(pattern), sge.convert(form))
        is_time = sge.RegexpLike(this=arg, expression=sge.convert(_TIME))
        return self.if_(is_time, arg, self.f.concat("no time: ", arg))

    def visit_ScalarUDF(self, op: Any, **kwargs: Any) -> Any:
        """A function of DuckDB by the one that stands for it here."""
        name = op.__func_name__
        arguments = list(kwargs.values())
        if name == "to_json":
            return self._quoted(*arguments)
        if name in _FUNCTIONS:
            function, kind = _FUNCTIONS[name]
            return self._call(f"loadfactor_{name}", function, kind, arguments)
        if name == "json_transform":
            fields = tuple(op.dtype.value_type.names)
            kind = "array<struct<" + ", ".join(f"`{one}`: string" for one in fields) + ">>"
            function = json_texts.objects_of(fields)
            return self._call(
                f"loadfactor_{name}_{'_'.join(fields)}", function, kind, arguments[:1]
            )
        return super().visit_ScalarUDF(op, **kwargs)

    def _quoted(self, text: Any) -> Any:
        """The text as a JSON string; what is called on the items of a list must be Spark's own."""
        whole = self.f.anon.to_json(self.f.anon.named_struct(sge.convert("k"), text))
        # Of {"k":"text"} all but the first five signs and the last.
        inside = self.f.anon.substring(whole, 6, self.f.anon.length(whole) - 6)
        return self.if_(text.is_(sge.Null()), sge.Null(), inside)

    def _call(self, name: str, function: Any, kind: str, arguments: list[Any]) -> Any:
        if name not in self._known:
            from pyspark import cloudpickle

            cloudpickle.register_pickle_by_value(json_texts)
            self._session.udf.register(name, function, kind)
            self._known.add(name)
        return self.f.anon[name](*arguments)
