"""Run the async part of a command, so that SIGTERM and Ctrl-C cancel it and wait for its clean-up."""

from __future__ import annotations

import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from graphwright.cli._signals import note_termination, was_terminated

__all__ = ["run_async"]

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Do what `asyncio.run` does, and cancel the work when SIGTERM comes, as Ctrl-C does.

    Raises:
        KeyboardInterrupt: a signal ended the work, which has cleaned up.
    """
    # Here, for asyncio takes a while to load, and --help has no use for it.
    import asyncio

    return asyncio.run(_terminable(work))


async def _terminable(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def end() -> None:
        note_termination()
        task.cancel()

    before = signal.getsignal(signal.SIGTERM)
    try:
        loop.add_signal_handler(signal.SIGTERM, end)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        return await work
    try:
        return await work
    except asyncio.CancelledError:
        if was_terminated():
            raise KeyboardInterrupt from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)
