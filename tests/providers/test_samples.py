"""Every total of the real sample files, to the last digit, in any order of loading, and twice.

The figures are those of the samples' own README (exact decimal sums of the files).
"""

from __future__ import annotations

import shutil
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from data.store import Status, Store
from data.totals import totals
from providers.files.loading import load
from tests.exports import SAMPLES, sample

if TYPE_CHECKING:
    from pathlib import Path

BY = ["source", "dataset", "account", "billing_period", "currency", "charge_type",
      "purchase_option", "commitment_status", "instance_type"]  # fmt: skip
FINAL = "aws/cur_legacy_savingsplan_2023-06_final.csv"
NOT_FINAL = "aws/cur_legacy_savingsplan_2023-06_not_final.csv"
# (what is chosen, rows, billed, effective, list): None where the README states nothing or the
# export states no such cost.
EXPECTED: list[tuple[dict[str, str], int, str | None, str | None, str | None]] = [
    ({"source": "aws", "dataset": "cur", "billing_period": "2023-11"}, 1281,
     "1.68230869740", "1.68230869740", "3.35617269490"),
    ({"source": "aws", "billing_period": "2023-11", "charge_type": "usage"}, 1269,
     "1.60230869740", None, None),
    ({"source": "aws", "billing_period": "2023-11", "charge_type": "tax"}, 12, "0.08", None, None),
    ({"source": "aws", "billing_period": "2023-06", "currency": "NOK"}, 6, "60", "0.6", "60"),
    ({"source": "aws", "billing_period": "2023-06", "account": "0099999999999"}, 3, "30", "0.3",
     "30"),
    ({"billing_period": "2018-06"}, 3300, None, None, None),
    ({"billing_period": "2018-07"}, 9304, None, None, None),
    ({"billing_period": "2018-08"}, 776, None, None, None),
    ({"instance_type": "c4.xlarge"}, 2718, "540.882", None, None),
    ({"instance_type": "c5d.2xlarge"}, 2721, "925.14", None, None),
    ({"instance_type": "m5.large", "currency": "USD", "dataset": "cur"}, 2607, "250.272", None,
     None),
    ({"instance_type": "r4.large"}, 2654, "352.982", None, None),
    ({"source": "azure", "dataset": "amortized"}, 28, None, "16.29693213663664462748541900", None),
    ({"dataset": "amortized", "purchase_option": "on_demand"}, 26, None,
     "15.79778013616864462748541900", None),
    ({"dataset": "amortized", "purchase_option": "reserved"}, 1, None, "0.493152", None),
    ({"dataset": "amortized", "purchase_option": "savings_plan"}, 1, None, "0.006000000468", None),
    ({"source": "azure", "currency": "CAD"}, 27, "1.26136926505726", "1.26136926505726", None),
    ({"currency": "CAD", "purchase_option": "on_demand"}, 24, "1.21310954805726", None, None),
    ({"currency": "CAD", "purchase_option": "spot"}, 3, "0.048259717", None, None),
    ({"source": "azure", "billing_period": "2023-08"}, 4, "0.0000262412", "0.0000262412",
     "0.0000262412"),
    ({"source": "gcp", "account": "project-1"}, 3, "150", None, None),
    ({"source": "gcp", "billing_period": "2020-11"}, 25, "0", "0", None),
    ({"source": "aws", "dataset": "focus", "billing_period": "2024-09"}, 942, "18.00663861840",
     "13", None),
    ({"source": "azure", "dataset": "focus"}, 51, "1.97651418586", "1.97651418586", None),
    ({"source": "oracle", "dataset": "focus"}, 7, "0.53707392473", "0", None),
    ({"instance_type": "g5.4xlarge"}, 8, "10.20368294400", None, None),
    ({"instance_type": "g3.4xlarge"}, 2, "1.92280038000", None, None),
    ({"dataset": "focus", "billing_period": "2026-05"}, 100, "1242.11561911486050",
     "215.67890111486050", "1264.83229463617427"),
    ({"billing_period": "2026-05", "charge_type": "usage"}, 81, "176.10196111486050",
     "178.40711311486050", None),
    ({"billing_period": "2026-05", "charge_type": "fee"}, 17, "1028.741870", "0", None),
    ({"billing_period": "2026-05", "charge_type": "tax"}, 2, "37.271788", "37.271788", None),
    ({"billing_period": "2026-05", "commitment_status": "used"}, 28, None, "1.1283334848", None),
    ({"billing_period": "2026-05", "commitment_status": "unused"}, 14, None, "1.1768185152", None),
    ({"dataset": "focus", "billing_period": "2023-01"}, 3, "2.00", "2.00", "8.00"),
    ({"billing_period": "2023-01", "charge_type": "usage"}, 2, None, None, "4.00"),
    ({"source": "aura-web"}, 4, "420", "420", None),
    ({"source": "aura-web", "commitment_status": "used"}, 1, None, "180", None),
    ({"source": "aura-web", "commitment_status": "unused"}, 1, None, "70", None),
    ({"dataset": "focus", "billing_period": "2025-06"}, 3, "0", "0", "0"),
]  # fmt: skip


