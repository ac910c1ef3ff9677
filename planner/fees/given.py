"""What was paid for each commitment and block, and how much of it was used: the fees alone.

The hours of a machine bear more than the fee of what covers its GPUs: disks, licences, network. And
a commitment to cores has hours of no GPU of its own. So what a commitment costs is told by its fee.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from data.names import UNUSED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.billed_hours import Span
    from planner.fees.settle import Settled
    from planner.scratch import Scratch

COLUMNS = ("cloud", "commitment_id", "purchase_option", "currency", "instance_id", "cost")


def given(settled: Settled, span: Span, tables: Scratch) -> pd.DataFrame:
    """Frame of COLUMNS: the used and the unused part of each fee of the span, by commitment.

    Only of commitments that GPUs use, or that are of GPUs. `instance_id` of an unused part is
    `commitment:ID`, that of a used one is "".
    """
    parts, paid = settled.parts, settled.paid
    of_gpus = paid.filter(paid.of_gpus).select("commitment").distinct()
    parts = parts.filter((parts.hour >= span.first) & (parts.hour < span.end))
    by = ["cloud", "commitment", "option", "currency"]
    sums = parts.group_by(by).aggregate(
        used=parts.cost.sum(where=parts.is_used),
        unused=parts.cost.sum(where=~parts.is_used),
        on_gpus=parts.is_gpu.any(),
    )
    is_mine = sums.on_gpus | sums.commitment.isin(of_gpus.commitment)
    found = tables.fetch(sums.filter(is_mine & (sums.commitment != "")).order_by(by))
    named = found.rename(columns={"commitment": "commitment_id", "option": "purchase_option"})
    used = named.assign(instance_id="", cost=named["used"])
    unused = named.assign(instance_id=UNUSED_PREFIX + named["commitment_id"], cost=named["unused"])
    both = pd.concat([used, unused], ignore_index=True)[list(COLUMNS)]
    return both[both["cost"].notna()].reset_index(drop=True)


def joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The frames of `given` as one."""
    each = [frame for frame in frames if len(frame)]
    return pd.concat(each, ignore_index=True) if each else pd.DataFrame(columns=list(COLUMNS))


def with_fees(hours: pd.DataFrame, fees: pd.DataFrame) -> pd.DataFrame:
    """The rows of FLEET_HOURS, with the fees instead of the hours of the commitments that have any.

    Hours without a known cost stay: what they cost is not known by a fee either.
    """
    key = ["cloud", "commitment_id", "currency"]
    paid = set(fees[key].itertuples(index=False, name=None))
    is_paid = [row in paid for row in hours[key].itertuples(index=False, name=None)]
    kept = hours[~(pd.Series(is_paid, index=hours.index, dtype=bool) & hours["cost"].notna())]
    return kept if fees.empty else pd.concat([kept, fees], ignore_index=True)
