"""What every source of records offers, declared once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import ibis

# Columns of BILLING that the common last step adds (`providers.files.finish`), so that no
# normaliser repeats them.
FINISHED_LATER = ("unit", "dataset", "gpu_model", "gpu_count", "export_id")
# Columns that only some exports can tell: where a normaliser leaves one out, it is null.
TOLD_BY_SOME = ("covered_qty", "committed_cost", "payment_credits")


@dataclass(frozen=True, slots=True)
class DeliveryContext:
    """What is known of a delivery before its rows are read.

    `columns` are the raw column names as the files spell them; `manifest` is the parsed manifest
    or None; `manifest_period` (YYYY-MM) and `manifest_account` come from it.
    """

    path: str
    dataset: str
    delivery_id: str
    columns: tuple[str, ...]
    manifest: dict[str, Any] | None = None
    manifest_period: str | None = None
    manifest_account: str | None = None
    file_name: str = ""


@dataclass(frozen=True, slots=True)
class Normalised:
    """A delivery in normal form: its rows, and what a person should know of them.

    `rows` has every column of BILLING but those in FINISHED_LATER, and of TOLD_BY_SOME what
    the export tells; one row per raw row.
    GPU-hours are filled by a normaliser only where the export counts GPUs itself (GCP); elsewhere
    they are null and follow from instance_hours x gpu_count. `dataset` is the layout as the rows
    show it, where the context leaves it open (Azure: actual or amortized); None: the context's.
    """

    rows: ibis.Table
    warnings: tuple[str, ...] = field(default=())
    dataset: str | None = None


class BillingNormaliser(Protocol):
    """Turns the raw text table of one layout into normal form.

    `raw` holds every cell of the files as text (missing cells null), one column per column of
    `context.columns`, and `source_row_no`. Raises DataError where a required column is missing.
    """

    def __call__(self, raw: ibis.Table, context: DeliveryContext) -> Normalised:
        """Rows in normal form."""
        ...
