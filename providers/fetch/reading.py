"""Manifests of a bucket, each version read once, and what is wrong with those that cannot be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import MissingCredentials, ProviderError
from providers.fetch.landing import DOWNLOADS
from providers.files.deliveries import unreadable
from providers.files.manifests import (
    LARGEST_MANIFEST,
    BrokenManifest,
    Manifest,
    manifest_of,
    too_large,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from providers.fetch.contract import ObjectStore, StoredObject
    from providers.fetch.index import Index

_MOST_FAILED = 8


@dataclass(slots=True)
class Manifests:
    """Reads manifests, each version once; counts what it read.

    `failed` are those that the bucket did not give; the faults of those that it gave are remembered
    with the others.
    """

    objects: ObjectStore
    index: Index
    force: bool = False
    objects_read: int = 0
    bytes_read: int = 0
    whole: dict[str, Manifest | None] = field(default_factory=dict)
    failed: dict[str, ProviderError] = field(default_factory=dict)

    def summaries(self, items: Sequence[StoredObject]) -> None:
        """Read those of the items that are new or changed, some at the same time.

        Of one that cannot be read it is remembered why; raises that where many cannot be.
        """
        new = [item for item in items if not self._is_known(item)]
        with ThreadPoolExecutor(DOWNLOADS) as pool:
            for item, content in zip(new, pool.map(self._content, new), strict=True):
                if isinstance(content, ProviderError):
                    self.failed[item.key] = content
                    if len(self.failed) > _MOST_FAILED:
                        raise content
                    continue
                found, fault = self._parsed(item, content)
                self.whole[item.key] = found
                self.index.keep_manifest(item, found, fault)

    def summary(self, item: StoredObject) -> Manifest | None:
        """The manifest without its document, None if the object is none or cannot be read."""
        if not self._is_known(item):
            self.summaries([item])
        if item.key in self.failed:
            return None
        return self.index.manifest(item)

    def fault(self, item: StoredObject) -> str | None:
        """What is wrong with a manifest that has no summary; None where it is of another kind."""
        if item.key in self.failed:
            return self.failed[item.key].one_line
        return self.index.fault(item)

    def full(self, item: StoredObject) -> Manifest | None:
        """The manifest with its document; raises ProviderError where it cannot be read."""
        if item.key not in self.whole:
            found, fault = self._parsed(item, self.objects.read(item))
            if fault is not None:
                where = f"{self.objects.place}/{item.key}"
                raise ProviderError("the delivery is not complete", [unreadable(where, fault)])
            self.whole[item.key] = found
        return self.whole[item.key]

    def _parsed(
        self, item: StoredObject, content: bytes | None
    ) -> tuple[Manifest | None, str | None]:
        """The manifest, and what is wrong with it; None of `content` is one that is too large."""
        if content is None:
            return None, too_large(item.size)
        self.objects_read += 1
        self.bytes_read += item.size
        try:
            return manifest_of(content, Path(item.key), item.modified), None
        except BrokenManifest as error:
            return None, str(error)

    def _is_known(self, item: StoredObject) -> bool:
        if item.key in self.whole or item.key in self.failed:
            return True
        if self.force:
            return False
        try:
            self.index.manifest(item)
        except KeyError:
            return False
        return True

    def _content(self, item: StoredObject) -> bytes | ProviderError | None:
        if item.size > LARGEST_MANIFEST:
            return None
        try:
            return self.objects.read(item)
        except MissingCredentials:
            raise
        except ProviderError as error:
            return error
