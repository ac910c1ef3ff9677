from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import engines, money
from data.errors import DataError

CONNECTION = engines.connect(threads=1)
amounts = st.decimals(
    min_value=-(10**9), max_value=10**9, places=10, allow_nan=False, allow_infinity=False
)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("0.1", "0.1"),
        (0.1, "0.1"),
        ("6.123E-7", "0.0000006123"),
        ("0.123456789012345678901234", "0.123456789012345678901234"),
        ("-0.0", "0"),
        (" 12 ", "12"),
        ("999999999999.99999999999999999999999999", "999999999999.99999999999999999999999999"),
        ("123456789012.123456789012345678901234567", "123456789012.12345678901234567890123457"),
        ("0.000000000000000000000000015", "0.00000000000000000000000002"),  # half to even: 1.5 -> 2
        ("0.000000000000000000000000025", "0.00000000000000000000000002"),  # 2.5 -> 2
    ],
)
def test_an_amount_is_read_exactly_and_written_plainly(written, wanted):
    assert money.text(money.exact(written)) == wanted


@pytest.mark.parametrize("bad", ["NaN", "inf", "-Infinity", "", "1,5", "abc", "1_0x"])
def test_what_is_not_a_finite_number_is_an_error(bad):
    with pytest.raises(DataError, match="not a"):
        money.exact(bad)


@pytest.mark.parametrize(
    "big", ["1000000000000", "-1E12", 1e13, f"{'9' * 12}.{'9' * 27}", "9" * 99 + ".1"]
)
def test_thirteen_integer_digits_are_an_error(big):
    with pytest.raises(DataError, match="more than 12 integer digits"):
        money.exact(big)


def test_a_missing_amount_stays_missing():
    assert money.text(None) is None


def test_the_product_and_the_quotient_round_half_to_even_at_ten_places():
    assert money.product(Decimal("0.00000000005"), 1) == 0  # 0.5 of the last place -> 0
    assert money.product(Decimal("0.00000000015"), 1) == Decimal("2E-10")  # 1.5 -> 2
    assert money.quotient(Decimal(1), 3) == Decimal("0.3333333333")
    assert money.quotient(Decimal(2), 3) == Decimal("0.6666666667")


def test_a_week_of_idle_dollars_is_a_year_of_52_weeks_and_a_seventh():
    # 168 dollars in 168 hours is 1 an hour: 8,760 a year, 730 a month
    assert money.per_year(Decimal(168), 168) == 8760
    assert money.per_month(Decimal(168), 168) == 730


@given(st.lists(amounts, min_size=1, max_size=20))
def test_duckdb_sums_amounts_as_decimals_do(values):
    listed = ", ".join(f"('{value:f}')" for value in values)
    kind = engines.SQL_TYPES[engines.Dtype.MONEY]
    ((total,),) = engines.run(
        CONNECTION, f"SELECT sum(CAST(v AS {kind})) FROM (VALUES {listed}) AS _ (v)"
    )
    assert total == sum(values)


@given(amounts)
def test_a_written_amount_reads_as_itself(value):
    text = money.text(value)
    assert "E" not in text
    assert not text.endswith(".")
    assert money.exact(text) == value
