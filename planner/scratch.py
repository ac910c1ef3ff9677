"""Working tables of one computation: kept in the engine while it lasts, dropped when it ends."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa

from data.engines import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

_NUMBERS = itertools.count()
TYPES = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "exact": pa.decimal128(38, 26),
}


class Scratch:
    """Temporary tables on one connection; `keep` computes once what is read several times."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._names: list[str] = []

    def keep(self, rows: Any) -> Any:
        """The rows as a temporary table of the connection."""
        name = f"scratch_{next(_NUMBERS)}"
        self._names.append(name)
        return self.connection.create_table(name, rows, temp=True)

    def upload(self, frame: pd.DataFrame, types: Mapping[str, str]) -> Any:
        """The frame as a temporary table with exactly the columns of `types` (see TYPES)."""
        schema = pa.schema([(name, TYPES[kind]) for name, kind in types.items()])
        rows = frame.reindex(columns=list(types)).astype(object)
        arrow = pa.Table.from_pandas(rows.where(rows.notna(), None), schema, preserve_index=False)
        return self.keep(ibis.memtable(arrow))

    def fetch(self, rows: Any) -> pd.DataFrame:
        """The rows as a frame."""
        # By way of Arrow: Ibis's own conversion rebuilds every decimal in Python.
        frame: pd.DataFrame = self.connection.to_pyarrow(rows).to_pandas()
        return frame

    def drop(self) -> None:
        """Drop every table that was kept."""
        for name in self._names:
            run(self.connection, f'DROP TABLE IF EXISTS "{name}"')
        self._names.clear()


@contextmanager
def scratch(connection: Any) -> Iterator[Scratch]:
    """A Scratch on the connection, whose session is put on UTC; its tables go at the end."""
    run(connection, "SET TimeZone = 'UTC'")
    tables = Scratch(connection)
    try:
        yield tables
    finally:
        tables.drop()
