"""Recommendations: what to release, shrink, move and buy, each dollar counted once.

The rows share out the steps of the waterfall to the cent, so they add up to the report's total.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from data.frames import conform, empty, records
from data.hours import HOUR
from data.money import HOURS_PER_MONTH
from data.names import short_name
from data.schema import COMMITTED_OPTIONS, RECOMMENDATIONS
from planner.assemble import owned_offer_id
from planner.cancelled import EMPTY_RESERVATION, cancel_rows
from planner.class_shares import class_shares
from planner.moved import moved
from planner.on_demand_risk import assured_share
from planner.purchases import Purchase, purchases
from planner.smeared import smeared_shares, with_confidence
from planner.waterfall import Waterfall, with_needed_cost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from planner.supply import Supply

CENT = Decimal("0.01")
_SMALLEST = 0.005


@dataclass(frozen=True, slots=True)
class Advice:
    """What all rows share: the window's length, the supply, the age of the data, the currency.

    `kinds` are the kinds of owned commitments by id.
    """

    window_hours: int
    supply: Supply
    currency: str
    data_as_of: datetime
    valid_until: datetime
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def month(self) -> float:
        """Months that the window stands for, inverted: window sums times this are a month."""
        return HOURS_PER_MONTH / self.window_hours


def recommend(bill: pd.DataFrame, waterfall: Waterfall, advice: Advice) -> pd.DataFrame:
    """Frame of RECOMMENDATIONS, most dollars first."""
    steps = waterfall.steps
    rows = [
        *_shared([*_release(bill, advice), *cancel_rows(bill, advice)], steps.release),
        *_shared(_rightsize(bill, advice), steps.rightsize),
        *_shared(_by_class("use_idle_commitment", waterfall, advice), steps.use_idle),
        *_shared(_by_class("move_to_spot", waterfall, advice), steps.spot),
        *_shared(_by_class("move_region", waterfall, advice), steps.move),
        *_shared(_buy(waterfall, advice), steps.buy),
    ]
    if not rows:
        return empty(RECOMMENDATIONS)
    rows = with_confidence(rows, smeared_shares(bill))
    for row in rows:
        row["id"] = advice_id(row)
        row["currency"] = advice.currency
        row["data_as_of"], row["valid_until"] = advice.data_as_of, advice.valid_until
    rows.sort(key=lambda row: (-row["saving_per_month"], row["kind"], row["id"]))
    for rank, row in enumerate(rows, start=1):
        row["rank"] = rank
    return conform(pd.DataFrame(rows), RECOMMENDATIONS)


def advice_id(row: dict[str, Any]) -> str:
    """A name that stays the same from night to night for the same advice.

    >>> row = {"kind": "release_idle", "cloud": "aws", "resource": "i-1"}
    >>> advice_id(row) == advice_id({**row, "saving_per_month": 7})
    True
    """
    parts = [row["kind"], row["cloud"]]
    parts += [row.get(name) for name in ("account", "region", "resource", "workload_class")]
    words = "|".join("" if part is None else str(part) for part in parts)
    return f"{row['kind']}-{hashlib.sha256(words.encode()).hexdigest()[:10]}"


def to_cents(amount: float) -> Decimal:
    """The amount in cents, by way of its text."""
    return Decimal(repr(float(amount))).quantize(CENT)


def share_out(total: float, weights: Sequence[float]) -> list[Decimal]:
    """The total in cents, divided by the weights; the parts add up to it exactly.

    >>> share_out(100.0, [1, 1, 1])
    [Decimal('33.34'), Decimal('33.33'), Decimal('33.33')]
    """
    whole, weight = to_cents(total), sum(weights)
    parts = [to_cents(total * one / weight) for one in weights]
    largest = max(range(len(parts)), key=lambda i: (weights[i], -i))
    parts[largest] += whole - sum(parts)
    return parts


def _shared(rows: list[dict[str, Any]], total: float) -> list[dict[str, Any]]:
    """Rows whose `weight` shares out a step's total; rows of less than a cent are left out."""
    rows = [row for row in rows if row["weight"] > 0]
    if not rows or abs(total) < _SMALLEST:
        return []
    if total < 0:
        rows = [{**row, "kind": _OPPOSITE.get(row["kind"], row["kind"])} for row in rows]
    parts = share_out(total, [row["weight"] for row in rows])
    shared = []
    for row, part in zip(rows, parts, strict=True):
        now = row.pop("now", None)
        del row["weight"]
        row["saving_per_month"] = part
        row["cash_saving_per_month"] = part if row.pop("cash", True) else Decimal(0)
        if now is not None:
            row["cost_per_month_now"] = to_cents(now)
            row["cost_per_month_after"] = to_cents(now) - part
        if part != 0:
            shared.append(row)
    return shared


