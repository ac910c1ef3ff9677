"""Downloads that go on: what came of an object lies in `<target>.part` until it is whole.

Beside the part lies `<target>.part.version`, which says what it is a part of.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from data.errors import Problem, ProviderError, ProviderUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from providers.fetch.contract import StoredObject


@contextmanager
def going_on(item: StoredObject, target: Path, where: str) -> Iterator[BinaryIO]:
    """A file to write the rest of the object to, its position at what came before.

    The target appears by one rename once all bytes are there. What came stays where the download
    is cut, so that the next goes on from it, unless it is as long as the object and still refused.
    `where` names the object for people. Raises ProviderUnavailable where
    other than `item.size` bytes were written.
    """
    part = target.with_name(f"{target.name}.part")
    version = target.with_name(f"{part.name}.version")
    target.parent.mkdir(parents=True, exist_ok=True)
    begun = part.stat().st_size if part.exists() else 0
    if begun > item.size or not version.exists() or version.read_text() != item.version:
        part.unlink(missing_ok=True)
        version.write_text(item.version)
    try:
        with part.open("ab") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_size(item, part.stat().st_size, where)
    except ProviderError:
        if part.stat().st_size >= item.size:  # what came is not what was sent
            part.unlink()
        raise
    part.replace(target)
    version.unlink()


def check_size(item: StoredObject, size: int, where: str) -> None:
    """Raises ProviderUnavailable where so many bytes are not what the listing said."""
    if size != item.size:
        what = f"{size} bytes came, {item.size} were listed"
        problem = Problem(where, what, "run fetch again")
        raise ProviderUnavailable("a download is not whole", [problem])
