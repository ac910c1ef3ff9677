"""Capacity Blocks: the fee of a block, paid at once, is what every hour of the block costs.

AWS bills a block as a fee on the day on which it starts (and a cancelled one as a refund beside
it); running hours then cost nothing, or only their operating system. Dates and count stand on no
bill: they come from the commitments table. Every block ends at 11:30 UTC, so its hours are
fractional. Hourly rate = net fee / (instances x block hours).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from data.frames import records
from data.shares import EXACT
from planner.fees.netting import landed
from planner.fees.settle import Terms, Unspread
from planner.nodes import last_segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.billed_hours import Span
    from planner.scratch import Scratch

NOT_SPREAD = "capacity_block_not_spread"
_OPTION = "capacity_block"
_CLOUD = "aws"
_SECONDS = 3600
_NO_BLOCK = (
    "the commitments table has no capacity_block with a count of this account, region, machine "
    "type and start day"
)
_BEFORE = "; they are of days before the first hour"
_AFTER = "; they are of days after the last hour"
# A Capacity Block lasts at most 182 days (EC2 User Guide, Capacity Blocks for ML, read 2026-11).
_LONGEST_HOURS = 182 * 24 + 24
_PAID = {
    "fee": "text", "pool": "text", "amount": "exact", "currency": "text", "commitment": "text",
    "account": "text", "region": "text", "instance_type": "text", "gpu_model": "text",
    "gpu_count": "int", "gpus": "float", "start": "int", "end": "int", "weight": "float",
    "delivery_id": "text", "row_no": "int", "dataset": "text",
    "workload_class": "text",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """A block that is owned: where it is, its time in seconds since 1970, and its GPUs."""

    id: str
    account: str
    region: str
    instance_type: str
    gpu_model: str
    instances: float
    gpus_each: int
    start: int
    end: int
    rate: float | None

    @property
    def hours(self) -> float:
        """Hours of the block, fractional."""
        return (self.end - self.start) / _SECONDS

    @property
    def place(self) -> str:
        """What machines in it have in common, where no reservation is named."""
        return "|".join(("block", self.account, self.region, self.instance_type.lower()))


def known_blocks(commitments: pd.DataFrame, shapes: pd.DataFrame) -> list[Block]:
    """The Capacity Blocks that the commitments table describes in full, in the order of ids."""
    sizes = {
        row["instance_type"].lower(): row for row in records(shapes[shapes["cloud"] == _CLOUD])
    }
    found = []
    for row in sorted(records(commitments), key=lambda one: str(one["id"])):
        shape = sizes.get(str(row["instance_type"] or "").lower())
        if row["cloud"] != _CLOUD or row["kind"] != _OPTION or not row["count"] or shape is None:
            continue
        rate = row["usd_per_instance_hour"]
        found.append(
            Block(
                id=str(row["id"]),
                account=str(row["account"]),
                region=str(row["region"] or ""),
                instance_type=str(shape["instance_type"]),
                gpu_model=str(shape["gpu_model"]),
                instances=float(row["count"]),
                gpus_each=int(shape["gpus"]),
                start=int(row["start"].timestamp()),
                end=int(row["end"].timestamp()),
                rate=None if rate is None else float(rate),
            )
        )
    return found


def net_fees(billing: Any, tables: Scratch) -> pd.DataFrame:
    """Frame of the net fees of blocks: one row per account, region, type, day and reservation.

    A refund that names no reservation is of a fee of its day that does.
    """
    fees = billing.filter(
        (billing.source == _CLOUD)
        & (billing.purchase_option == _OPTION)
        & billing.charge_type.isin(("fee", "refund"))
        & (billing.dataset != "focus")
        & billing.effective_cost.notnull()
        & billing.period_start.notnull()
    )
    named = fees.select(
        account=ibis.coalesce(fees.account, "unknown"),
        region=ibis.coalesce(fees.region, ""),
        instance_type=ibis.coalesce(fees.instance_type, "").lower(),
        day=fees.period_start.epoch_seconds() // 86_400,
        reservation=ibis.coalesce(fees.capacity_reservation_id, ""),
        currency=fees.currency,
        cost=fees.effective_cost,
        workload_class=fees.workload_class,
        delivery_id=fees.export_id,
        row_no=fees.source_row_no,
        dataset=fees.dataset,
    )
    by = ["account", "region", "instance_type", "day", "reservation", "currency"]
    sums = named.group_by(by).aggregate(
        amount=named.cost.sum().cast(EXACT),
        count=named.count(),
        delivery_id=named.delivery_id.max(),
        row_no=named.row_no.max(),
        dataset=named.dataset.max(),
        workload_class=named.workload_class.max(),
    )
    return landed(tables.fetch(sums.order_by(by)))


def block_terms(rows: Any, fees: pd.DataFrame, blocks: Sequence[Block], span: Span,
                tables: Scratch) -> Terms:  # fmt: skip
    """The Terms of the blocks: fees spread over the hours of each, and the machines that ran.

    `fees` come from `net_fees`, over the whole bill: a block may have begun before the span. The
    machines of a block name its reservation; where an export names none, they are told by
    account, region, machine type and hour, and then machines at no cost count too.
    """
    named = _reservations(rows, blocks, tables)
    pools = {one.id: one.place for one in blocks} | {block: block for block in named.values()}
    paid, unspread = _paid(fees, blocks, pools, span)
    table = tables.keep(_hours_of(tables.upload(pd.DataFrame(paid, columns=list(_PAID)), _PAID)))
    may_be = _may_be_of_block(rows)
    places = {one.place for one in blocks}
    marked = tables.keep(_with_pools(rows.filter(may_be), named, places, table, tables))
    is_claim = marked.pool.notnull()
    claims = marked.filter(is_claim).mutate(
        option=ibis.literal(_OPTION), weight=marked.gpu_hours.cast("float64")
    )
    # The hours of a block whose dates nobody states have no known cost: null, never 0.
    loose = marked.option == _OPTION
    rest = marked.filter(~is_claim).mutate(
        cost=ibis.ifelse(loose & (marked.cost == 0), ibis.null(EXACT), marked.cost),
        commitment=ibis.ifelse(
            loose & (marked.commitment == ""), marked.reservation, marked.commitment
        ),
    )
    others = rows.filter(~may_be).union(rest.select(*rows.columns))
    return Terms(table, claims, others, tuple(unspread))


def _runs(rows: Any) -> Any:
    return rows.is_gpu & (rows.charge_type == "usage") & ~rows.is_unused


def _may_be_of_block(rows: Any) -> Any:
    """Whether a charge is of a machine in a block, or of one that costs nothing by the hour."""
    free = (rows.cost == 0).fill_null(False) & (rows.reservation == "")
    bought = (rows.option == _OPTION) | ((rows.option == "on_demand") & free)
    return _runs(rows) & (rows.cloud == _CLOUD) & (rows.dataset != "focus") & bought


def _reservations(rows: Any, blocks: Sequence[Block], tables: Scratch) -> dict[str, str]:
    """The reservations that charges name, and the block that each is."""
    known = {last_segment(one.id): one.id for one in blocks}
    used = rows.filter((rows.cloud == _CLOUD) & (rows.reservation != "") & _runs(rows))
    texts = tables.fetch(used.select("reservation").distinct())["reservation"]
    found = {str(text): known.get(last_segment(str(text))) for text in texts}
    return {text: block for text, block in sorted(found.items()) if block is not None}


def _paid(
    fees: pd.DataFrame, blocks: Sequence[Block], pools: dict[str, str], span: Span
) -> tuple[list[dict[str, Any]], list[Unspread]]:
    """One row per fee and block that it pays for; and the fees of the span that stay."""
    paid: list[dict[str, Any]] = []
    unspread = []
    every = records(fees)
    named = {last_segment(fee["reservation"]) for fee in every if fee["amount"] > 0}
    for number, fee in enumerate(every):
        if not fee["amount"]:
            continue  # bought and given back
        bought = [one for one in blocks if _pays(fee, one)]
        if not fee["reservation"]:
            # Blocks that a fee names have theirs.
            others = [one for one in bought if last_segment(one.id) not in named]
            bought = others or bought
        rates = [one.rate for one in bought]
        for one in bought:
            size = one.instances * one.hours * (one.rate if all(rates) and one.rate else 1.0)
            paid.append(
                {
                    **{name: fee[name] for name in ("amount", "currency", "account", "region")},
                    **{name: fee[name] for name in ("delivery_id", "row_no", "dataset")},
                    "workload_class": fee["workload_class"],
                    "fee": f"block {number}",
                    "pool": pools[one.id],
                    "commitment": one.id,
                    "instance_type": one.instance_type,
                    "gpu_model": one.gpu_model,
                    "gpu_count": one.gpus_each,
                    "gpus": one.instances * one.gpus_each,
                    "start": one.start,
                    "end": one.end,
                    "weight": size,
                }
            )
        if not bought and (edge := _edge(fee["day"], span)) is not None:
            unspread.append(
                Unspread(NOT_SPREAD, _CLOUD, fee["account"], fee["amount"], fee["currency"],
                         int(fee["count"]), _NO_BLOCK + edge, is_inside=not edge)
            )  # fmt: skip
    return paid, unspread


def _edge(day: int, span: Span) -> str | None:
    """Where the fee's day lies outside of the span, in words; None where it concerns no hour of it.

    A block that began before the span may last into it. A fee after its last hour is of a block of
    which the data has no hours yet: it is told too, up to the day that the data is read for.
    """
    first, end = day * 24, day * 24 + 24
    if end <= span.first:
        return _BEFORE if first + _LONGEST_HOURS > span.first else None
    if first >= span.end:
        return _AFTER if first < span.read_to else None
    return ""


def _pays(fee: dict[str, Any], block: Block) -> bool:
    """Whether the fee is of the block: by its reservation, else by place, type and start day."""
    if fee["reservation"]:
        return last_segment(fee["reservation"]) == last_segment(block.id)
    return (
        fee["account"].lower() == block.account.lower()
        and block.region.lower() in ("", fee["region"].lower())
        and fee["instance_type"] == block.instance_type.lower()
        and fee["day"] == block.start // 86_400
    )


def _hours_of(blocks: Any) -> Any:
    """The paid rows of each hour of the blocks, as `settle` wants them."""
    whole = blocks.mutate(
        all_weight=blocks.weight.sum().over(ibis.window(group_by="fee")),
        hour=ibis.range(
            blocks.start // _SECONDS, (blocks.end - 1) // _SECONDS + 1
        ).unnest(),
    )  # fmt: skip
    seconds = ibis.least(whole.end, (whole.hour + 1) * _SECONDS) - ibis.greatest(
        whole.start, whole.hour * _SECONDS
    )
    return whole.select(
        "fee", "pool", "hour", "amount", "currency", "commitment", "account", "region",
        "instance_type", "gpu_model", "gpu_count", "delivery_id", "row_no", "dataset",
        "workload_class",
        part=whole.weight / whole.all_weight * seconds / (whole.end - whole.start),
        committed=whole.gpus * seconds / _SECONDS,
        option=ibis.literal(_OPTION),
        cloud=ibis.literal(_CLOUD),
        managed=False,
        of_gpus=True,
        unused_as=ibis.literal("usage"),
    )  # fmt: skip


def _with_pools(
    rows: Any, named: dict[str, str], places: set[str], paid: Any, tables: Scratch
) -> Any:
    """Charges of `_may_be_of_block` with `pool`, the block they ran in; null if it is unknown."""
    machine = ibis.literal("block|") + rows.account + "|" + rows.region + "|"
    rows = rows.mutate(place=machine + rows.instance_type.lower())
    in_blocks = paid.filter(paid.pool.isin(sorted(places))) if places else paid.filter(False)
    hours = tables.keep(in_blocks.select(place="pool", block_hour="hour").distinct())
    if tables.connection.execute(hours.count()):
        rows = rows.left_join(hours, ["place", rows["first"] == hours.block_hour])
        rows = rows.drop("place_right")
        timed = rows.block_hour.notnull()
    else:
        rows = rows.mutate(block_hour=ibis.null("int64"))
        timed = ibis.literal(False)
    by_name = rows.reservation.cases(*sorted(named.items())) if named else ibis.null("string")
    is_block = rows.option == _OPTION
    pool = ibis.cases(
        (is_block & by_name.notnull(), by_name),
        (timed & (rows.reservation == ""), rows.place),
        else_=ibis.null("string"),
    )
    return rows.mutate(pool=pool).drop("place", "block_hour")
