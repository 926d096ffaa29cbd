"""Who holds the lease of a thread: how a holder is named, when it is known to be dead, and how a run waits for it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from graphwright.exceptions import ThreadBusy
from graphwright.runlog.base import BusyPolicy

__all__ = ["is_dead", "this_process", "when_free"]

T = TypeVar("T")

_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.25


def this_process() -> str:
    """Return the name of this process: its machine, its number there, and when it started."""
    return _name_of(os.getpid())


@lru_cache(maxsize=1)
def _name_of(pid: int) -> str:
    return f"{_machine()}|{pid}|{_started(pid) or ''}"


def is_dead(holder: str) -> bool:
    """Return whether the process of that name is known to be gone; false also when that cannot be known here."""
    parts = holder.split("|")
    if len(parts) != 3 or not parts[1].isdigit() or parts[0] != _machine() or sys.platform == "win32":
        return False
    pid, started = int(parts[1]), parts[2]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    # The number may have been given to another process since.
    return bool(started) and _started(pid) != started


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return what names the set of processes in which a process number means something."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        # Containers of one machine have process numbers of their own.
        return f"{boot.read_text(encoding='ascii').strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        import uuid

        return f"{socket.gethostname()}/{uuid.getnode():x}".replace("|", "_")


def _started(pid: int) -> str | None:
    """Return when a process started, in the kernel's own units; `None` if it ended, or nobody can say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program is in parentheses and may hold anything.
    fields = text[text.rfind(")") + 2 :].split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return None
    return fields[19]


async def when_free(take: Callable[[], Awaitable[T]], on_busy: BusyPolicy, wait_seconds: float) -> T:
    """Return what `take` gives; with `wait`, try again while it raises `ThreadBusy`, for `wait_seconds` at most."""
    deadline = time.monotonic() + (wait_seconds if on_busy == "wait" else 0.0)
    pause = _FIRST_PAUSE
    while True:
        try:
            return await take()
        except ThreadBusy:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_PAUSE)
