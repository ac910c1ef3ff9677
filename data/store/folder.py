"""The store on disk: staging, publishing, and the active rows as tables."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from data.store.records import DeliveryRecord, DeliveryResult, StagedDelivery


class Store:
    """A store folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def open(path: Path) -> Store:
        """The store at the path; one that does not exist yet is empty."""
        return Store(path)

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A fresh folder to write a delivery into; what is not published is removed."""
        raise NotImplementedError

    def publish(self, staged: StagedDelivery, force: bool = False) -> DeliveryResult:
        """What became of the delivery: it is loaded whole, or the store stays as it was."""
        raise NotImplementedError

    def table(self, name: str, connection: Any = None) -> Any:
        """The active rows of a table as an Ibis table; empty where nothing was loaded."""
        raise NotImplementedError

    def deliveries(self) -> list[DeliveryRecord]:
        """Deliveries of which rows are active, in order of table, source, dataset and period."""
        raise NotImplementedError
