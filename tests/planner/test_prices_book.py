"""Prices of a book: which serve, which are rejected and why, and the offers they make."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import catalogue
from data.frames import conform
from data.schema import OFFERS, PRICE_BOOK, QUALITY
from planner import prices
from planner.settings import PriceSettings
from tests.planner.price_cases import DAY, SHAPES, book, checked, row, stated, used, verdicts


def test_the_shipped_book_is_used_but_for_spot_without_discount_and_stale_rows() -> None:
    # Counted by hand in the file: 876 rows; 5 spot prices equal to (or above) on demand; older than
    # 180 days on 2026-10-31 (before 2026-05-04): 6 Capacity Block and 8 flex-start rows.
    offers = checked(catalogue.price_book())
    assert offers["status"].value_counts().to_dict() == {"used": 857, "stale": 14, "rejected": 5}
    rejected = offers[offers["status"] == "rejected"]
    assert set(rejected["purchase_option"]) == {"spot"}
    assert rejected["reason"].str.startswith("no discount").all()
    conform(offers, OFFERS)


def test_the_on_demand_price_of_one_region_at_half_of_the_others_is_rejected() -> None:
    # 8 x 4.200761 (the flex-start GPU price) + 9.46006 (host) = 43.07; list price 88.49.
    trap = {"source": "DWS SKU", "as_of": "2026-08-01"}
    shipped = catalogue.price_book()
    one = shipped[
        (shipped["instance_type"] == "a3-highgpu-8g")
        & (shipped["region"] == "us-central1")
        & (shipped["purchase_option"] == "on_demand")
    ].iloc[0]
    wrong = {**one.to_dict(), **trap, "usd_per_instance_hour": Decimal("43.07")}
    frame = pd.concat([shipped, book(wrong)], ignore_index=True)
    offers = checked(frame)
    here = offers[
        (offers["instance_type"] == "a3-highgpu-8g")
        & (offers["region"] == "us-central1")
        & (offers["purchase_option"] == "on_demand")
    ]
    found = verdicts(here)
    assert found["88.49"] == ("used", None)
    assert found["43.07"][0] == "rejected"
    assert "median over regions" in str(found["43.07"][1])


def test_a_price_for_a_hundred_hours_is_out_of_band() -> None:
    azure = {
        "provider": "azure", "region": "eastus", "instance_type": "Standard_ND96isr_H100_v5",
    }  # fmt: skip
    offers = checked(catalogue.price_book(), stated(row("9832.00", **azure)))
    assert verdicts(offers)["9832"][0] == "rejected"
    assert "98.32" in used(offers)


def test_the_latest_price_on_or_before_the_day_serves() -> None:
    days = [row("50", as_of="2026-06-01"), row("60", as_of="2026-09-01")]
    later = row("55", as_of="2026-12-01")
    assert used(checked(book(*days, later))) == ["60"]
    assert used(checked(book(*days, later), day=date(2026, 8, 1))) == ["50"]
    assert verdicts(checked(book(*days, later)))["50"] == (
        "rejected",
        "superseded: replaced by the price of 2026-09-01",
    )
    assert used(checked(book(later))) == ["55"]


def test_a_price_is_stale_when_older_than_the_days_allowed() -> None:
    # From 2026-05-04 to 2026-10-31 are 27 + 30 + 31 + 31 + 30 + 31 = 180 days.
    offers = checked(book(row("50", as_of="2026-05-04")))
    assert used(offers) == ["50"]
    offers = checked(book(row("50", as_of="2026-05-03")))
    assert verdicts(offers) == {"50": ("stale", "181 days old, more than 180")}
    limits = PriceSettings(max_age_days=1)
    old = book(row("50", as_of="2026-10-29"), row("60", region="eu", as_of="2026-10-30"))
    judged = prices.check(old, None, SHAPES, DAY, limits)
    assert verdicts(judged)["50"] == ("stale", "2 days old, more than 1")
    limits = PriceSettings(max_age_days=0)
    judged = prices.check(book(row("50", as_of="2026-10-30")), None, SHAPES, DAY, limits)
    assert verdicts(judged)["50"] == ("stale", "1 day old, more than 0")
    today = book(row("50", as_of="2026-10-31"))
    assert used(prices.check(today, None, SHAPES, DAY, limits)) == ["50"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpus": 1}, "1 GPU, but p5.48xlarge has 8"),
        ({"gpu_model": "H200-SXM5-141GB"}, "GPU H200-SXM5-141GB, but p5.48xlarge has"),
        ({"purchase_option": "low_priority"}, "unknown purchase option 'low_priority'"),
        ({"instance_type": "ml.p5.48xlarge"}, "ml.p5.48xlarge is a size of a managed service"),
        (
            {"instance_type": "p5e.48xlarge", "gpu_model": "H200-SXM5-141GB"},
            "p5e.48xlarge is not sold as on_demand",
        ),
        (
            {
                "provider": "gcp",
                "region": "us-central1",
                "instance_type": "a3-highgpu-1g",
                "gpus": 1,
                "usd_per_instance_hour": "9",
            },
            "a3-highgpu-1g is not sold as on_demand",
        ),
        ({"usd_per_instance_hour": "-50"}, "the price is below 0"),
    ],
)
def test_a_row_that_cannot_be_is_rejected_with_its_reason(
    changes: dict[str, Any], reason: str
) -> None:
    offers = checked(book(row("50", **changes)))
    assert offers.loc[0, "status"] == "rejected"
    assert str(offers.loc[0, "reason"]).startswith(reason)


def test_p5e_is_never_offered_on_demand() -> None:
    table = prices.offer_table(checked(catalogue.price_book()))
    p5e = table[table["instance_type"] == "p5e.48xlarge"]
    assert len(p5e)
    assert p5e["on_demand"].isna().all()
    assert p5e["spot"].notna().all()


def test_two_prices_for_one_key_on_one_day_are_both_rejected_and_an_error() -> None:
    offers = checked(book(row("50", source="a"), row("55", source="b"), row("40", region="eu")))
    assert used(offers) == ["40"]
    assert verdicts(offers)["50"][1] == "different prices for one key: 50 and 55"
    found = prices.findings(offers, DAY)
    assert set(found["severity"]) == {"error"}
    conform(found, QUALITY)


def test_two_prices_of_one_source_for_one_key_are_rejected_too() -> None:
    assert used(checked(book(row("50"), row("55")))) == []


def test_one_price_from_two_sources_is_used_once() -> None:
    offers = checked(book(row("50", source="a"), row("50", source="b")))
    assert used(offers) == ["50"]
    assert offers["reason"].dropna().tolist() == ["superseded: repeats another row"]
    assert len(checked(book(row("50"), row("50")))) == 1


def test_prices_of_two_payments_are_two_offers_of_which_the_cheapest_serves() -> None:
    reserved = {"provider": "gcp", "region": "us-central1", "instance_type": "a3-highgpu-8g"}
    offers = checked(
        book(
            row("64", purchase_option="reserved_1y", payment_option="monthly", **reserved),
            row("60", purchase_option="reserved_1y", payment_option="all_upfront", **reserved),
        )
    )
    table = prices.offer_table(offers)
    assert table.loc[0, "reserved_1y"] == 7.5  # 60 / 8
    assert table.loc[0, "reserved_1y_payment"] == "all_upfront"
    later = prices.offer_table(offers, allow_upfront=False)
    assert later.loc[0, "reserved_1y"] == 8.0  # 64 / 8
    assert later.loc[0, "reserved_1y_payment"] == "monthly"


def test_spot_that_saves_nothing_is_no_offer() -> None:
    spot = {"purchase_option": "spot"}
    offers = checked(book(row("50"), row("50", **spot), row("49.99", region="eu", **spot)))
    assert used(offers) == ["49.99", "50"]
    assert offers["reason"].dropna().tolist() == ["no discount: on demand costs 50"]


def test_an_old_price_beside_one_that_serves_is_superseded_and_no_finding() -> None:
    # 2026-03-01 lies 244 days before 2026-10-31, more than 180.
    old, newer = row("50", as_of="2026-03-01"), row("60", as_of="2026-10-01")
    offers = checked(book(old, newer))
    why = "superseded: replaced by the price of 2026-10-01 (244 days old, more than 180)"
    assert verdicts(offers)["50"] == ("stale", why)
    assert not len(prices.findings(offers, DAY))


def test_fetched_prices_outrank_shipped_ones_of_the_same_day() -> None:
    of_book = book(row("50", origin="bundled"), row("55", origin="fetched"))
    assert used(checked(of_book)) == ["55"]


def test_the_findings_on_the_shipped_book_are_information_only() -> None:
    found = prices.findings(checked(catalogue.price_book()), DAY)
    assert set(found["severity"]) == {"info"}
    assert sorted(found["count"]) == [5, 14]


def test_an_empty_book_gives_empty_tables() -> None:
    offers = checked(book())
    assert len(offers) == len(prices.offer_table(offers)) == len(prices.findings(offers, DAY)) == 0


def test_the_offer_table_has_one_row_a_place_and_prices_of_one_gpu() -> None:
    table = prices.offer_table(checked(catalogue.price_book()))
    assert not table.duplicated(["provider", "region", "instance_type"]).any()
    one = table.set_index("offer_id").loc["gcp/us-central1/a3-highgpu-8g"]
    assert one["on_demand"] == pytest.approx(88.49 / 8)
    assert one["family"] == "a3"
    assert one["reserved_1y_payment"] == "monthly"
    assert pd.isna(one["savings_plan_1y"])


def contents(offers: pd.DataFrame) -> list[tuple[object, ...]]:
    plain = offers.astype(object).where(offers.notna(), None)
    return [tuple(one) for one in plain.itertuples(index=False)]


PRICE_TEXTS = st.sampled_from(["0", "0.336", "20", "31.2", "50", "55", "98.32", "9832", None])


@st.composite
def random_prices(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [
        row(
            draw(PRICE_TEXTS),
            region=draw(st.sampled_from(["us-east-1", "us-east-2"])),
            purchase_option=draw(st.sampled_from(["on_demand", "spot"])),
            source=draw(st.sampled_from(["a", "b"])),
            as_of=draw(st.sampled_from(["2026-09-01", "2026-10-01", "2024-01-01"])),
        )
        for _ in range(draw(st.integers(1, 7)))
    ]


@settings(max_examples=30, deadline=None)
@given(rows=random_prices(), data=st.data())
def test_the_order_of_rows_never_matters(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(rows))
    assert contents(checked(book(*rows))) == contents(checked(book(*shuffled)))


@settings(max_examples=30, deadline=None)
@given(rows=random_prices(), price=st.sampled_from(["0", "0.00", None, "-3"]), data=st.data())
def test_a_row_without_a_price_changes_no_used_offer(
    rows: list[dict[str, Any]], price: str | None, data: st.DataObject
) -> None:
    more = {**data.draw(st.sampled_from(rows)), "usd_per_instance_hour": price, "source": "z"}
    before, after = checked(book(*rows)), checked(book(*rows, more))
    assert contents(before[before["status"] == "used"]) == contents(
        after[after["status"] == "used"]
    )


@settings(max_examples=25, deadline=None)
@given(rows=random_prices())
def test_no_used_price_is_zero_stale_or_doubled(rows: list[dict[str, Any]]) -> None:
    offers = checked(book(*rows))
    kept = offers[offers["status"] == "used"]
    assert all(price > 0 for price in kept["usd_per_instance_hour"])
    assert not kept.duplicated([*PRICE_BOOK.key[:-1]]).any()
    assert (kept["as_of"] >= pd.Timestamp("2026-05-04", tz="UTC")).all()
    assert offers.loc[offers["status"] != "used", "reason"].notna().all()
    assert offers.loc[offers["status"] == "used", "reason"].isna().all()
