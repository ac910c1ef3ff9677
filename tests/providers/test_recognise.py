"""Which layout a header belongs to."""

from __future__ import annotations

import pytest

from data.errors import DataError, UsageError
from providers.files.recognise import check_dataset, layout_of

CUR = ["lineItem/LineItemType", "lineItem/UsageStartDate", "lineItem/UnblendedCost",
       "lineItem/UsageType", "bill/PayerAccountId"]  # fmt: skip
SNAKE = ["line_item_line_item_type", "line_item_usage_start_date", "line_item_unblended_cost",
         "line_item_usage_type", "bill_payer_account_id"]  # fmt: skip
FOCUS = ["BilledCost", "EffectiveCost", "ChargeCategory", "ChargePeriodStart"]
GCP = ["billing_account_id", "service", "sku", "usage_start_time", "usage_end_time", "cost"]
FLAT = ["billing_account_id", "service.id", "sku.id", "usage_start_time", "cost", "credits"]
AZURE = ["MeterCategory", "MeterName", "MeterId", "SubscriptionId", "Quantity", "UnitOfMeasure",
         "CostInBillingCurrency"]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "dataset", "source"),
    [
        (CUR, "cur", "aws"),
        (SNAKE, "cur", "aws"),
        ([*SNAKE, "product_instance_type"], "cur", "aws"),
        ([*SNAKE, "resource_tags"], "cur2", "aws"),
        ([*SNAKE, "bill_payer_account_name"], "cur2", "aws"),
        (FOCUS, "focus", "focus"),
        ([*FOCUS, "Tags", "x_SkuMeterCategory"], "focus", "focus"),
        (GCP, "standard", "gcp"),
        ([*GCP, "resource"], "detailed", "gcp"),
        (FLAT, "standard", "gcp"),
        ([*FLAT, "resource.global_name"], "detailed", "gcp"),
        (AZURE, "azure", "azure"),
        ([f"Deutsch ({name})" for name in AZURE], "azure", "azure"),
        ([name.upper() for name in AZURE], "azure", "azure"),
        (["hour_start", "cloud", "instance_id", "gpu_uuid", "gpu_util"], "utilization", None),
        (["id", "class", "gpus", "hours", "release"], "jobs", None),
    ],
)
def test_a_layout_is_told_by_its_columns(
    columns: list[str], dataset: str, source: str | None
) -> None:
    found = layout_of(columns)
    assert (found.dataset, found.source) == (dataset, source)


def test_a_layout_that_lacks_a_column_is_still_that_layout() -> None:
    assert layout_of([name for name in CUR if "Unblended" not in name]).dataset == "cur"


def test_the_users_word_overrules_the_guess() -> None:
    assert layout_of(AZURE, "amortized").dataset == "amortized"
    assert layout_of(["a"], "focus").dataset == "focus"


def test_an_unknown_layout_says_what_was_looked_for_and_what_was_seen() -> None:
    with pytest.raises(DataError) as caught:
        layout_of(["foo", "bar"])
    assert "foo, bar" in caught.value.message
    for word in ("lineItem/LineItemType", "ChargeCategory", "usage_start_time", "utilization"):
        assert word in caught.value.message


def test_an_unknown_name_of_a_dataset_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match="amortized"):
        check_dataset("amortised")
