"""Capacity reservations that stand empty and that nothing commits: they can be given back.

A reservation on demand costs the price of its machines from hour to hour, whether they run or not,
and has no term. A capacity block, and what a commitment of the table stands behind, is paid for
whatever is done with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.names import UNUSED_PREFIX, short_name
from planner.nodes import last_segment

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from planner.rightsizing import Advice

EMPTY_RESERVATION = "unused_reservation"
CANCELLABLE_OPTIONS = ("on_demand",)
_PLAIN = "capacity_reservation"


def is_cancellable(
    spare: pd.DataFrame, commitments: pd.DataFrame, seen: Iterable[object]
) -> pd.Series:
    """Which rows of unused capacity end when their reservation is given back.

    `spare` has `instance_id`, `reason` and `option`; `commitments` is COMMITMENTS, of which a plain
    capacity reservation binds nobody; `seen` are the commitments on the bill.
    """
    owned = commitments.loc[commitments["kind"] != _PLAIN, "id"]
    bound = {last_segment(str(name)) for name in (*owned, *seen) if name}
    names = spare["instance_id"].astype(str).str.removeprefix(UNUSED_PREFIX).map(last_segment)
    is_empty = spare["reason"].isin((EMPTY_RESERVATION,)) & spare["option"].isin(
        CANCELLABLE_OPTIONS
    )
    return is_empty & ~names.isin(bound)


def cancel_rows(bill: pd.DataFrame, advice: Advice) -> list[dict[str, Any]]:
    """The advice to give back reservations that stood empty, one row each, to be shared out.

    `bill` is FLEET_HOURS with money as float.
    """
    empty = bill[bill["stoppable"] & bill["reason"].isin((EMPTY_RESERVATION,))]
    rows = []
    by = ["cloud", "account", "region", "instance_id", "instance_type"]
    for key, part in empty.groupby(by, dropna=False, sort=True):
        cloud, account, region, instance, machine = (
            word if isinstance(word, str) else None for word in key
        )
        name = str(instance).removeprefix(UNUSED_PREFIX)
        cost, hours = float(part["cost"].sum()), part["hour_start"].nunique()
        of = f" ({machine})" if machine else ""
        rows.append(
            {
                "kind": "release_idle",
                "cloud": cloud,
                "account": account,
                "region": region,
                "resource": name,
                "action": f"Cancel or shrink the capacity reservation {short_name(name)}{of}",
                "current": f"empty in {hours:,.0f} of {advice.window_hours:,.0f} hours",
                "proposed": "no more capacity is held than runs, or the empty part is filled",
                "weight": cost,
                "now": cost * advice.month,
                "capacity_assured": "no",
                "confidence": "high",
                "binding_constraint": "demand",
                "risk": "on-demand capacity may not be there when it is wanted again",
                "why": f"Nothing ran in a part of it in {hours:,.0f} of "
                f"{advice.window_hours:,.0f} hours, which costs as much as machines that run; no "
                "term binds it",
            }
        )
    return rows
