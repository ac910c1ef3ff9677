"""What a GPU did in an hour, from its readings: busy, idle-held, free or unknown, and why.

A silent sensor is never read as 0, and a GPU is called idle only where every reading says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.scratch import Scratch
    from planner.settings import Settings


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What counts as busy and as held, for one workload class. A configured 0 is a value.

    `busy_util_percent` (percent of the hour with a kernel running): more is busy, this or less is
    not. The default 5 lets the periodic kernels of monitoring and health checks pass as idle,
    while the lightest serving replica lies above it.
    `busy_sm_active` (share of multiprocessors active): more is busy. Default 0.05: a kernel that
    fills the card 5% of the time.
    `memory_held_share`: more GPU memory in use than this is held by somebody. Default 0.03, which
    is 2.4 GiB of an 80 GiB card: the driver's reserve and a bare CUDA context lie below it, any
    loaded model above it.
    `contradicting_watts`: power draw at which "no kernel ran" is not believed. Default 250 W; an
    idle H100 draws about 70 W. None switches the check off.
    `idle_after_minutes`: an idle-held GPU is needed for so long, then no more. Default 30: with
    hourly data the first hour of a pause is kept, the second is taken off.
    """

    busy_util_percent: float = 5.0
    busy_sm_active: float = 0.05
    memory_held_share: float = 0.03
    contradicting_watts: float | None = 250.0
    idle_after_minutes: float = 30.0


UNCLASSIFIED = "unclassified"
DEFAULT_THRESHOLDS = Thresholds()

# Verdicts on one reading, ordered so that the largest of several parts of a GPU-hour (pods that
# took turns, MIG instances) is the safe one: work anywhere is work, silence anywhere is unknown.
_FREE, _HELD, _SILENT, _SILENT_MIG, _CONTRADICTING, _BUSY = range(6)
_STATES = {
    _FREE: ("free", ""),
    _HELD: ("idle_held", ""),
    _SILENT: ("unknown", "no_reading"),
    _SILENT_MIG: ("unknown", "mig"),
    _CONTRADICTING: ("unknown", "contradicting"),
    _BUSY: ("busy", ""),
}
_PLACE_DIGITS = 6
# A kernel that runs u percent of the time cannot keep more than u percent of the multiprocessors
# active; beyond this slack the two sensors disagree.
_SM_SLACK = 0.1
# More kernel time than this without one active multiprocessor: one of the sensors is stuck.
_STUCK_UTIL_PERCENT = 50.0

READINGS = (
    "node_id", "hour", "gpu_uuid", "gpu_util", "sm_active", "memory_used_share", "process_count",
    "power_watts", "pod", "mig_uuid", "workload_class", "team", "user", "node",
)  # fmt: skip


def thresholds_of(settings: Settings) -> dict[str, Thresholds]:
    """The thresholds of every class; '' holds those of classes that no rule describes."""
    plain = settings.thresholds
    found = {}
    for name in ("", *settings.class_names):
        one = settings.workload_class(name or UNCLASSIFIED)
        stated = [one.busy_util_percent, one.busy_sm_active, one.memory_held_share]
        general = [plain.busy_util_percent, plain.busy_sm_active, plain.memory_held_share]
        util, active, held = (
            usual if own is None else own for own, usual in zip(stated, general, strict=True)
        )
        found[name] = Thresholds(util, active, held, idle_after_minutes=one.idle_after_minutes)
    return found


def threshold_table(thresholds: Mapping[str, Thresholds], tables: Scratch) -> Any:
    """Table of thresholds, one row a class; the class '' holds the default."""
    rows = {"": DEFAULT_THRESHOLDS, **thresholds}
    frame = pd.DataFrame([{"threshold_class": name, **asdict(row)} for name, row in rows.items()])
    types = dict.fromkeys(frame.columns, "float") | {"threshold_class": "text"}
    return tables.upload(frame, types)


