"""The fleet, hour by hour: every billed GPU-hour with its state, its owner and its money."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from data import frames
from data.frames import records
from data.schema import COMMITMENTS, GPU_SHAPES
from planner import billed_hours, fees, fleet_frame, measured_hours, nodes, unused
from planner import parts as divided
from planner.billed_hours import Span
from planner.fees.given import joined
from planner.gpu_counts import with_stated_gpus
from planner.needed import with_needed
from planner.observed import covered_hours
from planner.scratch import scratch
from planner.states import (
    READINGS,
    UNCLASSIFIED,
    Thresholds,
    gpu_hour_states,
    main_class,
    threshold_table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from data.hours import Window
    from data.quality import Finding
    from planner.fees import Unspread
    from planner.nodes import Nodes
    from planner.scratch import Scratch

_NODE_TYPES = {
    "node_id": "int", "cloud": "text", "account": "text", "node_key": "text",
    "workload_class": "text", "is_billed": "bool", "rate": "exact",
}  # fmt: skip
_DESCRIBED = ("region", "instance_type", "gpu_model")
_TEXTS = ("user", "team", "node", "pod", "mig_uuid", "workload_class")


@dataclass(frozen=True, slots=True)
class Policy:
    """What the fleet is judged by.

    `thresholds` by workload class, in the order of the rules that give the classes (a class
    without an entry has the defaults, and comes after those that have one), the machine `shapes`
    with those that the user's own prices state (`catalogue.with_stated`), and the `rates`
    (measured_hours.RATE_COLUMNS) that price hours without a bill. Fees up to `as_of` are told,
    also where they are of days after the last hour.
    """

    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    shapes: pd.DataFrame = field(default_factory=lambda: frames.empty(GPU_SHAPES))
    rates: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=list(measured_hours.RATE_COLUMNS))
    )
    as_of: datetime | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """The classes in the order of their rules: where two match, the first one counts."""
        return tuple(name for name in self.thresholds if name)


@dataclass(frozen=True, slots=True)
class Fleet:
    """FLEET_HOURS of a window, what was odd about the data, and the hours that had any.

    `unspread` are fees of commitments and blocks that no hour bears; `fees` are those that hours
    bear, the used and the unused part by commitment (planner.fees.given.COLUMNS).
    """

    hours: pd.DataFrame
    findings: tuple[Finding, ...]
    covered: pd.DatetimeIndex
    unspread: tuple[Unspread, ...] = ()
    fees: pd.DataFrame = field(default_factory=lambda: joined(()))


def build(
    billing: Any,
    utilization: Any,
    policy: Policy,
    window: Window,
    commitments: pd.DataFrame | None = None,
) -> Fleet:
    """The Fleet of the window: frame of FLEET_HOURS, findings, covered hours.

    `billing` (Ibis, BILLING with `workload_class`) and `utilization` (Ibis, UTILIZATION, with
    `workload_class` where rules give one) are tables of one connection; either may be empty.
    Without a bill the hours are counted from telemetry and priced from `policy.rates`; without
    telemetry every hour is unknown.
    """
    owned = frames.empty(COMMITMENTS) if commitments is None else commitments
    edges = (window.start, window.end, policy.as_of or window.end)
    span = Span(*(int(edge.timestamp()) // 3600 for edge in edges))
    with scratch(billing.get_backend()) as tables:
        counted = with_stated_gpus(billing, policy.shapes)
        single = billed_hours.without_doubles(counted, tables)
        basis = fees.Basis(single, owned, policy.shapes, policy.order, span)
        paid = fees.spread(tables.keep(billed_hours.charges(single, span)), basis, tables)
        rows = paid.rows
        known = _nodes(rows, utilization, policy, span, tables)
        uploaded = tables.upload(known.nodes, _NODE_TYPES)
        readings = tables.keep(_readings(utilization, known, _near(span, policy), tables))
        segments = tables.keep(_within(_segments(rows, readings, known, policy, tables), span))
        hours = divided.instance_hours(segments, tables, policy.order)
        states = tables.keep(_states(readings, hours, uploaded, policy, tables))
        shares = tables.keep(divided.parts(states, hours, tables))
        found = tables.fetch(divided.divide(segments, shares))
        charged = tables.keep(unused.gpu_commitments(rows, owned, policy.shapes))
        spare = _spare(charged, rows, span, tables)
        findings = fleet_frame.findings(segments, hours, states, uploaded, tables)
        findings += unused.findings(charged, span, tables)
    frame = fleet_frame.fleet_frame(found, spare, known.nodes, policy.shapes, owned)
    covered = covered_hours(billing, utilization, window)
    found_odd = (*known.findings, *paid.findings, *findings)
    return Fleet(frame, found_odd, covered, paid.unspread, paid.given)


def _near(span: Span, policy: Policy) -> Span:
    """The span with the hours before it in which a pause may have begun."""
    longest = max([60.0, *(row.idle_after_minutes for row in policy.thresholds.values())])
    return Span(span.first - int(-(-longest // 60)), span.end)


def _nodes(rows: Any, utilization: Any, policy: Policy, span: Span, tables: Scratch) -> Nodes:
    """The instances of the bill and of telemetry, those without a bill with their price."""
    used = billed_hours.usage(rows)
    billed = billed_hours.instances(used, tables, policy.order)
    accounts = tables.fetch(rows.select("cloud", "account").distinct())
    pairs = {(cloud, account.lower()) for cloud, account in accounts.itertuples(index=False)}
    known = nodes.match(billed, _seen(utilization, span, policy.order, tables), pairs)
    typed, taken = measured_hours.with_types(known.nodes, policy.shapes, policy.rates)
    priced = measured_hours.price(typed, policy.rates)
    return replace(known, nodes=priced, findings=(*known.findings, *taken))


def _seen(utilization: Any, span: Span, order: tuple[str, ...], tables: Scratch) -> pd.DataFrame:
    """Frame of the instances that telemetry saw in the span, and how many readings it gave."""
    hour = utilization.hour_start.epoch_seconds() // 3600
    inside = utilization.filter((hour >= span.first) & (hour < span.end))
    by = ["cloud", "account", "instance_id"]
    described = {
        name: ibis.coalesce(inside[name].max(), "") for name in _DESCRIBED if name in inside.columns
    }
    if "workload_class" not in inside.columns:
        inside = inside.mutate(workload_class=ibis.literal(UNCLASSIFIED))
    counted = inside.group_by(by).aggregate(
        readings=inside.count(),
        gpus=inside.gpu_uuid.nunique(),
        workload_class=main_class(inside, order),
        **described,
    )
    frame = tables.fetch(counted)
    return frame.assign(**{name: "" for name in _DESCRIBED if name not in frame.columns})


def _readings(utilization: Any, known: Nodes, span: Span, tables: Scratch) -> Any:
    """Telemetry of known instances in the span, with the columns READINGS, texts not null."""
    streams = tables.upload(
        known.streams,
        {"cloud": "text", "account": "text", "instance_id": "text", "node_id": "int"},
    )
    rows = utilization.mutate(hour=utilization.hour_start.epoch_seconds() // 3600)
    rows = rows.filter((rows.hour >= span.first) & (rows.hour < span.end))
    joined = rows.inner_join(streams, ["cloud", "account", "instance_id"])
    texts = {
        name: ibis.coalesce(joined[name], "") if name in joined.columns else ibis.literal("")
        for name in _TEXTS
    }
    plain = [name for name in READINGS if name not in texts]
    return joined.select(*plain, **texts)


def _within(hours: Any, span: Span) -> Any:
    return hours.filter((hours.hour >= span.first) & (hours.hour < span.end))


def _segments(rows: Any, readings: Any, known: Nodes, policy: Policy, tables: Scratch) -> Any:
    """Billed and measured hours in one table."""
    uploaded = tables.upload(known.nodes, _NODE_TYPES)
    presence = readings.select("node_id", "hour").distinct()
    used = billed_hours.usage(rows)
    billed = billed_hours.segments(used, uploaded, presence, tables, policy.order)
    if known.nodes["is_billed"].all():
        return billed
    alone = measured_hours.segments(readings, uploaded, tables, policy.order)
    missing = [name for name in billed.columns if name not in alone.columns]
    alone = alone.mutate(**{name: ibis.null("string") for name in missing})
    types = billed.schema()
    return billed.union(
        alone.select(**{name: alone[name].cast(types[name]) for name in billed.columns})
    )


def _states(readings: Any, hours: Any, uploaded: Any, policy: Policy, tables: Scratch) -> Any:
    """State and need of every measured GPU-hour, look-back included."""
    resolved = divided.resolve_class(readings, hours, uploaded, policy.order)
    thresholds = threshold_table(policy.thresholds, tables)
    return with_needed(gpu_hour_states(resolved, thresholds, policy.order))


def _spare(charged: Any, rows: Any, span: Span, tables: Scratch) -> pd.DataFrame:
    """Frame of the hours of unused capacity; most fleets have none."""
    if not tables.connection.execute(charged.count()):
        return pd.DataFrame()
    return tables.fetch(unused.unused_hours(charged, span, _ends(rows, tables), tables))


def _ends(rows: Any, tables: Scratch) -> dict[str, int]:
    """Hour at which the bill of each cloud ends, by its charges of at most a day."""
    fine = rows.filter(rows.is_gpu & (rows.end - rows.start <= 86_400))
    ends = fine.group_by("cloud").aggregate(end=fine["last"].max() + 1)
    frame = tables.fetch(ends)
    return {row["cloud"]: int(row["end"]) for row in records(frame)}
