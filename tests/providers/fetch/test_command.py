"""`loadfactor fetch` and the fetch of a night: what they say, their exit codes, and no secret."""

from __future__ import annotations

import csv
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from data.sample.generate import generate
from tests.program import call
from tests.providers.fetch.aws_exports import Bucket, cur_row, part
from tests.providers.fetch.s3_server import KEY, SECRET

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program import Finished

ROLE = "arn:aws:iam::000000000011:role/loadfactor-read"
EXTERNAL_ID = "planted-external-id-4711"
FRESH = "2026-11-04"  # the bills of these tests end on the 2nd, at 04:00
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Place:
    """A configuration with a source of a bucket, and where it is worked on."""

    folder: Path
    bucket: Bucket
    more: dict[str, str] = field(default_factory=dict)

    def words(self, day: str = FRESH, **options: Any) -> list[str]:
        place = f"s3://{self.bucket.name}/exports"
        lines = ["[sources.aws-prod]", 'kind = "aws"', f'billing = "{place}"']
        lines += [f"{name} = {json.dumps(value)}" for name, value in options.items()]
        for name, text in self.more.items():
            lines += [f"[sources.{name}]", text]
        config = self.folder / "loadfactor.toml"
        config.write_text("\n".join(lines) + "\n")
        return ["--config", str(config), "--store", str(self.store), "--date", day]

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def fetch(self, *words: str, **options: Any) -> Finished:
        return call("fetch", *self.words(**options), *words)

    def holds(self, *secrets: str) -> list[str]:
        """Files below the folder that hold one of the texts."""
        return [
            path.name
            for path in self.folder.rglob("*")
            if path.is_file() and any(one.encode() in path.read_bytes() for one in secrets)
        ]


@pytest.fixture
def place(tmp_path: Path, bucket: Bucket) -> Place:
    return Place(tmp_path, bucket)


def test_the_answer_names_every_source_and_delivery(place: Place) -> None:
    place.bucket.data_export("2026-11", "r1", "98.32", "0.5")
    first = place.fetch("--json")
    assert first.code == 0, first.err
    (source,) = first.json["sources"]
    assert list(source) == ["source", "kind", "objects", "bytes", "deliveries", "warnings"]
    assert (source["source"], source["kind"], source["objects"]) == ("aws-prod", "aws", 3)
    (delivery,) = source["deliveries"]
    assert delivery["path"].startswith(f"s3://{place.bucket.name}/exports/gpu/metadata/")
    assert (delivery["delivery_id"], delivery["rows"]) == ("r1-2026-11", 2)
    assert (delivery["status"], delivery["billing_periods"]) == ("loaded", ["2026-11"])
    second = place.fetch()
    assert second.code == 0
    assert second.out.split()[-5:] == ["aws", "0", "0", "1", "unchanged"]


def test_a_second_run_downloads_nothing_and_takes_less_than_three_seconds(place: Place) -> None:
    for month in (9, 10, 11):
        place.bucket.data_export(f"2026-{month:02d}", f"r{month}", 100)
    assert place.fetch().code == 0
    place.bucket.server.asked.clear()
    before = time.process_time()
    done = place.fetch("--json")
    # Its own seconds, which the other work of the machine does not change.
    assert time.process_time() - before < 3
    assert (done.code, done.json["sources"][0]["objects"]) == (0, 0), done.err
    asked = [(one.method, one.is_listing) for one in place.bucket.server.asked]
    assert asked == [("HEAD", False), ("GET", True)]


