"""One run log file as this process writes it: one thread, which groups what is queued and keeps the leases alive."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from graphwright.exceptions import StoreUnavailable
from graphwright.runlog._sqlite_connections import Connections
from graphwright.runlog._sqlite_queue import Batch, Lease, Result, RowText, Waiter, deliver, give_back, touch
from graphwright.runlog._sqlite_schema import unavailable

__all__ = ["RunFile"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

_NEVER = float("inf")
_GROUP_SECONDS = 0.05
_RETRY_SECONDS = 1.0


class RunFile:
    """A file, and the thread that writes it.

    The methods are called by event loops; those after `_run` by the writing thread only.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: str,
        busy_seconds: float,
        lease_seconds: float,
        on_left: Callable[[RunFile], object],
    ) -> None:
        self.path = path
        self._on_left = on_left
        self.users = 0
        self.dead = False
        """True in a forked child, where the thread is gone."""
        self.connections = Connections(path, synchronous=synchronous, busy_seconds=busy_seconds)
        self.lease_seconds = lease_seconds
        self.commits = 0
        """How many transactions were written."""
        self._lock = threading.Lock()
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._woken = False
        self._dirty: list[Lease] = []
        self._waiters: list[Waiter] = []
        self._urgent = False
        self._due = _NEVER
        self._wakes_at = _NEVER
        # These two are filled by finalizers, which may run at any moment, so they take no lock.
        self._abandoned: deque[Lease] = deque()
        self._left: deque[None] = deque()
        self._stopping = False
        self._ended = False
        self._writing = False
        self._linger_until = 0.0
        self._renew_at = _NEVER
        self._active: dict[int, Lease] = {}
        self._taken: list[Lease] = []
        self._thread = threading.Thread(target=self._run, name="graphwright-runlog", daemon=True)
        self._thread.start()

    def queue(self, lease: Lease, rows: list[RowText], *, soon: bool) -> None:
        """Queue rows; with `soon` they are written at once, else with whatever is written next."""
        with self._lock:
            if not lease.buffer:
                self._dirty.append(lease)
            lease.buffer.extend(rows)
            if soon:
                self._hurry()
            elif self._due == _NEVER:
                self._due = time.monotonic() + _GROUP_SECONDS
                if self._wakes_at > self._due:
                    self._wake()

    async def flush(self, lease: Lease | None = None) -> None:
        """Return when the rows of a lease are durable; without one, when everything queued was tried."""
        with self._lock:
            idle = not (lease.buffer or lease.in_flight) if lease is not None else not (self._dirty or self._writing)
            if idle:
                return
            self._refuse_when_ended()
            waiter = Waiter(lease=lease)
            self._waiters.append(waiter)
            self._hurry()
        await waiter.wait()

    async def call(self, work: Callable[[sqlite3.Connection], T], *, dropped: Callable[[T], None] | None = None) -> T:
        """Return what `work` gives inside the next transaction; it raises what is wrong before it writes."""
        waiter = Waiter(work=work, dropped=dropped)
        with self._lock:
            self._refuse_when_ended()
            self._waiters.append(waiter)
            self._hurry()
        value: T = await waiter.wait()
        return value

    def abandon(self, lease: Lease) -> None:
        """Give a lease back for a writer that is gone; what it queued is still written. Takes no lock."""
        if not (self.dead or lease.closed):
            self._abandoned.append(lease)
            self._wakes.put(None)

    def leave(self) -> None:
        """Note that a log does not use this file any more. Takes no lock."""
        if not self.dead:
            self._left.append(None)
            self._wakes.put(None)

    def demand(self, *, synchronous: str, lease_seconds: float) -> None:
        """Meet the wishes of one more log: the stricter durability and the shorter lease hold for all."""
        self.connections.demand(synchronous)
        self.lease_seconds = min(self.lease_seconds, lease_seconds)

    def stop(self) -> None:
        """Write what is queued, give every lease back, and end the thread."""
        with self._lock:
            self._stopping = True
            self._hurry()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread's end."""
        self._thread.join(timeout)

    def _refuse_when_ended(self) -> None:
        if self._ended:
            raise StoreUnavailable(f"the run log {str(self.path)!r} was closed while it was used; open it again")

    def _hurry(self) -> None:
        self._urgent = True
        if self._wakes_at > 0:
            self._wake()

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._wakes.put(None)

    def _run(self) -> None:
        ends = False
        while not ends:
            self._wait_for_work()
            with self._lock:
                batch = Batch(self._dirty, self._waiters)
                self._dirty, self._waiters = [], []
                self._urgent, self._due, self._writing = False, _NEVER, True
                ends = self._ended = self._stopping
            left = len(self._left)
            self._take_back(batch)
            self._write_and_tell(batch, keep=not ends)
            for _ in range(left):
                self._left.popleft()
                self._on_left(self)
            self._linger_until = time.monotonic() + _GROUP_SECONDS
        # A lease that the last batch took is among those that are given back.
        self._abandoned.extend(self._active.values())
        last = Batch([], [])
        self._take_back(last)
        self._write_and_tell(last, keep=False)
        self.connections.close()

    def _write_and_tell(self, batch: Batch, *, keep: bool) -> None:
        results = self._write(batch)
        with self._lock:
            self._writing = False
            self._put_back(batch, keep=keep)
        deliver(results)

    def _wait_for_work(self) -> None:
        while True:
            with self._lock:
                self._woken = False
                now = time.monotonic()
                next_at = min(self._due, self._renew_at)
                if self._urgent or self._abandoned or self._left or now >= next_at:
                    self._wakes_at = 0.0
                    return
                # Awake for a moment after a write, so that rows which may wait need not wake the thread.
                self._wakes_at = min(next_at, self._linger_until) if now < self._linger_until else next_at
                timeout = None if self._wakes_at == _NEVER else max(self._wakes_at - now, 0.0)
            try:
                self._wakes.get(timeout=timeout)
            except queue.Empty:
                continue

    def _take_back(self, batch: Batch) -> None:
        """Add to a batch that the leases of those who are gone are given back."""
        while self._abandoned:
            lease = self._abandoned.popleft()
            if not (lease.closed or lease.abandoned):
                lease.abandoned = True
                batch.waiters.append(Waiter(work=partial(give_back, lease), nobody=True))

    def _write(self, batch: Batch) -> list[Result]:
        """Write a batch in one transaction, and return who is told what."""
        calls = [waiter for waiter in batch.waiters if waiter.work is not None]
        renew = time.monotonic() >= self._renew_at
        outcomes: dict[int, tuple[Any, BaseException | None]] = {}
        failure: Exception | None = None
        if batch.rows or calls or renew:
            try:
                with self.connections.transaction() as connection:
                    self._apply(connection, batch, calls, outcomes, renew=renew)
                self.commits += 1
            except Exception as error:  # told to everybody who waits; the rows are kept and tried again
                failure = error
                batch.failed = True
                if not any(waiter.future is not None for waiter in batch.waiters):
                    _log.warning("%s; it is tried again", unavailable(self.path, error))
        self._note(renewed=renew, failed=failure is not None)
        results = []
        for waiter in batch.waiters:
            told = unavailable(self.path, failure) if failure is not None else None
            if waiter.work is None:
                results.append(Result(waiter, None, batch.error_of(waiter.lease, told)))
            elif told is not None:
                results.append(Result(waiter, None, told))
            else:
                results.append(Result(waiter, *outcomes[id(waiter)]))
        return results

    def _apply(
        self,
        connection: sqlite3.Connection,
        batch: Batch,
        calls: list[Waiter],
        outcomes: dict[int, tuple[Any, BaseException | None]],
        *,
        renew: bool,
    ) -> None:
        for lease, rows in batch.rows:
            if lease.holds(connection):
                connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", rows)
                lease.written = True
        if renew:
            self._renew(connection)
        for waiter in calls:
            assert waiter.work is not None
            try:
                value = waiter.work(connection)
            except sqlite3.Error:
                raise
            except Exception as error:  # what this one asked for cannot be; the others are not concerned
                outcomes[id(waiter)] = (None, error)
            else:
                outcomes[id(waiter)] = (value, None)

    def _renew(self, connection: sqlite3.Connection) -> None:
        now = time.time()
        for lease in self._active.values():
            if not lease.lost and lease.holds(connection):
                connection.execute(
                    "UPDATE threads SET expires_at = ? WHERE id = ?", (now + self.lease_seconds, lease.thread)
                )
                if lease.written:
                    touch(connection, lease, now)
                    lease.written = False

    def _note(self, *, renewed: bool, failed: bool) -> None:
        """Bring the list of leases and the time of the next renewal up to date."""
        for lease in self._active.values():
            lease.closed, lease.closing = lease.closed or (lease.closing and not failed), False
        taken, self._taken = self._taken, []
        if not failed:
            self._active.update((lease.thread, lease) for lease in taken)
        self._active = {
            thread: lease
            for thread, lease in self._active.items()
            if not (lease.closed or lease.lost or lease.abandoned)
        }
        now = time.monotonic()
        if not self._active:
            self._renew_at = _NEVER
        elif failed:
            self._renew_at = now + _RETRY_SECONDS if renewed else self._renew_at
        elif renewed or taken:
            # A lease that was just taken may be shorter than those before it.
            next_at = now + self.lease_seconds / 3
            self._renew_at = next_at if renewed else min(self._renew_at, next_at)

    def _put_back(self, batch: Batch, *, keep: bool) -> None:
        """Keep the rows of a failed batch for another try, before those that came meanwhile."""
        for lease, rows in batch.rows:
            lease.in_flight = False
            if lease.lost:
                lease.buffer = []
            elif batch.failed and keep:
                if not lease.buffer:
                    self._dirty.append(lease)
                lease.buffer = rows + lease.buffer
                self._due = min(self._due, time.monotonic() + _RETRY_SECONDS)

    def holds_here(self, thread: int) -> bool:
        """Return whether a writer of this process is at work on a thread; asked by the writing thread."""
        lease = self._active.get(thread)
        return lease is not None and not (lease.closed or lease.closing or lease.lost or lease.abandoned)

    def keep(self, lease: Lease) -> None:
        """Renew a lease from now on, if this transaction comes to be written; called by the writing thread."""
        self._taken.append(lease)
