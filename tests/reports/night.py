"""One small hand-made night: 16 GPUs over 100 hours, three recommendations, every table filled.

The figures hang together: 16 GPUs x 100 h = 1,600 billed GPU-hours, of which 400 were idle and 100
unknown; at 2 dollars a GPU-hour the idle ones cost 800 dollars, and 800 x 8,760 / 100 = 70,080 a
year. 1,600 x 2 x 7.3 = 23,360 dollars a month today; the recommendations save 4,672 of it.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import pandas as pd

from data.frames import conform
from data.plan import (
    BillFigures,
    Change,
    ClassRow,
    Freshness,
    IdleFigures,
    MixRow,
    Move,
    Plan,
    RejectedPrice,
    SolveFigures,
    StateRow,
    Summary,
)
from data.reasons import LineChange, PlanLimit, PlanOption, Reasons, SinceLastNight, StageProof
from data.risks import (
    BacktestPolicy,
    BacktestPool,
    Backtests,
    HeldBefore,
    HopedFor,
    LosesIf,
    Risks,
)
from data.schema import COMMITMENTS_OUT, IDLE, LIMITS, QUALITY, RECOMMENDATIONS
from reports.tables import Tables

AS_OF = "2026-11-30T00:00:00Z"
VALID = "2026-12-07T00:00:00Z"


def money(text: str) -> Decimal:
    return Decimal(text)


def recommendation(**values: object) -> dict[str, object]:
    filled: dict[str, object] = dict.fromkeys(RECOMMENDATIONS.names)
    filled |= {"currency": "USD", "cloud": "aws", "data_as_of": AS_OF, "valid_until": VALID}
    return filled | values


RELEASE = recommendation(
    rank=1,
    id="r-release",
    kind="release_idle",
    account="111122223333",
    region="us-east-1",
    resource="i-0a",
    workload_class="interactive",
    action="Release i-0a when it is idle.",
    gpus=8.0,
    gpu_hours_per_month=1460.0,
    cost_per_month_now=money("2920"),
    cost_per_month_after=money("0"),
    saving_per_month=money("2920"),
    cash_saving_per_month=money("2920"),
    confidence="high",
    risk="A notebook may be lost.",
    why="Nobody used it for 200 GPU-hours.",
)
BUY = recommendation(
    rank=2,
    id="r-buy",
    kind="buy_reserved",
    action="Reserve 1 p5.48xlarge for a year.",
    workload_class="training",
    gpus=8.0,
    saving_per_month=money("1500.4"),
    cash_saving_per_month=money("1500.4"),
    term_hours=8760,
    payment="monthly",
    upfront=money("0"),
    total_commitment=money("98112"),
    capacity_assured="no",
    confidence="medium",
    break_even_share=0.7,
    expected_share=0.95,
    risk="Demand may fall below 70%.",
    why="Training needs it in 95% of hours.",
)
FILL = recommendation(
    rank=3,
    id="r-fill",
    kind="use_idle_commitment",
    cloud="gcp",
    action="Run batch on the idle half of cud-7.",
    workload_class="batch",
    saving_per_month=money("251.6"),
    cash_saving_per_month=money("0"),
    confidence="low",
    why="=cud-7 | pays for hours that nothing uses.",
)


def summary() -> Summary:
    return Summary(
        date="2026-11-30",
        window_start="2026-11-25T20:00:00Z",
        window_end=AS_OF,
        hours_observed=100,
        fleet_gpus=16,
        idle=(
            IdleFigures(
                currency="USD",
                gpu_hours=money("400"),
                billed_gpu_hours=money("1600"),
                cost=money("800"),
                cost_per_year=money("70080"),
                stoppable_per_month=money("2920"),
                committed_per_month=money("1460"),
                partly_busy_per_month=money("1460"),
                undetermined_per_month=money("0"),
                unknown_per_month=money("1460"),
                committed_until="2027-03-01",
            ),
        ),
        bill=BillFigures(
            currency="USD",
            today_per_month=money("23360"),
            plan_per_month=money("18688"),
            saving_per_month=money("4672"),
            cash_saving_per_month=money("4420.4"),
            repriced_per_month=money("-120"),
            expiring_per_month=money("120"),
            whole_machines_per_month=money("365"),
            not_planned_per_month=money("730"),
        ),
        states=(
            StateRow("busy", money("1100"), money("2200"), "USD"),
            StateRow("idle_held", money("250"), money("500"), "USD"),
            StateRow("free", money("150"), money("300"), "USD"),
            StateRow("unknown", money("100"), money("200"), "USD"),
        ),
        classes=(
            ClassRow(
                workload_class="training",
                gpu_family="H100",
                billed=money("1400"),
                busy=money("1000"),
                idle_held=money("250"),
                free=money("150"),
                unknown=money("0"),
                needed=money("1050"),
                peak_needed_gpus=14.0,
                cost=money("2800"),
                currency="USD",
            ),
            ClassRow(
                workload_class="inference",
                gpu_family="H100",
                billed=money("200"),
                busy=money("100"),
                idle_held=money("0"),
                free=money("0"),
                unknown=money("100"),
                needed=money("200"),
                peak_needed_gpus=2.0,
                cost=money("400"),
                currency="USD",
            ),
        ),
        mix=(
            MixRow("training", "H100", "aws us-east-1 p5.48xlarge", "reserved", 5840.0,
                   money("8176")),
            MixRow("training", "H100", "aws us-east-1 p5.48xlarge", "spot", 1825.0,
                   money("2737.5")),
        ),
        solve=SolveFigures(
            "optimal", "highs 1.16.0", 140256.0, 140250.0, 0.0000428, 8800, 0.0, 140256.012,
            (StageProof("buy", "optimal", "highs 1.16.0", 140256.0, 140250.0, 0.0000428,
                        140256.012),),
        ),
        moves=(
            Move("Release i-0a when it is idle", ("r-release",), money("2920"), money("2920"),
                 money("0"), money("0"), "USD", "unknown", "Nobody used it for 200 GPU-hours.",
                 "A notebook may be lost."),
            Move("Reserve 1 p5.48xlarge for a year", ("r-buy",), money("1500.4"),
                 money("1500.4"), money("98112"), money("0"), "USD", "no",
                 "Training needs it in 95% of hours.", "Demand may fall below 70%."),
            Move("Run batch on the idle half of cud-7", ("r-fill",), money("251.6"), money("0"),
                 money("0"), money("0"), "USD", "unknown",
                 "=cud-7 | pays for hours that nothing uses.", ""),
        ),
        rejected_prices=(
            RejectedPrice("aws", "us-east-1", "p5.48xlarge", "spot", money("98.32"), "2026-07-01",
                          "rejected", "spot is no cheaper than on demand"),
            RejectedPrice("aws", "us-east-1", "p5.48xlarge", "on_demand", money("55.04"),
                          "2026-07-01", "rejected", "superseded: replaced by an override"),
            RejectedPrice("gcp", "us-west1", "a3-highgpu-8g", "on_demand", None, "2026-01-02",
                          "stale", "332 days old, the limit is 180"),
        ),
        prices_used=1204,
        freshness=(
            Freshness("aws", "cur2", "all", AS_OF, False),
            Freshness("gcp", "detailed", "all", "2026-11-27T00:00:00Z", True),
        ),
        least_history_hours=72,
        notes=("The fleet and its prices are made.",),
        reasons=reasons(),
        risks=risks(),
    )  # fmt: skip


def risks() -> Risks:
    """The reservation replaces 9,676.40 dollars by the hour a month and costs 8,176."""
    return Risks(
        hoped_for=(
            HopedFor("training", "H100", 0.0, 5840.0, 0.0, 1642.5, 0.0),
            HopedFor("inference", "H100", 1460.0, 0.0, 0.0, 0.0, 0.0),
        ),
        backtests=Backtests(
            (BacktestPool("aws H100", 50, 50, 1010.0, 1000.0, 1200.0, "mean", 1100.0, 1, 1, 0, 8,
                          1.4, 2.0),),
            (BacktestPolicy("loadfactor", 1010.0, 0.01), BacktestPolicy("mean", 1100.0, 0.1),
             BacktestPolicy("all_on_demand", 1200.0, 0.2),
             BacktestPolicy("foresight", 1000.0, 0.0)),
        ),
        held_before=(
            HeldBefore("cud-7", "a3-highgpu-8g in us-central1", True, 8.0, 0.7, 0.5, 0.5, 1, 1),
            HeldBefore("Reserve 1 p5.48xlarge for a year", "", False, 8.0, 0.7, 0.95, 0.95, 1, 0),
        ),
        loses_if=LosesIf(money("9676.4"), money("8176"), 0.82, 0.8449, 10.1),
    )  # fmt: skip


def option(**values: object) -> PlanOption:
    """A reservation of a year at 1.40 beside 2.00 on demand: 8 x 1.40 x 730 = 8,176 a month."""
    standing = PlanOption(
        kind="reserved",
        cloud="aws",
        region="us-east-1",
        name="p5.48xlarge",
        term="reserved_1y/monthly",
        count=1.0,
        usd_per_gpu_hour=1.4,
        hourly_usd_per_gpu_hour=2.0,
        break_even_share=0.7,
        expected_share=0.95,
        needed_gpus=10.5,
        owned_gpus=0.0,
        binding="demand",
        why="Training needs it in 95% of hours.",
        costs_per_month=money("8176"),
    )
    return dataclasses.replace(standing, **values)  # type: ignore[arg-type]  # any field


def reasons() -> Reasons:
    """One line to buy, two that are not, a limit of each kind, and a change since last night."""
    unused = {"count": 0.0, "expected_share": None, "binding": None}
    return Reasons(
        options=(
            option(
                saves_per_month=money("9676.4"),
                alternative="buy these hours on demand or as spot, and cost $1,500 more a month",
                alternative_per_month=money("1500.4"),
            ),
            option(
                **unused, region="us-west-2", saves_per_month=money("7000"),
                why="the first saves $7,000 a month and costs $8,176",
            ),
            option(
                count=0.0, binding=None, expected_share=0.9, kind="spot", cloud="gcp",
                region="us-west1", name="a3-highgpu-8g",
                term="useful 0.9000", why="training runs on what is committed in every hour",
                costs_per_month=None,
            ),
        ),
        limits=(
            PlanLimit("quota", "aws", "us-east-1", "p5.48xlarge", money("840.5")),
            PlanLimit("upfront_budget", "", "", "$1,000", money("14.6")),
        ),
        since=SinceLastNight(
            date="2026-11-29",
            tolerance=0.001,
            unchanged=1,
            changes=(
                LineChange("aws savings plan, 1 year", "$2.00 an hour", "none",
                           "price: on demand went from $2.2000 to $2.0000 a GPU-hour"),
            ),
        ),
    )  # fmt: skip


def change(**values: object) -> Change:
    standing = Change(
        pool="aws:train-a",
        kind="aws_asg",
        cloud="aws",
        account="111122223333",
        region="us-east-1",
        name="train-a",
        unit="nodes",
        field="max",
        current=10,
        proposed=6,
        why="Six nodes serve the 99th percentile of need.",
        saving_per_month=money("1200"),
        currency="USD",
    )
    return dataclasses.replace(standing, **values)  # type: ignore[arg-type]  # any field


def plan(**of_summary: object) -> Plan:
    return Plan(
        date="2026-11-30",
        data_as_of=AS_OF,
        valid_until=VALID,
        inputs=("0a1b", "2c3d"),
        changes=(change(), change(field="min", current=2, proposed=2, saving_per_month=money("0"))),
        summary=dataclasses.replace(summary(), **of_summary),  # type: ignore[arg-type]
        made_by="loadfactor 0.1.0",
    )


def tables(recommendations: list[dict[str, object]] | None = None) -> Tables:
    listed = [RELEASE, BUY, FILL] if recommendations is None else recommendations
    commitments = {
        "id": ["cud-7"], "cloud": ["gcp"], "account": ["proj-a"], "kind": ["reserved"],
        "instance_type": ["a3-highgpu-8g"], "region": ["us-central1"], "count": [1.0],
        "usd_per_hour": [money("40.5")], "payment": ["monthly"],
        "start": ["2026-03-01T00:00:00Z"], "end": ["2027-03-01T00:00:00Z"], "used_share": [0.5],
        "unused_cost_per_month": [money("14782.5")], "action": ["keep"], "why": ["It runs on."],
    }  # fmt: skip
    limits = {
        "pool": ["aws:train-a"], "kind": ["aws_asg"], "unit": ["nodes"], "cloud": ["aws"],
        "account": ["111122223333"], "region": ["us-east-1"], "name": ["train-a"],
        "min_now": [2.0], "max_now": [10.0], "min_proposed": [2.0], "max_proposed": [6.0],
        "why": ["Six nodes serve the 99th percentile of need."],
    }  # fmt: skip
    idle = {
        "cloud": ["aws", "gcp", "aws"], "account": ["111122223333", "proj-a", "111122223333"],
        "region": ["us-east-1", "us-central1", "us-east-1"],
        "instance_id": ["i-0a", "commitment:cud-7", "i-0b"],
        "gpu_model": ["H100-SXM5-80GB"] * 3,
        "workload_class": ["interactive", "training", "inference"],
        "state": ["idle_held", "free", "unknown"],
        "reason": [None, "unused_commitment", "no_reading"],
        "gpu_hours": [money("250"), money("150"), money("100")],
        "cost": [money("500"), money("300"), money("200")], "currency": ["USD"] * 3,
        "stoppable_cost": [money("400"), money("0"), money("0")],
        "committed_until": [None, "2027-03-01", None],
        "since": ["2026-11-29T18:00:00Z", None, None],
        "action": ["stop it", "fill it with work", "add telemetry"],
    }  # fmt: skip
    quality = {
        "check": ["late_tail", "unknown_type"], "scope": ["gcp proj-a", "aws p9.48xlarge"],
        "severity": ["info", "warning"], "count": [72, 3], "amount": [None, money("12.34")],
        "currency": [None, "USD"],
        "detail": ["The last 72 hours are missing.", "Looks like an H100, and has no shape."],
    }  # fmt: skip
    return Tables(
        recommendations=conform(pd.DataFrame(listed, columns=RECOMMENDATIONS.names),
                                RECOMMENDATIONS),
        commitments=conform(pd.DataFrame(commitments), COMMITMENTS_OUT),
        limits=conform(pd.DataFrame(limits), LIMITS),
        idle=conform(pd.DataFrame(idle), IDLE),
        quality=conform(pd.DataFrame(quality), QUALITY),
    )  # fmt: skip
