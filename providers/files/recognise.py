"""Which layout a file has, by its column names alone.

A layout is taken for what most of its telling columns say, so that a file that lacks one of them
is named as that layout with a column missing, not as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.errors import DataError, Problem, UsageError
from providers.aws.columns import squeezed
from providers.files import tables
from providers.files.expressions import plain
from providers.registry import BILLING_NORMALISERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

AZURE = "azure"


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout: the cloud it belongs to, and its dataset. `source` is None for user tables."""

    dataset: str
    source: str | None

    @property
    def is_billing(self) -> bool:
        """Whether a billing normaliser reads it."""
        return self.dataset in BILLING_NORMALISERS


SOURCES = {
    "cur": "aws",
    "cur2": "aws",
    "focus": "focus",
    "standard": "gcp",
    "detailed": "gcp",
    "actual": "azure",
    "amortized": "azure",
    "azure": "azure",
}
# Layout -> columns (squeezed) that tell it, and how many must be there.
_TELLING = {
    "cur": (
        {"lineitemlineitemtype", "lineitemusagestartdate", "lineitemusageenddate",
         "lineitemunblendedcost", "lineitemusageaccountid", "lineitemusagetype",
         "lineitemusageamount", "lineitemproductcode", "billpayeraccountid",
         "billbillingperiodstartdate"}, 4),
    "focus": (
        {"billedcost", "effectivecost", "chargecategory", "chargeperiodstart", "chargeperiodend",
         "pricingcategory", "listcost", "contractedcost", "chargeclass"}, 4),
    "standard": (
        {"billingaccountid", "service", "serviceid", "sku", "skuid", "skudescription",
         "usagestarttime", "usageendtime", "cost", "currencyconversionrate", "credits",
         "projectid", "project", "exporttime"}, 5),
    "azure": (
        {"metercategory", "metersubcategory", "meterid", "metername", "meterregion",
         "subscriptionid", "subscriptionguid", "consumedservice", "resourcelocation",
         "costinbillingcurrency", "pretaxcost", "unitofmeasure", "effectiveprice", "resourcerate",
         "quantity", "consumedquantity"}, 6),
}  # fmt: skip
_OF_CUR2 = {"product", "resourcetags", "costcategory", "discount", "billpayeraccountname",
            "lineitemusageaccountname", "tags"}  # fmt: skip
_OF_DETAILED = {"resource", "resourcename", "resourceglobalname"}


def datasets() -> list[str]:
    """Every name that `--dataset` takes."""
    return sorted({*BILLING_NORMALISERS, *tables.TABLES} - {AZURE})


def check_dataset(name: str) -> None:
    """Nothing, if `--dataset` takes the name; else UsageError that lists what it takes."""
    if name not in datasets():
        raise UsageError(f"no dataset {name!r}; there are {', '.join(datasets())}")


def layout_of(columns: Sequence[str], asked: str | None = None) -> Layout:
    """The layout of the columns; `asked` overrules the guess.

    Raises UsageError for a name that is no dataset, and DataError, saying what was looked for,
    where the columns are those of no layout.
    """
    if asked is not None:
        check_dataset(asked)
        return Layout(asked, SOURCES.get(asked))
    found = _guess(columns)
    if found is None:
        raise _unknown(columns)
    return found


def _guess(columns: Sequence[str]) -> Layout | None:
    names = _names(columns)
    scores = {
        layout: len(names & telling) / least
        for layout, (telling, least) in _TELLING.items()
        if len(names & telling) >= least
    }
    table = tables.recognise(columns)
    if not scores:
        return None if table is None else Layout(table, None)
    best = max(sorted(scores), key=lambda layout: scores[layout])
    if best == "cur" and names & _OF_CUR2:
        best = "cur2"
    if best == "standard" and names & _OF_DETAILED:
        best = "detailed"
    return Layout(best, SOURCES[best])


def _names(columns: Iterable[str]) -> set[str]:
    return {squeezed(plain(column)) for column in columns}


def _unknown(columns: Sequence[str]) -> DataError:
    names = _names(columns)
    problems = []
    for layout, (telling, least) in _TELLING.items():
        there = len(names & telling)
        what = f"{there} of its telling columns are there, {least} are needed"
        problems.append(Problem(f"as {layout}", what, "name it with --dataset if it is that"))
    seen = ", ".join(list(columns)[:8]) + (", ..." if len(columns) > 8 else "")
    wanted = (
        "AWS Cost and Usage Report (lineItem/LineItemType), FOCUS (ChargeCategory, BilledCost), "
        "GCP billing export (usage_start_time, sku.id, cost), Azure cost (MeterCategory, "
        "CostInBillingCurrency), and the tables utilization, jobs, waiting, prices, commitments, "
        "agreements, budgets, invoices"
    )
    message = f"unknown layout: the columns are {seen}; looked for those of {wanted}"
    return DataError(message, problems)
