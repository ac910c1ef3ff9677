"""Rows of prices, and what a check says of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pandas as pd

from data import catalogue
from data.frames import conform
from data.schema import PRICE_BOOK, PRICES
from planner import prices

DAY = date(2026, 10, 31)
SHAPES = catalogue.shapes()


def row(price: object, **changes: object) -> dict[str, Any]:
    """A price of p5.48xlarge in us-east-1, on demand, changed as told."""
    return {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p5.48xlarge",
        "gpu_model": "H100-SXM5-80GB",
        "gpus": 8,
        "gpu_memory_gib": 80,
        "vcpus": 192,
        "memory_gib": 2048,
        "purchase_option": "on_demand",
        "payment_option": "none",
        "usd_per_instance_hour": None if price is None else str(price),
        "source": "a test",
        "as_of": "2026-09-01",
        **changes,
    }


def book(*rows: dict[str, Any]) -> pd.DataFrame:
    """A frame with the columns of PRICE_BOOK, its key unchecked; `origin` is kept."""
    frame = pd.DataFrame(list(rows), columns=[*PRICE_BOOK.names, "origin"])
    frame["as_of"] = pd.to_datetime(frame["as_of"], utc=True)
    frame["usd_per_instance_hour"] = frame["usd_per_instance_hour"].map(
        lambda text: None if text is None or text != text else Decimal(text)
    )
    return frame


def stated(*rows: dict[str, Any]) -> pd.DataFrame:
    """A frame of PRICES, as a file of overrides gives it."""
    numbered = [
        {"unit": "u", "export_id": "overrides.csv", "source_row_no": number, **one}
        for number, one in enumerate(rows, 1)
    ]
    return conform(pd.DataFrame(numbered), PRICES)


def discount(share: float, **changes: object) -> dict[str, Any]:
    return {"provider": "aws", "discount_share": share, "from": "2026-01-01", **changes}


def checked(
    of_book: pd.DataFrame, overrides: pd.DataFrame | None = None, day: date = DAY
) -> pd.DataFrame:
    return prices.check(of_book, overrides, SHAPES, day)


def verdicts(offers: pd.DataFrame) -> dict[str | None, tuple[str, str | None]]:
    """Price (as text) to status and reason."""
    plain = offers.astype(object).where(offers.notna(), None)
    return {
        None if one.usd_per_instance_hour is None else f"{one.usd_per_instance_hour.normalize():f}":
        (one.status, one.reason)
        for one in plain.itertuples()
    }  # fmt: skip


def used(offers: pd.DataFrame) -> list[str]:
    kept = offers[offers["status"] == "used"]
    return sorted(f"{price.normalize():f}" for price in kept["usd_per_instance_hour"])
