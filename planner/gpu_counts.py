"""GPUs of machine types that were not known when the bill was loaded, counted when it is read.

A type of another GPU cloud becomes known when the user's own prices state its GPUs; no export has
to be loaded again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa

from data.shares import EXACT

if TYPE_CHECKING:
    import pandas as pd


def with_stated_gpus(billing: Any, shapes: pd.DataFrame) -> Any:
    """The charges, those of a known type without GPUs with its `gpu_count` and `gpu_hours`.

    `shapes` is a frame of GPU_SHAPES (`catalogue.with_stated`). GPU-hours are instance-hours times
    the GPUs of the type. A charge whose GPUs are known stays as it is, so that applying this twice
    changes nothing.
    """
    if not len(shapes):
        return billing
    table = pa.table(
        {
            "stated_type": shapes["cloud"].str.lower() + "|" + shapes["instance_type"].str.lower(),
            "stated_model": shapes["gpu_model"].astype(object),
            "stated_gpus": shapes["gpus"].astype("int64"),
        }
    )
    # Only charges that can gain GPUs are looked up: null is equal to no type.
    lacks = billing.gpu_count.isnull() & billing.gpu_hours.isnull()
    wanted = ibis.ifelse(lacks, billing.source + "|" + billing.instance_type.lower(), None)
    keyed = billing.mutate(wanted_type=wanted)
    known = ibis.memtable(table)
    joined = keyed.left_join(known, keyed.wanted_type == known.stated_type)
    hours = (joined.instance_hours.cast(EXACT) * joined.stated_gpus).cast(EXACT)
    return joined.mutate(
        gpu_count=ibis.coalesce(joined.gpu_count, joined.stated_gpus),
        gpu_model=ibis.coalesce(joined.gpu_model, joined.stated_model),
        gpu_hours=ibis.coalesce(joined.gpu_hours, hours),
    ).select(*billing.columns)
