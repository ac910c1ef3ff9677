"""Which normaliser reads which layout: a literal map, imported on demand."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from providers.contract import BillingNormaliser
    from providers.fetch.contract import Fetcher

# Dataset -> module:function. `azure` is an Azure cost file that does not yet say which view it is.
BILLING_NORMALISERS = {
    "cur": "providers.aws.billing:normalise",
    "cur2": "providers.aws.billing:normalise",
    "focus": "providers.focus.billing:normalise",
    "standard": "providers.gcp.billing:normalise",
    "detailed": "providers.gcp.billing:normalise",
    "actual": "providers.azure.billing:normalise",
    "amortized": "providers.azure.billing:normalise",
    "azure": "providers.azure.billing:normalise",
}


def billing_normaliser(dataset: str) -> BillingNormaliser:
    """The normaliser of a dataset; KeyError if there is none."""
    module, name = BILLING_NORMALISERS[dataset].split(":")
    return cast("BillingNormaliser", getattr(import_module(module), name))


# Kind of a source -> module:function that pulls its billing.
FETCHERS = {
    "aws": "providers.aws.fetch:fetch",
    "gcp": "providers.gcp.fetch:fetch",
    "azure": "providers.azure.fetch:fetch",
}


def fetcher(kind: str) -> Fetcher:
    """What pulls sources of the kind; KeyError if nothing does."""
    module, name = FETCHERS[kind].split(":")
    return cast("Fetcher", getattr(import_module(module), name))
