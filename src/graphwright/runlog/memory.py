"""A run log in the memory of this process: for runs that need not outlive it, and for tests."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

from graphwright.exceptions import ConfigurationError, SessionAccessDenied, ThreadBusy
from graphwright.runlog._limits import check_retention
from graphwright.runlog.base import ANY_OWNER, BusyPolicy, Row, RunInfo, RunLog, RunStatus, RunWriter, ThreadInfo
from graphwright.runlog.lease import when_free

__all__ = ["MemoryRunLog"]

_log = logging.getLogger(__name__)


class _Run:
    __slots__ = ("info", "rows", "thread")

    def __init__(self, info: RunInfo, thread: _Thread) -> None:
        self.info = info
        self.thread = thread
        self.rows: dict[tuple[str, str, str], Row] = {}


class _Thread:
    __slots__ = ("_writer", "info", "runs")

    def __init__(self, info: ThreadInfo) -> None:
        self.info = info
        self.runs: list[_Run] = []
        self._writer: weakref.ref[_MemoryWriter] | None = None

    @property
    def writer(self) -> _MemoryWriter | None:
        """Who is at work; nobody when the writer was dropped without being closed."""
        return self._writer() if self._writer is not None else None

    def hand_to(self, writer: _MemoryWriter | None) -> None:
        """Give the lease to a writer, or to nobody."""
        self._writer = weakref.ref(writer) if writer is not None else None

    @property
    def status(self) -> RunStatus:
        """That of its latest run."""
        return self.runs[-1].info.status


class MemoryRunLog(RunLog):
    """Keep runs in memory, up to `max_threads` threads.

    Rows hold the very objects they were given; nothing is encoded, so nothing is refused. When there are more
    threads than `max_threads`, those written longest ago are dropped: never one that a run is at work on, and one
    that is paused only when nothing else is left, with a warning.
    """

    durable = False

    def __init__(self, max_threads: int = 1000) -> None:
        if max_threads < 1:
            raise ConfigurationError(f"max_threads is {max_threads!r}; give the number of threads to keep, from 1")
        self._max_threads = max_threads
        self._threads: dict[str, _Thread] = {}
        """In the order in which they were last written."""
        self._runs: dict[str, _Run] = {}

    async def begin(self, info: RunInfo, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the thread's lease and create the run as the thread's latest."""

        async def take() -> RunWriter:
            return self._begin(info)

        return await when_free(take, on_busy, wait_seconds)

    def _begin(self, info: RunInfo) -> RunWriter:
        thread = self._threads.get(info.thread_id)
        if thread is not None:
            if thread.info.owner != info.owner:
                raise SessionAccessDenied(f"thread {info.thread_id!r} belongs to another owner; begin one of your own")
            _refuse_busy(thread)
        if info.run_id in self._runs:
            raise ConfigurationError(f"there is a run {info.run_id!r} already; give every run an id of its own")
        now = time.time()
        if thread is None:
            thread = self._new_thread(info, now)
        run = _Run(replace(info, number=len(thread.runs) + 1, created_at=now, updated_at=now), thread)
        thread.runs.append(run)
        self._runs[info.run_id] = run
        return self._writer_of(run)

    def _new_thread(self, info: RunInfo, now: float) -> _Thread:
        if len(self._threads) >= self._max_threads:
            self._drop_one()
        made = ThreadInfo(thread_id=info.thread_id, owner=info.owner, title=info.title, created_at=now)
        self._threads[info.thread_id] = thread = _Thread(made)
        return thread

    def _drop_one(self) -> None:
        idle = [thread for thread in self._threads.values() if thread.writer is None]
        dropped = next((thread for thread in idle if thread.status != "paused"), None)
        if dropped is None and idle:
            dropped = idle[0]
            _log.warning(
                "thread %r is paused and was dropped: the log in memory keeps %d threads; raise max_threads, or use "
                "a SQLiteRunLog",
                dropped.info.thread_id,
                self._max_threads,
            )
        if dropped is not None:
            self._drop(dropped)

    def _drop(self, thread: _Thread) -> None:
        del self._threads[thread.info.thread_id]
        for run in thread.runs:
            del self._runs[run.info.run_id]

    async def reopen(self, run_id: str, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the lease again to go on with a run."""

        async def take() -> RunWriter:
            run = self._runs.get(run_id)
            if run is None:
                raise KeyError(run_id)
            _refuse_busy(run.thread)
            run.info.status = "running"
            return self._writer_of(run)

        return await when_free(take, on_busy, wait_seconds)

    def _writer_of(self, run: _Run) -> RunWriter:
        writer = _MemoryWriter(self, run)
        run.thread.hand_to(writer)
        self.touch(run, time.time())
        return writer

    def touch(self, run: _Run, now: float) -> None:
        """Note that a run was written."""
        run.info.updated_at = run.thread.info.updated_at = now
        thread_id = run.thread.info.thread_id
        self._threads[thread_id] = self._threads.pop(thread_id)

    async def info(self, run_id: str) -> RunInfo | None:
        """Return what is known of a run."""
        run = self._runs.get(run_id)
        return replace(run.info) if run is not None else None

    async def latest(self, thread_id: str) -> RunInfo | None:
        """Return the latest run of a thread."""
        thread = self._threads.get(thread_id)
        return replace(thread.runs[-1].info) if thread is not None else None

    async def rows(self, run_id: str) -> list[Row]:
        """Return the rows of a run in order; empty for an unknown one."""
        run = self._runs.get(run_id)
        return list(run.rows.values()) if run is not None else []

    async def thread_rows(self, thread_id: str) -> list[tuple[RunInfo, list[Row]]]:
        """Return the runs of a thread with their rows, oldest first."""
        thread = self._threads.get(thread_id)
        return [(replace(run.info), list(run.rows.values())) for run in thread.runs] if thread is not None else []

    async def runs(
        self,
        *,
        thread_id: str | None = None,
        owner: Any = ANY_OWNER,
        status: RunStatus | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> list[RunInfo]:
        """Return runs, the latest first."""
        if thread_id is None:
            candidates: Iterable[_Run] = reversed(self._runs.values())
        else:
            thread = self._threads.get(thread_id)
            candidates = reversed(thread.runs) if thread is not None else ()
        found = (
            replace(run.info)
            for run in candidates
            if (owner is ANY_OWNER or run.info.owner == owner) and (status is None or run.info.status == status)
        )
        return list(islice(found, offset, offset + limit))

    async def threads(self, *, owner: Any = ANY_OWNER, limit: int = 50, offset: int = 0) -> list[ThreadInfo]:
        """Return threads, the one written last first."""
        found = [
            replace(thread.info, runs=len(thread.runs), status=thread.status)
            for thread in reversed(self._threads.values())
            if owner is ANY_OWNER or thread.info.owner == owner
        ]
        return found[offset : offset + limit]

    async def delete_thread(self, thread_id: str) -> bool:
        """Delete a thread with its runs; return whether there was one."""
        thread = self._threads.get(thread_id)
        if thread is None:
            return False
        _refuse_busy(thread)
        self._drop(thread)
        return True

    async def prune(self, *, older_than_seconds: float | None = None, keep_threads: int | None = None) -> int:
        """Delete threads that were not written for long, or beyond the newest `keep_threads`; return how many."""
        check_retention(older_than_seconds, keep_threads)
        oldest = time.time() - older_than_seconds if older_than_seconds is not None else float("-inf")
        newest_first = list(reversed(self._threads.values()))
        kept = keep_threads if keep_threads is not None else len(newest_first)
        doomed = [
            thread
            for place, thread in enumerate(newest_first)
            if (place >= kept or thread.info.updated_at < oldest)
            and thread.writer is None
            and thread.status != "paused"
        ]
        for thread in doomed:
            self._drop(thread)
        return len(doomed)

    async def aclose(self) -> None:
        """Keep everything: what is in memory can still be read."""


class _MemoryWriter(RunWriter):
    def __init__(self, log: MemoryRunLog, run: _Run) -> None:
        self._log = log
        self._run = run
        self.run_id = run.info.run_id
        self.thread_id = run.info.thread_id

    def put(self, *rows: Row, soon: bool = False) -> None:
        """Append rows."""
        run = self._run
        if run.thread.writer is not self:
            self._check()
        held = run.rows
        now = time.time()
        if len(rows) == 1:
            row = rows[0]
            key = (row.kind, row.frame, row.key)
            if key not in held:
                row.seq, row.at = len(held) + 1, now
                held[key] = row
                run.info.updated_at = run.thread.info.updated_at = now
                return
        keys = [(row.kind, row.frame, row.key) for row in rows]
        for place, key in enumerate(keys):
            if key in held or key in keys[:place]:
                raise ValueError(f"the {key[0]!r} row of {key[1]!r} with the key {key[2]!r} is written once only")
        for key, row in zip(keys, rows, strict=True):
            row.seq, row.at = len(held) + 1, now
            held[key] = row
        run.info.updated_at = run.thread.info.updated_at = now

    def _check(self) -> None:
        if self._run.thread.writer is not self:
            raise ThreadBusy(f"run {self.run_id!r} was closed, or taken over by another writer; reopen it to go on")

    async def flush(self) -> None:
        """Return: what was put is there."""
        self._check()

    async def close(self, status: RunStatus) -> None:
        """Write the run's status and give the lease back."""
        if self._run.thread.writer is self:
            self._run.info.status = status
            self._log.touch(self._run, time.time())
            self._run.thread.hand_to(None)


def _refuse_busy(thread: _Thread) -> None:
    if thread.writer is not None:
        raise ThreadBusy(
            f"another run is at work on thread {thread.info.thread_id!r}; wait for it, or use another thread"
        )
