"""Whatever a manifest says, it is read, is none, or is broken: nothing else comes of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from data.store import Store
from providers.files.deliveries import deliveries_in
from providers.files.loading import load
from providers.files.manifests import BrokenManifest, Manifest, Part, fault_of, manifest_of
from tests.providers.fetch.aws_exports import cur_row, part

WRITTEN = datetime(2026, 11, 20, tzinfo=UTC)
LEGACY = {
    "assemblyId": "a1", "account": "0011", "reportName": "r", "reportId": "i",
    "billingPeriod": {"start": "20261101T000000.000Z"}, "reportKeys": ["a/1.csv"],
}  # fmt: skip
EXPORT = {
    "executionId": "r1", "exportArn": "arn:aws:b:us-east-1:0011:export/x",
    "dataFiles": ["s3://b/data/BILLING_PERIOD=2026-11/1.csv.gz"],
}  # fmt: skip
AZURE = {
    "blobCount": 1, "byteCount": 7, "dataRowCount": 2,
    "exportConfig": {"exportName": "e", "type": "ActualCost", "resourceId": "/subscriptions/s/x"},
    "runInfo": {"runId": "u", "submittedTime": "2026-11-20T03:00:00Z",
                "startDate": "2026-11-01T00:00:00"},
    "blobs": [{"blobName": "e/1.csv", "byteCount": 7, "dataRowCount": 2}],
}  # fmt: skip
ODD = (None, "", "x", "²", "s3://[", 7, -1, 1.5, True, float("nan"), [], [1], {}, {"a": 1},
       "9" * 5000, 10**4000, "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00")  # fmt: skip


def read(document: object) -> Manifest | str | None:
    try:
        return manifest_of(json.dumps(document).encode(), Path("p/manifest.json"), WRITTEN)
    except BrokenManifest as error:
        return str(error)


def changed(document: dict[str, Any], value: object) -> list[dict[str, Any]]:
    """The document with each of its values, and of those inside it, in turn exchanged."""
    found = []
    for name, inside in document.items():
        found.append({**document, name: value})
        if isinstance(inside, dict):
            found += [{**document, name: one} for one in changed(inside, value)]
        elif isinstance(inside, list):
            more = changed(inside[0], value) if isinstance(inside[0], dict) else []
            found += [{**document, name: [one]} for one in [value, *more]]
    return found


@pytest.mark.parametrize("document", [LEGACY, EXPORT, AZURE], ids=["legacy", "export", "azure"])
def test_an_odd_value_anywhere_is_read_or_told_and_never_an_error(document: dict[str, Any]) -> None:
    whole = read(document)
    assert isinstance(whole, Manifest)
    assert (whole.period, whole.faults, whole.warnings) == ("2026-11", (), ())
    answers = [read(one) for value in ODD for one in changed(document, value)]
    assert len(answers) >= 4 * len(ODD)
    for answer in answers:
        assert answer is None or isinstance(answer, Manifest) or len(answer) > 8
        if isinstance(answer, Manifest):
            assert all(one.key and isinstance(one.key, str) for one in answer.parts)
            assert answer.time is None or answer.time.tzinfo is UTC
            assert answer.id


def test_counts_are_whole_numbers_or_are_not_stated() -> None:
    (blob,) = AZURE["blobs"]
    for odd in ("²", -1, 1.5, True, "9" * 5000, "x", [7]):
        assert read({**AZURE, "blobs": [{**blob, "byteCount": odd}]}) == "its byteCount is no count"
    for unstated in (None, ""):
        answer = read({**AZURE, "byteCount": unstated, "blobs": [{**blob, "byteCount": unstated}]})
        assert isinstance(answer, Manifest)
        assert (answer.bytes, answer.parts) == (None, (Part("e/1.csv", None, 2),))


def test_one_file_with_two_counts_is_no_manifest() -> None:
    (blob,) = AZURE["blobs"]
    twice = {**AZURE, "blobs": [blob, {**blob, "byteCount": 8}]}
    assert read(twice) == "it names e/1.csv twice, with different counts"


def export(folder: Path, run: str, cost: int, *, times: int = 1) -> Path:
    key = f"data/BILLING_PERIOD=2026-11/{run}/1%2F2.csv.gz"
    (folder / key).parent.mkdir(parents=True)
    (folder / key).write_bytes(part([cur_row("2026-11", cost)], "csv.gz"))
    path = folder / f"metadata/BILLING_PERIOD=2026-11/{run}/gpu-Manifest.json"
    path.parent.mkdir(parents=True)
    document = {**EXPORT, "executionId": run, "dataFiles": [f"s3://b/gpu/{key}"] * times}
    path.write_text(json.dumps(document))
    return path


def test_on_disk_a_broken_manifest_is_rejected_by_name_beside_a_whole_one(tmp_path: Path) -> None:
    export(tmp_path, "r1", 100, times=2)
    broken = export(tmp_path, "r2", 300)
    broken.write_bytes(broken.read_bytes()[:40])
    (one,) = (one for one in deliveries_in([tmp_path]) if one.problems)
    assert (one.shown, one.files, fault_of(broken)) == (
        str(broken), (), "it is no JSON, or was cut off",
    )  # fmt: skip
    store = Store.open(tmp_path / "store")
    found = {str(one.status): one for one in load([tmp_path], store)}
    store.close()
    assert set(found) == {"loaded", "rejected"}
    assert f"{broken}: its manifest cannot be read: it is no JSON" in str(found["rejected"].reason)
    assert found["loaded"].rows == 1
    assert any("a file more than once" in text for text in found["loaded"].warnings)
