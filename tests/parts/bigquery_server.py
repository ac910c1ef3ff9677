"""Starts bqemulator, a BigQuery on DuckDB, in its own environment: no test, and not the product's.

Run as `.venv-bigquery/bin/python tests/parts/bigquery_server.py start --rest-port N ...`. Three
things are other than in the package. It insists on a spatial extension that DuckDB would download,
and no bill has places. It reads BIGNUMERIC, of 38 places, as DuckDB's decimal of 5: the widest that
DuckDB has is taken here, with the 26 places that stored money has. And its translation takes four
times as long for selects that stand in one another as for the same selects one after the other, as
which it gets them here, each query once.
"""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Starts the emulator with the arguments of the command line."""
    from bqemulator.cli import main as start
    from bqemulator.sql.translator import SQLTranslator
    from bqemulator.storage.engine import DuckDBEngine
    from sqlglot import exp, parse_one
    from sqlglot.generators.duckdb import DuckDBGenerator
    from sqlglot.optimizer.eliminate_subqueries import eliminate_subqueries

    translate = SQLTranslator.translate
    known: dict[tuple[str, str], Any] = {}

    def translated(translator: Any, sql: str, **more: Any) -> Any:
        key = (sql, repr(sorted(more.items(), key=str)))
        if key not in known:
            chained = sql
            if sql.lstrip().startswith("WITH"):
                chained = eliminate_subqueries(parse_one(sql, read="bigquery")).sql("bigquery")
            known[key] = translate(translator, chained, **more)
        return known[key]

    SQLTranslator.translate = translated
    DuckDBEngine._load_spatial = lambda _engine: None
    DuckDBGenerator.TYPE_PARAM_SETTINGS[exp.DataType.Type.BIGDECIMAL] = ((38, 26), (38, 38))
    sys.exit(start())


if __name__ == "__main__":
    main()
