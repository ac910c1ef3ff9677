"""How a billing table is said in SQL; that BigQuery gives the same digits, tests of parts show."""

from __future__ import annotations

import ibis
import pytest

from data.engines import connect, run
from data.errors import DataError
from data.hourly import hourly
from providers.contract import DeliveryContext
from providers.files.expressions import MONEY
from providers.files.raw import identifier
from providers.gcp.billing import FINDINGS, normalise, with_findings
from providers.gcp.dialect import bigquery_sql
from providers.gcp.projection import TableField, columns_of, field_at, projection, text_of
from tests.exports import json_lines, normal_form
from tests.providers.gcp_cases import CUD, ON_DEMAND, VM, charge, credit, labels

TEXT = "STRING"
LISTS = {
    "credits": "STRUCT(type VARCHAR, name VARCHAR, amount VARCHAR)[]",
    "labels": "STRUCT(key VARCHAR, value VARCHAR)[]",
    "system_labels": "STRUCT(key VARCHAR, value VARCHAR)[]",
}
FLAT = (
    "billing_account_id", "cost_type", "usage_start_time", "usage_end_time", "cost", "currency",
    "invoice.month", "service.id", "service.description", "sku.description", "project.id",
    "location.region", "location.zone", "sku.id", "resource.name", "resource.global_name",
    "usage.amount", "usage.unit",
    "usage.amount_in_pricing_units", "usage.pricing_unit",
)  # fmt: skip


def test_lists_as_a_table_holds_them_give_the_rows_that_json_text_gives(tmp_path):
    rows = [
        charge(ON_DEMAND, "32.5", credits=[credit("-30.25", CUD), credit("-1")]),
        charge(ON_DEMAND, "32.5", credits=[credit("-2", "PROMOTION")]),
        charge(ON_DEMAND, "1", labels=[{"key": 'a"b', "value": "é\n"}, {"key": "c", "value": ""}]),
        charge(ON_DEMAND, "5", system_labels=labels(is_unused_reservation="true")),
        charge("Commitment v1: Nvidia H100 80GB GPU for 1 Year", "9", labels=[]),
    ]
    path = json_lines(tmp_path / "rows.jsonl", rows)
    texts = normal_form(normalise, path, "detailed")

    connection = connect(threads=1)
    flat = ", ".join(
        f"json_extract_string(json, '$.{name}') AS {identifier(name.replace('.', '_'))}"
        for name in FLAT
    )
    lists = ", ".join(
        f"json_transform(json->'{name}', '{_shape(name)}') AS {name}" for name in LISTS
    )
    run(
        connection,
        f"CREATE TABLE export AS SELECT row_number() OVER () AS source_row_no, {flat}, {lists} "
        f"FROM read_json_objects('{path}')",
    )
    raw = connection.table("export")
    assert raw.credits.type().is_array()
    context = DeliveryContext("t", "detailed", "d", (*raw.columns, "service"))
    made = with_findings(raw, context).order_by("source_row_no").to_pyarrow().to_pylist()
    connection.disconnect()

    marks = [{name: row.pop(name) for name in FINDINGS} for row in made]
    assert made == texts
    assert [mark["finding_payments"] for mark in marks] == [False, True, False, False, False]
    assert not any(mark["finding_faults"] for mark in marks)
    assert made[0]["resource_id"] == VM


def _shape(name: str) -> str:
    keys = ("type", "name", "amount") if name == "credits" else ("key", "value")
    return "[{" + ", ".join(f'"{key}": "VARCHAR"' for key in keys) + "}]"


def fields() -> tuple[TableField, ...]:
    pair = (TableField("key", TEXT), TableField("value", TEXT))
    return (
        TableField("billing_account_id", TEXT),
        TableField("service", "RECORD", fields=(TableField("description", TEXT),)),
        TableField("sku", "RECORD", fields=(TableField("description", TEXT),)),
        TableField("usage_start_time", "TIMESTAMP"),
        TableField("usage_end_time", "TIMESTAMP"),
        TableField("cost", "FLOAT"),
        TableField("cost_at_list", "NUMERIC"),
        TableField("labels", "RECORD", True, pair),
    )


def test_a_table_without_some_lists_and_fields_is_one_query_without_foreign_functions():
    select, raw = projection(fields(), "`a`.`b`.`c`", "TRUE")
    assert "CAST(t.`cost_at_list` AS STRING) AS `cost_at_list`" in select
    assert "UNNEST(t.`labels`)" in select
    sql = bigquery_sql(
        hourly(with_findings(raw, DeliveryContext("t", "x", "d", columns_of(fields()))))
    )
    assert "JSON_EXTRACT" not in sql.upper()
    assert "TO_JSON_STRING(" in sql
    # Money is rounded to the 26 places of stored money, and no cast has a scale of its own.
    assert "ROUND(CAST(`t0`.`cost` AS BIGNUMERIC), 26)" in sql
    assert "BIGNUMERIC(" not in sql


def test_a_table_that_lacks_a_required_column_is_named():
    few = fields()[1:]
    _, raw = projection(few, "x", "TRUE")
    with pytest.raises(DataError, match="missing") as caught:
        with_findings(raw, DeliveryContext("t", "detailed", "d", columns_of(few)))
    assert [one.where for one in caught.value.problems] == ["billing_account_id"]


@ibis.udf.scalar.builtin
def strange(text: str) -> str:
    """A function that another engine has."""


def test_a_function_that_bigquery_lacks_is_an_error_before_any_query():
    rows = ibis.table({"a": "string"}, name="t")
    with pytest.raises(DataError, match="BigQuery has no function strange"):
        bigquery_sql(rows.select(b=strange(rows.a)))


def test_decimals_of_a_stated_scale_are_rounded_once():
    rows = ibis.table({"a": "string", "n": "int64"}, name="t")
    short = rows.select(b=rows.a.cast(MONEY).cast("decimal(38, 13)"), c=rows.n.cast(MONEY))
    sql = " ".join(bigquery_sql(short).split())
    assert "ROUND(ROUND(CAST(`t0`.`a` AS BIGNUMERIC), 26), 13) AS `b`" in sql
    assert "CAST(`t0`.`n` AS BIGNUMERIC) AS `c`" in sql


def test_a_float_is_tried_with_fifteen_digits_first():
    text = text_of("FLOAT", "x")
    assert text.startswith("CASE WHEN x IS NULL THEN NULL WHEN SAFE_CAST(FORMAT('%.15g', x)")
    assert text.endswith("ELSE FORMAT('%.17g', x) END")
    assert text_of("NUMERIC", "x") == "CAST(x AS STRING)"


def test_a_field_is_found_in_any_case_and_quoted_as_the_table_spells_it():
    found = field_at(
        (TableField("Usage", "RECORD", fields=(TableField("Amount", "FLOAT"),)),), "usage.amount"
    )
    assert found is not None
    assert found[1] == "t.`Usage`.`Amount`"
    assert field_at(fields(), "usage.amount") is None
