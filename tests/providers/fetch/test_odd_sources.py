"""What one source ends in stays with it: odd errors, full disks, places that cannot be right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from data.errors import StoreError
from providers.aws.failures import mapped
from providers.registry import FETCHERS
from tests.providers.fetch.aws_exports import ARN, Bucket, Puller, told
from tests.providers.fetch.s3_server import KEY, SECRET
from tests.providers.fetch.test_command import Place

if TYPE_CHECKING:
    from pathlib import Path

    from providers.fetch.contract import Fetched, FetchTask


@pytest.fixture
def place(tmp_path: Path, bucket: Bucket) -> Place:
    return Place(tmp_path, bucket)


def falls_over(task: FetchTask) -> Fetched:
    """A source that ends in what nobody foresaw, and quotes a secret in it."""
    raise RecursionError(f"{task.name} with {SECRET}")


def test_half_a_pair_of_keys_and_an_odd_error_stop_no_other_source(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = place.folder / "credentials"
    login.write_text("[half]\naws_access_key_id = AKIAPLANTEDHALF00000\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(login))
    monkeypatch.setitem(FETCHERS, "gcp", f"{__name__}:falls_over")
    place.bucket.data_export("2026-11", "r1", 100)
    address = f"s3://{place.bucket.name}/exports"
    place.more = {"odd": 'kind = "gcp"\nbilling = "gs://some-bills/exports"',
                  "whole": f'kind = "aws"\nbilling = "{address}"'}  # fmt: skip
    answer = place.fetch("--json", "--verbose", profile="half")
    assert answer.code == 1
    half, odd, whole = answer.json["sources"]
    assert half["error"]["kind"] == "credentials"
    (problem,) = half["error"]["problems"]
    assert "the profile half gave no valid credentials (PartialCredentialsError)" in problem["what"]
    (problem,) = odd["error"]["problems"]
    assert (problem["where"], problem["what"].split(",")[0]) == (
        "sources.odd", "it ended in RecursionError",
    )  # fmt: skip
    assert "fetch --only odd --verbose" in problem["remedy"]
    assert [one["status"] for one in whole["deliveries"]] == ["loaded"]
    assert "in falls_over" in answer.err  # where it ended, without its words
    assert not [one for one in (SECRET, KEY) if one in answer.out + answer.err]
    assert "falls_over" not in place.fetch(profile="half").err


def test_a_setting_that_the_sdk_refuses_is_told_without_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"no address {SECRET}")
    error = place.fetch("--json").json["sources"][0]["error"]
    assert (error["kind"], error["problems"][0]["where"]) == ("provider", "s3 in us-east-1")
    assert "AWS_ENDPOINT_URL" in error["problems"][0]["remedy"]
    assert SECRET not in json.dumps(error)


def test_places_that_cannot_be_right_are_told_at_once_before_anything_is_asked(
    place: Place,
) -> None:
    place.more = {"table": 'kind = "gcp"\nbilling = "bigquery://p.d"',
                  "short": 'kind = "gcp"\nbilling = "gs://gb/exports"',
                  "star": 'kind = "gcp"\nbilling = "bigquery://p.d.export_*"',
                  "blob": 'kind = "azure"\nbilling = "https://acmebills/exports"'}  # fmt: skip
    answer = place.fetch("--json")
    assert (answer.code, answer.error["kind"]) == (2, "config")
    assert {one["where"]: one["what"].split()[2].split(":")[0]
            for one in answer.error["problems"]} == {
        "sources.table.billing": "bigquery", "sources.short.billing": "bigquery",
        "sources.star.billing": "bigquery", "sources.blob.billing": "https",
    }  # fmt: skip
    assert place.bucket.server.asked == []


def test_only_takes_names_and_adds_up(place: Place) -> None:
    place.bucket.data_export("2026-11", "r1", 100)
    other = 'kind = "prometheus"\nurl = "http://prometheus.internal"'
    place.more = {"dcgm": other, "spare": other}
    for nothing in ("", ",", " , "):
        refused = place.fetch("--only", nothing, "--json")
        assert (refused.code, refused.error["kind"]) == (2, "usage")
        assert "names nothing" in json.dumps(refused.error)
    both = place.fetch("--only", "spare", "--only", "aws-prod", "--json")
    assert [one["source"] for one in both.json["sources"]] == ["aws-prod", "spare"]


@pytest.mark.parametrize(
    ("status", "code", "region", "words"),
    [
        (301, "PermanentRedirect", "eu-west-1", "AWS_DEFAULT_REGION, or region of the profile, to"),
        (400, "AuthorizationHeaderMalformed", "us-gov-west-1", "the region us-gov-west-1, which"),
        (301, "301", None, "to the bucket's region"),
        (301, "PermanentRedirect", "PLANTED secret", "to the bucket's region"),
        (404, "404", None, "there is no such bucket (HTTP 404)"),
    ],
)
def test_an_answer_of_another_region_names_it_and_no_code_stands_twice(
    status: int, code: str, region: str | None, words: str
) -> None:
    answer = {"Error": {"Code": code, "Message": SECRET, **({"Region": region} if region else {})},
              "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}}}  # fmt: skip
    (problem,) = mapped(ClientError(answer, "ListObjectsV2"), "s3://bills", "a role").problems
    assert words in str(problem)
    assert f"{status} {status}" not in str(problem)
    if region is not None:
        assert (region in str(problem)) is (region != "PLANTED secret")


def _of_another_export(bucket: Bucket, keys: list[str]) -> dict[str, bytes]:
    """The delivery of those keys as another export delivers it, by its key."""
    found = {}
    for key in keys:
        content = bucket.s3.get_object(Bucket=bucket.name, Key=key)["Body"].read()
        if key.endswith(".json"):
            content = content.replace(b"exports/gpu/", b"exports/copy/")
            content = content.replace(ARN.encode(), f"{ARN}-copy".encode())
        found[key.replace("exports/gpu/", "exports/copy/")] = content
    return found


def test_an_export_that_took_the_place_of_another_is_warned_of_every_night(place: Place) -> None:
    keys = place.bucket.data_export("2026-11", "o1", 90)
    copy = _of_another_export(place.bucket, keys)
    place.bucket.data_export("2026-11", "r1", 100)
    assert place.fetch().code == 0
    for key, content in copy.items():
        place.bucket.put(key, content)
    for _ in range(2):
        answer = place.fetch("--json")
        assert answer.code == 4
        said = [text for one in answer.json["sources"][0]["deliveries"] for text in one["warnings"]]
        assert [one.partition(":")[0] for one in said] == [
            "two exports deliver aws|000000000011|cur|2026-11"
        ]


def test_a_full_disk_has_a_remedy_and_keeps_no_downloads(puller: Puller) -> None:
    """A delivery that is rejected keeps its downloads, until the disk has no room for them."""
    puller.bucket.data_export("2026-11", "r1", "NaN")
    assert told(puller.pull()) == [("rejected", "2026-11")]
    assert puller.downloads()
    aside = puller.folder / "landing" / "index.json.tmp"
    aside.symlink_to("/dev/full")
    with pytest.raises(StoreError, match="cannot write to the folder") as caught:
        puller.pull()
    (problem,) = caught.value.problems
    assert (problem.what, "free space" in problem.remedy) == ("No space left on device", True)
    assert puller.downloads() == []
    aside.unlink()
    puller.bucket.data_export("2026-11", "r2", 100)
    assert told(puller.pull()) == [("loaded", "2026-11")]
