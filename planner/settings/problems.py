"""What is wrong with a configuration document: every fault at once, each with its place."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationError

from data.errors import Problem
from data.names import nearest
from planner.settings.classes import UNCLASSIFIED
from planner.settings.sources import SOURCE_KINDS
from planner.settings.whole import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SECRET = re.compile(
    r"(^|_)(password|passwd|token|secret|credentials?|api_?key|access_?key|account_?key"
    r"|private_?key|connection_string|sas)(_|$)",
    re.IGNORECASE,
)
_LIMITS = {
    "greater_than": (">", "gt"),
    "greater_than_equal": (">=", "ge"),
    "less_than": ("<", "lt"),
    "less_than_equal": ("<=", "le"),
}
_WANTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple": "a list",
    "dict": "a table",
    "model": "a table",
    "date": "a date such as 2026-11-01",
}
_NAMED = {"classes": "class", "alerts": "alert", "events": "event"}
Place: TypeAlias = tuple[str | int, ...]


def check(document: Mapping[str, Any]) -> tuple[Document | None, list[Problem]]:
    """The validated document, or None, and every problem of it."""
    secrets = list(_secrets(document, ()))
    hidden = {place for place, _problem in secrets}
    problems = [problem for _place, problem in secrets]
    problems += _cross_faults(document)
    valid: Document | None = None
    try:
        valid = Document.model_validate(_tuples(document))
    except ValidationError as error:
        faults = [(_place(fault["loc"]), fault) for fault in error.errors(include_url=False)]
        parents = {place[:-1] for place, _fault in faults}
        for place, fault in faults:
            # A list whose only entries are wrong is called empty too.
            if place not in hidden and not (fault["type"] == "too_short" and place in parents):
                problems.append(_problem(document, place, fault))
    return (None if problems else valid), problems


def place_text(document: Mapping[str, Any], place: Place) -> str:
    """A place as people read it: `classes[1].idle_after_minutes (class "batch")`."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    if len(place) > 1 and place[0] in _NAMED and isinstance(place[1], int):
        name = _at(document, (*place[:2], "name"))
        if isinstance(name, str) and name:
            text += f' ({_NAMED[str(place[0])]} "{name}")'
    return text


def _problem(document: Mapping[str, Any], place: Place, fault: Any) -> Problem:
    kind, context = fault["type"], fault.get("ctx", {})
    where = place_text(document, place)
    seen = _shown(fault["input"], place)
    if kind == "extra_forbidden":
        return Problem(where, "unknown key", nearest(str(place[-1]), _known_keys(document, place)))
    if kind == "missing":
        return Problem(where, "is missing", "state it")
    if kind == "union_tag_not_found":
        return Problem(f"{where}.kind", "is missing", f"one of {', '.join(SOURCE_KINDS)}")
    if kind == "union_tag_invalid":
        given = str(context.get("tag", ""))
        what = f"unknown source kind {given!r}"
        return Problem(f"{where}.kind", what, nearest(given, list(SOURCE_KINDS)))
    if kind == "literal_error":
        choices = _choices(document, place) or [str(context.get("expected", ""))]
        return Problem(where, f"is {seen}", nearest(str(fault["input"]), choices))
    if kind in _LIMITS:
        sign, key = _LIMITS[kind]
        return Problem(where, f"must be {sign} {context[key]:g}, is {seen}")
    if kind == "finite_number":
        return Problem(where, f"must be a finite number, is {seen}")
    if kind in ("too_short", "string_too_short"):
        return Problem(where, "must not be empty")
    if kind == "string_pattern_mismatch":
        return Problem(where, f"is {seen}", "a currency is three capitals, such as EUR")
    if kind == "value_error":
        # A secret may have been pasted where its variable's name belongs: do not repeat it.
        mute = str(place[-1]).endswith(("_env", "url", "billing"))
        mute = mute or isinstance(fault["input"], dict)
        return Problem(where, f"{'' if mute else f'{seen} '}{context['error']}")
    wanted = next((text for word, text in _WANTED.items() if kind.startswith(word)), "")
    return Problem(where, f"must be {wanted}, is {seen}" if wanted else fault["msg"])


