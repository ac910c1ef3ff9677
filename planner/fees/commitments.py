"""Google Cloud commitments: fees on rows of their own, credits on the usage that they cover.

A resource commitment has a fee for every committed resource, used or not, in any project; a credit
leaves (nearly) nothing of the cost of the usage that it covers. GPUs, cores, memory and SSD are
committed to apart, and settle hour by hour. A spend commitment of the older kind has its fee at
full price and credits on usage: what of it stood unused the export does not state, so that the
usage of an hour bears the whole fee of the hour. One of the newer kind leaves on its fee what
nothing used, and stands among unused commitments already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from data.frames import records
from data.shares import EXACT, scaled
from planner.billed_hours import evenly
from planner.fees.resources import SPEND, SSD, counts_gpus, is_of_gpu_machines, resource_of
from planner.fees.settle import Terms, Unspread

if TYPE_CHECKING:
    from planner.scratch import Scratch

NOT_SPREAD = "commitment_fee_not_spread"
_CLOUD = "gcp"
_POOL = ("payer", "place", "committed_to", "unit", "currency")
_ADDED = ("committed_to", "place", "unit", "pool")
_LISTED = {"pool": "text", "gpu_model": "text", "gpu_count": "int", "unused_as": "text",
           "always_of_gpus": "bool"}  # fmt: skip
_HOUR_UNITS = ("hours", "h", "hrs", "hr")
_NO_QUANTITY = "their rows do not say how much is committed to"
_OTHER_UNIT = "they are in another unit than the usage that they cover"
_NO_LIST = "the usage that they cover has no list price to divide them by"


def has_fees(rows: Any, tables: Scratch) -> bool:
    """Whether the charges hold anything for `commitment_terms` to do."""
    found = rows.filter(_is_fee(rows) | _is_covered(rows)).limit(1)
    return bool(tables.connection.execute(found.count()))


def with_newer_fees(rows: Any, tables: Scratch) -> Any:
    """The charges, with fees of newer spend commitments marked unused in hours of no use too.

    The fee of such a commitment is what nothing used, and carries an offset in hours of use.
    """
    fees = rows.filter((rows.cloud == _CLOUD) & (rows.charge_type == "fee") & rows.is_unused)
    names = tables.fetch(fees.select("commitment").distinct())["commitment"]
    newer = sorted(str(name) for name in names if name)
    if not newer:
        return rows
    return rows.mutate(
        is_unused=rows.is_unused | (_is_fee(rows) & rows.commitment.isin(newer))
    )  # fmt: skip


def commitment_terms(rows: Any, shapes: pd.DataFrame, tables: Scratch) -> Terms:
    """The Terms of the commitments: fees by resource and place, and the usage that they cover."""
    is_mine = _is_fee(rows) | _is_covered(rows)
    named = tables.keep(_named(rows.filter(is_mine), tables))
    claims, rest = _claims_and_rest(named)
    claims, rest = tables.keep(claims), rows.filter(~is_mine).union(rest.select(*rows.columns))
    fees = named.filter(_is_fee(named) & named.committed_to.notnull())
    listed, unspread = _pools(_fee_sums(fees, tables), _use_sums(claims, tables), shapes)
    pools = tables.upload(pd.DataFrame(listed, columns=list(_LISTED)), _LISTED)
    paid = tables.keep(_paid(fees, pools))
    return Terms(paid, claims, rest, tuple(unspread))


def _is_fee(rows: Any) -> Any:
    of_commitment = rows.option.isin(("reserved", "savings_plan")) & (rows.dataset != "focus")
    return (rows.cloud == _CLOUD) & (rows.charge_type == "fee") & ~rows.is_unused & of_commitment


def _is_covered(rows: Any) -> Any:
    """Whether credits of a commitment pay for the row; stores of before say it by their status."""
    stated = (rows.covered != 0).fill_null(False)
    told = rows.covered.isnull() & rows.is_used & (rows.option == "reserved")
    here = (rows.cloud == _CLOUD) & (rows.charge_type == "usage") & (rows.dataset != "focus")
    return here & (stated | told)


def _named(rows: Any, tables: Scratch) -> Any:
    """The charges with the resource that their SKU names, and the pool that it makes up."""
    texts = [str(text) for text in tables.fetch(rows.select("sku_text").distinct())["sku_text"]]
    resources = {text: resource_of(text) for text in sorted(texts)}
    frame = pd.DataFrame({"sku": list(resources), "committed_to": list(resources.values())})
    uploaded = tables.upload(frame, {"sku": "text", "committed_to": "text"})
    named = rows.left_join(uploaded, rows.sku_text == uploaded.sku).drop("sku")
    # A spend commitment covers any resource: its usage shows by the way in which it was bought.
    by_spend = (named.option == "savings_plan") | (named.committed_to == SPEND)
    unit = named.usage_unit.strip().lower()
    unit = ibis.ifelse(unit.isin(_HOUR_UNITS), "hour", unit)
    named = named.mutate(
        committed_to=ibis.ifelse(by_spend.fill_null(False), SPEND, named.committed_to),
        place=ibis.ifelse(by_spend.fill_null(False), "", named.region),
        unit=ibis.ifelse(by_spend.fill_null(False), "", unit),
    )
    pool = ibis.literal("cud")
    for part in _POOL:
        pool = pool + "|" + named[part]
    return named.mutate(pool=pool)


def _claims_and_rest(named: Any) -> tuple[Any, Any]:
    """The covered parts, and every charge without the covered GPU-hours.

    A row that is covered in part is two: the part is bought with the commitment, the rest by the
    hour. What its credits leave to be paid is of the rest; so it is of cores, memory and disk.
    """
    is_covered = _is_covered(named)
    covered = named.filter(is_covered)
    quantity = ibis.coalesce(covered.covered, covered.quantity).cast("float64")
    ratio = quantity / covered.quantity.cast("float64").nullif(0.0)
    share = ibis.coalesce(ibis.least(1.0, ibis.greatest(0.0, ratio)), 1.0)
    covered = covered.mutate(
        share=share,
        part=ibis.ifelse(share < 1, scaled(covered.gpu_hours, share), covered.gpu_hours),
        weight=ibis.ifelse(
            covered.committed_to == SPEND,
            ibis.coalesce(covered.list_cost.cast("float64"), 0.0) * share,
            quantity,
        ),
    )
    zero = ibis.literal(0).cast(EXACT)
    by_spend = (covered.committed_to == SPEND).fill_null(False)
    claims = covered.mutate(
        gpu_hours=covered.part.cast(EXACT),
        cost=ibis.ifelse(covered.share < 1, zero, covered.cost),
        option=ibis.ifelse(by_spend, "savings_plan", "reserved"),
    ).drop("share", "part")
    runs = covered.is_gpu & ~covered.is_unused
    is_partly = ~covered.is_unused & (covered.share < 1)
    partly = covered.filter(is_partly)
    committed = partly.option.isin(("reserved", "savings_plan"))
    left = partly.mutate(
        gpu_hours=ibis.ifelse(partly.is_gpu, partly.gpu_hours - partly.part, partly.gpu_hours).cast(
            EXACT
        ),
        option=ibis.ifelse(committed, "on_demand", partly.option),
        commitment=ibis.ifelse(committed, "", partly.commitment),
    )
    untouched = named.filter(~is_covered).select(*named.columns)
    untouched = untouched.union(covered.filter(~runs & ~is_partly).select(*named.columns))
    columns = [name for name in named.columns if name not in _ADDED]
    return claims, untouched.select(*columns).union(left.select(*columns))


def _fee_sums(fees: Any, tables: Scratch) -> list[dict[str, Any]]:
    sums = fees.group_by(list(_POOL)).aggregate(
        pool=fees.pool.max(),
        amount=fees.cost.sum().cast(EXACT),
        count=fees.count(),
        account=fees.account.max(),
        lacking=fees.quantity.isnull().any(),
    )
    return records(tables.fetch(sums.order_by(list(_POOL))))


def _use_sums(claims: Any, tables: Scratch) -> list[dict[str, Any]]:
    sums = claims.group_by(list(_POOL)).aggregate(
        weight=claims.weight.sum(), gpu_model=claims.gpu_model.max(where=claims.is_gpu)
    )
    return records(tables.fetch(sums))


def _pools(
    fees: list[dict[str, Any]], uses: list[dict[str, Any]], shapes: pd.DataFrame
) -> tuple[list[dict[str, Any]], list[Unspread]]:
    """The pools whose fees can be spread, with what their unused part is; and the other fees."""
    listed, unspread = [], []
    for fee in fees:
        resource = str(fee["committed_to"])
        if not (resource in (SPEND, SSD) or is_of_gpu_machines(resource)):
            continue
        same = [use for use in uses if all(use[k] == fee[k] for k in _POOL if k != "unit")]
        why = _obstacle(fee, same)
        if why is not None:
            unspread.append(
                Unspread(NOT_SPREAD, _CLOUD, fee["account"], fee["amount"], fee["currency"],
                         int(fee["count"]), why)
            )  # fmt: skip
            continue
        models = [use["gpu_model"] for use in same if use["gpu_model"]]
        is_gpu = counts_gpus(resource)
        listed.append(
            {
                "pool": fee["pool"],
                "gpu_model": (models or [_model(resource, shapes)])[0] if is_gpu else "",
                "gpu_count": 1 if is_gpu else None,
                "unused_as": "usage" if is_gpu else "fee",
                "always_of_gpus": is_of_gpu_machines(resource),
            }
        )
    return listed, unspread


def _obstacle(fee: dict[str, Any], uses: list[dict[str, Any]]) -> str | None:
    """Why the fees of a pool cannot be spread, None where they can."""
    if fee["committed_to"] == SPEND:
        return _NO_LIST if uses and not sum(use["weight"] for use in uses) else None
    if fee["lacking"]:
        return _NO_QUANTITY
    return _OTHER_UNIT if uses and fee["unit"] not in {use["unit"] for use in uses} else None


def _model(resource: str, shapes: pd.DataFrame) -> str:
    """The GPU model of a resource of which nothing ran, where its family has one model only."""
    mine = shapes[shapes["cloud"] == _CLOUD]
    named = mine[mine["gpu_family"].str.lower().isin(resource.split())]
    models = sorted(set(named["gpu_model"]))
    return str(models[0]) if len(models) == 1 else ""


def _paid(fees: Any, pools: Any) -> Any:
    """The paid rows of the fees, hour by hour, as `settle` wants them."""
    kept = fees.drop("gpu_model", "gpu_count").inner_join(pools, "pool")
    # Disks are bought with GPUs under one id, or, where the export has none, in one place.
    kept = kept.mutate(bought_with=kept.commitment.re_replace(r"\|[^|]*$", ""))
    gpu_fees = kept.filter(kept.always_of_gpus).select("bought_with").distinct()
    hourly = evenly(kept, ())
    with_gpus = (hourly.committed_to == SSD) & hourly.bought_with.isin(gpu_fees.bought_with)
    committed = hourly.quantity.cast("float64") * hourly.hour_share
    return hourly.select(
        "pool", "hour", "commitment", "option", "cloud", "account", "region", "gpu_model",
        "gpu_count", "currency", "delivery_id", "row_no", "dataset", "managed", "workload_class",
        "unused_as",
        fee=hourly.delivery_id + "|" + hourly.row_no.cast("string"),
        part=hourly.hour_share,
        committed=ibis.ifelse(hourly.committed_to == SPEND, ibis.null("float64"), committed),
        amount=hourly.cost,
        instance_type=ibis.literal(""),
        of_gpus=hourly.always_of_gpus | with_gpus,
    )  # fmt: skip
