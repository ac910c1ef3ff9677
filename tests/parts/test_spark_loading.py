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
from data.hourly import AMOUNTS, hourly
from data.store import Status, Store
from data.totals import totals, totals_json
from providers.files.loading import load
from tests.exports import SAMPLES, csv_file
from tests.mixed_month import write_month
from tests.program import run

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
    on_spark, on_duckdb = store.table("billing", spark.connect()), store.table("billing")
    sums = totals_json(totals(on_spark, by))
    assert sums == totals_json(totals(on_duckdb, by))
    assert sums["rows"]
    assert hours_by_machine(on_spark) == hours_by_machine(on_duckdb)


def hours_by_machine(rows):
    """How many rows the hourly table has for each resource, and their exact sums, in order."""
    found = hourly(rows)
    summed = found.group_by(["resource_id", "purchase_option"]).aggregate(
        rows=found.count(),
        of=found.source_rows.sum(),
        **{name: found[name].sum() for name in AMOUNTS},
    )
    listed = summed.to_pyarrow().to_pylist()
    return sorted(listed, key=lambda row: (str(row["resource_id"]), row["purchase_option"]))


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


def test_the_program_loads_and_totals_on_the_engine_that_its_configuration_names(tmp_path):
    rows = [FOCUS, {**FOCUS, "EffectiveCost": "0.10", "ChargePeriodEnd": "2026-10-01T00:30Z"}]
    path = csv_file(tmp_path / "focus.csv", rows)
    config = tmp_path / "loadfactor.toml"
    config.write_text('[store]\npath = "store"\nengine = "spark"\n')
    loading = run("load", path, "--config", config, "--json", "--verbose")
    assert (loading.code, loading.json["deliveries"][0]["status"]) == (0, "loaded")
    summed = run("totals", "--by", "source,day", "--config", config, "--json")
    assert summed.code == 0
    (row,) = summed.json["rows"]
    assert (row["day"], row["effective_cost"], row["billed_cost"]) == ("2026-10-01", "1.1", "2")
    assert "Traceback" not in loading.err + summed.err
    folders = {one.name for one in (tmp_path / "store" / "deliveries").iterdir()}
    assert folders == {loading.json["deliveries"][0]["delivery_id"]}
