"""The Markdown report: its whole text for one night, and what it says in the odd cases."""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from data.plan import RejectedPrice, SolveFigures, StateRow
from reports.recommendations import escape, report_markdown
from reports.terminal import demo_summary
from tests.reports.night import BUY, FILL, RELEASE, money, plan, recommendation, summary, tables


def test_the_report_of_a_night_is_the_golden_one(golden):
    golden("reports/report.md", report_markdown(plan(), tables()))


def test_the_answer_comes_before_anything_else():
    text = report_markdown(plan(), tables())
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[:4] == [
        "The answer",
        "The moves that matter most",
        "Where the idle dollars sit",
        "Recommendations",
    ]
    # Prices of limits, and the proof, come after what to do.
    later = ["Why these purchases", "Since the night of 2026-11-29", "What holds the plan back",
             "How it was computed", "Appendix: what was not chosen"]  # fmt: skip
    assert [title for title in titles if title in later] == later
    first_page = text.split("## Where the idle dollars sit")[0]
    assert not re.search(r"\b(gap|bound|dual|shadow|solver|proven|optim)", first_page)


def test_every_currency_has_its_own_idle_figure_and_none_are_added():
    dollars = summary().idle[0]
    euros = dataclasses.replace(dollars, currency="EUR", cost_per_year=money("8760"))
    text = report_markdown(plan(idle=(euros, dollars)), tables())
    assert "**Idle GPUs cost $70,080 a year.**" in text
    assert "**Idle GPUs cost EUR 8,760 a year.**" in text
    assert "78,840" not in text  # 70,080 + 8,760
    assert text.index("cost $70,080 a year") < text.index("cost EUR 8,760 a year")
    assert text.index("In USD:") < text.index("In EUR:")


def test_rates_stand_at_the_bill_and_so_does_what_has_none():
    # 20 EUR in 100 hours: 20 x 8,760 / 100 / 12 = 146 a month.
    states = (*summary().states, StateRow("busy", money("1"), money("20"), "EUR"))
    text = report_markdown(plan(states=states, rates=("NOK 10.9 per USD, as of 2026-11-01",)),
                           tables())  # fmt: skip
    answer = text.split("## The moves")[0]
    assert "Other currencies are converted at NOK 10.9 per USD, as of 2026-11-01." in answer
    assert "**1 GPU-hour billed in EUR is not in the bill**: EUR 146 a month" in answer


def unknown_night(idle: str, cost: str) -> dict[str, Any]:
    """1,300 of 1,600 GPU-hours are unknown, `idle` are idle for `cost` dollars."""
    entry = dataclasses.replace(summary().idle[0], gpu_hours=money(idle), cost=money(cost),
                                cost_per_year=money(cost) * 876 / 10,
                                unknown_per_month=money("18980"))  # fmt: skip
    states = (StateRow("unknown", money("1300"), money("2600"), "USD"),)
    return {"idle": (entry,), "states": states}


def test_where_most_is_unknown_the_report_leads_with_that_and_finds_nothing_idle():
    # 1,300 / 1,600 = 81.25 %
    text = report_markdown(plan(has_utilization=False, **unknown_night("0", "0")), tables())
    assert (
        "## The answer\n\n**Nobody knows what 1,300 of 1,600 GPU-hours (81.3%) did. "
        "They cost $18,980 a month: load utilization.**"
    ) in text
    assert "Idle GPUs cost" not in text
    assert "did nothing" not in text
    assert "could have been stopped" not in text


def test_where_most_is_unknown_what_is_idle_is_the_least():
    text = report_markdown(plan(**unknown_night("10", "20")), tables())
    # 20 x 8,760 / 100 = 1,752
    assert "load utilization that covers them.**" in text
    assert "Of the rest, 10 GPU-hours did nothing: $20.00 in 100 hours, $1,752 a year." in text
    assert "so these parts are the least that is idle" in text


def test_commitments_that_nothing_used_are_idle_dollars_without_gpu_hours():
    """20 dollars in 100 hours: 20 x 8,760 / 100 = 1,752 a year, 20 x 7.3 = 146 a month."""
    night = unknown_night("0", "20")
    entry = dataclasses.replace(night["idle"][0], stoppable_per_month=money("0"),
                                committed_per_month=money("146"),
                                partly_busy_per_month=money("0"))  # fmt: skip
    said = (
        "Known to be idle are commitments that nothing used: $20.00 in 100 hours, $1,752 a year "
        "($146 a month committed)."
    )
    made = plan(**{**night, "idle": (entry,)})
    text = report_markdown(made, tables())
    assert f"{said} How much more is idle cannot be told.\n\nGPU capacity costs" in text
    assert "Nothing is known to be idle" not in text
    assert "| committed | $146 |" in text
    assert said in " ".join(demo_summary(made, Path("out")).split())

    known = report_markdown(plan(idle=(entry,)), tables())
    assert "0 (0.0%) did nothing. Commitments that nothing used cost $20.00 in 100 hours" in known


