"""The store on disk: staging, publishing, and the active rows as tables."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import engines, frames
from data.errors import StoreError
from data.hours import iso
from data.schema import QUALITY
from data.store import catalogue_file, reading, steps
from data.store.catalogue_file import Catalogue, Superseded
from data.store.ranking import judge
from data.store.records import DeliveryRecord, DeliveryResult, StagedDelivery, Status
from data.store.replacing import Weighed, weigh
from data.synced import sync_folder, write_synced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from data.store.history import UnitVersion

DELIVERIES = "deliveries"
LOCK = ".lock"
WAIT_S = 60.0
_STAGING = ".staging-"
_ALIVE = ".alive"
_READERS = ".readers"
_RECORD = "delivery.json"


class Store:
    """A store folder, as its catalogue stood when it was opened, refreshed or last published to.

    Files that another process replaces meanwhile stay on the disk as long as this one is open.
    """

    def __init__(self, path: Path, before_step: Callable[[str], None] = steps.no_stop) -> None:
        self.path = path
        self.wait_s = WAIT_S
        # What brings exports into normal form and takes totals: "duckdb" or "spark".
        self.engine = "duckdb"
        self._steps = steps.Steps(before_step)
        self._connection: Any = None
        self._reader: Callable[[], object] | None = None
        self._has_lent_rows = False
        self._catalogue = Catalogue()
        self.refresh()

    @staticmethod
    def open(path: Path) -> Store:
        """The store at the path; one that does not exist yet is empty, and made when written to.

        Raises StoreError where its catalogue is damaged or of a newer version.
        """
        if path.exists() and not path.is_dir():
            raise StoreError(f"the store {path} is a file; name a folder (--store)")
        return Store(path)

    @property
    def results(self) -> Path:
        """The folder in which nights and decisions are kept."""
        return self.path / "results"

    def refresh(self) -> None:
        """Take up what other processes have published."""
        if self._reader is None:
            # A store that may only be read has no file to lock; it is read without.
            with contextlib.suppress(OSError):
                descriptor = steps.hold_shared(self.path / _READERS)
                self._reader = weakref.finalize(self, os.close, descriptor)
        self._catalogue = catalogue_file.read(self.path)

    def close(self) -> None:
        """Let go of the files and the connection; tables of this store end with it."""
        if self._reader is not None:
            self._reader()
            self._reader = None
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None
        self._has_lent_rows = False

    # Reading

    def table(self, name: str, connection: Any = None) -> Any:
        """The active rows of a table as an Ibis table; empty where nothing was loaded.

        `connection` is a backend of `data.engines.connect` or `data.spark.connect`, the store's
        own DuckDB if None. Raises StoreError naming every delivery whose files are gone.
        """
        declared = reading.declared(name)
        if self._reader is None:
            self.refresh()
        self._has_lent_rows = True
        engine = self._engine() if connection is None else connection
        return reading.active_rows(self.path / DELIVERIES, self._catalogue, declared, engine)

    def deliveries(self) -> list[DeliveryRecord]:
        """Deliveries of which rows are active, in order of table, source, dataset and period."""
        return sorted(
            self._catalogue.deliveries.values(),
            key=lambda one: (
                one.table, one.source, one.dataset, one.billing_periods, one.delivery_id,
            ),
        )  # fmt: skip

    def holds(self, record: DeliveryRecord) -> bool:
        """Whether the rows of a delivery are there."""
        return (self.path / DELIVERIES / record.folder / f"{record.table}.parquet").is_file()

    def active(self) -> dict[str, str]:
        """The delivery that each unit is read from, in order of unit."""
        return dict(sorted(self._catalogue.active.items()))

    def history(self) -> dict[str, tuple[UnitVersion, ...]]:
        """The last versions of each active unit of the bill, oldest first, in order of unit.

        A unit that an older program loaded has none until it is replaced.
        """
        kept = self._catalogue.history
        return {unit: kept[unit] for unit in self.active() if unit in kept}

    def quality(self) -> pd.DataFrame:
        """Frame of QUALITY: what was found while the active deliveries were read."""
        rows = [row for record in self.deliveries() for row in record.quality]
        if not rows:
            return frames.empty(QUALITY)
        unique = pd.DataFrame(rows).drop_duplicates(list(QUALITY.key))
        return frames.conform(unique.sort_values(list(QUALITY.key)), QUALITY)

    def _engine(self) -> Any:
        if self._connection is None:
            self._connection = engines.connect()
        return self._connection

    # Writing

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A fresh folder to write one delivery into; what is not published is removed."""
        folder = self.path / DELIVERIES / f"{_STAGING}{uuid.uuid4().hex}"
        with self._writing():
            self._steps.take("make_staging", folder.mkdir)
            alive = steps.hold_shared(folder / _ALIVE, make=True)
        try:
            yield folder
        finally:
            os.close(alive)
            self._steps.take("remove_staging", lambda: shutil.rmtree(folder, ignore_errors=True))

    def publish(self, staged: StagedDelivery, force: bool = False) -> DeliveryResult:
        """What became of the delivery: it is loaded whole, or the store stays as it was.

        `force` waives what `data.store.ranking` says it waives. Raises StoreError where the store
        cannot be written, or the staged file is not what `staged` says of it.
        """
        with self._writing():
            self._catalogue = catalogue_file.read(self.path)
            self._steps.take("remove_orphans", self._remove_orphans)
            verdict = judge(self._catalogue, staged, force, self._is_intact(staged))
            if verdict.status is Status.LOADED:
                reading.check_staged(staged, self._engine())
                folder = self.path / DELIVERIES
                weighed = weigh(self._catalogue, staged, verdict, folder, self._engine())
                verdict = weighed.verdict
                if verdict.status is Status.LOADED:
                    self._put(staged, weighed)
        return DeliveryResult(
            path=staged.path,
            source=staged.source,
            dataset=staged.dataset,
            delivery_id=staged.delivery_id,
            billing_periods=staged.billing_periods,
            rows=staged.rows,
            status=verdict.status,
            reason=verdict.reason,
            warnings=(*staged.warnings, *verdict.warnings),
            replaced=verdict.replaced,
        )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self._steps.take("make_store", self._make)
            with steps.writer_lock(self.path / LOCK, self.wait_s):
                yield
        except OSError as error:
            raise steps.unwritable("the store", self.path, error) from error

    def _make(self) -> None:
        (self.path / DELIVERIES).mkdir(parents=True, exist_ok=True)
        (self.path / _READERS).touch()

    def _is_intact(self, staged: StagedDelivery) -> bool:
        return all(
            self.holds(one)
            for one in self._catalogue.deliveries.values()
            if staged.delivery_id == one.delivery_id or staged.sha256 == one.sha256
        )

    def _put(self, staged: StagedDelivery, weighed: Weighed) -> None:
        folder = self.path / DELIVERIES
        name = _free_name(folder, staged.delivery_id)
        # What was said of it when it was loaded is said as long as it is read.
        warned = replace(staged, warnings=(*staged.warnings, *weighed.verdict.warnings))
        record = _record(warned, name, self._catalogue.sequence + 1)
        after = _with(self._catalogue, record, weighed)
        target = self.path / catalogue_file.FILE
        aside = target.with_suffix(".tmp")
        take = self._steps.take
        take("write_record", lambda: _write_record(staged.folder, record))
        take("sync_staged", lambda: sync_folder(staged.folder, with_files=True))
        take("rename_staged", lambda: staged.folder.rename(folder / name))
        take("sync_deliveries", lambda: sync_folder(folder))
        take("write_catalogue", lambda: write_synced(aside, after.text()))
        take("rename_catalogue", lambda: aside.replace(target))
        take("sync_store", lambda: sync_folder(self.path))
        self._catalogue = after
        take("remove_replaced", self._remove_orphans)

    def _remove_orphans(self) -> None:
        """Remove what no catalogue names: stagings of dead processes, and replaced deliveries.

        Replaced deliveries stay as long as anybody may be reading them.
        """
        (self.path / catalogue_file.FILE).with_suffix(".tmp").unlink(missing_ok=True)
        named = {record.folder for record in self._catalogue.deliveries.values()}
        being_read = self._has_lent_rows or self._has_other_readers()
        for entry in sorted((self.path / DELIVERIES).iterdir()):
            if entry.name.startswith(_STAGING):
                if not steps.is_held(entry / _ALIVE):
                    shutil.rmtree(entry, ignore_errors=True)
            elif entry.name not in named and not being_read:
                shutil.rmtree(entry, ignore_errors=True)

    def _has_other_readers(self) -> bool:
        if self._reader is not None:
            self._reader()
            self._reader = None
        return steps.is_held(self.path / _READERS)


