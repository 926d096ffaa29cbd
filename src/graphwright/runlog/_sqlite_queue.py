"""What waits for the thread that writes a run log file: rows with their lease, calls, and those who wait for them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from graphwright.exceptions import ThreadBusy

__all__ = ["Batch", "Lease", "Result", "RowText", "Waiter", "deliver", "give_back", "touch"]

RowText = tuple[int, str, str, str, float, str]
"""A row as the file has it."""


class Lease:
    """What this process holds of one thread, and the rows that wait for it to be written."""

    __slots__ = (
        "abandoned",
        "buffer",
        "closed",
        "closing",
        "in_flight",
        "lost",
        "run",
        "run_id",
        "thread",
        "token",
        "written",
    )

    def __init__(self, *, run: int, thread: int, token: int, run_id: str) -> None:
        self.run = run
        self.thread = thread
        self.token = token
        self.run_id = run_id
        self.buffer: list[RowText] = []
        self.in_flight = False
        self.lost = False
        self.closing = False
        """True from the moment its end is part of a transaction until that is known to be written or not."""
        self.closed = False
        self.abandoned = False
        self.written = False
        """Whether rows were written since the lease was last renewed."""

    def busy(self) -> ThreadBusy:
        """Return the error of a writer that may not write any more."""
        why = "was taken over by another writer" if self.lost else "was closed here"
        return ThreadBusy(f"run {self.run_id!r} {why}, so nothing more is written to it; reopen it to go on")

    def holds(self, connection: sqlite3.Connection) -> bool:
        """Return whether the lease is still ours; has to be asked inside the transaction that writes."""
        found = connection.execute("SELECT token FROM threads WHERE id = ?", (self.thread,)).fetchone()
        if found is None or found[0] != self.token:
            self.lost = True
        return not self.lost


class Waiter:
    """Somebody who waits for a result of the writing thread."""

    __slots__ = ("dropped", "future", "lease", "loop", "work")

    def __init__(
        self,
        *,
        work: Callable[[sqlite3.Connection], Any] | None = None,
        lease: Lease | None = None,
        dropped: Callable[[Any], None] | None = None,
        nobody: bool = False,
    ) -> None:
        self.work = work
        self.lease = lease
        self.dropped = dropped
        self.loop = None if nobody else asyncio.get_running_loop()
        self.future: asyncio.Future[Any] | None = None if self.loop is None else self.loop.create_future()

    async def wait(self) -> Any:
        """Return the result; one that comes for nobody is given to `dropped`."""
        future = self.future
        assert future is not None
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.drop(future.result())
            raise

    def drop(self, value: Any) -> None:
        """Deal with a result that nobody waits for any more."""
        if self.dropped is not None and value is not None:
            self.dropped(value)


class Batch:
    """What one transaction writes, and who waits for it."""

    __slots__ = ("failed", "rows", "waiters")

    def __init__(self, dirty: list[Lease], waiters: list[Waiter]) -> None:
        self.rows: list[tuple[Lease, list[RowText]]] = []
        self.waiters = waiters
        self.failed = False
        for lease in dirty:
            rows, lease.buffer = lease.buffer, []
            if rows:
                lease.in_flight = True
                self.rows.append((lease, rows))

    def error_of(self, lease: Lease | None, failure: Exception | None) -> Exception | None:
        """Return what whoever waits for a lease's rows is told; a reader learns what is wrong by reading."""
        if lease is None:
            return None
        if lease.lost:
            return lease.busy()
        return failure if any(held is lease for held, _ in self.rows) else None


class Result:
    __slots__ = ("error", "value", "waiter")

    def __init__(self, waiter: Waiter, value: Any, error: BaseException | None) -> None:
        self.waiter = waiter
        self.value = value
        self.error = error

    def settle(self) -> None:
        """Wake whoever waits."""
        future = self.waiter.future
        assert future is not None
        if future.done():
            self.waiter.drop(self.value)
        elif self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.value)


def deliver(results: list[Result]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Result]] = {}
    for result in results:
        if result.waiter.loop is not None:
            by_loop.setdefault(result.waiter.loop, []).append(result)
    for loop, mine in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:  # the loop is closed, so nobody waits
            for result in mine:
                result.waiter.drop(result.value)


def _settle(results: list[Result]) -> None:
    for result in results:
        result.settle()


def touch(connection: sqlite3.Connection, lease: Lease, now: float) -> None:
    """Note that a run was written."""
    connection.execute("UPDATE threads SET updated_at = ? WHERE id = ?", (now, lease.thread))
    connection.execute("UPDATE runs SET updated_at = ? WHERE id = ?", (now, lease.run))


def give_back(lease: Lease, connection: sqlite3.Connection, status: str | None = None) -> None:
    """End a lease; with a status, the run has it from now on.

    Raises:
        ThreadBusy: it was lost before.
    """
    if not lease.holds(connection):
        raise lease.busy()
    lease.closing = True
    touch(connection, lease, time.time())
    if status is not None:
        connection.execute("UPDATE runs SET status = ? WHERE id = ?", (status, lease.run))
    connection.execute("UPDATE threads SET holder = NULL, expires_at = 0 WHERE id = ?", (lease.thread,))