_OPPOSITE = {"move_to_spot": "move_to_on_demand"}


def _release(bill: pd.DataFrame, advice: Advice) -> list[dict[str, Any]]:
    hourly = bill[~bill["purchase_option"].isin(COMMITTED_OPTIONS)]
    by_machine = dict(iter(hourly.groupby(["cloud", "instance_id"], sort=False)))
    at_work = bill[bill["state"] == "busy"].groupby(["cloud", "instance_id"])["hour_start"].max()
    rows = []
    by = ["cloud", "account", "region", "instance_id", "instance_type", "gpu_count"]
    machines = hourly[hourly["stoppable"] & ~hourly["reason"].isin((EMPTY_RESERVATION,))]
    for key, idle in machines.groupby(by, dropna=False, sort=True):
        cloud, account, region, instance, instance_type, gpus = key
        whole = by_machine[str(cloud), str(instance)]
        hours, billed = float(idle["gpu_hours"].sum()), float(whole["gpu_hours"].sum())
        held = float(idle.loc[idle["state"] == "idle_held", "gpu_hours"].sum())
        name = short_name(str(instance), _first(whole["node"]))
        rows.append(
            {
                "kind": "release_idle",
                "cloud": cloud,
                "account": account,
                "region": region,
                "resource": instance,
                "workload_class": _first(idle["workload_class"]),
                "team": _first(idle["team"]),
                "owner": _first(idle["team"]),
                "action": f"Stop {name} ({instance_type}) when idle",
                "current": f"billed {billed:,.0f} GPU-hours in {advice.window_hours / 24:.0f} days",
                "proposed": f"billed {billed - hours:,.0f} GPU-hours",
                "gpus": float(str(gpus)),
                "gpu_hours_per_month": hours * advice.month,
                "weight": float(idle["cost"].sum()),
                "now": float(whole["cost"].sum()) * advice.month,
                "capacity_assured": "no",
                "confidence": "high" if held == 0 else "medium",
                "binding_constraint": "demand",
                "risk": "on-demand capacity may not be there when it is started again"
                + ("" if held == 0 else "; somebody held it, ask before stopping"),
                "why": _idle_why(whole, (hours, billed, held), at_work.get((cloud, instance))),
            }
        )
    return rows


def _idle_why(
    whole: pd.DataFrame, gpu_hours: tuple[float, float, float], at_work: pd.Timestamp | None
) -> str:
    """Why to stop a machine: its idle, billed and held GPU-hours, and since when none worked.

    An hour in which a sensor was silent is no sign of work, so it does not end the idle time.
    """
    hours, billed, held = gpu_hours
    what = "nothing ran on it"
    if held > 0:
        what = f"in {held:,.0f} of them its GPUs were held but did no work"
    text = f"All its GPUs were idle in {hours:,.0f} of {billed:,.0f} billed GPU-hours: {what}"
    if at_work is None:
        return f"{text}; none was seen at work in the whole window"
    idle_from, end = at_work + HOUR, whole["hour_start"].max() + HOUR
    if idle_from < end:
        days = (end - idle_from) / pd.Timedelta(days=1)
        return (
            f"{text}; none was seen at work since {idle_from:%Y-%m-%d %H:%M} UTC, {days:.1f} days"
        )
    return text


def _rightsize(bill: pd.DataFrame, advice: Advice) -> list[dict[str, Any]]:
    hourly = with_needed_cost(bill[~bill["purchase_option"].isin(COMMITTED_OPTIONS)])
    partly = hourly[~hourly["stoppable"]].copy()
    partly["left"] = partly["cost"] - partly["needed_cost"]
    partly["left_hours"] = partly["gpu_hours"] - partly["needed_gpu_hours"]
    partly["told"] = partly["purchase_option"] != "unknown"
    rows = []
    by = ["cloud", "account", "region", "workload_class", "instance_type", "told"]
    for key, part in partly[partly["left"] > 0].groupby(by, dropna=False, sort=True):
        cloud, account, region, workload_class, instance_type, told = key
        hours = float(part["left_hours"].sum())
        words = _PACK if told else _UNTOLD
        rows.append(
            {
                "kind": "rightsize",
                "cloud": cloud,
                "account": account,
                "region": region,
                "resource": instance_type,
                "workload_class": workload_class,
                "action": words[0].format(name=workload_class, type=instance_type),
                "current": f"{hours:,.0f} GPU-hours {words[1]}",
                "proposed": "nodes full, the others stopped",
                "gpu_hours_per_month": hours * advice.month,
                "weight": float(part["left"].sum()),
                "capacity_assured": "no",
                "confidence": "low",
                "binding_constraint": "demand",
                "risk": words[2],
                "why": f"{hours:,.0f} GPU-hours were {words[1]}",
                "cash": bool(told),
            }
        )
    return rows


