"""Bills in BigQuery's dialect: bqemulator gives the totals that `load` gives of the same rows."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import os
import socket
import subprocess
import time
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from google.cloud.bigquery import SchemaField as Field

import data.sample
from data.hourly import hourly
from data.store import Store
from data.totals import totals, totals_json
from providers.fetch.contract import Fetched, FetchTask
from providers.files.loading import load
from providers.gcp.fetch import fetch
from tests.exports import json_lines, sample
from tests.providers.gcp_cases import CUD, ON_DEMAND, charge, credit, labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.parts

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-bigquery" / "bin" / "python"
FLEET = Path(data.sample.__file__).parent / "fleet" / "gcp"
BY = (
    "billing_period", "day", "account", "region", "purchase_option", "commitment_status",
    "charge_type", "instance_type", "gpu_model",
)  # fmt: skip
MONTHS = ("202609", "202610")
EXPORTED = "2026-10-20T00:00:00Z"


def record(name: str, *inner: Field, many: bool = False) -> Field:
    return Field(name, "RECORD", "REPEATED" if many else "NULLABLE", fields=inner)


def texts(*names: str) -> list[Field]:
    return [Field(name, "STRING") for name in names]


def floats(*names: str) -> list[Field]:
    return [Field(name, "FLOAT") for name in names]


PAIR = texts("key", "value")
# The types that Google documents for the detailed export: costs are FLOAT64, prices NUMERIC.
SCHEMA = [
    *texts("billing_account_id", "currency", "cost_type", "transaction_type", "seller_name"),
    record("service", *texts("id", "description")),
    record("sku", *texts("id", "description")),
    *(Field(name, "TIMESTAMP") for name in ("usage_start_time", "usage_end_time", "export_time")),
    record("project", *texts("id", "number", "name")),
    record("labels", *PAIR, many=True),
    record("system_labels", *PAIR, many=True),
    record("location", *texts("location", "country", "region", "zone")),
    record("resource", *texts("name", "global_name")),
    *floats("cost", "currency_conversion_rate", "cost_at_list"),
    record("usage", *floats("amount", "amount_in_pricing_units"), *texts("unit", "pricing_unit")),
    record("credits", *texts("id", "full_name", "type", "name"), *floats("amount"), many=True),
    record("invoice", *texts("month")),
    record("price", Field("list_price", "NUMERIC"), Field("pricing_unit_quantity", "NUMERIC")),
    record("adjustment_info", *texts("id", "type")),
    record("consumption_model", *texts("id", "description")),
]
STANDARD = [one for one in SCHEMA if one.name != "resource"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bigquery.Client]:
    """A client of a running emulator, which pulls are pointed to as well."""
    assert PYTHON.exists(), "run make test-parts, which installs the emulator"
    rest, grpc = _free_port(), _free_port()
    ports = ["--rest-port", str(rest), "--grpc-port", str(grpc)]
    launcher = str(ROOT / "tests" / "parts" / "bigquery_server.py")
    command = [str(PYTHON), launcher, "start", *ports, "--log-level", "error"]
    root = f"http://127.0.0.1:{rest}"
    with (tmp_path_factory.mktemp("bigquery") / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        os.environ["BIGQUERY_EMULATOR_HOST"] = root
        try:
            _wait(server, f"{root}/bigquery/v2/projects/bills/datasets")
            options = ClientOptions(api_endpoint=root)
            made = bigquery.Client("bills", AnonymousCredentials(), client_options=options)
            made.create_dataset("billing")
            yield made
        finally:
            del os.environ["BIGQUERY_EMULATOR_HOST"]
            server.terminate()
            server.wait(20)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(server: subprocess.Popen[bytes], address: str) -> None:
    for _ in range(600):
        assert server.poll() is None, "the emulator ended"
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("the emulator does not answer")


def add(
    client: bigquery.Client,
    name: str,
    rows: Sequence[dict[str, Any]],
    schema: Sequence[Field] = SCHEMA,
    day: str = "usage_start_time",
) -> None:
    """The rows at the end of the table, which is made where it is missing."""
    table = bigquery.Table(f"bills.billing.{name}", schema=schema)
    # The emulator knows no ingestion time; a table that is divided by a column it does.
    table.time_partitioning = bigquery.TimePartitioning(field=day)
    client.create_table(table, exists_ok=True)
    known = {one.name for one in schema}
    text = "\n".join(
        json.dumps({key: value for key, value in row.items() if key in known}) for row in rows
    )
    config = bigquery.LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON", schema=schema,
                                    ignore_unknown_values=True)  # fmt: skip
    client.load_table_from_file(io.BytesIO(text.encode()), table, job_config=config).result()


def pull(folder: Path, name: str, day: date) -> Fetched:
    options = {"kind": "gcp", "billing": f"bigquery://bills.billing.{name}", "months": 13}
    store = Store.open(folder / "store")
    return fetch(FetchTask("bills", options, store, folder / "landing", day))


def answer(store: Path, by: Sequence[str] = BY) -> list[dict[str, Any]]:
    """The totals of a store, without the number of rows, which an hour's sum has fewer of."""
    rows = totals_json(totals(Store.open(store).table("billing"), by))["rows"]
    return [{key: value for key, value in row.items() if key != "source_rows"} for row in rows]


