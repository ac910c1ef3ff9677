"""Traps of the files themselves: marks, missing words, numbers, ids, columns, folders.

Each has the right value worked out by hand, from the file to the answer.
"""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pytest

from tests.exports import csv_file, json_lines
from tests.providers.gcp_cases import ON_DEMAND, charge
from tests.traps.books import AWS, NO_MACHINE, Books, changed, of_account

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MARK = "\ufeff"
TAG = {"resource_tags_user_note": 'two\nlines, one "quote"', "resource_tags_user_team": "ml"}
MISSING = ("", '""', "NULL", "null", "None", "{}", "[]")
CASES = {
    "13": changed(AWS, TAG, {"line_item_resource_id": "i-2"}),
    # Words for nothing, in the column that has a value only in its last row.
    "14": [{**AWS, "pricing_public_on_demand_cost": word if word[:1] not in "{[" else "",
            "resource_tags": word, "bill_invoice_id": word if word[:1] not in "{[" else ""}
           for word in MISSING] + [AWS],
    "15": [{**AWS, "line_item_unblended_cost": text}
           for text in ("6.123E-7", "-0", "0.123456789012345678901234", "1e2", "0.1", "0.2")],
    "16": changed(AWS, {"bill_payer_account_id": "0099999999999"}),
}  # fmt: skip


def odd_csv(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A mark at the head and another at the first row, CRLF, and blank lines between rows."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(names)
    text.write(MARK)
    for row in rows:
        csv.DictWriter(text, names, restval="", lineterminator="\r\n").writerow(row)
        text.write("\r\n")
    # The writer quotes quotes; two of them alone are an empty cell.
    path.write_bytes((MARK + text.getvalue().replace('""""""', '""')).encode())
    return path


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    folder = tmp_path_factory.mktemp("files")
    rows = [
        row
        for trap, case in CASES.items()
        for row in of_account(trap, case, line_item_usage_account_id="0000000000{}")
    ]
    return Books(folder).load(odd_csv(folder / "2026-11-08:2026-11-11.csv", rows))


def account(trap: str) -> dict[str, str]:
    return {"account": f"0000000000{trap}"}


def test_trap_13_marks_line_ends_blank_lines_and_quoted_breaks_lose_no_row(books: Books) -> None:
    assert books.sum("source_rows") == 2 + 8 + 6 + 1
    assert books.sum(**account("13")) == D("196.64")  # 2 x 98.32
    tags = [json.loads(text) for (text,) in books.rows("tags")[:1]]
    assert tags == [{"team": "ml", "note": 'two\nlines, one "quote"'}]
    # The second mark stands at the first cell of the first row.
    assert books.sum("gpu_hours", **account("13")) == 16


def test_trap_14_every_word_for_nothing_is_nothing_and_fixes_no_type(books: Books) -> None:
    assert books.sum("source_rows", **account("14")) == 8
    # Seven of eight rows state no list cost: that is not 0, and the last one's is a number.
    listed = [row[1] for row in books.rows("account", "list_cost") if row[0].endswith("14")]
    assert listed == [None] * 7 + [D("98.32")]
    tags = {row[1] for row in books.rows("account", "tags") if row[0].endswith("14")}
    assert tags == {None}


def test_trap_15_numbers_are_exact_whatever_their_spelling(books: Books, tmp_path: Path) -> None:
    # 0.0000006123 - 0 + 0.123456789012345678901234 + 100 + 0.1 + 0.2
    assert books.sum(**account("15")) == D("100.423457401312345678901234")
    # The same as strings and numbers of JSON.
    rows = [charge(ON_DEMAND, "6.123E-7"), charge(ON_DEMAND, "0.123456789012345678901234"),
            charge(ON_DEMAND, "100.3")]  # fmt: skip
    path = json_lines(tmp_path / "export.jsonl", rows)
    text = path.read_text().replace('"100.3"', "100.3").replace('"6.123E-7"', "6.123e-07")
    path.write_text(text)
    assert Books(tmp_path).load(path).sum() == D("100.423457401312345678901234")


def test_trap_16_ids_keep_their_leading_zeros(books: Books, tmp_path: Path) -> None:
    assert books.sum("source_rows", **account("16")) == 1
    ids = {row for row in books.rows("billing_account", "account") if row[1].endswith("16")}
    assert ids == {("0099999999999", "000000000016")}


def test_trap_22_columns_may_come_go_and_change_places_but_not_be_lost(tmp_path: Path) -> None:
    books = Books(tmp_path)
    october = {"bill_billing_period_start_date": "2026-10-01T00:00:00Z"}
    backwards = {name: {**AWS, **october}[name] for name in reversed(AWS)}
    more = {**AWS, "line_item_new_column": "x"}
    del more["reservation_unused_recurring_fee"]
    books.load_rows([backwards], "october.csv").load_rows([more], "november.csv")
    assert books.by("billing_period") == {"2026-10": D("98.32"), "2026-11": D("98.32")}
    lacking = {name: cell for name, cell in AWS.items()
               if name not in ("line_item_usage_amount", "line_item_unblended_cost")}  # fmt: skip
    reason = books.refused(csv_file(tmp_path / "lacking.csv", [lacking]))
    assert "line_item_usage_amount: missing column" in reason
    assert "line_item_unblended_cost: missing column" in reason
    assert books.sum() == D("196.64")


def test_trap_29_partition_folders_are_read_whatever_their_case_and_order(tmp_path: Path) -> None:
    """Two months of a Data Export; each folder is spelled in its own way."""
    home = tmp_path / "in" / "gpu"
    for month, word, cost in (
        ("2026-11", "billing_period", "2"),
        ("2026-10", "BILLING_PERIOD", "1"),
    ):
        data = home / "data" / f"{word}={month}"
        data.mkdir(parents=True)
        names = [f"gpu-{part:05}.csv" for part in (2, 1)]
        for name in names:
            row = {**AWS, "bill_billing_period_start_date": f"{month}-01T00:00:00Z",
                   "line_item_unblended_cost": cost}  # fmt: skip
            csv_file(data / name, [row, {**row, **NO_MACHINE}])
        manifest = home / "metadata" / f"{word.upper()}={month}" / "gpu-Manifest.json"
        manifest.parent.mkdir(parents=True)
        keys = [f"s3://b/gpu/data/{word}={month}/{name}" for name in names]
        arn = "arn:aws:bcm-data-exports:us-east-1:000011112222:export/gpu-1"
        document = {"executionId": f"e-{month}", "exportArn": arn, "dataFiles": keys}
        manifest.write_text(json.dumps(document))
    books = Books(tmp_path).load(tmp_path / "in")
    assert books.by("billing_period") == {"2026-10": D(4), "2026-11": D(8)}  # 4 rows of 1, of 2
