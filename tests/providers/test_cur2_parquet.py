"""CUR 2.0 as AWS writes it, Parquet with floats, times and maps, against PyArrow's own reading."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, localcontext

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.store import Status, Store
from providers.files.loading import load
from tools.cur2 import COLUMNS, write_cur2

ROWS = 3000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The export as PyArrow reads it, and its rows in the store."""
    folder = tmp_path_factory.mktemp("cur2")
    paths = write_cur2(folder / "export", ROWS, 3)
    export = pa.concat_tables(pq.read_table(path) for path in paths).to_pylist()
    store = Store.open(folder / "store")
    (result,) = load([folder / "export"], store)
    rows = store.table("billing").order_by("source_row_no").to_pyarrow().to_pylist()
    return export, rows, result


def shortest(number):
    return None if number is None else Decimal(repr(number))


def total(values):
    with localcontext(prec=60):
        return sum((value for value in values if value is not None), Decimal(0))


def test_every_row_is_there_in_its_order(made):
    export, rows, result = made
    assert (result.status, result.rows, result.dataset) == (Status.LOADED, ROWS, "cur2")
    assert set(export[0]) == set(COLUMNS)
    assert [row["resource_id"] for row in rows] == [row["line_item_resource_id"] for row in export]


def test_money_is_the_shortest_text_of_each_float(made):
    export, rows, _ = made
    assert [row["billed_cost"] for row in rows] == [
        shortest(row["line_item_unblended_cost"]) for row in export
    ]
    # A third of the machines' hours is covered or negated: what counts there is another column.
    wanted = {
        "SavingsPlanCoveredUsage": lambda row: row["savings_plan_savings_plan_effective_cost"],
        "DiscountedUsage": lambda row: row["reservation_effective_cost"],
        "SavingsPlanNegation": lambda row: 0.0,
        "Usage": lambda row: row["line_item_unblended_cost"],
        "Credit": lambda row: row["line_item_unblended_cost"],
    }
    for kind, cost in wanted.items():
        pairs = [
            (ours["effective_cost"], shortest(cost(theirs)))
            for ours, theirs in zip(rows, export, strict=True)
            if theirs["line_item_line_item_type"] == kind
        ]
        assert pairs, kind
        assert total(ours for ours, _ in pairs) == total(theirs for _, theirs in pairs)


def test_times_products_and_tags_are_those_of_the_file(made):
    export, rows, _ = made
    for ours, theirs in zip(rows, export, strict=True):
        assert ours["period_start"] == theirs["line_item_usage_start_date"].replace(tzinfo=UTC)
        assert ours["period_end"] == theirs["line_item_usage_end_date"].replace(tzinfo=UTC)
        tags = {key.removeprefix("user_"): text for key, text in theirs["resource_tags"]}
        assert json.loads(ours["tags"]) == tags
    assert {row["billing_period"] for row in rows} == {"2026-10"}
    assert {row["region"] for row in rows} == {"us-west-2"}


BASE = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "BoxUsage:p5.48xlarge",
    "bill_payer_account_id": "1", "line_item_usage_amount": 1.0, "line_item_unblended_cost": 0.1,
    "line_item_product_code": "AmazonEC2", "line_item_currency_code": "USD",
}  # fmt: skip
TEN = datetime(2026, 10, 1, 10)
TIMES = {
    "s": (pa.timestamp("s"), TEN),
    "ms": (pa.timestamp("ms"), TEN),
    "ns": (pa.timestamp("ns"), TEN),
    "UTC": (pa.timestamp("us", tz="UTC"), TEN.replace(tzinfo=UTC)),
    "zone": (
        pa.timestamp("us", tz="+02:00"), TEN.replace(tzinfo=UTC).astimezone(
            timezone(timedelta(hours=2))),
    ),
    "text": (pa.string(), "2026-10-01T10:00:00Z"),
}  # fmt: skip


def part(path, kind, tags):
    """One row whose start is of that kind and whose tags are a map or a text."""
    type_, start = TIMES[kind]
    columns = {name: pa.array([value]) for name, value in BASE.items()}
    columns["line_item_usage_start_date"] = pa.array([start], type_)
    columns["line_item_usage_end_date"] = pa.array(["2026-10-01T11:00:00Z"])
    is_map = not isinstance(tags, str)
    columns["resource_tags"] = pa.array(
        [tags], pa.map_(pa.string(), pa.string()) if is_map else None
    )
    product = [("region_code", "eu-west-1")]
    columns["product"] = (
        pa.array([product], pa.map_(pa.string(), pa.string()))
        if is_map
        else pa.array([json.dumps(dict(product))])
    )
    pq.write_table(pa.table(columns), path)


MIXES = [
    ("s",), ("ms",), ("ns",), ("UTC",), ("zone",), ("text", "ms"), ("ms", "UTC"),
    ("ms", "text", "zone"),
]  # fmt: skip


@pytest.mark.parametrize("kinds", MIXES, ids=",".join)
def test_a_time_is_the_same_however_the_parts_hold_it(tmp_path, kinds):
    for number, kind in enumerate(kinds, 1):
        tags = [("user:a", "1")] if number % 2 else '{"user_a": "1"}'
        part(tmp_path / f"export-{number:05}.parquet", kind, tags)
    store = Store.open(tmp_path / "store")
    results = load(sorted(tmp_path.glob("*.parquet")), store)
    assert [(one.status, one.reason) for one in results] == [(Status.LOADED, None)]
    rows = store.table("billing").to_pyarrow().to_pylist()
    assert [row["period_start"] for row in rows] == [TEN.replace(tzinfo=UTC)] * len(kinds)
    assert {row["tags"].replace(" ", "") for row in rows} == {'{"a":"1"}'}
    assert {row["region"] for row in rows} == {"eu-west-1"}
    assert {row["instance_type"] for row in rows} == {"p5.48xlarge"}


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ('{"user_a":"1","user:b":"2"}', '{"a":"1","b":"2"}'),
        ('{"user_user_a":"1"}', '{"user_a":"1"}'),
        ('{"user:user_a":"user:x"}', '{"user_a":"user:x"}'),
        ('{ "user_a": "1",\n "user:b": ", \\"user_c\\""}', None),
        ('{"a":",","user_b":"2"}', '{"a":",","b":"2"}'),
    ],
)
def test_the_mark_of_user_tags_is_taken_off_keys_alone(tmp_path, tags, wanted):
    part(tmp_path / "export.parquet", "ms", tags)
    store = Store.open(tmp_path / "store")
    load([tmp_path / "export.parquet"], store)
    (row,) = store.table("billing").to_pyarrow().to_pylist()
    if wanted is None:
        assert json.loads(row["tags"]) == {"a": "1", "b": ', "user_c"'}
    else:
        assert row["tags"] == wanted