def charges(store: Path) -> list[dict[str, Any]]:
    """Every charge of a store, brought to the hour, without its delivery and number."""
    rows = Store.open(store).table("billing")
    summed = hourly(rows.drop("export_id")).drop("source_rows")
    return sorted(summed.to_pyarrow().to_pylist(), key=lambda row: json.dumps(row, default=str))


def loaded(path: Path, folder: Path) -> Path:
    """A store into which the file was loaded."""
    results = load([path], Store.open(folder / "by-file"))
    assert [str(one.status) for one in results] == ["loaded"]
    return folder / "by-file"


def fleet_rows() -> list[dict[str, Any]]:
    """Every fortieth charge of two months of the bundled fleet, and all that are of no machine."""
    lines = []
    for part in sorted(FLEET.rglob("*.json.gz")):
        lines += gzip.decompress(part.read_bytes()).splitlines()
    rows = [row for line in lines if (row := json.loads(line))["invoice"]["month"] in MONTHS]
    chosen = rows[::40]
    return chosen + [row for row in rows if row["cost_type"] != "regular" and row not in chosen]


def awkward_rows() -> list[dict[str, Any]]:
    """Made by us: what is easily read otherwise by an engine of its own."""
    moved = {"id": "a1", "type": "GENERAL_CORRECTION"}
    rows = [
        charge(ON_DEMAND, 0.1 + 0.2, credits=[credit(-0.1, CUD), credit(-1e-7, "DISCOUNT")]),
        charge(ON_DEMAND, 0.7000000000000001, credits=[credit(-0.35, CUD)]),
        charge(ON_DEMAND, 123456789.12345678, price={"list_price": "1.23456789"}),
        charge(ON_DEMAND, 12.5, labels=[{"key": 'a "b"', "value": "é\\\n"}]),
        charge(ON_DEMAND, 5.0,
               system_labels=labels(is_unused_reservation="true", reservation_name="r")),
        charge(ON_DEMAND, -12.5, adjustment_info=moved, invoice={"month": "202610"}),
        charge("Commitment v1: Nvidia H100 80GB GPU running in Iowa for 1 Year", 55.0),
        charge("Commitment - dollar based v1: GPU", 9.0,
               credits=[credit(-4.0, "FEE_UTILIZATION_OFFSET")]),
        charge("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Iowa", 3e-05),
        charge("Reserved Nvidia H100 80GB GPU in Iowa in Calendar Mode", 8.0),
        charge("A3 Instance Ram running in Americas", 2.0, usage={
            "amount": 7.2e15, "unit": "byte-seconds", "amount_in_pricing_units": 1872.0,
            "pricing_unit": "gibibyte hour"}),
        charge(ON_DEMAND, 1.0, usage={"amount": 10000.0, "unit": "seconds"}),
        charge("Tax", 41.3, cost_type="tax", project=None, invoice={"month": ""}, location=None),
        charge(ON_DEMAND, 24.0, usage_end_time="2026-09-03T10:00:00Z",
               consumption_model={"id": "m", "description": "3 years"}),
    ]  # fmt: skip
    return [{**row, "export_time": EXPORTED} for row in rows]


def test_a_pull_gives_the_totals_that_the_same_rows_give_as_a_file(client, tmp_path):
    rows = fleet_rows() + awkward_rows()
    add(client, "detailed", rows)
    first = pull(tmp_path, "detailed", date(2026, 11, 30))
    assert {str(one.status) for one in first.deliveries} == {"loaded"}
    assert all(one.dataset == "detailed" for one in first.deliveries)
    by_file = loaded(json_lines(tmp_path / "detailed.jsonl", rows), tmp_path)
    assert answer(tmp_path / "store") == answer(by_file)
    assert charges(tmp_path / "store") == charges(by_file)
    assert answer(tmp_path / "store", ["gpu_model"])[0]["gpu_hours"] != "0"
    assert sum(one.rows for one in first.deliveries) < len(rows)  # sums of hours travelled
    again = pull(tmp_path, "detailed", date(2026, 11, 30))
    assert {str(one.status) for one in again.deliveries} == {"unchanged"}
    assert again.objects == 0

    # A correction of an old day, on a later invoice, changes that month alone.
    late = charge(ON_DEMAND, -1.5, invoice={"month": "202610"}, export_time="2026-11-02T00:00:00Z")
    add(client, "detailed", [late])
    changed = pull(tmp_path, "detailed", date(2026, 11, 30))
    read = [one.billing_periods for one in changed.deliveries if one.status == "loaded"]
    assert read == [("2026-10",)]
    whole = loaded(json_lines(tmp_path / "whole.jsonl", [*rows, late]), tmp_path / "after")
    assert answer(tmp_path / "store") == answer(whole)


