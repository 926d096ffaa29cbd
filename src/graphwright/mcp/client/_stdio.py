"""Start a server as a child process, hear what it says on its error output, and leave none of its processes behind."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.client.stdio import get_default_environment

from graphwright.mcp.client.servers import StdioServerSpec
from mcp import StdioServerParameters, stdio_client

__all__ = ["ErrorOutput", "stdio_transport"]

# The shell tells its process id, which the program then has, as the first line of the error output: the SDK keeps it
# to itself, and ends the group of processes only when the program does not end by itself.
_TELL_PID = 'echo "$$" >&2; exec "$@"'

_KEPT_LINES = 20


@asynccontextmanager
async def stdio_transport(spec: StdioServerSpec, errors: ErrorOutput) -> AsyncIterator[Any]:
    """Enter the streams of a new process of the server."""
    path = {**get_default_environment(), **spec.env}.get("PATH")
    beside_cwd = spec.cwd is not None and os.path.dirname(spec.command) != ""
    found = spec.command if beside_cwd else shutil.which(spec.command, path=path)
    if found is None:
        raise FileNotFoundError(f"there is no program {spec.command!r} in the PATH of the server")
    windows = sys.platform == "win32"
    command, args = (found, spec.args) if windows else ("/bin/sh", ["-c", _TELL_PID, "sh", found, *spec.args])
    parameters = StdioServerParameters(command=command, args=list(args), env=dict(spec.env), cwd=spec.cwd)
    with errors.opened(pid_first=not windows) as output, output:
        async with stdio_client(parameters, errlog=output) as streams:
            # The process has its own copy: with ours open, the end of its output would never be seen.
            output.close()
            yield streams


class ErrorOutput:
    """The error output of a process, read as it comes: logged, and its end kept for error messages."""

    def __init__(self, name: str) -> None:
        self._log = logging.getLogger(f"graphwright.mcp.server.{name}")
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._rest = b""
        self._pid_first = False
        self.pid: int | None = None
        """The process id of the server, which is also that of its group."""

    @property
    def tail(self) -> str:
        """The last lines, joined by newlines."""
        return "\n".join(self._lines)

    def opened(self, *, pid_first: bool) -> _Pipe:
        """Return the file to give to the process; leaving it reads what is left and ends what still runs."""
        self._pid_first = pid_first
        return _Pipe(self)

    def feed(self, data: bytes) -> None:
        """Take a piece of the output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-8192:]
        for raw in lines:
            line = raw.decode(errors="replace").rstrip()
            if self._pid_first:
                self._pid_first = False
                if line.isdigit():
                    self.pid = int(line)
                    continue
            if line:
                self._lines.append(line[:500])
                self._log.debug("%s", line)

    def end_group(self) -> None:
        """Kill what is left of the server's group of processes."""
        if self.pid is not None and sys.platform != "win32":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


class _Pipe:
    """A pipe whose one end is given away and whose other end is read by the event loop."""

    def __init__(self, output: ErrorOutput) -> None:
        self._output = output
        self._read_end = -1
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Any:
        if sys.platform == "win32":
            return open(os.devnull, "w")
        self._read_end, write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._readable)
        return os.fdopen(write_end, "w")

    def __exit__(self, *_: object) -> None:
        self._readable()
        self._output.end_group()
        self._readable()
        if self._read_end >= 0:
            self._close()

    def _readable(self) -> None:
        while self._read_end >= 0:
            try:
                data = os.read(self._read_end, 65536)
            except BlockingIOError:
                return
            if not data:
                self._close()
                return
            self._output.feed(data)

    def _close(self) -> None:
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        self._read_end = -1
