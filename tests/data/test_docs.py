from __future__ import annotations

from pathlib import Path

from data import docs
from data.schema import TABLES


def test_the_page_of_tables_equals_the_declarations():
    committed = Path(__file__).parents[2] / "docs" / "tables.md"
    hint = "write it again: python -m data.docs > docs/tables.md"
    assert committed.read_text(encoding="utf-8") == docs.page(), hint


def test_every_table_has_a_name_of_its_own_and_its_key_among_its_columns():
    names = [table.name for table in TABLES]
    assert len(set(names)) == len(names)
    for table in TABLES:
        assert len(set(table.names)) == len(table.names)
        assert set(table.key) <= set(table.names)
