"""Hours of instances that no bill knows: counted from telemetry, priced from the price book.

Used for clouds and accounts without billing. The price is the list price of an hour on demand, an
estimate that is marked so; where the book has none, the cost is unknown, not 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from data import money
from data.frames import records
from data.quality import Finding
from data.shares import EXACT, times
from planner.states import main_class

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from planner.scratch import Scratch

RATE_COLUMNS = (
    "cloud", "region", "instance_type", "gpu_model", "gpu_family", "usd_per_gpu_hour",
)  # fmt: skip


def rates_from_offers(
    offers: pd.DataFrame, shapes: pd.DataFrame, default_family: str = "H100"
) -> pd.DataFrame:
    """Frame of RATE_COLUMNS: the on-demand price of a GPU-hour, from the used offers.

    One row per (cloud, region, instance_type), the cheapest where the book has several; rows with
    an empty region (the median over regions) for regions the book lacks; and rows with an empty
    type, the median over the machines of `default_family`, for telemetry that names no type.
    """
    used = offers[(offers["status"] == "used") & (offers["purchase_option"] == "on_demand")]
    used = used[used["usd_per_instance_hour"].notna()]
    rates = pd.DataFrame(
        {
            "cloud": used["provider"],
            "region": used["region"].str.lower(),
            "instance_type": used["instance_type"].str.lower(),
            "gpu_model": used["gpu_model"],
            "usd_per_gpu_hour": [
                money.quotient(price, int(gpus))
                for price, gpus in zip(used["usd_per_instance_hour"], used["gpus"], strict=True)
            ],
        }
    )
    family = shapes.drop_duplicates("gpu_model").set_index("gpu_model")["gpu_family"]
    rates["gpu_family"] = rates["gpu_model"].map(family)
    ordered = rates.sort_values(["cloud", "region", "instance_type", "usd_per_gpu_hour"])
    exact = ordered.drop_duplicates(["cloud", "region", "instance_type"])
    anywhere = _medians(exact, ["cloud", "instance_type", "gpu_model", "gpu_family"])
    default = exact[exact["gpu_family"] == default_family]
    parts = [
        exact,
        anywhere,
        _medians(default, ["cloud", "region", "gpu_family"]),
        _medians(default, ["cloud", "gpu_family"]),
    ]
    every = [part.reindex(columns=list(RATE_COLUMNS)).astype(object) for part in parts]
    merged = pd.concat([part for part in every if len(part)] or every[:1], ignore_index=True)
    return merged.where(merged.notna(), None)


def _medians(rates: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The lower median of the rates of each group, an amount that occurs in the book."""
    rows = [
        {**dict(zip(by, key, strict=True)), "usd_per_gpu_hour": _lower_median(group)}
        for key, group in rates.groupby(by)["usd_per_gpu_hour"]
    ]
    return pd.DataFrame(rows, columns=[*by, "usd_per_gpu_hour"])