def gpu_hour_states(readings: Any, thresholds: Any, order: Sequence[str] = ()) -> Any:
    """Table of one row per (node_id, hour, gpu_uuid): state, reason, class, team, user, node.

    `readings` has the columns READINGS, texts not null, `thresholds` comes from `threshold_table`,
    `order` names the classes in the order of their rules. Readings of one part of a GPU-hour that
    say different things make it unknown (`contradicting`); the same reading twice counts once.
    """
    judged = _judge(_with_thresholds(readings, thresholds))
    part = ["node_id", "hour", "gpu_uuid", "pod", "mig_uuid"]
    speaking = judged.verdict.notnull()
    parts = judged.group_by(part).aggregate(
        verdicts=judged.verdict.nunique(where=speaking),
        verdict=judged.verdict.max(where=speaking),
        workload_class=main_class(judged, order),
        idle_after_minutes=judged.idle_after_minutes.max(),
        team=judged.team.max(),
        user=judged.user.max(),
        node=judged.node.max(),
    )
    silent = ibis.ifelse(parts.mig_uuid != "", _SILENT_MIG, _SILENT)
    parts = parts.mutate(
        verdict=ibis.cases(
            (parts.verdicts == 0, silent),
            (parts.verdicts > 1, _CONTRADICTING),
            else_=parts.verdict,
        )
    )
    whole = parts.group_by(["node_id", "hour", "gpu_uuid"]).aggregate(
        verdict=parts.verdict.max(),
        workload_class=main_class(parts, order),
        idle_after_minutes=parts.idle_after_minutes.max(),
        team=parts.team.max(),
        user=parts.user.max(),
        node=parts.node.max(),
    )
    return whole.mutate(
        state=ibis.cases(*((whole.verdict == v, state) for v, (state, _) in _STATES.items())),
        reason=ibis.cases(*((whole.verdict == v, why) for v, (_, why) in _STATES.items())),
    ).drop("verdict")


def main_class(rows: Any, order: Sequence[str], where: Any = True) -> Any:
    """The class of a group of rows: of those they have, the one whose rule stands first.

    Classes that `order` lacks come after those it names, by name; 'unclassified' comes last.
    """
    placed = _with_place(rows.workload_class, order)
    return ibis.coalesce(placed.min(where=where).substr(_PLACE_DIGITS), UNCLASSIFIED)


def earlier_class(first: Any, second: Any, order: Sequence[str]) -> Any:
    """Of two classes the one whose rule stands first; a missing one counts as 'unclassified'."""
    both = (_with_place(ibis.coalesce(one, UNCLASSIFIED), order) for one in (first, second))
    return ibis.least(*both).substr(_PLACE_DIGITS)


def _with_place(name: Any, order: Sequence[str]) -> Any:
    """The class behind the place of its rule, so that texts compare in the order of the rules."""
    ruled = [one for one in dict.fromkeys(order) if one != UNCLASSIFIED]
    places = {one: f"{place:0{_PLACE_DIGITS}d}" for place, one in enumerate(ruled)}
    places[UNCLASSIFIED] = "9" * _PLACE_DIGITS
    other = f"{len(ruled):0{_PLACE_DIGITS}d}"
    return ibis.cases(*((name == one, place) for one, place in places.items()), else_=other) + name


def _with_thresholds(readings: Any, thresholds: Any) -> Any:
    known = thresholds.select("threshold_class").mutate(known=True)
    named = readings.left_join(known, readings.workload_class == known.threshold_class)
    named = named.mutate(
        lookup=ibis.ifelse(named.known.fill_null(False), named.workload_class, "")
    ).drop("threshold_class", "known")
    joined = named.inner_join(thresholds, named.lookup == thresholds.threshold_class)
    return joined.drop("threshold_class", "lookup")


def _judge(rows: Any) -> Any:
    """The readings with a verdict each; null where the sensors that decide are silent."""
    # In MIG mode the driver cannot give a utilization: a 0 there is no reading.
    util = ibis.ifelse((rows.mig_uuid != "") & (rows.gpu_util == 0), ibis.null(), rows.gpu_util)
    sm = rows.sm_active
    works = (util > rows.busy_util_percent).fill_null(False)
    works_sm = (sm > rows.busy_sm_active).fill_null(False)
    silent = util.isnull() & sm.isnull()
    beyond = (~works & (sm > util / 100 + _SM_SLACK)).fill_null(False)
    stuck = ((util > _STUCK_UTIL_PERCENT) & (sm == 0)).fill_null(False)
    hot = (rows.power_watts > rows.contradicting_watts).fill_null(False) & ~works & ~works_sm
    measured = rows.memory_used_share.notnull() | rows.process_count.notnull()
    held = (
        (rows.memory_used_share > rows.memory_held_share).fill_null(False)
        | (rows.process_count > 0).fill_null(False)
        | (rows.pod != "")
        # Nobody measured what the GPU holds: it may be held, so it is not called free.
        | ~measured
    )
    return rows.mutate(
        verdict=ibis.cases(
            (silent, ibis.null("int64")),
            (beyond | stuck | hot, _CONTRADICTING),
            (works | works_sm, _BUSY),
            (held, _HELD),
            else_=_FREE,
        )
    )
