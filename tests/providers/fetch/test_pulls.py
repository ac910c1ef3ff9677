"""Exports in a bucket into the store: which deliveries count, and what is downloaded for them."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from data.errors import ProviderError, ProviderUnavailable, StoreError
from data.store import steps
from tests.providers.fetch.aws_exports import Puller, at, cur_row, focus_row, part, told


def test_every_layout_of_aws_comes_whole_and_a_second_pull_downloads_nothing(
    puller: Puller,
) -> None:
    bucket = puller.bucket
    bucket.data_export("2026-09", "r9", "98.32", "0.5")
    bucket.data_export("2026-10", "r10", "60", ending="snappy.parquet")
    bucket.legacy("2026-08", "a8", "12.25", "3")
    fetched = puller.pull()
    assert told(fetched) == [
        ("loaded", "2026-09"), ("loaded", "2026-10"), ("loaded", "2026-08"),
    ]  # fmt: skip
    # Three manifests; 2 + 1 + 2 parts.
    assert fetched.objects == 8
    assert puller.costs() == {
        "2026-08": Decimal("15.25"), "2026-09": Decimal("98.82"), "2026-10": Decimal(60),
    }  # fmt: skip
    assert puller.downloads() == []
    again = puller.pull()
    assert (again.objects, again.bytes, again.warnings) == (0, 0, ())
    assert [status for status, _period in told(again)] == ["unchanged"] * 3
    assert [one.rows for one in again.deliveries] == [2, 1, 2]


def test_focus_with_a_dataset_that_the_configuration_names(puller: Puller) -> None:
    rows = [focus_row("2026-11", "98.32"), focus_row("2026-11", "60")]
    puller.bucket.data_export("2026-11", "r1", rows=rows)
    fetched = puller.pull(dataset="focus")
    assert [(one.dataset, one.rows) for one in fetched.deliveries] == [("focus", 2)]
    assert puller.costs() == {"2026-11": Decimal("158.32")}


def test_bl_04_the_newest_months_are_on_the_second_page_of_the_listing(puller: Puller) -> None:
    """1,050 objects: 1,040 of old runs that no manifest names any more, then two months."""
    for number in range(1040):
        key = f"exports/gpu/data/BILLING_PERIOD=2026-09/old-{number:04d}/gpu-00001.csv.gz"
        puller.bucket.put(key, b"")
    puller.bucket.data_export("2026-09", "r9", 1, 2)
    puller.bucket.data_export("2026-10", "r10", 4, 8)
    puller.bucket.data_export("2026-11", "r11", 16, 32, 64)
    listed = puller.bucket.s3.get_paginator("list_objects_v2").paginate(Bucket=puller.bucket.name)
    assert [page["KeyCount"] for page in listed] == [1000, 50]
    puller.bucket.server.faults.append(("list", "503 SlowDown"))
    puller.pull()
    assert puller.costs() == {"2026-09": 3, "2026-10": 12, "2026-11": 112}
    pages = [one for one in puller.bucket.server.asked if one.is_listing]
    assert len(pages) == 3  # one of them was refused as too fast
    assert sum("continuation-token" in one.path for one in pages) == 1


def test_a_download_that_is_cut_goes_on_where_it_was(puller: Puller) -> None:
    keys = puller.bucket.data_export("2026-11", "r1", "98.32")
    puller.bucket.server.faults.append((keys[0], "cut"))
    puller.pull()
    assert puller.costs() == {"2026-11": Decimal("98.32")}
    asked = [one for one in puller.bucket.server.asked if one.is_object(keys[0])]
    ranges = [one.headers.get("Range") for one in asked]
    size = puller.bucket.s3.head_object(Bucket=puller.bucket.name, Key=keys[0])["ContentLength"]
    assert ranges == [None, f"bytes={size // 2}-"]
    stamps = [one.headers["If-Match"] for one in asked]
    assert len(set(stamps)) == 1


def test_a_download_that_differs_from_its_checksum_is_thrown_away(puller: Puller) -> None:
    keys = puller.bucket.data_export("2026-10", "r1", 100)
    puller.bucket.data_export("2026-11", "r2", 50)
    puller.bucket.server.faults.append((keys[0], "flip"))
    fetched = puller.pull()
    assert told(fetched) == [("rejected", "2026-10"), ("loaded", "2026-11")]
    assert "its checksum differs" in str(fetched.deliveries[0].reason)
    assert not [name for name in puller.downloads() if not name.endswith(".version")]
    assert told(puller.pull()) == [("loaded", "2026-10"), ("unchanged", "2026-11")]


def test_a_restated_month_takes_the_place_of_the_former_one(puller: Puller) -> None:
    puller.bucket.data_export("2026-10", "r1", 100, 50)
    puller.bucket.data_export("2026-11", "r2", 7)
    puller.pull()
    puller.bucket.data_export("2026-10", "r3", 90, 45)
    fetched = puller.pull()
    assert told(fetched) == [("loaded", "2026-10"), ("unchanged", "2026-11")]
    (replaced,) = fetched.deliveries[0].replaced
    assert (replaced.before.cost, replaced.after.cost) == (150, 135)
    assert puller.costs() == {"2026-10": 135, "2026-11": 7}
    assert fetched.objects == 3  # its manifest and its two parts


def test_of_runs_that_are_kept_the_newest_counts_and_only_it_is_downloaded(puller: Puller) -> None:
    for day, cost in ((1, 100), (3, 300), (2, 210)):
        puller.bucket.data_export("2026-11", f"r{day}", cost, in_own_folder=True, written=at(day))
    fetched = puller.pull()
    assert told(fetched) == [("loaded", "2026-11")]
    assert (puller.costs(), fetched.objects) == ({"2026-11": 300}, 2)


def test_a_missing_part_is_named_and_the_former_delivery_stays(puller: Puller) -> None:
    puller.bucket.data_export("2026-11", "r1", 100, in_own_folder=True, written=at(1))
    puller.pull()
    keys = puller.bucket.data_export("2026-11", "r2", 110, 5, in_own_folder=True, written=at(2))
    puller.bucket.delete(keys[1])
    fetched = puller.pull()
    assert told(fetched) == [("unchanged", "2026-11"), ("rejected", "2026-11")]
    reason = str(fetched.deliveries[1].reason)
    assert f"s3://{puller.bucket.name}/{keys[1]}: missing part" in reason
    assert keys[0] not in reason
    assert puller.costs() == {"2026-11": 100}
    puller.bucket.put(keys[1], part([cur_row("2026-11", 5, 1)], "csv.gz"))
    assert told(puller.pull()) == [("loaded", "2026-11")]
    assert puller.costs() == {"2026-11": 115}


def test_the_newest_complete_delivery_is_loaded_where_the_newest_lacks_a_part(
    puller: Puller,
) -> None:
    puller.bucket.legacy("2026-11", "a1", 100, written=at(1))
    puller.bucket.legacy("2026-11", "a2", 60, 50, written=at(2))
    puller.bucket.legacy("2026-11", "a3", 90, 30, written=at(3), leave_out=1)
    fetched = puller.pull()
    assert told(fetched) == [("loaded", "2026-11"), ("rejected", "2026-11")]
    assert "/a3/report-2.csv.gz: missing part" in str(fetched.deliveries[1].reason)
    assert puller.costs() == {"2026-11": 110}


def test_a_former_report_that_was_written_over_is_not_put_together_of_new_files(
    puller: Puller,
) -> None:
    """The former delivery has one file, the new one writes it over and lacks its second."""
    puller.bucket.legacy("2026-11", "a1", 100, written=at(1), overwrites=True)
    puller.bucket.legacy("2026-11", "a2", 60, 50, written=at(2), overwrites=True, leave_out=1)
    assert told(puller.pull()) == [("rejected", "2026-11")]
    assert puller.costs() == {}
    puller.bucket.legacy("2026-11", "a2", 60, 50, written=at(2), overwrites=True)
    assert told(puller.pull()) == [("loaded", "2026-11")]
    assert puller.costs() == {"2026-11": 110}


def test_names_that_the_engine_would_take_for_patterns_are_files_like_others(
    puller: Puller,
) -> None:
    puller.bucket.put("exports/a/bill [1]*.csv.gz", part([cur_row("2026-10", 5)], "csv.gz"))
    puller.bucket.put("exports/b/c..d/{x},y?.csv.gz", part([cur_row("2026-11", 7)], "csv.gz"))
    assert told(puller.pull()) == [("loaded", "2026-10"), ("loaded", "2026-11")]
    assert puller.costs() == {"2026-10": 5, "2026-11": 7}


def test_a_legacy_assembly_newer_than_the_top_manifest_is_still_being_written(
    puller: Puller,
) -> None:
    puller.bucket.legacy("2026-11", "a1", 100, written=at(1))
    top = "exports/report/20261101-20261201/report-Manifest.json"
    former = puller.bucket.s3.get_object(Bucket=puller.bucket.name, Key=top)["Body"].read()
    puller.bucket.legacy("2026-11", "a2", 120, written=at(2))
    puller.bucket.put(top, former, at(1))
    assert told(puller.pull()) == [("loaded", "2026-11")]
    assert puller.costs() == {"2026-11": 100}


def test_parts_that_are_written_over_before_their_manifest_are_waited_for(puller: Puller) -> None:
    keys = puller.bucket.data_export("2026-11", "r1", 100, 50)
    puller.pull()
    puller.bucket.put(keys[0], part([cur_row("2026-11", 101)], "csv.gz"))
    fetched = puller.pull()
    assert told(fetched) == [("unchanged", "2026-11")]
    assert (fetched.objects, puller.costs()) == (0, {"2026-11": 150})
    (warning,) = fetched.warnings
    assert "written again" in warning
    assert keys[-1] in warning
    puller.bucket.data_export("2026-11", "r2", 101, 51)
    assert told(puller.pull()) == [("loaded", "2026-11")]
    assert puller.costs() == {"2026-11": 152}


def test_a_copy_whose_files_are_all_newer_than_its_manifest_is_loaded_and_told(
    puller: Puller,
) -> None:
    keys = puller.bucket.data_export("2026-11", "r1", 100, 50, written=at(3, 5))
    puller.bucket.put(keys[0], part([cur_row("2026-11", 99)], "csv.gz"), at(3, 11))
    puller.bucket.put(keys[1], part([cur_row("2026-11", 60, 1)], "csv.gz"), at(3, 12))
    fetched = puller.pull()
    assert told(fetched) == [("loaded", "2026-11")]
    (warning,) = fetched.warnings
    assert f"2 of its 2 files were written after it, first {keys[0]}" in warning
    assert puller.pull().warnings == ()


def test_a_month_whose_files_have_expired_stays_as_it_was_loaded(puller: Puller) -> None:
    keys = puller.bucket.data_export("2026-10", "r1", 100)
    puller.pull()
    puller.bucket.delete(keys[0])
    fetched = puller.pull()
    assert (told(fetched), fetched.warnings) == ([("unchanged", "2026-10")], ())


def test_data_without_a_manifest_yet_is_not_taken_for_a_delivery(puller: Puller) -> None:
    puller.bucket.data_export("2026-10", "r1", 100)
    keys = puller.bucket.data_export("2026-11", "r2", 50)
    puller.bucket.delete(keys[-1])
    fetched = puller.pull()
    assert told(fetched) == [("rejected", ""), ("loaded", "2026-10")]
    assert "no manifest names these files" in str(fetched.deliveries[0].reason)
    assert puller.costs() == {"2026-10": 100}


def test_numbered_parts_without_any_manifest_are_one_delivery_and_a_later_one_wins(
    puller: Puller,
) -> None:
    def extract(name: str, *costs: int, day: int) -> None:
        for number, cost in enumerate(costs):
            content = part([cur_row("2026-11", cost, number)], "csv.gz")
            puller.bucket.put(f"exports/{name}-{number:012d}.csv.gz", content, at(day))

    extract("b", 100, 20, day=1)
    extract("a", 110, 25, day=2)
    assert told(puller.pull()) == [("loaded", "2026-11")] * 2
    assert puller.costs() == {"2026-11": 135}
    again = puller.pull()
    assert (again.objects, puller.costs()) == (0, {"2026-11": 135})
    assert sorted(status for status, _ in told(again)) == ["ignored_older", "unchanged"]
    puller.bucket.delete("exports/a-000000000000.csv.gz")
    extract("a", 111, 26, 1, day=3)
    assert puller.pull().objects == 3
    assert puller.costs() == {"2026-11": 138}


def test_periods_before_the_limit_are_left_out_but_never_the_last_three(puller: Puller) -> None:
    # 13 months up to November 2026 begin with November 2025.
    for month in ("2025-10", "2025-11", "2026-08", "2026-09", "2026-11"):
        puller.bucket.data_export(month, f"r{month}", 1)
    assert told(puller.pull(months=1)) == [("loaded", "2026-09"), ("loaded", "2026-11")]
    puller.pull()
    assert set(puller.costs()) == {"2025-11", "2026-08", "2026-09", "2026-11"}
    puller.pull(months=14)
    assert "2025-10" in puller.costs()


def test_a_shrinking_month_is_refused_keeps_its_download_and_is_loaded_by_force(
    puller: Puller,
) -> None:
    puller.bucket.data_export("2026-11", "r1", 100)
    puller.pull()
    puller.bucket.data_export("2026-11", "r2", 10)
    refused = puller.pull()
    kept = [("rejected", "2026-11"), ("unchanged", "2026-11")]
    assert told(refused) == kept
    assert puller.downloads() == ["gpu-00001.csv.gz"]
    again = puller.pull()
    assert (told(again), again.objects) == (kept, 1)  # the manifest is read
    assert told(puller.pull(force=True)) == [("loaded", "2026-11")]
    assert (puller.costs(), puller.downloads()) == ({"2026-11": 10}, [])


def test_a_store_that_was_thrown_away_is_filled_again(puller: Puller) -> None:
    puller.bucket.data_export("2026-11", "r1", 100)
    puller.pull()
    (puller.folder / "store").rename(puller.folder / "gone")
    assert told(puller.pull()) == [("loaded", "2026-11")]
    (puller.folder / "landing" / "index.json").write_text('{"format": "loadf')
    again = puller.pull()
    assert (told(again), again.objects) == ([("unchanged", "2026-11")], 2)


def test_a_copy_under_another_prefix_is_found_by_the_tails_of_its_keys(puller: Puller) -> None:
    keys = puller.bucket.data_export("2026-11", "r1", 100, 1)
    for key in keys:
        body = puller.bucket.s3.get_object(Bucket=puller.bucket.name, Key=key)["Body"].read()
        puller.bucket.put(f"copied/2026/{key}", body)
        puller.bucket.delete(key)
    puller.prefix = "copied/2026"
    assert told(puller.pull()) == [("loaded", "2026-11")]
    assert puller.costs() == {"2026-11": 101}


def test_a_prefix_is_a_folder_and_its_siblings_are_not_meant(puller: Puller) -> None:
    puller.bucket.data_export("2026-11", "r1", 100)
    puller.bucket.put("exports/gpu-old/bill.csv.gz", part([cur_row("2026-10", 5)], "csv.gz"))
    puller.prefix = "exports/gpu/"
    puller.pull()
    assert puller.costs() == {"2026-11": 100}
    puller.prefix = "exports/nothing"
    with pytest.raises(ProviderError, match="holds no export"):
        puller.pull()


def test_a_bad_month_is_rejected_and_the_others_are_loaded(puller: Puller) -> None:
    puller.bucket.data_export("2026-10", "r1", "NaN")
    puller.bucket.data_export("2026-11", "r2", 50)
    fetched = puller.pull()
    assert told(fetched) == [("rejected", "2026-10"), ("loaded", "2026-11")]
    assert "NaN" in str(fetched.deliveries[0].reason)
    assert puller.costs() == {"2026-11": 50}


def test_an_object_that_changes_after_the_listing_is_told_and_the_next_pull_has_it(
    puller: Puller,
) -> None:
    keys = puller.bucket.data_export("2026-10", "r1", 100)
    puller.bucket.data_export("2026-11", "r2", 50)
    server = puller.bucket.server
    server.before[keys[0]] = lambda: puller.bucket.data_export("2026-10", "r3", 99)
    fetched = puller.pull()
    assert told(fetched) == [("rejected", "2026-10"), ("loaded", "2026-11")]
    assert "it changed after it was listed" in str(fetched.deliveries[0].reason)
    assert told(puller.pull()) == [("loaded", "2026-10"), ("unchanged", "2026-11")]
    assert puller.costs() == {"2026-10": 99, "2026-11": 50}


def test_two_pulls_of_one_source_do_not_meet(
    puller: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    puller.bucket.data_export("2026-11", "r1", 100)
    puller.pull()
    monkeypatch.setattr("providers.fetch.landing.WAIT_S", 0.1)
    with (
        steps.writer_lock(puller.folder / "landing" / ".lock", 1),
        pytest.raises(StoreError, match="another process"),
    ):
        puller.pull()


def test_a_bucket_that_breaks_off_for_good_gives_up_and_the_rest_stays(
    puller: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("providers.aws.s3._PAUSE_S", 0.001)
    keys = puller.bucket.data_export("2026-11", "r1", 100)
    puller.bucket.server.faults += [(keys[0], "nothing")] * 9
    with pytest.raises(ProviderUnavailable, match="the connection was cut"):
        puller.pull()
    puller.bucket.server.faults.clear()
    index = json.loads((puller.folder / "landing" / "index.json").read_text())
    assert index["deliveries"] == []
    assert told(puller.pull()) == [("loaded", "2026-11")]
