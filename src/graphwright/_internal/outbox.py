"""Deliver things in the background: a bounded queue, one worker, and an account of what did not arrive."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar
from typing import Generic, TypeVar

from graphwright._internal.aio import settle

__all__ = ["Outbox"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_delivering: ContextVar[object] = ContextVar("graphwright_delivering", default=None)
"""The outbox for which the code that runs here delivers."""


class Outbox(Generic[T]):
    """Delivers items in order, one batch at a time. When it is full, a new item is refused and counted.

    `put` may be called from any thread. The worker lives in the event loop in which it was first needed; when that
    loop is gone, the next `put`, `drain` or `close` in another one starts a new worker with what is left.
    """

    def __init__(
        self, name: str, deliver: Callable[[list[T]], Awaitable[None]], *, max_size: int = 1000, batch: int = 1
    ) -> None:
        self.name = name
        self.refused = 0
        """How many items found no room."""
        self.failed: list[T] = []
        """What `deliver` raised for; the newest `max_size` of it."""
        self._deliver = deliver
        self._max_size = max_size
        self._batch = batch
        self._items: deque[T] = deque()
        self._busy: list[T] = []
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: asyncio.Task[None] | None = None

    def put(self, item: T) -> bool:
        """Queue an item and return at once; False when there is no room for it."""
        with self._lock:
            if len(self._items) + len(self._busy) >= self._max_size:
                self.refused += 1
                if self.refused == 1:
                    logger.warning("%s is full with %d; what is new is refused", self.name, self._max_size)
                return False
            self._items.append(item)
        self._wake()
        return True

    @property
    def waiting(self) -> list[T]:
        """What is not delivered yet."""
        with self._lock:
            return [*self._busy, *self._items]

    async def drain(self, timeout: float | None = None) -> bool:
        """Wait until everything queued was delivered or has failed; False when that took longer than `timeout`."""
        if _delivering.get() is self:
            return False  # asked for by what is being delivered, which would wait for itself
        try:
            async with asyncio.timeout(timeout):
                while self.waiting:
                    self._wake()
                    worker, loop = self._worker, self._loop
                    if worker is None or loop is not asyncio.get_running_loop():
                        await asyncio.sleep(0.01)  # it works in another loop
                    else:
                        await asyncio.wait({worker})
        except TimeoutError:
            return False
        return True

    async def close(self, timeout: float | None = None) -> list[T]:
        """Deliver what is queued within `timeout`, stop, and return what was not delivered, failures included."""
        await self.drain(timeout)
        worker = self._worker
        if worker is not None and not worker.done():
            if self._loop is asyncio.get_running_loop():
                worker.cancel()
                await settle(worker)
            elif self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(worker.cancel)
        with self._lock:
            left = [*self.failed, *self._busy, *self._items]
            self.failed.clear()
            self._busy.clear()
            self._items.clear()
        return left

    def _wake(self) -> None:
        """Make sure that a worker is at work, or will be."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        with self._lock:
            worker, loop = self._worker, self._loop
            if loop is not None and not loop.is_closed() and loop.is_running():
                if worker is not None and not worker.done():
                    return
                if loop is not here:
                    loop.call_soon_threadsafe(self._wake)
                    return
            if here is not None and self._items:
                self._loop = here
                # In a context of its own: it delivers for every caller, and not as the one who happened to be first.
                self._worker = here.create_task(self._work(), context=Context())

    async def _work(self) -> None:
        _delivering.set(self)
        while True:
            with self._lock:
                if not self._items:
                    # Under the lock: whoever queues next sees that this worker ends, and starts another.
                    self._worker = None
                    return
                self._busy = [self._items.popleft() for _ in range(min(self._batch, len(self._items)))]
            delivered = True
            try:
                await self._deliver(self._busy)
            except asyncio.CancelledError:
                with self._lock:
                    self._items.extendleft(reversed(self._busy))
                    self._busy = []
                raise
            except Exception:  # what is next may arrive
                delivered = False
                logger.warning("%s could not deliver %d", self.name, len(self._busy), exc_info=True)
            with self._lock:
                if not delivered:
                    self.failed = [*self.failed, *self._busy][-self._max_size :]
                self._busy = []