_PACK = (
    "Pack {name} on fewer {type} nodes",
    "idle beside GPUs at work on the same node",
    "needs jobs placed together; a job that spans the node keeps it",
)
_UNTOLD = (
    "Stop or pack idle {type} nodes of {name}; first load the bill that pays for them",
    "idle, and no bill says how they are paid",
    "where they are committed or owned, stopping them saves no cash",
)


def _by_class(kind: str, waterfall: Waterfall, advice: Advice) -> list[dict[str, Any]]:
    words = _WORDS[kind]
    rows = []
    for row in records(moved(kind, waterfall, advice.supply)):
        name, family = str(row["class"]).rsplit("|", 1)
        place = str(row["offer"]).split("/")
        rows.append(
            {
                "kind": kind,
                "cloud": place[0],
                "region": place[1],
                "resource": place[2],
                "workload_class": name,
                "action": words[0].format(name=name, place=" ".join(place), family=family),
                "gpus": float(row["gpu_hours"]) / HOURS_PER_MONTH,
                "gpu_hours_per_month": float(row["gpu_hours"]),
                "weight": float(row["weight"]),
                "capacity_assured": _assured(kind, str(row["offer"]), advice),
                "confidence": "medium",
                **class_shares(
                    kind, (str(row["class"]), str(row["offer"])), waterfall, advice.supply
                ),
                "risk": words[1],
                "why": words[2],
            }
        )
    return rows


_WORDS = {
    "use_idle_commitment": (
        "Run {name} on capacity already paid for: {place}",
        "the class must be able to run there; the commitment must stay free at those hours",
        "Committed GPUs stood idle in hours in which this class paid for more",
    ),
    "move_to_spot": (
        "Run the interruptible part of {name} on spot: {place}",
        "spot can be taken away; work since the last checkpoint is lost and run again",
        "The class may be interrupted and spot is cheaper even with the work that is lost",
    ),
    "move_region": (
        "Run {name} in {place}",
        "data must be there; transfer between regions is not priced",
        "The class's rules allow the place and its price is lower",
    ),
}


def _assured(kind: str, offer: str, advice: Advice) -> str:
    """Whether machines are kept there for the class; where only some are, it is not assured.

    A discount is paid for and keeps no machine, so each must be requested.
    """
    if kind != "use_idle_commitment":
        return "no" if kind == "move_to_spot" else "unknown"
    share = assured_share(owned_offer_id(offer), advice.supply, advice.kinds)
    return "yes" if share >= 1 else "no"


def _buy(waterfall: Waterfall, advice: Advice) -> list[dict[str, Any]]:
    rows = []
    for one in purchases(waterfall.plan, advice.supply, waterfall.instead):
        rows.append(_purchase_row(one))
    return rows


def _purchase_row(one: Purchase) -> dict[str, Any]:
    kind = "buy_savings_plan" if one.kind == "savings_plan" else "buy_reserved"
    return {
        "kind": kind,
        "cloud": one.cloud,
        "region": one.region,
        "resource": one.name,
        "action": one.action,
        "proposed": one.what,
        "gpus": one.gpus,
        "gpu_hours_per_month": one.gpus * HOURS_PER_MONTH if one.gpus else None,
        "weight": one.weight,
        "term_hours": one.term_hours,
        "payment": one.payment,
        "upfront": to_cents(one.upfront),
        "total_commitment": to_cents(one.total_commitment),
        "capacity_assured": one.capacity_assured,
        "confidence": "medium",
        "break_even_share": one.break_even_share,
        "expected_share": one.expected_share,
        "binding_constraint": one.binding,
        "risk": "must be paid for the whole term, used or not; demand may fall and prices may fall",
        "why": one.why,
        "cash": one.upfront == 0,
    }


def _first(series: pd.Series) -> str | None:
    known = series.dropna()
    return None if known.empty else str(known.mode().iloc[0])
