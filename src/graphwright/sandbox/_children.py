"""Start the process that a sandbox lives in, and end it: on clean-up, on cancellation, with the interpreter."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

__all__ = ["Child", "at_exit", "start"]

_STOP_SECONDS = 5.0

_open: dict[int, Callable[[], None]] = {}
_keys = count()
_lock = threading.Lock()


class Child:
    """A process with pipes, which leads a process group of its own."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._loop = asyncio.get_running_loop()
        self._forget = at_exit(self._kill)

    @property
    def reachable(self) -> bool:
        """Whether it runs, and the event loop that its pipes belong to as well."""
        return self.process.returncode is None and not self._loop.is_closed()

    async def end(self) -> None:
        """Kill it, and return when it is gone; from another event loop than its own, when it was told to go."""
        if asyncio.get_running_loop() is not self._loop:
            self._kill()
            self._forget()
            return
        with contextlib.suppress(OSError, ConnectionError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        self._kill_namespace()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self.process.wait()
        except TimeoutError:
            self._kill()
            await self.process.wait()
        finally:
            if self.process.returncode is not None:
                self._forget()

    def _kill_namespace(self) -> None:
        """Kill the first process of the namespace, so that its parent ends only after all others are gone."""
        if self.process.returncode is not None:
            return
        children = _children(self.process.pid)
        for pid in children or [self.process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _kill(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


async def start(
    command: Sequence[str],
    *,
    limit: int,
    pass_fds: Sequence[int] = (),
    ids: tuple[int, int] | None = None,
    env: Mapping[str, str] | None = None,
) -> Child:
    """Start a process that knows nothing of the environment of this one but `env`.

    `ids` are the user and group that it runs as where this process is root.
    """
    options: dict[str, Any] = {}
    if ids is not None and os.getuid() == 0:
        # Root is bound by no limit on processes, in a namespace either.
        options = {"user": ids[0], "group": ids[1], "extra_groups": []}
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(env or {}),
            cwd="/",
            limit=limit,
            pass_fds=pass_fds,
            start_new_session=True,
            **options,
        )
    )
    try:
        return Child(await asyncio.shield(starting))
    except asyncio.CancelledError:
        await Child(await starting).end()
        raise


def at_exit(stop: Callable[[], None]) -> Callable[[], None]:
    """Call `stop` when the interpreter ends, unless the returned function is called before."""
    key = next(_keys)
    with _lock:
        _open[key] = stop

    def forget() -> None:
        with _lock:
            _open.pop(key, None)

    return forget


def _stop_all() -> None:
    with _lock:
        stops = list(_open.values())
        _open.clear()
    for stop in stops:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            stop()


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


atexit.register(_stop_all)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open.clear)
