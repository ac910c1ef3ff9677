"""A delivery whose savings plans or reservations do not add up is loaded, with a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.store import Status, Store
from providers.files.loading import load
from tests.exports import csv_file
from tests.providers.test_aws_billing import BASE, RI_COVERED, RI_FEE, SP_COVERED, SP_NEGATION
from tests.providers.test_aws_billing import SP_RECURRING as FEE

if TYPE_CHECKING:
    from pathlib import Path

UPFRONT = "reservation_amortized_upfront_fee_for_billing_period"


def warnings_of(tmp_path: Path, *changes: dict[str, str]) -> tuple[str, ...]:
    store = Store.open(tmp_path / "store")
    rows = [{**BASE, UPFRONT: "0", **change} for change in changes]
    (result,) = load([csv_file(tmp_path / "cur.csv", rows)], store)
    store.close()
    assert result.status is Status.LOADED
    return result.warnings


def test_a_plan_that_adds_up_is_loaded_in_silence(tmp_path: Path) -> None:
    assert warnings_of(tmp_path, SP_COVERED, SP_NEGATION, FEE) == ()  # 60 covered + 15 of 75


def test_what_is_missing_is_told_with_its_size_the_largest_first(tmp_path: Path) -> None:
    # The plan lacks its negation (98.32) and 10 of the 60 that it covers. The reservation, of a
    # month with invoices: 1000 of fee + 30 upfront, 61.50 used and 12.25 + 3.50 unused.
    final = {"bill_invoice_id": "7"}
    short = {**SP_COVERED, "savings_plan_savings_plan_effective_cost": "50"}
    reserved = ({**RI_COVERED, **final}, {**RI_FEE, **final, UPFRONT: "30"})
    told = warnings_of(tmp_path, short, FEE, *reserved)
    assert [text.partition(" in 2026-11")[0][-4:] for text in told] == ["ri-1", "sp-1", "sp-1"]
    assert "covered and unused parts are 77.25, fees and upfront share 1,030.00 USD" in told[0]
    assert "its negation leave 98.32 over, hour by hour" in told[1]
    assert "covered and unused parts are 65.00, the commitment 75.00" in told[2]
