"""What a source that can be pulled offers, and what a pull answers; declared once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date, datetime
    from pathlib import Path

    from data.store import DeliveryResult, Store


@dataclass(frozen=True, slots=True, order=True)
class StoredObject:
    """One object of a bucket or container, as its listing shows it.

    `size` is in bytes; `version` changes whenever the content does (S3 and Blob: the ETag, Cloud
    Storage: the generation); `modified` is in UTC.
    """

    key: str
    size: int
    version: str
    modified: datetime


class ObjectStore(Protocol):
    """One bucket or container of a cloud, read only.

    Every method raises MissingCredentials, ProviderUnavailable (trying again may help) or
    ProviderError (it will not), each naming the cloud, the bucket and the key, and no secret.
    Throttling and cut connections are tried again by the SDK before that.
    """

    @property
    def place(self) -> str:
        """The bucket for people, as `s3://bucket`."""
        ...

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Every object whose key begins with the prefix, of every page of the listing."""
        ...

    def read(self, item: StoredObject) -> bytes:
        """The whole content of a small object (a manifest), in the version that was listed."""
        ...

    def download(self, item: StoredObject, target: Path) -> None:
        """Writes the object to the file, whole and in the version that was listed, or raises.

        A download that was cut goes on from `<target>.part` where that is of the same version. The
        target appears by one rename, its size checked.
        """
        ...


@dataclass(frozen=True, slots=True)
class FetchTask:
    """What one source is to be pulled for.

    `options` are the keys of the source's section of the configuration; `landing` is the source's
    own folder for what is downloaded and for what it remembers; `as_of` is the day worked as of;
    `force` reads again what is known already.
    """

    name: str
    options: Mapping[str, Any]
    store: Store
    landing: Path
    as_of: date
    force: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of the pull of one source.

    `objects` and `bytes` count what was downloaded (BigQuery: the rows of the answer, and the bytes
    that the query was billed for). `deliveries` are those that were loaded, rejected, or found
    unchanged; `warnings` are of the source as a whole.
    """

    source: str
    kind: str
    objects: int = 0
    bytes: int = 0
    deliveries: tuple[DeliveryResult, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """The pull as `fetch --json` writes it."""
        return {
            "source": self.source,
            "kind": self.kind,
            "objects": self.objects,
            "bytes": self.bytes,
            "deliveries": [one.as_json() for one in self.deliveries],
            "warnings": list(self.warnings),
        }


class Fetcher(Protocol):
    """Pulls one source into the store.

    Raises ProviderError (or a kind of it) where nothing could be pulled; what the store held stays.
    """

    def __call__(self, task: FetchTask) -> Fetched:
        """What became of the pull."""
        ...
