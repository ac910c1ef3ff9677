"""Exports in a container into the store, over the REST shape of Blob Storage."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from data.errors import ConfigError
from providers.azure.session import CONNECTION_STRING
from tests import azure_runs as runs
from tests.azure_runs import EA, FOCUS, Puller, Run, days, told
from tests.blob_server import BlobServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COVERED = {"PricingModel": "Reservation", "ReservationId": "r-1"}


class Served(BlobServer):
    def put(self, name: str, content: bytes) -> None:
        self.blobs[name] = content


@pytest.fixture
def puller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Puller]:
    with Served() as server:
        monkeypatch.setenv(CONNECTION_STRING, server.connection_string)
        yield Puller(server, tmp_path)


def test_bl_01_month_to_date_runs_in_blob_storage_are_versions_and_not_added(
    puller: Puller,
) -> None:
    runs.month_to_date_runs_are_versions(puller)


def test_a_throttled_listing_of_two_pages_and_a_cut_download_end_in_the_right_total(
    puller: Puller,
) -> None:
    puller.bucket.page = 2
    Run("r1", "2026-11-02T03:00:00Z", (days("100"), days("0.5"))).put(puller.bucket)
    puller.bucket.faults = [("list", 503), ("blob", "cut")]
    fetched = puller.pull()
    assert told(fetched) == [("loaded", "actual")]
    assert fetched.objects == 3  # a manifest and two parts
    assert puller.sums() == [["azure", 2, Decimal("100.5"), None, Decimal(384)]]
    assert not puller.bucket.faults


def test_views_of_one_bill_stand_side_by_side_and_focus_beside_them_is_refused(
    puller: Puller,
) -> None:
    """A purchase of 8760 on 1 November, and a day of it: 24 hours at 1 x 24 = 24 dollars."""
    bought = {**EA, "ChargeType": "Purchase", "CostInBillingCurrency": "8760", "Quantity": "1",
              "MeterCategory": "Reservations", "ResourceId": "", "AdditionalInfo": "", **COVERED,
              "UnitOfMeasure": "1"}  # fmt: skip
    free = days("0", **COVERED)
    Run("r1", "2026-11-02T03:00:00Z", ((bought, *free),)).put(puller.bucket)
    shared = Run("r2", "2026-11-02T03:00:00Z", (days("24", **COVERED),), "gpu-amortized",
                 "amortized")  # fmt: skip
    shared.put(puller.bucket)
    sheet = ({"MeterId": "m-1", "UnitPrice": "98.32"},)
    Run("r3", "2026-11-02T03:00:00Z", (sheet,), "prices", "PriceSheet").put(puller.bucket)
    fetched = puller.pull()
    assert told(fetched) == [("loaded", "actual"), ("loaded", "amortized")]
    # Each view has its own money, and neither is added to the other.
    assert puller.sums("dataset") == [
        ["actual", 2, Decimal(8760), None, Decimal(192)],
        ["amortized", 1, None, Decimal(24), Decimal(192)],
    ]
    whole = replace(shared, run="r4", export="gpu-focus", view="focus", parts=((FOCUS,),))
    whole.put(puller.bucket)
    refused = puller.pull()
    assert told(refused) == [("unchanged", "actual"), ("unchanged", "amortized"),
                             ("rejected", "focus")]  # fmt: skip
    assert "dataset" in runs.reasons(refused)
    # `dataset` chooses among the exports of a folder; it does not read one as the other.
    for dataset in ("actual", "amortized"):
        assert told(puller.pull(dataset=dataset)) == [("unchanged", dataset)]


def test_a_folder_without_the_export_that_was_asked_for_says_so(puller: Puller) -> None:
    Run("r1", "2026-11-02T03:00:00Z", (days("100"),)).put(puller.bucket)
    fetched = puller.pull(dataset="focus")
    assert fetched.deliveries == ()
    (warning,) = fetched.warnings
    assert "/exports/daily/: no export of focus is there" in warning
    assert "leave dataset out" in warning


def test_a_source_without_an_address_says_what_to_write(puller: Puller) -> None:
    with pytest.raises(ConfigError, match=r"sources\.az\.billing: missing"):
        puller.pull(billing="")
