"""The answer of the optimiser for people: its proof, what to buy, what it costs, and why."""

from __future__ import annotations

import textwrap
from typing import Any

from reports.numbers import counted, gap, quantity, share, usd
from reports.terminal import WIDTH, table_text

_LABEL = 11
_ROUNDING = 1e-9  # share of a cost by which two sums of it differ in their last digits
_INDENT = "    "
_STATUS = {
    "optimal": "optimal: proven within the gap",
    "feasible": "feasible: a plan, not proven to be within the gap asked for",
    "infeasible": "infeasible: no plan meets the limits",
    "no_solution": "no solution: the search ended before it found a plan",
}
_PARTS = {
    "lines": "Why these purchases (USD a month of 730 hours)",
    "limits": "What more of each limit would save (USD a month of 730 hours)",
    "rejected": "What was not bought (USD a month of 730 hours, of the first one)",
    "shortages": "Demand that is not served",
    "unused": "What is sold by the hour and not used",
}
_NONE = {
    "lines": "Nothing is bought for the whole file.",
    "limits": "No limit holds the plan back.",
    "rejected": "Nothing else is sold for the whole file.",
    "shortages": "All demand is served.",
    "unused": "All that is sold by the hour is used.",
}
_HEADERS = {
    "workload_class": "class",
    "gpus": "GPUs",
    "gpu_hours": "GPU-hours",
    "break_even_share": "break-even",
    "expected_share": "expected use",
    "usd_per_gpu_hour": "USD a GPU-hour",
    "usd_per_month": "saves",
    "one_fewer_usd_per_month": "one fewer costs",
    "saves_usd_per_month": "saves",
    "costs_usd_per_month": "costs",
    "at_most_usd_per_month": "at most",
    "rate_usd_per_month": "rate",
}
# Sentences, which stand below their row; every other field is a column.
_SENTENCES = ("reason", "instead", "binding", "limit", "scenarios", "note", "words")
_SENTENCE_NAMES = {
    "instead": "with one fewer",
    "binding": "held back by",
    "limit": "in conflict",
    "scenarios": "where",
}
_NAMES = ("kind", "binding")  # values that are names in the JSON, and words here


def solved_text(document: dict[str, Any]) -> str:
    """The document of `loadfactor solve --json` as text; the same numbers, rounded."""
    blocks = [_head(document)]
    if document.get("objective") is not None:
        blocks += [_purchases(document), _costs(document)]
    blocks += [_part(name, rows) for name, rows in document.get("why", {}).items()]
    return "\n\n".join(blocks)


def _head(document: dict[str, Any]) -> str:
    lines = [("status", _STATUS[document["status"]])]
    if document["objective"] is not None:
        lines.append(("cost", f"{usd(document['objective'])} USD over the hours of the file"))
    if document["bound"] is not None:
        lines.append(("bound", f"{usd(document['bound'])} USD: no plan costs less"))
    if document["gap"] is not None:
        lines.append(("gap", f"{gap(document['gap'])} of the cost"))
    if "audited" in document:
        lines.append(("audited", _audited(document["audited"])))
    if "previous" in document:
        lines.append(("previous", _previous(document["previous"])))
    lines.append(("solver", f"{document['solver']}, {document['seconds']:.2f} seconds"))
    return "\n".join(
        textwrap.fill(
            text, WIDTH, initial_indent=name.ljust(_LABEL), subsequent_indent=" " * _LABEL
        )
        for name, text in lines
    )


def _audited(audited: dict[str, Any]) -> str:
    """The certificate in words."""
    if audited["usd"] is None:
        return f"not priced again: {audited['reason']}"
    apart = abs(audited["difference"])
    is_rounding = apart <= _ROUNDING * abs(audited["usd"])
    difference = "no difference" if is_rounding else f"a difference of {usd(apart)} USD"
    return f"priced again from the file by code of its own: {usd(audited['usd'])} USD, {difference}"


def _previous(previous: dict[str, Any]) -> str:
    """The distance to the earlier plan in words."""
    parts = [f"{counted(previous['changed_instances'], 'instance')} more or fewer"]
    if previous["changed_usd_per_hour"]:
        parts.append(f"{usd(previous['changed_usd_per_hour'])} USD an hour of savings plans")
    return (
        f"{', '.join(parts)} than in the earlier plan; {usd(previous['extra_usd'])} USD more than "
        "the best plan found"
    )


def _purchases(document: dict[str, Any]) -> str:
    rows = [
        {
            "buy": "reservation",
            "of": one["offer"],
            "id": one["id"],
            "amount": _times(one, "instance"),
        }
        for one in document["reservations"]
    ]
    rows += [
        {
            "buy": "savings plan",
            "of": one["provider"],
            "amount": f"{usd(one['usd_per_hour'])} USD an hour",
        }
        for one in document["savings_plans"]
    ]
    rows += [
        {"buy": "block", "id": one["id"], "amount": _times(one, "block")}
        for one in document["blocks"]
    ]
    if not rows:
        return "Nothing to buy for the whole file."
    return "Buy\n" + table_text(rows, ["buy", "of", "id", "amount"])


def _times(one: dict[str, Any], noun: str) -> str:
    return counted(one["count"], noun)


def _costs(document: dict[str, Any]) -> str:
    total = document["objective"]
    rows = [
        {"cost": name.replace("_", " "), "USD": usd(value), "share": share(value, total)}
        for name, value in document["costs"].items()
    ]
    rows.append({"cost": "total", "USD": usd(total), "share": share(total, total)})
    return "Costs (USD over the hours of the file)\n" + _right(rows, ("USD", "share"))


def _right(rows: list[dict[str, str]], names: tuple[str, ...]) -> str:
    """The rows as a table, the named columns to the right."""
    for name in names:
        width = max(len(name), *(len(row[name]) for row in rows))
        for row in rows:
            row[name] = row[name].rjust(width)
    return table_text(rows, list(rows[0]))


def _part(name: str, records: list[dict[str, Any]]) -> str:
    """One part of the explanation: a row for each record, its sentences below it."""
    title = _PARTS.get(name, name.replace("_", " "))
    if not records:
        return _NONE.get(name, f"{title}: none")
    columns = [key for key in records[0] if key not in _SENTENCES and _is_told(records, key)]
    rows = [{_header(key): _cell(key, one[key]) for key in columns} for one in records]
    numbers = [_header(key) for key in columns if _is_number(records, key)]
    head, *lines = _right(rows, tuple(numbers)).splitlines()
    found = [title, head]
    for line, one in zip(lines, records, strict=True):
        found.append(line)
        for key in _SENTENCES:
            if one.get(key):
                words = _SENTENCE_NAMES.get(key)
                text = f"{words}: {_cell(key, one[key])}" if words else _cell(key, one[key])
                found.append(
                    textwrap.fill(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
                )
    return "\n".join(found)


def _header(key: str) -> str:
    return _HEADERS.get(key, key.replace("_", " "))


def _is_told(records: list[dict[str, Any]], key: str) -> bool:
    return any(one[key] not in (None, "", [], ()) for one in records)


def _is_number(records: list[dict[str, Any]], key: str) -> bool:
    values = [one[key] for one in records if one[key] is not None]
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)


def _cell(key: str, value: object) -> str:
    """A value in words: money to the cent, shares in percent, lists by comma."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if "usd" in key:
            return usd(value)
        return share(float(value)) if key.endswith("_share") else quantity(float(value))
    if isinstance(value, dict):
        return " ".join(f"{_header(name)} {_cell(name, one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(_cell(key, one) for one in value)
    return str(value).replace("_", " ") if key in _NAMES else str(value)
