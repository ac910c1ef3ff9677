"""Products and quotients of exact numbers as expressions, at a stated scale; and unit parsing."""

from __future__ import annotations

from typing import Any

import ibis

from providers.files.expressions import MONEY

# Places of each factor, half of the 26 of stored money: their product then fits it exactly.
FACTOR_PLACES = 13
QUOTIENT_PLACES = 10


def product(a: Any, b: Any) -> Any:
    """The product of two exact numbers: each rounded at 13 places, the product then exact."""
    factor = f"decimal(38, {FACTOR_PLACES})"
    return (a.cast(factor) * b.cast(factor)).cast(MONEY)


def quotient(a: Any, b: Any) -> Any:
    """The quotient a / b at 10 places; null where b is 0. By way of floats: exact below 100,000."""
    ratio = a.cast("float64") / b.cast("float64").nullif(0.0)
    return ratio.round(QUOTIENT_PLACES).cast(f"decimal(38, {QUOTIENT_PLACES})").cast(MONEY)


def null_money() -> Any:
    """A missing amount."""
    return ibis.null(MONEY)


def zero_money() -> Any:
    """An amount of exactly 0."""
    return ibis.literal("0").cast(MONEY)
