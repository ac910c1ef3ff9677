"""Extracts in a bucket of Cloud Storage, read from the bundled fake-gcs-server."""

from __future__ import annotations

import gzip
import json
import os
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import ProviderError, ProviderUnavailable
from data.hours import iso
from data.store import Store
from data.totals import totals
from providers.fetch.contract import Fetched, FetchTask
from providers.gcp import storage
from providers.gcp.fetch import fetch
from providers.gcp.places import BucketPlace
from providers.gcp.storage import Bucket
from tests.gcs_server import client, serving
from tests.providers.gcp_cases import ON_DEMAND, charge, credit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture
def bucket(root: str, request: pytest.FixtureRequest) -> Any:
    """A bucket of the test's own."""
    name = "bills-" + request.node.name.replace("_", "-")[:40].strip("-").lower()
    return client(root).create_bucket(name)


def reader(root: str, bucket: Any) -> Bucket:
    return Bucket(client(root), BucketPlace(bucket.name, ""))


def put(bucket: Any, name: str, content: bytes) -> None:
    bucket.blob(name).upload_from_string(content, content_type="application/octet-stream")


def test_every_page_is_listed_without_the_marks_of_folders(root, bucket):
    for number in range(7):
        put(bucket, f"a/{number}", b"x" * number)
    put(bucket, "a/", b"")
    put(bucket, "b/1", b"y")
    listed = list(reader(root, bucket).objects("a/"))
    assert [(one.key, one.size) for one in listed] == [(f"a/{n}", n) for n in range(7)]
    assert all(one.version.isdigit() and one.modified.tzinfo for one in listed)


def test_a_download_goes_on_from_its_part_of_the_same_version(root, bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "CHUNK", 1000)
    content = bytes(range(256)) * 20  # 5120 bytes: six requests
    put(bucket, "part-000000000000.json.gz", content)
    objects = reader(root, bucket)
    (item,) = objects.objects("")
    target = tmp_path / "there" / "file"
    target.parent.mkdir()
    part = target.with_name("file.part")
    # A part that differs from the object's beginning is told by the result: it is not read again.
    part.write_bytes(b"\xff" * 3000)
    part.with_name("file.part.version").write_text(item.version)
    objects.download(item, target)
    assert target.read_bytes() == b"\xff" * 3000 + content[3000:]
    # Of another version nothing is taken over.
    part.write_bytes(b"\xff" * 3000)
    part.with_name("file.part.version").write_text("1")
    objects.download(item, target)
    assert target.read_bytes() == content
    assert objects.read(item) == content
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_an_object_that_changed_after_it_was_listed_is_not_read(root, bucket, tmp_path):
    put(bucket, "x", b"first")
    objects = reader(root, bucket)
    (item,) = objects.objects("x")
    put(bucket, "x", b"other")
    with pytest.raises(ProviderUnavailable) as caught:
        objects.download(item, tmp_path / "x")
    assert "it changed or went after it was listed" in caught.value.problems[0].what
    assert not (tmp_path / "x").exists()
    with pytest.raises(ProviderUnavailable):
        objects.read(item)


def test_a_bucket_that_is_not_there_is_named_with_the_role_to_grant(root):
    objects = Bucket(client(root), BucketPlace("no-such-bucket", ""))
    with pytest.raises(ProviderError) as caught:
        list(objects.objects("a/"))
    (problem,) = caught.value.problems
    assert problem.where == "gs://no-such-bucket/a/"
    assert "roles/storage.objectViewer on the bucket no-such-bucket" in problem.remedy


def pull(folder: Path, bucket: Any) -> Fetched:
    options = {"kind": "gcp", "billing": f"gs://{bucket.name}/exports/detailed", "months": 13}
    store = Store.open(folder / "store")
    return fetch(FetchTask("bills", options, store, folder / "landing", date(2026, 9, 30)))


def lines(*rows: dict[str, Any]) -> bytes:
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0)


def test_an_extract_in_two_parts_is_one_delivery_and_is_downloaded_once(
    root, bucket, tmp_path, monkeypatch
):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", root)
    folder = "exports/detailed/2026-09"
    put(bucket, f"{folder}/bill-000000000000.json.gz", lines(charge(ON_DEMAND, "30")))
    second = charge("A3 Instance Core running in Americas", "8.5", credits=[credit("-0.25")])
    put(bucket, f"{folder}/bill-000000000001.json.gz", lines(second))
    put(bucket, "exports/detailed-old/bill.json", lines(charge(ON_DEMAND, "1000")))

    first = pull(tmp_path, bucket)
    assert [(one.status, one.rows) for one in first.deliveries] == [("loaded", 2)]
    assert first.objects == 2
    frame = totals(Store.open(tmp_path / "store").table("billing"), ["billing_period"])
    assert frame["billed_cost"].tolist() == [Decimal("38.25")]  # 30 + 8.5 - 0.25
    again = pull(tmp_path, bucket)
    assert (again.objects, again.deliveries[0].status) == (0, "unchanged")
    assert not [p for p in (tmp_path / "landing").rglob("*.gz") if os.fspath(p)]


def test_an_extract_that_lost_a_file_is_warned_of_until_it_is_whole(
    root, bucket, tmp_path, monkeypatch
):
    """Three files of one charge each in one hour, then two: 12 of 36 are gone, less than half."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", root)
    name = "exports/detailed/2026-09/bill-{:012d}.json.gz"
    for number in range(3):
        machine = {"resource": {"name": f"vm-{number}"}}
        put(bucket, name.format(number), lines({**charge(ON_DEMAND, "12"), **machine}))
    (whole,) = pull(tmp_path, bucket).deliveries
    assert (whole.rows, whole.warnings) == (3, ())
    ((version,),) = Store.open(tmp_path / "store").history().values()
    newest = max(one.modified for one in reader(root, bucket).objects("exports/"))
    assert (version.confirmed, version.export) == (iso(newest), None)
    bucket.blob(name.format(2)).delete()
    for status in ("loaded", "unchanged"):
        (short,) = pull(tmp_path, bucket).deliveries
        assert (short.status, len(short.warnings)) == (status, 1)
        assert "1 of 3 charges of hours that were there are gone, and 12 USD" in short.warnings[0]
    put(bucket, name.format(2), lines(charge(ON_DEMAND, "12")))
    (again,) = pull(tmp_path, bucket).deliveries
    assert (again.status, again.warnings) == ("loaded", ())


def test_an_object_that_cannot_be_read_is_named_and_no_folder_of_this_machine(
    root, bucket, tmp_path, monkeypatch
):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", root)
    text = "".join(json.dumps(charge(ON_DEMAND, "30")) + "\n" for _ in range(2))
    put(bucket, "exports/detailed/2026-09/bill-000000000000.json", text.encode())
    put(bucket, "exports/detailed/2026-09/bill-000000000001.json", text[:-40].encode())
    (broken,) = pull(tmp_path, bucket).deliveries
    assert broken.status == "rejected"
    where = f"gs://{bucket.name}/exports/detailed/2026-09/bill-000000000001.json: "
    assert broken.reason.startswith(f"cannot be read: {where}Malformed JSON, at byte ")
    assert str(tmp_path) not in broken.reason
