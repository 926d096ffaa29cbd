"""Run a coroutine for a caller that is not async, wherever the caller stands.

All such coroutines share one event loop in a background thread, so that clients which belong to a loop keep
working from one call to the next, and a caller inside a running loop is served as well.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["run_sync"]

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end in the caller's context and return its value.

    The calling thread waits; interrupting it cancels the coroutine and waits for its clean-up.

    Raises:
        RuntimeError: called from the background loop itself, which would wait for ever.
    """
    loop = _background_loop()
    if threading.current_thread() is _thread:
        coroutine.close()
        raise RuntimeError(
            "a sync call from code that already runs in the background loop would wait for ever; await the async method"
        )
    done: Future[T] = Future()
    context = contextvars.copy_context()
    task: list[asyncio.Task[T]] = []

    def begin() -> None:
        started = loop.create_task(coroutine, context=context)
        task.append(started)
        started.add_done_callback(finish)

    def finish(finished: asyncio.Task[T]) -> None:
        if finished.cancelled():
            done.set_exception(asyncio.CancelledError())
        elif (error := finished.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(finished.result())

    loop.call_soon_threadsafe(begin)
    try:
        return done.result()
    except BaseException:
        if not done.done():
            loop.call_soon_threadsafe(lambda: task[0].cancel() if task else None)
            done.exception()
        raise


_thread: threading.Thread | None = None


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="graphwright-sync", daemon=True)
            _thread.start()
        return _loop
