"""How money, hours, shares and dates are written for people; the only rounding of the product."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING

from data import money

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

NOTHING = "-"  # in a table cell: no reading, told apart from 0

# From here on an amount is written in whole units, below it with cents.
WHOLE_FROM = Decimal(100)

_CONTEXT = Context(prec=80, rounding=ROUND_HALF_UP)
_CENT = Decimal("0.01")
_HOURS_PER_DAY = 24


def _places(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), context=_CONTEXT)


def rounded(value: Decimal) -> Decimal:
    """The amount as it is shown: whole units from 100 on, cents below.

    >>> rounded(Decimal("1234.56")), rounded(Decimal("99.994")), rounded(Decimal("99.996"))
    (Decimal('1235'), Decimal('99.99'), Decimal('100'))
    """
    cents = _places(value, 2)
    return _places(value, 0) if abs(cents) >= WHOLE_FROM else cents


def to_cents(value: Decimal) -> Decimal:
    """The amount rounded to the cent."""
    return _places(value, 2)


def amount(value: Decimal | None, currency: str = "USD") -> str:
    """Money for people, with its currency; a dash where there is none.

    >>> amount(Decimal("1234567.5")), amount(Decimal("-12.5")), amount(Decimal(0))
    ('$1,234,568', '-$12.50', '$0')
    >>> amount(Decimal(1234), "EUR"), amount(Decimal(1234), "unknown")
    ('EUR 1,234', '1,234 (unknown currency)')
    """
    if value is None:
        return NOTHING
    shown = rounded(value)
    digits = "0" if shown == 0 else f"{abs(shown):,}"
    return _with_currency(digits, "-" if shown < 0 else "", currency)


def signed(written: str) -> str:
    """A written amount as a change: a plus where it has no minus.

    >>> signed(amount(Decimal(120))), signed("-$1,234"), signed("EUR 5.00")
    ('+$120', '-$1,234', 'EUR +5.00')
    """
    return written if "-" in written else re.sub(r"(?=[$\d])", "+", written, count=1)


def _with_currency(digits: str, sign: str, currency: str) -> str:
    if currency == "USD":
        return f"{sign}${digits}"
    if currency == "unknown":
        return f"{sign}{digits} (unknown currency)"
    return f"{currency} {sign}{digits}"


def cents(value: Decimal, currency: str = "USD") -> str:
    """Money to the cent, where a reader may want to compute with it.

    >>> cents(Decimal("1234567.5")), cents(Decimal("99.994"), "EUR"), cents(Decimal(-1))
    ('$1,234,567.50', 'EUR 99.99', '-$1.00')
    """
    shown = to_cents(value)
    return _with_currency(f"{abs(shown):,f}", "-" if shown < 0 else "", currency)


def plain_amount(value: float) -> str:
    """US dollars that the optimiser gave as a plain number.

    >>> plain_amount(207912.342857), plain_amount(float("nan"))
    ('$207,912', '-')
    """
    return NOTHING if value != value else amount(Decimal(repr(value)))


def usd(value: float) -> str:
    """US dollars that the optimiser gave, to the cent, or to four digits where they are less.

    >>> usd(207912.342857), usd(2.1e-08), usd(-0.0), usd(0.5)
    ('207,912.34', '0.000000021', '0.00', '0.50')
    """
    exact = Decimal(repr(value))
    if exact and abs(exact) < _CENT:
        written = f"{exact.normalize(Context(prec=4)):f}"
    else:
        written = f"{_places(exact, 2):,f}"
    return "0.00" if written in ("-0.00", "0") else written


def rate(value: Decimal | None) -> str:
    """A price per hour, four places at most and two at least.

    >>> rate(Decimal("98.32")), rate(Decimal("3")), rate(Decimal("0.33599")), rate(None)
    ('98.32', '3.00', '0.3360', '-')
    """
    if value is None:
        return NOTHING
    return f"{_places(value, 2 if value == _places(value, 2) else 4):,f}"


def adds_up(values: Iterable[Decimal], total: Decimal) -> bool:
    """Whether the amounts as shown add up to the total as shown.

    >>> adds_up([Decimal("100.4"), Decimal("100.4")], Decimal("200.8"))
    False
    """
    return sum((rounded(value) for value in values), Decimal(0)) == rounded(total)


def per_month(cost_per_year: Decimal) -> Decimal:
    """A twelfth of a yearly amount.

    >>> per_month(Decimal(1200))
    Decimal('100.0000000000')
    """
    return money.quotient(cost_per_year, money.MONTHS_PER_YEAR)


def quantity(value: Decimal | float | None) -> str:
    """GPU-hours, GPUs or counts: whole from 100 on, at most two places below.

    >>> quantity(Decimal("57600.0")), quantity(12.5), quantity(0.004), quantity(None)
    ('57,600', '12.5', '<0.01', '-')
    """
    if value is None:
        return NOTHING
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    shown = _places(number, 0 if abs(number) >= WHOLE_FROM else 2)
    if shown == 0 and number > 0:
        return "<0.01"
    written = f"{shown:,f}"
    written = written.rstrip("0").rstrip(".") if "." in written else written
    return "0" if written == "-0" else written


def gpu_hours(value: Decimal | float | None) -> str:
    """GPU-hours with their unit.

    >>> gpu_hours(Decimal(57600)), gpu_hours(1.0), gpu_hours(0)
    ('57,600 GPU-hours', '1 GPU-hour', '0 GPU-hours')
    """
    shown = quantity(value)
    return f"{shown} GPU-hour" if shown == "1" else f"{shown} GPU-hours"


def share(part: Decimal | float | None, whole: Decimal | float = 1) -> str:
    """A part of a whole in percent, one place; a dash where the whole is 0 or unknown.

    >>> share(0.402), share(Decimal(57600), Decimal(144000)), share(0.0001), share(1, 0)
    ('40.2%', '40.0%', '<0.1%', '-')
    """
    if part is None or not whole:
        return NOTHING
    percent = money.quotient(Decimal(repr(part)) if isinstance(part, float) else Decimal(part),
                             whole) * 100  # fmt: skip
    shown = _places(percent, 1)
    return "<0.1%" if shown == 0 and percent > 0 else f"{shown}%"


def gap(value: float) -> str:
    """A solver's relative gap in percent, rounded up at three places.

    >>> gap(0.0), gap(0.0000995), gap(0.0201), gap(float("inf"))
    ('0%', '0.010%', '2.010%', 'unknown')
    """
    if value != value or value in (float("inf"), float("-inf")):
        return "unknown"
    percent = Decimal(repr(value)) * 100
    if percent == 0:
        return "0%"
    return f"{percent.quantize(Decimal('0.001'), rounding='ROUND_CEILING')}%"


def percent(value: float | None) -> str:
    """A share as a percentage with two decimals; `-` where there is none.

    >>> percent(0.02104), percent(-0.005), percent(None)
    ('2.10%', '-0.50%', '-')
    """
    return "-" if value is None else f"{value:.2%}"


def moment(value: datetime | str | None) -> str:
    """A moment or its ISO text, to the minute in UTC; a day where it is midnight.

    >>> moment("2026-11-30T00:00:00Z"), moment("2026-11-30T13:00:00Z"), moment(None)
    ('2026-11-30', '2026-11-30 13:00 UTC', '-')
    """
    if value is None:
        return NOTHING
    text = value if isinstance(value, str) else value.strftime("%Y-%m-%dT%H:%M:%SZ")
    day, _, clock = text.partition("T")
    if not clock or clock.startswith("00:00"):
        return day
    return f"{day} {clock[:5]} UTC"


def term(hours: int | None) -> str:
    """The length of a commitment in the largest unit that fits.

    >>> term(8760), term(26280), term(72), term(5), term(None)
    ('1 year', '3 years', '3 days', '5 hours', '-')
    """
    if hours is None:
        return NOTHING
    for length, unit in ((money.HOURS_PER_YEAR, "year"), (_HOURS_PER_DAY, "day"), (1, "hour")):
        if hours % length == 0 and hours >= length:
            count = hours // length
            return f"{count:,} {unit}" + ("" if count == 1 else "s")
    return "0 hours"


def counted(number: int, noun: str) -> str:
    """A count with its noun, in the plural where it needs one.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def saving(per_month: Decimal, currency: str = "USD") -> str:
    """A change of the monthly bill in words; a negative saving costs more.

    >>> saving(Decimal(1200)), saving(Decimal(-300)), saving(Decimal(0), "EUR")
    ('saves $1,200 a month', 'costs $300 a month more', 'changes nothing in the bill')
    """
    if rounded(per_month) == 0:
        return "changes nothing in the bill"
    if per_month > 0:
        return f"saves {amount(per_month, currency)} a month"
    return f"costs {amount(-per_month, currency)} a month more"


