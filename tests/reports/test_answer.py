"""The bill's sum, what is unknown or foreign, and the solver's year, by hand."""

from __future__ import annotations

import dataclasses
import re

import pytest

from data.plan import SolveFigures, StateRow
from planner import quotes
from reports import answer, recommendations
from tests.reports.night import money, summary


def bill(**changes):
    return dataclasses.replace(summary().bill, **changes)


def test_the_steps_lead_from_today_to_the_plan():
    # 483,447 - 259,826 + 0 + 19,988 = 243,609
    steps = answer.bill_steps(
        bill(
            today_per_month=money("483447"),
            saving_per_month=money("259826"),
            repriced_per_month=money("0"),
            expiring_per_month=money("19988"),
            plan_per_month=money("243609"),
        )
    )
    assert [step.amount for step in steps] == ["$483,447", "-$259,826", "+$19,988", "$243,609"]
    values = [int(re.sub(r"[$,+]", "", step.amount)) for step in steps]
    assert sum(values[:-1]) == values[-1]


def test_a_plan_that_costs_more_adds_its_negative_saving():
    steps = answer.bill_steps(bill(saving_per_month=money("-300"), plan_per_month=money("23660")))
    assert (steps[1].amount, steps[-1].amount) == ("+$300", "$23,660")


def test_steps_that_do_not_add_up_in_whole_dollars_are_shown_with_cents():
    # 1000.4 - 200.4 + 0 + 0 = 800.0; shown 1,000 - 200 = 800: adds up.
    # 1000.4 - 200.6 + 0 + 0 = 799.8; 1,000 - 201 = 799, but 799.8 would be 800: so with cents.
    even = {"repriced_per_month": money("0"), "expiring_per_month": money("0")}
    good = bill(today_per_month=money("1000.4"), saving_per_month=money("200.4"),
                plan_per_month=money("800"), **even)  # fmt: skip
    off = bill(today_per_month=money("1000.4"), saving_per_month=money("200.6"),
               plan_per_month=money("799.8"), **even)  # fmt: skip
    assert [step.amount for step in answer.bill_steps(good)] == ["$1,000", "-$200", "$800"]
    assert [step.amount for step in answer.bill_steps(off)] == ["$1,000.40", "-$200.60", "$799.80"]
    assert answer.adds_up(good)
    assert answer.adds_up(off)
    # 1000.404 - 200.604 = 799.8 to the cent, but 799.81 is stated.
    assert not answer.adds_up(dataclasses.replace(off, plan_per_month=money("799.81")))


def test_the_currency_of_the_bill_comes_first():
    night = summary()
    entries = [dataclasses.replace(night.idle[0], currency=code) for code in ("AUD", "USD", "EUR")]
    night = dataclasses.replace(night, idle=tuple(entries))
    assert [one.currency for one in answer.by_currency(night)] == ["USD", "AUD", "EUR"]


@pytest.mark.parametrize(("hours", "said"), [("800", False), ("800.01", True), ("1600", True)])
def test_more_than_half_of_the_hours_unknown_is_mostly_unknown(hours, said):
    # 1,600 GPU-hours are billed; those of another currency do not count.
    states = (
        StateRow("unknown", money(hours), money("1"), "USD"),
        StateRow("unknown", money("9999"), money("1"), "EUR"),
    )
    night = dataclasses.replace(summary(), states=states)
    assert answer.mostly_unknown(night, night.idle[0]) is said


def test_what_has_no_rate_is_foreign_and_what_has_one_is_not():
    # 30 EUR in 100 hours: 30 x 8,760 / 100 / 12 = 219 a month.
    states = (
        *summary().states,
        StateRow("busy", money("10"), money("20"), "EUR"),
        StateRow("free", money("5"), money("10"), "EUR"),
        StateRow("busy", money("1"), money("1"), "NOK"),
    )
    rates = ("NOK 10.9 per USD, as of 2026-11-01",)
    found = answer.foreign(dataclasses.replace(summary(), states=states, rates=rates))
    assert found == [answer.Foreign("EUR", money("15"), money("219"))]


def test_a_history_is_short_below_the_least_hours():
    night = summary()
    assert not answer.is_short_history(dataclasses.replace(night, least_history_hours=100))
    assert answer.is_short_history(dataclasses.replace(night, least_history_hours=101))


def test_the_solvers_year_and_what_is_owned_make_the_plans_month():
    # 140,256 / 12 = 11,688; 18,688 - 11,688 = 7,000 owned. 8,800 / 100 = 88 cycles.
    solve = SolveFigures("optimal", "highs", 140256.0, 140256.0, 0.0, 8800, 0.0)
    assert answer.year_of(solve, summary()) == answer.Year(88, money("11688"), money("7000"))


def test_what_is_owned_is_not_told_where_hours_without_an_offer_bear_a_penalty():
    solve = SolveFigures("optimal", "highs", 140256.0, 140256.0, 0.0, 8801, 5.0)
    assert answer.year_of(solve, summary()) == answer.Year(None, money("11688"), None)


def test_superseded_prices_are_told_by_the_word_that_the_planner_writes():
    assert quotes.SUPERSEDED.startswith(recommendations.SUPERSEDED)