def test_idle_dollars_of_which_no_bill_tells_have_a_row_of_their_own():
    assert "no bill says how it is paid" not in report_markdown(plan(), tables())
    entry = dataclasses.replace(summary().idle[0], undetermined_per_month=money("146"))
    text = report_markdown(plan(idle=(entry,)), tables())
    assert "| no bill says how it is paid | $146 |" in text


def test_a_short_history_is_told_before_the_answer():
    text = report_markdown(plan(least_history_hours=336), tables())
    head = text.split("## The answer")[0]
    assert "**The history is short**: 100 hours are fewer than the 336 hours" in head
    assert "history is short" not in report_markdown(plan(), tables())


def test_hours_that_no_offer_serves_are_told_at_the_bill():
    solve = SolveFigures("optimal", "highs 1.16.0", 100.0, 98.0, 0.0, 8800, 1.0)
    text = report_markdown(plan(solve=solve), tables())
    answer = text.split("## The moves")[0]
    assert "**1 GPU-hour a month of those needed is not served**: no offer is priced" in answer
    assert "which nobody pays and is in no bill" in text


def test_what_the_classes_are_served_with_and_what_stands_beside_it_make_the_plan():
    # 8,176 + 2,737.5 = 10,913.5; 18,688 - 10,913.5 = 7,774.5
    text = report_markdown(plan(), tables())
    for row in ("**$10,914** |", "| $7,775 |", "**$18,688** |"):
        assert row in text
    assert "These rounded ones differ" not in text
    assert "cheapest zone" in text
    firm = tuple(row for row in summary().mix if row.purchase_option != "spot")
    assert "cheapest zone" not in report_markdown(plan(mix=firm), tables())


def test_a_class_may_have_a_bar_in_its_name():
    row = dataclasses.replace(summary().mix[0], workload_class="a|b")
    text = report_markdown(plan(mix=(row,)), tables())
    assert r"| a\|b | H100 | reserved |" in text


def test_superseded_prices_are_counted_and_not_listed():
    price = RejectedPrice(
        "aws",
        "eu-west-9",
        "p5.48xlarge",
        "on_demand",
        Decimal(55),
        "2026-07-01",
        "rejected",
        "superseded: replaced by the discount of a.csv row 1",
    )
    old = dataclasses.replace(price, status="stale")  # fmt: skip
    text = report_markdown(plan(rejected_prices=(price, old)), tables())
    assert "2 prices are superseded by your own price or discount, or by a newer price" in text
    assert "Every other price passed its checks." in text
    assert "eu-west-9" not in text
    assert "0 prices were not" in text


def test_rounded_rows_that_do_not_add_up_are_explained():
    # 100.4 + 100.4 = 200.8 is shown as 201, its rows as 100 and 100.
    listed = [
        recommendation(rank=rank, id=f"r{rank}", kind="move_to_spot", action="Move it.",
                       saving_per_month=money("100.4"), cash_saving_per_month=money("100.4"),
                       why="Cheaper.")
        for rank in (1, 2)
    ]  # fmt: skip
    text = report_markdown(plan(), tables(listed))
    assert "| | **total** | **$201** | **$201** |" in text
    assert "the rounded rows add up to a little more or less" in text
    # The bill's saving stands at 4,672 in this night, and the report does not hide it.
    assert "The rows add up to $201, while the plan's saving is $4,672" in text


def test_rows_beyond_the_shown_ones_are_summed_in_one_row():
    # 60 rows of 10 dollars: 50 shown, 10 x 10 = 100 in the last row, 600 in all.
    listed = [
        recommendation(rank=rank, id=f"r{rank:02}", kind="move_to_spot", action=f"Move {rank}.",
                       saving_per_month=money("10"), cash_saving_per_month=money("10"),
                       why="Cheaper.")
        for rank in range(1, 61)
    ]  # fmt: skip
    text = report_markdown(plan(), tables(listed))
    assert "| 50 | Move 50. |" in text
    assert "Move 51." not in text
    assert "| | 10 more rows in `recommendations.csv` | $100 | $100 | - | |" in text
    assert "**$600**" in text


