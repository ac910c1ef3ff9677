"""Dividing exact amounts inside the engine: the parts always add up to the whole, digit by digit.

The only products that are taken on stored money or hours in a query. An amount of at most 10
places is multiplied by a share of at most 16 places, and the part is rounded at 10 places, half
away from zero.
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
# A share is a quotient of floats: what it makes of an amount is exact to this part of the amount.
_FLOAT_ERROR = 4e-15
_ROUND_PLACES = 7
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

    In every group of `within` each amount column holds the same whole in all rows, and `share` is
    a float of 0 or more; a group without any share gives all to its first row. By `order`, the
    rows of a group follow each other: what they have been given together is, after every row, the
    whole times the share so far. So what rounding leaves over never gathers, and a run of rows
    that makes up an exact part of the whole is given exactly that. An amount that is null stays
    null.
    """
    by = [rows[name] for name in order]
    so_far = ibis.cumulative_window(group_by=list(within), order_by=by)
    weight = rows[share].cast(EXACT)
    shaped = rows.mutate(
        part_so_far=weight.sum().over(so_far),
        part_of=weight.sum().over(ibis.window(group_by=list(within))),
    )
    whole = shaped.part_of.cast("float64").nullif(0.0)
    reached = ibis.coalesce(shaped.part_so_far.cast("float64") / whole, 1.0)
    bounds = shaped.mutate(
        **{f"part_{name}": _bound(shaped[name], reached) for name in amounts},
    )
    steps = ibis.window(group_by=list(within), order_by=[bounds[name] for name in order])
    zero = ibis.literal(0).cast(EXACT)
    exact = {
        name: (
            bounds[f"part_{name}"] - ibis.coalesce(bounds[f"part_{name}"].lag().over(steps), zero)
        ).cast(EXACT)
        for name in amounts
    }
    return bounds.mutate(**exact).select(*rows.columns)


def _bound(amount: Any, reached: Any) -> Any:
    """The part of the amount up to a share: near a rounder number it is a float's error away."""
    fine = scaled(amount, ibis.least(1.0, reached))
    round_one = fine.round(_ROUND_PLACES).cast(EXACT)
    error = amount.cast("float64").abs() * _FLOAT_ERROR
    is_off = (fine - round_one).cast("float64").abs() <= error
    return ibis.ifelse(reached >= 1, amount, ibis.ifelse(is_off, round_one, fine)).cast(EXACT)
