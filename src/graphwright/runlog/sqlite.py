"""A run log in a SQLite file: runs outlive the process, and any number of processes may share the file."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ConfigurationError
from graphwright.runlog import _sqlite_rows as stored
from graphwright.runlog._limits import check_retention
from graphwright.runlog._sqlite_file import RunFile
from graphwright.runlog._sqlite_queue import Lease, give_back
from graphwright.runlog._sqlite_registry import acquire, release
from graphwright.runlog._sqlite_schema import default_file
from graphwright.runlog.base import ANY_OWNER, BusyPolicy, Row, RunInfo, RunLog, RunStatus, RunWriter, ThreadInfo
from graphwright.runlog.codec import dumps
from graphwright.runlog.lease import when_free

__all__ = ["SQLiteRunLog", "Synchronous"]

T = TypeVar("T")

Synchronous = Literal["NORMAL", "FULL", "EXTRA"]
"""What SQLite waits for: with `NORMAL` what is durable outlives a killed process, with `FULL` a power cut too."""

_PRUNED_AT_ONCE = 100


class SQLiteRunLog(RunLog):
    """Keep runs in a file.

    Without a path it is `graphwright-runs.db` in the folder `GRAPHWRIGHT_HOME`, else in the user's data folder. The
    file is made when it is first used. It has to be on a local disk, as SQLite's write-ahead log needs shared memory.

    One thread of the process writes the file for every log that is on it: what is queued at a moment goes into one
    transaction, which first checks that each writer still holds its lease. The same thread renews the leases, so a
    blocked event loop does not lose them. Deleted rows are overwritten in the file's pages; copies that the file
    system or a backup keeps are beyond that.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        synchronous: Synchronous = "NORMAL",
        lease_seconds: float = 30.0,
        busy_seconds: float = 30.0,
    ) -> None:
        """Name the file; nothing is opened yet.

        `lease_seconds` is how long a process keeps a thread after it last renewed its lease; a process that is seen
        to be gone loses it at once. `busy_seconds` is how long to wait for another process that is writing.
        """
        if path is not None and os.fspath(path) in ("", ":memory:"):
            raise ConfigurationError(f"path is {path!r}; name a file, or use MemoryRunLog to keep runs in memory")
        if synchronous not in ("NORMAL", "FULL", "EXTRA"):
            raise ConfigurationError(f"synchronous is {synchronous!r}; use one of NORMAL, FULL, EXTRA")
        if not lease_seconds > 0 or not busy_seconds > 0:
            raise ConfigurationError(
                f"lease_seconds is {lease_seconds!r} and busy_seconds is {busy_seconds!r}; give seconds above 0"
            )
        self._path = Path(path) if path is not None else None
        self._synchronous = synchronous
        self._lease_seconds = lease_seconds
        self._busy_seconds = busy_seconds
        self._file: RunFile | None = None
        self._leaving: weakref.finalize[..., Any] | None = None
        self._writers: weakref.WeakSet[_SQLiteWriter] = weakref.WeakSet()

    @property
    def path(self) -> Path:
        """The file."""
        if self._path is None:
            self._path = default_file()
        return self._path

    def _opened(self) -> RunFile:
        file = self._file
        if file is None or file.dead:
            file = acquire(
                self.path,
                synchronous=self._synchronous,
                busy_seconds=self._busy_seconds,
                lease_seconds=self._lease_seconds,
            )
            self._file = file
            self._leaving = weakref.finalize(self, file.leave)
            self._leaving.atexit = False
        return file

    async def begin(self, info: RunInfo, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the thread's lease and create the run as the thread's latest."""
        metadata = dumps(info.metadata, where="metadata") if info.metadata else ""

        def work(connection: sqlite3.Connection, file: RunFile) -> tuple[Lease, int]:
            return stored.begin(connection, info, metadata, file), 0

        return await self._write_as(work, on_busy, wait_seconds, info.thread_id)

    async def reopen(self, run_id: str, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the lease again to go on with a run."""

        def work(connection: sqlite3.Connection, file: RunFile) -> tuple[Lease, int]:
            return stored.reopen(connection, run_id, file)

        writer = await self._write_as(work, on_busy, wait_seconds, "")
        run = writer.lease.run
        info, written = await self._read(
            lambda connection: (stored.info(connection, run_id), stored.keys(connection, run))
        )
        assert info is not None
        writer.thread_id = info.thread_id
        writer.written.update(written)
        return writer

    async def _write_as(
        self,
        work: Callable[[sqlite3.Connection, RunFile], tuple[Lease, int]],
        on_busy: BusyPolicy,
        wait_seconds: float,
        thread_id: str,
    ) -> _SQLiteWriter:
        file = self._opened()

        async def take() -> tuple[Lease, int]:
            return await file.call(lambda connection: work(connection, file), dropped=lambda got: file.abandon(got[0]))

        lease, rows = await when_free(take, on_busy, wait_seconds)
        writer = _SQLiteWriter(self, file, lease, rows, thread_id)
        self._writers.add(writer)
        return writer

    async def info(self, run_id: str) -> RunInfo | None:
        """Return what is known of a run."""
        return await self._read(lambda connection: stored.info(connection, run_id))

    async def latest(self, thread_id: str) -> RunInfo | None:
        """Return the latest run of a thread."""
        found = await self._read(lambda connection: stored.runs(connection, thread_id=thread_id, limit=1))
        return found[0] if found else None

    async def rows(self, run_id: str) -> list[Row]:
        """Return the rows of a run in order; empty for an unknown one."""
        return await self._read(lambda connection: stored.rows(connection, run_id))

    async def thread_rows(self, thread_id: str) -> list[tuple[RunInfo, list[Row]]]:
        """Return the runs of a thread with their rows, oldest first."""

        def read(connection: sqlite3.Connection) -> list[tuple[RunInfo, list[Row]]]:
            found = stored.runs(connection, thread_id=thread_id, limit=-1)
            return [(info, stored.rows(connection, info.run_id)) for info in reversed(found)]

        return await self._read(read)

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
        return await self._read(
            lambda connection: stored.runs(
                connection, thread_id=thread_id, owner=owner, status=status, limit=limit, offset=offset
            )
        )

    async def threads(self, *, owner: Any = ANY_OWNER, limit: int = 50, offset: int = 0) -> list[ThreadInfo]:
        """Return threads, the one written last first."""
        return await self._read(lambda connection: stored.threads(connection, owner=owner, limit=limit, offset=offset))

    async def delete_thread(self, thread_id: str) -> bool:
        """Delete a thread with its runs; return whether there was one."""
        file = self._opened()
        deleted = await file.call(lambda connection: stored.delete(connection, thread_id, file))
        if deleted:
            await self._wipe()
        return deleted

    async def prune(self, *, older_than_seconds: float | None = None, keep_threads: int | None = None) -> int:
        """Delete threads that were not written for long, or beyond the newest `keep_threads`; return how many."""
        check_retention(older_than_seconds, keep_threads)
        oldest = time.time() - older_than_seconds if older_than_seconds is not None else None
        file = self._opened()
        doomed = await self._read(lambda connection: stored.prunable(connection, oldest, keep_threads))
        deleted = 0
        for start in range(0, len(doomed), _PRUNED_AT_ONCE):
            some = doomed[start : start + _PRUNED_AT_ONCE]
            deleted += await file.call(lambda connection, some=some: stored.prune(connection, some, file))  # type: ignore[misc]
        if deleted:
            await self._wipe()
        return deleted

    async def _wipe(self) -> None:
        """Empty the write-ahead log, as far as nobody reads from it now, so that nothing deleted is left in it."""
        file = self._opened()
        await run_in_thread(file.connections.checkpoint)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        file = self._opened()
        if not file.connections.exists:
            await file.call(lambda connection: None)
        await file.flush()

        def read() -> T:
            with file.connections.reading() as connection:
                return work(connection)

        return await run_in_thread(read)

    async def aclose(self) -> None:
        """Write what is queued, give this log's leases back, and close the file if no other log uses it."""
        file, leaving = self._file, self._leaving
        self._file = self._leaving = None
        if file is None or leaving is None or file.dead or leaving.detach() is None:
            return
        for writer in self._writers:
            file.abandon(writer.lease)
        await file.flush()
        if release(file):
            await run_in_thread(file.join)


class _SQLiteWriter(RunWriter):
    def __init__(self, log: SQLiteRunLog, file: RunFile, lease: Lease, rows: int, thread_id: str) -> None:
        self.run_id = lease.run_id
        self.thread_id = thread_id
        self.lease = lease
        self.written: set[tuple[str, str, str]] = set()
        """What the run's rows are known by."""
        self._log = log
        self._file = file
        self._last = stored.first_id(lease.run) + rows
        weakref.finalize(self, file.abandon, lease).atexit = False

    def put(self, *rows: Row, soon: bool = False) -> None:
        """Queue rows."""
        self._check()
        now = time.time()
        texts = [stored.write_row(row, self._last + place, now) for place, row in enumerate(rows, 1)]
        keys = [(row.kind, row.frame, row.key) for row in rows]
        for place, key in enumerate(keys):
            if key in self.written or key in keys[:place]:
                raise ValueError(f"the {key[0]!r} row of {key[1]!r} with the key {key[2]!r} is written once only")
        self.written.update(keys)
        for row in rows:
            self._last += 1
            row.seq, row.at = self._last - stored.first_id(self.lease.run), now
        if texts:
            self._file.queue(self.lease, texts, soon=soon)

    def _check(self) -> None:
        lease = self.lease
        if lease.lost or lease.closed or lease.abandoned or self._file.dead:
            raise lease.busy()

    async def flush(self) -> None:
        """Return when everything that was queued is durable."""
        self._check()
        await self._file.flush(self.lease)
        self._check()

    async def close(self, status: RunStatus) -> None:
        """Write what is queued and the run's status, and give the lease back.

        Raises:
            ThreadBusy: the lease was lost to another writer; nothing was written.
            StoreUnavailable: the log could not be written; call it again to try again.
        """
        if self.lease.closed or self.lease.abandoned or self._file.dead:
            return
        await self._file.call(lambda connection: give_back(self.lease, connection, status))
