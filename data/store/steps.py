"""Every write that the store makes, as named steps, and the locks that keep writers apart."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from typing import TYPE_CHECKING, TypeVar

from data.errors import Problem, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# In the order in which a publication takes them. A process killed before or after any of them
# leaves the former or the new state readable, and what lies about is removed by the next writer.
STEPS = (
    "make_store",
    "make_staging",
    "remove_orphans",
    "write_record",
    "sync_staged",
    "rename_staged",
    "sync_deliveries",
    "write_catalogue",
    "rename_catalogue",
    "sync_store",
    "remove_replaced",
    "remove_staging",
)

_Result = TypeVar("_Result")


def no_stop(_step: str) -> None:
    """Goes on; a test passes a function that stops the writer instead."""


class Steps:
    """Takes named steps, asking `before` at each; the only way in which the store writes."""

    def __init__(self, before: Callable[[str], None] = no_stop) -> None:
        self._before = before

    def take(self, name: str, action: Callable[[], _Result]) -> _Result:
        """What the action gives; `name` must be one of STEPS."""
        if name not in STEPS:
            raise KeyError(name)
        self._before(name)
        return action()


def is_full(error: BaseException | None) -> bool:
    """True where the disk, or what one may have of it, is full; of an error of ours its cause."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return error is not None and is_full(error.__cause__)


def unwritable(what: str, path: Path, error: OSError) -> StoreError:
    """The system's error as one of ours: `what` cannot be written to, why, and what to do.

    >>> from pathlib import Path
    >>> full = unwritable("the store", Path("s"), OSError(errno.ENOSPC, "No space left on device"))
    >>> print(full)
    cannot write to the store s
      - s: No space left on device (free space on its disk, or name another folder)
    """
    remedy = "see whether its disk is in order, or name another folder"
    if is_full(error):
        remedy = "free space on its disk, or name another folder"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "let this user write there, or name another folder"
    told = Problem(str(error.filename or path), error.strerror or type(error).__name__, remedy)
    return StoreError(f"cannot write to {what} {path}", [told])


@contextlib.contextmanager
def writer_lock(path: Path, wait_s: float) -> Iterator[None]:
    """Holds the lock of the one writer; waits for another, StoreError after `wait_s` seconds.

    The system drops the lock of a process that dies, so that none is ever left behind.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + wait_s
        while not _locked(descriptor, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
                raise StoreError(
                    f"another process ({holder or 'unknown'}) has been writing to this store for "
                    f"more than {wait_s:g} s: it holds the lock {path}. Wait for it to end, or "
                    "stop it, and run this again."
                )
            time.sleep(0.05)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def hold_shared(path: Path, make: bool = False) -> int:
    """A descriptor that shares the lock of the file until it is closed."""
    descriptor = os.open(path, os.O_RDONLY | (os.O_CREAT if make else 0), 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def is_held(path: Path) -> bool:
    """True where a living process holds the lock of the file; False where there is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _locked(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
