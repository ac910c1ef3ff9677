"""One bucket of Cloud Storage, read only: its listing, and downloads that go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.api_core.exceptions import NotFound
from google.cloud.storage.retry import DEFAULT_RETRY  # type: ignore[import-untyped]  # no types

from data.errors import Problem, ProviderUnavailable
from providers.fetch.contract import StoredObject
from providers.fetch.parts import check_size, going_on
from providers.gcp.failures import told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from google.cloud.storage import Client  # type: ignore[import-untyped]  # no types

    from providers.gcp.places import BucketPlace

# One request fetches at most this many bytes.
CHUNK = 16 * 1024 * 1024
_TIMEOUT = (20.0, 60.0)
_RETRY = DEFAULT_RETRY.with_timeout(120.0)


class Bucket:
    """A bucket as an ObjectStore; versions are generations."""

    def __init__(self, client: Client, place: BucketPlace) -> None:
        self._bucket = client.bucket(place.bucket)
        self._client = client
        self._place = place.shown
        self._remedy = f"grant whoever asks roles/storage.objectViewer on the bucket {place.bucket}"

    @property
    def place(self) -> str:
        """The bucket for people."""
        return self._place

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Every object whose name begins with the prefix, of every page; no folders."""
        with told(f"{self._place}/{prefix}", self._remedy):
            listed = self._client.list_blobs(
                self._bucket, prefix=prefix or None, retry=_RETRY, timeout=_TIMEOUT
            )
            for blob in listed:
                # The console marks a folder by an empty object with a slash at its end.
                if not blob.name.endswith("/"):
                    version = str(blob.generation)
                    yield StoredObject(blob.name, int(blob.size or 0), version, blob.updated)

    def read(self, item: StoredObject) -> bytes:
        """The whole content of a small object, in the version that was listed."""
        content = b"".join(self._chunks(item, 0))
        check_size(item, len(content), self._named(item))
        return content

    def download(self, item: StoredObject, target: Path) -> None:
        """Writes the object to the file; a download that was cut goes on where it was."""
        with going_on(item, target, self._named(item)) as file:
            for chunk in self._chunks(item, file.tell()):
                file.write(chunk)
                file.flush()

    def _chunks(self, item: StoredObject, begun: int) -> Iterator[bytes]:
        """The object's bytes from `begun` on, one request each, as they are stored."""
        where = f"{self._place}/{item.key}"
        blob = self._bucket.blob(item.key, generation=int(item.version))
        with told(where, self._remedy):
            for start in range(begun, item.size, CHUNK):
                try:
                    yield blob.download_as_bytes(
                        start=start,
                        end=min(start + CHUNK, item.size) - 1,
                        raw_download=True,
                        retry=_RETRY,
                        timeout=_TIMEOUT,
                    )
                except NotFound:  # this generation; without versioning the last one alone is kept
                    what = "it changed or went after it was listed"
                    problem = Problem(where, what, "run fetch again")
                    raise ProviderUnavailable(
                        "gcp: the export cannot be read now", [problem]
                    ) from None

    def _named(self, item: StoredObject) -> str:
        return f"{self._place}/{item.key}"
