"""The handle of a run that goes on by itself: read its events, wait for its result, or end it."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import Channel, settle
from graphwright._internal.ids import new_run_id
from graphwright.exceptions import RunAbortedError
from graphwright.run_events import number
from graphwright.runtime.request import RunRequest

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from graphwright.engine.result import RunResult
    from graphwright.engine.state import GraphState
    from graphwright.run_events import RunEvent

__all__ = ["Run", "RunEvents"]


class Run:
    """A run in a task of its own. Readers come and go without touching it."""

    def __init__(self, handler: Callable[[RunRequest], Awaitable[RunResult]], request: RunRequest) -> None:
        """Start the run in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._readers: weakref.WeakSet[RunEvents] = weakref.WeakSet()
        self._reported = 0
        self._state: GraphState | None = None
        request.emit = self._emit
        request.on_state = self._begin
        request.run_id = self.run_id = request.run_id or new_run_id()
        self._task: asyncio.Task[RunResult] = self._loop.create_task(_await(handler, request))
        self._task.add_done_callback(self._end)

    @property
    def done(self) -> bool:
        """Whether the run has ended, well or not."""
        return self._task.done()

    @property
    def messages(self) -> list[BaseMessage]:
        """The conversation as it is now."""
        return list(self._state.messages) if self._state is not None else []

    def events(self) -> RunEvents:
        """Return an iterator over what the run reports from now on. It ends with the run and raises nothing of it.

        Events wait in memory until they are read: the run never waits for a reader.
        """
        reader = RunEvents(self)
        self._readers.add(reader)
        return reader

    async def result(self) -> RunResult:
        """Wait for the end of the run and return its result. Cancelling the wait leaves the run going.

        Raises:
            RunAbortedError: `abort()` ended it.
            GraphExecutionError: it has no answer.
        """
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise
            error = RunAbortedError(f"run {self.run_id} was ended before it had an answer", run_id=self.run_id)
            error.messages = self.messages
            raise error from None

    def abort(self) -> None:
        """End the run at once: its model call, its tools and everything below them. Safe from any thread.

        `await result()` waits until they have cleaned up.
        """
        self._loop.call_soon_threadsafe(self._task.cancel)

    async def aclose(self) -> None:
        """End the run and wait for its clean-up."""
        if not self._task.done():
            self.abort()
            await settle(self._task)

    def _begin(self, state: GraphState) -> None:
        self._state = state

    async def _emit(self, event: RunEvent) -> None:
        self._reported += 1
        number(event, self._reported)
        for reader in tuple(self._readers):
            await reader._channel.send(event)

    def _end(self, _: Any) -> None:
        for reader in tuple(self._readers):
            reader._channel.wake_reader()


class RunEvents(AsyncIterator[Any]):
    """One reader of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._channel: Channel[RunEvent] = Channel(ahead=None)

    def __aiter__(self) -> RunEvents:
        return self

    async def __anext__(self) -> RunEvent:
        event = await self._channel.receive(lambda: self._run.done)
        if event is None:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """Read no more; the run goes on."""
        self._run._readers.discard(self)
        self._channel.close()


async def _await(handler: Callable[[RunRequest], Awaitable[RunResult]], request: RunRequest) -> RunResult:
    return await handler(request)
