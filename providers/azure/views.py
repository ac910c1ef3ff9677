"""Which of the two views of one bill an Azure file is: actual cost or amortized cost.

The two look alike. A manifest, the export's name, the file's name or the user says which; else the
rows do: purchases of commitments, or covered usage at no cost, stand only in the actual view; a
share of a commitment's cost on usage rows only in the amortized one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from providers.contract import DeliveryContext

ACTUAL, AMORTIZED = "actual", "amortized"
VIEWS = (ACTUAL, AMORTIZED)


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Counts of rows that tell the view."""

    purchases: int
    covered_at_no_cost: int
    covered_at_cost: int


@dataclass(frozen=True, slots=True)
class View:
    """The view of a delivery; `fills_both` where billed and effective cost cannot differ."""

    dataset: str
    fills_both: bool = False
    warning: str | None = None

    @property
    def has_billed(self) -> bool:
        """Whether the file states what the invoice shows."""
        return self.fills_both or self.dataset == ACTUAL

    @property
    def has_effective(self) -> bool:
        """Whether the file states amortised cost."""
        return self.fills_both or self.dataset == AMORTIZED


def named_view(context: DeliveryContext) -> View | None:
    """The view that the user, the manifest, the export's name or the file's name tells, or None."""
    if context.dataset in VIEWS:
        return View(context.dataset)
    export = (context.manifest or {}).get("exportConfig") or {}
    for text in (export.get("type"), export.get("exportName"), context.file_name):
        told = _told(text)
        if told:
            return View(told)
    return None


def view_of_rows(facts: RowFacts) -> View:
    """The view that the rows of a file without a telling name show, with a warning that says so.

    >>> view_of_rows(RowFacts(purchases=1, covered_at_no_cost=0, covered_at_cost=0)).dataset
    'actual'
    >>> view_of_rows(RowFacts(0, 0, 0)).fills_both
    True
    """
    ask = "name it with --dataset actual or --dataset amortized"
    if facts.purchases or facts.covered_at_no_cost:
        seen = (
            f"{facts.purchases} commitment purchases, "
            f"{facts.covered_at_no_cost} covered rows at no cost"
        )
        return View(ACTUAL, warning=f"taken as actual cost by its rows ({seen}); {ask}")
    if facts.covered_at_cost:
        seen = f"{facts.covered_at_cost} rows with a share of a commitment's cost"
        return View(AMORTIZED, warning=f"taken as amortized cost by its rows ({seen}); {ask}")
    why = "no purchases and no commitment rows, so that billed and effective cost are the same"
    return View(ACTUAL, fills_both=True, warning=f"taken as both actual and amortized: {why}")


def _told(text: Any) -> str | None:
    words = str(text or "").lower().replace("amortised", AMORTIZED)
    told = [view for view in VIEWS if view in words]
    return told[0] if len(told) == 1 else None
