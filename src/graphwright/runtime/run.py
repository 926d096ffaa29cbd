"""The handle of a run that goes on by itself: read its events, wait for its result, or end it."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import Channel, settle
from graphwright._internal.ids import new_run_id
from graphwright.exceptions import InterruptError, RunAbortedError
from graphwright.run_events import number
from graphwright.run_scope import Spent, Stop
from graphwright.runtime.durable import Resume
from graphwright.runtime.request import RunRequest

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from graphwright.engine.result import RunResult
    from graphwright.engine.state import GraphState
    from graphwright.interrupts import Interrupt
    from graphwright.run_events import RunEvent

__all__ = ["Run", "RunEvents"]


class Run:
    """A run in a task of its own. Readers come and go without touching it.

    A run that pauses goes on in the same handle once `answer` has given all that it waits for.
    """

    def __init__(self, handler: Callable[[RunRequest], Awaitable[RunResult]], request: RunRequest) -> None:
        """Start the run in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._handler = handler
        self._request = request
        self._readers: weakref.WeakSet[RunEvents] = weakref.WeakSet()
        self._reported = 0
        self._state: GraphState | None = None
        self._answering = asyncio.Lock()
        if request.resume is None or request.resume.run_id is None:
            request.run_id = request.run_id or new_run_id()
        self.run_id: str = request.run_id or (request.resume.run_id if request.resume is not None else "") or ""
        self._task = self._launch(request)

    def _launch(self, request: RunRequest) -> asyncio.Task[RunResult]:
        request.emit = self._emit
        request.on_state = self._begin
        request.spent = Spent()
        self._request = request
        task: asyncio.Task[RunResult] = self._loop.create_task(_await(self._handler, request))
        task.add_done_callback(self._end)
        return task

    @property
    def done(self) -> bool:
        """Whether nothing is at work: the run has ended, well or not, or is paused."""
        return self._task.done()

    @property
    def pending(self) -> list[Interrupt]:
        """What the run waits for; empty unless it is paused."""
        if not self._task.done() or self._task.cancelled() or self._task.exception() is not None:
            return []
        return list(self._task.result().pending)

    @property
    def messages(self) -> list[BaseMessage]:
        """The conversation as it is now."""
        return list(self._state.messages) if self._state is not None else []

    def events(self) -> RunEvents:
        """Return an iterator over what the run reports from now on. It ends with the run and raises nothing of it.

        A pause is reported as `RunPaused`. The iterator ends there too, unless the answers were given before the
        next event was asked for. Events wait in memory until they are read: the run never waits for a reader.
        """
        reader = RunEvents(self)
        self._readers.add(reader)
        return reader

    async def result(self) -> RunResult:
        """Wait for the end of the run, or for its pause, and return its result. Cancelling the wait leaves it going.

        Raises:
            RunAbortedError: `abort()` ended it.
            GraphExecutionError: it has no answer.
        """
        task = self._task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            error = RunAbortedError(f"run {self.run_id} was ended before it had an answer", run_id=self.run_id)
            error.messages = self.messages
            raise error from None

    async def answer(self, interrupt_id: str, value: Any, *, by: str | None = None) -> None:
        """Answer one thing that the paused run waits for; the run goes on when it was the last.

        `by` says who answered, for the log. Returns when the run has taken the answer.

        Raises:
            InterruptError: the run does not wait for it, or the answer does not fit; the run waits as before.
        """
        async with self._answering:
            paused = self._task
            if not self.pending:
                raise InterruptError(f"run {self.run_id} is not paused, so there is nothing to answer")
            self.run_id = paused.result().run_id  # of a run that was named by its thread it is known only now
            taken = asyncio.Event()
            resume = Resume(run_id=self.run_id, answers={interrupt_id: value}, by=by, on_taken=taken.set)
            request = replace(self._request, input=None, run_id=self.run_id, resume=resume, journal=None)
            self._task = self._launch(request)
            waiting = self._loop.create_task(taken.wait())
            try:
                await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if self._task.done() and not self._task.cancelled():
                error = self._task.exception()
                if isinstance(error, InterruptError):
                    self._task = paused
                    raise error

    def abort(self, *, drain: bool = False) -> None:
        """End the run at once: its model call, its tools and everything below them. Safe from any thread.

        With `drain` the node that is at work runs to its end first. `await result()` waits until everything has
        cleaned up.
        """
        if drain:
            assert self._request.spent is not None
            self._request.spent.stop = Stop("abort", "abort() was called")
        else:
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
