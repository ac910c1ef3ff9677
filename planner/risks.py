"""How sure a plan is: what it hopes for, what its past says, and what would make it lose money."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from data.frames import records
from data.risks import Risks
from planner.break_even import held_before
from planner.loses_if import loses_if
from planner.on_demand_risk import hoped_for
from planner.own_backtest import backtests
from planner.price_moves import price_moves
from planner.purchases import purchases

if TYPE_CHECKING:
    import pandas as pd

    from planner.outlook import Outlook


def risks_of(
    found: Outlook, commitments: pd.DataFrame, bill: pd.DataFrame, hours: int, least_hours: int
) -> Risks:
    """All risks of a plan on a history of `hours`; below `least_hours` nothing is back-tested.

    `commitments` is a frame of COMMITMENTS, `bill` one of FLEET_HOURS.
    """
    waterfall, supply = found.waterfall, found.supply
    loses = loses_if(waterfall.plan, supply)
    bought = purchases(waterfall.plan, supply)
    return Risks(
        hoped_for=hoped_for(waterfall.plan, supply, owned_kinds(commitments, bill)),
        backtests=backtests(found.rungs, hours, least_hours, bought),
        held_before=held_before(waterfall, supply, hours),
        loses_if=None if loses is None else replace(loses, events=found.event_losses),
        price_moves=price_moves(waterfall.plan, supply),
        service=found.service,
        level_usd_per_month=found.level_usd_per_month,
    )


def owned_kinds(commitments: pd.DataFrame, bill: pd.DataFrame) -> dict[str, str]:
    """Kinds of owned commitments by id: as the table names them, else as the bill shows them."""
    paid = bill.dropna(subset=["commitment_id"])
    kinds = dict(zip(paid["commitment_id"], paid["purchase_option"], strict=True))
    kinds |= {row["id"]: row["kind"] for row in records(commitments)}
    return {str(name): str(kind) for name, kind in sorted(kinds.items())}
