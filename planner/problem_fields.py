"""Fields of one JSON object, checked one by one; every fault is noted under its path and id."""

from __future__ import annotations

import difflib
import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from data.errors import Problem
from planner.strict_json import Token

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_SHOWN = 40
_MOST_SHOWN = 20  # faults of one series
_MOST_NAMED = 5  # ids that a remedy lists
UNKNOWN_HOURS = 0  # where the file's own number of hours is wrong: lengths are not checked then
_REMEDIES = {
    "must be a string": "write it in quotes",
    "must be true or false": "write true or false, without quotes",
    "must be a list": "write a list, in [ ]",
    "must be a list of ids": "write the ids in [ ], each in quotes",
    "must be a list of numbers": "write one number an hour, in [ ]",
    "must be an object": "write an object, in { }",
    "must be a number": "write a number",
    "must be a whole number": "write a whole number",
    "must be a finite number": "write a number below 1e300",
}


@dataclass(slots=True)
class Faults:
    """The faults of one document, and the tokens that were already named among them."""

    found: list[Problem] = field(default_factory=list)
    named: set[int] = field(default_factory=set)

    def add(self, where: str, what: str, remedy: str = "") -> None:
        """Note one fault."""
        self.found.append(Problem(where, what, remedy))


@dataclass(frozen=True, slots=True)
class Limits:
    """The range of a number: at least `low`, above `above`, at most `high`, below `below`."""

    low: float | None = None
    above: float | None = None
    high: float | None = None
    below: float | None = None

    def broken_by(self, value: float) -> str:
        """What the value must be, or nothing where it is in range."""
        if not math.isfinite(value):
            return "a finite number"
        if self.above is not None and not value > self.above:
            return f"> {self.above:g}"
        if self.low is not None and not value >= self.low:
            return f">= {self.low:g}"
        if self.below is not None and not value < self.below:
            return f"< {self.below:g}"
        if self.high is not None and not value <= self.high:
            return f"<= {self.high:g}"
        return ""


