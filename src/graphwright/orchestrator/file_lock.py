"""A lock that threads and processes of one machine take in turn; it ends with whoever holds it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphwright.exceptions import StoreUnavailable

__all__ = ["locked"]

_WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.005


@contextmanager
def locked(file: Path, *, wait_seconds: float = _WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock on `file` inside the block. Blocks, so call it in a worker thread. The file is made, and stays.

    Raises:
        StoreUnavailable: somebody else holds it for longer than `wait_seconds`, or the file system has no locks.
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait_for(handle, file, wait_seconds)
        try:
            yield
        finally:
            _release(handle)
    finally:
        os.close(handle)


def _wait_for(handle: int, file: Path, wait_seconds: float) -> None:
    until = time.monotonic() + wait_seconds
    while True:
        try:
            _take(handle)
        except (BlockingIOError, PermissionError):
            if time.monotonic() >= until:
                raise StoreUnavailable(
                    f"the lock {str(file)!r} was held by somebody else for {wait_seconds:g} s; nothing was written"
                ) from None
            time.sleep(_PAUSE_SECONDS)
        except OSError as error:
            raise StoreUnavailable(
                f"{str(file)!r} cannot be locked: {error}; put the folder on a file system with locks"
            ) from error
        else:
            return


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _release(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
