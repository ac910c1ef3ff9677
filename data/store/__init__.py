"""The store: one Parquet folder per delivery, one catalogue file that says which rows count."""

from __future__ import annotations

from data.store.folder import Store
from data.store.history import OptionChange, OptionTotals, UnitVersion
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
    "OptionChange",
    "OptionTotals",
    "Replaced",
    "StagedDelivery",
    "Status",
    "Store",
    "UnitFacts",
    "UnitVersion",
    "delivery_id",
    "unit_name",
]
