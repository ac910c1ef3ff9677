"""Every table of the product, declared once: column, dtype, unit, nullable, meaning, key.

CSV headers, casting, validation and `docs/tables.md` come from these declarations. The order
written in them is the published order.
"""

from __future__ import annotations

from data.schema.columns import (
    CHARGE_TYPES,
    COMMITMENT_STATUSES,
    COMMITTED_OPTIONS,
    PURCHASE_OPTIONS,
    SEVERITIES,
    STATES,
    Column,
    Dtype,
    Table,
)
from data.schema.fleet import DEMAND, FLEET_HOURS, QUALITY
from data.schema.inputs import BILLING, COMMITMENTS, JOBS, UTILIZATION, WAITING
from data.schema.kept import AGREEMENTS, BUDGETS, INVOICES, PRICES
from data.schema.outputs import COMMITMENTS_OUT, DEMAND_OUT, IDLE, LIMITS, RECOMMENDATIONS
from data.schema.reference import GPU_SHAPES, OFFERS, PRICE_BOOK

TABLES = (
    BILLING, UTILIZATION, JOBS, WAITING, COMMITMENTS, PRICES, AGREEMENTS, BUDGETS, INVOICES,
    GPU_SHAPES, PRICE_BOOK,
    OFFERS, FLEET_HOURS, DEMAND, QUALITY, RECOMMENDATIONS, COMMITMENTS_OUT, LIMITS, IDLE,
    DEMAND_OUT,
)  # fmt: skip

__all__ = [
    "AGREEMENTS", "BILLING", "BUDGETS", "CHARGE_TYPES", "COMMITMENTS", "COMMITMENTS_OUT",
    "COMMITMENT_STATUSES", "COMMITTED_OPTIONS", "DEMAND", "DEMAND_OUT", "FLEET_HOURS",
    "GPU_SHAPES", "IDLE", "INVOICES", "JOBS", "LIMITS",
    "OFFERS", "PRICES", "PRICE_BOOK", "PURCHASE_OPTIONS", "QUALITY", "RECOMMENDATIONS",
    "SEVERITIES", "STATES", "TABLES", "UTILIZATION", "WAITING", "Column", "Dtype", "Table",
]  # fmt: skip
