"""Which workload class a row belongs to, and which offers suit a class."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pandas as pd

from data.catalogue import gpu_family as gpu_family_of
from data.frames import records
from planner.matching import compiled, json_member, whole_text
from planner.settings import UNCLASSIFIED, MatchRule, OfferRule, WorkloadClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INTERCONNECTS = ("none", "pcie", "nvlink", "nvswitch")

# A condition of a rule, and the columns that it looks at: any of those that a table has.
_COLUMNS = {
    "account": ("account",),
    "cloud": ("source", "cloud"),
    "region": ("region",),
    "instance_type": ("instance_type",),
    "resource_name": ("resource_name",),
    "resource_id": ("resource_id", "instance_id"),
    "service": ("service",),
    "namespace": ("namespace",),
    "node": ("node",),
}
# Telemetry states these in columns of their own; a rule on the tag of that name sees them.
_TAG_COLUMNS = ("team", "user")


def assign(rows: ibis.Table, classes: Sequence[WorkloadClass]) -> ibis.Table:
    """The table with a column `workload_class`: the first class that matches, or 'unclassified'."""
    ruled = [one for one in classes if one.name != UNCLASSIFIED]
    if not ruled:
        return rows.mutate(workload_class=ibis.literal(UNCLASSIFIED))
    branches = []
    for one in ruled:
        tests = [
            [rows[column].cast("string").re_search(pattern) for column, pattern in any_of]
            for any_of in _conditions(one.match, rows.columns)
        ]
        met = [_any(alternatives) for alternatives in tests]
        branches.append((functools.reduce(operator.and_, met, ibis.literal(True)), one.name))
    return rows.mutate(workload_class=ibis.cases(*branches, else_=UNCLASSIFIED))


def assign_frame(rows: pd.DataFrame, classes: Sequence[WorkloadClass]) -> pd.DataFrame:
    """The frame with a column `workload_class`, by the same rules as `assign`."""
    found = np.full(len(rows), UNCLASSIFIED, dtype=object)
    for one in reversed([one for one in classes if one.name != UNCLASSIFIED]):
        met = np.ones(len(rows), dtype=bool)
        for any_of in _conditions(one.match, tuple(rows.columns)):
            hits = [_hits(rows[column], pattern) for column, pattern in any_of]
            met &= functools.reduce(operator.or_, hits, np.zeros(len(rows), dtype=bool))
        found[met] = one.name
    return rows.assign(workload_class=pd.Series(found, index=rows.index, dtype="str"))


def eligible(
    one: WorkloadClass, offers: pd.DataFrame, shapes: pd.DataFrame, gpu_family: str
) -> list[str]:
    """Ids of the offers on which the class may run, sorted.

    `offers` is a frame of OFFERS or of `prices.offer_table`; an id is provider/region/type. A
    machine type that no shape describes is judged by the offer's own columns, and where those do
    not say what a rule asks for, it does not suit.
    """
    known = {(row["cloud"], row["instance_type"]): row for row in records(shapes)}
    places = offers.drop_duplicates(["provider", "region", "instance_type"])
    suited = [
        "/".join((row["provider"], row["region"], row["instance_type"]))
        for row in records(places)
        if _suits(one.offers, _described(row, known), gpu_family)
    ]
    return sorted(suited)


def _conditions(rule: MatchRule, columns: Iterable[str]) -> list[list[tuple[str, str]]]:
    """What must hold: for each condition its (column, pattern) pairs, of which one is enough."""
    present = set(columns)
    wanted: list[list[tuple[str, str]]] = []
    for name, candidates in _COLUMNS.items():
        globs = getattr(rule, name)
        if globs:
            pattern = whole_text(globs)
            wanted.append([(column, pattern) for column in candidates if column in present])
    for key, globs in rule.tags.items():
        if not globs:
            continue
        pairs = [("tags", json_member(key, globs))] if "tags" in present else []
        if key.lower() in _TAG_COLUMNS and key.lower() in present:
            pairs.append((key.lower(), whole_text(globs)))
        wanted.append(pairs)
    return wanted


def _any(alternatives: list[Any]) -> Any:
    filled = [one.fill_null(False) for one in alternatives]
    return functools.reduce(operator.or_, filled, ibis.literal(False))


def _hits(column: pd.Series, pattern: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    codes, texts = pd.factorize(column)
    search = compiled(pattern).search
    met = np.array([search(str(text)) is not None for text in texts] + [False], dtype=bool)
    return met[codes]  # a missing value has code -1: the last entry


def _described(row: dict[str, Any], known: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    """The offer with what the shape table knows of its machine type."""
    shape = known.get((row["provider"], row["instance_type"]))
    if shape is None:
        return {**row, "gpu_family": row.get("gpu_family") or gpu_family_of(str(row["gpu_model"]))}
    names = ("gpu_model", "gpu_family", "gpu_memory_gib", "interconnect", "managed_service")
    return {**row, **{name: shape[name] for name in names}}


def _suits(rule: OfferRule, offer: dict[str, Any], gpu_family: str) -> bool:
    if offer.get("managed_service"):
        return False
    models = (str(offer["gpu_model"]), str(offer["gpu_family"]))
    if not any(_is_one_of(text, rule.gpu_models or (gpu_family,)) for text in models):
        return False
    limits = (
        (rule.clouds, str(offer["provider"])),
        (rule.regions, str(offer["region"])),
        (rule.instance_types, str(offer["instance_type"])),
    )
    if any(globs and not _is_one_of(text, globs) for globs, text in limits):
        return False
    memory = offer.get("gpu_memory_gib")
    if rule.gpu_memory_gib and (memory is None or float(memory) < rule.gpu_memory_gib):
        return False
    return _rank(offer.get("interconnect")) >= _rank(rule.interconnect or "none")


def _is_one_of(text: str, globs: Sequence[str]) -> bool:
    return compiled(whole_text(globs)).search(text) is not None


def _rank(interconnect: object) -> int:
    """Order of an interconnect; one that is not known is no better than none."""
    return INTERCONNECTS.index(interconnect) if interconnect in INTERCONNECTS else 0
