"""Builders of small histories and terms for tests of forecasts and advice."""

from __future__ import annotations

import math

import numpy as np

from planner.forecast.inputs import History, Terms

NAN = math.nan


def history(gpus, share: float = 0.0, **change) -> History:
    """From one list of hours, or hours x classes; `share` of all of it may wait."""
    table = np.array(gpus, dtype=float)
    table = table.reshape(len(table), -1)
    names = tuple("abcdefgh"[: table.shape[1]])
    return History(table * (1 - share), table * share, names, **change)


def terms(**change) -> Terms:
    """On demand 3.90, reserved 2.60 for a year, spot 1.60 with a tenth of it done again."""
    settings = {
        "on_demand": 3.9, "reserved": 2.6, "spot": 1.6, "spot_throughput": 0.9,
        "term_hours": 8_760, "gpus_per_instance": 1, "replan_hours": 672, "max_delay_hours": 24,
    }  # fmt: skip
    return Terms(**(settings | change))
