"""What the report says of commitments now and later, and of the range of cost and saving."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from data.known_events import EventCost, KnownEvent
from data.ladder import EndingPart, LadderStep
from data.reasons import Reasons
from reports import answer
from reports.ladder import ranges, risk_month, sentence, view
from reports.recommendations import report_markdown
from tests.reports import night

STEP = LadderStep("aws H100", 24.0, 8.0, 16.0, 8.0, 0.0, "2026-12-28", 4.3, 6.88, "It pays.")


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (STEP, "aws H100: commit to 8 GPUs now. It pays."),
        (
            replace(STEP, allowed=0.0, bought=0.0, later=1.0),
            "aws H100: buy nothing yet. It pays. 1 GPU pays if demand holds until 2026-12-28: "
            "decide then.",
        ),
        (
            replace(STEP, bought=0.0),
            "aws H100: buy nothing yet, though 16 GPUs would be allowed: other ways cost less. "
            "It pays.",
        ),
        (
            replace(STEP, bought=0.0, withdrawn="a term of 3 years is not offered now, since x"),
            "aws H100: buy nothing yet, though 16 GPUs would be allowed: a term of 3 years is not "
            "offered now, since x. It pays.",
        ),
        (
            replace(STEP, allowed=0.0, bought=0.0, reason="Buy nothing yet: too little is known."),
            "aws H100: buy nothing yet. Too little is known.",
        ),
        (
            replace(STEP, later=8.0),
            "aws H100: commit to 8 GPUs now. It pays. 8 more GPUs pay if demand holds until "
            "2026-12-28: decide then.",
        ),
    ],
)
def test_each_pool_has_its_sentence(step: LadderStep, text: str):
    assert sentence(step) == text


def with_ladder(*ending: EndingPart) -> str:
    plan = night.plan()
    reasons = replace(plan.summary.reasons or Reasons(), ladder=(STEP,), ending=ending)
    bill = replace(
        plan.summary.bill,
        plan_low_per_month=Decimal("15000"),
        plan_high_per_month=Decimal("25000"),
        saving_low_per_month=Decimal("4000"),
        saving_high_per_month=Decimal("5000"),
    )
    summary = replace(plan.summary, reasons=reasons, bill=bill)
    return report_markdown(replace(plan, summary=summary), night.tables())


def test_the_report_tells_the_ladder_and_what_ends():
    end = EndingPart("ri-1", "p5 in e", 8.0, "2027-03-01", 0.4, 0.625, "let_expire", "too little")
    text = with_ladder(end)
    assert "## Commit now, or wait" in text
    assert "| aws H100 | 24 | 8 | 16 | 8 | 0 | 4.3000 | 6.8800 |" in text
    assert "- aws H100: commit to 8 GPUs now. It pays." in text
    assert "| ri-1 | p5 in e | 8 | 2027-03-01 | 40.0% | 62.5% | let it expire | too little." in text
    assert (
        "In 8 of 10 ways in which demand may come the plan costs between $15,000 and $25,000 a "
        "month and saves between $4,000 and $5,000 against running on as today." in text
    )


def test_work_without_a_price_and_what_events_leave_stand_in_the_table():
    plan = night.plan()
    bare = replace(STEP, pool="gcp H100", allowed=0.0, bought=0.0, reserved=None, on_demand=None)
    known = KnownEvent("end", "a", "2027-03-03", None, 0.0, 0.0, 0.5, 3, 6, 8.0, 4.0, -2920.0)
    reasons = replace(
        plan.summary.reasons or Reasons(),
        ladder=(replace(STEP, term="1 year", counted=6.0), bare),
        ending=(
            EndingPart("ri-1", "p5 in e", 8.0, "2027-03-01", None, None, "decide", "no price"),
        ),
        events=(known,),
    )
    summary = replace(plan.summary, reasons=reasons)
    text = report_markdown(replace(plan, summary=summary), night.tables())
    assert (
        "| aws H100 | 24 (6 after known events) | 8 | 16 | 8 | 0 | 4.3000 (1 year) | 6.8800 |"
    ) in text
    assert "| gcp H100 | 24 | 8 | 0 | 0 | 0 | - | - |" in text
    assert "| ri-1 | p5 in e | 8 | 2027-03-01 | - | - | decide | no price. |" in text
    row = "| end | a | 2027-03-03 | - | x 0 | 50.0% | 3 of 6, that weigh 50.0% | 8 | 4 | -2,920 |"
    assert row in text
    assert "with the event's chance counted" in text


def test_a_plan_without_a_ladder_or_a_forecast_says_nothing_of_them():
    plan = night.plan()
    assert view(None) is None
    assert view(Reasons()) is None
    assert ranges(plan.summary.bill) is None
    assert "Commit now" not in report_markdown(plan, night.tables())


def test_the_weight_of_the_dearest_ways_is_no_money_of_the_month():
    plan = night.plan()
    solve = plan.summary.solve
    assert solve is not None
    weighed = replace(solve, objective=132_000.0, risk=12_000.0, scenarios=6)
    assert risk_month(weighed) == "$1,000"
    assert risk_month(solve) is None
    # (132,000 - 12,000) / 12, and a forecast's hours are no cycles of those observed.
    year = answer.year_of(weighed, plan.summary)
    assert (year.solved_per_month, year.cycles) == (Decimal("10000"), None)


def test_what_events_cost_stands_below_what_they_change():
    event = KnownEvent("end", "a", "2027-03-03", None, 0.0, 0.0, 0.5, 3, 6, 8.0, 4.0, -2920.0)
    costs = (EventCost("end", -2920.0, Decimal("-20089.6")), EventCost("new", 10.0, Decimal(69)))
    plan = night.plan()
    made = replace(plan.summary, reasons=Reasons(events=(event,), event_costs=costs))
    text = report_markdown(replace(plan, summary=made), night.tables())
    table = text[text.index("| event | GPU-hours a month | costs a month") :]
    assert "\n| end | -2,920 | -$20,090 |\n| new | 10 | $69.00 |\n" in table
