"""Billed GPU-hours and their money: charges brought to hours, one row per way of paying.

The cost of an instance-hour is every usage charge of its resource in that hour, so that the core,
memory and disk rows of a cloud that bills them apart are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis

from data.hourly import first_hour, last_hour
from data.shares import EXACT, split
from planner import riders
from planner.states import main_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from planner.scratch import Scratch

_ATTRIBUTES = (
    "gpu_count", "instance_type", "gpu_model", "dataset", "delivery_id", "region",
)  # fmt: skip
_WAY = ("option", "commitment", "currency")
_MONEY = ("gpu_hours", "cost")
# How the GPU-hours of a charge of more than an hour were brought to hours: the machine ran all the
# time; as it was seen; as machines of its class were seen; evenly.
FULL, SEEN, LIKE, EVEN = "full", "seen", "like", "even"


@dataclass(frozen=True, slots=True)
class Span:
    """Hours since 1970, `[first, end)`; data is read to `until`, where that is later."""

    first: int
    end: int
    until: int | None = None

    @property
    def read_to(self) -> int:
        """The hour that data is read to."""
        return self.end if self.until is None else max(self.end, self.until)


def without_doubles(billing: Any, tables: Scratch) -> Any:
    """The charges without those of an actual-cost export whose amortized twin is there too.

    Both views hold the same hours and, in other columns, the same money.
    """
    unit = ["source", "billing_account", "billing_period"]
    pairs = tables.fetch(
        billing.group_by(unit)
        .aggregate(views=billing.dataset.nunique(where=billing.dataset.isin(_VIEWS)))
        .filter(ibis._.views == len(_VIEWS))
    )
    if not len(pairs):
        return billing
    key = billing.source + "|" + billing.billing_account + "|" + billing.billing_period
    doubled = ["|".join(row) for row in pairs[unit].itertuples(index=False)]
    return billing.filter(~((billing.dataset == "actual") & key.isin(doubled)))


_VIEWS = ("actual", "amortized")


def charges(billing: Any, span: Span) -> Any:
    """The charges that touch the span, in hours since 1970, texts not null.

    Adds `node_key` (identity of the resource within cloud and account), `is_gpu`, `first` and
    `last` (first and last hour touched) and renames to the words used here.
    """
    known = billing.filter(billing.period_start.notnull() & billing.period_end.notnull())
    # What another seller charges, as software of a marketplace, is no price of a machine.
    known = known.filter(known.seller.isnull())
    start, end = known.period_start.epoch_seconds(), known.period_end.epoch_seconds()
    shape = ibis.coalesce(known.instance_type, known.gpu_model, "")
    place = ibis.coalesce(known.region, "") + ":" + shape
    resource = ibis.coalesce(known.resource_id, "")
    no_money = ibis.literal(0).cast(EXACT)
    rows = known.select(
        cloud=known.source,
        account=ibis.coalesce(known.account, "unknown"),
        resource=resource,
        node_key=ibis.ifelse(resource == "", "unattributed:" + place, resource.lower()),
        resource_name=ibis.coalesce(known.resource_name, ""),
        region=ibis.coalesce(known.region, ""),
        instance_type=ibis.coalesce(known.instance_type, ""),
        gpu_model=ibis.coalesce(known.gpu_model, ""),
        gpu_count=known.gpu_count,
        managed=known.managed_service,
        option=known.purchase_option,
        commitment=ibis.coalesce(known.commitment_id, ""),
        reservation=ibis.coalesce(known.capacity_reservation_id, ""),
        is_unused=ibis.coalesce(known.commitment_status, "") == "unused",
        charge_type=known.charge_type,
        currency=known.currency,
        gpu_hours=known.gpu_hours,
        quantity=known.usage_qty,
        usage_unit=ibis.coalesce(known.usage_unit, ""),
        # Promotions and margins pay a bill; no machine is cheaper for them.
        cost=(known.effective_cost - ibis.coalesce(known.payment_credits, no_money)).cast(EXACT),
        list_cost=known.list_cost,
        covered=known.covered_qty,
        is_used=ibis.coalesce(known.commitment_status, "") == "used",
        payer=known.billing_account,
        sku_text=ibis.ifelse(
            known.source.isin(riders.IN_PARTS), ibis.coalesce(known.sku_description, ""), ""
        ),
        of_gpus=False,
        is_estimated=False,
        is_gpu=known.gpu_hours.notnull(),
        tags=ibis.coalesce(known.tags, ""),
        workload_class=known.workload_class,
        dataset=known.dataset,
        delivery_id=known.export_id,
        row_no=known.source_row_no,
        start=start,
        end=end,
        first=first_hour(start),
        last=last_hour(start, end),
    )
    return rows.filter((rows["first"] < span.end) & (rows["last"] >= span.first))


def usage(rows: Any) -> Any:
    """The charges for running machines; unused commitments, fees and taxes stand elsewhere."""
    runs = rows.filter((rows.charge_type == "usage") & ~rows.is_unused)
    nameless = (runs.resource == "") & ~runs.is_gpu & runs.gpu_count.isnull()
    return runs.filter(~nameless)


def instances(rows: Any, tables: Scratch, order: Sequence[str] = ()) -> pd.DataFrame:
    """Frame of the resources with GPU-hours: cloud, account, node_key and what they are."""
    gpu = rows.filter(rows.is_gpu)
    found = gpu.group_by(["cloud", "account", "node_key"]).aggregate(
        instance_id=ibis.ifelse(gpu.resource == "", gpu.node_key, gpu.resource).min(),
        resource_name=gpu.resource_name.max(),
        region=gpu.region.max(),
        instance_type=gpu.instance_type.max(),
        gpu_model=gpu.gpu_model.max(),
        tags=gpu.tags.max(),
        workload_class=main_class(gpu, order),
        managed=gpu.managed.any(),
    )
    return tables.fetch(found)


def segments(
    rows: Any, nodes: Any, presence: Any, tables: Scratch, order: Sequence[str] = ()
) -> Any:
    """Table of one row per instance, hour and way of paying: exact GPU-hours and cost.

    `rows` come from `usage`, `nodes` maps (cloud, account, node_key) to node_id, `presence` holds
    the (node_id, hour) pairs in which telemetry saw the instance. Charges of more than one hour
    are spread: over the hours in which it was seen, as far as its GPUs could bill them, the rest
    evenly over the others; where telemetry saw nothing of it, as machines of its class in its cloud
    were seen, else evenly. `grain` says which of these it was. Cost without GPU-hours of its own
    (cores, memory, disk, licences) goes with the GPU-hours of its hour (`riders`). A cost is null
    where the export states none for a GPU row. An hour from which corrections take more than was
    billed holds 0 GPU-hours and its money; `taken_back` are the GPU-hours below 0.
    """
    keys = ["cloud", "account", "node_key"]
    named = rows.inner_join(nodes.select("node_id", *keys), keys)
    named = named.mutate(option=riders.marked(named))
    short = named.filter(named["first"] == named["last"])
    long = tables.keep(named.filter(named["first"] < named["last"]))
    hourly = short.mutate(
        hour=short["first"],
        estimated=short.is_estimated,
        grain=ibis.ifelse(short.is_estimated, EVEN, ""),
    )
    columns = ["node_id", "hour", *_WAY, *_MONEY, "is_gpu", "estimated", "workload_class", "grain"]
    columns += _ATTRIBUTES
    parts = hourly.select(*columns)
    if tables.connection.execute(long.count()):
        seen = presence.inner_join(nodes.select("node_id", "cloud", "workload_class"), "node_id")
        profile = seen.group_by(["cloud", "workload_class", "hour"]).aggregate(
            machines=seen.count()
        )
        parts = parts.union(_spread(long, presence, profile, tables).select(*columns))
    ways = tables.keep(_grouped(parts, order))
    return _not_below_zero(riders.carried(ways, tables))


def evenly(rows: Any, amounts: Sequence[str]) -> Any:
    """The charges hour by hour, the long ones in even parts that add up: `hour`, `hour_share`.

    `hour_share` is the part of a charge that falls in the hour; `is_estimated` is set where a
    charge was divided.
    """
    short = rows.filter(rows["last"] <= rows["first"])
    long = rows.filter(rows["last"] > rows["first"])
    hours = long.mutate(hour=ibis.range(long["first"], long["last"] + 1).unnest())
    covered = ibis.least(hours.end, (hours.hour + 1) * 3600) - ibis.greatest(
        hours.start, hours.hour * 3600
    )
    hours = hours.mutate(hour_share=covered / (hours.end - hours.start), is_estimated=True)
    divided = split(hours, amounts, "hour_share", ["delivery_id", "row_no"], ["hour"])
    whole = short.mutate(hour=short["first"], hour_share=1.0)
    return whole.union(divided.select(*whole.columns))


def _grouped(parts: Any, order: Sequence[str]) -> Any:
    gpu = parts.is_gpu
    return parts.group_by(["node_id", "hour", *_WAY]).aggregate(
        gpu_hours=ibis.coalesce(parts.gpu_hours.sum(), 0).cast(EXACT),
        cost=ibis.ifelse(
            (gpu & parts.cost.isnull()).any(), ibis.null(EXACT), parts.cost.sum().cast(EXACT)
        ),
        has_gpus=gpu.any(),
        estimated=parts.estimated.any(),
        grain=parts.grain.max(where=gpu),
        workload_class=main_class(parts, order, gpu),
        **{name: parts[name].max(where=gpu) for name in _ATTRIBUTES},
    )


def _not_below_zero(ways: Any) -> Any:
    net = ways.gpu_hours.sum().over(ibis.window(group_by=["node_id", "hour"]))
    zero = ibis.literal(0).cast(EXACT)
    return ways.mutate(
        gpu_hours=ibis.ifelse(net < 0, zero, ways.gpu_hours).cast(EXACT),
        taken_back=ibis.ifelse(net < 0, ways.gpu_hours, zero).cast(EXACT),
    )


def _spread(long: Any, presence: Any, profile: Any, tables: Scratch) -> Any:
    """The long charges as one row per hour they cover, exact parts, `estimated`."""
    shares = tables.keep(_shares(long, presence, profile))
    keys = ["node_id", "start", "end"]
    hourly = long.inner_join(shares, keys)
    divided = split(hourly, _MONEY, "share", ["delivery_id", "row_no"], ["hour"])
    return divided.mutate(estimated=True)


def _shares(long: Any, presence: Any, profile: Any) -> Any:
    """Share of each hour in the charges of one resource and period (node_id, start, end)."""
    spans = long.group_by(["node_id", "start", "end"]).aggregate(
        total=long.gpu_hours.sum().cast("float64"),
        gpus=long.gpu_count.max().cast("float64"),
        cloud=long.cloud.max(),
        workload_class=long.workload_class.max(),
    )
    hours = spans.mutate(hour=ibis.range(spans.start // 3600, (spans.end - 1) // 3600 + 1).unnest())
    covered = ibis.least(hours.end, (hours.hour + 1) * 3600) - ibis.greatest(
        hours.start, hours.hour * 3600
    )
    hours = hours.mutate(covered=covered / 3600)
    marked = hours.left_join(presence.mutate(seen=1.0), ["node_id", "hour"])
    marked = marked.drop("node_id_right", "hour_right")
    marked = marked.left_join(profile, ["cloud", "workload_class", "hour"])
    marked = marked.mutate(
        seen=ibis.coalesce(marked.seen, 0.0) * marked.covered,
        like=ibis.coalesce(marked.machines, 0) * marked.covered,
    )
    group = ibis.window(group_by=["node_id", "start", "end"])
    sized = marked.mutate(
        seen_hours=marked.seen.sum().over(group),
        all_hours=marked.covered.sum().over(group),
        all_like=marked.like.sum().over(group),
    )
    even = sized.total / sized.all_hours
    # An instance cannot bill more GPU-hours in an hour than it has GPUs.
    sized = sized.mutate(top=ibis.greatest(ibis.coalesce(sized.gpus, even), even))
    grain = ibis.cases(
        (~(sized.total > 0).fill_null(False) | (even >= sized.top), FULL),
        (sized.seen_hours > 0, SEEN),
        (sized.all_like > 0, LIKE),
        else_=EVEN,
    )
    by_like = _capped(sized.mutate(grain=grain), group)
    unseen = by_like.all_hours - by_like.seen_hours
    share = ibis.cases(
        ((by_like.grain == SEEN) & (unseen > 0), _by_presence(by_like, unseen)),
        (by_like.grain == LIKE, by_like.like_share),
        else_=by_like.covered / by_like.all_hours,
    )
    shaped = by_like.mutate(share=share)
    kept = shaped.filter(shaped.share > 0)
    return kept.select("node_id", "start", "end", "hour", "share", "grain")


def _by_presence(sized: Any, unseen: Any) -> Any:
    """Shares by the hours in which the machine was seen, the rest over the others."""
    while_seen = ibis.least(sized.top, sized.total / sized.seen_hours)
    rest = (sized.total - while_seen * sized.seen_hours) / unseen
    return (
        ibis.ifelse(sized.seen > 0, while_seen, ibis.ifelse(rest > 1e-9, rest, 0.0))
        * sized.covered
        / sized.total
    )


def _capped(sized: Any, group: Any) -> Any:
    """The hours with `like_share`: as machines of the class were seen, within what it can bill.

    What an hour cannot hold goes to the others, by the room that is left in them.
    """
    room = sized.top * sized.covered
    taken = ibis.least(room, sized.total * sized.like / sized.all_like.nullif(0.0))
    first = sized.mutate(taken=taken, room=room - taken)
    left = first.total - first.taken.sum().over(group)
    more = left * first.room / first.room.sum().over(group).nullif(0.0)
    return first.mutate(like_share=(first.taken + ibis.coalesce(more, 0.0)) / first.total)
