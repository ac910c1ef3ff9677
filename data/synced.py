"""Files that are on the disk before anything rests on them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_synced(path: Path, text: str) -> None:
    """Write the text and wait until it is on the disk."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())


def replace_synced(path: Path, text: str) -> None:
    """Put the text in the place of the file's by one rename: a reader sees the old or the new."""
    aside = path.with_name(f"{path.name}.tmp")
    write_synced(aside, text)
    aside.replace(path)


def sync_folder(folder: Path, with_files: bool = False) -> None:
    """Wait until the folder's names, and its files if asked, are on the disk."""
    for path in [*sorted(folder.iterdir()), folder] if with_files else [folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
