"""A plan's changes of scaling limits, as text for people and as JSON for machines."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from reports import numbers

if TYPE_CHECKING:
    from data.plan import Change, Plan

NO_CHANGES = "No changes."


def changes_json(plan: Plan) -> list[dict[str, Any]]:
    """The changes as `apply --json` shows them before anything is done, in the plan's order."""
    return [
        {
            "pool": change.pool,
            "kind": change.kind,
            "name": change.name,
            "field": change.field,
            "current": change.current,
            "proposed": change.proposed,
            "status": _status(change),
            "guard": None,
            "reason": change.why,
        }
        for change in plan.changes
    ]


def changes_text(plan: Plan) -> str:
    """The changes by pool, in the plan's order, with what they save; `No changes.` if none."""
    moving = [change for change in plan.changes if _status(change) == "would_change"]
    if not moving:
        return NO_CHANGES
    pools: dict[str, list[Change]] = {}
    for change in moving:
        pools.setdefault(change.pool, []).append(change)
    lines: list[str] = []
    for pool, changes in pools.items():
        first = changes[0]
        place = ", ".join(filter(None, (first.cloud, first.account, first.region)))
        lines.append(f"{first.kind} {first.name or pool} ({place})")
        for change in changes:
            lines += _lines(change)
    counts = f"{numbers.counted(len(moving), 'change')} in {numbers.counted(len(pools), 'pool')}"
    lines += ["", f"{counts}{_savings(moving)}. Shown only: nothing was changed."]
    return "\n".join(lines)


def _status(change: Change) -> str:
    same = change.current is not None and change.current == change.proposed
    return "unchanged" if same or change.proposed is None else "would_change"


def _lines(change: Change) -> list[str]:
    current = "not read" if change.current is None else str(change.current)
    saving = ""
    if change.saving_per_month:
        saving = f"  ({numbers.saving(change.saving_per_month, change.currency)})"
    head = f"  {change.field} {change.unit}: {current} -> {change.proposed}{saving}"
    return [head, f"      {change.why}"]


def _savings(changes: list[Change]) -> str:
    totals: dict[str, Decimal] = {}
    for change in changes:
        totals[change.currency] = totals.get(change.currency, Decimal(0)) + change.saving_per_month
    texts = [numbers.saving(total, name) for name, total in sorted(totals.items()) if total]
    return "".join(f", {text}" for text in texts)
