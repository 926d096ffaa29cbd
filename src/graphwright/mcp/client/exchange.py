"""What is known of one request on its way, so that a failure can be told for what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["Exchange", "calling_loop", "current_exchange"]

T = TypeVar("T")

calling_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("graphwright_mcp_caller", default=None)
"""The loop of whoever makes the request, where the sessions live on another one."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request to a server and what became of it.

    The request's own task and the tasks that carry it over the wire see the same object, by a context variable.
    """

    sent: bool = False
    """Whether the server may have got it."""

    status: int | None = None
    """The HTTP status of the answer."""

    error: Exception | None = None
    """What the wire failed with."""

    signal: BaseException | None = None
    """What the request ends with in place of an answer, for one that a person is to be asked for first."""

    samples: int = 0
    """How many completions the server has asked for."""

    clock: asyncio.Timeout | None = None
    """The time that the request has."""

    seconds: float = 0.0
    """How long that is."""

    context: Context = field(default_factory=copy_context)
    """The context variables of whoever asks."""

    async def at_home(self, asking: Coroutine[Any, Any, T]) -> T:
        """Await in the loop of whoever makes the request: what it asks for belongs there."""
        home = self.context.get(calling_loop)
        if home is None or home is asyncio.get_running_loop():
            return await asking
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking, home))

    def stop_clock(self) -> None:
        """Let no time count while somebody is asked."""
        if self.clock is not None:
            self.clock.reschedule(None)

    def start_clock(self) -> None:
        """Give the request its full time again."""
        if self.clock is not None and self.signal is None:
            self.clock.reschedule(asyncio.get_running_loop().time() + self.seconds)

    def end_with(self, signal: BaseException) -> None:
        """End the request now, raising `signal` in the task that waits for it."""
        self.signal = signal
        if self.clock is not None:
            self.clock.reschedule(asyncio.get_running_loop().time())


current_exchange: ContextVar[Exchange | None] = ContextVar("graphwright_mcp_exchange", default=None)
"""The request that goes on here."""
