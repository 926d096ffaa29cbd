"""The open connections to one run log file: one that writes, a few that read, and none while the process forks."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphwright.runlog._sqlite_schema import open_reading, open_writing, unavailable

__all__ = ["Connections"]

_log = logging.getLogger(__name__)

_READERS_KEPT = 4
_FORK_SECONDS = 5.0
_LEVELS = ("NORMAL", "FULL", "EXTRA")


class Connections:
    """Connections that are opened when they are needed and used again."""

    def __init__(self, path: Path, *, synchronous: str, busy_seconds: float) -> None:
        self.path = path
        self.exists = False
        """Whether the file was opened for writing, so that it is there and up to date."""
        self._wanted = self._level = synchronous
        self._busy_seconds = busy_seconds
        self._write_gate = threading.Lock()
        """Held while the writing connection is used, and while the process forks."""
        self._read_gate = threading.Lock()
        """Held for the moment in which one for reading is lent, and while the process forks."""
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._reading = 0
        self._closed = False

    def demand(self, synchronous: str) -> None:
        """Be at least as durable as this from the next transaction on."""
        self._wanted = max(self._wanted, synchronous, key=_LEVELS.index)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection inside a transaction, which is written at the end; for one thread only."""
        with self._write_gate:
            try:
                connection = self._open_writer()
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A new connection has nothing of the failed transaction left, whatever the failure was.
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None
                raise

    def _open_writer(self) -> sqlite3.Connection:
        connection = self._writer
        if connection is None:
            self._level = self._wanted
            connection = open_writing(self.path, synchronous=self._level, busy_seconds=self._busy_seconds)
            self._writer = connection
            self.exists = True
        elif self._level != self._wanted:
            connection.execute(f"PRAGMA synchronous={self._wanted}")
            self._level = self._wanted
        return connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that reads, with one view of the file for the whole block."""
        connection = self._lend()
        keep = False
        try:
            if connection is None:
                connection = open_reading(self.path, busy_seconds=self._busy_seconds)
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
            keep = True
        except (sqlite3.Error, OSError) as error:
            raise unavailable(self.path, error) from error
        finally:
            self._take_back(connection, keep=keep)

    def checkpoint(self) -> None:
        """Move what is in the write-ahead log into the file and empty it, unless somebody reads from it."""
        self._lend(new=True)
        connection = None
        try:
            connection = sqlite3.connect(self.path, timeout=1.0, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            _log.info("the write-ahead log of %r was not emptied: %s", str(self.path), error)
        finally:
            self._take_back(connection, keep=False)

    def _lend(self, *, new: bool = False) -> sqlite3.Connection | None:
        with self._read_gate, self._lock:
            self._reading += 1
            return self._readers.pop() if self._readers and not new else None

    def _take_back(self, connection: sqlite3.Connection | None, *, keep: bool) -> None:
        if connection is not None and not keep:
            connection.close()
        with self._lock:
            self._reading -= 1
            if connection is None or not keep:
                return
            if len(self._readers) < _READERS_KEPT and not self._closed:
                self._readers.append(connection)
                return
        connection.close()

    def hold_still(self) -> bool:
        """Close every connection and let nobody open one until `go_on`; false when one is in use for too long."""
        deadline = time.monotonic() + _FORK_SECONDS
        if not self._write_gate.acquire(timeout=_FORK_SECONDS):
            _log.warning(
                "the process forks while it writes the run log %r; do not use that file in the child", str(self.path)
            )
            return False
        self._read_gate.acquire()
        while self._reading and time.monotonic() < deadline:
            time.sleep(0.001)
        self._close_all()
        return True

    def go_on(self) -> None:
        """Let connections be opened again."""
        self._read_gate.release()
        self._write_gate.release()

    def close(self) -> None:
        """Close every connection; one that is lent is closed when it comes back."""
        with self._write_gate:
            self._closed = True
            self._close_all()

    def _close_all(self) -> None:
        with self._lock:
            idle, self._readers = self._readers, []
        if self._writer is not None:
            idle.append(self._writer)
            self._writer = None
        for connection in idle:
            connection.close()
