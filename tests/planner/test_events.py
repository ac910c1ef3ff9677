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
    assert (half.happens_in, half.scenarios) == (4, 8)
    # Half of each way falls from 10 to 0; the event begins at modelled hour 670 of 1,344.
    assert (half.gpus_before, half.gpus_after) == (10.0, 5.0)
    assert half.gpu_hours_per_month == pytest.approx(-5.0 * 674 / 1344 * 730, abs=0.01)
    # On top of the first: from a mean of 5 to 13, in all eight ways, to the year's end.
    assert (more.name, more.happens_in) == ("l", 8)
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


def uneven(*rules: EventRule) -> Future:
    """A year of 3, 6, 15 and 16 GPUs in four ways alike, a mean of 10, with the events."""
    horizon = year_ahead(horizon_of(bills.window().end, 24))
    paths = np.array([3.0, 6.0, 15.0, 16.0])[:, None].repeat(horizon.hours, axis=1)
    year = Future(horizon, {"a|H100": paths}, (0.25,) * 4, {"a|H100": paths.mean(axis=0)})
    return with_events(year, rules, {"a|H100": 10.0})


@pytest.mark.parametrize(
    ("more", "mean"),
    [
        ({"factor": 3.0, "chance": 0.4}, 10 + 0.4 * 20),
        ({"factor": 4.0, "chance": 0.12}, 10 + 0.12 * 30),
        ({"factor": 3.0, "chance": 0.08}, 10 + 0.08 * 20),
        ({"factor": 0.0, "gpus": 4.0, "chance": 0.3}, 10 + 0.3 * (4 - 10)),
    ],
)
def test_an_event_changes_the_mean_by_its_chance_of_what_it_does(
    more: dict[str, float], mean: float
) -> None:
    made = uneven(event(**more))
    (told,) = made.events
    weights, last = np.array(made.probabilities), made.demand["a|H100"][:, -1]
    assert (told.gpus_before, told.gpus_after) == (10.0, pytest.approx(mean))
    assert float(weights @ last) == pytest.approx(mean)
    happened = ~np.isin(last, [3.0, 6.0, 15.0, 16.0])
    assert float(weights[happened].sum()) == pytest.approx(more["chance"])
    assert (told.happens_in, told.scenarios) == (4, 8)
    assert made.point["a|H100"][-1] == pytest.approx(mean)


def test_two_events_come_apart_from_each_other_and_a_third_at_its_mean() -> None:
    rules = [event(name=name, gpus=size, chance=0.5) for name, size in (("b", 8), ("c", 80))]
    made = uneven(*rules, event(name="d", gpus=100.0, chance=0.3))
    weights, last = np.array(made.probabilities), made.demand["a|H100"][:, -1]
    assert len(weights) == 16
    # Of 3 GPUs in a quarter: neither, one, the other, both, each with a quarter of its weight.
    assert (last[:4] - 3 - 30).tolist() == pytest.approx([0.0, 80.0, 8.0, 88.0])
    assert weights.tolist() == pytest.approx([1 / 16] * 16)
    assert [(one.happens_in, one.scenarios) for one in made.events] == [(8, 16), (8, 16), (16, 16)]
    assert made.events[-1].gpus_after - made.events[-1].gpus_before == pytest.approx(30.0)


def test_without_one_of_two_events_the_other_stays_as_likely() -> None:
    rules = (event(name="b", gpus=8.0, chance=0.25), event(name="c", gpus=80.0, chance=0.5))
    horizon = year_ahead(horizon_of(bills.window().end, 24))
    path = np.full((1, horizon.hours), 10.0)
    year = Future(horizon, {"a|H100": path}, (1.0,), {"a|H100": path[0]})
    made = with_events(year, rules, {"a|H100": 10.0}, without="c")
    assert made.demand["a|H100"][:, -1].tolist() == [10.0, 18.0]
    assert made.probabilities == (0.75, 0.25)