PRICE = Limits(above=0)
AMOUNT = Limits(low=0)
SHARE = Limits(low=0, high=1)


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object at `path`, called `label` (such as `offer "a"`) in messages."""

    record: dict[str, object]
    path: str
    label: str
    faults: Faults

    def where(self, name: str) -> str:
        """Path and label of a field."""
        tail = f" ({self.label})" if self.label else ""
        return f"{join(self.path, name)}{tail}"

    def fault(self, name: str, what: str, remedy: str = "") -> None:
        """Note a fault of a field."""
        self.faults.add(self.where(name), what, remedy)

    def only(self, known: Iterable[str], noun: str = "field") -> None:
        """Note each field that is not known, with the nearest known one. `x_` is free.

        `noun` says what the names are, where they are no fields but ids: class, offer.
        """
        names = set(known)
        for name in self.record:
            if name in names or name.startswith("x_"):
                continue
            if noun == "field":
                remedy = nearest(name, names) or "leave it out, or let its name begin with x_"
                self.fault(name, "unknown field", remedy)
            else:
                self.unknown(name, noun, (name, names))

    def unknown(self, field_name: str, noun: str, given: tuple[str, Iterable[str]]) -> None:
        """Note that a field names what is not there; `given` is the name and those that are."""
        name, known = given
        names = sorted(known)
        listed = ", ".join(show(one) for one in names[:_MOST_NAMED])
        more = f" or {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        remedy = nearest(name, names) or f"name one of: {listed}{more}"
        self.fault(field_name, f"unknown {noun} {show(name)}", remedy)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.record.get(name) is not None

    def missing(self, name: str, *, required: bool, null: bool = False) -> bool:
        """Whether the field has no value to read; noted where one is required."""
        if name not in self.record:
            if required:
                self.fault(name, "required, and missing", "add it")
            return True
        if self.record[name] is None:
            if not null:
                self.fault(name, "must not be null", _not_null(required))
            return True
        return False

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required without a default."""
        if self.missing(name, required=default is None):
            return default or ""
        value = self.record[name]
        if isinstance(value, str):
            return value
        self._wrong(name, "must be a string", value)
        return default or ""

    def flag(self, name: str) -> bool:
        """True or false; false if left out."""
        if self.missing(name, required=False):
            return False
        value = self.record[name]
        if isinstance(value, bool):
            return value
        self._wrong(name, "must be true or false", value)
        return False

    def number(self, name: str, limits: Limits, default: float | None = None) -> float:
        """A number in the limits; required without a default."""
        value = self._number(name, limits, required=default is None, null=False)
        return value if value is not None else (1.0 if default is None else default)

    def number_or_null(self, name: str, limits: Limits, *, required: bool = False) -> float | None:
        """A number in the limits, or None where it is null or, if not required, left out."""
        return self._number(name, limits, required=required, null=True)

    def whole(self, name: str, low: int, default: int | None = None) -> int:
        """A whole number of at least `low`; required without a default."""
        value = self._number(name, Limits(low=low), required=default is None, null=False)
        if value is None:
            return low if default is None else default
        if value != int(value):
            self._wrong(name, "must be a whole number", self.record[name])
            return low
        return int(value)

    def records(self, name: str, *, required: bool = False) -> list[tuple[int, dict[str, object]]]:
        """The objects of a list with their positions; at least one where required."""
        if self.missing(name, required=required):
            return []
        value = self.record[name]
        if not isinstance(value, list):
            self._wrong(name, "must be a list", value)
            return []
        if required and not value:
            self.fault(name, "must hold at least one entry", "add one")
        found = []
        for index, entry in enumerate(value):
            if isinstance(entry, dict):
                found.append((index, entry))
            else:
                self._wrong(f"{name}[{index}]", "must be an object", entry)
        return found

    def mapping(self, name: str, *, required: bool = False) -> dict[str, object]:
        """An object whose keys are ids."""
        if self.missing(name, required=required):
            return {}
        value = self.record[name]
        if isinstance(value, dict):
            return value
        self._wrong(name, "must be an object", value)
        return {}

    def names(self, name: str) -> tuple[str, ...]:
        """A required list of different strings, at least one."""
        if self.missing(name, required=True):
            return ()
        value = self.record[name]
        if not isinstance(value, list):
            self._wrong(name, "must be a list of ids", value)
            return ()
        if not value:
            self.fault(name, "must hold at least one id", "add one")
        first: dict[str, int] = {}
        for index, entry in enumerate(value):
            if not isinstance(entry, str):
                self._wrong(f"{name}[{index}]", "must be a string", entry)
            elif entry in first:
                what = f"repeats {show(entry)} of {name}[{first[entry]}]"
                self.fault(f"{name}[{index}]", what, "leave one of them out")
            else:
                first[entry] = index
        return tuple(first)

    def series(self, name: str, label: str, hours: int, limits: Limits = AMOUNT) -> np.ndarray:
        """A list of exactly `hours` numbers in the limits, as an array.

        `label` names the class or offer, and the scenario. Any length is taken where the number of
        hours is itself at fault (UNKNOWN_HOURS).
        """
        inner = Fields(self.record, self.path, label, self.faults)
        value = self.record[name]
        if not isinstance(value, list):
            inner._wrong(name, "must be a list of numbers", value)
            return np.zeros(hours)
        if hours != UNKNOWN_HOURS and len(value) != hours:
            what = f"must have {hours} hours, has {len(value)}"
            inner.fault(name, what, "give one number for each hour of the file")
        if set(map(type, value)) <= {int, float}:
            try:
                array = np.array(value, dtype=float)
            except OverflowError:
                array = np.array([math.nan])
            if array.size == 0 or not (
                limits.broken_by(array.min()) or limits.broken_by(array.max())
            ):
                return array
        inner._bad_hours(name, value, limits)
        return np.zeros(hours)

    def _bad_hours(self, name: str, values: list[object], limits: Limits) -> None:
        bad = 0
        for hour, value in enumerate(values):
            what = _number_fault(value, limits)
            if not what:
                continue
            bad += 1
            if bad <= _MOST_SHOWN:
                named = Fields(self.record, self.path, f"{self.label}, hour {hour}", self.faults)
                named._wrong(f"{name}[{hour}]", what, value)
        if bad > _MOST_SHOWN:
            what = f"and {bad - _MOST_SHOWN} more hours of this series are wrong"
            self.fault(name, what, "correct the whole series")

    def _number(self, name: str, limits: Limits, *, required: bool, null: bool) -> float | None:
        if self.missing(name, required=required, null=null):
            return None
        value = self.record[name]
        what = _number_fault(value, limits)
        if what:
            self._wrong(name, what, value, ", or null where there is none" if null else "")
            return None
        return float(value)  # type: ignore[arg-type]  # _number_fault has told it a number

    def _wrong(self, name: str, what: str, value: object, other: str = "") -> None:
        if isinstance(value, Token):
            self.faults.named.add(id(value))
            self.fault(name, f"{what}, is {value.text}", "JSON has no such number")
            return
        self.fault(name, f"{what}, is {show(value)}", _remedy(what, value) + other)


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that was perhaps meant, as a remedy; nothing where none is near.

    >>> nearest("trian", ["train", "prep"]), nearest("x", ["train"])
    ('perhaps train was meant', '')
    """
    near = difflib.get_close_matches(name, sorted(names), n=1)
    return f"perhaps {near[0]} was meant" if near else ""


def _not_null(required: bool) -> str:
    return "give it a value" if required else "give it a value, or leave it out"


def _remedy(what: str, value: object) -> str:
    """What to do about a wrong value.

    >>> _remedy("must be a number", "4"), _remedy("must be > 0", -1)
    ('write 4 without quotes', 'write a number > 0')
    """
    if isinstance(value, str) and what in ("must be a number", "must be a whole number"):
        try:
            return f"write {float(value):g} without quotes"
        except ValueError:
            return _REMEDIES[what]
    return _REMEDIES.get(what) or what.replace("must be", "write a number", 1)


def join(path: str, name: str) -> str:
    """The path of a field below a path; a key that is no plain word stands in brackets.

    >>> join("scenarios[0].demand", "batch"), join("demand", "my class"), join("", "hours")
    ('scenarios[0].demand.batch', 'demand["my class"]', 'hours')
    """
    word = name.split("[", 1)[0]
    plain = _PLAIN_KEY.fullmatch(word) is not None
    if plain and (word == name or re.fullmatch(r"(\[\d+\])+", name[len(word) :])):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"


def show(value: object) -> str:
    """A value as JSON writes it, cut where it is long.

    >>> show("3.9"), show(True), show(-2.4)
    ('"3.9"', 'true', '-2.4')
    """
    if isinstance(value, Token):
        return value.text
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _number_fault(value: object, limits: Limits) -> str:
    if isinstance(value, Token):
        return f"must be {limits.broken_by(math.nan)}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number"
    broken = limits.broken_by(value) if abs(value) < 1e300 else "a finite number"
    return f"must be {broken}" if broken else ""
