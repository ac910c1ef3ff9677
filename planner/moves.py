"""The few moves that matter most: recommendations of one kind taken together."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data.frames import records
from data.plan import Move

if TYPE_CHECKING:
    import pandas as pd

MOST = 3
_BUYING = ("buy_reserved", "buy_savings_plan", "buy_capacity_block")
_TITLES = {
    "rightsize": "Pack work on fewer nodes: {classes}",
    "use_idle_commitment": "Run {classes} on capacity already paid for",
    "move_to_spot": "Run what may be interrupted on spot: {classes}",
    "move_to_on_demand": "Take {classes} off spot, where rules do not allow it",
    "move_region": "Run {classes} where it is cheaper: {places}",
}


def moves(recommendations: pd.DataFrame) -> tuple[Move, ...]:
    """The three groups of recommendations that save most, dearest first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in records(recommendations):
        kind = "buy" if row["kind"] in _BUYING else str(row["kind"])
        groups.setdefault(kind, []).append(row)
    made = [_move(kind, rows) for kind, rows in groups.items()]
    made = [move for move in made if move.saving_per_month > 0]
    return tuple(sorted(made, key=lambda one: (-one.saving_per_month, one.title))[:MOST])


def _move(kind: str, rows: list[dict[str, Any]]) -> Move:
    committed = _sum(rows, "total_commitment")
    risks = list(dict.fromkeys(row["risk"] for row in rows if row["risk"]))
    return Move(
        title=_title(kind, rows),
        ids=tuple(str(row["id"]) for row in rows),
        saving_per_month=_sum(rows, "saving_per_month"),
        cash_saving_per_month=_sum(rows, "cash_saving_per_month"),
        total_commitment=committed,
        upfront=_sum(rows, "upfront"),
        currency=str(rows[0]["currency"]),
        capacity_assured=_one_word(rows, "capacity_assured"),
        why=str(rows[0]["why"]),
        risk=risks[0] if risks else "",
    )


def _title(kind: str, rows: list[dict[str, Any]]) -> str:
    if kind == "release_idle":
        if len(rows) == 1:
            return str(rows[0]["action"])
        machines = [row for row in rows if str(row["action"]).startswith("Stop ")]
        empty = [row for row in rows if row not in machines]
        return "; ".join(filter(None, (_stopped(machines), _cancelled(empty))))
    if kind == "buy":
        return "; ".join(str(row["action"]) for row in rows)
    classes = list(dict.fromkeys(str(row["workload_class"]) for row in rows))
    places = list(dict.fromkeys(f"{row['cloud']} {row['region']}" for row in rows))
    return _TITLES[kind].format(classes=_listed(classes), places=_listed(places))


def _stopped(rows: list[dict[str, Any]]) -> str:
    if len(rows) < 2:
        return str(rows[0]["action"]) if rows else ""
    first = str(rows[0]["action"]).removeprefix("Stop ").removesuffix(" when idle")
    return f"Stop {len(rows)} machines when they are idle, first {first}"


def _cancelled(rows: list[dict[str, Any]]) -> str:
    if len(rows) < 2:
        return str(rows[0]["action"]) if rows else ""
    return f"Cancel or shrink {len(rows)} capacity reservations, first {rows[0]['resource']}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _sum(rows: list[dict[str, Any]], name: str) -> Decimal:
    return sum((row[name] for row in rows if row[name] is not None), Decimal(0))


def _one_word(rows: list[dict[str, Any]], name: str) -> str:
    words = {str(row[name]) for row in rows if row[name] is not None}
    return words.pop() if len(words) == 1 else "in part" if words else "unknown"
