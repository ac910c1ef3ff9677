"""The settings of a run: what `loadfactor.toml` may say, and what holds where it is silent."""

from __future__ import annotations

from planner.settings.classes import UNCLASSIFIED, MatchRule, OfferRule, WorkloadClass
from planner.settings.sections import (
    AlertRule,
    AlertTarget,
    AlertWhen,
    Cvar,
    EventRule,
    ExchangeRate,
    Guards,
    Inputs,
    PlanSettings,
    PriceSettings,
    QuotaRule,
    StoreSettings,
    Thresholds,
)
from planner.settings.sources import SOURCE_KINDS, Source
from planner.settings.whole import Document, Settings, default_store

__all__ = [
    "SOURCE_KINDS", "UNCLASSIFIED", "AlertRule", "AlertTarget", "AlertWhen", "Cvar",
    "Document", "EventRule", "ExchangeRate", "Guards", "Inputs", "MatchRule", "OfferRule",
    "PlanSettings", "PriceSettings", "QuotaRule", "Settings", "Source", "StoreSettings",
    "Thresholds", "WorkloadClass", "default_store",
]  # fmt: skip
