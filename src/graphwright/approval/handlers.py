"""Who answers approval requests inside this process: a function, a queue that an application reads, a terminal."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

from graphwright._internal.jsonio import dumps
from graphwright._internal.threads import run_in_thread
from graphwright.approval.base import ApprovalDecision, ApprovalHandler, ApprovalRequest
from graphwright.exceptions import ConfigurationError, GraphwrightError, InterruptError
from graphwright.interrupts import read_approval

__all__ = ["CallbackApprovalHandler", "ConsoleApprovalHandler", "QueueApprovalHandler", "as_handler"]


def as_handler(handler: Any) -> ApprovalHandler:
    """Return a handler: one as it is, a function wrapped.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(handler, ApprovalHandler):
        return handler
    asks = getattr(handler, "request_approval", None)
    if callable(asks) and not isinstance(handler, type):
        return CallbackApprovalHandler(asks)
    if callable(handler) and not isinstance(handler, type):
        return CallbackApprovalHandler(handler)
    raise ConfigurationError(
        f"the approval handler is {handler!r}; give an ApprovalHandler, or a function of the request that returns a "
        "decision or a bool"
    )


class CallbackApprovalHandler(ApprovalHandler):
    """Asks a function. A plain one runs in a worker thread, so it may wait for a person."""

    def __init__(self, callback: Callable[[ApprovalRequest], Any]) -> None:
        if not callable(callback):
            raise ConfigurationError(f"callback is {callback!r}; give a function of the request")
        self._callback = callback

    async def request_approval(self, request: ApprovalRequest) -> Any:
        """Return what the function returns: a decision, or a bool."""
        if inspect.iscoroutinefunction(self._callback) or inspect.iscoroutinefunction(
            getattr(self._callback, "__call__", None)  # noqa: B004 - an object whose call is a coroutine function
        ):
            return await self._callback(request)
        value = await run_in_thread(self._callback, request)
        return await value if inspect.isawaitable(value) else value


class QueueApprovalHandler(ApprovalHandler):
    """Keeps requests until the application decides on them: read `next_request`, then call `submit_decision`.

    Requests live in this process only. What has to outlive it is a pause: a run with a log and no handler.
    """

    def __init__(self, maxsize: int = 100) -> None:
        if isinstance(maxsize, bool) or not isinstance(maxsize, int) or maxsize < 1:
            raise ConfigurationError(f"maxsize is {maxsize!r}; give a whole number of at least 1")
        self._maxsize = maxsize
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[ApprovalRequest, asyncio.Future[ApprovalDecision]]] = {}
        self._unread: dict[str, ApprovalRequest] = {}
        self._readers: list[asyncio.Future[None]] = []

    @property
    def pending(self) -> list[ApprovalRequest]:
        """The requests that wait for a decision, the oldest first."""
        with self._lock:
            return [request for request, _ in self._waiting.values()]

    async def next_request(self) -> ApprovalRequest:
        """Return the oldest request that was not returned yet, and still waits; wait for one where there is none."""
        while True:
            with self._lock:
                if self._unread:
                    return self._unread.pop(next(iter(self._unread)))
                reader = asyncio.get_running_loop().create_future()
                self._readers.append(reader)
            try:
                await reader
            finally:
                with self._lock:
                    if reader in self._readers:
                        self._readers.remove(reader)

    def submit_decision(self, request_id: str, decision: ApprovalDecision | bool) -> None:
        """Decide on a request, from any thread.

        Raises:
            InterruptError: nobody waits for this decision (any more), or it is none.
        """
        checked = read_approval(decision)
        with self._lock:
            found = self._waiting.pop(request_id, None)
            self._unread.pop(request_id, None)
        if found is None:
            raise InterruptError(f"no request {request_id!r} waits; it was decided, ran out of time, or never was")
        _set(found[1], checked)

    async def request_approval(self, request: ApprovalRequest) -> ApprovalDecision:
        """Wait for the decision.

        Raises:
            GraphwrightError: as many requests as may wait do so already.
        """
        future: asyncio.Future[ApprovalDecision] = asyncio.get_running_loop().create_future()
        with self._lock:
            if len(self._waiting) >= self._maxsize:
                raise GraphwrightError(f"{self._maxsize} requests wait for a decision already; try again later")
            self._waiting[request.request_id] = (request, future)
            self._unread[request.request_id] = request
            readers, self._readers = self._readers, []
        for reader in readers:
            _set(reader, None)
        try:
            return await future
        finally:
            with self._lock:
                self._waiting.pop(request.request_id, None)
                self._unread.pop(request.request_id, None)


def _set(future: asyncio.Future[Any], value: Any) -> None:
    """Set the result of a future of any loop."""

    def set_result() -> None:
        if not future.done():
            future.set_result(value)

    future.get_loop().call_soon_threadsafe(set_result)


class ConsoleApprovalHandler(ApprovalHandler):
    """Asks at the terminal, one question at a time: `y` approves, anything else denies and is told as the reason."""

    def __init__(self, *, input: TextIO | None = None, output: TextIO | None = None) -> None:
        self._input = input
        self._output = output
        self._turn = threading.Lock()

    async def request_approval(self, request: ApprovalRequest) -> ApprovalDecision:
        """Show the call and read one line.

        Raises:
            GraphwrightError: there is nobody to read from.
        """
        gone = threading.Event()
        try:
            line = await run_in_thread(self._ask, request, gone)
        finally:
            gone.set()
        word = line.strip()
        if word.lower() in ("y", "yes"):
            return ApprovalDecision(True, reviewer_id="console")
        return ApprovalDecision(False, reviewer_id="console", reason=None if word.lower() in ("", "n", "no") else word)

    def _ask(self, request: ApprovalRequest, gone: threading.Event) -> str:
        source, sink = self._input or sys.stdin, self._output or sys.stderr
        # A read cannot be broken off. A question that ran out of time keeps the turn until its line was typed, so
        # that a late "y" never answers the question after it.
        with self._turn:
            if gone.is_set():
                return ""
            # Escapes everything that could steer the terminal.
            print(f"\n{request.tool_name!r} wants to run with {_ascii(request.arguments)}", file=sink)
            print("Allow it? [y/N] ", end="", file=sink, flush=True)
            line = source.readline()
            if gone.is_set():
                print("This question has run out of time; your answer counts for nothing.", file=sink, flush=True)
        if not line:
            raise GraphwrightError("nobody can be asked: the input has ended")
        return line


def _ascii(value: Any) -> str:
    return dumps(value).encode("ascii", "backslashreplace").decode("ascii").replace("\x7f", "\\x7f")
