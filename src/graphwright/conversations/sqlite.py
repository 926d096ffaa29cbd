"""Conversations in one SQLite file, written by a thread of the store's own."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from graphwright._internal.aio import settle
from graphwright._internal.threads import ThreadPool
from graphwright.conversations._checks import check_count
from graphwright.conversations._schema import Dialect, migrate
from graphwright.conversations._scripts import Script, Scripts, check_prefix
from graphwright.conversations._sql import SQLStore
from graphwright.exceptions import ConfigurationError, StoreUnavailable

__all__ = ["SQLiteConversationStore"]

Value = TypeVar("Value")

_BUSY_MS = 5000
_PATIENCE_SECONDS = 30.0
_DIALECT = Dialect(number="INTEGER", columns="SELECT name, type FROM pragma_table_info(?)", row_order="rowid")


class SQLiteConversationStore(SQLStore):
    """Keeps conversations in a SQLite file, which other stores and processes may use at the same time.

    A call is one hop into the store's thread and one transaction there, so that cancelling it never leaves half of
    it behind. The file and its tables are made on first use. It needs no other package.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "conversations.db",
        table_prefix: str = "promptise_",
        max_messages_per_session: int = 0,
        *,
        ttl: int = 0,
    ) -> None:
        """Name the file; `":memory:"` keeps everything in memory.

        `max_messages_per_session` keeps about the newest ones (0: all), `ttl` the seconds that a session lives
        after it was last written to (0: for ever).
        """
        self._path = os.fspath(path)
        self._scripts = Scripts(
            prefix=check_prefix(table_prefix),
            limit=check_count("max_messages_per_session", max_messages_per_session),
            ttl=check_count("ttl", ttl) * 1_000_000,
        )
        self._pool = ThreadPool(1)
        # A call that was given up goes on in its thread, so a second thread may come to the connection.
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._closed = False
        self._shut = False

    async def close(self) -> None:
        """Close the file. The store cannot be used afterwards; closing again does nothing."""
        self._closed = True
        await self._in_thread(self._close)

    async def _run(self, start: Callable[[], Script[Value]], *, write: bool, repeatable: bool = True) -> Value:
        # Before the thread is asked: a forked child has none, and may have got a lock that nobody gives back.
        if self._pid != os.getpid():
            raise StoreUnavailable(
                f"the conversation store {self._path!r} was made before a fork; make one in the child"
            )
        if self._closed:
            raise self._over()
        value: Value = await self._in_thread(self._transact, start, write)
        return value

    async def _in_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in the thread; when the caller is cancelled, let the call come to its end first."""
        task = asyncio.ensure_future(self._pool.run(function, *args))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await settle(task)
            raise

    def _transact(self, start: Callable[[], Script[Value]], write: bool) -> Value:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        with self._lock:
            while True:
                try:
                    return self._attempt(start, write)
                except sqlite3.Error as error:
                    # Busy is not an error but a turn to wait for, also where SQLite does not wait by itself.
                    if not _is_busy(error) or time.monotonic() > deadline:
                        raise self._unavailable(error) from error
                    time.sleep(0.02)

    def _attempt(self, start: Callable[[], Script[Value]], write: bool) -> Value:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            value = _drive(connection, start())
            connection.execute("COMMIT")
            return value
        except BaseException:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            raise

    def _opened(self) -> sqlite3.Connection:
        if self._shut:
            raise self._over()
        if self._connection is None:
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            _drive(connection, migrate(self._scripts, _DIALECT))
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "no such column" in str(error):
                raise ConfigurationError(
                    f"{self._path!r} has tables {self._scripts.prefix!r} of a form that is not known ({error}); "
                    "choose another table_prefix"
                ) from error
            raise

    def _close(self) -> None:
        with self._lock:
            self._shut = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _over(self) -> StoreUnavailable:
        return StoreUnavailable(f"the conversation store {self._path!r} is closed; make a new one")

    def _unavailable(self, error: sqlite3.Error) -> StoreUnavailable:
        return StoreUnavailable(f"the conversation store {self._path!r} cannot be used: {error}; nothing was written")

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()


def _drive(connection: sqlite3.Connection, script: Script[Value]) -> Value:
    rows: Any = None
    try:
        while True:
            statement = script.send(rows)
            if statement.many:
                connection.executemany(statement.sql, statement.args)
                rows = []
            else:
                rows = connection.execute(statement.sql, statement.args).fetchall()
    except StopIteration as end:
        value: Value = end.value
        return value


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
