"""The store: one Parquet folder per delivery, one catalogue file that says which rows count."""

from __future__ import annotations

from data.store.folder import Store
from data.store.records import (
    DeliveryRecord,
    DeliveryResult,
    Replaced,
    StagedDelivery,
    Status,
    UnitFacts,
    delivery_id,
    unit_name,
)

__all__ = [
    "DeliveryRecord",
    "DeliveryResult",
    "Replaced",
    "StagedDelivery",
    "Status",
    "Store",
    "UnitFacts",
    "delivery_id",
    "unit_name",
]
