"""Paid capacity on which nothing ran: unused parts of commitments and capacity reservations.

It is free capacity, told apart from instances by the id `commitment:ID`. It has its cost and no
GPU-hours, so that the states of the fleet add up to what was billed; how many GPU-hours stood
unused is a finding of its own, where the export states the hours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.frames import records
from data.names import UNUSED_PREFIX
from data.quality import Finding
from data.shares import EXACT
from planner.billed_hours import evenly
from planner.riders import IN_PARTS

if TYPE_CHECKING:
    import pandas as pd

    from planner.billed_hours import Span
    from planner.scratch import Scratch

_GROUP = (
    "hour", "cloud", "account", "instance_id", "workload_class", "option", "commitment", "currency",
    "reason",
)  # fmt: skip
_DESCRIBED = ("region", "instance_type", "gpu_model", "gpu_count", "dataset", "delivery_id")
_DAY_SECONDS = 86_400
# A unit of hours, with the hours of one: `Hrs`, `1 Hour`, `10 Hours`, `1/Hour`.
_HOURS = r"(?i)^\s*([0-9]*)\s*/?\s*(?:hours?|hrs?|h)\s*$"


def gpu_commitments(rows: Any, commitments: pd.DataFrame, shapes: pd.DataFrame) -> Any:
    """The unused charges that belong to GPUs.

    A charge does when it names a GPU machine, when its commitment covered GPU-hours in the same
    bill, or when the commitments table says that it covers a machine type or family with GPUs. A
    spend plan that covers GPUs and other machines counts with all of its unused part.
    """
    unused = rows.filter(rows.is_unused & rows.charge_type.isin(("usage", "fee", "other")))
    covering = rows.filter(rows.is_gpu & (rows.commitment != "")).select("commitment").distinct()
    known = _gpu_ids(commitments, shapes)
    names_gpus = unused.gpu_count.notnull() | (unused.gpu_model != "") | unused.of_gpus
    covers = unused.commitment.isin(covering.commitment)
    if known:
        covers = covers | unused.commitment.isin(known) | unused.reservation.isin(known)
    return unused.filter(names_gpus | unused.is_gpu | covers)


def _gpu_ids(commitments: pd.DataFrame, shapes: pd.DataFrame) -> list[str]:
    """Ids of the owned commitments whose machine type or family has GPUs."""
    if not len(commitments):
        return []
    types = set(shapes["instance_type"].str.lower())
    families = set(shapes["family"].str.lower())
    by_type = commitments["instance_type"].astype("object").map(_lower).isin(types)
    by_family = commitments["family"].astype("object").map(_lower).isin(families)
    return sorted(commitments.loc[by_type | by_family, "id"].astype(str))


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else None


def findings(rows: Any, span: Span, tables: Scratch) -> list[Finding]:
    """GPU-hours that stood unused, by commitment and machine type, with what they cost.

    Counted are charges whose export states the unused hours of a machine type that is known, and
    the unused parts of fees that were spread. Where a cloud bills a machine in parts, the hours of
    a part are not those of a machine.
    """
    block = rows.usage_unit.re_extract(_HOURS, 1).nullif("").try_cast("int64").fill_null(1)
    stated = rows.filter(
        (rows.charge_type == "usage")
        & rows.usage_unit.re_search(_HOURS)
        & rows.gpu_count.notnull()
        & (~rows.cloud.isin(IN_PARTS) | rows.of_gpus)
        & (rows["first"] >= span.first)
        & (rows["first"] < span.end)
    ).mutate(hours=rows.quantity.cast("float64") * block * rows.gpu_count)
    stated = stated.mutate(
        id=ibis.cases(
            (stated.commitment != "", stated.commitment),
            (stated.reservation != "", stated.reservation),
            else_=stated.resource,
        ),
        machine=stated.instance_type.nullif("").coalesce(stated.gpu_model),
    )
    sums = stated.group_by(["cloud", "id", "machine", "currency"]).aggregate(
        hours=stated.hours.sum(), cost=stated.cost.sum()
    )
    return [
        Finding(
            "unused_capacity",
            f"{row['cloud']}/{row['id']}",
            "info",
            f"{row['hours']:,.2f} GPU-hours of {row['machine']} were paid for and nothing "
            "ran on them: idle dollars, and in no count of billed GPU-hours",
            round(row["hours"]),
            row["cost"],
            row["currency"],
        )
        for row in records(tables.fetch(sums))
        if (row["hours"] or 0) > 0
    ]


def unused_hours(rows: Any, span: Span, ends: dict[str, int], tables: Scratch) -> Any:
    """Table of the unused charges brought to hours, exact, one row per commitment and hour.

    `ends` gives per cloud the hour at which its bill ends: the monthly row of an open month holds
    what accrued so far, and is spread over the hours so far.
    """
    pieces = tables.keep(_named(rows, ends))
    both = evenly(pieces, ("gpu_hours", "cost"))
    both = both.filter((both.hour >= span.first) & (both.hour < span.end))
    return both.group_by(list(_GROUP)).aggregate(
        gpu_hours=ibis.greatest(both.gpu_hours.sum(), 0).cast(EXACT),
        cost=both.cost.sum().cast(EXACT),
        **{name: both[name].max() for name in _DESCRIBED},
        managed=both.managed.any(),
        estimated=both.is_estimated.any(),
    )


def _named(rows: Any, ends: dict[str, int]) -> Any:
    """The charges with the names they get in FLEET_HOURS, and their span cut at the bill's end."""
    is_commitment = rows.commitment != ""
    identity = ibis.cases(
        (is_commitment, rows.commitment),
        (rows.reservation != "", rows.reservation),
        (rows.resource != "", rows.resource),
        else_="unknown",
    )
    end = rows.end
    if ends:
        limit = ibis.cases(
            *((rows.cloud == cloud, hour * 3600) for cloud, hour in sorted(ends.items())),
            else_=rows.end,
        )
        is_open = (rows.end - rows.start > _DAY_SECONDS) & (limit > rows.start)
        end = ibis.ifelse(is_open, ibis.least(rows.end, limit), rows.end)
    return rows.mutate(
        instance_id=UNUSED_PREFIX + identity,
        reason=ibis.ifelse(is_commitment, "unused_commitment", "unused_reservation"),
        gpu_hours=ibis.coalesce(rows.gpu_hours, ibis.literal(0).cast(EXACT)),
        end=end,
        last=ibis.greatest(rows["first"], (end - 1) // 3600),
    )