def test_two_payer_accounts_are_two_sources_with_credentials_of_their_own(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by its profile, one by a role that another profile may assume."""
    keys = {"payer": "AKIAPLANTEDPAYER0000", "base": "AKIAPLANTEDBASE00000"}
    login = place.folder / "credentials"
    login.write_text("".join(
        f"[{name}]\naws_access_key_id = {key}\naws_secret_access_key = {SECRET}\n"
        for name, key in keys.items()
    ))  # fmt: skip
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(login))
    place.bucket.data_export("2026-11", "r1", 100)
    row = {**cur_row("2026-11", 7), "bill_payer_account_id": "0022"}
    place.bucket.put("other/bill.csv.gz", part([row], "csv.gz"))
    other = f'billing = "s3://{place.bucket.name}/other"\nprofile = "base"\nrole_arn = "{ROLE}"'
    place.more = {"aws-other": f'kind = "aws"\n{other}'}
    answer = place.fetch("--json", profile="payer")
    assert answer.code == 0, answer.out
    assert [len(one["deliveries"]) for one in answer.json["sources"]] == [1, 1]
    billed = call("totals", "--by", "source", "--store", place.store, "--json").json["rows"]
    assert [one["effective_cost"] for one in billed] == ["107"]
    signed = [one.headers["Authorization"] for one in place.bucket.server.asked]
    assert [keys["payer"] in one for one in signed[:4]] == [True] * 4  # two answers, two objects
    assert keys["base"] in signed[4]
    assert all("Credential=ASIA" in one for one in signed[5:])
    assert [path.name for path in (place.store / "landing").iterdir()].count("aws-other") == 1


def test_bl_04_a_bill_whose_newest_hour_is_old_is_told_loudly(place: Place) -> None:
    place.bucket.data_export("2026-11", "r1", 100)
    told = place.fetch(day="2026-11-30")
    assert told.code == 4
    assert "aws-prod: warning: its newest hour ends at 2026-11-02T04:00:00Z, 27 days" in told.err
    assert place.fetch(day="2026-11-30", max_age_days=28).code == 0
    quiet = place.fetch("--quiet", day="2026-11-06")
    assert (quiet.code, "max_age_days is 3" in quiet.err) == (4, True)


def test_a_bill_of_months_reaches_as_far_as_its_newest_charge(place: Place) -> None:
    row = {**cur_row("2026-11", 7), "line_item_usage_start_date": "2026-11-01T00:00:00Z",
           "line_item_usage_end_date": "2026-12-01T00:00:00Z"}  # fmt: skip
    place.bucket.data_export("2026-11", "r1", rows=[row])
    assert place.fetch(day="2026-12-04").code == 0
    late = place.fetch(day="2026-12-05")
    assert (late.code, "ends at 2026-12-01T00:00:00Z, 4 days" in late.err) == (4, True)


def test_a_section_that_cannot_be_right_is_refused_before_anything_is_asked(place: Place) -> None:
    wrong = {"role_arn": "loadfactor-read", "external_id_env": "not a name", "months": 0}
    answer = place.fetch("--json", **wrong)
    assert (answer.code, answer.error["kind"]) == (2, "config")
    told = {one["where"].removeprefix("sources.aws-prod."): one["what"]
            for one in answer.error["problems"]}  # fmt: skip
    assert set(told) == set(wrong)
    assert "must be arn:aws:iam::ACCOUNT:role/NAME" in told["role_arn"]
    answer = place.fetch("--json", external_id_env="PLANTED_ID")
    assert "external_id_env needs role_arn" in answer.error["problems"][0]["what"]
    place.more = {"other": 'kind = "aws"\nbilling = "bills/exports"'}
    answer = place.fetch("--json")
    assert "must be s3://BUCKET/PREFIX/EXPORT-NAME" in answer.error["problems"][0]["what"]
    assert place.bucket.server.asked == []


def test_a_source_that_fails_stops_no_other_and_a_rejection_is_a_failure(place: Place) -> None:
    place.bucket.data_export("2026-11", "r1", 100)
    place.more = {"gone": 'kind = "aws"\nbilling = "s3://no-such-bucket-here/exports"',
                  "dcgm": 'kind = "prometheus"\nurl = "http://prometheus.internal"'}  # fmt: skip
    answer = place.fetch("--json")
    assert answer.code == 1
    good, gone, dcgm = answer.json["sources"]
    assert [one["status"] for one in good["deliveries"]] == ["loaded"]
    assert list(gone) == ["source", "kind", "error"]
    assert gone["error"]["kind"] == "provider"
    (problem,) = gone["error"]["problems"]
    assert problem["where"] == "s3://no-such-bucket-here"
    assert "there is no such bucket" in problem["what"]
    assert "not fetched by this version" in dcgm["warnings"][0]
    assert place.fetch("--only", "dcgm").code == 4
    alone = place.fetch("--only", "aws-prod", "--json")
    assert (alone.code, len(alone.json["sources"])) == (0, 1)
    place.bucket.put("exports/other.csv.gz", part([cur_row("2026-11", "NaN")], "csv.gz"))
    rejected = place.fetch("--only", "aws-prod")
    assert rejected.code == 1
    assert "1 unchanged, 1 rejected" in rejected.out


def test_only_takes_the_names_of_the_configuration(place: Place) -> None:
    answer = place.fetch("--only", "aws-prd", "--json")
    assert (answer.code, answer.error["kind"]) == (2, "usage")
    assert answer.error["problems"] == [
        {"where": "aws-prd", "what": "no such source",
         "remedy": "did you mean aws-prod? known: aws-prod"},
    ]  # fmt: skip
    nothing = call("fetch", "--store", place.store, "--config", _empty(place.folder), "--json")
    assert (nothing.code, nothing.error["kind"]) == (2, "config")


def _empty(folder: Path) -> Path:
    path = folder / "empty.toml"
    path.write_text("")
    return path


def test_a_role_is_assumed_with_the_external_id_of_the_environment(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.bucket.data_export("2026-11", "r1", 100)
    options = {"role_arn": ROLE, "external_id_env": "PLANTED_ID"}
    answer = place.fetch("--json", **options)
    assert answer.code == 1
    error = answer.json["sources"][0]["error"]
    assert (error["kind"], error["problems"][0]["where"]) == ("credentials", "PLANTED_ID")
    assert ROLE in error["problems"][0]["remedy"]
    monkeypatch.setenv("PLANTED_ID", EXTERNAL_ID)
    place.bucket.server.asked.clear()
    answer = place.fetch("--verbose", "--json", **options)
    assert answer.code == 0, answer.err
    assumed, *others = place.bucket.server.asked
    assert "Action=AssumeRole" in assumed.body
    assert f"ExternalId={EXTERNAL_ID}" in assumed.body
    assert KEY in assumed.headers["Authorization"]
    signed = [one.headers["Authorization"] for one in others]
    assert len(signed) == 4
    # Keys of a role begin with ASIA, those of a user with AKIA.
    assert all("Credential=ASIA" in one for one in signed)
    assert all("X-Amz-Security-Token" in one.headers for one in others)
    assert not place.holds(EXTERNAL_ID, SECRET, KEY)
    assert not [one for one in (EXTERNAL_ID, SECRET, KEY) if one in answer.out + answer.err]


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (("list", "403 AccessDenied"), "provider", "s3:ListBucket"),
        (("list", "403 SignatureDoesNotMatch"), "credentials", "sign in"),
        (("list", "400 ExpiredToken"), "credentials", "may have ended"),
        (("all", "403 AccessDenied"), "credentials", "trust policy"),
        (("list", "301 PermanentRedirect"), "provider", "PermanentRedirect"),
    ],
)
def test_a_refusal_says_what_to_do_and_repeats_nothing_that_was_signed(
    place: Place, monkeypatch: pytest.MonkeyPatch, fault: tuple[str, str], kind: str, words: str
) -> None:
    place.bucket.data_export("2026-11", "r1", 100)
    monkeypatch.setenv("PLANTED_ID", EXTERNAL_ID)
    place.bucket.server.faults += [fault] * 3
    answer = place.fetch("--json", "--verbose", role_arn=ROLE, external_id_env="PLANTED_ID")
    place.bucket.server.faults.clear()
    assert answer.code == 1
    error = answer.json["sources"][0]["error"]
    assert error["kind"] == kind
    assert words in json.dumps(error)
    assert "Traceback" in answer.err
    said = answer.out + answer.err
    assert not [one for one in (EXTERNAL_ID, SECRET, KEY) if one in said]
    assert not place.holds(EXTERNAL_ID, SECRET, KEY)


def test_without_credentials_and_without_a_network_the_remedy_is_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", _at_once)
    down = place.fetch("--json").json["sources"][0]["error"]
    assert (down["kind"], down["problems"][0]["what"]) == ("unavailable", "it cannot be reached")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    lost = place.fetch("--json").json["sources"][0]["error"]
    assert lost["kind"] == "credentials"
    assert "aws sso login" in lost["problems"][0]["remedy"]
    lost = place.fetch("--json", profile="nobody").json["sources"][0]["error"]
    assert lost["kind"] == "credentials"
    assert "the profile nobody" in lost["problems"][0]["what"]


def _at_once(*_: object) -> float:
    return 0.0


def test_a_night_goes_on_without_a_cloud_that_is_down_and_marks_its_bill_stale(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One source was read before, another never was; the rest of AWS's bill is as fresh as ever.

    The fleet of one day is there already; the night loads Azure's files and reaches no AWS.
    """
    fleet = place.folder / "fleet"
    generate(fleet, days=1)
    assert call("load", fleet / "aws", "--store", place.store).code == 0
    place.bucket.data_export("2026-10", "r1", 100)
    assert place.fetch(day="2026-10-04").code == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", _at_once)
    place.more = {"azure-files": f'kind = "files"\npaths = ["{fleet / "azure"}"]',
                  "aws-new": 'kind = "aws"\nbilling = "s3://new-bills/exports"'}  # fmt: skip
    words = [*place.words(day="2026-10-31"), "--out", str(place.folder / "out")]
    night = call("nightly", *words, "--json")
    assert night.code == 4, night.out + night.err
    cut = "aws: the export cannot be read now: s3://"
    read = f"was not fetched, its data stays (account 000000000011 to 2026-10-02T04:00Z): {cut}"
    never = f"was not fetched, and no bill was ever read from it: {cut}"
    told = [one for one in night.json["warnings"] if one.startswith("source ")]
    assert [one.partition(cut)[0] + cut for one in told] == [
        f"source aws-prod {read}", f"source aws-new {never}",
    ]  # fmt: skip
    stale = [one for one in night.json["warnings"] if " is stale" in one]
    assert stale == [
        "aws billing of account 000000000011 is stale: it ends at 2026-10-02T04:00:00Z"
    ]
    out = place.folder / "out" / "2026-10-31"
    with (out / "quality.csv").open() as file:
        rows = {row["scope"]: row for row in csv.DictReader(file) if row["check"] == "not_fetched"}
    assert sorted(rows) == ["source aws-new", "source aws-prod"]
    assert rows["source aws-new"]["detail"].startswith(never)
    report = (out / "report.md").read_text()
    assert "**2 sources were not fetched**" in report
    assert "Some data is old" not in report
    assert call("report", out).out == report
    plan = json.loads((out / "plan.json").read_text())
    marked = {(row["source"], row["account"]): row["stale"]
              for row in plan["summary"]["freshness"]}  # fmt: skip
    assert marked == {("aws", "all"): False, ("azure", "all"): False, ("aws", "000000000011"): True}
