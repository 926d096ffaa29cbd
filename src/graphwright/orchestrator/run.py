"""The two ways to watch a run of a bot: a handle that lets it go on by itself, and a stream that draws it along."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import Stream, settle
from graphwright.engine.execution import runs_ahead
from graphwright.exceptions import GraphExecutionError, RunAbortedError
from graphwright.orchestrator.response import BotResponse
from graphwright.orchestrator.views import BotView
from graphwright.run_events import RunPaused, number
from graphwright.run_scope import Spent, Stop
from graphwright.runtime import Run, RunRequest

if TYPE_CHECKING:
    from graphwright.orchestrator.bot import OrchestratorBot

__all__ = ["BotRun", "BotStream"]


class BotRun(Run):
    """The handle of a run of a bot. `result()` is its response."""

    def __init__(self, bot: OrchestratorBot, request: RunRequest) -> None:
        self._bot = bot
        self._states: list[Any] = []
        self._rejection: BotResponse | None = None
        super().__init__(self._guarded, request)

    async def _guarded(self, request: RunRequest) -> Any:
        seen = request.on_state

        def on_state(state: Any) -> None:
            self._states.append(state)
            if seen is not None:
                seen(state)

        request.on_state = on_state
        self._rejection = await self._bot._rejected(request)
        if self._rejection is not None:
            raise _Rejected
        return await self._bot._handler(request)

    @property
    def pending(self) -> list[Any]:
        """What the run waits for; empty unless it is paused."""
        return [] if self._rejection is not None else super().pending

    async def result(self) -> BotResponse:  # type: ignore[override]
        """Wait for the end of the run, or for its pause, and return its response. Cancelling leaves the run going."""
        try:
            result = await super().result()
        except _Rejected:
            assert self._rejection is not None
            return self._rejection
        except (GraphExecutionError, RunAbortedError) as error:
            return self._bot.response_after(self._request, self._states, error)
        response = await self._bot.response_for(self._request, self._states, result)
        self._bot._note_pause(response)
        return response


class _Rejected(Exception):
    pass


class _Aborted:
    """Stands for the result of a run that `abort()` ended."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id


class BotStream(Stream[tuple[str, Any]]):
    """The stream of a run of a bot. The run goes on only as far as it is read."""

    def __init__(self, bot: OrchestratorBot, request: RunRequest, *, is_new: bool) -> None:
        self._bot = bot
        self._thread = request.thread_id or ""
        view = BotView(bot.get_graph_topology(), self._thread, is_new=is_new)
        self._leg = _Leg(bot, request)
        super().__init__(self._leg.drive, view, finish=self._leg.finish, may_run_ahead=runs_ahead, stamp=number)

    def abort(self, *, drain: bool = False) -> None:
        """End the run; the stream ends with the `aborted` event."""
        self._leg.abort(drain=drain)

    async def __anext__(self) -> tuple[str, Any]:
        try:
            mode, payload = await super().__anext__()
        except BaseException:
            self._bot._closed(self)
            raise
        if mode == "updates" and "__interrupt__" in payload:
            self._bot._armed.saw_pause(self._thread, [item.id for item in payload["__interrupt__"]])
        return mode, payload

    async def asend(self, value: Any) -> tuple[str, Any]:
        """Do what `__anext__` does, as an async generator would."""
        return await self.__anext__()

    async def athrow(self, *error: Any) -> Any:
        """End the run, and raise the error."""
        await self.aclose()
        raise error[0]

    async def aclose(self) -> None:
        """End the run, wait for its clean-up, and read no more."""
        self._bot._closed(self)
        await super().aclose()


class _Leg:
    """The work behind a stream. It knows nothing of the stream, so that one that is dropped is gone at once."""

    def __init__(self, bot: OrchestratorBot, request: RunRequest) -> None:
        self._bot = bot
        self._request = request
        self._spent = request.spent = Spent()
        self._work: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._aborted = self._paused = False

    def abort(self, *, drain: bool) -> None:
        self._aborted = True
        if drain:
            self._spent.stop = Stop("abort", "abort() was called")
        elif self._work is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._work.cancel)

    async def drive(self, emit: Any) -> Any:
        self._loop = asyncio.get_running_loop()
        request = self._request
        states: list[Any] = []

        async def reported(event: Any) -> None:
            self._paused = type(event) is RunPaused
            await emit(event)

        request.emit = reported
        request.on_state = states.append
        work = self._work = asyncio.ensure_future(self._answered(request))
        if self._aborted:
            work.cancel()
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if work.cancelled() and self._aborted:
                # A run that is paused is not at work, so there is nothing to end.
                return None if self._paused else _Aborted(request.run_id or "")
            work.cancel()
            await settle(work)
            raise
        except RunAbortedError:
            return _Aborted(request.run_id or "")
        except GraphExecutionError as error:
            error.response = self._bot.response_after(request, states, error)
            if error.response.status == "limit":
                return error.response
            raise

    async def _answered(self, request: RunRequest) -> Any:
        rejected = await self._bot._rejected(request)
        if rejected is not None:
            return rejected
        if self._aborted:
            raise RunAbortedError("abort() was called", run_id=request.run_id or "")
        return await self._bot._handler(request)

    def finish(self, result: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(result, _Aborted):
            yield "graph", {"type": "aborted", "run_id": result.run_id}
        elif not isinstance(result, BotResponse):
            return
        elif result.status == "rejected":
            yield (
                "graph",
                {
                    "type": "guard_rejected",
                    "run_id": result.run_id,
                    "stage": "input",
                    **result["rejected_by"],
                    "guard_events": result.guard_events,
                },
            )
        else:
            yield "graph", {"type": "limit_reached", "run_id": result.run_id, "limit": self._bot.recursion_limit}
