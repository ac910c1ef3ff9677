"""Tables kept by hand: how they are told, read, and all their faults named."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pandas as pd
import pytest

from data.errors import DataError
from providers.files import tables
from tests.providers.table_cases import HEAD, load, write

COMMITMENTS = (
    "id,cloud,account,kind,instance_type,family,region,count,usd_per_hour,start,end,payment,"
    "usd_per_instance_hour"
)
RESERVED = (
    "ri-1,aws,0099,reserved,p5.48xlarge,,us-east-1,2,,2026-01-01,2027-01-01,no_upfront,58.992"
)
PLAN = "sp-1,aws,0099,savings_plan,,p5,,,55.5,2026-01-01T00:00:00Z,2027-01-01,all_upfront,"


def read(tmp_path, table, *lines):
    return tables.read_table(write(tmp_path / f"{table}.csv", *lines), table)


def faults(tmp_path, table, *lines):
    with pytest.raises(DataError) as caught:
        read(tmp_path, table, *lines)
    return [f"{problem.where}: {problem.what}" for problem in caught.value.problems]


def test_commitments_are_read_and_loaded(tmp_path):
    path = write(tmp_path / "commitments.csv", COMMITMENTS, RESERVED, PLAN)
    staged, (reserved, plan) = load(tmp_path, path, table="commitments")
    assert (staged.source, staged.billing_periods) == ("aws", ())
    assert staged.units.keys() == {"aws|0099|commitments|all"}
    assert (reserved["count"], reserved["usd_per_instance_hour"]) == (2, Decimal("58.992"))
    assert (reserved["family"], reserved["usd_per_hour"]) == (None, None)
    assert (plan["usd_per_hour"], plan["region"]) == (Decimal("55.5"), None)
    assert plan["start"] == datetime(2026, 1, 1, tzinfo=UTC)


def test_every_fault_of_a_table_kept_by_hand_is_named_at_once(tmp_path):
    lines = [
        "ri-1,aws,0099,reserved,p5.48xlarge,,us-east-1,two,,2026-01-01,2027-01-01,no_upfront,58.9",
        "ri-2,aws,,reserved,p5.48xlarge,,us-east-1,-2,,2026-01-01,01/02/2027,no_upfront,NaN USD",
    ]
    assert faults(tmp_path, "commitments", COMMITMENTS, *lines) == [
        "commitments.account row 2: empty, and must not be",
        "commitments.count row 1: 'two' is not a number",
        "commitments.count row 2: '-2' is out of its range 0 to",
        "commitments.end row 2: '01/02/2027' is not an ISO date or time",
        "commitments.usd_per_instance_hour row 2: 'NaN USD' is not a number",
    ]


def test_faults_between_the_columns_of_commitments_are_named(tmp_path):
    lines = [
        RESERVED,
        RESERVED.replace("2027-01-01", "2025-01-01"),
        PLAN.replace("sp-1", "sp-2").replace("55.5", ""),
        PLAN.replace("savings_plan", "discount"),
    ]
    assert faults(tmp_path, "commitments", COMMITMENTS, *lines) == [
        "commitments row 1: its id occurs more than once",
        "commitments row 2: `end` is not after `start`",
        "commitments row 2: its id occurs more than once",
        "commitments row 3: a savings plan needs `usd_per_hour`",
        "commitments row 3: it has neither `count` nor `usd_per_hour`",
        "commitments row 4: `kind` is none of reserved, savings_plan, capacity_block, "
        "capacity_reservation, owned",
    ]


def test_missing_columns_of_a_table_kept_by_hand_are_named(tmp_path):
    assert faults(tmp_path, "budgets", "scope,amount,from", "all,100,2026-01-01") == [
        "budgets.currency: missing column",
        "budgets.kind: missing column",
        "budgets.to: missing column",
    ]


def test_jobs_are_read(tmp_path):
    head = "id,class,gpus,hours,release,gang,checkpointable,offers"
    frame = read(tmp_path, "jobs", head, "j1,training,8,2.5,0,1,true,", "j2,eval,1,1,5,0,N/A,x;y")
    assert frame["gpus"].tolist() == [8, 1]
    assert frame["checkpointable"].tolist()[0] == 1
    assert pd.isna(frame["checkpointable"][1])
    assert frame["unit"].unique().tolist() == ["user|all|jobs|all"]
    assert faults(tmp_path, "jobs", head, "j1,training,8,2.5,0,2,1.5,") == [
        "jobs.checkpointable row 1: '1.5' is not a whole number",
        "jobs.gang row 1: '2' is out of its range 0 to 1",
    ]


def test_price_overrides_are_absolute_rows_or_discounts(tmp_path):
    head = (
        "provider,region,instance_type,purchase_option,payment_option,usd_per_instance_hour,source,"
        "as_of,cloud,family,from,to,discount_share"
    )
    frame = read(
        tmp_path, "prices", head,
        "aws,us-east-1,p5.48xlarge,reserved_1y,no_upfront,58.992,contract,2026-11-01,,,,,",
        ",,,,,,,,GCP,a3,2026-01-01,2027-01-01,0.25",
    )  # fmt: skip
    assert frame["provider"].tolist() == ["aws", "gcp"]
    assert frame["usd_per_instance_hour"][0] == Decimal("58.992")
    assert frame["discount_share"][1] == 0.25
    assert frame["unit"].tolist() == ["aws|all|prices|all", "gcp|all|prices|all"]
    assert faults(
        tmp_path, "prices", head,
        "aws,us-east-1,p5.48xlarge,reserved_1y,,58.992,contract,2026-11-01,,,2026-01-01,,0.1",
        "aws,,p5.48xlarge,reserved_1y,,58.992,contract,,,,,,",
        "aws,,,,,,,,,,,,1.5",
    ) == [
        "prices.discount_share row 3: '1.5' is out of its range 0 to 1",
    ]  # fmt: skip


def test_faults_between_the_columns_of_prices_are_named(tmp_path):
    head = "provider,region,instance_type,purchase_option,usd_per_instance_hour,as_of,from,"
    head += "discount_share"
    assert faults(
        tmp_path, "prices", head,
        "aws,us-east-1,p5.48xlarge,on_demand,98.32,2026-11-01,2026-01-01,0.1",
        "aws,,p5.48xlarge,on_demand,98.32,,,",
        "aws,,,,,,,0.5",
    ) == [
        "prices row 1: it has a price and a discount; state one",
        "prices row 2: a price needs `as_of`",
        "prices row 2: a price needs `region`",
        "prices row 3: a discount needs `from`",
    ]  # fmt: skip


def test_agreements_and_budgets_keep_their_money_exact(tmp_path):
    head = "cloud,from,to,committed,counted_so_far,discount_share,currency"
    agreements = read(tmp_path, "agreements", head, "aws,2026-01-01,2027-01-01,1E6,0.1,0.09,USD")
    assert agreements["committed"].tolist() == [Decimal(1000000)]
    assert agreements["counted_so_far"].tolist() == [Decimal("0.1")]
    head = "scope,from,to,amount,currency,kind"
    budgets = read(tmp_path, "budgets", head, "all,2026-01-01,2027-01-01,5.10,EUR,cash")
    assert budgets["amount"].tolist() == [Decimal("5.1")]
    assert faults(tmp_path, "budgets", head, "all,2026-01-01,2026-01-01,5,EUR,gift") == [
        "budgets.kind row 1: 'gift' is none of cash, credit, grant",
    ]


def test_an_invoice_is_of_one_month_and_stated_once(tmp_path):
    head = "cloud,account,billing_period,amount,currency"
    rows = ["AWS,0011,2026-10,1234.56,USD", "aws,,2026-10,2E3,USD", "aws,0011,2026-10,5,EUR"]
    invoices = read(tmp_path, "invoices", head, *rows)
    assert invoices["amount"].tolist() == [Decimal("1234.56"), Decimal(2000), Decimal(5)]
    assert invoices["account"].isna().tolist() == [False, True, False]
    assert set(invoices["cloud"]) == {"aws"}
    assert faults(tmp_path, "invoices", head, rows[0], rows[0], "aws,1,10/2026,5,USD") == [
        "invoices row 1: it states an invoice that another row states too",
        "invoices row 2: it states an invoice that another row states too",
        "invoices row 3: `billing_period` is no month such as 2026-10",
    ]


def test_many_faults_are_counted_and_twenty_shown(tmp_path):
    head = "scope,from,to,amount,currency,kind"
    lines = [f"all,2026-01-01,2027-01-01,much {n},EUR,cash" for n in range(30)]
    path = write(tmp_path / "budgets.csv", head, *lines)
    with pytest.raises(DataError, match="30 faults, of which 20 are shown") as caught:
        tables.read_table(path, "budgets")
    assert len(caught.value.problems) == 20


@pytest.mark.parametrize(
    ("header", "table"),
    [
        (HEAD, "utilization"),
        ("time,cloud,account,instance_id,gpu_util", "utilization"),
        (HEAD.replace("gpu_uuid", "uuid").upper(), "utilization"),
        (COMMITMENTS, "commitments"),
        ("id,class,gpus,hours,release,priority", "jobs"),
        ("cloud,from,to,committed,counted_so_far,discount_share,currency", "agreements"),
        ("scope,from,to,amount,currency,kind", "budgets"),
        ("cloud,account,billing_period,amount,currency", "invoices"),
        ("provider,region,instance_type,purchase_option,usd_per_instance_hour,as_of", "prices"),
        ("cloud,family,region,from,to,discount_share", "prices"),
        ("hour,pool,gpus,purchase_option,usd_per_gpu_hour,gpus_per_node", None),
        ("identity/LineItemId,bill/PayerAccountId,lineItem/UsageType", None),
        ("BillingAccountId,BilledCost,ChargePeriodStart,ProviderName", None),
        ("billing_account_id,service.id,cost,currency,usage.amount", None),
    ],
)
def test_a_table_is_told_by_its_header(header, table):
    assert tables.recognise(header.split(",")) == table


WAITED = "hour_start,class,gpu_family,gpus"


def test_gpus_waited_for_are_replaced_day_by_day(tmp_path):
    lines = ["2026-11-02T23:00:00Z,training,H100,16", "2026-11-03T01:00:00+01:00,batch,,0"]
    path = write(tmp_path / "queue.csv", WAITED, *lines)
    assert tables.recognise(WAITED.split(",")) == "waiting"
    staged, (first, second) = load(tmp_path, path, table="waiting")
    assert staged.units.keys() == {
        "user|all|waiting|2026-11-02", "user|all|waiting|2026-11-03",
    }  # fmt: skip
    assert (first["class"], first["gpu_family"], first["gpus"]) == ("training", "H100", 16)
    assert (second["hour_start"], second["gpu_family"]) == (datetime(2026, 11, 3, tzinfo=UTC), None)


def test_faults_of_gpus_waited_for_are_named(tmp_path):
    lines = ["2026-11-02T23:30:00Z,training,H100,16", "2026-11-03T00:00:00Z,batch,,1"]
    assert faults(tmp_path, "waiting", WAITED, *lines) == [
        "waiting row 1: `hour_start` is not the start of an hour",
    ]
    assert faults(tmp_path, "waiting", WAITED, "x,,H100,-1") == [
        "waiting.class row 1: empty, and must not be",
        "waiting.gpus row 1: '-1' is out of its range 0 to",
        "waiting.hour_start row 1: 'x' is not an ISO date or time",
    ]
    # An hour without a number is no reading, and no 0.
    assert faults(tmp_path, "waiting", WAITED, "2026-11-03T00:00:00Z,batch,,") == [
        "waiting.gpus row 1: empty, and must not be",
    ]
