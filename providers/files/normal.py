"""The rows of one billing delivery in normal form, on the engine that the store names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from providers.files.engine import DUCKDB, DuckDb, Engine, engine_of
from providers.files.finish import Lineage, finish
from providers.registry import billing_normaliser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from providers.contract import DeliveryContext, Normalised


@dataclass(frozen=True, slots=True)
class Export:
    """A delivery as text, and what its rows will be filed under once their layout is known.

    `raw` is a table of the DuckDB `connection`; `folder` takes what an engine needs meanwhile.
    """

    raw: Any
    context: DeliveryContext
    lineage: Callable[[str], Lineage]
    connection: Any
    folder: Path


def write_normal_form(export: Export, target: Path, engine: str = DUCKDB) -> Normalised:
    """What the normaliser says of the delivery; its rows are written to the target.

    Where another engine cannot read a cell, DuckDB is asked which. Raises DataError with every
    cell that cannot be read, ConfigError where the engine is not there.
    """
    chosen = engine_of(engine, export.connection, export.folder)
    try:
        return _written(export, target, chosen)
    except chosen.errors as error:
        _written(export, target, DuckDb(export.connection))
        from providers.files.spark import refused

        raise refused(error) from error


def _written(export: Export, target: Path, engine: Engine) -> Normalised:
    context = export.context
    normalised = billing_normaliser(context.dataset)(engine.rows_of(export.raw), context)
    lineage = export.lineage(normalised.dataset or context.dataset)
    rows = finish(engine.connection, normalised.rows, lineage)
    engine.write(rows, target, normalised.rows)
    return normalised
