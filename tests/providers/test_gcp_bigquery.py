"""Pulls of a billing table, against a server in BigQuery's REST shape that prices and fails."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import ConfigError, MissingCredentials, ProviderError, ProviderUnavailable
from data.store import Store
from data.totals import totals
from planner.cli import main
from providers.fetch.contract import Fetched, FetchTask
from providers.files.loading import load
from providers.gcp.fetch import fetch
from tests.bigquery_fake import NAME, BigQuery
from tests.exports import json_lines
from tests.providers.gcp_cases import ON_DEMAND, charge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOUR = 3_600_000_000
SEPTEMBER = int(datetime(2026, 9, 2, 10, tzinfo=UTC).timestamp()) * 1_000_000
OCTOBER = int(datetime(2026, 10, 5, 10, tzinfo=UTC).timestamp()) * 1_000_000
LIMIT = 107_374_182_400


def hour_of_gpus(start: int, cost: str, rows: int = 4, **more: Any) -> dict[str, Any]:
    """Made by us: an hour of an a3-highgpu-8g as BigQuery answers it."""
    return {
        "source": "gcp", "billing_account": "01-02", "account": "ml", "region": "us-central1",
        "period_start": start, "period_end": start + HOUR,
        "billing_period": "2026-09" if start == SEPTEMBER else "2026-10",
        "resource_id": "vm-1", "managed_service": False, "instance_type": "a3-highgpu-8g",
        "sku": "A-1", "sku_description": "Nvidia H100 80GB GPU running in Americas",
        "usage_qty": "8", "usage_unit": "hour", "instance_hours": "1", "gpu_hours": "8",
        "purchase_option": "on_demand", "billed_cost": cost, "effective_cost": cost,
        "currency": "USD", "charge_type": "usage", "is_correction": False, "source_rows": rows,
        "finding_faults": False, "finding_payments": False, "finding_unmeasured": False,
    } | more  # fmt: skip


def table() -> BigQuery:
    """Two invoice months in three partitions; a charge of September is exported in October."""
    return BigQuery(
        days={
            "20260902": {"2026-09": (8, SEPTEMBER)},
            "20261001": {"2026-09": (1, OCTOBER - 1)},
            "20261005": {"2026-10": (4, OCTOBER)},
        },
        months={
            "2026-09": [
                hour_of_gpus(SEPTEMBER, "32.12345678901234567890123456"),
                hour_of_gpus(SEPTEMBER, "40", 4, resource_id="vm-2"),
                hour_of_gpus(SEPTEMBER, "-0.1", 1, resource_id="vm-3"),
            ],
            "2026-10": [hour_of_gpus(OCTOBER, "31")],
        },
    )


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[BigQuery]:
    with table() as server:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.root)
        yield server


def pull(
    folder: Path, day: date = date(2026, 10, 6), force: bool = False, **options: Any
) -> Fetched:
    told = {"kind": "gcp", "billing": f"bigquery://{NAME}", "months": 13} | options
    store = Store.open(folder / "store")
    return fetch(FetchTask("bills", told, store, folder / "landing", day, force))


def costs(folder: Path) -> dict[str, Decimal]:
    frame = totals(Store.open(folder / "store").table("billing"), ["billing_period"])
    return dict(zip(frame["billing_period"], frame["billed_cost"], strict=True))


def statuses(fetched: Fetched) -> list[str]:
    return [str(one.status) for one in fetched.deliveries]


def test_months_are_read_once_and_again_only_when_they_changed(tmp_path, served):
    first = pull(tmp_path)
    assert statuses(first) == ["loaded", "loaded"]
    # 32.1234... + 40 - 0.1, to the last of 26 places
    september = Decimal("72.02345678901234567890123456")
    assert costs(tmp_path) == {"2026-09": september, "2026-10": Decimal(31)}
    assert first.objects == 4
    assert first.bytes == 4 * served.billed  # partitions, counts, two months
    served.asked.clear()

    assert statuses(pull(tmp_path)) == ["unchanged", "unchanged"]
    assert served.pulls() == []
    counted = next(sql for sql in served.asked if "AS counted" in sql)
    assert "2026-09-02" in counted  # of the last 45 days
    served.asked.clear()

    later = OCTOBER + HOUR
    served.days["20261005"]["2026-10"] = (5, later)
    served.months["2026-10"].append(hour_of_gpus(OCTOBER, "9", 1, resource_id="vm-2"))
    again = pull(tmp_path)
    assert statuses(again) == ["unchanged", "loaded"]
    assert len(served.pulls()) == 1
    assert costs(tmp_path) == {"2026-09": september, "2026-10": Decimal(40)}
    assert again.deliveries[1].replaced[0].unit == "gcp|01-02|detailed|2026-10"


def test_a_pull_reads_the_partitions_of_its_month_and_what_was_exported_when_it_was_counted(
    tmp_path, served
):
    pull(tmp_path)
    september = served.pulls()[0]
    days = [("2026-09-02", "2026-09-03"), ("2026-10-01", "2026-10-02")]
    name = "t._PARTITIONTIME"
    ranges = (f"({name} >= TIMESTAMP '{a}' AND {name} < TIMESTAMP '{b}')" for a, b in days)
    assert f"WHERE ({' OR '.join(ranges)})" in september
    assert f"CAST(t.`export_time` AS TIMESTAMP) <= TIMESTAMP_MICROS({OCTOBER - 1})" in september


def test_old_partitions_are_counted_again_only_when_they_changed(tmp_path, served):
    pull(tmp_path)
    served.asked.clear()
    # 60 days later the days of September and October are older than 45 days.
    pull(tmp_path, date(2026, 12, 6))
    assert [sql for sql in served.asked if "AS counted" in sql] == []
    served.days["20260902"]["2026-09"] = (9, OCTOBER + HOUR)
    served.months["2026-09"].append(hour_of_gpus(SEPTEMBER, "1", 1, resource_id="vm-9"))
    served.asked.clear()
    assert statuses(pull(tmp_path, date(2026, 12, 6))) == ["loaded", "unchanged"]
    counted = next(sql for sql in served.asked if "AS counted" in sql)
    assert "2026-09-02" in counted
    assert "2026-10-05" not in counted


def test_every_query_is_tried_dry_and_carries_the_limit(tmp_path, served):
    pull(tmp_path, max_bytes_billed=5000)
    dry = [one for one in served.configurations if one.get("dryRun")]
    run = [one for one in served.configurations if not one.get("dryRun")]
    assert [one["query"]["query"] for one in dry] == [one["query"]["query"] for one in run]
    assert {one["query"]["maximumBytesBilled"] for one in run} == {"5000"}
    pull(tmp_path, force=True)
    assert served.configurations[-1]["query"]["maximumBytesBilled"] == str(LIMIT)


def test_a_query_over_the_limit_is_refused_with_its_bytes_and_never_run(tmp_path, served):
    served.dry_bytes = 5_368_709_121
    with pytest.raises(ProviderError, match="would read too much") as caught:
        pull(tmp_path, max_bytes_billed=5_368_709_120)
    (problem,) = caught.value.problems
    assert problem.where == f"bigquery://{NAME}"
    assert "5368709121 bytes (5.0 GiB by a dry run)" in problem.what
    assert "max_bytes_billed is 5368709120" in problem.what
    assert served.asked == []
    assert not (tmp_path / "store" / "catalogue.json").exists()


def test_throttling_is_waited_out(tmp_path, served):
    served.faults = [("table", 503), ("dry", 429), ("query", 503), ("rows", 503)]
    assert statuses(pull(tmp_path)) == ["loaded", "loaded"]
    assert served.faults == []


def test_refused_access_names_the_roles_to_grant(tmp_path, served):
    served.faults = [("query", 403), ("query", 403)]
    with pytest.raises(ProviderError, match="cannot be read") as caught:
        pull(tmp_path)
    assert not isinstance(caught.value, ProviderUnavailable)
    (problem,) = caught.value.problems
    assert "access is refused (made to fail with 403)" in problem.what
    assert "roles/bigquery.dataViewer on the dataset billing" in problem.remedy
    assert "roles/bigquery.jobUser on the project bills" in problem.remedy


def test_a_table_that_is_not_there_is_named(tmp_path, served):
    served.faults = [("table", 404)]
    with pytest.raises(ProviderError) as caught:
        pull(tmp_path)
    assert "check the table's name" in caught.value.problems[0].remedy


def test_partitions_that_may_not_be_listed_are_looked_at_by_their_days(tmp_path, served):
    served.faults = [("list", 403)]
    assert statuses(pull(tmp_path)) == ["loaded", "loaded"]
    served.faults = [("list", 403)]
    served.asked.clear()
    assert statuses(pull(tmp_path)) == ["unchanged", "unchanged"]
    counted = next(sql for sql in served.asked if "AS counted" in sql)
    assert "(t._PARTITIONTIME >= TIMESTAMP '2026-08-22')" in counted  # 45 days before 6 October


def test_rows_that_are_not_those_that_were_counted_are_not_published(tmp_path, served):
    pull(tmp_path)
    before = costs(tmp_path)
    served.days["20261005"]["2026-10"] = (7, OCTOBER + HOUR)
    result = pull(tmp_path).deliveries[1]
    assert result.status == "rejected"
    assert "4 charges came, 7 were counted before" in str(result.reason)
    assert costs(tmp_path) == before


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"billed_cost": "1234567890123.5"}, "cannot be stored"),  # 13 integer digits
        ({"finding_faults": True}, "4 charges have a credit without an amount"),
    ],
)
def test_a_month_with_cells_that_cannot_be_stored_is_rejected_and_the_others_load(
    tmp_path, served, wrong, told
):
    served.months["2026-10"] = [hour_of_gpus(OCTOBER, "31", **wrong)]
    fetched = pull(tmp_path)
    assert statuses(fetched) == ["loaded", "rejected"]
    assert told in str(fetched.deliveries[1].reason)
    assert list(costs(tmp_path)) == ["2026-09"]


def test_a_month_whose_partition_expired_keeps_what_was_loaded(tmp_path, served):
    pull(tmp_path)
    before = costs(tmp_path)
    del served.days["20260902"]
    served.days["20261001"]["2026-09"] = (2, OCTOBER)
    fetched = pull(tmp_path)
    assert statuses(fetched) == ["unchanged"]
    assert "days of it are no longer in the table: what was loaded stays" in fetched.warnings[0]
    assert costs(tmp_path) == before


def test_a_month_whose_place_a_file_has_taken_is_not_read_night_after_night(tmp_path, served):
    pull(tmp_path)
    row = charge(ON_DEMAND, "99", billing_account_id="01-02", invoice={"month": "202610"})
    path = json_lines(tmp_path / "october.jsonl", [row])
    assert load([path], Store.open(tmp_path / "store"))[0].status == "loaded"
    served.asked.clear()
    first = pull(tmp_path).deliveries[1]
    assert (first.status, len(served.pulls())) == ("ignored_older", 1)
    again = pull(tmp_path).deliveries[1]
    assert (again.status, again.reason) == ("ignored_older", first.reason)
    assert len(served.pulls()) == 1
    assert costs(tmp_path)["2026-10"] == 99
    assert statuses(pull(tmp_path, force=True)) == ["loaded", "loaded"]
    assert costs(tmp_path)["2026-10"] == 31


def test_only_the_months_that_are_looked_at_are_read(tmp_path, served):
    served.days["20250101"] = {"2025-01": (3, 1)}
    assert len(pull(tmp_path).deliveries) == 2


@pytest.mark.parametrize("text", ["bigquery://a.b", "gs://X", "a.b.c.d`;", "", "s3://bucket/x"])
def test_an_export_that_is_no_place_is_a_wrong_configuration(tmp_path, text):
    with pytest.raises(ConfigError) as caught:
        pull(tmp_path, billing=text)
    assert caught.value.problems[0].where == "sources.bills.billing"


@pytest.mark.parametrize("content", [None, "not json", '{"type": "service_account"}'])
def test_a_key_file_that_cannot_be_used_is_named(tmp_path, monkeypatch, content):
    monkeypatch.delenv("BIGQUERY_EMULATOR_HOST", raising=False)
    key = tmp_path / "key.json"
    if content is not None:
        key.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    with pytest.raises(MissingCredentials) as caught:
        pull(tmp_path)
    (problem,) = caught.value.problems
    assert problem.where == "GOOGLE_APPLICATION_CREDENTIALS"
    assert os.fspath(key) in problem.what
    assert "gcloud auth application-default login" in problem.remedy


def test_the_program_pulls_a_table_and_tells_rows_and_bytes(tmp_path, served, capsys):
    config = tmp_path / "loadfactor.toml"
    config.write_text(
        f'[sources.bills]\nkind = "gcp"\nbilling = "{NAME}"\nmax_bytes_billed = 2000\n'
        'job_project = "bills"\nmax_age_days = 10\n'
    )
    words = ["fetch", "--config", str(config), "--store", str(tmp_path / "store"), "--json"]
    assert main([*words, "--date", "2026-10-06"]) == 0
    (source,) = json.loads(capsys.readouterr().out)["sources"]
    assert (source["source"], source["kind"], source["objects"]) == ("bills", "gcp", 4)
    assert source["bytes"] == 4 * served.billed
    assert [one["status"] for one in source["deliveries"]] == ["loaded", "loaded"]
    assert costs(tmp_path)["2026-10"] == 31
    served.dry_bytes = 2001
    assert main([*words, "--date", "2026-10-06"]) == 1
    (source,) = json.loads(capsys.readouterr().out)["sources"]
    assert "max_bytes_billed is 2000" in json.dumps(source["error"])
    assert costs(tmp_path)["2026-10"] == 31
