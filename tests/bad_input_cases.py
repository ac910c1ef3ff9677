"""Rows of a bad export, and what the command line says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.exports import csv_file
from tests.program import call, contents

if TYPE_CHECKING:
    from pathlib import Path

CUR = {
    "line_item_line_item_type": "Usage", "line_item_usage_type": "BoxUsage:p5.48xlarge",
    "line_item_product_code": "AmazonEC2", "bill_payer_account_id": "0011",
    "bill_billing_period_start_date": "2026-10-01T00:00:00Z", "bill_invoice_id": "",
    "line_item_currency_code": "USD", "line_item_resource_id": "i-1",
    "line_item_usage_start_date": "2026-10-29T03:00:00Z",
    "line_item_usage_end_date": "2026-10-29T04:00:00Z", "line_item_usage_amount": "1",
    "pricing_unit": "Hrs", "line_item_unblended_cost": "100",
}  # fmt: skip
COST, START = "line_item_unblended_cost", "line_item_usage_start_date"
TOTALS = ("totals", "--by", "source,delivery_id,day", "--json")


def hour(number: int, **change: str) -> dict[str, str]:
    day = 29 + number // 24
    return {
        **CUR, START: f"2026-10-{day}T{number % 24:02d}:00:00Z",
        "line_item_usage_end_date": f"2026-10-{day}T{number % 24:02d}:59:59Z", **change,
    }  # fmt: skip


def without(*names: str) -> list[dict[str, str]]:
    return [{name: cell for name, cell in CUR.items() if name not in names}]


def store_of_two_days(folder: Path) -> Path:
    """A store with two days of one p5.48xlarge: 48 x 100 USD, 48 x 8 GPU-hours."""
    good = csv_file(folder / "good.csv", [hour(number) for number in range(48)])
    assert call("load", good, "--store", folder / "store").code == 0
    return folder / "store"


def totals(store: Path) -> Any:
    answer = call(*TOTALS, "--store", store)
    assert answer.code == 0, answer.out
    return answer.json


def rejected(store: Path, path: Path) -> str:
    """Why the file is rejected; the store is as it was and holds nothing half-written."""
    before, rows = contents(store), totals(store)
    answer = call("load", path, "--store", store, "--json")
    assert answer.code == 1
    (told,) = answer.json["deliveries"]
    assert (told["status"], told["rows"], told["path"]) == ("rejected", 0, str(path))
    assert told["reason"] in answer.err
    assert "Traceback" not in answer.err
    after = {name: text for name, text in contents(store).items() if not name.startswith(".")}
    assert after == {name: text for name, text in before.items() if not name.startswith(".")}
    assert totals(store) == rows
    return str(told["reason"])