def check(store: Store) -> None:
    frame = totals(store.table("billing"), BY)
    for where, rows, *costs in EXPECTED:
        chosen = frame
        for column, value in where.items():
            chosen = chosen[chosen[column] == value]
        assert int(chosen["source_rows"].sum()) == rows, where
        for name, cost in zip(("billed_cost", "effective_cost", "list_cost"), costs, strict=True):
            if cost is not None:
                stated = [amount for amount in chosen[name] if amount is not None]
                assert sum(stated, Decimal(0)) == Decimal(cost), (where, name)


def with_samples() -> list[Path]:
    sample("README.md")
    return sorted(path for path in SAMPLES.iterdir() if path.is_dir())


def test_every_total_is_exact_and_loading_everything_again_changes_nothing(
    tmp_path: Path,
) -> None:
    store = Store.open(tmp_path / "store")
    first = load(with_samples(), store)
    assert {result.status for result in first} == {Status.LOADED}
    assert sum(result.rows for result in first) == 15867  # the rows of the sixteen files
    check(store)
    second = load(with_samples(), store)
    assert {result.status for result in second} == {Status.UNCHANGED}
    check(store)


def test_the_order_of_loading_does_not_matter(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    files = [path for path in SAMPLES.rglob("*.*") if path.suffix in (".csv", ".json")]
    sample("README.md")
    backwards = sorted(files, key=lambda path: path.as_posix(), reverse=True)
    shuffled = backwards[1::2] + backwards[::2]
    assert {result.status for result in load(shuffled, store)} == {Status.LOADED}
    check(store)


def test_the_gross_cost_of_the_manifest_delivery_is_exact(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    (result,) = load([sample("aws/cur_with_manifest")], store)
    assert result.billing_periods == ("2018-06", "2018-07", "2018-08")
    assert "12604 of 13380 rows" in result.warnings[0]
    frame = totals(store.table("billing"), ["source"])
    assert frame["billed_cost"].tolist() == [Decimal("143227.763678187615017991050")]
    assert frame["list_cost"].tolist() == [Decimal("143227.763678187615017991050")]
    assert frame["instance_hours"].tolist() == [10700]  # 2718 + 2721 + 2607 + 2654


def _equal_accounts(folder: Path) -> tuple[Path, Path]:
    """The savings plan pair with the account ids of the final file in both."""
    final = shutil.copy(sample(FINAL), folder / "final.csv")
    text = sample(NOT_FINAL).read_text("utf-8").replace("9999999999999", "0099999999999")
    not_final = folder / "not_final.csv"
    not_final.write_text(text, "utf-8")
    return final, not_final


def _effective(store: Store) -> list[Any]:
    return list(totals(store.table("billing"), ["source"])["effective_cost"])


def test_the_pair_as_it_stands_is_two_accounts_and_says_so(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    results = load([sample(FINAL), sample(NOT_FINAL)], store)
    assert _effective(store) == [Decimal("0.6")]
    assert any("two accounts" in text for text in results[1].warnings)


@pytest.mark.parametrize("final_first", [True, False])
def test_of_the_pair_with_equal_accounts_the_invoiced_file_counts_in_either_order(
    tmp_path: Path, final_first: bool
) -> None:
    store = Store.open(tmp_path / "store")
    final, not_final = _equal_accounts(tmp_path)
    for path in (final, not_final) if final_first else (not_final, final):
        load([path], store)
    assert _effective(store) == [Decimal("0.3")]
    assert store.deliveries()[0].path == str(final)


def test_leading_zeros_of_ids_stay(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    load([sample(FINAL)], store)
    assert list(totals(store.table("billing"), ["account"])["account"]) == ["0099999999999"]
