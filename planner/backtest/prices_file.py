"""Reads PRICES.toml, the prices and terms of a back-test: Terms, or every fault at once."""

from __future__ import annotations

import dataclasses
import tomllib
from typing import TYPE_CHECKING, Any

from data.errors import ConfigError, Problem
from planner.forecast.inputs import Terms
from planner.problem_fields import AMOUNT, PRICE, Faults, Fields, Limits

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = ("on_demand", "reserved", "spot", "spot_throughput", "term_hours", "gpus_per_instance")
_THROUGHPUT = Limits(above=0, high=1)


def read_prices(path: Path) -> Terms:
    """The prices and terms of a TOML file, with the other rules at their defaults.

    Raises ConfigError with every fault of the file.
    """
    return read_noted_prices(path)[0]


def read_noted_prices(path: Path) -> tuple[Terms, tuple[str, ...]]:
    """The prices and terms of a TOML file, and a note on what it leaves unsaid.

    Raises ConfigError with every fault of the file.
    """
    record, faults = _document(path), Faults()
    fields = Fields(record, "", "", faults)
    fields.only(_KEYS)
    terms = Terms(
        on_demand=fields.number("on_demand", PRICE),
        reserved=fields.number("reserved", AMOUNT),
        spot=fields.number_or_null("spot", AMOUNT),
        spot_throughput=fields.number("spot_throughput", _THROUGHPUT, 1.0),
        term_hours=fields.whole("term_hours", 1),
        gpus_per_instance=fields.whole("gpus_per_instance", 1)
        if "gpus_per_instance" in record
        else 1,
    )
    if terms.spot is None and "spot_throughput" in record:
        fields.fault("spot_throughput", "stands without spot", "state spot, or leave both out")
    if faults.found:
        count = len(set(faults.found))
        raise ConfigError(f"{path}: {count} fault{'s' * (count > 1)}", faults.found)
    if terms.spot is not None and "spot_throughput" not in record:
        return terms, (
            f"{path} states spot without spot_throughput: a paid GPU-hour on spot is taken as a "
            "whole useful one, as if nothing were ever interrupted",
        )
    return terms, ()


def price_notes(terms: Terms) -> list[str]:
    """What is odd about the prices, one sentence each."""
    notes = []
    if terms.reserved >= terms.on_demand:
        notes.append("reserved is no cheaper than on demand: reserving can save nothing")
    if terms.spot is not None and terms.spot_useful >= terms.on_demand:
        notes.append(
            f"a useful GPU-hour on spot, {terms.spot_useful:.4g} USD, is no cheaper than one on "
            "demand: spot is left alone"
        )
    return notes


def with_rules(terms: Terms, replan_hours: int, max_delay_hours: int) -> Terms:
    """The same prices with the rules of one back-test."""
    return dataclasses.replace(terms, replan_hours=replan_hours, max_delay_hours=max_delay_hours)


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        problem = Problem(str(path), error.strerror or "cannot be read")
        raise ConfigError(f"{path} cannot be read", [problem]) from None
    except UnicodeDecodeError as error:
        problem = Problem(f"{path} byte {error.start}", "is not UTF-8", "save the file as UTF-8")
        raise ConfigError(f"{path} cannot be read", [problem]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML", [Problem(str(path), str(error))]) from None
