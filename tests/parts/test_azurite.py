"""Exports in a real container of Azurite into the store: nights, forms, layouts and faults."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import MissingCredentials, ProviderError
from providers.azure.session import CONNECTION_STRING
from tests import azure_runs as runs
from tests.azure_runs import EA, FOCUS, MCA, Puller, Run, days, reasons, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azure.storage.blob import ContainerClient

pytestmark = pytest.mark.parts

PROGRAM = Path(__file__).parents[2] / ".npm-parts" / "node_modules" / ".bin" / "azurite-blob"
ACCOUNT = "devstoreaccount1"
# The account key that Azurite's documentation publishes; it opens nothing else.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
COVERED = {"PricingModel": "Reservation", "ReservationId": "r-1"}
SUBMITTED = "2026-11-02T03:00:00Z"


class Container:
    def __init__(self, client: ContainerClient, address: str) -> None:
        self.client, self.address = client, address

    def put(self, name: str, content: bytes) -> None:
        self.client.upload_blob(name, content, overwrite=True)


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running account."""
    assert PROGRAM.exists(), "run make test-parts, which installs Azurite"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("azurite")
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [str(PROGRAM), "--location", str(folder / "data"), "--blobHost", "127.0.0.1",
             "--blobPort", str(port), "--skipApiVersionCheck", "--disableTelemetry"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait(server, port, folder / "log")
            yield f"http://127.0.0.1:{port}/{ACCOUNT}"
        finally:
            server.terminate()
            server.wait(30)


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(300):
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    pytest.fail(f"Azurite did not start: {log.read_text()}")


def connection(address: str, key: str = KEY) -> str:
    return (f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};"
            f"BlobEndpoint={address};")  # fmt: skip


@pytest.fixture
def puller(
    azurite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Puller]:
    from azure.storage.blob import BlobServiceClient

    monkeypatch.setenv(CONNECTION_STRING, connection(azurite))
    name = f"bills-{abs(hash(request.node.name)) % 10**8}"
    with BlobServiceClient.from_connection_string(connection(azurite)) as service:
        client = service.create_container(name)
        yield Puller(Container(client, f"{azurite}/{name}"), tmp_path)
        client.delete_container()


def test_month_to_date_runs_are_versions_and_the_newest_counts(puller: Puller) -> None:
    runs.month_to_date_runs_are_versions(puller)


def test_a_newest_run_that_lacks_a_part_is_told_and_the_former_stays(puller: Puller) -> None:
    whole = Run("r1", SUBMITTED, (days("100", "110"),)).put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    lacking = replace(whole, run="r2", submitted="2026-11-04T03:00:00Z", leave_out=(2,),
                      parts=(days("100", "110"), days("0", "0", "90")[2:]))  # fmt: skip
    lacking.put(puller.bucket)
    fetched = puller.pull()
    assert sorted(told(fetched)) == [("rejected", "unknown"), ("unchanged", "actual")]
    assert "r2/part_1_0002.csv: missing part" in reasons(fetched)
    assert puller.sums() == [["azure", 2, Decimal(210), None, Decimal(384)]]
    # Its part comes late: now it is whole, and counts.
    replace(lacking, leave_out=()).put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    assert puller.sums() == [["azure", 3, Decimal(300), None, Decimal(576)]]


def test_a_first_run_that_lacks_a_part_leaves_the_run_before_it(puller: Puller) -> None:
    """Both lie there at the first pull: the newest complete one is loaded."""
    whole = Run("r1", SUBMITTED, (days("100"),)).put(puller.bucket)
    replace(whole, run="r2", submitted="2026-11-03T03:00:00Z", leave_out=(1,),
            parts=(days("100", "110"),)).put(puller.bucket)  # fmt: skip
    assert sorted(told(puller.pull())) == [("loaded", "actual"), ("rejected", "unknown")]
    assert puller.sums() == [["azure", 1, Decimal(100), None, Decimal(192)]]


def test_a_partition_that_is_overwritten_in_place_counts_once_its_manifest_is_new(
    puller: Puller,
) -> None:
    """OverwritePreviousReport: the same names each night."""
    first = Run("r1", SUBMITTED, (days("100"), days("50")), folder="current")
    first.put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    second = replace(first, run="r2", submitted="2026-11-03T03:00:00Z",
                     parts=(days("100", "110"), days("50", "60")))  # fmt: skip
    second.put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    # 100 + 110 + 50 + 60; four rows of 24 hours and 8 GPUs
    assert puller.sums() == [["azure", 4, Decimal(320), None, Decimal(768)]]
    # Half of the next run is written: the names are of the old manifest, the bytes of no one.
    third = replace(first, run="r3", submitted="2026-11-04T03:00:00Z",
                    parts=(days("100", "110", "90"), days("50", "60", "70")))  # fmt: skip
    half = f"{first.root}/{first.export}/{first.month}/current/part_1_0001.csv"
    puller.bucket.put(half, runs.encoded(third.parts[0], "csv"))
    assert told(puller.pull()) == [("unchanged", "actual")]
    assert puller.sums() == [["azure", 4, Decimal(320), None, Decimal(768)]]
    third.put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    assert puller.sums() == [["azure", 6, Decimal(480), None, Decimal(1152)]]


