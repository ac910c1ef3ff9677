"""What is assured and what is hoped for, on dispatches small enough to add up by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from data.risks import HopedFor
from planner.on_demand_risk import hoped_for
from planner.optimise.shortages import Shortage
from planner.risks import owned_kinds
from planner.summary import mix_rows
from planner.supply import Owned, Supply
from tests import bills, problems
from tests.planner.test_waterfall import ON_DEMAND, work_out

if TYPE_CHECKING:
    from planner.waterfall import Solved

A, G = "aws/us/p5", "gcp/eu/a3"
OFFERS = [
    problems.offer(A),
    problems.offer(f"{A}~owned", on_demand=None),
    problems.offer(f"{A}~spot@0.8000", on_demand=None, spot=1.0, spot_throughput=0.8),
    problems.offer(G, provider="gcp"),
]


def solved(rows: list[tuple[str, str, str, float]]) -> Solved:
    """A plan whose dispatch is `rows`: class, offer, kind, GPU-hours a month."""
    plan = work_out(bills.fleet(bills.node_hours("i", range(24))), bills.offers(ON_DEMAND)).plan
    asked = problems.problem([problems.firm("t|H100", [A])], OFFERS, {"t|H100": [1.0]})
    used = pd.DataFrame(rows, columns=["class", "offer", "kind", "gpu_hours"])
    return replace(plan, problem=asked, used=used)


def owned(name: str, gpus: float, until: int) -> Owned:
    return Owned(name, A, gpus, until, 100.0, 100.0)


def test_only_what_is_held_is_assured_and_spot_counts_its_useful_hours() -> None:
    plan = solved(
        [
            ("t|H100~0", A, "reserved", 100.0),  # of AWS: a discount
            ("t|H100~1", G, "reserved", 40.0),  # of Google Cloud: held
            ("t|H100~0", A, "savings_plan", 20.0),
            ("t|H100~0", A, "on_demand", 10.0),
            ("t|H100~0", f"{A}~spot@0.8000", "spot", 50.0),  # 50 x 0.8 = 40 useful
        ]
    )
    rows = hoped_for(plan, Supply({}, ()), {})
    assert rows == (HopedFor("t", "H100", 40.0, 120.0, 10.0, 40.0, 0.0),)
    assert rows[0].needed == 210.0
    assert [rows[0].lost(share) for share in (0.05, 0.2, 0.5)] == pytest.approx([6.5, 26.0, 65.0])


def test_owned_hours_are_assured_in_the_share_of_what_holds_machines() -> None:
    """8 owned GPUs for all year, 8 GPUs of a savings plan for half of it: two thirds are held."""
    plan = solved([("t|H100", f"{A}~owned", "reserved", 90.0)])
    supply = Supply({}, (owned("rack", 8.0, 100), owned("sp", 8.0, 50)))
    kinds = {"rack": "owned", "sp": "savings_plan"}
    assert hoped_for(plan, supply, kinds) == (HopedFor("t", "H100", 60.0, 30.0, 0.0, 0.0, 0.0),)


def test_owned_hours_of_a_savings_plan_are_told_apart_in_the_mix() -> None:
    """16 GPUs of a reservation all year, 8 of a plan for half of it: 4 of 20 are the plan's.

    100 hours: 80 at 1,460 / (16 x 730) = 0.125, and 20 at 2,920 / (8 x 730) = 0.50 USD.
    """
    plan = solved([("t|H100", f"{A}~owned", "reserved", 100.0)])
    whole = plan.problem.hours
    supply = Supply(
        {A: SimpleNamespace(id=A)},  # type: ignore[dict-item]  # no price of it is asked for
        (Owned("ri", A, 16.0, whole, 1.0, 1460.0), Owned("sp", A, 8.0, whole / 2, 1.0, 2920.0)),
    )
    rows = mix_rows(plan, supply, {"ri": "reserved", "sp": "savings_plan"})
    assert [(row.purchase_option, row.gpu_hours_per_month, row.cost_per_month) for row in rows] == [
        ("reserved", 80.0, Decimal("10.00")),
        ("savings_plan", 20.0, Decimal("10.00")),
    ]


def test_hours_that_no_offer_serves_are_told_in_gpu_hours_a_month() -> None:
    """5 modelled GPU-hours of one hour that stands for a year: 5 x 8,760 / 12 a month."""
    plan = solved([])
    plan = replace(
        plan,
        problem=replace(plan.problem, hour_weight=8760.0),
        short=(Shortage("t|H100", 1, 0, 0, 5.0, 5.0, "none"),),
    )
    assert hoped_for(plan, Supply({}, ()), {})[0].unserved == 3650.0


def test_the_table_of_commitments_outranks_the_bill() -> None:
    bill = bills.fleet(
        bills.node_hours("i", range(1), purchase_option="reserved", commitment_id="cb-1"),
        bills.node_hours("j", range(1), purchase_option="savings_plan", commitment_id="sp-1"),
    )
    table = bills.commitments({"id": "cb-1", "kind": "capacity_block",
                               "start": bills.START, "end": bills.window(9).end})  # fmt: skip
    assert owned_kinds(table, bill) == {"cb-1": "capacity_block", "sp-1": "savings_plan"}
