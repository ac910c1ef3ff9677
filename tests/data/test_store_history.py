"""What a later delivery restates is told in dollars by way of paying, and kept in bounds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal as D
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from data import frames, quality, restated
from data.hours import Window
from data.schema import COMMITMENTS
from data.store import DeliveryResult, StagedDelivery, Status, Store, UnitFacts, delivery_id
from data.store import history as kept
from providers.files.loading import load
from tests.exports import csv_file
from tests.program import call
from tests.providers.loading_cases import AZURE, CUR
from tests.staged import arrow_table, total

if TYPE_CHECKING:
    from pathlib import Path

OCTOBER = datetime(2026, 10, 1, tzinfo=UTC)
UNIT = "aws|1|cur|2026-10"
RI, OD = "reserved", "on_demand"


@dataclass(frozen=True)
class Month:
    """A delivery of October: one line an hour, (hour, option, cost), all of machines of 8 GPUs."""

    lines: tuple[tuple[int, str, str], ...]
    day: int | None = None
    export: str | None = None
    dataset: str = "cur"

    def publish(self, store: Store, force: bool = False) -> DeliveryResult:
        sha256 = hashlib.sha256(repr(self).encode()).hexdigest()
        name = delivery_id(sha256, self.dataset)
        unit = UNIT.replace("cur", self.dataset)
        rows: list[dict[str, object]] = [
            {
                "unit": unit, "source": "aws", "dataset": self.dataset, "billing_account": "1",
                "billing_period": "2026-10", "managed_service": False, "is_correction": False,
                "purchase_option": option, "charge_type": "usage", "currency": "USD",
                "period_start": OCTOBER + timedelta(hours=hour),
                "period_end": OCTOBER + timedelta(hours=hour + 1),
                "effective_cost": D(cost), "instance_hours": D(1), "gpu_hours": D(8),
                "export_id": name, "source_row_no": number,
            }
            for number, (hour, option, cost) in enumerate(self.lines, 1)
        ]  # fmt: skip
        cost = sum((abs(D(line[2])) for line in self.lines), D(0))
        with store.staging() as folder:
            pq.write_table(arrow_table(rows), folder / "billing.parquet")
            staged = StagedDelivery(
                path=f"{len(self.lines)}-lines.csv", table="billing", source="aws",
                dataset=self.dataset, delivery_id=name, folder=folder, sha256=sha256,
                units={unit: UnitFacts(len(rows), False, cost)}, rows=len(rows),
                billing_periods=("2026-10",), export=self.export,
                version_time=None if self.day is None else datetime(2026, 11, self.day, tzinfo=UTC),
            )  # fmt: skip
            return store.publish(staged, force)


FIRST = Month(((0, RI, "60"), (1, RI, "60"), (2, OD, "98.32")), 1)
RESTATED = Month(((0, RI, "50"), (1, RI, "50"), (2, OD, "98.32")), 3)
GROWN = Month((*RESTATED.lines, (3, OD, "98.32")), 4)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def told(store: Store) -> dict[str, restated.Finding]:
    return {row.check: row for row in restated.findings(store.history())}


def test_old_and_new_totals_of_every_way_of_paying_are_told(store: Store) -> None:
    FIRST.publish(store)
    (replaced,) = RESTATED.publish(store).as_json()["replaced"]
    on_demand, reserved = replaced["by_option"]
    assert reserved == {
        "purchase_option": "reserved", "currency": "USD", "rows_before": 2, "rows_after": 2,
        "billed_cost_before": None, "billed_cost_after": None,
        "effective_cost_before": "120", "effective_cost_after": "100",
        "instance_hours_before": "2", "instance_hours_after": "2",
        "gpu_hours_before": "16", "gpu_hours_after": "16",
    }  # fmt: skip
    assert on_demand["effective_cost_before"] == on_demand["effective_cost_after"] == "98.32"
    assert [(one["purchase_option"], one["cost"]) for one in replaced["restated"]] == [
        ("reserved", "-20")
    ]
    assert (replaced["until_before"], replaced["until_after"]) == ("2026-10-01T03:00:00Z",) * 2


def test_a_period_that_only_grew_was_not_restated(store: Store) -> None:
    for delivery in (FIRST, RESTATED, GROWN):
        delivery.publish(store)
    versions = store.history()[UNIT]
    assert len(versions) == 3
    (change,) = kept.restated(versions)
    # 60 + 60 became 50 + 50; the hour that came on top of it is growth.
    assert (change.purchase_option, change.before, change.cost) == (RI, 120, -20)
    assert kept.restated(versions, 1) == ()
    row = told(store)["restated_period"]
    assert (row.scope, row.severity, row.count) == ("aws/1/cur/2026-10", "info", 1)
    assert (row.amount, row.currency) == (-20, "USD")
    # 60 + 60 + 98.32 = 218.32; less 20 is 198.32.
    assert "218.32 -> 198.32" in row.detail
    assert "reserved -20.00" in row.detail
    assert "on_demand" not in row.detail


def test_hours_that_move_between_ways_of_paying_are_restated(store: Store) -> None:
    FIRST.publish(store)
    Month(((0, RI, "60"), (1, RI, "60"), (2, RI, "60")), 5).publish(store)
    detail = told(store)["restated_period"].detail
    assert "on_demand -98.32 -8.00 GPU-hours; reserved +60.00 +8.00 GPU-hours" in detail


def test_the_same_again_confirms_a_version_and_says_when_it_last_changed(store: Store) -> None:
    FIRST.publish(store)
    RESTATED.publish(store)
    Month(RESTATED.lines, 9).publish(store)
    newest = store.history()[UNIT][-1]
    assert len(store.history()[UNIT]) == 2
    assert len(newest.deliveries) == 2
    assert newest.deliveries[-1] == store.active()[UNIT]
    assert told(store)["last_delivered"].detail == (
        "last delivered at 2026-11-09T00:00:00Z; it last changed with that of "
        "2026-11-03T00:00:00Z; 2 versions are known"
    )


def test_only_the_last_versions_are_kept(store: Store) -> None:
    for number in range(15):
        Month(((0, OD, str(100 + number)),), 1 + number).publish(store)
    versions = store.history()[UNIT]
    assert [one.options[0].cost for one in versions] == [103 + n for n in range(12)]
    assert Store.open(store.path).history() == store.history()


def test_a_store_of_the_first_version_opens_and_its_totals_are_measured(store: Store) -> None:
    FIRST.publish(store)
    path = store.path / "catalogue.json"
    document = json.loads(path.read_text())
    document["version"] = 1
    del document["history"]
    for record in document["deliveries"].values():
        del record["export"]
    path.write_text(json.dumps(document))
    old = Store.open(store.path)
    assert (old.history(), total(old)) == ({}, D("218.32"))
    (replaced,) = RESTATED.publish(old).as_json()["replaced"]
    assert [one["cost"] for one in replaced["restated"]] == ["-20"]
    assert len(old.history()[UNIT]) == 2
    assert json.loads(path.read_text())["version"] == 2


def test_a_loss_that_was_forced_is_a_warning_until_another_delivery_says_the_same(
    store: Store,
) -> None:
    FIRST.publish(store)
    small = Month(((0, RI, "60"),), 5)
    assert small.publish(store).status is Status.REJECTED
    assert told(store).keys() == {"last_delivered"}
    assert small.publish(store, force=True).status is Status.LOADED
    row = told(store)["forced_loss"]
    assert row.severity == "warning"
    assert "its cost of 60 is less than half of the 218.32 loaded before" in row.detail
    Month(small.lines, 6).publish(store)
    assert told(store)["forced_loss"].severity == "info"


def test_two_exports_that_take_turns_are_told(store: Store) -> None:
    first = Month(FIRST.lines, 1, "payer-daily")
    other = Month(RESTATED.lines, 2, "finance-copy")
    first.publish(store)
    (warning,) = other.publish(store).warnings
    assert "two exports deliver aws|1|cur|2026-10" in warning
    # As long as it is read it is warned of: whoever finds it unchanged tells it again.
    assert [one.warnings for one in Store.open(store.path).deliveries()] == [(warning,)]
    assert told(store)["overlapping_exports"].severity == "info"  # one took over from the other
    Month(FIRST.lines, 3, "payer-daily").publish(store)
    row = told(store)["overlapping_exports"]
    assert (row.severity, row.count) == ("warning", 2)
    assert "finance-copy, payer-daily" in row.detail


def test_of_two_exports_the_smaller_is_refused_and_no_force_is_offered(store: Store) -> None:
    """By its cost and by its days; a lone file, of which nothing is known, may be forced."""
    Month(((0, OD, "100"), (24, OD, "100")), 1, "payer-daily").publish(store)
    smaller = Month(((0, OD, "30"), (24, OD, "30")), 2, "finance-copy").publish(store)
    shorter = Month(((0, OD, "199"),), 2, "finance-copy").publish(store)
    for one, lost in ((smaller, "less than half of the 200"), (shorter, "fewer days (1 from")):
        assert one.status is Status.REJECTED
        assert one.reason is not None
        assert one.reason.startswith(f"{UNIT}: it is of another export than 2-lines.csv, and it")
        assert lost in one.reason
        assert one.reason.endswith("; name only one of them as a source")
        assert "--force" not in one.reason
    lone = Month(((0, OD, "30"),), 3).publish(store)
    assert str(lone.reason).endswith("--force replaces it")


def test_a_dataset_that_takes_the_place_of_another_is_compared_with_it(store: Store) -> None:
    FIRST.publish(store)
    focus = Month(RESTATED.lines, 3, dataset="focus")
    (replaced,) = focus.publish(store, force=True).as_json()["replaced"]
    assert [one["cost"] for one in replaced["restated"]] == ["-20"]
    assert list(store.history()) == ["aws|1|focus|2026-10"]
    assert told(store)["restated_period"].amount == -20


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_month_to_date_files_in_any_order_end_in_the_longest(store: Store, order) -> None:
    nights = [(0, OD, "100"), (24, OD, "110"), (48, OD, "90")]
    files = [Month(tuple(nights[: count + 1])) for count in range(3)]
    for number in order:
        files[number].publish(store)
    assert total(store) == 300  # not 100 + 210 + 300, nor what came last


def days(path: Path, last: int) -> Path:
    """A CUR file of 768 dollars a day from the first of November to the last day, both included."""
    start = datetime(2026, 11, 1, tzinfo=UTC)
    rows = [
        {
            **CUR,
            "line_item_unblended_cost": "768",
            "line_item_usage_amount": "24",
            "line_item_usage_start_date": f"{start + timedelta(days=n):%Y-%m-%dT%H:%M:%SZ}",
            "line_item_usage_end_date": f"{start + timedelta(days=n + 1):%Y-%m-%dT%H:%M:%SZ}",
        }
        for n in range(last)
    ]
    return csv_file(path, rows)


def test_overlapping_files_count_each_day_once_and_a_shorter_one_is_refused(tmp_path: Path) -> None:
    words = ["--store", tmp_path / "store"]
    assert call("load", days(tmp_path / "once.csv", 9), *words).code == 0
    daily = call("load", days(tmp_path / "daily.csv", 30), *words)
    assert daily.code == 0
    assert "2026-11-01T00:00 to 2026-11-10T00:00 by 2026-11-01T00:00 to 2026-12-01T00" in daily.err
    (row,) = call("totals", "--by", "source", "--json", *words).json["rows"]
    assert row["effective_cost"] == "23040"  # 30 x 768, not (9 + 30) x 768 = 29,952
    files = [days(tmp_path / f"{last}.csv", last) for last in (5, 20)]  # a sixth, and two thirds
    short = call("load", *files, *words, "--json")
    assert short.code == 1
    reasons = [one["reason"] for one in short.json["deliveries"]]
    assert all("--force" in reason for reason in reasons)
    assert f"20 from 2026-11-01 to 2026-11-20) than {tmp_path / 'daily.csv'} (30" in reasons[1]
    store = Store.open(tmp_path / "store")
    assert total(store) == 23040
    assert "restated_period" not in told(store)
    assert call("load", files[1], "--force", *words).code == 0
    store.refresh()
    assert total(store) == 15360  # 20 x 768
    assert "fewer days" in told(store)["forced_loss"].detail
    assert told(store)["restated_period"].amount == -7680  # 10 days


def azure_export(folder: Path, scope: str, machines: int) -> Path:
    """One run of an export of a scope: a day of its machines, of which another scope has some."""
    rows = [{**AZURE, "ResourceId": f"/subscriptions/s{n}/vm-{n}"} for n in range(machines)]
    part = folder / "run" / "part_0.csv"
    part.parent.mkdir(parents=True)
    csv_file(part, rows)
    size = part.stat().st_size
    blob = {"blobName": "root/run/part_0.csv", "byteCount": size, "dataRowCount": machines}
    document = {
        "blobs": [blob],
        "exportConfig": {"exportName": folder.name, "type": "ActualCost", "resourceId": scope},
        "runInfo": {"runId": f"run-{folder.name}", "submittedTime": "2026-11-03T00:00:00Z",
                    "startDate": "2026-11-01T00:00:00"},
    }  # fmt: skip
    (folder / "run" / "manifest.json").write_text(json.dumps(document))
    return folder


def test_exports_of_an_account_and_of_a_subscription_in_it_are_told_as_one_money(
    store: Store, tmp_path: Path
) -> None:
    whole = azure_export(tmp_path / "whole", "providers/Microsoft.Billing/billingAccounts/86115", 2)
    part = azure_export(tmp_path / "part", "/subscriptions/s0", 1)
    (first,), (second,) = load([whole], store), load([part], store)
    assert (first.status, second.status) == (Status.LOADED, Status.LOADED)
    assert first.warnings == ()
    (warning,) = [one for one in second.warnings if "two accounts" in one]
    assert "1 equal line items stand under two accounts, here and under 86115" in warning
    month = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
    bill, samples = store.table("billing"), store.table("utilization")
    found = quality.checks(bill, samples, frames.empty(COMMITMENTS), month)
    (row,) = [one for one in found if one.check == "same_rows_in_two_accounts"]
    assert (row.severity, row.count) == ("warning", 2)