def _free_name(folder: Path, name: str) -> str:
    """The name, or the name with the first number from 2 under which nothing lies."""
    number = 1
    free = name
    while (folder / free).exists():
        number += 1
        free = f"{name}.{number}"
    return free


def _record(staged: StagedDelivery, folder: str, sequence: int) -> DeliveryRecord:
    return DeliveryRecord(
        delivery_id=staged.delivery_id,
        folder=folder,
        table=staged.table,
        source=staged.source,
        dataset=staged.dataset,
        path=staged.path,
        sha256=staged.sha256,
        version_time=None if staged.version_time is None else iso(staged.version_time),
        rows=staged.rows,
        billing_periods=staged.billing_periods,
        sequence=sequence,
        units=staged.units,
        warnings=staged.warnings,
        quality=staged.quality,
        export=staged.export,
    )


def _with(before: Catalogue, record: DeliveryRecord, weighed: Weighed) -> Catalogue:
    """The catalogue in which the delivery has the units it takes; who lost all is superseded."""
    verdict = weighed.verdict
    active = {
        unit: holder
        for unit, holder in before.active.items()
        if holder != record.delivery_id and unit not in verdict.drop
    }
    active.update(dict.fromkeys(verdict.take, record.delivery_id))
    holders = set(active.values())
    lost = sorted(set(before.deliveries) - holders - {record.delivery_id})
    superseded = [
        Superseded(one.delivery_id, one.table, one.dataset, one.sha256, one.path,
                   record.delivery_id)
        for one in (before.deliveries[name] for name in lost)
    ]  # fmt: skip
    kept = [one for one in before.superseded if one.delivery_id != record.delivery_id]
    deliveries = {name: one for name, one in before.deliveries.items() if name in holders}
    deliveries[record.delivery_id] = record
    return replace(
        before,
        deliveries=deliveries,
        active=active,
        superseded=(*kept, *superseded),
        sequence=record.sequence,
        history={**before.history, **weighed.history},
    )


def _write_record(folder: Path, record: DeliveryRecord) -> None:
    """Leave in the folder the rows and `delivery.json`, and nothing that reading needed."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != f"{record.table}.parquet":
            entry.unlink()
    text = json.dumps(record.as_json(), indent=1, ensure_ascii=False) + "\n"
    write_synced(folder / _RECORD, text)
