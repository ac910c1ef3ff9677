"""One container of Azure Blob Storage, read only: its listing, and downloads that go on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from azure.core import MatchConditions
from azure.core.exceptions import AzureError

from providers.azure.failures import mapped
from providers.azure.session import CHUNK, sign_in
from providers.fetch.contract import StoredObject
from providers.fetch.parts import check_size, going_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from azure.storage.blob import BlobProperties

    from providers.azure.places import BlobPlace


class BlobContainer:
    """A container as an ObjectStore; versions are ETags without their quotes."""

    def __init__(
        self, place: BlobPlace, options: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        """The container of the place; raises what signing in raises."""
        signed_in = sign_in(place, options, environment)
        self._client = signed_in.client.get_container_client(place.container)
        self._place, self._how = place.shown, signed_in.how

    @property
    def place(self) -> str:
        """The container for people."""
        return self._place

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Every blob whose name begins with the prefix, of every page; no folders."""
        with self._told(prefix):
            # Metadata tells the folders of a hierarchical account, which are listed as blobs.
            listed = self._client.list_blobs(name_starts_with=prefix or None, include=["metadata"])
            for blob in listed:
                if not _is_folder(blob):
                    yield StoredObject(blob.name, blob.size, _bare(blob.etag), blob.last_modified)

    def read(self, item: StoredObject) -> bytes:
        """The whole content of a small blob, in the version that was listed."""
        content = b"".join(self._chunks(item, 0))
        check_size(item, len(content), self._named(item))
        return content

    def download(self, item: StoredObject, target: Path) -> None:
        """Writes the blob to the file; a download that was cut goes on where it was."""
        with going_on(item, target, self._named(item)) as file:
            for chunk in self._chunks(item, file.tell()):
                file.write(chunk)
                file.flush()

    def _chunks(self, item: StoredObject, begun: int) -> Iterator[bytes]:
        """The blob's bytes from `begun` on, one request each."""
        with self._told(item.key):
            blob = self._client.get_blob_client(item.key)
            for start in range(begun, item.size, CHUNK):
                yield blob.download_blob(
                    offset=start,
                    length=min(CHUNK, item.size - start),
                    etag=f'"{item.version}"',
                    match_condition=MatchConditions.IfNotModified,
                    # A blob that is marked as gzip comes as it is stored, so that sizes agree.
                    decompress=False,
                ).readall()

    def _named(self, item: StoredObject) -> str:
        return f"{self._place}/{item.key}"

    @contextmanager
    def _told(self, key: str) -> Iterator[None]:
        """Errors of the SDK as ours; what they quote does not go on, not even as a cause."""
        try:
            yield
        except AzureError as error:
            raise mapped(error, f"{self._place}/{key}", self._how) from None


def _bare(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')


def _is_folder(blob: BlobProperties) -> bool:
    return str((blob.metadata or {}).get("hdi_isfolder", "")).lower() == "true"
