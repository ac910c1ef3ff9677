"""Which normaliser reads which layout: a literal map, imported on demand."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from providers.contract import BillingNormaliser

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
