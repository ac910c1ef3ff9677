"""What the data is worth: gaps, doubles, late days, missing prices, billed against measured hours.

Nothing is repaired here. Each finding says what was seen, where and how much it concerns.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pandas as pd

from data import frames
from data.schema import QUALITY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal


_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of QUALITY."""

    check: str
    scope: str
    severity: str
    detail: str
    count: int | None = None
    amount: Decimal | None = None
    currency: str | None = None


def table(findings: Iterable[Finding]) -> pd.DataFrame:
    """Frame of QUALITY: the findings, worst first, equal ones once."""
    ordered = sorted(
        set(findings), key=lambda row: (_ORDER[row.severity], row.check, row.scope, row.detail)
    )
    if not ordered:
        return frames.empty(QUALITY)
    return frames.conform(pd.DataFrame([asdict(row) for row in ordered]), QUALITY)
