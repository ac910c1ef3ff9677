"""Dividing exact amounts inside the engine: the parts always add up to the whole, digit by digit.

The only products that are taken on stored money or hours in a query. An amount of at most 10
places is multiplied by a share of at most 16 places, and the part is rounded at 10 places, half
away from zero. The largest part takes what rounding leaves over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from data.money import PRECISION, SCALE

if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT = f"decimal({PRECISION}, {SCALE})"
PART_PLACES = 10
SHARE_PLACES = 16
_PART = f"decimal({PRECISION}, {PART_PLACES})"
_COUNT = "decimal(9, 0)"
_SHARE = f"decimal({SHARE_PLACES + 2}, {SHARE_PLACES})"


@ibis.udf.scalar.builtin(name="multiply", signature=((_PART, _SHARE), EXACT))  # type: ignore[untyped-decorator]  # ibis has no types
def _multiply(amount: Any, share: Any) -> Any:
    """The exact product: Ibis itself has no type for decimals of two different scales."""


def scaled(amount: Any, share: Any) -> Any:
    """The amount times the share (0 to 1, a float), exact after rounding both as stated above."""
    return _multiply(amount.cast(_PART), share.cast(_SHARE)).round(PART_PLACES).cast(EXACT)


@ibis.udf.scalar.builtin(name="multiply", signature=((_PART, _COUNT), _PART))  # type: ignore[untyped-decorator]  # ibis has no types
def _multiply_count(amount: Any, count: Any) -> Any:
    """The exact product of an amount and a whole number."""


def times(amount: Any, count: Any) -> Any:
    """The amount, rounded at 10 places, times a whole number; exact."""
    return _multiply_count(amount.cast(_PART), count.cast(_COUNT)).cast(EXACT)


def split(
    rows: Any, amounts: Sequence[str], share: str, within: Sequence[str], order: Sequence[str]
) -> Any:
    """The rows with each amount replaced by the row's part of it; parts of a group sum exactly.

    In every group of `within` each amount column holds the same whole in all rows, and `share`
    (a float) sums to about 1. The row with the largest share, then first by `order`, takes the
    rest. An amount that is null stays null.
    """
    ranked = ibis.window(
        group_by=list(within), order_by=[rows[share].desc(), *(rows[name] for name in order)]
    )
    parts = rows.mutate(
        part_rank=ibis.row_number().over(ranked),
        **{f"part_{name}": scaled(rows[name], rows[share]) for name in amounts},
    )
    group = ibis.window(group_by=list(within))
    summed = parts.mutate(
        **{f"sum_{name}": parts[f"part_{name}"].sum().over(group) for name in amounts}
    )
    exact = {
        name: ibis.ifelse(
            summed.part_rank == 0,
            summed[name] - summed[f"sum_{name}"] + summed[f"part_{name}"],
            summed[f"part_{name}"],
        ).cast(EXACT)
        for name in amounts
    }
    return summed.mutate(**exact).select(*rows.columns)
