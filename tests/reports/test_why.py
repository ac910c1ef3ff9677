"""What the report says of proof, limits, shortages and what was not chosen, in the odd cases."""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal

import pytest

from data.ladder import LadderStep
from data.reasons import PlanLimit, PlanShortage, Reasons, SinceLastNight
from reports.recommendations import MOST_ROWS, report_markdown
from reports.why import limit_sentences, proof, unproven
from tests.reports.night import option, plan, reasons, summary, tables


def solve(**values: object):
    given = summary().solve
    assert given is not None
    return dataclasses.replace(given, **values)  # type: ignore[arg-type]  # any field


def report(made: Reasons | None) -> str:
    return report_markdown(plan(reasons=made), tables())


def test_a_plan_written_before_reasons_were_told_is_rendered_without_them():
    text = report(None)
    for title in ("Why these purchases", "Since the night", "What holds", "what was not chosen"):
        assert title not in text
    assert "## Recommendations" in text


def test_the_proof_is_one_line_with_the_price_of_both():
    # 140,256.12 / 12 = 11,688.01; the optimiser says 140,256 / 12 = 11,688.00.
    assert proof(solve(audited=140256.12, gap=0.0)) == (
        "The plan is proven to be the best possible. Priced again hour by hour, by code that "
        "shares nothing with the optimiser, it costs $11,688.01 a month: a difference of $0.01."
    )
    assert proof(solve(audited=None)) is None


def test_stages_that_the_time_ended_are_named_with_their_gap():
    stages = [
        dataclasses.replace(solve().stages[0], stage=name, status=status, gap=0.0123)
        for name, status in (("as_is", "optimal"), ("spot", "feasible"), ("buy", "feasible"))
    ]
    ended = solve(stages=tuple(stages), status="feasible", gap=0.0123)
    assert unproven(ended) == ["spot (within 1.230%)", "the plan (within 1.230%)"]
    text = report_markdown(plan(solve=ended), tables())
    assert (
        "Not solved to the end in the time allowed: spot (within 1.230%), the plan (within 1.230%)"
    ) in text


@pytest.mark.parametrize(
    ("limits", "texts"),
    [
        ((), []),
        (
            (PlanLimit("upfront_budget", "", "", "$1,000", Decimal(0)),),
            ["More upfront budget would save nothing."],
        ),
        (
            (PlanLimit("quota", "aws", "us-east-1", "p5.48xlarge", Decimal("0.001")),),
            ["No quota holds the plan back."],
        ),
        (
            (PlanLimit("quota", "aws", "us-east-1", "p5.48xlarge", None),),
            [
                "One more p5.48xlarge in aws us-east-1 within the quota would serve hours that "
                "nothing serves now."
            ],
        ),
        (
            (PlanLimit("quota", "aws", "us-east-1", "p5.48xlarge as spot", Decimal(120)),),
            [
                "One more p5.48xlarge as spot in aws us-east-1 within the quota "
                "would save up to $120 a month."
            ],
        ),
    ],
)
def test_a_limit_is_told_by_what_more_of_it_saves(limits, texts):
    assert limit_sentences(Reasons(limits=limits)) == texts


def test_the_rule_of_commitments_is_a_limit_with_its_dollars_and_its_day():
    step = LadderStep("aws H100", 24.0, 0.0, 8.0, 8.0, 8.0, "2026-12-28", 4.3, 6.88, "It pays.")
    held = PlanLimit("commitment_limit", "aws", "us-east-1", "p5.48xlarge", Decimal("5266.2"))
    (text,) = limit_sentences(Reasons(limits=(held,), ladder=(step,)))
    assert text == (
        'The rule of "Commit now, or wait" allows to commit to no more p5.48xlarge in aws '
        "us-east-1 now: one more would save $5,266 a month if demand comes as forecast. Decide on "
        "2026-12-28."
    )
    part = PlanLimit("commitment_limit", "aws", "", "H100 GPU", Decimal("658.25"))
    (text,) = limit_sentences(Reasons(limits=(part,)))
    assert text.endswith(
        "no more H100 GPUs on aws now: one more would save up to $658 a month if demand comes as "
        "forecast."
    )
    free = dataclasses.replace(held, saves_per_month=Decimal(0))
    assert limit_sentences(Reasons(limits=(free,))) == []


def test_a_shortage_names_class_days_hours_and_what_stands_in_the_way():
    short = PlanShortage("training", "H100", "2027-01-12", "2027-11-29", 1204.0, 9632.0, 8.0,
                         "quotas used up: aws us-east-1 (64 GPUs)")  # fmt: skip
    text = report(Reasons(shortages=(short,)))
    assert (
        "| training | H100 | 2027-01-12 | 2027-11-29 | 1,204 | 9,632 | 8 "
        "| quotas used up: aws us-east-1 (64 GPUs) |"
    ) in text


@pytest.mark.parametrize(
    ("unchanged", "sentence"),
    [
        (0, "Neither that night nor this one advises to buy anything."),
        (2, "2 lines to buy are as advised then, none has changed. Of the plans"),
    ],
)
def test_a_night_without_changes_says_so(unchanged, sentence):
    since = SinceLastNight("2026-11-29", 0.001, unchanged, ())
    text = report(dataclasses.replace(reasons(), since=since))
    assert sentence in text
    assert "| line | then | now | why |" not in text


def test_of_many_options_the_nearest_are_shown_and_the_rest_counted():
    others = [
        option(count=0.0, region=f"r-{n}", saves_per_month=Decimal(8000 - n), why="dear")
        for n in range(MOST_ROWS + 7)
    ]
    text = report(Reasons(options=tuple(others)))
    rows = re.findall(r"^\| reserved \| aws \| (r-\d+) ", text, re.MULTILINE)
    assert rows == [f"r-{n}" for n in range(MOST_ROWS)]
    assert "7 more offers in `plan.json`." in text
