"""The last step to FLEET_HOURS: names, owners, families and ends of commitments; and findings."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from data.frames import conform, records
from data.quality import Finding
from data.schema import FLEET_HOURS
from planner.billed_hours import EVEN, FULL, LIKE, SEEN
from planner.cancelled import is_cancellable
from planner.nodes import last_segment

if TYPE_CHECKING:
    from planner.scratch import Scratch

_TAG_PREFIXES = ("user:", "user_", "resource_tags_user_")


def fleet_frame(
    found: pd.DataFrame,
    spare: pd.DataFrame,
    nodes: pd.DataFrame,
    shapes: pd.DataFrame,
    commitments: pd.DataFrame,
) -> pd.DataFrame:
    """Frame of FLEET_HOURS from the rows of instances (`found`) and of unused capacity."""
    named = _with_nodes(found, nodes)
    if len(spare):
        told = is_cancellable(spare, commitments, {*named["commitment"], *spare["commitment"]})
        named = pd.concat([named, _spare_rows(spare, told)], ignore_index=True)
    named = named.rename(columns={"option": "purchase_option", "commitment": "commitment_id"})
    named["hour_start"] = pd.to_datetime(named["hour"].astype("int64") * 3600, unit="s", utc=True)
    named["managed_service"] = named["managed"].fillna(False).astype(bool)
    named["gpu_family"] = _families(named, shapes)
    named["committed_until"] = _ends(named["commitment_id"], commitments)
    for column in FLEET_HOURS.columns:
        if column.nullable and column.dtype in ("text", "json"):
            named[column.name] = named[column.name].replace("", None)
    conformed = conform(named, FLEET_HOURS)
    return conformed.sort_values(list(FLEET_HOURS.key), kind="stable").reset_index(drop=True)


def _with_nodes(found: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """The rows with cloud, account and instance, and what the hour itself does not tell."""
    known = nodes.set_index("node_id")
    team = known["tags"].map(team_of_tags) if len(known) else pd.Series(dtype=object)
    at = found["node_id"]
    filled = {
        name: found[name]
        .astype(object)
        .replace("", None)
        .where(lambda own: own.notna(), at.map(known[name]))
        for name in ("region", "instance_type", "gpu_model")
    }
    own_team = found["team"].astype(object).replace("", None)
    return found.assign(
        **filled,
        cloud=at.map(known["cloud"]),
        account=at.map(known["account"]),
        instance_id=at.map(known["instance_id"]),
        managed=at.map(known["managed"]),
        rate_family=at.map(known["gpu_family"]),
        team=own_team.where(own_team.notna(), at.map(team)),
    )


def _spare_rows(spare: pd.DataFrame, is_cancellable: pd.Series) -> pd.DataFrame:
    return spare.assign(
        state="free",
        stoppable=is_cancellable,
        needed_gpu_hours=0,
        node=None,
        team=None,
        user=None,
        rate_family=None,
    )


def team_of_tags(tags: object) -> str | None:
    """The team that the tags name, under any spelling of the key.

    >>> team_of_tags('{"user:Team": "research"}')
    'research'
    """
    try:
        pairs = json.loads(tags) if isinstance(tags, str) and tags else {}
    except json.JSONDecodeError:
        return None
    for key, value in sorted(pairs.items()) if isinstance(pairs, dict) else ():
        bare = key.lower()
        for prefix in _TAG_PREFIXES:
            bare = bare.removeprefix(prefix)
        if bare == "team" and isinstance(value, str) and value:
            return value
    return None


def _families(rows: pd.DataFrame, shapes: pd.DataFrame) -> pd.Series:
    """GPU family by machine type, else by GPU model, else what the price was taken from."""
    by_type = {
        (row["cloud"], row["instance_type"].lower()): row["gpu_family"] for row in records(shapes)
    }
    by_model = dict(zip(shapes["gpu_model"], shapes["gpu_family"], strict=True))
    kinds = rows[["cloud", "instance_type", "gpu_model", "rate_family"]].astype(object)
    kinds = kinds.where(kinds.notna(), None)
    distinct = kinds.drop_duplicates()
    family = {
        tuple(row): by_type.get((row[0], (row[1] or "").lower())) or by_model.get(row[2]) or row[3]
        for row in distinct.itertuples(index=False)
    }
    return pd.Series([family[tuple(row)] for row in kinds.itertuples(index=False)], dtype=object)


def _ends(ids: pd.Series, commitments: pd.DataFrame) -> pd.Series:
    """Day on which the commitment ends, where the commitments table knows its id."""
    ends: dict[str, Any] = {}
    for identity, end in zip(commitments["id"], commitments["end"], strict=True):
        for name in (str(identity).lower(), last_segment(str(identity))):
            ends[name] = max(end, ends.get(name, end))
    lookup = {
        identity: ends.get(identity.lower()) or ends.get(last_segment(identity))
        for identity in ids.dropna().unique()
    }
    return ids.astype(object).map(lookup)


def findings(segments: Any, hours: Any, states: Any, nodes: Any, tables: Scratch) -> list[Finding]:
    """What was odd when telemetry and bill were laid over each other, per cloud."""
    cloud = nodes.select("node_id", "cloud", "is_billed")
    seen = states.group_by(["node_id", "hour"]).aggregate(
        seen=states.count(), contradicting=(states.reason == "contradicting").sum()
    )
    joined = seen.left_join(hours, ["node_id", "hour"]).drop("node_id_right", "hour_right")
    joined = tables.keep(joined.inner_join(cloud, "node_id"))
    billed = hours.inner_join(cloud, "node_id")
    bounds = billed.group_by("cloud").aggregate(first=billed.hour.min(), last=billed.hour.max())
    inside = joined.inner_join(bounds, "cloud")
    inside = inside.filter((inside.hour >= inside["first"]) & (inside.hour <= inside["last"]))
    extra = (inside.seen - inside.gpus).clip(lower=0)
    summary = tables.fetch(
        inside.group_by("cloud").aggregate(
            unbilled=inside.seen.sum(where=inside.gpus.isnull()),
            more=extra.sum(where=inside.billed > 0),
            contradicting=inside.contradicting.sum(where=inside.gpus.notnull()),
        )
    )
    free = segments.filter(segments.cost.isnull()).inner_join(cloud, "node_id")
    unpriced = tables.fetch(
        free.group_by("cloud").aggregate(unpriced=free.gpu_hours.sum().cast("float64"))
    )
    minus = segments.filter(segments.taken_back < 0).inner_join(cloud, "node_id")
    negative = tables.fetch(
        minus.group_by("cloud").aggregate(negative=(-minus.taken_back.sum()).cast("float64"))
    )
    found = []
    for frame in (summary, unpriced, negative):
        for row in records(frame):
            found += [
                Finding(name, str(row["cloud"]), severity, detail, math.ceil(row[column]))
                for column, (name, severity, detail) in _FINDINGS.items()
                if (row.get(column) or 0) > 0
            ]
    return [*found, *_spread_hours(segments, cloud, tables)]


def _spread_hours(segments: Any, cloud: Any, tables: Scratch) -> list[Finding]:
    """How many billed GPU-hours came from charges of days or more, and how they were spread."""
    billed = segments.inner_join(cloud, "node_id")
    coarse = billed.filter(billed.grain.isin((FULL, SEEN, LIKE, EVEN)))
    sums = coarse.group_by(["cloud", "grain"]).aggregate(
        hours=coarse.gpu_hours.sum().cast("float64")
    )
    whole = billed.group_by("cloud").aggregate(hours=billed.gpu_hours.sum().cast("float64"))
    by_cloud = {row["cloud"]: row["hours"] for row in records(tables.fetch(whole))}
    hours: dict[str, dict[str, float]] = {}
    for row in records(tables.fetch(sums)):
        hours.setdefault(str(row["cloud"]), {})[row["grain"]] = row["hours"] or 0.0
    found = []
    for name, parts in sorted(hours.items()):
        total = sum(parts.values())
        if total <= 0:
            continue
        words = [f"{parts[grain]:,.0f} {_GRAINS[grain]}" for grain in _GRAINS if parts.get(grain)]
        guessed = parts.get(EVEN, 0.0) / by_cloud[name]
        detail = f"{total:,.0f} GPU-hours are billed by the day or more: {', '.join(words)}"
        estimated = total - parts.get(FULL, 0.0)
        if estimated > 0:
            detail += f"; which hours {estimated:,.0f} of them fall in is an estimate"
        severity = "warning" if guessed > MOST_EVEN else "info"
        found.append(Finding("coarse_grain", name, severity, detail, round(total)))
    return found


# Of a cloud's billed GPU-hours, the share that may be spread evenly, for want of any telemetry,
# before it is warned of: a mean level says little of what each hour needed.
MOST_EVEN = 0.1
_GRAINS = {
    FULL: "of machines that ran all the time",
    SEEN: "by the hours in which telemetry saw the machine",
    LIKE: "as machines of the same class were seen",
    EVEN: "evenly, as no telemetry tells more",
}


_FINDINGS = {
    "unbilled": (
        "measured_not_billed", "warning",
        "GPU-hours were measured on billed instances in hours that are on no bill; not counted",
    ),
    "more": (
        "measured_more_than_billed", "warning",
        "GPU-hours were measured beyond the GPUs billed; the states were scaled to the bill",
    ),
    "contradicting": (
        "contradicting_readings", "warning",
        "GPU-hours have readings that contradict each other; they count as unknown",
    ),
    "negative": (
        "negative_hours", "warning",
        "GPU-hours below 0 stand in hours from which corrections take more than was billed: such "
        "an hour counts as 0 GPU-hours, with its money",
    ),
    "unpriced": (
        "no_price", "error",
        "GPU-hours have no known cost; their cost is left empty, never taken as 0",
    ),
}  # fmt: skip