def _lower_median(values: pd.Series) -> Decimal:
    ordered = sorted(values)
    middle: Decimal = ordered[(len(ordered) - 1) // 2]
    return middle


def with_types(
    nodes: pd.DataFrame, shapes: pd.DataFrame, rates: pd.DataFrame, default_family: str = "H100"
) -> tuple[pd.DataFrame, list[Finding]]:
    """The nodes, those of no bill and no stated type with the type they look like; what was taken.

    That is the machine of their GPU's family sold in their region with the fewest GPUs that hold
    the GPUs seen, the cheapest of several. Where there is none the type stays empty.
    """
    sold = _sold(shapes, rates)
    family_of = dict(zip(shapes["gpu_model"], shapes["gpu_family"], strict=True))
    kinds, taken = [], Counter[tuple[str, str]]()
    for row in records(nodes):
        kind = row["instance_type"] or ""
        if not row["is_billed"] and not kind:
            family = family_of.get(row["gpu_model"] or "", default_family)
            place = sold.get((row["cloud"], (row["region"] or "").lower(), family), [])
            kind = min((one for one in place if one[0] >= row["seen_gpus"]), default=(0, 0, ""))[2]
            if kind:
                taken[row["cloud"], kind] += 1
        kinds.append(kind)
    detail = "telemetry names no machine type: {} instances count as {}, by region and GPUs"
    found = [
        Finding("assumed_machine_type", cloud, "info", detail.format(count, kind), count)
        for (cloud, kind), count in sorted(taken.items())
    ]
    return nodes.assign(instance_type=pd.Series(kinds, dtype=object)), found


def _sold(
    shapes: pd.DataFrame, rates: pd.DataFrame
) -> dict[tuple[str, str, str], list[tuple[int, Any, str]]]:
    """GPUs, price and name of the machines sold, by cloud, region and GPU family."""
    known = {
        (row["cloud"], row["instance_type"].lower()): row
        for row in records(shapes)
        if not row.get("managed_service")
    }
    sold: dict[tuple[str, str, str], list[tuple[int, Any, str]]] = defaultdict(list)
    for row in records(rates):
        shape = known.get((row["cloud"], row["instance_type"] or ""))
        if shape is not None and row["region"]:
            place = (row["cloud"], row["region"], shape["gpu_family"])
            offer = (int(shape["gpus"]), row["usd_per_gpu_hour"], shape["instance_type"])
            sold[place].append(offer)
    return sold


def price(nodes: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """The nodes with `rate` (USD per GPU-hour, null where the book has none) and what it implies.

    `gpu_family` comes with the rate. Only nodes that no bill knows are priced.
    """
    table: dict[tuple[str, str, str], tuple[object, object, object]] = {}
    for row in records(rates):
        key = (row["cloud"], row["region"] or "", row["instance_type"] or "")
        table.setdefault(key, (row["usd_per_gpu_hour"], row["gpu_model"], row["gpu_family"]))
    found = []
    for row in records(nodes):
        region, kind = (row["region"] or "").lower(), (row["instance_type"] or "").lower()
        keys = [(row["cloud"], region, kind), (row["cloud"], "", kind)]
        hits = [table[key] for key in keys if key in table and not row["is_billed"]]
        found.append(hits[0] if hits else (None, None, None))
    priced = nodes.assign(
        rate=pd.Series([hit[0] for hit in found], dtype=object),
        gpu_family=pd.Series([hit[2] for hit in found], dtype=object),
    )
    model = pd.Series([hit[1] for hit in found], dtype=object)
    priced["gpu_model"] = (
        priced["gpu_model"].astype(object).where(priced["gpu_model"].fillna("") != "", model)
    )
    return priced


def segments(readings: Any, nodes: Any, tables: Scratch, order: Sequence[str] = ()) -> Any:
    """Table like `billed_hours.segments`, for nodes without a bill.

    In every hour in which any GPU of an instance reported, the instance has as many GPU-hours as
    GPUs reported on that day: a GPU that falls silent for some hours is still there.
    """
    alone = nodes.filter(~nodes.is_billed)
    own = readings.inner_join(alone.select("node_id", "rate"), "node_id")
    own = own.mutate(day=own.hour // 24)
    per_day = own.group_by(["node_id", "day"]).aggregate(gpus=own.gpu_uuid.nunique())
    hours = own.group_by(["node_id", "hour", "day", "rate"]).aggregate(
        workload_class=main_class(own, order)
    )
    sized = tables.keep(hours.inner_join(per_day, ["node_id", "day"]))
    return sized.select(
        node_id=sized.node_id,
        hour=sized.hour,
        option=ibis.literal("unknown"),
        commitment=ibis.literal(""),
        currency=ibis.literal("USD"),
        gpu_hours=sized.gpus.cast(EXACT),
        cost=times(sized.rate, sized.gpus),
        estimated=ibis.literal(True),
        gpu_count=sized.gpus,
        workload_class=sized.workload_class,
    )
