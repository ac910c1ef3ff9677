"""Which instance of the bill a stream of telemetry belongs to.

A telemetry `instance_id` is the bill's resource id, its last segment, or the resource's name,
whatever the case. Nothing is matched where two instances could be meant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pandas as pd

from data.frames import records
from data.quality import Finding

# Telemetry whose account nobody gave.
NO_ACCOUNT = ("", "unknown")
# Clouds whose instance ids are unique over all accounts.
_UNIQUE_IDS = ("aws",)


@dataclass(frozen=True, slots=True)
class Nodes:
    """The instances, and which telemetry belongs to which.

    `nodes`: node_id, cloud, account, node_key, instance_id, region, instance_type, gpu_model,
    gpu_count, tags, workload_class, is_billed, and seen_gpus of those without a bill. `streams`:
    cloud, account, instance_id as the telemetry spells them, and node_id. `findings` tells of
    telemetry that found no instance.
    """

    nodes: pd.DataFrame
    streams: pd.DataFrame
    findings: tuple[Finding, ...]


def last_segment(identity: str) -> str:
    """The last segment of a resource id, ARN or path, in lower case.

    >>> last_segment("arn:aws:ec2:us-east-1:111122223333:instance/i-0AB")
    'i-0ab'
    >>> last_segment("//compute.googleapis.com/projects/p/zones/z/instances/train-1")
    'train-1'
    """
    return re.split(r"[/:]", identity.rstrip("/"))[-1].lower()


def match(billed: pd.DataFrame, seen: pd.DataFrame, billed_accounts: set[tuple[str, str]]) -> Nodes:
    """The instances of the bill and of accounts without a bill, and the telemetry of each.

    `billed`: one row per instance (cloud, account, node_key, instance_id, resource_name, region,
    ...). `seen`: one row per telemetry instance (cloud, account, instance_id, region, readings,
    gpus, ...). `billed_accounts`: (cloud, account) pairs that have a bill.
    """
    billed = billed.sort_values(["cloud", "account", "node_key"]).reset_index(drop=True)
    billed = billed.assign(node_id=range(len(billed)), is_billed=True)
    index = _index(billed)
    billed_clouds = {cloud for cloud, _ in billed_accounts}
    streams: list[dict[str, Any]] = []
    alone: list[dict[str, Any]] = []
    orphans: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    order = ["cloud", "account", "instance_id"]
    for row in records(seen.sort_values(order)):
        stream = {name: row[name] for name in order}
        found = _candidates(row, index)
        has_bill = (row["cloud"], row["account"].lower()) in billed_accounts or (
            row["account"] in NO_ACCOUNT and row["cloud"] in billed_clouds
        )
        if len(found) == 1:
            streams.append({**stream, "node_id": found[0]})
        elif found or has_bill:
            what = "ambiguous_instance" if found else "measured_not_billed"
            orphans[(what, row["cloud"], row["account"])].append(int(row["readings"]))
        else:
            node = len(billed) + len(alone)
            streams.append({**stream, "node_id": node})
            alone.append(_alone(row, node))
    nodes = pd.concat([billed, pd.DataFrame(alone)], ignore_index=True) if alone else billed
    return Nodes(
        nodes,
        pd.DataFrame(streams, columns=[*order, "node_id"]),
        tuple(_finding(*key, counts) for key, counts in sorted(orphans.items())),
    )


def _index(billed: pd.DataFrame) -> dict[tuple[str, str], list[tuple[str, str, int]]]:
    """Account, region and node_id of the instances by cloud and any name they go by."""
    index: dict[tuple[str, str], list[tuple[str, str, int]]] = defaultdict(list)
    for row in records(billed):
        names = {row["node_key"], last_segment(row["node_key"])}
        if row["resource_name"]:
            names |= {row["resource_name"].lower(), last_segment(row["resource_name"])}
        for name in names - {""}:
            place = (row["account"].lower(), row["region"] or "", row["node_id"])
            index[(row["cloud"], name)].append(place)
    return index


def _candidates(
    row: dict[str, Any], index: dict[tuple[str, str], list[tuple[str, str, int]]]
) -> list[int]:
    """Node ids that the telemetry instance can mean; more than one is ambiguous."""
    full = row["instance_id"].lower()
    for name in (full, last_segment(full)):
        places = index.get((row["cloud"], name), [])
        account = row["account"].lower()
        if account in NO_ACCOUNT or row["cloud"] in _UNIQUE_IDS or "/" in name:
            same = [place for place in places if place[0] == account] or places
        else:
            same = [place for place in places if place[0] == account]
        if len(same) > 1 and row["region"]:
            same = [place for place in same if place[1] == row["region"].lower()] or same
        if same:
            return sorted(place[2] for place in same)
    return []


def _alone(row: dict[str, Any], node: int) -> dict[str, Any]:
    """An instance that only telemetry knows."""
    return {
        "node_id": node,
        "cloud": row["cloud"],
        "account": row["account"] or "unknown",
        "node_key": row["instance_id"].lower(),
        "instance_id": row["instance_id"],
        "resource_name": "",
        "region": row["region"],
        "instance_type": row["instance_type"],
        "gpu_model": row["gpu_model"],
        "seen_gpus": row["gpus"],
        "tags": "",
        "workload_class": row["workload_class"],
        "is_billed": False,
    }


def _finding(what: str, cloud: str, account: str, counts: list[int]) -> Finding:
    detail = {
        "ambiguous_instance": "telemetry whose instance id names several billed instances",
        "measured_not_billed": "telemetry of instances that are on no bill of this account",
    }[what]
    return Finding(
        check=what,
        scope=f"{cloud}/{account}",
        severity="warning",
        count=sum(counts),
        detail=f"{len(counts)} instances: {detail}; its GPU-hours are not counted",
    )