def test_real_exports_give_the_totals_of_their_files(client, tmp_path):
    path = sample("gcp/standard_export_flattened_2020-11.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [nested(row) for row in csv.DictReader(file)]
    add(client, "standard", rows, STANDARD)
    fetched = pull(tmp_path, "standard", date(2020, 11, 30))
    assert [(str(one.status), one.dataset) for one in fetched.deliveries] == [
        ("loaded", "standard")
    ]
    assert answer(tmp_path / "store") == answer(loaded(path, tmp_path))


def focus_row(category: str, billed: float, **more: Any) -> dict[str, Any]:
    """Made by us: an hour of Google's GPUs as a FOCUS export tells it."""
    row = {
        "ProviderName": "Google Cloud", "BillingAccountId": "01-02", "SubAccountId": "ml",
        "BillingCurrency": "USD", "BillingPeriodStart": "2026-09-01T07:00:00Z",
        "BillingPeriodEnd": "2026-10-01T07:00:00Z", "ChargePeriodStart": "2026-09-02T10:00:00Z",
        "ChargePeriodEnd": "2026-09-02T11:00:00Z", "ChargeCategory": category,
        "ChargeDescription": ON_DEMAND, "RegionId": "us-central1", "ResourceId": "vm-1",
        "ServiceName": "Compute Engine", "SkuId": "A-1", "ConsumedQuantity": 8.0,
        "ConsumedUnit": "hour", "PricingCategory": "Standard", "BilledCost": billed,
        "EffectiveCost": billed, "ListCost": "32.123456789", "InvoiceId": "I-1",
        "SkuPriceDetails": '{"MachineType": "a3-highgpu-8g", "GpuCount": "8"}',
        "Tags": [{"key": "team", "value": 'res"earch'}],
    }  # fmt: skip
    return row | more


def test_a_focus_table_gives_the_totals_of_the_same_rows_as_a_file(client, tmp_path):
    spot = {"PricingCategory": "Dynamic", "SkuPriceDetails": None, "Tags": []}
    unused = {"CommitmentDiscountStatus": "Unused", "CommitmentDiscountId": "c-1",
              "CommitmentDiscountCategory": "Usage", "ConsumedQuantity": None,
              "PricingCategory": "Committed"}  # fmt: skip
    rows = [
        focus_row("Usage", 0.1 + 0.2), focus_row("Usage", 12.5), focus_row("Usage", 3e-05, **spot),
        focus_row("Usage", 7.25, **unused), focus_row("Tax", 41.3, ResourceId=None),
        focus_row("Credit", -1.5, ChargeClass="Correction"),
    ]  # fmt: skip
    names = dict.fromkeys(name for row in rows for name in row)
    kinds = {"BilledCost": "FLOAT", "EffectiveCost": "FLOAT", "ConsumedQuantity": "FLOAT",
             "ListCost": "NUMERIC"} | {n: "TIMESTAMP" for n in names if "Period" in n}  # fmt: skip
    schema = [record(name, *PAIR, many=True) if name == "Tags"
              else Field(name, kinds.get(name, "STRING")) for name in names]  # fmt: skip
    add(client, "focus", rows, schema, "ChargePeriodStart")
    fetched = pull(tmp_path, "focus", date(2026, 9, 30))
    told = [(str(one.status), one.source, one.dataset) for one in fetched.deliveries]
    assert told == [("loaded", "gcp", "focus")]
    written = [
        {**row, "Tags": {one["key"]: one["value"] for one in row["Tags"]} or None} for row in rows
    ]
    by_file = loaded(json_lines(tmp_path / "focus.jsonl", written), tmp_path)
    assert answer(tmp_path / "store") == answer(by_file)
    mine, theirs = charges(tmp_path / "store"), charges(by_file)
    # DuckDB writes a map without blanks, the query with: the same tags.
    for row in (*mine, *theirs):
        row["tags"] = row["tags"] and json.loads(row["tags"])
    assert mine == theirs


def nested(row: dict[str, str]) -> dict[str, Any]:
    """A row of a flattened file as the table holds it: records and lists; empty cells are null."""
    made: dict[str, Any] = {}
    for name, text in row.items():
        value: Any = text or None
        if text.startswith("["):
            value = [
                {k: v for k, v in one.items() if v is not None} for one in ast.literal_eval(text)
            ]
        inner = made
        *parents, last = name.split(".")
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return made
