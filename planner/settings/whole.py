"""All sections together, and the places that follow from them."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field

from data.errors import ConfigError, Problem
from planner.settings.base import Name, Section
from planner.settings.classes import UNCLASSIFIED, WorkloadClass
from planner.settings.sections import (
    AlertRule,
    AlertTarget,
    EventRule,
    Guards,
    Inputs,
    PlanSettings,
    PriceSettings,
    QuotaRule,
    StoreSettings,
    Thresholds,
)
from planner.settings.sources import Source  # noqa: TC001  (pydantic reads it)


def default_store() -> Path:
    """The store's folder where none is configured: in the user's data directory (XDG)."""
    base = os.environ.get("XDG_DATA_HOME") or ""
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "share"
    return root / "loadfactor"


class Document(Section):
    """Everything `loadfactor.toml` may say, with a default for what it does not say."""

    store: StoreSettings = StoreSettings()
    sources: dict[Name, Source] = Field(default_factory=dict)
    classes: tuple[WorkloadClass, ...] = ()
    inputs: Inputs = Inputs()
    thresholds: Thresholds = Thresholds()
    prices: PriceSettings = PriceSettings()
    plan: PlanSettings = PlanSettings()
    quotas: tuple[QuotaRule, ...] = ()
    events: tuple[EventRule, ...] = ()
    guards: Guards = Guards()
    alerts: tuple[AlertRule, ...] = ()
    alert_targets: dict[Name, AlertTarget] = Field(default_factory=dict)


class Settings(Document):
    """The settings of a run: the document, and the folder its relative paths start from."""

    folder: Path = Path()

    def path(self, text: str) -> Path:
        """A path of the file as one that can be opened: `~` and the file's folder resolved."""
        return self.folder / Path(text).expanduser()

    @property
    def store_path(self) -> Path:
        """The folder of the store; ConfigError where it is object storage."""
        if self.store.path is None:
            return default_store()
        if "://" in self.store.path:
            problem = Problem(
                "store.path", f"{self.store.path} is object storage", "give a folder, or --store"
            )
            raise ConfigError("this version keeps its store in a folder", [problem])
        return self.path(self.store.path)

    def workload_class(self, name: str) -> WorkloadClass:
        """The class of that name; what no rule describes has the defaults."""
        for candidate in self.classes:
            if candidate.name == name:
                return candidate
        return WorkloadClass(name=name)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every class, in the order of the file; what matches none comes last."""
        names = [one.name for one in self.classes if one.name != UNCLASSIFIED]
        return (*names, UNCLASSIFIED)
