"""The store's Parquet gives the same totals on Spark as on DuckDB, to the last digit."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import ibis
import pytest

from data.spark import session
from data.store import Store
from data.totals import totals, totals_json
from tests.staged import Charges

pytestmark = [
    pytest.mark.parts,
    # Spark's own Python warns about pandas and about sockets that its gateway leaves open.
    pytest.mark.filterwarnings("ignore:::pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# Amounts that a float, or a decimal of fewer places, cannot hold: twelve integer digits, 26 places,
# and a sum whose small part survives only if nothing is rounded on the way.
HARD = (
    "999999999999",
    "-999999999998.99999999999999999999999999",
    "0.1",
    "0.00000000000000000000000001",
    "6.123E-7",
)
# 999999999999 - 999999999998.99999999999999999999999999 = 0.00000000000000000000000001, and
# 0.00000000000000000000000001 x 2 + 0.1 + 0.0000006123
HARD_SUM = Decimal("0.10000061230000000000000002")


@pytest.fixture(scope="module")
def spark():
    return session()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two accounts and two months, of which one was restated."""
    store = Store.open(tmp_path_factory.mktemp("spark") / "store")
    Charges(HARD).publish(store)
    Charges(("1", "2.5"), ("2026-09", "2026-10"), name="b.csv", account="2").publish(store)
    newer = datetime(2026, 11, 2, tzinfo=UTC)
    Charges(("7", "8"), name="c.csv", account="3", delivery="old",
            made=datetime(2026, 11, 1, tzinfo=UTC)).publish(store)  # fmt: skip
    Charges(("7", "8.25"), name="d.csv", account="3", delivery="new", made=newer).publish(store)
    return store


def active_on_spark(spark, store: Store) -> ibis.Table:
    """The active rows as Spark reads them from the store's files."""
    backend = ibis.pyspark.connect(spark)
    (first, *others) = [
        backend.read_parquet(str(path), table_name=f"delivery_{number}")
        for number, path in enumerate(sorted(store.path.glob("deliveries/*/billing.parquet")))
    ]
    rows = first.union(*others) if others else first
    active = ibis.or_(
        *(
            (rows.unit == unit) & (rows.export_id == delivery)
            for unit, delivery in store.active().items()
        )
    )
    return rows.filter(active)


@pytest.mark.parametrize(
    "by",
    [
        ["source", "dataset", "billing_period", "currency"],
        ["delivery_id", "account", "day"],
        ["purchase_option", "commitment_status"],
    ],
    ids=",".join,
)
def test_totals_on_spark_equal_totals_on_duckdb(spark, store, by):
    on_spark = totals_json(totals(active_on_spark(spark, store), by))
    assert on_spark == totals_json(totals(store.table("billing"), by))
    assert on_spark["rows"]


def test_totals_on_spark_are_exact_and_leave_out_what_was_replaced(spark, store):
    frame = totals(active_on_spark(spark, store), ["source", "billing_period"])
    sums = dict(zip(frame["billing_period"], frame["effective_cost"], strict=True))
    assert sums == {
        "2026-09": Decimal(1),
        "2026-10": Decimal("2.5"),
        "2026-11": HARD_SUM + Decimal("15.25"),  # 7 + 8.25; the 15 of before is gone
    }
    assert frame["billed_cost"].tolist() == [None, None, None]
