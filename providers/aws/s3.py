"""One bucket of Amazon S3, read only: its listing, and downloads that go on."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, FlexibleChecksumError

from data.errors import Problem, ProviderError, ProviderUnavailable
from providers.aws.failures import mapped
from providers.fetch.contract import StoredObject
from providers.fetch.parts import check_size, going_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from providers.aws.session import SignedIn

CHUNK = 1024 * 1024
# A stream that breaks off is asked for again from where it broke; the SDK does not do that.
_TRIES_WITHOUT_A_BYTE = 5
_PAUSE_S = 0.5
_S3 = {"us_east_1_regional_endpoint": "regional"}


class S3Bucket:
    """A bucket as an ObjectStore; versions are ETags without their quotes."""

    def __init__(
        self, signed_in: SignedIn, bucket: str, pause: Callable[[float], None] = time.sleep
    ) -> None:
        """The bucket, asked at the endpoint of its own region; raises what signing in raises."""
        self._how, self._bucket, self._pause = signed_in.how, bucket, pause
        with self._told(""):
            # Half a pair of keys, or an unreadable setting of the host, is found by making one.
            client = signed_in.client("s3", signed_in.region, s3=_S3)
            region = _region_of(client, bucket)
            if region not in (None, signed_in.region):
                client = signed_in.client("s3", str(region), s3=_S3)
        self._client = client

    @property
    def place(self) -> str:
        """The bucket for people."""
        return f"s3://{self._bucket}"

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Every object whose key begins with the prefix, of every page."""
        with self._told(prefix):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=prefix):
                for one in page.get("Contents", ()):
                    etag = one["ETag"].strip('"')
                    yield StoredObject(one["Key"], one["Size"], etag, one["LastModified"])

    def read(self, item: StoredObject) -> bytes:
        """The whole content of a small object, in the version that was listed."""
        content = bytearray()
        self._follow(item, lambda: len(content), content.extend)
        return bytes(content)

    def download(self, item: StoredObject, target: Path) -> None:
        """Writes the object to the file; a download that was cut goes on where it was."""
        with going_on(item, target, self._named(item)) as file:
            self._follow(item, file.tell, file.write)

    def _follow(
        self, item: StoredObject, done: Callable[[], int], take: Callable[[bytes], object]
    ) -> None:
        """Take the bytes of the object from where `done` is, going on where a stream breaks off."""
        left = _TRIES_WITHOUT_A_BYTE
        while done() < item.size:
            before = done()
            broken = self._stream(item, before, take)
            if done() > before:
                left = _TRIES_WITHOUT_A_BYTE
            elif left == 1:
                if broken is not None:
                    raise broken
                check_size(item, before, self._named(item))
            else:
                left -= 1
                self._pause(_PAUSE_S * 2 ** (_TRIES_WITHOUT_A_BYTE - left))
        check_size(item, done(), self._named(item))

    def _stream(
        self, item: StoredObject, start: int, take: Callable[[bytes], object]
    ) -> ProviderError | None:
        """Why the stream broke off, None where it did not; raises where there is none.

        The SDK checks a whole object against its checksum. Of a range S3 may tell the checksum of
        checksums of the object's parts, which the SDK takes for that of the range.
        """
        wanted = {"Bucket": self._bucket, "Key": item.key, "IfMatch": f'"{item.version}"'}
        if start:
            wanted["Range"] = f"bytes={start}-"
        with self._told(item.key):
            answer = self._client.get_object(**wanted)
        try:
            with self._told(item.key), closing(answer["Body"]) as body:
                while chunk := body.read(CHUNK):
                    take(chunk)
        except FlexibleChecksumError:
            if start == 0:
                what = Problem(
                    f"{self.place}/{item.key}", "its checksum differs", "run fetch again"
                )
                raise ProviderUnavailable("aws: a download is not what was sent", [what]) from None
        except ProviderError as error:
            return error
        return None

    def _named(self, item: StoredObject) -> str:
        return f"{self.place}/{item.key}"

    @contextmanager
    def _told(self, key: str) -> Iterator[None]:
        """Errors of the SDK as ours; what they quote does not go on, not even as a cause."""
        try:
            yield
        except FlexibleChecksumError:
            raise
        except (BotoCoreError, ClientError) as error:
            raise mapped(error, f"{self.place}/{key}".rstrip("/"), self._how) from None


def _region_of(client: Any, bucket: str) -> str | None:
    """The region of the bucket, which S3 tells even to those whom it refuses; None untold."""
    try:
        answer = client.head_bucket(Bucket=bucket)
    except ClientError as error:
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        region = headers.get("x-amz-bucket-region")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        # Listing needs other rights than this: let that be refused, which tells why.
        if region is None and status not in (400, 403):
            raise
        return None if region is None else str(region)
    region = answer.get("BucketRegion") or answer["ResponseMetadata"]["HTTPHeaders"].get(
        "x-amz-bucket-region"
    )
    return None if region is None else str(region)
