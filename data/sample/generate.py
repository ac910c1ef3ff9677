"""Makes the bundled fleet: `generate(folder)` writes every file of it, the same bytes each time."""

from __future__ import annotations

import shutil
from pathlib import Path

from data.sample import aws, azure, gcp, machines, telemetry, writing
from data.sample.activity import DAYS, HOURS, activities, hour_start
from data.sample.charges import reserved_rate
from data.sample.truth import truth
from data.sample.writing import number

FLEET = Path(__file__).parent / "fleet"
# The files that are written by hand; a fleet made elsewhere gets copies of them.
BY_HAND = ("loadfactor.toml", "README.md")

_MADE = "made for the bundled fleet: a share of the list price, not a quoted rate"


def generate(folder: Path, days: int = DAYS) -> None:
    """Writes the last `days` days of the made fleet into the folder; ValueError beyond its 60.

    A shorter fleet is the tail of the longer one: the same machines doing the same things.
    """
    if not 1 <= days <= DAYS:
        raise ValueError(f"days is {days}, and must be 1 to {DAYS}")
    hours = range(HOURS - days * 24, HOURS)
    lives = activities()
    folder.mkdir(parents=True, exist_ok=True)
    aws.write(folder / "aws", lives, hours)
    gcp.write(folder / "gcp", lives, hours)
    azure.write(folder / "azure", lives, hours)
    telemetry.write(folder / "utilization", lives, hours)
    writing.plain(folder / "commitments.csv", _commitments())
    writing.plain(folder / "overrides.csv", _overrides())
    writing.document(folder / "truth.json", truth(lives, hours))
    for name in BY_HAND:
        if folder.resolve() != FLEET.resolve():
            shutil.copyfile(FLEET / name, folder / name)


def _commitments() -> str:
    columns = (
        "id", "cloud", "account", "kind", "instance_type", "family", "region", "count",
        "usd_per_hour", "start", "end", "payment", "usd_per_instance_hour",
    )  # fmt: skip
    plan = {
        "id": machines.SAVINGS_PLAN_ID,
        "cloud": "aws",
        "account": machines.AWS_RESEARCH,
        "kind": "savings_plan",
        "family": "p5",
        "region": "us-east-1",
        "usd_per_hour": number(machines.SAVINGS_PLAN_USD_PER_HOUR),
        "start": "2026-03-01T00:00:00Z",
        "end": "2027-03-01T00:00:00Z",
        "payment": "no_upfront",
    }
    reservation = {
        "id": machines.RESERVATION_ID,
        "cloud": "azure",
        "account": machines.AZURE_SUBSCRIPTION,
        "kind": "reserved",
        "instance_type": "Standard_ND96isr_H100_v5",
        "region": "eastus",
        "count": str(machines.RESERVED_NODES),
        "start": "2026-06-15T00:00:00Z",
        "end": "2027-06-15T00:00:00Z",
        "payment": "monthly",
        "usd_per_instance_hour": number(reserved_rate()),
    }
    return writing.table(columns, [plan, reservation])


def _overrides() -> str:
    """One-year rates of AWS and Azure, made: the price book has none."""
    reserved = machines.RESERVED_1Y_SHARE
    rates = (
        ("aws", "us-east-1", "p5.48xlarge", "reserved_1y", reserved["aws"]),
        ("aws", "us-east-1", "p5.48xlarge", "savings_plan_1y", machines.SAVINGS_PLAN_1Y_SHARE),
        ("aws", "us-east-2", "p5.4xlarge", "savings_plan_1y", machines.SAVINGS_PLAN_1Y_SHARE),
        ("azure", "eastus", "Standard_ND96isr_H100_v5", "reserved_1y", reserved["azure"]),
        ("azure", "eastus", "Standard_NC40ads_H100_v5", "reserved_1y", reserved["azure"]),
    )
    rows = []
    for cloud, region, instance_type, option, share in rates:
        listed = machines.price(cloud, region, instance_type, "on_demand")
        row = dict(listed.row)
        row["purchase_option"] = option
        row["payment_option"] = "monthly"
        row["usd_per_instance_hour"] = number(listed.usd_per_instance_hour * share)
        row["source"] = f"{_MADE} ({number(share)} of {number(listed.usd_per_instance_hour)})"
        row["as_of"] = f"{hour_start(0):%Y-%m-%d}"
        rows.append(row)
    return writing.table(rows[0], rows)


if __name__ == "__main__":
    generate(FLEET)