def _place(loc: Place) -> Place:
    """The place without the tags that pydantic puts in for unions and for dictionary keys."""
    steps = [step for step in loc if step != "[key]"]
    if len(steps) > 2 and steps[0] == "sources" and steps[2] in SOURCE_KINDS:
        del steps[2]
    return tuple(steps)


def _shown(value: object, place: Place) -> str:
    if place and str(place[-1]).endswith("_env"):
        return "something else"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    return str(value)


def _known_keys(document: Mapping[str, Any], place: Place) -> list[str]:
    kind = _type_at(document, place[:-1])
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return []
    return [field.alias or name for name, field in kind.model_fields.items()]


def _choices(document: Mapping[str, Any], place: Place) -> list[str]:
    kind = _type_at(document, place)
    return [one for one in _literals(kind) if one]


def _literals(kind: Any) -> list[str]:
    found: list[str] = []
    for argument in get_args(kind):
        found += [argument] if isinstance(argument, str) else _literals(argument)
    return found


def _type_at(document: Mapping[str, Any], place: Place) -> Any:
    """The declared type of a place in the document."""
    kind: Any = Document
    if place[:1] == ("sources",) and len(place) > 1:
        kind = SOURCE_KINDS.get(str(_at(document, (*place[:2], "kind"))))
        place = place[2:]
    for step in place:
        while get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = {field.alias or name: field for name, field in kind.model_fields.items()}
            kind = fields[str(step)].annotation if str(step) in fields else None
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
        elif get_origin(kind) is tuple and isinstance(step, int):
            kind = get_args(kind)[0]
        else:
            return None
    return kind


def _at(document: Any, place: Place) -> Any:
    value = document
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _secrets(value: Any, place: Place) -> Iterator[tuple[Place, Problem]]:
    """Keys that hold a secret, wherever they stand; tag names are no such keys."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _secrets(one, (*place, index))
    if not isinstance(value, dict) or place[-1:] == ("tags",):
        return
    named_by_user = place in (("sources",), ("alert_targets",))
    for key, one in value.items():
        here = (*place, key)
        secret = _SECRET.search(key) and not key.endswith(("_env", "_file"))
        if secret and not named_by_user and not isinstance(one, dict):
            what = "a secret must not stand in this file"
            remedy = "put it into an environment variable, and name that in a key that ends in _env"
            yield here, Problem(place_text({}, here), what, remedy)
        else:
            yield from _secrets(one, here)


def _cross_faults(document: Mapping[str, Any]) -> list[Problem]:
    """Faults between sections; they are looked for even where single values are wrong."""
    return [
        *_doubled(document, "classes"),
        *_doubled(document, "alerts"),
        *_doubled(document, "events"),
        *_unreachable_classes(document),
        *_undefined_targets(document),
        *_missing_rate(document),
        *_quotas(document),
        *_events(document),
        *_event_classes(document),
        *_terms(document),
    ]


def _entries(document: Mapping[str, Any], section: str) -> list[tuple[int, dict[str, Any]]]:
    value = document.get(section)
    rows = value if isinstance(value, list) else []
    return [(index, row) for index, row in enumerate(rows) if isinstance(row, dict)]


def _doubled(document: Mapping[str, Any], section: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, row in _entries(document, section):
        name = row.get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            where = place_text(document, (section, index, "name"))
            what = f"the name is taken by {section}[{first[name]}]"
            yield Problem(where, what, "give each its own name")
        first.setdefault(name, index)


def _unreachable_classes(document: Mapping[str, Any]) -> Iterator[Problem]:
    rows = _entries(document, "classes")
    for index, row in rows[:-1]:
        match = row.get("match", {})
        states = match.values() if isinstance(match, dict) else [match]
        if not any(states) and row.get("name") != UNCLASSIFIED:
            where = place_text(document, ("classes", index, "match"))
            what = "without a condition it matches every row, so no later class can match"
            yield Problem(where, what, "state a condition, or put the class last")


def _undefined_targets(document: Mapping[str, Any]) -> Iterator[Problem]:
    targets = document.get("alert_targets")
    known = sorted(targets) if isinstance(targets, dict) else []
    for index, row in _entries(document, "alerts"):
        names = row.get("to", [])
        for name in [names] if isinstance(names, str) else names if isinstance(names, list) else []:
            if isinstance(name, str) and name not in known:
                where = place_text(document, ("alerts", index, "to"))
                remedy = f"write [alert_targets.{name}]"
                remedy += f", or name one of {', '.join(known)}" if known else ""
                yield Problem(where, f"alert target {name!r} is not defined", remedy)


def _quotas(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Quotas without a limit or with two, and two quotas of one use in one region."""
    first: dict[tuple[object, ...], int] = {}
    for index, row in _entries(document, "quotas"):
        where = place_text(document, ("quotas", index))
        if ("gpus" in row) == ("vcpus" in row):
            yield Problem(where, "needs a limit in one unit", "state either gpus or vcpus")
        uses = row.get("uses", ["on_demand", "spot"])
        for use in uses if isinstance(uses, list) else []:
            key = row.get("cloud"), row.get("region"), str(use)
            if key in first and first[key] != index:
                what = f"{use} there is limited by quotas[{first[key]}] already"
                yield Problem(where, what, "leave one of them out")
            first.setdefault(key, index)


