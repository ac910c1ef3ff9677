"""Google Cloud commitments by name: what an export does not name gets an id of its own.

The fee of a commitment that the export does not name is told by its project, region and resource,
so that what stands unused in one place or of one machine is never told as another's. A spend
commitment of the newer kind leaves on its fee what nothing used, and its usage, at its discounted
price, names no commitment: it is of the one plan of its billing account.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from planner.fees.resources import SPEND, resource_of

if TYPE_CHECKING:
    from planner.scratch import Scratch

_CLOUD = "gcp"
_KINDS = ("reserved", "savings_plan")
_PREFIX = re.compile(r"^\s*commitment\b(?:\s*-\s*dollar based)?(?:\s*v\d+)?\s*:?\s*")
# What would read as a path or an ARN: an id is compared by its last segment.
_MARKS = re.compile(r"[/:|]+")


def name_of(text: str) -> str:
    """What a fee's SKU text says that is committed to, as a part of an id.

    >>> name_of("Commitment v1: Nvidia H100 80GB GPU running in Iowa for 1 Year")
    'gpu 80gb h100'
    >>> name_of("Commitment - dollar based v1: Compute flexible for 1 year")
    'spend compute flexible for 1 year'
    """
    resource = resource_of(text)
    if resource is not None and resource != SPEND:
        return resource
    words = " ".join(text.lower().split())
    plain = " ".join(_MARKS.sub(" ", _PREFIX.sub("", words)).split())
    return f"{SPEND} {plain}" if resource == SPEND else plain


def with_ids(rows: Any, tables: Scratch) -> Any:
    """The charges; fees of Google commitments without an id get `project|region|resource`.

    Usage of a newer spend commitment gets the id of its billing account's plan where it has one
    such plan; where it has several, what they leave unused counts as of GPUs if GPUs use them.
    """
    fees = _fees(rows)
    nameless = rows.filter(fees & (rows.commitment == ""))
    texts = sorted(str(text) for text in tables.fetch(nameless.select("sku_text").distinct())
                   ["sku_text"])  # fmt: skip
    if texts:
        named = [(text, name_of(text)) for text in texts]
        made = rows.account + "|" + rows.region.nullif("").coalesce("global") + "|"
        made = made + rows.sku_text.cases(*named, else_="")
        rows = rows.mutate(
            commitment=ibis.ifelse(fees & (rows.commitment == ""), made, rows.commitment)
        )
        rows = tables.keep(rows)
    return _with_users(rows, tables)


def _fees(rows: Any) -> Any:
    """Whether a row is the fee of a Google commitment."""
    of_commitment = rows.option.isin(_KINDS) & (rows.dataset != "focus")
    return (rows.cloud == _CLOUD) & (rows.charge_type == "fee") & of_commitment


def _uses(rows: Any) -> Any:
    """Whether a row is usage at the price of a newer spend plan that it does not name."""
    is_usage = (rows.cloud == _CLOUD) & (rows.charge_type == "usage") & (rows.dataset != "focus")
    by_plan = (rows.option == "savings_plan") & rows.is_used & (rows.commitment == "")
    return is_usage & by_plan & ~(rows.covered != 0).fill_null(False)


def _with_users(rows: Any, tables: Scratch) -> Any:
    """The charges with newer spend plans at the usage that they discount."""
    left_over = rows.filter(_fees(rows) & rows.is_unused & (rows.option == "savings_plan"))
    plans = tables.fetch(left_over.select("payer", "commitment").distinct())
    if not len(plans):
        return rows
    ids: dict[str, list[str]] = {}
    for payer, name in sorted(plans.itertuples(index=False), key=str):
        ids.setdefault(str(payer), []).append(str(name))
    by_gpus = set(
        tables.fetch(rows.filter(_uses(rows) & rows.is_gpu).select("payer").distinct())["payer"]
    )
    listed = pd.DataFrame(
        [(payer, names[0] if len(names) == 1 else "") for payer, names in sorted(ids.items())],
        columns=["plan_payer", "plan"],
    )
    plan_of = tables.upload(listed, {"plan_payer": "text", "plan": "text"})
    joined = rows.left_join(plan_of, rows.payer == plan_of.plan_payer)
    name = ibis.coalesce(joined.plan, "")
    several = sorted(one for payer in by_gpus for one in ids.get(payer, ()) if len(ids[payer]) > 1)
    is_of_gpus = joined.commitment.isin(several) if several else ibis.literal(False)
    found = joined.mutate(
        commitment=ibis.ifelse(_uses(joined), name, joined.commitment),
        of_gpus=joined.of_gpus | (joined.is_unused & is_of_gpus),
    )
    return tables.keep(found.select(*rows.columns))
