"""The machines of the made fleet: 100 H100s on three clouds, who owns them, how they are bought."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

AWS_PAYER = "111122223333"
AWS_RESEARCH = "222233334444"
AWS_APPS = "444455556666"
GCP_BILLING_ACCOUNT = "01A2B3-C4D5E6-F70819"
AZURE_BILLING_ACCOUNT = "80123456"
AZURE_SUBSCRIPTION = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
GCP_PROJECT_NUMBERS = {
    "example-ml-batch": "410000000001",
    "example-ml-serving": "410000000002",
    "example-ml-eval": "410000000003",
}

SAVINGS_PLAN_ID = (
    f"arn:aws:savingsplans::{AWS_RESEARCH}:savingsplan/5d0c1e6a-7b3f-4c52-9a41-6f2f0f4b1a01"
)
RESERVATION_ID = (
    "/providers/microsoft.capacity/reservationorders/0a6d1c38-52f4-4a0e-8b55-0d7f7a3c9e10"
    "/reservations/7c1f9d52-2b1e-4c0a-9f3d-5e8b6a4d2f11"
)
RESERVED_NODES = 2
# Dollars an hour that the savings plan commits: a little over two nodes at the plan's rate.
SAVINGS_PLAN_USD_PER_HOUR = Decimal("75")

# Made for the bundled fleet: shares of the list price, since no public snapshot of AWS and Azure
# commitment rates is in the price book. They go into overrides.csv, labelled as made.
RESERVED_1Y_SHARE = {"aws": Decimal("0.62"), "azure": Decimal("0.64")}
SAVINGS_PLAN_1Y_SHARE = Decimal("0.64")

_BOOK = Path(__file__).parents[1] / "catalogue" / "price_book.csv"


@dataclass(frozen=True, slots=True)
class Machine:
    """One GPU machine of the made fleet, with the tags its owner gave it."""

    name: str
    cloud: str
    account: str
    region: str
    zone: str
    instance_type: str
    gpus: int
    workload_class: str
    team: str
    env: str
    owner: str
    option: str = "on_demand"

    @property
    def resource_id(self) -> str:
        """The id that the bill gives the machine."""
        if self.cloud == "aws":
            return f"i-0{digest(self.name)[:16]}"
        if self.cloud == "gcp":
            number = GCP_PROJECT_NUMBERS[self.account]
            instance = int(digest(self.name)[:14], 16) + 10**18
            place = f"projects/{number}/zones/{self.zone}"
            return f"//compute.googleapis.com/{place}/instances/{instance}"
        return (
            f"/subscriptions/{AZURE_SUBSCRIPTION}/resourcegroups/rg-{self.team}"
            f"/providers/microsoft.compute/virtualmachines/{self.name}"
        )

    @property
    def instance_id(self) -> str:
        """The last segment of the bill's id, unique in the fleet."""
        return self.resource_id.rsplit("/", 1)[-1]

    def gpu_uuid(self, index: int) -> str:
        """The made identity of one of its GPUs."""
        made = digest(f"{self.name} gpu {index}")
        parts = (made[:8], made[8:12], made[12:16], made[16:20], made[20:32])
        return "GPU-" + "-".join(parts)


@dataclass(frozen=True, slots=True)
class Price:
    """A price of the book: dollars per instance-hour, and the shape it is for."""

    usd_per_instance_hour: Decimal
    row: dict[str, str]


def digest(text: str) -> str:
    """Forty hex digits that only the text decides."""
    return hashlib.sha256(f"loadfactor made fleet: {text}".encode()).hexdigest()[:40]


@cache
def price(cloud: str, region: str, instance_type: str, option: str) -> Price:
    """The newest price of the bundled book for one type and option; KeyError if it has none."""
    wanted = (cloud, region, instance_type, option)
    with _BOOK.open(newline="", encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["provider"], row["region"], row["instance_type"], row["purchase_option"])
            == wanted
        ]
    if not rows:
        raise KeyError(wanted)
    newest = max(rows, key=lambda row: row["as_of"])
    return Price(Decimal(newest["usd_per_instance_hour"]), newest)


def list_price(machine: Machine) -> Decimal:
    """The on-demand list price of the machine, dollars per instance-hour."""
    return price(
        machine.cloud, machine.region, machine.instance_type, "on_demand"
    ).usd_per_instance_hour


def spot_price(machine: Machine) -> Decimal:
    """The spot price of the machine, dollars per instance-hour."""
    return price(machine.cloud, machine.region, machine.instance_type, "spot").usd_per_instance_hour


def fleet() -> tuple[Machine, ...]:
    """Every machine of the made fleet, in a fixed order.

    >>> sum(machine.gpus for machine in fleet())
    100
    """
    return (*_aws(), *_gcp(), *_azure())


def _aws() -> list[Machine]:
    def node(name: str, owner: str, option: str) -> Machine:
        return Machine(
            name, "aws", AWS_RESEARCH, "us-east-1", "us-east-1d", "p5.48xlarge", 8,
            "training", "research", "prod", owner, option,
        )  # fmt: skip

    def notebook(number: int, owner: str) -> Machine:
        return Machine(
            f"notebook-{number}", "aws", AWS_APPS, "us-east-2", "us-east-2a", "p5.4xlarge", 1,
            "interactive", "applied", "dev", owner,
        )  # fmt: skip

    nodes = [node(f"train-{k}", "mira", "savings_plan") for k in range(3)]
    nodes.append(node("train-vision-2", "jonas", "on_demand"))
    nodes.append(node("train-spot", "mira", "spot"))
    owners = ("ada", "bo", "chen", "dora", "eli", "fay", "gus", "hana")
    return nodes + [notebook(k, owner) for k, owner in enumerate(owners)]


def _gcp() -> list[Machine]:
    def node(name: str, project: str, workload: tuple[str, str], option: str) -> Machine:
        workload_class, team = workload
        return Machine(
            name, "gcp", project, "us-central1", "us-central1-a", "a3-highgpu-8g", 8,
            workload_class, team, "prod", "platform", option,
        )  # fmt: skip

    return [
        node("batch-0", "example-ml-batch", ("batch", "data"), "on_demand"),
        node("batch-spot", "example-ml-batch", ("batch", "data"), "spot"),
        node("serve-0", "example-ml-serving", ("inference", "serving"), "on_demand"),
        node("eval-0", "example-ml-eval", ("evaluation", "research"), "on_demand"),
    ]


def _azure() -> list[Machine]:
    def serving(number: int) -> Machine:
        return Machine(
            f"nd-serve-{number}", "azure", AZURE_SUBSCRIPTION, "eastus", "",
            "Standard_ND96isr_H100_v5", 8, "inference", "serving", "prod", "platform", "reserved",
        )  # fmt: skip

    def workstation(number: int, owner: str) -> Machine:
        return Machine(
            f"nc-desk-{number}", "azure", AZURE_SUBSCRIPTION, "eastus", "",
            "Standard_NC40ads_H100_v5", 1, "interactive", "applied", "dev", owner,
        )  # fmt: skip

    desks = [workstation(k, owner) for k, owner in enumerate(("ivo", "jun", "kai", "lea"))]
    return [serving(0), serving(1), *desks]
