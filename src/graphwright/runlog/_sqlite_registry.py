"""The run log files that this process has open: one object each, whatever becomes of the process."""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path

from graphwright.runlog._sqlite_file import RunFile

__all__ = ["acquire", "release"]

_files: dict[str, RunFile] = {}
_files_lock = threading.Lock()
_of_the_parent: list[RunFile] = []
_held_still: list[RunFile] = []


def acquire(path: Path, *, synchronous: str, busy_seconds: float, lease_seconds: float) -> RunFile:
    """Return this process's one object for a file; every call is answered by one `release` or `leave`."""
    key = os.path.realpath(path)
    with _files_lock:
        file = _files.get(key)
        if file is None:
            file = _files[key] = RunFile(
                path,
                synchronous=synchronous,
                busy_seconds=busy_seconds,
                lease_seconds=lease_seconds,
                on_left=release,
            )
        else:
            file.demand(synchronous=synchronous, lease_seconds=lease_seconds)
        file.users += 1
        return file


def release(file: RunFile) -> bool:
    """Let go of a file; true when nobody else uses it, so that its thread ends."""
    with _files_lock:
        file.users -= 1
        last = file.users == 0
        if last:
            for key in [key for key, known in _files.items() if known is file]:
                del _files[key]
    if last:
        file.stop()
    return last


def _end_all() -> None:
    with _files_lock:
        files = list(_files.values())
        _files.clear()
    for file in files:
        file.stop()
    for file in files:
        file.join(timeout=10)


def _before_fork() -> None:
    # SQLite keeps what it knows of its locks in the process, and a child would take the parent's for its own. So
    # nothing is open while the process forks; the connections are made again when they are needed.
    _files_lock.acquire()
    for file in _files.values():
        if file.connections.hold_still():
            _held_still.append(file)


def _after_in_parent() -> None:
    while _held_still:
        _held_still.pop().connections.go_on()
    _files_lock.release()


def _after_in_child() -> None:
    global _files_lock
    _files_lock = threading.Lock()
    _held_still.clear()
    for file in _files.values():
        file.dead = True
        _of_the_parent.append(file)
    _files.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
