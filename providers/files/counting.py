"""Counts over the rows of a delivery that a normaliser needs before it can decide."""

from __future__ import annotations

from typing import Any

import duckdb

from providers.files.faults import cell_error


def counts(rows: Any, **masks: Any) -> dict[str, int]:
    """For every mask the number of rows in which it is true.

    Raises DataError that names the cells where one that is read is no number or no time.
    """
    try:
        found = rows.aggregate(**{name: mask.sum() for name, mask in masks.items()}).to_pyarrow()
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        raise cell_error(rows.get_backend(), rows, error) from error
    return {name: int(count or 0) for name, count in found.to_pylist()[0].items()}
