"""Hours that are a mean of a day lower the confidence of what is advised on them."""

from __future__ import annotations

import pytest

from planner.smeared import smeared_shares, with_confidence
from tests import bills


def test_parts_of_machines_in_every_hour_of_a_day_are_smeared_and_whole_ones_are_not() -> None:
    # A node of 8 that ran 9 of its 24 hours, spread evenly: 3 GPUs in each, one of them free. That
    # is 72 of 72 + 192 GPU-hours.
    daily = {"cloud": "azure", "dataset": "amortized", "estimated": True}
    parts = bills.node_hours("a", range(24), gpus=2, **daily)
    parts += bills.node_hours("a", range(24), gpus=1, **daily, state="free")
    full = bills.node_hours("b", range(24), **daily)
    # Hours of which telemetry alone tells are of no bill; those of an hourly one are no estimate.
    sampled = bills.node_hours("c", range(24), gpus=3, cloud="aws", estimated=True)
    hourly = bills.node_hours("d", range(24), gpus=3, cloud="gcp", dataset="detailed")
    every = bills.as_numbers(bills.fleet(parts, full, sampled, hourly))
    assert smeared_shares(every) == {"azure": pytest.approx(72 / 264)}
    # Beside nine nodes that ran all day it is a mean of little: 72 of 1,800 GPU-hours.
    more = [bills.node_hours(f"n{k}", range(24), **daily) for k in range(8)]
    assert smeared_shares(bills.as_numbers(bills.fleet(parts, full, *more))) == {}


def test_advice_for_a_cloud_of_smeared_hours_says_so() -> None:
    rows = [
        {"cloud": "azure", "confidence": "medium", "risk": "demand may fall"},
        {"cloud": "aws", "confidence": "high", "risk": "none"},
    ]
    low, same = with_confidence(rows, {"azure": 0.25})
    assert low["confidence"] == "low"
    assert low["risk"].startswith("demand may fall; 25% of azure's GPU-hours are billed by the day")
    assert same == rows[1]
