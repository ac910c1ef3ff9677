"""The output folder of one night: written aside, then put in place in one rename.

A reader, or a run killed at any moment, sees the former night or the new one, never a half. Where
a night is replaced the two folders are exchanged in one call (renameat2 on Linux); where that call
is missing the former night is set aside under a name that the next run puts back.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import uuid
from typing import TYPE_CHECKING

from data.errors import StoreError
from data.store import steps
from data.synced import sync_folder, write_synced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NIGHT = re.compile(r"\d{4}-\d{2}-\d{2}")
_ASIDE = ".aside-"
_STAGED = ".staged-"


def _nothing(_step: str) -> None:
    return None


def write_night(
    out: Path, day: str, files: Mapping[str, str], at_step: Callable[[str], None] = _nothing
) -> Path:
    """The folder `out/day` holding exactly `files` (name -> text).

    `at_step` is called with the name of each step before it is taken, so that a test can stop the
    writing at every one of them. Raises StoreError where the folder cannot be written.
    """
    target = out / day
    try:
        at_step("make the output folder")
        out.mkdir(parents=True, exist_ok=True)
        repair(out)
        staged = out / f"{_STAGED}{day}-{uuid.uuid4().hex[:8]}"
        at_step("make the staging folder")
        staged.mkdir()
        for name in sorted(files):
            at_step(f"write {name}")
            write_synced(staged / name, files[name])
        at_step("sync the staging folder")
        sync_folder(staged)
        at_step("put the night in place")
        _put(staged, target, at_step)
        at_step("sync the output folder")
        sync_folder(out)
        at_step("remove what was replaced")
        repair(out)
    except OSError as error:
        what = error.strerror or "it cannot be written"
        problems = steps.unwritable("the night", target, error).problems
        raise StoreError(f"cannot write the night to {target}: {what}", problems) from error
    return target


def prepare(out: Path) -> None:
    """Checks that the output folder can be written, before the work; makes nothing.

    Raises StoreError where it, or the nearest folder above it that exists, is no folder or may not
    be written.
    """
    nearest = out.absolute()
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise StoreError(f"cannot write to the output folder {out}: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise StoreError(f"cannot write to the output folder {out}: {nearest} may not be written")


def newest_before(out: Path, day: str) -> Path | None:
    """The newest night in `out` of a date before `day` (ISO); None where there is none."""
    if not out.is_dir():
        return None
    nights = [path for path in out.iterdir() if _NIGHT.fullmatch(path.name) and path.name < day]
    return max(nights, key=lambda path: path.name, default=None)


def repair(out: Path) -> None:
    """Puts back a night that was set aside and removes what a killed run left behind."""
    for aside in sorted(out.glob(f"{_ASIDE}*")):
        target = out / aside.name.removeprefix(_ASIDE)
        if target.exists():
            shutil.rmtree(aside)
        else:
            aside.rename(target)
    for staged in sorted(out.glob(f"{_STAGED}*")):
        shutil.rmtree(staged)


def _put(staged: Path, target: Path, at_step: Callable[[str], None]) -> None:
    if not target.exists():
        staged.rename(target)
    elif not _exchange(staged, target):
        aside = target.with_name(f"{_ASIDE}{target.name}")
        at_step("set the former night aside")
        target.rename(aside)
        at_step("rename the new night")
        staged.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """True where the two folders changed places in one call; False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    done = renameat2(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)
    )
    return bool(done == 0)
