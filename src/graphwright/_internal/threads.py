"""Run blocking calls in daemon threads of our own, so that a hung one stalls nobody and never keeps the process alive.

asyncio's default pool is small, shared with everybody else, and joined when the interpreter ends.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple

__all__ = ["ThreadPool", "run_in_thread"]

_Args = TypeVarTuple("_Args")
_Value = TypeVar("_Value")

_LIMIT = 64
_IDLE_SECONDS = 30.0

_in_worker: ContextVar[bool] = ContextVar("graphwright_in_worker", default=False)


async def run_in_thread(function: Callable[[*_Args], _Value], *args: *_Args) -> _Value:
    """Call a blocking function in a worker thread, with the caller's context variables, and return its value.

    When the caller is cancelled, a call that has not started never does; one that has is left to itself: its thread
    goes on, no longer counts against the pool's limit, and what it returns is dropped.
    """
    value: _Value = await _pool.run(function, *args)
    return value


class _Job:
    """One call: what to do, and the future that waits for it."""

    __slots__ = ("abandoned", "args", "context", "done", "function", "future", "loop")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.context: Context = copy_context()
        self.loop = asyncio.get_running_loop()
        # The result is `(value, error)`: a future cannot hold every exception, StopIteration for one.
        self.future: asyncio.Future[tuple[Any, BaseException | None]] = self.loop.create_future()
        self.done = False
        self.abandoned = False

    def work(self) -> tuple[Any, BaseException | None]:
        """Call the function in the context of whoever asked."""
        try:
            return self.context.run(_call_inside, self.function, self.args), None
        except BaseException as error:  # handed to the caller, who decides
            return None, error

    def deliver(self, outcome: tuple[Any, BaseException | None]) -> None:
        """Wake the caller, if there still is one."""
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self.loop.call_soon_threadsafe(_set_result, self.future, outcome)


class ThreadPool:
    """Daemon threads that are made on demand, up to a limit, and used again.

    A call made from inside a worker is not held back by the limit: the place it would wait for may be the one
    that waits for it.
    """

    def __init__(self, limit: int = _LIMIT, *, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._waiting: deque[_Job] = deque()
        self._taken = 0

    @property
    def taken(self) -> int:
        """How many threads count against the limit now, idle ones included."""
        return self._taken

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Do what `run_in_thread` says, in this pool."""
        job = _Job(function, args)
        self._submit(job, within_limit=not _in_worker.get())
        try:
            value, error = await job.future
        except asyncio.CancelledError:
            self._abandon(job)
            raise
        if error is None:
            return value
        try:
            raise error
        finally:
            del error, job  # the traceback holds this frame: without this, a cycle

    def _submit(self, job: _Job, *, within_limit: bool) -> None:
        with self._lock:
            if self._idle:
                self._idle.pop().inbox.put(job)
                return
            if within_limit and self._taken >= self._limit:
                self._waiting.append(job)
                return
            self._taken += 1
        self._start(job)

    def _start(self, job: _Job) -> None:
        try:
            _Worker(self, job).start()
        except Exception as error:  # no more threads: told to whoever waits for the job
            with self._lock:
                self._taken -= 1
            job.deliver((None, error))

    def _abandon(self, job: _Job) -> None:
        with self._lock:
            if job.done or job.abandoned:
                return
            job.abandoned = True
            if job in self._waiting:
                self._waiting.remove(job)
                return
            following = self._waiting.popleft() if self._waiting and self._taken <= self._limit else None
            if following is None:
                self._taken -= 1
        if following is not None:
            self._start(following)

    def release(self, worker: _Worker, finished: _Job) -> bool:
        """Give a worker that has done its job the next one, or make it idle; false when its thread is to end."""
        with self._lock:
            finished.done = True
            if finished.abandoned:
                return False
            if self._taken > self._limit:
                self._taken -= 1
                return False
            if self._waiting:
                worker.inbox.put(self._waiting.popleft())
            else:
                self._idle.append(worker)
        return True

    def next_job(self, worker: _Worker) -> _Job | None:
        """Wait for a worker's next job; `None` when there was none for so long that its thread is to end."""
        try:
            return worker.inbox.get(timeout=self._idle_seconds)
        except queue.Empty:
            pass
        with self._lock:
            if worker in self._idle:
                self._idle.remove(worker)
                self._taken -= 1
                return None
        return worker.inbox.get()

    def _forget_threads(self) -> None:
        """Start over in a forked child, where the threads are gone."""
        self._lock = threading.Lock()
        self._idle.clear()
        self._waiting.clear()
        self._taken = 0


class _Worker(threading.Thread):
    """One thread of a pool, which does one job after the other."""

    def __init__(self, pool: ThreadPool, first: _Job) -> None:
        super().__init__(name="graphwright-worker", daemon=True)
        self.inbox: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._pool = pool
        self._first: _Job | None = first

    def run(self) -> None:
        """Work until the pool has no more use for this thread."""
        job, self._first = self._first, None
        while job is not None:
            outcome = job.work()
            # Idle before the caller is woken, so that its next call finds this thread and makes no new one.
            goes_on = self._pool.release(self, job)
            job.deliver(outcome)
            del outcome, job
            job = self._pool.next_job(self) if goes_on else None


def _call_inside(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    _in_worker.set(True)
    return function(*args)


def _set_result(future: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
    if not future.done():
        future.set_result(outcome)


_pool = ThreadPool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool._forget_threads)