def savings(per_month: Decimal, cash_per_month: Decimal, currency: str = "USD") -> str:
    """A change of the amortised bill, and how much of it is cash, in words.

    >>> savings(Decimal(1200), Decimal(1200))
    'saves $1,200 a month, all of it cash'
    >>> savings(Decimal(1200), Decimal(900)), savings(Decimal(1200), Decimal(0))
    ('saves $1,200 a month, $900 of it cash', 'saves $1,200 a month, none of it cash')
    >>> savings(Decimal(1200), Decimal(-500))
    'saves $1,200 a month, and costs $500 a month more in cash'
    """
    bill, in_cash = rounded(per_month), rounded(cash_per_month)
    text = saving(per_month, currency)
    if bill == in_cash:
        return text if bill == 0 else f"{text}, all of it cash"
    if bill > 0 and in_cash == 0:
        return f"{text}, none of it cash"
    if bill > in_cash > 0:
        return f"{text}, {amount(cash_per_month, currency)} of it cash"
    if in_cash == 0:
        return f"{text}, and nothing in cash"
    return f"{text}, and {saving(cash_per_month, currency)} in cash"


def sentence(text: str) -> str:
    """The text with a full stop where it ends without one.

    >>> sentence("Stop it"), sentence("Stop it."), sentence("")
    ('Stop it.', 'Stop it.', '')
    """
    return text if not text or text[-1] in ".!?…" else f"{text}."
