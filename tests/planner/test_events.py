"""Known events: refused where they cannot be meant, told where they count and where they do not."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from data.errors import ConfigError
from planner.config import parse_config
from planner.events import classless, with_events
from planner.future import Future, year_ahead
from planner.horizon import horizon_of
from planner.settings import EventRule
from tests import bills

CLASS = """
[[classes]]
name = "training"
match = { account = ["1"] }
"""
EVENT = """
[[events]]
name = "e"
from = 2027-03-03
"""


def fault(text: str) -> tuple[str, str, str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, Path("loadfactor.toml"))
    (problem,) = caught.value.problems
    return problem.where, problem.what, problem.remedy


def event(**more: object) -> EventRule:
    return EventRule.model_validate({"name": "e", "class": "a", "from": date(2027, 3, 3)} | more)


def test_an_event_of_a_class_that_is_not_configured_is_refused_with_the_nearest_name() -> None:
    assert fault(f'{CLASS}{EVENT}class = "trainnig"\nfactor = 0.5\n') == (
        'events[0].class (event "e")',
        "unknown class 'trainnig'",
        "did you mean training? known: training, unclassified",
    )


@pytest.mark.parametrize("name", ["training", "unclassified"])
def test_an_event_of_a_configured_class_or_of_no_class_is_taken(name: str) -> None:
    text = f'{CLASS}{EVENT}class = "{name}"\nfactor = 0.5\n'
    assert parse_config(text, Path("loadfactor.toml")).events[0].workload_class == name


def test_without_configured_classes_the_data_say_which_there_are() -> None:
    parse_config(f'{EVENT}class = "trainnig"\nfactor = 0.5\n', Path("loadfactor.toml"))
    rules = (event(**{"class": "trainnig"}), event(**{"class": "training"}))
    assert classless(rules, ["training", "serving"], date(2026, 9, 2)) == (
        "the event e is left out: nothing of class trainnig ran in the window; did you mean "
        "training? known: serving, training",
    )


def test_an_event_of_the_past_is_no_reason_to_warn() -> None:
    rule = event(**{"class": "gone", "from": date(2026, 9, 1)})
    assert classless((rule,), ["training"], date(2026, 9, 2)) == ()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("factor = 1e12", "must be <= 1000, is 1000000000000.0"),
        ('class = "unclassified"\ngpus = 1e7', "must be <= 1e+06, is 10000000.0"),
    ],
)
def test_an_event_beyond_reason_is_refused(line: str, what: str) -> None:
    where, found, _ = fault(f"{EVENT}{line}\n")
    assert (where.partition(".")[2].partition(" ")[2], found) == ('(event "e")', what)


def test_a_term_named_twice_is_refused() -> None:
    where, what, _ = fault('[plan]\nterms = ["1y", "3y", "1y"]\n')
    assert (where, what) == ("plan.terms", "names 1y more than once")


def test_what_every_event_changes_is_told() -> None:
    horizon = year_ahead(horizon_of(bills.window().end, 24))
    paths = np.full((4, horizon.hours), 10.0)
    year = Future(horizon, {"a|H100": paths}, (0.25,) * 4, {"a|H100": paths[0]})
    half, more = with_events(
        year,
        (event(factor=0.0, chance=0.5), event(name="l", gpus=8.0, until=date(2027, 9, 2))),
        {"a|H100": 10.0},
    ).events
    assert (half.happens_in, half.scenarios) == (2, 4)
    # Two ways of four fall from 10 to 0; the event begins at modelled hour 670 of 1,344.
    assert (half.gpus_before, half.gpus_after) == (10.0, 5.0)
    assert half.gpu_hours_per_month == pytest.approx(-5.0 * 674 / 1344 * 730, abs=0.01)
    # On top of the first: from a mean of 5 to 13, in all four ways, to the year's end.
    assert (more.name, more.happens_in) == ("l", 4)
    assert (more.gpus_before, more.gpus_after) == (5.0, 13.0)
    assert (more.first, more.until) == ("2027-03-03", "2027-09-02")


def test_an_event_of_all_classes_is_told_class_by_class() -> None:
    horizon = year_ahead(horizon_of(bills.window().end, 24))
    gpus = {"a|H100": 6.0, "a|A100": 2.0, "b|H100": 5.0}
    demand = {name: np.full((1, horizon.hours), size) for name, size in gpus.items()}
    year = Future(horizon, demand, (1.0,), {name: path[0] for name, path in demand.items()})
    every = EventRule.model_validate({"name": "e", "from": date(2027, 3, 3), "factor": 0.5})
    found = with_events(year, (every,), gpus).events
    assert [(one.workload_class, one.gpus_before, one.gpus_after) for one in found] == [
        ("a", 8.0, 4.0), ("b", 5.0, 2.5),
    ]  # fmt: skip
