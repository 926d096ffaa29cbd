"""Wait for foreign code no longer than was agreed, whether it can be cancelled or not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["OutOfTime", "within"]

_GRACE_SECONDS = 0.5


class OutOfTime(TimeoutError):
    """The time that was agreed has passed."""


async def within(work: Coroutine[Any, Any, Any], seconds: float | None) -> Any:
    """Return what `work` returns. What does not stop when it is cancelled is left to itself.

    Raises:
        OutOfTime: it took longer than `seconds`.
        RuntimeError: it was cancelled from inside.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _stop(task)
        raise
    if not done:
        await _stop(task)
        raise OutOfTime(f"no answer within {seconds} seconds")
    if task.cancelled():
        raise RuntimeError("it was cancelled from inside")
    return task.result()


async def _stop(task: asyncio.Task[Any]) -> None:
    task.cancel()
    task.add_done_callback(_read)
    await asyncio.wait({task}, timeout=_GRACE_SECONDS)


def _read(task: asyncio.Task[Any]) -> None:
    """Take note of how a task ended that nobody waits for."""
    if not task.cancelled():
        task.exception()
