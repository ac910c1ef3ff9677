"""What every machine-hour of the made fleet costs, and what its commitments leave unused."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

from data.sample import machines, writing
from data.sample.machines import list_price, spot_price

if TYPE_CHECKING:
    from collections.abc import Iterable

    from data.sample.activity import Activity
    from data.sample.machines import Machine

_SKU_PLACES = Decimal(1).scaleb(-6)


@dataclass(frozen=True, slots=True)
class Sku:
    """A part of a Google VM that is billed on its own row: units in one VM, dollars a unit-hour."""

    part: str
    units: int
    usd: Decimal


# The machine type's 208 vCPU, 1,872 GiB of memory and 6,000 GiB of SSD. The GPU's on-demand rate
# is public (9.79655 in us-central1, read 2026-07-30); the other rates are made so that each VM
# adds up to its price in the book: 8 x 9.79655 + 208 x 0.025447 + 1872 x 0.002226
# + 6000 x 0.000109592 = 78.3724 + 5.292976 + 4.167072 + 0.657552 = 88.49, and for spot
# 8 x 5.619087625 + 208 x 0.0145 + 1872 x 0.00127 + 6000 x 0.0000439
# = 44.952701 + 3.016 + 2.37744 + 0.2634 = 50.609541.
A3_SKUS = {
    "on_demand": (
        Sku("gpu", 8, Decimal("9.79655")),
        Sku("core", 208, Decimal("0.025447")),
        Sku("ram", 1872, Decimal("0.002226")),
        Sku("ssd", 6000, Decimal("0.000109592")),
    ),
    "spot": (
        Sku("gpu", 8, Decimal("5.619087625")),
        Sku("core", 208, Decimal("0.0145")),
        Sku("ram", 1872, Decimal("0.00127")),
        Sku("ssd", 6000, Decimal("0.0000439")),
    ),
}


@dataclass(frozen=True, slots=True)
class Charge:
    """A machine-hour, or the part of one that was bought one way; dollars."""

    machine: Machine
    hour: int
    option: str
    instance_hours: Decimal
    effective_cost: Decimal
    list_cost: Decimal

    @property
    def gpu_hours(self) -> Decimal:
        """GPU-hours of the charge."""
        return self.instance_hours * self.machine.gpus


def charges(activities: Iterable[Activity], hours: range) -> list[Charge]:
    """Every charge for a machine in the hours, hour by hour, in the order of the fleet."""
    lives = list(activities)
    found: list[Charge] = []
    for hour in hours:
        left = machines.SAVINGS_PLAN_USD_PER_HOUR
        for life in lives:
            if not life.seconds[hour]:
                continue
            amount = writing.hours(life.seconds[hour])
            if life.machine.cloud == "aws" and life.machine.option != "spot":
                parts = _under_plan(life.machine, hour, amount, left)
                left -= sum(part.effective_cost for part in parts if part.option == "savings_plan")
                found += parts
            else:
                found.append(_charge(life.machine, hour, life.seconds[hour]))
    return found


def plan_rate() -> Decimal:
    """What an hour of a p5.48xlarge takes from the savings plan, dollars; made."""
    listed = machines.price("aws", "us-east-1", "p5.48xlarge", "on_demand")
    return listed.usd_per_instance_hour * machines.SAVINGS_PLAN_1Y_SHARE


def reserved_rate() -> Decimal:
    """What an hour of a reserved Azure node costs, used or not, dollars; made."""
    listed = machines.price("azure", "eastus", "Standard_ND96isr_H100_v5", "on_demand")
    return listed.usd_per_instance_hour * machines.RESERVED_1Y_SHARE["azure"]


def unused_plan(found: Iterable[Charge], hours: range) -> dict[int, Decimal]:
    """Dollars of the savings plan's commitment that nothing used, by hour."""
    left = dict.fromkeys(hours, machines.SAVINGS_PLAN_USD_PER_HOUR)
    for charge in found:
        if charge.option == "savings_plan":
            left[charge.hour] -= charge.effective_cost
    return left


def unused_reservation(found: Iterable[Charge], hours: range) -> dict[int, Decimal]:
    """Instance-hours of the Azure reservation that nothing used, by day of the fleet's life."""
    days = sorted({hour // 24 for hour in hours})
    left = dict.fromkeys(days, Decimal(24 * machines.RESERVED_NODES))
    for charge in found:
        if charge.option == "reserved":
            left[charge.hour // 24] -= charge.instance_hours
    return left


def sku_cost(sku: Sku, seconds: int) -> Decimal:
    """Dollars of one SKU row of a Google VM, at the six places its rows are written with."""
    exact = sku.units * sku.usd * seconds / writing.HOUR_SECONDS
    return exact.quantize(_SKU_PLACES, ROUND_HALF_EVEN)


def _under_plan(machine: Machine, hour: int, amount: Decimal, left: Decimal) -> list[Charge]:
    """An AWS machine-hour, split into what the plan still covers and what is on demand."""
    listed = list_price(machine)
    if (machine.region, machine.instance_type) != ("us-east-1", "p5.48xlarge") or left <= 0:
        cost = writing.ten_places(listed * amount)
        return [Charge(machine, hour, "on_demand", amount, cost, cost)]
    rate = plan_rate()
    if rate * amount <= left:
        cost = writing.ten_places(rate * amount)
        full = writing.ten_places(listed * amount)
        return [Charge(machine, hour, "savings_plan", amount, cost, full)]
    covered = writing.ten_places(left / rate)
    rest = amount - covered
    on_demand = writing.ten_places(listed * rest)
    return [
        Charge(machine, hour, "savings_plan", covered, left, writing.ten_places(listed * covered)),
        Charge(machine, hour, "on_demand", rest, on_demand, on_demand),
    ]


def _charge(machine: Machine, hour: int, seconds: int) -> Charge:
    amount = writing.hours(seconds)
    full = writing.ten_places(list_price(machine) * amount)
    if machine.cloud == "gcp":
        cost = sum((sku_cost(sku, seconds) for sku in A3_SKUS[machine.option]), Decimal(0))
        full = sum((sku_cost(sku, seconds) for sku in A3_SKUS["on_demand"]), Decimal(0))
    elif machine.option == "spot":
        cost = writing.ten_places(spot_price(machine) * amount)
    elif machine.option == "reserved":
        cost = writing.ten_places(reserved_rate() * amount)
    else:
        cost = full
    return Charge(machine, hour, machine.option, amount, cost, full)
