"""Tell whoever made a call how far it is: in order, in the caller's own event loop, and never in the server's way."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from graphwright._internal.aio import settle

__all__ = ["OnProgress", "Report", "following"]

logger = logging.getLogger(__name__)

OnProgress = Callable[[str, str, float, float | None, str | None], Any]
"""`(server, tool, progress, total, message)`, sync or async; it runs with the context variables of the call."""

Report = Callable[[float, float | None, str | None], None]

_MOST_WAITING = 64


@asynccontextmanager
async def following(on_progress: OnProgress, server: str, tool: str) -> AsyncIterator[Report]:
    """Yield what takes the reports of one call, from any loop; all of them are delivered when the block ends well.

    A slow listener holds up its own call and no other one; when 64 reports wait for it, the oldest are left out.
    """
    follower = _Follower(on_progress, server, tool)
    try:
        yield follower.report
    except BaseException:
        await follower.cancel()
        raise
    await follower.finish()


class _Follower:
    def __init__(self, on_progress: OnProgress, server: str, tool: str) -> None:
        self._on_progress, self._server, self._tool = on_progress, server, tool
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, float | None, str | None]] = deque(maxlen=_MOST_WAITING)
        self._more = asyncio.Event()
        self._ended = False
        # Made here, so that it has the context variables of the call.
        self._task = self._loop.create_task(self._deliver(), name=f"mcp {server} progress")

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report."""
        entry = (progress, total, message)
        if _running_loop() is self._loop:
            self._take(entry)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, entry)

    def _take(self, entry: tuple[float, float | None, str | None]) -> None:
        if not self._ended:
            self._waiting.append(entry)
            self._more.set()

    async def finish(self) -> None:
        """Wait until what was reported is delivered."""
        self._ended = True
        self._more.set()
        try:
            await self._task
        except asyncio.CancelledError:
            await self.cancel()
            raise

    async def cancel(self) -> None:
        """Leave the rest out."""
        self._ended = True
        self._task.cancel()
        await settle(self._task)

    async def _deliver(self) -> None:
        while True:
            while self._waiting:
                try:
                    made = self._on_progress(self._server, self._tool, *self._waiting.popleft())
                    if inspect.isawaitable(made):
                        await made
                except Exception:  # foreign code: the call goes on without it
                    logger.exception("the report of a tool's progress failed")
            if self._ended:
                return
            await self._more.wait()
            self._more.clear()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
