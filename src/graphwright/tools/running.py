"""Run one call of a tool in a task of its own, within its time, and end it cleanly when it has to end."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Coroutine
from contextvars import Context
from functools import partial
from inspect import isawaitable
from typing import Any

from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ToolError
from graphwright.tools.base import Tool
from graphwright.types import ToolCall

__all__ = ["GRACE_SECONDS", "Raised", "run_tool", "start_task"]

logger = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
"""How long a cancelled call may take for its clean-up before it is left behind."""

# The event loop keeps no strong reference to a task, so a call that is left behind is kept here until it ends.
_left_behind: set[asyncio.Task[Any]] = set()


class Raised:
    """What a call raised, as a value: in a task, `KeyboardInterrupt` would go straight through the event loop."""

    __slots__ = ("error", "goes_on")

    def __init__(self, error: BaseException, *, goes_on: bool = False) -> None:
        self.error = error
        self.goes_on = goes_on
        """Whether the call is left behind while it may still be at work, so that its effect is not known."""


if sys.version_info >= (3, 12):

    def start_task(
        coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """Start a task; it runs at once until it first waits."""
        return asyncio.Task(coroutine, loop=loop, context=context, eager_start=True)

else:

    def start_task(
        coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """Start a task."""
        return asyncio.Task(coroutine, loop=loop, context=context)


def run_tool(
    tool: Tool,
    args: dict[str, Any],
    call: ToolCall,
    config: dict[str, Any] | None,
    timeout: float | None,
    context: Context | None = None,
) -> Coroutine[Any, Any, Any]:
    """Return a coroutine that runs one call and returns what the tool returned, or `Raised`.

    When the caller is cancelled, the call is cancelled too and waited for, and `CancelledError` is raised whatever
    the tool made of it.
    """
    if not tool.blocking:
        return _in_task(_on_loop(tool, args, call, config), tool, timeout, context)
    if timeout is not None or context is not None:
        return _in_task(_in_thread(tool, args, call, config), tool, timeout, context)
    return _blocking(tool, args, call, config)


async def _blocking(tool: Tool, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
    # The thread has the context variables and the cancellation in hand, so a task would add nothing but its time.
    task = asyncio.current_task()
    asked = task.cancelling() if task is not None else 0
    value = await _in_thread(tool, args, call, config, awaiting=False)
    if task is not None and task.cancelling() > asked:
        raise asyncio.CancelledError
    return await _in_task(_awaited(value), tool, None, None) if isawaitable(value) else value


async def _in_task(body: Coroutine[Any, Any, Any], tool: Tool, timeout: float | None, context: Context | None) -> Any:
    loop = asyncio.get_running_loop()
    task = start_task(body, loop, context)
    if not task.done():
        wake = loop.create_future()
        task.add_done_callback(partial(_wake, wake))
        timer = None if timeout is None else loop.call_later(timeout, _wake, wake)
        try:
            await wake
        except asyncio.CancelledError:
            await _stop(task, tool)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not task.done():
            return await _time_out(task, tool, timeout)
    try:
        return task.result()
    except asyncio.CancelledError as error:
        return Raised(error)


async def _on_loop(tool: Tool, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
    try:
        return await tool.run(args, call, config)
    except BaseException as error:  # judged by whoever waits for this task
        return Raised(error)


async def _in_thread(
    tool: Tool, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None, *, awaiting: bool = True
) -> Any:
    try:
        value = await run_in_thread(tool.run_blocking, args, call, config)
        return await value if awaiting and isawaitable(value) else value
    except BaseException as error:  # as in _on_loop
        return Raised(error)


async def _awaited(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except BaseException as error:  # as in _on_loop
        return Raised(error)


def _wake(wake: asyncio.Future[None], task: Any = None) -> None:
    if not wake.done():
        wake.set_result(None)


async def _time_out(task: asyncio.Task[Any], tool: Tool, timeout: float | None) -> Raised:
    text = f"{tool.name!r} timed out after {timeout:g} s"
    goes_on = True
    if not await _stop(task, tool):
        text += " and did not stop; it may still be at work"
    elif tool.blocking:
        text += "; what it does in its thread cannot be stopped and may still be at work"
        logger.warning("tool %r timed out after %g s; its thread is left to itself", tool.name, timeout)
    else:
        goes_on = False
    return Raised(ToolError(text), goes_on=goes_on)


async def _stop(task: asyncio.Task[Any], tool: Tool) -> bool:
    """Cancel a task, wait for its end, and say whether it came within the grace time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + GRACE_SECONDS
    cancelled_again = False
    task.cancel()
    while not task.done() and loop.time() < end:
        try:
            await asyncio.wait((task,), timeout=end - loop.time())
        except asyncio.CancelledError:
            # The wait is short and leaves nothing half done, so it is finished first.
            cancelled_again = True
    if not task.done():
        _left_behind.add(task)
        task.add_done_callback(_left_behind.discard)
        logger.warning(
            "tool %r did not stop within %g s after it was cancelled; it is left behind", tool.name, GRACE_SECONDS
        )
    if cancelled_again:
        raise asyncio.CancelledError
    return task.done()
