"""Prices of hours that no bill knows: from the offers that are used, never guessed beyond them."""

from __future__ import annotations

from decimal import Decimal as D

import pandas as pd

from planner.measured_hours import price, rates_from_offers
from tests import fleet as t


def offer(region, kind, usd, gpus=8, **more):
    row = {
        "provider": "aws",
        "region": region,
        "instance_type": kind,
        "gpu_model": "H100-SXM5-80GB",
        "gpus": gpus,
        "purchase_option": "on_demand",
        "usd_per_instance_hour": None if usd is None else D(usd),
        "status": "used",
    }
    return {**row, **more}


OFFERS = pd.DataFrame(
    [
        offer("us-east-1", "p5.48xlarge", "98.32"),
        offer("us-east-2", "p5.48xlarge", "96.00"),
        offer("us-west-2", "p5.48xlarge", "104.00"),
        offer("us-east-1", "p5.4xlarge", "12.00", gpus=1),
        offer("eu-north-1", "p5.48xlarge", "0.336", status="rejected"),
        offer("us-east-1", "p5.48xlarge", "40.00", purchase_option="spot"),
    ]
)


def rate_of(region, kind, cloud="aws", is_billed=False):
    node = {
        "node_id": 0, "cloud": cloud, "region": region, "instance_type": kind, "gpu_model": "",
        "is_billed": is_billed,
    }  # fmt: skip
    return price(pd.DataFrame([node]), rates_from_offers(OFFERS, t.SHAPES)).iloc[0]["rate"]


def test_a_known_machine_has_the_price_of_its_region():
    assert rate_of("us-east-1", "p5.48xlarge") == D("12.29")  # 98.32 / 8
    assert rate_of("us-east-1", "P5.4xlarge") == 12


def test_a_region_that_the_book_lacks_takes_the_median_of_the_type():
    # 96, 98.32 and 104 over 8: the middle one. The rejected price never counts.
    assert rate_of("eu-north-1", "p5.48xlarge") == D("12.29")


def test_telemetry_that_names_no_machine_takes_the_median_of_the_region():
    # us-east-1 has 12.29 and 12.00: the lower median is 12.00.
    assert rate_of("us-east-1", "") == 12
    assert rate_of("us-west-2", None) == 13


def test_what_the_book_does_not_know_has_no_price():
    assert rate_of("us-east-1", "p99.huge") is None
    assert rate_of("", "", cloud="onprem") is None
    assert rate_of("us-east-1", "p5.48xlarge", is_billed=True) is None


def test_no_offers_give_no_rates():
    assert not len(rates_from_offers(OFFERS[:0], t.SHAPES))