def test_a_cell_cannot_break_the_table_or_carry_markup():
    listed = [RELEASE | {"action": "Stop a|b\n<script>x</script> [y](z) `q`"}, BUY, FILL]
    text = report_markdown(plan(), tables(listed))
    row = next(line for line in text.splitlines() if line.startswith("| 1 |"))
    assert r"a\|b &lt;script&gt;x&lt;/script&gt; \[y\](z) \`q\`" in row
    assert len(re.findall(r"(?<!\\)\|", row)) == 7  # six columns


def test_escape_leaves_names_readable():
    assert escape("idle_held p5.48xlarge aws:train-a") == "idle_held p5.48xlarge aws:train-a"
    assert escape("_emphasis_ *bold* ~~gone~~") == r"\_emphasis\_ \*bold\* \~\~gone\~\~"


def test_without_utilization_the_report_says_what_that_hides():
    text = report_markdown(plan(has_utilization=False), tables())
    assert "**There is no utilization data.** The plan takes every billed hour as needed." in text


def test_without_billing_the_report_says_that_hours_are_priced_from_the_book():
    text = report_markdown(plan(has_billing=False), tables())
    assert "**There is no billing data.**" in text
    assert "priced from the price book" in text


def test_an_idle_row_without_a_price_stands_last_and_shows_no_amount():
    night = tables()
    unpriced = night.idle.assign(cost=[None, money("300"), money("200")])
    text = report_markdown(plan(), dataclasses.replace(night, idle=unpriced))
    (priced, without) = re.findall(r"^\| (?:commitment:cud-7|i-0a) \|.*$", text, re.MULTILINE)
    assert priced.startswith("| commitment:cud-7 |")
    assert "| 250 | - | $400 |" in without


def rejected(count: int) -> tuple[RejectedPrice, ...]:
    return tuple(
        RejectedPrice("aws", f"r-{n}", "p5.48xlarge", "spot", Decimal(1), "2026-07-01", "rejected",
                      "below the band" if n % 2 else "no price")
        for n in range(count)
    )  # fmt: skip


def test_forty_rejected_prices_stand_in_one_table():
    text = report_markdown(plan(rejected_prices=rejected(40)), tables())
    assert "Appendix: each price" not in text
    assert len(re.findall(r"^\| aws \| r-\d+ \|", text, re.MULTILINE)) == 40


def test_more_than_forty_rejected_prices_are_counted_by_reason_and_listed_in_an_appendix():
    # Of the numbers 0 to 40, 21 are even and 20 odd.
    text = report_markdown(plan(rejected_prices=rejected(41)), tables())
    counts, appendix = text.split("## Appendix: each price that was not used")
    assert "| 21 | rejected | no price |\n| 20 | rejected | below the band |" in counts
    assert len(re.findall(r"^\| aws \| r-\d+ \|", appendix, re.MULTILINE)) == 41
    assert not re.search(r"^\| aws \| r-\d+ \|", counts, re.MULTILINE)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("optimal", "found the plan and proved it optimal to within 2.000%"),
        ("feasible", "stopped at its limit before the proof was complete"),
        ("infeasible", "found no plan (infeasible)"),
    ],
)
def test_the_solvers_outcome_is_told_as_it_was(status, said):
    solve = SolveFigures(status, "highs 1.16.0", 100.0, 98.0, 0.02, 24, 0.0)
    assert said in report_markdown(plan(solve=solve), tables())


def test_a_night_without_anything_to_say_is_still_a_report():
    bare = plan(idle=(), states=(), classes=(), mix=(), solve=None, moves=(), rejected_prices=(),
                freshness=(), notes=())  # fmt: skip
    night = tables([])
    night = dataclasses.replace(
        night,
        commitments=night.commitments.head(0),
        limits=night.limits.head(0),
        idle=night.idle.head(0),
        quality=night.quality.head(0),
    )
    text = report_markdown(bare, night)
    for sentence in (
        "No GPU-hours were billed in this window",
        "No move would save money.",
        "Nothing to recommend.",
        "None is owned, and none is advised.",
        "No optimisation was run.",
        "Every price passed its checks.",
    ):
        assert sentence in text
    assert "Scaling limits" not in text


def test_every_table_of_the_report_has_as_many_cells_as_its_header():
    text = report_markdown(plan(rejected_prices=rejected(41)), tables())
    width = 0
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line))
        if not line.startswith("|"):
            width = 0
        elif width == 0:
            width = cells
        else:
            assert cells == width, line


def test_no_line_ends_in_a_blank_and_no_gap_is_wider_than_one_line():
    text = report_markdown(plan(), tables())
    assert text.endswith("\n")
    assert "\n\n\n" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]
