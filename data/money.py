"""Exact money and hours: reading, writing, and the only products and quotients on them.

Stored money is DECIMAL(38, 26). It is read by way of text, a float by its shortest text.
"""

from __future__ import annotations

import decimal
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

PRECISION = 38
SCALE = 26
INTEGER_DIGITS = PRECISION - SCALE
HOURS_PER_YEAR = 8760
MONTHS_PER_YEAR = 12
HOURS_PER_MONTH = HOURS_PER_YEAR / MONTHS_PER_YEAR

_CONTEXT = decimal.Context(prec=80, rounding=ROUND_HALF_EVEN)
_QUANTUM = Decimal(1).scaleb(-SCALE)
_LIMIT = Decimal(10) ** INTEGER_DIGITS


def exact(value: str | float | Decimal) -> Decimal:
    """The value as an exact decimal of at most 26 places; DataError if it is not one.

    >>> exact("6.123E-7")
    Decimal('6.123E-7')
    >>> exact(0.1)
    Decimal('0.1')
    """
    try:
        number = value if isinstance(value, Decimal) else Decimal(str(value).strip())
    except decimal.InvalidOperation:
        raise DataError(f"not a number: {value!r}") from None
    if not number.is_finite():
        raise DataError(f"not a finite number: {value!r}")
    # abs() would round to the 28 digits of the default context.
    is_small = number.copy_abs() < _LIMIT
    if is_small and number.as_tuple().exponent < -SCALE:  # type: ignore[operator]  # finite: an int
        number = number.quantize(_QUANTUM, context=_CONTEXT)
    if number.copy_abs() >= _LIMIT:
        raise DataError(f"amount of more than {INTEGER_DIGITS} integer digits: {value!r}")
    return number


def text(value: Decimal | None) -> str | None:
    """The decimal as JSON writes it: no trailing zeros, no exponent, no negative zero.

    >>> text(Decimal("30.00")), text(Decimal("-0.00")), text(Decimal("1E-7"))
    ('30', '0', '0.0000001')
    """
    if value is None:
        return None
    written = format(value, "f")
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return "0" if written in ("-0", "") else written


def total(values: Iterable[Decimal]) -> Decimal:
    """The exact sum: all 38 digits, where the built-in `sum` keeps 28.

    >>> total([Decimal("100.00000000000000000000000001"), Decimal(1)])
    Decimal('101.00000000000000000000000001')
    """
    result = Decimal(0)
    for value in values:
        result = _CONTEXT.add(result, value)
    return result


def product(a: Decimal, b: Decimal | float, places: int = 10) -> Decimal:
    """The product a x b, rounded half to even at `places`; the only product on money.

    >>> product(Decimal("98.32"), 0.5)
    Decimal('49.1600000000')
    """
    other = b if isinstance(b, Decimal) else Decimal(str(b))
    return _CONTEXT.multiply(a, other).quantize(Decimal(1).scaleb(-places), context=_CONTEXT)


def quotient(a: Decimal, b: Decimal | float, places: int = 10) -> Decimal:
    """The quotient a / b, rounded half to even at `places`; the only quotient on money.

    >>> quotient(Decimal(100), 8)
    Decimal('12.5000000000')
    """
    other = b if isinstance(b, Decimal) else Decimal(str(b))
    return _CONTEXT.divide(a, other).quantize(Decimal(1).scaleb(-places), context=_CONTEXT)


def per_year(cost: Decimal, hours_observed: float) -> Decimal:
    """A cost seen in `hours_observed` hours, as a year of 8,760 hours.

    >>> per_year(Decimal(96), 24)
    Decimal('35040.0000000000')
    """
    return quotient(_CONTEXT.multiply(cost, Decimal(HOURS_PER_YEAR)), hours_observed)


def per_month(cost: Decimal, hours_observed: float) -> Decimal:
    """A cost seen in `hours_observed` hours, as a month of 730 hours.

    >>> per_month(Decimal(24), 24)
    Decimal('730.0000000000')
    """
    return quotient(per_year(cost, hours_observed), MONTHS_PER_YEAR)
