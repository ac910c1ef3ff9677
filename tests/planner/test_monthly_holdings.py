"""What `commitments` states: means a month out of the rows, in cents that add up."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

import pytest

from planner.holdings import monthly_rows
from planner.planning import with_owned_ids
from reports.terminal import commitments_text
from tests import bills
from tests.planner.test_holdings import owned

EUR = {"USD": D(1), "EUR": D("0.9")}
USD = {"USD": D(1)}


def covered(name: str | None, hours: range, rate: str, **more: Any) -> list[dict[str, Any]]:
    option = {"purchase_option": "savings_plan", "commitment_id": name, **more}
    return bills.node_hours("i-1", hours, rate=rate, **option)


def unused(name: str, hours: range, rate: str, **more: Any) -> list[dict[str, Any]]:
    option = {"purchase_option": "savings_plan", "commitment_id": name, **more}
    return bills.node_hours(f"commitment:{name}", hours, rate=rate, needed=0, state="free",
                            reason="unused_commitment", **option)  # fmt: skip


def told(rates: dict[str, D], *parts: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    table = bills.commitments(*more.get("table", ()))
    return monthly_rows(table, with_owned_ids(bills.fleet(*parts), table), rates, 24)


@pytest.mark.parametrize(
    ("rates", "currency", "committed", "used", "left"),
    [
        # 18 hours at 60 and 6 at 20: 1,080 and 120 of 24 hours, x 730 / 24.
        (USD, "EUR", "36500", "32850", "3650"),
        # Divided by 0.9: 40,555.555..., 36,500 and 4,055.555...
        (EUR, "USD", "40555.56", "36500", "4055.56"),
    ],
)
def test_a_bill_in_euros_is_told_in_euros_or_by_the_stated_rate(
    rates: dict[str, D], currency: str, committed: str, used: str, left: str
) -> None:
    (row,) = told(
        rates,
        covered("sp-1", range(18), "7.5", currency="EUR"),
        unused("sp-1", range(18, 24), "2.5", currency="EUR"),
    )
    assert (row["id"], row["kind"], row["currency"]) == ("sp-1", "savings_plan", currency)
    assert (row["committed"], row["used"], row["unused"]) == (committed, used, left)
    assert row["used_share"] == pytest.approx(0.9)
    assert D(row["used"]) + D(row["unused"]) == D(row["committed"])


def test_a_commitment_without_an_unused_part_is_used_in_full() -> None:
    (row,) = told(USD, covered(None, range(24), "3.33"))
    # 8 x 3.33 = 26.64 an hour, x 730
    assert (row["committed"], row["used"], row["unused"]) == ("19447.2", "19447.2", "0")
    assert (row["id"], row["used_share"]) == ("unnamed savings_plan on aws", 1.0)


def test_parts_are_told_to_the_cent_and_not_back_from_a_share() -> None:
    # 8 x 0.011 in 1 hour and in 2 of 24: 2.6766... and 5.3533... a month; 2.68 + 5.35.
    (row,) = told(USD, covered("a", range(1), "0.011"), unused("a", range(1, 3), "0.011"))
    assert (row["committed"], row["used"], row["unused"]) == ("8.03", "2.68", "5.35")


def test_a_cost_that_is_missing_is_no_zero_and_the_tables_rate_stays() -> None:
    hours = covered("ri-1", range(24), "4", purchase_option="reserved")
    hours[3]["cost"] = None
    (row,) = told(USD, hours)
    assert (row["committed"], row["used"], row["unused"]) == (None, None, "0")
    (row,) = told(USD, hours, table=[owned(200)])
    assert (row["committed"], row["used"]) == ("23360", None)  # one node at 32 x 730


def test_what_no_bill_shows_is_listed_by_its_table() -> None:
    rows = told(USD, covered("a", range(24), "4"), table=[owned(200), owned(9, id="ri-2")])
    assert [(row["id"], row["committed"], row["used"]) for row in rows] == [
        ("a", "23360", "23360"), ("ri-1", "23360", None), ("ri-2", "23360", None),
    ]  # fmt: skip
    assert str(rows[1]["ends"]) == "2027-03-21T00:00:00Z"  # 200 days after 2026-09-02


def test_two_currencies_of_one_commitment_are_two_rows() -> None:
    rows = told(USD, covered("a", range(12), "4"), covered("a", range(12, 24), "4", currency="EUR"))
    # 12 of 24 hours at 32: 11,680 a month of each.
    assert [(row["currency"], row["used"]) for row in rows] == [("EUR", "11680"), ("USD", "11680")]


def test_the_table_for_people_says_that_its_amounts_are_means_of_a_month() -> None:
    rows = told(USD, covered("a", range(24), "4"))
    window = {"start": "2026-09-01T00:00:00Z", "end": "2026-09-02T00:00:00Z"}
    text = commitments_text({"rows": rows, "hours_observed": 24, "window": window})
    assert "A month of 730 hours, as the mean of 24 hours observed" in " ".join(text.split())
    assert "committed_per_month" in text
    assert "23360" in text
    empty = {"rows": [], "hours_observed": 24, "window": window}
    assert commitments_text(empty) == "nothing to show"
