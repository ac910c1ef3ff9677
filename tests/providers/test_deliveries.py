"""Which files make one delivery: manifests, numbered parts, folders of folders."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import DataError
from providers.files.deliveries import deliveries_in
from providers.files.manifests import read_manifest

if TYPE_CHECKING:
    from pathlib import Path


def touch(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return paths


def put(path: Path, document: dict[str, Any], age_s: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    os.utime(path, (1_800_000_000 - age_s,) * 2)
    return path


def legacy(assembly: str, *keys: str) -> dict[str, Any]:
    return {"assemblyId": assembly, "account": "0099", "reportId": "r", "reportKeys": list(keys),
            "billingPeriod": {"start": "20261101T000000.000Z"}}  # fmt: skip


def names(folder: Path) -> list[list[str]]:
    return [[file.name for file in one.files] for one in deliveries_in([folder])]


def test_trap_21_a_legacy_manifest_and_its_copy_name_files_account_and_period(
    tmp_path: Path,
) -> None:
    period = tmp_path / "report" / "20261101-20261201"
    touch(period / "a1", "report-1.csv.gz", "report-2.csv.gz")
    keys = [f"/prefix/report/20261101-20261201/a1/report-{n}.csv.gz" for n in (1, 2)]
    put(period / "report-Manifest.json", legacy("a1", *keys))
    put(period / "a1" / "report-Manifest.json", legacy("a1", *keys))  # the identical copy
    (delivery,) = deliveries_in([tmp_path])
    assert [path.name for path in delivery.files] == ["report-1.csv.gz", "report-2.csv.gz"]
    manifest = delivery.manifest
    assert manifest is not None
    assert (manifest.id, manifest.account, manifest.period) == ("a1", "0099", "2026-11")
    assert delivery.problems == ()
    assert delivery.warnings == ()


def test_of_several_assemblies_the_manifest_above_them_decides(tmp_path: Path) -> None:
    period = tmp_path / "20261101-20261201"
    for assembly in ("a1", "a2"):
        touch(period / assembly, "report-1.csv.gz")
        put(period / assembly / "report-Manifest.json",
            legacy(assembly, f"p/20261101-20261201/{assembly}/report-1.csv.gz"))  # fmt: skip
    put(period / "report-Manifest.json", legacy("a2", "p/20261101-20261201/a2/report-1.csv.gz"))
    (delivery,) = deliveries_in([tmp_path])
    assert delivery.files == (period / "a2" / "report-1.csv.gz",)


def test_without_a_manifest_above_the_older_assembly_comes_first(tmp_path: Path) -> None:
    for assembly, age in (("a1", 0), ("a2", 500)):
        touch(tmp_path / assembly, "report-1.csv.gz")
        put(tmp_path / assembly / "report-Manifest.json",
            legacy(assembly, f"p/{assembly}/report-1.csv.gz"), age)  # fmt: skip
    found = deliveries_in([tmp_path])
    assert [one.manifest.id for one in found if one.manifest] == ["a2", "a1"]
    assert [one.manifest.is_dated for one in found if one.manifest] == [False, False]


def test_a_file_that_the_manifest_names_and_that_is_not_there_rules_the_delivery_out(
    tmp_path: Path,
) -> None:
    touch(tmp_path, "report-1.csv.gz")
    put(tmp_path / "report-Manifest.json", legacy("a1", "p/report-1.csv.gz", "p/report-2.csv.gz"))
    (delivery,) = deliveries_in([tmp_path])
    (problem,) = delivery.problems
    assert "missing part" in problem.what
    assert problem.where == "p/report-2.csv.gz"


def test_a_data_export_is_read_by_its_manifest_under_metadata(tmp_path: Path) -> None:
    export = tmp_path / "my-export"
    touch(export, "data/BILLING_PERIOD=2026-11/my-export-00001.csv.gz")
    key = "s3://b/pre/my-export/data/BILLING_PERIOD=2026-11/my-export-00001.csv.gz"
    arn = "arn:aws:bcm-data-exports:us-east-1:000011112222:export/my-export-1"
    put(export / "metadata/BILLING_PERIOD=2026-11/my-export-Manifest.json",
        {"executionId": "e1", "exportArn": arn, "dataFiles": [key]})  # fmt: skip
    (delivery,) = deliveries_in([tmp_path])
    manifest = delivery.manifest
    assert manifest is not None
    assert (manifest.id, manifest.account, manifest.period) == ("e1", "000011112222", "2026-11")
    assert [path.name for path in delivery.files] == ["my-export-00001.csv.gz"]


def test_a_period_with_data_and_no_manifest_is_not_complete(tmp_path: Path) -> None:
    data = touch(tmp_path, "data/billing_period=2026-11/x-00001.csv.gz",
                 "data/billing_period=2026-12/x-00001.csv.gz")  # fmt: skip
    put(tmp_path / "metadata/BILLING_PERIOD=2026-11/x-Manifest.json",
        {"executionId": "e1",
         "dataFiles": [f"s3://b/{data[0].relative_to(tmp_path)}"]})  # fmt: skip
    whole, lacking = deliveries_in([tmp_path])
    assert whole.files == (data[0],)
    assert lacking.files == (data[1],)
    assert "not complete" in lacking.problems[0].what


def azure(run: str, submitted: str, **blob: Any) -> dict[str, Any]:
    return {"blobs": [{"blobName": f"root/{run}/part_0.csv", **blob}],
            "exportConfig": {"exportName": "e", "type": "ActualCost",
                             "resourceId": "/providers/Microsoft.Billing/billingAccounts/86115"},
            "runInfo": {"runId": run, "submittedTime": submitted,
                        "startDate": "2026-11-01T00:00:00"}}  # fmt: skip


def test_an_azure_manifest_states_time_account_and_month(tmp_path: Path) -> None:
    path = put(tmp_path / "manifest.json", azure("r1", "2026-11-02T01:02:03.1234567Z"))
    manifest = read_manifest(path)
    assert manifest is not None
    assert manifest.time is not None
    assert manifest.time.isoformat() == "2026-11-02T01:02:03.123456+00:00"
    assert (manifest.account, manifest.period, manifest.is_dated) == ("86115", "2026-11", True)


def test_runs_of_an_azure_export_come_in_the_order_of_their_submission(tmp_path: Path) -> None:
    for run, day in (("r9", 2), ("r1", 3)):
        touch(tmp_path / run, "part_0.csv")
        put(tmp_path / run / "manifest.json", azure(run, f"2026-11-0{day}T00:00:00Z"))
    found = deliveries_in([tmp_path])
    assert [one.manifest.id for one in found if one.manifest] == ["r9", "r1"]
    assert [one.files[0].parent.name for one in found] == ["r9", "r1"]


def test_bytes_that_differ_from_the_manifest_rule_the_delivery_out(tmp_path: Path) -> None:
    touch(tmp_path / "r1", "part_0.csv")
    put(tmp_path / "r1" / "manifest.json", azure("r1", "2026-11-02T00:00:00Z", byteCount=7))
    (delivery,) = deliveries_in([tmp_path])
    assert delivery.problems[0].what == "1 bytes, 7 by the manifest"


def test_trap_21_files_beside_a_manifest_that_it_does_not_name_are_left_out_and_told(
    tmp_path: Path,
) -> None:
    touch(tmp_path, "report-1.csv.gz", "report-2.csv.gz")
    put(tmp_path / "report-Manifest.json", legacy("a1", "p/report-1.csv.gz"))
    (delivery,) = deliveries_in([tmp_path])
    assert [path.name for path in delivery.files] == ["report-1.csv.gz"]
    assert "report-2.csv.gz" in delivery.warnings[0]


def test_numbered_parts_of_an_extract_are_one_delivery_in_the_order_of_their_numbers(
    tmp_path: Path,
) -> None:
    touch(tmp_path, "g-000000000001.json.gz", "g-000000000000.json.gz", "other.csv")
    assert names(tmp_path) == [["g-000000000000.json.gz", "g-000000000001.json.gz"], ["other.csv"]]


@pytest.mark.parametrize(
    "parts",
    [
        ["part-00000-abc.csv", "x.csv"],
        ["day1.csv", "day2.csv", "day3.csv"],
        ["bill-2026-10.csv", "bill-2026-11.csv"],
        ["bill-202610.csv", "bill-202611.csv"],
        ["bill_20261101.csv", "bill_20261102.csv"],
    ],
)
def test_files_that_only_look_alike_are_deliveries_of_their_own(
    tmp_path: Path, parts: list[str]
) -> None:
    touch(tmp_path, *parts)
    assert sorted(names(tmp_path)) == sorted([part] for part in parts)


def test_parts_of_a_report_in_a_folder_of_one_period_are_one_delivery(tmp_path: Path) -> None:
    touch(tmp_path / "20261101-20261201", "report-1.csv.gz", "report-2.csv.gz", "report-10.csv.gz")
    (found,) = deliveries_in([tmp_path])
    assert [path.name for path in found.files] == [
        "report-1.csv.gz", "report-2.csv.gz", "report-10.csv.gz",
    ]  # fmt: skip
    assert len(found.problems) == 7  # parts 3 to 9 are missing


def test_a_gap_in_the_numbers_is_a_missing_part(tmp_path: Path) -> None:
    touch(tmp_path, "g-000000000000.json", "g-000000000002.json")
    (found,) = deliveries_in([tmp_path])
    assert [problem.what for problem in found.problems] == ["part 1 of the extract is missing"]


def test_a_folder_with_no_exports_is_an_error_that_says_so(tmp_path: Path) -> None:
    touch(tmp_path, "notes.txt", ".hidden.csv", "_SUCCESS")
    with pytest.raises(DataError, match="folder with no exports"):
        deliveries_in([tmp_path])


def test_every_path_that_does_not_exist_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        deliveries_in([tmp_path / "a", tmp_path, tmp_path / "b"])
    assert len(caught.value.problems) == 2


def test_a_json_file_that_is_no_manifest_is_data(tmp_path: Path) -> None:
    path = put(tmp_path / "export.json", {"billing_account_id": "x"})
    assert read_manifest(path) is None
    assert names(tmp_path) == [["export.json"]]
