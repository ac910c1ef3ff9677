"""From export files to hours: fees that the clouds bill apart, and the invoices of both."""

from __future__ import annotations

from datetime import date
from decimal import Decimal as D
from typing import TYPE_CHECKING

from data import money
from planner.nightly import open_session
from planner.session import findings, observe
from providers.files.loading import load
from tests.exports import csv_file, json_lines
from tests.providers.gcp_cases import CUD, ON_DEMAND, charge, credit
from tests.providers.test_aws_billing import BASE, BLOCK, BLOCK_FEE

if TYPE_CHECKING:
    from pathlib import Path

TOML = '[inputs]\ncommitments = "owned.csv"\ninvoices = "invoices.csv"\n'
OWNED = (
    "id,cloud,account,kind,instance_type,region,count,start,end\n"
    "cr-1,aws,000033334444,capacity_block,p5.48xlarge,us-east-1,1,"
    "2026-09-02T11:30:00Z,2026-09-03T11:30:00Z\n"
)
INVOICES = (
    "cloud,account,billing_period,amount,currency\n"
    "aws,000011112222,2026-09,4800,USD\ngcp,,2026-09,120,USD\n"
)


def hour(kind: str, at: int, **more: str) -> dict[str, str]:
    """A row of the CUR within an hour of the day."""
    times = {
        "bill_billing_period_start_date": "2026-09-01T00:00:00Z",
        "line_item_usage_start_date": f"2026-09-02T{at:02}:00:00Z",
        "line_item_usage_end_date": f"2026-09-02T{at + 1:02}:00:00Z",
    }
    in_block = {
        "capacity_reservation_capacity_reservation_arn": BLOCK if kind == "run" else "",
        "capacity_reservation_capacity_reservation_type": (
            "EC2 Capacity Block for ML" if kind == "run" else ""
        ),
    }
    free = {"line_item_unblended_cost": "0"} if kind == "run" else BLOCK_FEE
    return {**BASE, **free, **times, **in_block, **more}


def test_a_block_and_a_google_commitment_bear_their_fees_and_the_months_add_up(
    tmp_path: Path,
) -> None:
    # The block: fee 5000 less a refund of 200, a node for 24 hours: 200 an hour. It runs from 12 to
    # 22 = 10 hours, at which the bill ends; the half hour before stands unused.
    refund = {"line_item_line_item_type": "Refund", "line_item_unblended_cost": "-200"}
    rows = [hour("fee", 0), hour("fee", 0, **refund), *(hour("run", at) for at in range(12, 22))]
    aws = csv_file(tmp_path / "cur.csv", rows)
    # Google: 16 GPU-hours committed at 4.00; half of a machine's 8 are covered: 16 of the 64 are
    # its own, 48 unused, and 40 are paid on demand for the other half. The 16 of its cores, that no
    # commitment covers, go half and half with the GPUs. In all 120.
    fee = "Commitment v1: Nvidia H100 80GB GPU running in Iowa for 1 Year"
    sixteen = {"amount": 57600, "unit": "seconds", "amount_in_pricing_units": 16,
               "pricing_unit": "hour"}  # fmt: skip
    nobody = {"resource": None, "system_labels": [], "usage": sixteen, "project": {"id": "bills"}}
    gcp = json_lines(
        tmp_path / "export.jsonl",
        [
            charge(fee, "64", **nobody, subscription={"instance_id": "c-9"}),
            charge(ON_DEMAND, "80", credits=[credit("-40", CUD)]),
            charge("A3 Instance Core running in Americas", "16"),
        ],
    )
    (tmp_path / "loadfactor.toml").write_text(TOML)
    (tmp_path / "owned.csv").write_text(OWNED)
    (tmp_path / "invoices.csv").write_text(INVOICES)
    session = open_session(tmp_path / "loadfactor.toml", tmp_path / "store", date(2026, 9, 3))
    loaded = load([aws, gcp], session.store)
    assert [one.warnings for one in loaded] == [(), ()]
    seen = observe(session)
    costs = seen.fleet.hours.groupby(["instance_id", "purchase_option"])["cost"].agg(money.total)
    assert {key: cost.quantize(D("1e-6")) for key, cost in costs.items()} == {
        ("i-1", "capacity_block"): 2000,
        ("commitment:cr-1", "capacity_block"): 100,
        (charge("", "")["resource"]["global_name"], "reserved"): 24,
        (charge("", "")["resource"]["global_name"], "on_demand"): 48,
        ("commitment:c-9", "reserved"): 48,
    }
    table = findings(session, seen).set_index(["check", "scope"])
    invoice = table.loc["adds_up_invoice"]
    assert invoice["severity"].tolist() == ["info", "info"]
    assert invoice["amount"].tolist() == [0, 0]  # 5000 - 200, and 64 + 80 - 40 + 16
    assert not {"capacity_block_not_spread", "commitment_fee_not_spread"} & set(
        table.index.get_level_values("check")
    )
    session.store.close()
