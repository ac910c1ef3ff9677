"""What stands on the terminal: the summary of the demo, and aligned tables."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from data.plan import SolveFigures, StateRow
from reports.terminal import WIDTH, demo_summary, idle_text, table_text
from tests.reports.night import money, plan, summary

OUT = Path("loadfactor-out/2026-11-30")


def test_the_summary_of_a_night_is_the_golden_one(golden):
    golden("reports/demo.txt", demo_summary(plan(), OUT) + "\n")


def test_the_summary_fits_the_terminal():
    assert WIDTH == 80
    assert max(len(line) for line in demo_summary(plan(), OUT).splitlines()) <= WIDTH


def test_the_summary_of_a_large_fleet_in_two_currencies_fits_too():
    entry = dataclasses.replace(
        summary().idle[0], currency="EUR", cost_per_year=money("123456789012.34"),
        cost=money("99999999999.99"), undetermined_per_month=money("987654321.5"),
        billed_gpu_hours=money("98765432100"),
    )  # fmt: skip
    bill = dataclasses.replace(summary().bill, today_per_month=money("123456789012"))
    states = (*summary().states, StateRow("busy", money("7"), money("123456789"), "EUR"))
    solve = SolveFigures("optimal", "highs 1.16.0", 1.0, 1.0, 0.0, 8800, 12345.5)
    text = demo_summary(
        plan(idle=(entry, *summary().idle), bill=bill, states=states, solve=solve,
             rates=("NOK 10.9 per USD, as of 2026-11-01", "GBP 0.79 per USD, as of 2026-11-01"),
             has_utilization=False, least_history_hours=336),
        OUT,
    )  # fmt: skip
    assert max(len(line) for line in text.splitlines()) <= WIDTH


@pytest.mark.parametrize("filling", range(1, 66))
def test_no_amount_is_torn_from_its_unit(filling):
    (move, *_) = plan().summary.moves
    title = "x" * filling + " for $1,234 a month and EUR -5,678 a year or 12 machines of 3.5%"
    text = demo_summary(plan(moves=(dataclasses.replace(move, title=title),)), OUT)
    assert not re.search(r"(\d,?|EUR| a)$", text.split("Moves")[1].split("saves")[0], re.MULTILINE)
    assert max(len(line) for line in text.splitlines()) <= WIDTH


def test_the_bill_is_written_as_a_sum():
    # 23,360 - 4,672 - 120 + 120 = 18,688
    text = demo_summary(plan(), OUT)
    block = text.split("The bill")[1].split("Moves")[0]
    shown = re.findall(r"^ +([-+]?\$[\d,]+)  \w", block, re.MULTILINE)
    values = [int(re.sub(r"[$,+]", "", amount)) for amount in shown]
    assert values == [23360, -4672, -120, 120, 18688]
    assert "a mean over the coming year" in " ".join(block.split())


def test_where_most_is_unknown_the_summary_leads_with_that():
    # 1,300 / 1,600 = 81.25 %
    states = (StateRow("unknown", money("1300"), money("2600"), "USD"),)
    entry = dataclasses.replace(
        summary().idle[0],
        gpu_hours=money("0"),
        cost=money("0"),
        cost_per_year=money("0"),
        unknown_per_month=money("18980"),
    )
    night = plan(idle=(entry,), states=states, has_utilization=False)  # fmt: skip
    text = " ".join(demo_summary(night, OUT).split())
    assert (
        "Unknown Nobody knows what 1,300 of 1,600 GPU-hours (81.3%) did. "
        "They cost $18,980 a month: load utilization. The bill"
    ) in text
    assert "did nothing" not in text


def test_a_short_history_is_told_at_the_head():
    head = demo_summary(plan(least_history_hours=336), OUT).split("Idle")[0]
    assert "The history is short: a plan should rest on 336 hours at least." in head


def test_one_hour_is_not_hours():
    text = demo_summary(plan(hours_observed=1, least_history_hours=0), OUT)
    assert "1 hour observed" in text
    assert "in 1 hour;" in text
    assert "1 hours" not in text


def idle_document(**changes):
    rows = [
        {"cloud": "aws", "state": "idle_held", "gpu_hours": "10.5", "cost": "21.1234567891",
         "currency": "USD"},
        {"cloud": "aws", "state": "busy", "gpu_hours": "89.5", "cost": "179", "currency": "USD"},
    ]  # fmt: skip
    document = {
        "rows": rows,
        "idle_cost_per_year": {"USD": "1850.4148147253"},
        "stoppable_cost_per_month": {"USD": "154.2012345604"},
        "committed_idle_cost_per_month": {"USD": "0"},
        "partly_busy_idle_cost_per_month": {"USD": "0.005"},
        "undetermined_idle_cost_per_month": {"USD": "3"},
        "unknown_cost_per_month": {"USD": "1234.5"},
        "unpriced_idle_gpu_hours": "0",
        "hours_observed": 100,
        "patterns": [{"kind": "never_started", "scope": "aws/training", "gpu_hours": "1",
                      "cost_per_month": "14.6789", "currency": "USD",
                      "action": "start work on the reserved capacity, or let it end"}],
        "alerts": [{"rule": "idle-node", "scope": "aws/1/i-0a", "since": "2026-11-29T18:00:00Z",
                    "until": "2026-11-30T00:00:00Z", "cost": "21.1234", "currency": "USD",
                    "state": "firing"}],
    }  # fmt: skip
    return document | changes


def test_the_idle_answer_for_people_has_rows_parts_patterns_and_alerts():
    assert idle_text(idle_document()) == (
        "cloud  state      gpu_hours           cost  currency\n"
        "aws    idle_held       10.5  21.1234567891  USD\n"
        "aws    busy            89.5            179  USD\n"
        "\n"
        "A month of 730 hours, as the mean of 100 observed hours\n"
        "  could have been stopped             $154.20\n"
        "  committed, can only be filled         $0.00\n"
        "  on nodes that also worked             $0.01\n"
        "  paid in a way that no bill tells      $3.00\n"
        "  unknown, not idle                 $1,234.50\n"
        "  a year of all that is idle        $1,850.41\n"
        "\n"
        "Patterns  never started, aws/training: 1 GPU-hour, $14.68 a month: start work on\n"
        "          the reserved capacity, or let it end\n"
        "\n"
        "Alerts    idle-node firing since 2026-11-29 18:00 UTC, $21.12: aws/1/i-0a"
    )


def test_the_idle_answer_names_dollars_first_and_hours_only_where_there_are_any():
    (pattern,) = idle_document()["patterns"]
    text = idle_text(
        idle_document(
            idle_cost_per_year={"EUR": "5", "USD": "1850.4148147253", "AUD": "-2"},
            patterns=[pattern | {"gpu_hours": "0"}],
        )
    )
    assert "$1,850.41, AUD -2.00, EUR 5.00" in text
    assert "aws/training: $14.68 a month: start work" in text


def test_the_idle_answer_without_rows_says_so():
    assert idle_text(idle_document(rows=[])) == "nothing to show"


def test_the_idle_answer_leads_with_what_nobody_knows():
    rows = [
        {"state": "unknown", "gpu_hours": "60", "cost": None, "currency": "USD"},
        {"state": "busy", "gpu_hours": "40", "cost": "1", "currency": "USD"},
    ]
    text = idle_text(idle_document(rows=rows, patterns=[], alerts=[]))
    assert text.startswith("Nobody knows what 60 of 100 GPU-hours did: load utilization")
    assert "Alerts" not in text


def test_idle_hours_without_a_price_are_told():
    text = idle_text(idle_document(unpriced_idle_gpu_hours="12.5"))
    assert "  idle hours without a known price  12.5 GPU-hours" in text


def test_the_summary_shows_the_arithmetic_of_the_yearly_figure():
    # 800 dollars in 100 hours: 800 x 8,760 / 100 = 70,080
    text = demo_summary(plan(), OUT)
    assert "$70,080 a year" in text
    assert "$800.00 x 8,760 / 100" in text


def test_without_moves_the_summary_says_so():
    assert "none would save money" in demo_summary(plan(moves=()), OUT)


def test_numbers_stand_to_the_right_and_text_to_the_left():
    rows = [{"cloud": "aws", "cost": "1000.5"}, {"cloud": "azure", "cost": "-2"}]
    assert table_text(rows, ["cloud", "cost"]) == (
        "cloud    cost\naws    1000.5\nazure      -2"
    )  # fmt: skip


def test_a_missing_value_is_a_dash_and_zero_is_zero():
    rows = [{"cost": None}, {"cost": "0"}]
    assert table_text(rows, ["cost"]).split() == ["cost", "-", "0"]


def test_no_rows_leave_the_header():
    assert table_text([], ["cloud", "cost"]) == "cloud  cost"


def test_a_name_cannot_steer_the_terminal():
    text = table_text([{"name": "a\x1b[31mb\nc"}], ["name"])
    assert text == "name\na [31mb c"
    (move, *_) = plan().summary.moves
    foreign = dataclasses.replace(move, title="x\x1b]0;y\x07")
    assert "\x1b" not in demo_summary(plan(moves=(foreign,)), OUT)
