"""Prices and discounts that users state: how they stand against the book."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from data import catalogue
from data.errors import DataError
from planner import prices
from tests.planner.price_cases import DAY, book, checked, discount, row, stated, used, verdicts


def bl_16() -> list[dict[str, Any]]:
    return [
        row("0.00", region="us-east-1"),
        row("31.20", region="us-east-2"),
        row(None, region="us-west-1"),
        row(
            "0.336",
            region="us-west-2",
            purchase_option="capacity_block",
            payment_option="all_upfront",
            source="Capacity Block Ubuntu Pro",
        ),
    ]


def test_of_a_zero_a_price_a_blank_and_a_fee_only_the_price_is_used() -> None:
    # 31.20 / 8 = 3.90 and 0.336 / 8 = 0.042 USD per GPU-hour; their median is 1.971, and 5 % of
    # it, 0.09855, is the least that any H100 may cost.
    found = verdicts(checked(book(*bl_16())))
    assert found["31.2"] == ("used", None)
    assert found["0"] == ("rejected", "the price is 0")
    assert found[None] == ("rejected", "no price")
    status, reason = found["0.336"]
    assert status == "rejected"
    assert reason is not None
    assert reason.startswith("out of band: 0.042 USD per GPU-hour")


def test_the_same_four_as_overrides_beside_the_shipped_book() -> None:
    offers = checked(catalogue.price_book(), stated(*bl_16()))
    own = offers[offers["origin"] == "override"]
    assert used(own) == ["31.2"]
    assert len(own) == 4


def test_an_override_outranks_the_book_whatever_its_day() -> None:
    offers = checked(book(row("50", as_of="2026-10-01")), stated(row("40", as_of="2026-06-01")))
    assert verdicts(offers) == {
        "40": ("used", None),
        "50": ("rejected", "superseded: replaced by an override of 2026-06-01"),
    }


def test_an_override_may_be_half_of_the_list_price_and_states_what_was_sold() -> None:
    shipped = catalogue.price_book()
    half = stated(row("27.52"), row("34", purchase_option="reserved_1y", payment_option="monthly"))
    offers = checked(shipped, half)
    assert used(offers[offers["origin"] == "override"]) == ["27.52", "34"]


def test_the_users_own_old_price_is_told_although_the_book_serves() -> None:
    offers = checked(book(row("60", as_of="2026-10-01")), stated(row("50", as_of="2026-03-01")))
    assert verdicts(offers)["50"] == ("stale", "244 days old, more than 180")
    assert prices.findings(offers, DAY)["severity"].tolist() == ["warning"]


@pytest.mark.parametrize("price", ["0", None, "0.5", "9000"])
def test_an_override_that_cannot_be_leaves_the_list_price_in_use(price: str | None) -> None:
    offers = checked(catalogue.price_book(), stated(row(price)))
    mine = offers[offers["origin"] == "override"]
    assert (mine["status"] == "rejected").all()
    here = offers[
        (offers["instance_type"] == "p5.48xlarge")
        & (offers["region"] == "us-east-1")
        & (offers["purchase_option"] == "on_demand")
        & (offers["origin"] == "bundled")
    ]
    assert here["status"].tolist() == ["used"]
    found = prices.findings(offers, DAY)
    assert (found["severity"] == "warning").sum() == 1


def test_two_overrides_that_contradict_each_other_leave_no_price() -> None:
    offers = checked(book(row("50")), stated(row("40"), row("45")))
    assert used(offers) == []


def test_a_cloud_that_the_book_does_not_know_may_be_far_cheaper() -> None:
    # 2.10 USD per GPU-hour is below a quarter of the list median of H100 (9.77 / 4 = 2.44).
    other = row(
        "16.8", provider="otto", region="Oslo", instance_type="8x-h100", gpu_model="H100 SXM",
        vcpus=None, memory_gib=None, gpu_memory_gib=None,
    )  # fmt: skip
    offers = checked(catalogue.price_book(), stated(other))
    assert used(offers[offers["provider"] == "otto"]) == ["16.8"]
    table = prices.offer_table(offers)
    mine = table[table["provider"] == "otto"].iloc[0]
    assert mine["offer_id"] == "otto/oslo/8x-h100"
    assert mine["gpu_family"] == "H100"
    assert mine["on_demand"] == pytest.approx(2.1)
    assert pd.isna(mine["spot"])


def test_an_override_of_a_known_type_need_not_say_what_it_has() -> None:
    short = row("50", gpu_model=None, gpus=None, gpu_memory_gib=None, vcpus=None, memory_gib=None)
    offers = checked(book(), stated({**short, "instance_type": "P5.48xlarge", "source": None}))
    assert offers.loc[0, "instance_type"] == "p5.48xlarge"
    assert (offers.loc[0, "gpus"], offers.loc[0, "vcpus"]) == (8, 192)
    assert offers.loc[0, "source"] == "overrides.csv row 1"


def test_overrides_of_unknown_types_must_say_what_gpus_they_have() -> None:
    bare = {"gpu_model": None, "gpus": None}
    bad = stated(
        row("16", provider="otto", instance_type="x", **bare),
        row("50"),
        row("16", provider="otto", instance_type="y", gpu_model="H100", gpus=None),
    )
    with pytest.raises(DataError) as caught:
        checked(book(), bad)
    assert [problem.where for problem in caught.value.problems] == [
        "overrides.csv row 1",
        "overrides.csv row 3",
    ]


def test_a_discount_takes_its_share_off_the_list_price() -> None:
    offers = checked(book(row("50")), stated(discount(0.2)))
    # 50 x (1 - 0.2) = 40
    assert used(offers) == ["40"]
    why = "superseded: replaced by the discount of overrides.csv row 1"
    assert verdicts(offers)["50"] == ("rejected", why)
    assert not len(prices.findings(offers, DAY))


@pytest.mark.parametrize(
    ("changes", "price"),
    [
        ({"from": "2026-11-01"}, "50"),
        ({"from": "2026-10-31"}, "40"),
        ({"to": "2026-10-31"}, "50"),
        ({"to": "2026-11-01"}, "40"),
        ({"provider": "gcp"}, "50"),
        ({"family": "p5"}, "40"),
        ({"family": "P5"}, "40"),
        ({"family": "h100"}, "40"),
        ({"family": "p5.48xlarge"}, "40"),
        ({"family": "p5en"}, "50"),
        ({"region": "us-east-1"}, "40"),
        ({"region": "us east (n. virginia)"}, "40"),
        ({"region": "us-east-2"}, "50"),
        ({"region": "*"}, "40"),
        ({"purchase_option": "spot"}, "50"),
    ],
)
def test_a_discount_holds_in_its_time_and_scope(changes: dict[str, Any], price: str) -> None:
    assert used(checked(book(row("50")), stated(discount(0.2, **changes)))) == [price]


def test_a_discount_reaches_spot_only_where_it_says_so() -> None:
    spot = book(row("20", purchase_option="spot"))
    assert used(checked(spot, stated(discount(0.5)))) == ["20"]
    assert used(checked(spot, stated(discount(0.5, purchase_option="spot")))) == ["10"]


def test_the_narrowest_discount_holds() -> None:
    rows = (discount(0.1), discount(0.2, region="us-east-1"), discount(0.3, family="p5"))
    # by family before by region: 50 x 0.7 = 35
    assert used(checked(book(row("50")), stated(*rows))) == ["35"]
    assert used(checked(book(row("50")), stated(*rows[:2]))) == ["40"]


def test_a_discount_of_all_leaves_no_price() -> None:
    assert used(checked(book(row("50")), stated(discount(1)))) == []


def test_two_discounts_of_one_scope_and_time_are_an_error() -> None:
    twice = stated(discount(0.1), discount(0.2, **{"to": "2027-01-01"}), row("50"))
    with pytest.raises(DataError, match="row 1"):
        checked(book(row("50")), twice)
    apart = stated(discount(0.1, to="2026-07-01"), discount(0.2, **{"from": "2026-07-01"}))
    assert used(checked(book(row("50")), apart)) == ["40"]


def test_an_absolute_override_is_not_discounted_again() -> None:
    offers = checked(book(row("50")), stated(row("45"), discount(0.2)))
    assert used(offers) == ["45"]


def test_spot_is_compared_with_the_discounted_price() -> None:
    of_book = book(row("50"), row("42", purchase_option="spot"))
    assert used(checked(of_book, stated(discount(0.2)))) == ["40"]
