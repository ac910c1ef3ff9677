"""Writes a user's table and loads it into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.store import Status, Store
from providers.files import tables

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "hour_start,cloud,account,region,instance_id,gpu_uuid,gpu_util,sm_active,memory_used_share"
HEAD += ",process_count"


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def load(tmp_path, *paths, table="utilization"):
    """The staged delivery and the rows that the store then gives, in reading order."""
    store = Store.open(tmp_path / "store")
    with store.staging() as folder:
        staged = tables.stage_files(paths, table, folder, paths[0].name)
        assert store.publish(staged).status is Status.LOADED
    rows = store.table(table).order_by("source_row_no").to_pyarrow().to_pylist()
    return staged, rows
