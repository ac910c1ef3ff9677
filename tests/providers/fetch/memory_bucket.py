"""A bucket in memory with a clock of its own, and pulls of it, where no wire matters."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from data.store import Store
from data.totals import totals
from providers.fetch.contract import Fetched, FetchTask, StoredObject
from providers.fetch.exports import pull_exports
from tests.providers.fetch import aws_exports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal
    from pathlib import Path

EPOCH = datetime(2026, 11, 20, tzinfo=UTC)


@dataclass
class MemoryBucket(aws_exports.Bucket):
    """Objects with the times of the bucket's clock, which goes on by a second with each."""

    server: Any = None
    name: str = "bills"
    blobs: dict[str, tuple[bytes, datetime]] = field(default_factory=dict)
    now: datetime = EPOCH
    read_keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = f"s3://{self.name}"

    def put(self, key: str, content: bytes, written: datetime | None = None) -> None:
        self.now += timedelta(seconds=1)
        self.blobs[key] = (content, written or self.now)

    def delete(self, key: str) -> None:
        del self.blobs[key]

    def wait(self, hours: float = 8) -> None:
        self.now += timedelta(hours=hours)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        for key, (content, written) in sorted(self.blobs.items()):
            if key.startswith(prefix):
                version = hashlib.sha256(content).hexdigest()
                yield StoredObject(key, len(content), version, written)

    def read(self, item: StoredObject) -> bytes:
        self.read_keys.append(item.key)
        return self.blobs[item.key][0]

    def download(self, item: StoredObject, target: Path) -> None:
        target.write_bytes(self.read(item))


@dataclass
class MemoryPuller:
    """A store, and pulls of a bucket in memory into it."""

    bucket: MemoryBucket
    folder: Path
    prefix: str = "exports"

    def pull(self, *, force: bool = False) -> Fetched:
        store = Store.open(self.folder / "store")
        task = FetchTask("bills", {"kind": "aws"}, store, self.folder / "landing",
                         aws_exports.DAY, force)  # fmt: skip
        self.bucket.read_keys.clear()
        fetched = pull_exports(self.bucket, self.prefix, task)
        store.close()
        return fetched

    def fresh(self, name: str) -> MemoryPuller:
        """Pulls of the same bucket into another store."""
        return MemoryPuller(self.bucket, self.folder / name, self.prefix)

    def costs(self) -> dict[str, Decimal]:
        """The billed cost in the store by billing period."""
        store = Store.open(self.folder / "store")
        table = totals(store.table("billing"), ["billing_period"])
        store.close()
        return dict(zip(table["billing_period"], table["billed_cost"], strict=True))
