"""Turn a coroutine that reports to a sink into something that a reader can iterate over.

The coroutine runs in one task of its own, so a reader never sees its context variables, and a reader that leaves
can end it. End and error are the task's result, never an item.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

__all__ = ["Channel", "Stream", "call_maybe_async", "settle"]

T = TypeVar("T")
Out = TypeVar("Out")


class Channel(Generic[T]):
    """Hand events to one reader: most of them one at a time, some a little ahead."""

    def __init__(
        self,
        *,
        ahead: int | None = 64,
        may_run_ahead: Callable[[T], bool] = lambda _: False,
        stamp: Callable[[T, int], None] | None = None,
    ) -> None:
        self._ahead = ahead
        self._stamp = stamp
        self._may_run_ahead = may_run_ahead
        self._items: deque[T] = deque()
        self._sent = 0
        self._asked = 0
        self._closed = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def send(self, item: T) -> None:
        """Hand `item` over, and return when the reader is ready for more.

        An item that may run ahead returns while fewer than `ahead` are unread; any other returns when the reader
        asks for the item after it. With `ahead=None` nothing ever waits. After `close` it returns at once.
        """
        if self._closed:
            return
        self._items.append(item)
        self._sent += 1
        if self._stamp is not None:
            self._stamp(item, self._sent)
        self.wake_reader()
        if self._ahead is None:
            return
        needed = self._sent + 1 if not self._may_run_ahead(item) else self._sent - self._ahead + 1
        if self._asked < needed:
            waiting = asyncio.get_running_loop().create_future()
            self._writers.append((needed, waiting))
            await waiting

    async def receive(self, ended: Callable[[], bool]) -> T | None:
        """Return the next item, or `None` when nothing is left and `ended()` is true."""
        self._asked += 1
        if self._writers:
            self._wake_writers()
        while not self._items:
            if ended():
                return None
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._items.popleft()

    def wake_reader(self) -> None:
        """Let a waiting reader look again."""
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def close(self) -> None:
        """Drop what is unread and let every writer go on."""
        self._closed = True
        self._items.clear()
        for _, waiting in self._writers:
            if not waiting.done():
                waiting.set_result(None)
        self._writers.clear()

    def _wake_writers(self) -> None:
        kept: deque[tuple[int, asyncio.Future[None]]] = deque()
        for needed, waiting in self._writers:
            if self._asked < needed:
                kept.append((needed, waiting))
            elif not waiting.done():
                waiting.set_result(None)
        self._writers = kept


class Stream(AsyncIterator[Out]):
    """Run a coroutine and iterate over what it reports, as `view` shows it.

    Leaving the iteration ends the coroutine: `aclose()` cancels it and waits for its clean-up; a reader that just
    drops the stream cancels it too.
    """

    def __init__(
        self,
        start: Callable[[Callable[[Any], Awaitable[None]]], Coroutine[Any, Any, Any]],
        view: Callable[[Any], Iterable[Out]],
        *,
        finish: Callable[[Any], Iterable[Out]] | None = None,
        fail: Callable[[BaseException], Iterable[Out]] | None = None,
        may_run_ahead: Callable[[Any], bool] = lambda _: False,
        stamp: Callable[[Any, int], None] | None = None,
    ) -> None:
        self._start: Any = start
        self._view = view
        self._finish = finish
        self._fail = fail
        self._channel: Channel[Any] = Channel(may_run_ahead=may_run_ahead, stamp=stamp)
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: deque[Out] = deque()
        self._error: BaseException | None = None
        self._over = False

    def __aiter__(self) -> Stream[Out]:
        return self

    async def __anext__(self) -> Out:
        while not self._ready:
            if self._over:
                error, self._error = self._error, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
            if self._task is None:
                self._begin()
            task = self._task
            assert task is not None
            try:
                event = await self._channel.receive(task.done)
            except asyncio.CancelledError:
                await self.aclose()
                raise
            if event is None:
                if not self._over:
                    self._end(task)
            else:
                self._ready.extend(self._view(event))
        return self._ready.popleft()

    async def aclose(self) -> None:
        """End the run, wait for its clean-up, and read no more."""
        self._over = True
        self._ready.clear()
        self._error = None
        self._channel.close()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await settle(self._task)

    def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        channel = self._channel
        self._task = self._loop.create_task(self._start(channel.send))
        self._start = None
        self._task.add_done_callback(lambda _: channel.wake_reader())

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._over = True
        if task.cancelled():
            self._error = asyncio.CancelledError()
            return
        error = task.exception()
        if error is not None:
            self._error = error
            if self._fail is not None:
                self._ready.extend(self._fail(error))
        elif self._finish is not None:
            self._ready.extend(self._finish(task.result()))

    def __del__(self) -> None:
        task, loop = self._task, self._loop
        if task is not None and loop is not None and not task.done() and not loop.is_closed():
            self._channel.close()
            loop.call_soon_threadsafe(task.cancel)


async def settle(*tasks: asyncio.Task[Any]) -> None:
    """Wait until every task is done, whatever becomes of it; a cancellation meanwhile is passed on afterwards."""
    cancelled: asyncio.CancelledError | None = None
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        try:
            _, waiting = await asyncio.wait(waiting)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in waiting:
                task.cancel()
            waiting = {task for task in waiting if not task.done()}
    for task in tasks:
        if not task.cancelled():
            task.exception()
    if cancelled is not None:
        raise cancelled


async def call_maybe_async(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that may be sync or async and return its value."""
    value = function(*args)
    return await value if inspect.isawaitable(value) else value
