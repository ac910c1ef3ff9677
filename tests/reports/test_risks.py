"""How sure a plan is, in the words of the report."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from data.plan import Plan
from data.risks import (
    BacktestPolicy,
    BacktestPool,
    Backtests,
    HeldBefore,
    HopedFor,
    LevelMissed,
    LosesIf,
    PriceMove,
    Risks,
    ServiceLevel,
)
from reports import risks
from reports.recommendations import report_markdown
from tests.reports import night

TRAINING = HopedFor("training", "H100", 500.0, 200.0, 200.0, 100.0, 0.0)
BATCH = HopedFor("batch", "A100", 0.0, 0.0, 0.0, 60.0, 40.0)
POOL = BacktestPool("aws H100", 720, 720, 9e4, 8e4, 1e5, "mean", 95e3, 2, 1, 0, 16, 1.2, 2.0)
TESTED = Backtests(
    (POOL,),
    (BacktestPolicy("loadfactor", 9e4, 0.125), BacktestPolicy("all_on_demand", 1e5, 0.25),
     BacktestPolicy("foresight", 8e4, 0.0)),
)  # fmt: skip
HELD = HeldBefore("reservationorders/ri-1", "p5.48xlarge in us-east-1", True, 8.0, 0.6, 0.5, 0.25,
                  8, 3)  # fmt: skip
LOSES = LosesIf(Decimal(1200), Decimal(900), 0.8, 0.75, 9.0)
MOVE = PriceMove("Reserve 1 x p5", 12, Decimal(500), Decimal(800), Decimal(0), 0.375)
SURE = Risks((TRAINING, BATCH), TESTED, (HELD,), LOSES, (MOVE,))


def section(sure: Risks) -> str:
    text = report_markdown(night.plan(risks=sure), night.tables())
    begin = text.index("## How sure we are")
    return text[begin : text.index("\n## ", begin)]


def test_what_fails_is_a_share_of_what_must_be_requested_by_class_and_in_all():
    """Training requests 200 + 200 of its 1,000 hours: 20, 80 and 200 of them fail."""
    text = section(SURE)
    assert "| training | H100 | 500 | 200 | 200 | 100 | 20 | 80 | 200 |" in text
    assert "| batch | A100 | 0 | 0 | 0 | 60 | 0 | 0 | 0 |" in text
    assert "| all classes | - | 500 | 200 | 200 | 160 | 20 | 80 | 200 |" in text
    assert "lost if 5% of requests fail | lost if 20% of requests fail" in text


def test_hours_that_no_offer_serves_are_not_called_hoped_for():
    text = risks.capacity_sentence((BATCH,))
    assert text.startswith(
        "Of 100 GPU-hours needed a month, none run on machines that are kept for you."
    )
    assert "60 (60.0%) must be had as spot" in text
    assert "40 (40.0%) no offer serves at all." in text


def test_a_plan_without_demand_says_nothing_of_its_capacity():
    assert risks.capacity_sentence(()) == ""
    assert risks.capacity_sentence((HopedFor("a", "H100", 0, 0, 0, 0, 0),)) == ""


def test_the_regret_is_the_cost_above_the_best_level_known_afterwards():
    text = risks.regret_sentence(TESTED)
    assert "the last 720 hours of this history would have cost $90,000" in text
    assert "That is $10,000 less than everything on demand." in text
    assert "its regret is $10,000 (12.5%)." in text


def test_a_planner_that_lost_to_on_demand_says_so():
    """Nothing ran in the unseen hours: 50,000 for nothing, and no share of 0."""
    worse = replace(POOL, usd=5e4, foresight_usd=0.0, on_demand_usd=0.0)
    text = risks.regret_sentence(Backtests((worse,)))
    assert "That is $50,000 more than everything on demand." in text
    assert "its regret is $50,000." in text


def test_a_planner_that_beat_every_constant_level_says_so():
    better = replace(POOL, usd=7e4)
    assert "would have cost less" in risks.regret_sentence(Backtests((better,)))


def test_every_policy_stands_in_plain_words_with_its_cost():
    text = section(SURE)
    assert "| this planner | $90,000 | 12.50% |" in text
    assert "| everything on demand | $100,000 | 25.00% |" in text
    assert "| the best constant level, known only afterwards | $80,000 | 0.00% |" in text


def test_a_pool_that_bought_nothing_or_too_much_is_told():
    assert "nothing was bought in 2 planning steps" in risks.pool_sentence(
        replace(POOL, purchases=0)
    )
    over = replace(POOL, purchases=3, under_break_even=2)
    assert "2 were at work less than its break-even of 60.0%" in risks.pool_sentence(over)


def test_the_back_test_says_that_its_levels_are_totals():
    told = "The test starts with nothing owned: its GPUs are totals, not additions to what is owned"
    assert told in section(SURE)
    assert told not in section(replace(SURE, backtests=Backtests()))
    assert "16 GPUs committed to at the end" in section(SURE)


def test_why_there_is_no_back_test_is_told():
    text = section(Risks(backtests=Backtests(notes=("no back-test: 100 hours",))))
    assert "- no back-test: 100 hours" in text
    assert "how to commit" not in text


def test_each_commitment_stands_with_its_weeks_under_break_even():
    text = section(SURE)
    assert "Over the whole window 1 of 1 commitment would have been under break-even." in text
    row = "| ri-1 (owned: p5.48xlarge in us-east-1) | 8 | 60.0% | 50.0% | 25.0% | 3 of 8 |"
    assert row in text


def test_what_would_make_the_plan_lose_money_is_told_in_figures():
    text = section(SURE)
    assert "cost $900 a month and replace $1,200 of purchases by the hour" in text
    assert "if demand stays 20.0% below the forecast" in text
    assert "if the price on demand falls by 25.0% at once" in text
    assert "ends within about 9 months" in text


def test_what_moving_prices_make_of_a_commitment_stands_beside_its_term():
    """12 x (800 x (1, 0.8, 0.56, 1.15) - 500), and 12 x 500 to pay."""
    text = section(SURE)
    assert "worth as planned | on demand -20% | on demand -44% | on demand +15% |" in text
    row = (
        "| Reserve 1 x p5 | 12 | $6,000 | $3,600 | $1,680 | -$624 | $5,040 | 37.5%; a fall of 44% "
    )
    assert row in text
    assert "What each is worth" not in section(replace(SURE, price_moves=()))
    assert "falls due after it" not in text
    # 500 a month for 36 months: 24 of them are after the planned year.
    long = section(replace(SURE, price_moves=(MOVE, replace(MOVE, term_months=36))))
    assert "$12,000 of what is to pay falls due after it" in long


def test_a_stated_service_level_is_told_only_where_there_is_one():
    row = ServiceLevel("training", "H100", 0.95, 0.9, LevelMissed.QUOTA)
    sure = replace(SURE, service=(row,), level_usd_per_month=Decimal(1234))
    text = section(sure)
    assert "- training on H100: 90.0% of the hours in which it needs GPUs" in text
    assert "95.0% are asked for. The quotas leave too little room for it." in text
    assert "service level" not in section(SURE)
    answer = report_markdown(night.plan(risks=sure), night.tables()).split("## ")[1]
    assert (
        "The service level of 95.0% costs $1,234 a month more than the plan without it. **It is "
        "missed:** training on H100 reaches 90.0%. The quotas leave too little room for it."
    ) in answer


def test_where_nothing_is_bought_nothing_new_can_be_lost():
    assert "commits to nothing new" in section(replace(SURE, loses_if=None))


def test_commitments_that_do_not_pay_as_planned_say_so():
    texts = risks.loses_sentences(LosesIf(Decimal(800), Decimal(900), 1.0, 1.0, 13.5))
    assert texts[-1].endswith("They do not pay even as planned.")


def test_a_plan_that_does_not_say_has_no_section():
    assert "How sure we are" not in report_markdown(night.plan(risks=None), night.tables())


def test_risks_come_back_from_the_plan_as_they_were():
    made = night.plan(risks=SURE)
    assert Plan.from_text(made.to_text()).summary.risks == SURE
