"""Money and hours in the store, summed exactly by the columns that a user names."""

from __future__ import annotations

import difflib
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from data import money
from data.errors import DataError, UsageError
from data.shares import EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence

BY = (
    "source", "dataset", "delivery_id", "account", "billing_period", "currency", "charge_type",
    "purchase_option", "commitment_status", "region", "instance_type", "gpu_model",
    "workload_class", "day",
)  # fmt: skip
MONEY_SUMS = ("billed_cost", "effective_cost", "list_cost")
HOUR_SUMS = ("instance_hours", "gpu_hours")
# Two views of one bill: the same hours, and each a cost of its own.
_VIEWS = ("actual", "amortized")


def totals(table: ibis.Table, by: Sequence[str]) -> pd.DataFrame:
    """Frame with one row per group: the columns of `by`, currency, source_rows and the sums.

    Sums are Decimals; a cost that no row of the group states is None, hours that none states are
    0. Currencies are never added: currency is a column of every answer. Rows are sorted by their
    group, missing values last. Raises UsageError for a column that totals cannot be taken by.
    """
    groups = _groups(by)
    keys = {name: _key(table, name) for name in groups}
    sums: dict[str, Any] = {"source_rows": ibis._.count()}
    for name in (*MONEY_SUMS, *HOUR_SUMS):
        sums[name] = ibis._[name].sum().cast(EXACT)
    rows = table.select(**keys, **{name: table[name] for name in (*MONEY_SUMS, *HOUR_SUMS)})
    order = [ibis._[name].asc(nulls_first=False) for name in groups]
    try:
        answer = rows.group_by(groups).aggregate(**sums).order_by(order).to_pyarrow()
    except Exception as error:
        if "overflow" not in str(error).lower():
            raise
        raise DataError(
            f"a sum of amounts has more than {money.INTEGER_DIGITS} integer digits; "
            "ask for it by more columns (--by)"
        ) from error
    columns = {name: answer[name].to_pylist() for name in answer.column_names}
    for name in HOUR_SUMS:
        columns[name] = [Decimal(0) if hours is None else hours for hours in columns[name]]
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def doubled_datasets(table: ibis.Table, by: Sequence[str] = ()) -> list[str]:
    """One sentence per source whose hours an answer by these columns counts twice, sorted.

    Azure's actual and amortized views hold the same hours, and each a cost of its own. Totals sum
    what the exports state, so only an answer by `dataset` or `delivery_id` tells them apart.
    """
    if {"dataset", "delivery_id"} & {name.strip() for name in by}:
        return []
    unit = ["source", "billing_account", "billing_period"]
    pairs = (
        table.filter(table.instance_hours.notnull() & table.dataset.isin(_VIEWS))
        .group_by(unit)
        .aggregate(views=ibis._.dataset.nunique())
        .filter(ibis._.views == len(_VIEWS))
    )
    found = pairs.group_by("source").aggregate(
        n=ibis._.count(), first=ibis._.billing_period.min(), last=ibis._.billing_period.max()
    )
    sentences = []
    for source, count, first, last in zip(*found.to_pyarrow().to_pydict().values(), strict=True):
        months = first if first == last else f"{first} to {last}"
        plural = "" if count == 1 else "s"
        sentences.append(
            f"{source}: the actual and the amortized export of {count} bill{plural} ({months}) "
            "are both loaded and hold the same hours: instance_hours and gpu_hours count them "
            "twice here; add dataset to --by to tell them apart"
        )
    return sorted(sentences)


def totals_json(frame: pd.DataFrame) -> dict[str, Any]:
    """The answer of `totals` as `totals --json` writes it: amounts as texts, days as ISO dates."""
    columns = {str(name): [_plain(value) for value in frame[name]] for name in frame.columns}
    names = list(columns)
    return {
        "rows": [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    }


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return money.text(value)
    if value is None or value is pd.NaT or value != value:
        return None
    return value if isinstance(value, int | str) else str(value)


def _groups(by: Sequence[str]) -> list[str]:
    asked = list(dict.fromkeys(name.strip() for name in by if name.strip()))
    unknown = [name for name in asked if name not in BY]
    if unknown:
        near = difflib.get_close_matches(unknown[0], BY, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(
            f"totals cannot be taken by {', '.join(unknown)}{hint}; --by takes {', '.join(BY)}"
        )
    return asked if "currency" in asked else [*asked, "currency"]


def _key(table: ibis.Table, name: str) -> Any:
    if name == "delivery_id":
        return table["export_id"]
    if name == "day":
        return table["period_start"].date()
    return table[name]