@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
def test_gzip_and_parquet_give_the_totals_of_plain_text(puller: Puller, form: str) -> None:
    costs = ("2359.68", "0.000000000001")
    Run("r1", SUBMITTED, (days(*costs), days("6.5")), form=form).put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    # 2359.68 + 0.000000000001 + 6.5
    assert puller.sums() == [["azure", 3, Decimal("2366.180000000001"), None, Decimal(576)]]
    listed = puller.store.table("billing").list_cost.sum().to_pyarrow().as_py()
    assert listed == Decimal("7079.04") or form == "csv.gz"  # 98.32 x 24 x 3


def test_actual_and_amortized_of_one_container_are_two_views_of_one_bill(puller: Puller) -> None:
    bought = {**EA, "ChargeType": "Purchase", "CostInBillingCurrency": "8760", "Quantity": "1",
              "MeterCategory": "Reservations", "ResourceId": "", "AdditionalInfo": "", **COVERED,
              "UnitOfMeasure": "1"}  # fmt: skip
    Run("r1", SUBMITTED, ((bought, *days("0", **COVERED)),)).put(puller.bucket)
    Run("r2", SUBMITTED, (days("24", **COVERED),), "gpu-amortized", "amortized").put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual"), ("loaded", "amortized")]
    assert puller.sums("dataset") == [
        ["actual", 2, Decimal(8760), None, Decimal(192)],
        ["amortized", 1, None, Decimal(24), Decimal(192)],
    ]


@pytest.mark.parametrize(
    ("base", "rename"),
    [
        (MCA, {}),
        (EA, {"MeterCategory": "Kategorie der Verbrauchseinheit (MeterCategory)",
              "CostInBillingCurrency": "Kosten (Cost In Billing Currency)",
              "Quantity": "Menge (Quantity)"}),
    ],
    ids=["customer agreement", "translated"],
)  # fmt: skip
def test_every_layout_has_the_money_and_hours_of_the_enterprise_one(
    puller: Puller, base: dict[str, Any], rename: dict[str, str]
) -> None:
    rows = tuple(
        {rename.get(name, name): cell for name, cell in row.items()}
        for row in days("100", "110", base=base)
    )
    Run("r1", SUBMITTED, (rows,)).put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    assert puller.sums() == [["azure", 2, Decimal(210), None, Decimal(384)]]


@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
def test_a_focus_export_alone_has_both_costs(puller: Puller, form: str) -> None:
    paid = {**FOCUS, "BilledCost": "0", "EffectiveCost": "24", "PricingCategory": "Committed",
            "ResourceId": "/vm/2", "CommitmentDiscountId": "/r-1",
            "CommitmentDiscountStatus": "Used", "CommitmentDiscountCategory": "Usage"}  # fmt: skip
    Run("r1", SUBMITTED, ((FOCUS, paid),), "gpu-focus", "focus", form).put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "focus")]
    # billed 100 + 0, effective 100 + 24
    assert puller.sums() == [["azure", 2, Decimal(100), Decimal(124), Decimal(384)]]


def test_a_large_export_comes_in_several_ranges(puller: Puller) -> None:
    """12,000 rows of more than 700 bytes: more than one request of 8 MiB."""
    many = tuple(days("1", Tags='"note": "' + "x" * 300 + '"') * 12_000)
    Run("r1", SUBMITTED, (many,)).put(puller.bucket)
    assert told(puller.pull()) == [("loaded", "actual")]
    assert puller.sums() == [["azure", 12_000, Decimal(12_000), None, Decimal(2_304_000)]]


def test_a_wrong_key_and_a_missing_container_are_told_apart_without_the_key(
    puller: Puller, azurite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Run("r1", SUBMITTED, (days("100"),)).put(puller.bucket)
    with pytest.raises(ProviderError, match="there is no such container"):
        puller.pull(billing=f"{azurite}/elsewhere/daily")
    with pytest.raises(ProviderError, match="no object lies there"):
        puller.pull(billing=f"{puller.bucket.address}/nothing/here")
    wrong = "cGxhbnRlZA=="
    monkeypatch.setenv(CONNECTION_STRING, connection(azurite, wrong))
    with pytest.raises((MissingCredentials, ProviderError)) as refused:
        puller.pull()
    assert wrong not in str(refused.value)
    assert "HTTP 403" in str(refused.value) or "AuthenticationFailed" in str(refused.value)
    assert puller.sums() == []
