"""The folder that objects are downloaded to: each in its version, and whole."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from data.errors import MissingCredentials, ProviderError, ProviderUnavailable, StoreError
from data.store import steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from providers.fetch.contract import ObjectStore, StoredObject

LOCK = ".lock"
WAIT_S = 60.0
DOWNLOADS = 4
_OBJECTS = "objects"
_LONGEST_NAME = 120
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO, errno.ENOTDIR,
                errno.EEXIST, errno.EPERM)  # fmt: skip
# Characters that the engine takes for patterns, or that no file should be named with.
_ODD = re.compile(r"[^\w.=+ -]")
_SUFFIX = re.compile(r"(\.[A-Za-z0-9]{1,8}){0,3}$")


class Landing:
    """One source's folder of downloads; held by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stopped: ProviderError | None = None
        self._row = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other pulls of the source out; StoreError where one goes on for too long.

        StoreError too where the disk is full, or may not be written; of a full disk the downloads
        are removed, so that it is usable again.
        """
        try:
            (self.path / _OBJECTS).mkdir(parents=True, exist_ok=True)
            with steps.writer_lock(self.path / LOCK, WAIT_S):
                yield
        except OSError as error:
            if error.errno not in _OF_THE_DISK:
                raise
            self._give_room(error)
            raise steps.unwritable("the folder", self.path, error) from error
        except StoreError as error:
            self._give_room(error)
            raise

    def _give_room(self, error: Exception) -> None:
        """Remove all downloads where the disk is full; the next pull begins them anew."""
        if steps.is_full(error):
            shutil.rmtree(self.path / _OBJECTS, ignore_errors=True)

    def target(self, item: StoredObject) -> Path:
        """Where the object lies once it is downloaded: a folder of its version, its own name."""
        text = f"{item.key}\0{item.version}\0{item.size}"
        folder = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self.path / _OBJECTS / folder / _safe_name(item.key)

    def has(self, item: StoredObject) -> bool:
        """True where the object was downloaded whole."""
        target = self.target(item)
        return target.is_file() and target.stat().st_size == item.size

    def download(
        self, objects: ObjectStore, items: Sequence[StoredObject]
    ) -> dict[StoredObject, ProviderError | None]:
        """What became of each object that was not here yet: None, or why it was not downloaded.

        Some are downloaded at the same time. Where the source lets nobody in, or failed for several
        objects in a row, the rest is not tried, now or later: `stopped` says why.
        """

        def one(item: StoredObject) -> ProviderError | None:
            if self.stopped is not None:
                return self.stopped
            target = self.target(item)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                objects.download(item, target)
            except ProviderError as error:
                self._note(error)
                return error
            self._row = 0
            return None

        with ThreadPoolExecutor(DOWNLOADS) as pool:
            return dict(zip(items, pool.map(one, items), strict=True))

    def _note(self, error: ProviderError) -> None:
        if isinstance(error, ProviderUnavailable):
            self._row += 1
        if isinstance(error, MissingCredentials) or self._row >= DOWNLOADS:
            self.stopped = error

    def discard(self, items: Iterable[StoredObject]) -> None:
        """Remove the downloads of the objects."""
        for item in items:
            shutil.rmtree(self.target(item).parent, ignore_errors=True)

    def prune(self, wanted: Iterable[StoredObject]) -> None:
        """Remove downloads of all but these objects."""
        names = {self.target(item).parent.name for item in wanted}
        for folder in (self.path / _OBJECTS).iterdir():
            if folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)


def _safe_name(key: str) -> str:
    """The last part of the key as a file's name: short, without odd characters, its endings kept.

    >>> _safe_name("exports/cur/2026-11/cur-00001.csv.gz"), _safe_name("a/b[1]*.csv")
    ('cur-00001.csv.gz', 'b_1__.csv')
    """
    name = _ODD.sub("_", key.rstrip("/").rpartition("/")[2])
    if name in ("", ".", ".."):
        return "object"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    ending = _SUFFIX.search(name)
    tail = ending.group() if ending else ""
    short = name.encode()[: _LONGEST_NAME - len(tail)].decode(errors="ignore")
    return short + tail
