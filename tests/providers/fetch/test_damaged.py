"""Deliveries that are damaged or under way: told by name, and what was loaded before stays."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from providers.files.manifests import LARGEST_MANIFEST
from tests.azure_runs import Run, days
from tests.providers.fetch.aws_exports import cur_row, part, told
from tests.providers.fetch.memory_bucket import MemoryBucket, MemoryPuller

if TYPE_CHECKING:
    from pathlib import Path

MONTH = "2026-11"
HOME = "exports/gpu/metadata/BILLING_PERIOD=2026-11"
DATA = "exports/gpu/data/BILLING_PERIOD=2026-11"
KEPT = [("unchanged", MONTH), ("rejected", "")]


@pytest.fixture
def puller(tmp_path: Path) -> MemoryPuller:
    return MemoryPuller(MemoryBucket(), tmp_path)


def reasons(puller: MemoryPuller) -> list[str]:
    return [one.reason or "" for one in puller.pull().deliveries if str(one.status) == "rejected"]


def test_a_broken_newer_manifest_is_rejected_by_name_and_the_older_delivery_counts(
    puller: MemoryPuller,
) -> None:
    bucket = puller.bucket
    bucket.data_export(MONTH, "r1", 100, in_own_folder=True)
    bucket.wait()
    key = f"{HOME}/r2/gpu-Manifest.json"
    bucket.put(f"{DATA}/r2/gpu-00001.csv.gz", part([cur_row(MONTH, 300)], "csv.gz"))
    bucket.put(key, b'{"executionId": "r2", "dataFi')
    first = puller.pull()
    assert told(first) == [("loaded", MONTH), ("rejected", "")]
    broken = {
        b"": "it is empty",
        json.dumps({"dataFiles": []}).encode("utf-16"): "no UTF-8 text",
        b"[1, 2]": "no JSON object",
        b"null": "no JSON object",
        b'{"dataFiles": null}': "its dataFiles is no list",
        b'{"dataFiles": [1]}': "names no file",
        b"[" * 100_000: "nested too deeply",
        b'{"executionId": ' + b"9" * 10_000 + b"}": "no JSON",
        b'{"dataFiles": ["s3://b/\\ud800"]}': "half a character",
        b'{"executionId": "r2"}': "names no files",
        b" " * (LARGEST_MANIFEST + 1): "too large",
    }
    for content, reason in broken.items():
        bucket.put(key, content)
        fetched = puller.pull()
        assert told(fetched) == KEPT, reason
        shown = str(fetched.deliveries[1].reason)
        assert f"s3://bills/{key}: its manifest cannot be read" in shown
        assert reason in shown
        assert "export again" in shown
        assert fetched.objects == len(bucket.read_keys) == (reason != "too large")
        assert (told(puller.pull()), bucket.read_keys) == (KEPT, [])
    # A newer delivery that can be read makes the broken one one of the past.
    bucket.wait()
    bucket.data_export(MONTH, "r3", 310, in_own_folder=True)
    assert told(puller.pull()) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 310}


def test_a_broken_run_of_azure_beside_an_older_one_and_then_in_its_place(
    puller: MemoryPuller,
) -> None:
    puller.prefix = "daily"
    run = Run("r1", "2026-11-20T03:00:00Z", (days("100"),)).put(puller.bucket)
    puller.bucket.wait()
    Run("r2", "2026-11-21T03:00:00Z", (days("100", "50"),)).put(puller.bucket)
    key = "daily/gpu-actual/20261101-20261130/{}/manifest.json"
    puller.bucket.put(key.format("r2"), b'{"manifestVersion": "2024-04-01", "blobs": [{"blobN')
    assert told(puller.pull()) == [("loaded", MONTH), ("rejected", "")]
    assert puller.costs() == {MONTH: 100}
    puller.bucket.put(key.format("r1"), b'{"blobs": ["part"]}')
    fetched = puller.pull()
    assert sorted(told(fetched)) == [("rejected", ""), ("unchanged", MONTH)]
    # The older run, written again, is no newer for that; the next run is.
    run.put(puller.bucket)
    assert sorted(told(puller.pull())) == [("rejected", ""), ("unchanged", MONTH)]
    Run("r3", "2026-11-22T03:00:00Z", (days("100", "51"),)).put(puller.bucket)
    assert told(puller.pull()) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 151}


def overwritten(puller: MemoryPuller, seconds: float, *late: int) -> None:
    """Both files of a delivery, some of which are written that long after its manifest."""
    keys = puller.bucket.data_export(MONTH, "r1", 110, 11)
    written = puller.bucket.blobs[keys[-1]][1] + timedelta(seconds=seconds)
    for number in late:
        content = part([cur_row(MONTH, 500 + number, number)], "csv.gz")
        puller.bucket.put(keys[number], content, written)


def test_files_that_are_newer_than_their_manifest_are_a_delivery_under_way(
    puller: MemoryPuller,
) -> None:
    """100 + 10 are in the store; 110 + 11 were delivered, and 500 + 11 is neither."""
    puller.bucket.data_export(MONTH, "r0", 100, 10)
    puller.pull()
    puller.bucket.wait()
    overwritten(puller, 2, 0)
    for _night in range(2):
        fetched = puller.pull()
        assert told(fetched) == [("unchanged", MONTH)]
        (warning,) = fetched.warnings
        assert "a delivery is under way: 1 of its 2 files were written after it" in warning
        assert "what was loaded stays" in warning
        assert puller.costs() == {MONTH: 110}
    fresh = puller.fresh("fresh")
    (reason,) = reasons(fresh)
    assert "a delivery is under way" in reason
    assert fresh.costs() == {}
    puller.bucket.wait()
    puller.bucket.data_export(MONTH, "r2", 500, 50)
    for one in (puller, fresh):
        assert told(one.pull()) == [("loaded", MONTH)]
        assert one.costs() == {MONTH: 550}


def test_a_second_is_no_delivery_under_way_nor_is_what_is_forced(puller: MemoryPuller) -> None:
    overwritten(puller, 1, 0)
    assert told(puller.pull()) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 511}
    puller.bucket.wait()
    overwritten(puller, 60, 1)
    assert told(puller.pull(force=True)) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 611}


def azure_mixture(bucket: MemoryBucket) -> None:
    """Two runs into one folder: the second has written the first of its two files, as long."""
    one = Run("r1", "2026-11-20T03:00:00Z", (days("100"), days("101")), folder="same")
    one.put(bucket)
    bucket.wait()
    key = "daily/gpu-actual/20261101-20261130/same/part_1_0001.csv"
    bucket.put(key, bucket.blobs[key][0].replace(b",100,", b",200,"))


def test_a_run_of_azure_that_overwrites_is_waited_for(puller: MemoryPuller) -> None:
    puller.prefix = "daily"
    azure_mixture(puller.bucket)
    (reason,) = reasons(puller)
    assert "a delivery is under way: 1 of its 2 files" in reason


@pytest.mark.parametrize("kind", ["export", "legacy", "azure"])
def test_a_file_that_is_named_twice_is_read_once_and_told(kind: str, puller: MemoryPuller) -> None:
    bucket = puller.bucket
    names: dict[str, str] = {"export": "dataFiles", "legacy": "reportKeys", "azure": "blobs"}
    if kind == "export":
        bucket.data_export(MONTH, "r1", 60, 40)
    elif kind == "legacy":
        bucket.legacy(MONTH, "a1", 60, 40)
    else:
        puller.prefix = "daily"
        Run("r1", "2026-11-20T03:00:00Z", (days("60"), days("40"))).put(bucket)
    for key, (content, written) in list(bucket.blobs.items()):
        if key.lower().endswith("manifest.json"):
            document: dict[str, Any] = json.loads(content.decode("utf-8-sig"))
            document[names[kind]] *= 2
            bucket.put(key, json.dumps(document).encode(), written)
    fetched = puller.pull()
    assert told(fetched) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 100}
    assert any("2 files more than once" in text for text in fetched.deliveries[0].warnings)


@pytest.mark.parametrize(
    ("name", "by"), [("blobCount", 1), ("byteCount", -1), ("dataRowCount", 28)]
)
def test_totals_of_an_azure_run_that_differ_from_its_blobs_rule_it_out(
    name: str, by: int, puller: MemoryPuller
) -> None:
    puller.prefix = "daily"
    Run("r1", "2026-11-20T03:00:00Z", (days("100"), days("0.5"))).put(puller.bucket)
    (key,) = (key for key in puller.bucket.blobs if key.endswith("manifest.json"))
    document = json.loads(puller.bucket.blobs[key][0].decode("utf-8-sig"))
    document[name] += by
    puller.bucket.put(key, json.dumps(document).encode())
    (reason,) = reasons(puller)
    assert f"its {name} is {document[name]}, and its blobs have {document[name] - by}" in reason
    for blob in document["blobs"]:
        blob.pop("byteCount")
    puller.bucket.put(key, json.dumps(document).encode())
    (reason,) = reasons(puller)
    assert ("by the manifest" if name == "byteCount" else f"its {name} is") in reason


def test_a_newest_run_that_is_found_damaged_leaves_the_older_one_and_is_told(
    puller: MemoryPuller,
) -> None:
    bucket = puller.bucket
    for run, cost in (("r1", 90), ("r2", 100), ("r3", 110)):
        keys = bucket.data_export(MONTH, run, cost, in_own_folder=True)
        bucket.wait()
    whole = bucket.blobs[keys[0]][0]
    bucket.put(keys[0], whole[: len(whole) // 2])
    fetched = puller.pull()
    assert told(fetched) == [("loaded", MONTH), ("rejected", MONTH)]
    assert "/r3/" in fetched.deliveries[1].path
    assert puller.costs() == {MONTH: 100}
    # The next night: the newest is tried again, from its download, and the former is the bill.
    again = puller.pull()
    assert told(again) == [("unchanged", MONTH), ("rejected", MONTH)]
    assert (again.objects, bucket.read_keys) == (1, [keys[1]])
    bucket.put(keys[0], whole)
    bucket.put(keys[1], bucket.blobs[keys[1]][0])
    assert told(puller.pull()) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 110}


def test_where_only_an_older_run_is_left_the_store_keeps_the_newer_and_lists_it(
    puller: MemoryPuller,
) -> None:
    bucket = puller.bucket
    puller.prefix = "daily"
    Run("r1", "2026-11-20T03:00:00Z", (days("100"),)).put(bucket)
    old = dict(bucket.blobs)
    Run("r2", "2026-11-21T03:00:00Z", (days("100", "110"),)).put(bucket)
    puller.pull()
    bucket.blobs = old
    fetched = puller.pull()
    assert sorted(status for status, _ in told(fetched)) == ["ignored_older", "unchanged"]
    (kept,) = (one for one in fetched.deliveries if str(one.status) == "unchanged")
    assert ("/r2/" in kept.path, kept.rows) == (True, 2)


def test_a_folder_of_objects_that_are_no_export_says_how_many_and_what_is_expected(
    puller: MemoryPuller,
) -> None:
    puller.bucket.put("exports/notes.txt", b"x")
    puller.bucket.put("exports/gpu/data/BILLING_PERIOD=2026-11/x.orc", b"x")
    fetched = puller.pull()
    assert fetched.deliveries == ()
    (warning,) = fetched.warnings
    assert "s3://bills/exports: 2 objects lie there and none is an export" in warning
    assert "a manifest and its files" in warning
    puller.bucket.blobs.clear()
    puller.bucket.data_export("2025-03", "r1", 1)
    (warning,) = puller.pull().warnings
    assert "2 objects lie there, and no export of 2025-11 or later" in warning


@pytest.mark.parametrize("name", ["gpu%2F1.csv.gz", "gpu?a=1#b.csv.gz", "gpu 1+2%.csv.gz"])
def test_keys_are_taken_as_they_stand_before_they_are_resolved(
    name: str, puller: MemoryPuller
) -> None:
    key = f"{DATA}/{name}"
    puller.bucket.put(key, part([cur_row(MONTH, 100)], "csv.gz"))
    document = {"executionId": "r1", "dataFiles": [f"s3://bills/{key}"]}
    puller.bucket.put(f"{HOME}/gpu-Manifest.json", json.dumps(document).encode())
    assert told(puller.pull()) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 100}


def test_a_json_object_of_another_kind_hides_no_extract_beside_it(puller: MemoryPuller) -> None:
    puller.bucket.put("exports/app/manifest.json", b'{"name": "app"}')
    rows = gzip.decompress(part([cur_row(MONTH, 100)], "csv.gz"))
    puller.bucket.put("exports/app/bill.csv", rows)
    assert told(puller.pull()) == [("loaded", MONTH)]
    assert puller.costs() == {MONTH: 100}