def _events(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Events that end before they begin, change nothing, or add GPUs to no class."""
    for index, row in _entries(document, "events"):
        where = place_text(document, ("events", index))
        begin, end = row.get("from"), row.get("until")
        if type(begin) is date and type(end) is date and end <= begin:
            at = place_text(document, ("events", index, "until"))
            yield Problem(at, f"{end} is not after from, {begin}", "correct a date")
        if row.get("factor", 1) == 1 and row.get("gpus", 0) == 0:
            yield Problem(where, "changes nothing", "state a factor or gpus")
        if row.get("gpus", 0) != 0 and "class" not in row:
            yield Problem(where, "adds gpus to no class", "state the class")


def _event_classes(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Events of a class that no rule of the file describes: no work could ever be of it."""
    known = [name for _, row in _entries(document, "classes") if (name := row.get("name"))]
    names = [*(name for name in known if isinstance(name, str)), UNCLASSIFIED]
    for index, row in _entries(document, "events") if known else []:
        given = row.get("class")
        if isinstance(given, str) and given and given not in names:
            where = place_text(document, ("events", index, "class"))
            yield Problem(where, f"unknown class {given!r}", nearest(given, names))


def _terms(document: Mapping[str, Any]) -> Iterator[Problem]:
    plan = document.get("plan")
    terms = plan.get("terms") if isinstance(plan, dict) else None
    texts = [one for one in terms if isinstance(one, str)] if isinstance(terms, list) else []
    for name in sorted({one for one in texts if texts.count(one) > 1}):
        yield Problem("plan.terms", f"names {name} more than once", "name each term once")


def _missing_rate(document: Mapping[str, Any]) -> Iterator[Problem]:
    prices = document.get("prices")
    if not isinstance(prices, dict):
        return
    currency, rates = prices.get("currency", "USD"), prices.get("rates", {})
    if isinstance(currency, str) and isinstance(rates, dict) and currency not in ("USD", *rates):
        remedy = f"write [prices.rates] {currency} = {{ per_usd = ..., as_of = YYYY-MM-DD }}"
        yield Problem("prices.currency", f"no exchange rate for {currency}", remedy)
