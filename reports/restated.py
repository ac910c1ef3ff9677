"""Periods that say something else than on the last night, in words."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from data.names import short_name
from reports import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.lineage import Restated

MOST_ROWS = 20
_MOST_IDS = 5


def view(rows: Sequence[Restated]) -> dict[str, Any] | None:
    """What the report tells of restated periods, largest change first; None where none was."""
    if not rows:
        return None
    large = [one for one in rows if not one.is_small]
    large.sort(key=lambda one: (-abs(one.after - one.before), one.period, one.account))
    clouds = {one.cloud: one for one in large}
    return {
        "night": rows[0].night,
        "sentences": [_sentence(one) for one in large[:MOST_ROWS]],
        "more": max(0, len(large) - MOST_ROWS),
        "small": len(rows) - len(large),
        "rested": [said for _, one in sorted(clouds.items()) if (said := _rested(one))],
    }


def _sentence(one: Restated) -> str:
    """One restated period.

    The amounts are those of the hours that the last night knew.
    """
    was, now = (numbers.amount(value, one.currency) for value in (one.before, one.after))
    month = f"{date.fromisoformat(f'{one.period}-01'):%B %Y}"
    parts = "; ".join(_part(part, one.currency) for part in one.options)
    return (
        f"{month} of {one.cloud} {short_name(one.account)} ({one.dataset}) was restated from "
        f"{was} to {now} ({parts})"
    )


def _part(part: Any, currency: str) -> str:
    words = [part.purchase_option]
    if part.cost:
        words.append(numbers.signed(numbers.amount(part.cost, currency)))
    if part.gpu_hours:
        words.append(f"{part.gpu_hours:+,.0f} GPU-hours")
    return " ".join(words)


def _rested(one: Restated) -> str:
    """What became of the recommendations that were computed from the old figures."""
    if not one.rested:
        return ""
    count = numbers.counted(len(one.rested), "recommendation")
    text = f"{count} of that night for {one.cloud} rested on the old figures"
    if not one.gone:
        return f"{text}; all are advised again"
    named = ", ".join(one.gone[:_MOST_IDS])
    more = len(one.gone) - _MOST_IDS
    tail = f" and {more} more" if more > 0 else ""
    verb = "is" if len(one.gone) == 1 else "are"
    return f"{text}; {len(one.gone)} of them {verb} not advised any more: {named}{tail}"
