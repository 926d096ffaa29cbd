"""Where people type: lines from a pipe or a simple terminal. The port of the richer one is here, too."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TextIO

from graphwright._internal.optional import is_installed
from graphwright.cli._text import visible
from graphwright.cli._views import is_terminal

__all__ = ["Console", "InputCancelled", "LineConsole", "Parse", "choose_console"]

Parse = Callable[[str], Any]
"""Makes a value of what was typed, or raises `ValueError` with what is wrong."""


class InputCancelled(Exception):
    """Ctrl-C was pressed where something was to be typed."""


class Console(Protocol):
    """Asks people for a line of text, until it makes sense."""

    async def ask(self, prompt: str, parse: Parse = str, *, default: str = "", multiline: bool = False) -> Any:
        """Return what `parse` makes of what is typed. What is wrong is shown, and it is asked again.

        Raises:
            EOFError: nothing more will be typed.
            InputCancelled: Ctrl-C was pressed.
        """


def choose_console() -> Console:
    """Return what fits the terminal; lines where there is none, or no prompt_toolkit."""
    if sys.stdin.isatty() and is_terminal(sys.stdout) and is_installed("prompt_toolkit"):
        from graphwright.cli._toolkit import ToolkitConsole

        return ToolkitConsole()
    return LineConsole(sys.stdin, sys.stdout)


class LineConsole:
    """Reads one line an answer. Where that is empty, the answer is the default."""

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._source = source
        self._out = out
        self._wanted = threading.Semaphore(0)
        self._reader: threading.Thread | None = None
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._asked = 0
        self._ended = False

    async def ask(self, prompt: str, parse: Parse = str, *, default: str = "", multiline: bool = False) -> Any:
        while True:
            self._show(f"{prompt} " if self._source.isatty() else f"{prompt}\n")
            line = await self._line()
            if not line:
                raise EOFError
            try:
                return parse(line.strip() or default)
            except ValueError as error:
                self._show(f"{visible(str(error))}\n")

    def _show(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    async def _line(self) -> str:
        """Return the next line with its end; empty at the end of the input."""
        if self._ended:
            return ""
        if self._reader is None:
            loop = asyncio.get_running_loop()
            # A daemon, for a read from a terminal cannot be called off, and must not hold up the end of the process.
            self._reader = threading.Thread(target=self._read, args=(loop,), name="graphwright-input", daemon=True)
            self._reader.start()
        if not self._asked:  # a read that nobody waited for to its end is still on its way
            self._asked += 1
            self._wanted.release()
        line = await self._lines.get()
        self._asked -= 1
        self._ended = not line
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line = "\n"
        while line:
            self._wanted.acquire()
            try:
                line = self._source.readline()
            except (OSError, ValueError):  # closed, or no text
                line = ""
            with suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(self._lines.put_nowait, line)
