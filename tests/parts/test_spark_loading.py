"""A store whose engine is Spark holds what a store of DuckDB holds, to the last digit.

Each export is loaded twice, by DuckDB and by Spark, and the two tables are compared row by row.
`LOADFACTOR_PARTS_ROWS` sets how many rows the made month has, over all layouts (200,000).
"""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from data import spark
from data.hourly import hourly
from data.store import Status, Store
from data.totals import totals, totals_json
from providers.files.loading import load
from tests.exports import SAMPLES, csv_file
from tests.mixed_month import write_month

ROWS = int(os.environ.get("LOADFACTOR_PARTS_ROWS", "200000"))
FLEET = Path(__file__).parents[2] / "data" / "sample" / "fleet"
LAYOUTS = ("cur2", "cur_legacy.csv", "focus.csv", "azure.csv", "gcp.json")
BUNDLED = ("aws", "azure", "gcp")
REAL = (
    sorted(
        path
        for path in SAMPLES.rglob("*.*")
        if path.suffix in (".csv", ".json", ".gz") and "Manifest" not in path.name
    )
    if SAMPLES.is_dir()
    else []
)

pytestmark = [
    pytest.mark.parts,
    # Spark's own Python warns about pandas and about sockets that its gateway leaves open.
    pytest.mark.filterwarnings("ignore:::pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    folder = tmp_path_factory.mktemp("month")
    write_month(folder, ROWS)
    return folder


def loaded(path, folder):
    """The results and stores of the export, loaded on each engine."""
    found = {}
    for engine in ("duckdb", "spark"):
        store = Store.open(folder / engine)
        store.engine = engine
        found[engine] = (load([path], store), store)
    return found


def assert_alike(found):
    (ours, on_duckdb), (theirs, on_spark) = found["duckdb"], found["spark"]
    assert theirs == ours
    files = [sorted(store.path.glob("deliveries/*/*.parquet")) for store in (on_duckdb, on_spark)]
    assert [path.parent.name for path in files[0]] == [path.parent.name for path in files[1]]
    assert files[0]
    with duckdb.connect() as connection:
        for left, right in zip(*files, strict=True):
            shape = "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '{}')"
            columns = [connection.execute(shape.format(p)).fetchall() for p in (left, right)]
            assert columns[0] == columns[1]
            for one, other in ((left, right), (right, left)):
                differing = f"SELECT * FROM '{one}' EXCEPT ALL SELECT * FROM '{other}' LIMIT 3"
                assert connection.execute(differing).fetchall() == []
            order = f"SELECT source_row_no FROM '{right}'"
            numbers = [row[0] for row in connection.execute(order).fetchall()]
            assert numbers == sorted(numbers)


def assert_sums_alike(store):
    by = ["source", "account", "billing_period", "purchase_option", "charge_type", "day"]
    on_spark = store.table("billing", spark.connect())
    sums = totals_json(totals(on_spark, by))
    assert sums == totals_json(totals(store.table("billing"), by))
    assert sums["rows"]

    def hours(rows):
        found = hourly(rows)
        summed = [found[name].sum().name(name) for name in ("effective_cost", "gpu_hours")]
        months = found.period_start.min().cast("string"), found.source_rows.max()
        return found.aggregate([found.count().name("n"), *summed, *months]).to_pyarrow().to_pylist()

    assert hours(on_spark)[0]["n"] == hours(store.table("billing"))[0]["n"]
    assert (
        list(hours(on_spark)[0].values())[:3] == list(hours(store.table("billing"))[0].values())[:3]
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_made_month_is_the_same_on_both_engines(month, tmp_path, name):
    found = loaded(month / name, tmp_path)
    assert [result.status for result in found["spark"][0]] == [Status.LOADED]
    assert_alike(found)
    assert_sums_alike(found["spark"][1])


@pytest.mark.parametrize("cloud", BUNDLED)
def test_the_bundled_exports_are_the_same_on_both_engines(tmp_path, cloud):
    found = loaded(FLEET / cloud, tmp_path)
    assert {result.status for result in found["spark"][0]} == {Status.LOADED}
    assert_alike(found)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_samples_are_the_same_on_both_engines(tmp_path, path):
    assert_alike(loaded(path, tmp_path))


FOCUS = {
    "BilledCost": "1", "EffectiveCost": "1", "ListCost": "1", "ChargeCategory": "Usage",
    "ChargePeriodStart": "2026-10-01T00:00:00Z", "ChargePeriodEnd": "2026-10-01T01:00:00Z",
    "BillingCurrency": "USD", "ProviderName": "AWS", "BillingAccountId": "1",
    "PricingCategory": "Standard", "ConsumedQuantity": "1", "ConsumedUnit": "Hours",
}  # fmt: skip


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("EffectiveCost", "NaN"),
        ("ListCost", "1,5"),
        ("BilledCost", "1234567890123"),
        ("ChargePeriodStart", "2026"),
        ("ChargePeriodEnd", "10:30:00"),
    ],
)
def test_a_bad_cell_is_named_alike_and_nothing_is_loaded(tmp_path, column, cell):
    rows = [FOCUS, {**FOCUS, column: cell}, FOCUS]
    path = csv_file(tmp_path / "focus.csv", rows)
    found = loaded(path, tmp_path)
    (ours,), (theirs,) = found["duckdb"][0], found["spark"][0]
    assert theirs == ours
    assert theirs.status is Status.REJECTED
    assert "row 2" in theirs.reason
    assert column in theirs.reason
    assert cell in theirs.reason
    assert list(found["spark"][1].path.glob("deliveries/*")) == []


def test_cells_at_the_edge_are_read_alike(tmp_path):
    cells = (
        "999999999999.99999999999999999999999999", "-0.00", "6.123E-7", "1e3", " 7 ", "+5", ".5",
        "0.123456789012345678901234564", "0.123456789012345678901234565",
        "-0.123456789012345678901234565", "0.1234567890123456789012345649999",
    )  # fmt: skip
    times = (
        "2026-10-01", "2026-10-01 01:02:03.456789", "2026-10-01T01:02:03+02:00",
        "2026-10-01 00:00:00 UTC", "2026-10-01T00:00Z", "2026-10-01T00:00:00.1234567Z",
        "2026-10-01T00:00+0200", "2026/10/01 05:06:07", "2026-10-01 00:00:00+00",
    )  # fmt: skip
    rows = [{**FOCUS, "EffectiveCost": cell} for cell in cells]
    rows += [
        {**FOCUS, "ChargePeriodStart": time, "ChargePeriodEnd": "2027-01-01"} for time in times
    ]
    found = loaded(csv_file(tmp_path / "focus.csv", rows), tmp_path)
    assert [result.status for result in found["spark"][0]] == [Status.LOADED]
    assert_alike(found)
