"""Traps of Azure cost exports, each with the right value worked out by hand.

Those of one layout lie in one file, each in a subscription that is named like its trap.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as D
from typing import TYPE_CHECKING

import pytest

from tests.azure_runs import EA, MCA, Run, days, encoded
from tests.traps.books import Books, changed, of_account

if TYPE_CHECKING:
    from pathlib import Path

RESERVED = {"PricingModel": "Reservation", "ReservationId": "r-1", "PayGPrice": "0"}
SUBMITTED = "2026-11-02T03:00:00Z"


def vm(name: str) -> dict[str, str]:
    return {"ResourceId": f"/subscriptions/s/providers/Microsoft.Compute/virtualMachines/{name}"}


def size(meter: str) -> dict[str, str]:
    return {"MeterName": meter, "AdditionalInfo": "", **vm(meter.split()[0])}


CASES = {
    "trap-05": changed(EA, {**RESERVED, "CostInBillingCurrency": "24"},
                       {**RESERVED, "CostInBillingCurrency": "9", "ResourceId": "",
                        "ChargeType": "UnusedReservation"}),
    "trap-09": changed(EA, size("NC40ads H100 v5"), size("NC80adis H100 v5"),
                       size("ND96isr H100 v5"), size("ND96isr H200 v5")),
    # 2.4 blocks of ten hours, at 983.2 a block.
    "trap-10": changed(EA, {"UnitOfMeasure": "10 Hours", "Quantity": "2.4", **vm("block"),
                            "PayGPrice": "983.2", "CostInBillingCurrency": "2359.68"},
                       {**RESERVED, **vm("covered"), "CostInBillingCurrency": "1440"}),
    # 3 April and 4 March, in one form: the month comes first.
    "trap-11": changed(EA, {"Date": "04/03/2026", "BillingPeriodStartDate": "04/01/2026",
                            "BillingPeriodEndDate": "04/30/2026"},
                       {"Date": "3/4/2026", "BillingPeriodStartDate": "3/1/2026",
                        "BillingPeriodEndDate": "3/31/2026"}),
    "trap-12": changed(EA, {"BillingPeriodStartDate": "", "BillingPeriodEndDate": "10/31/2026",
                            "Date": "10/31/2026"}),
    "trap-28": changed(EA, {"CostInBillingCurrency": "1800", **vm("rented")},
                       {"CostInBillingCurrency": "50", **vm("rented"), "UnitOfMeasure": "1 Hour",
                        "PublisherType": "Marketplace", "PublisherName": "Acme",
                        "MeterCategory": "Virtual Machines Licenses", "AdditionalInfo": ""}),
}  # fmt: skip


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    rows = [
        row for trap, case in CASES.items() for row in of_account(trap, case, SubscriptionId="{}")
    ]
    filled = [{"PublisherType": "Azure", "PublisherName": "Microsoft", **row} for row in rows]
    return Books(tmp_path_factory.mktemp("azure")).load_rows(filled, "amortized.csv")


def test_trap_05_an_unused_reservation_is_money_without_hours(books: Books) -> None:
    assert books.sum(account="trap-05", commitment_status="unused") == 9
    assert books.sum("gpu_hours", account="trap-05", commitment_status="unused") == 0
    assert books.sum("gpu_hours", account="trap-05") == 192  # 24 hours of 8 GPUs


def test_trap_09_an_nc40ads_is_an_nvl_card_and_an_h200_no_h100(books: Books) -> None:
    def hours(model: str) -> D | None:
        return books.sum("gpu_hours", account="trap-09", gpu_model=model)

    assert hours("H100-NVL-94GB") == 72  # 24 x 1 + 24 x 2
    assert hours("H100-SXM5-80GB") == 192
    assert books.sum("source_rows", account="trap-09", gpu_model="H100-SXM5-80GB") == 1


def test_trap_10_hours_count_by_the_block_and_a_price_of_0_is_unknown(books: Books) -> None:
    assert books.sum("instance_hours", account="trap-10") == 48  # 2.4 x 10 + 24
    # 983.2 x 2.4; what the reservation covers states no list price, which is not 0.
    reserved = {"account": "trap-10", "purchase_option": "reserved"}
    assert books.sum("list_cost", **reserved) is None
    assert books.sum("list_cost", account="trap-10") == D("2359.68")
    assert books.sum(**reserved) == 1440


def test_trap_10_a_day_is_spread_over_its_hours_and_marked(books: Books) -> None:
    hours = books.fleet(account="trap-10", purchase_option="on_demand")
    assert (len(hours), sum(hours["gpu_hours"])) == (24, 192)
    assert set(hours["cost"]) == {D("98.32")}  # 2359.68 / 24
    assert hours["estimated"].all()


def test_trap_10_runs_of_a_month_are_versions_and_two_views_are_not_added(tmp_path: Path) -> None:
    class Folder:
        address = ""

        def put(self, name: str, content: bytes) -> None:
            path = tmp_path / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    first = Run("r1", SUBMITTED, (days("100"),)).put(Folder())
    replace(first, run="r2", submitted="2026-11-03T03:00:00Z",
            parts=(days("100", "110"),)).put(Folder())  # fmt: skip
    Run("r3", SUBMITTED, (days("100", "110"),), "gpu-amortized", "amortized").put(Folder())
    books = Books(tmp_path)
    results = books.take(tmp_path / "in")
    assert sorted(str(one.status) for one in results) == ["ignored_older", "loaded", "loaded"]
    # 100 + 110 in each view: neither 310 of both runs, nor 420 of both views.
    assert books.sum("billed_cost") == books.sum() == 210
    # Both views hold the same two days of 24 hours and 8 GPUs.
    assert books.sum("gpu_hours", dataset="amortized") == 384


def test_trap_11_dates_are_month_first_and_never_guessed_row_by_row(
    books: Books, tmp_path: Path
) -> None:
    assert books.sum("source_rows", account="trap-11", day="2026-04-03") == 1
    assert books.sum("source_rows", account="trap-11", day="2026-03-04") == 1
    assert books.sum("source_rows", account="trap-11", billing_period="2026-03") == 1
    mixed = tmp_path / "mixed.csv"
    rows = changed(EA, {"Date": "04/03/2026"}, {"Date": "2026-04-03"}, {"Date": "13/04/2026"})
    mixed.write_bytes(encoded(tuple(rows), "csv"))
    reason = Books(tmp_path).refused(mixed, dataset="actual")
    assert "row 2, date: not a date: '2026-04-03'" in reason
    assert "row 3, date: not a date: '13/04/2026'" in reason


def test_trap_12_an_inclusive_end_of_the_period_is_its_own_month(books: Books) -> None:
    assert books.sum("source_rows", account="trap-12", billing_period="2026-10") == 1


def test_trap_28_software_of_the_marketplace_is_no_part_of_a_gpu_rate(books: Books) -> None:
    assert books.sum(account="trap-28") == 1850
    hours = books.fleet(account="trap-28")
    assert (sum(hours["cost"]), sum(hours["gpu_hours"])) == (1800, 192)


@pytest.mark.parametrize(
    ("base", "name", "rename"),
    [
        (MCA, "costInBillingCurrency", {}),
        (EA, "CostInBillingCurrency", {
            "CostInBillingCurrency": "Kosten (Cost)",
            "Quantity": "Menge (Quantity)",
            "BillingCurrency": "Währung (Billing Currency)"}),
    ],
    ids=["MCA", "translated"],
)  # fmt: skip
def test_bl_09_every_agreement_is_read_by_its_own_names(
    tmp_path: Path, base: dict[str, str], name: str, rename: dict[str, str]
) -> None:
    rows = [{rename.get(key, key): cell for key, cell in {**base, name: "768"}.items()}]
    books = Books(tmp_path).load_rows(rows, "actual.csv")
    assert (books.sum("billed_cost"), books.sum("gpu_hours")) == (768, 192)
    assert set(books.by("currency")) == {"USD"}


def test_bl_09_columns_that_are_missing_are_listed_and_no_cost_is_0(tmp_path: Path) -> None:
    rows = [{key: cell for key, cell in EA.items()
             if key not in ("CostInBillingCurrency", "Quantity")}]  # fmt: skip
    path = tmp_path / "actual.csv"
    path.write_bytes(encoded(tuple(rows), "csv"))
    books = Books(tmp_path)
    reason = books.refused(path, dataset="actual")
    assert "costinbillingcurrency: missing column" in reason
    assert "quantity: missing column" in reason
    assert books.rows("effective_cost") == []
