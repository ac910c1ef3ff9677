"""Builders of small export files, and their rows in normal form, for tests of normalisers."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from decimal import Decimal, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from data.engines import connect
from providers.contract import DeliveryContext
from providers.files.raw import read_raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from providers.contract import BillingNormaliser

SAMPLES = Path(__file__).parents[2] / "shared" / "samples"


def sample(name: str) -> Path:
    """A real export that lies beside the checkout; the test is skipped where it does not."""
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"no sample {name} beside the checkout")
    return path


def csv_file(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> Path:
    """A CSV file of the rows; a cell that a row lacks is empty."""
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def json_lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A file with one JSON object a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class Rows(list[dict[str, Any]]):
    """Rows in normal form, in reading order, with what the normaliser said of them."""

    warnings: tuple[str, ...] = ()
    dataset: str | None = None

    def total(self, name: str, **where: Any) -> Decimal | None:
        """The exact sum of a column over the rows that have these values; None if all are null."""
        chosen = [row for row in self if all(row[key] == value for key, value in where.items())]
        values = [row[name] for row in chosen if row[name] is not None]
        with localcontext(prec=60):
            return sum(values, Decimal(0)) if values else None


def normal_form(
    normalise: BillingNormaliser, path: Path, dataset: str = "", **context: Any
) -> Rows:
    """The rows of an export file as its normaliser gives them."""
    connection = connect(threads=1)
    with tempfile.TemporaryDirectory() as work:
        raw, columns = read_raw(connection, [path], Path(work))
        known = DeliveryContext(str(path), dataset, "d1", columns, file_name=path.name, **context)
        found = normalise(raw, known)
        rows = Rows(found.rows.order_by("source_row_no").to_pyarrow().to_pylist())
    rows.warnings, rows.dataset = found.warnings, found.dataset
    connection.disconnect()
    return rows
