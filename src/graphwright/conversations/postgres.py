"""Conversations in a PostgreSQL database, through a pool of connections that are held for one transaction each."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from graphwright.conversations._checks import check_count
from graphwright.conversations._schema import Dialect, migrate
from graphwright.conversations._scripts import Script, Scripts, check_prefix
from graphwright.conversations._sql import SQLStore
from graphwright.exceptions import ConfigurationError, GraphwrightError, MissingExtraError, StoreUnavailable

if TYPE_CHECKING:
    import asyncpg

__all__ = ["PostgresConversationStore"]

Value = TypeVar("Value")

_ATTEMPTS = 3
_DIALECT = Dialect(
    number="BIGINT",
    columns=(
        "SELECT column_name::text, data_type::text FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name = lower(?)"
    ),
    row_order="created_at, ctid",
)


class PostgresConversationStore(SQLStore):
    """Keeps conversations in PostgreSQL; any number of stores and processes may use the same tables at once.

    Tables and indexes are made on first use. A connection is held for one transaction and never while a model
    answers. It needs the extra `postgres`.
    """

    def __init__(
        self,
        dsn: str,
        table_prefix: str = "promptise_",
        pool_min: int = 2,
        pool_max: int = 10,
        max_messages_per_session: int = 0,
        *,
        ttl: int = 0,
        timeout: float = 30.0,
    ) -> None:
        """Name the database, as in `"postgresql://user:password@localhost/mydb"`.

        `max_messages_per_session` keeps about the newest ones (0: all), `ttl` the seconds that a session lives
        after it was last written to (0: for ever), `timeout` the seconds to wait for a connection or a statement.
        """
        try:
            import asyncpg  # noqa: F401  # asked for here, so that a missing package is not found out in the first run
        except ImportError as error:
            raise MissingExtraError("PostgresConversationStore", extra="postgres", package="asyncpg") from error
        if not 0 <= pool_min <= pool_max or pool_max < 1:
            raise ConfigurationError(
                f"pool_min {pool_min!r} and pool_max {pool_max!r} do not fit; give 0 <= pool_min <= pool_max"
            )
        self._dsn = dsn
        self._sizes = (pool_min, pool_max)
        self._timeout = timeout
        self._scripts = Scripts(
            prefix=check_prefix(table_prefix),
            lock=" FOR UPDATE",
            limit=check_count("max_messages_per_session", max_messages_per_session),
            ttl=check_count("ttl", ttl) * 1_000_000,
        )
        self._pool: asyncpg.Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock | None = None
        self._closed = False

    async def close(self) -> None:
        """Close the connections. The store cannot be used afterwards; closing again does nothing."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._loop is not asyncio.get_running_loop():
            _drop(pool)
            return
        try:
            await asyncio.wait_for(pool.close(), self._timeout)
        except TimeoutError:
            pool.terminate()

    async def _run(self, start: Callable[[], Script[Value]], *, write: bool, repeatable: bool = True) -> Value:
        for attempt in count(1):
            progress = _Progress()
            try:
                return await self._attempt(start, write, progress)
            except GraphwrightError:  # also the refusal of an owner, which is an OSError by its class
                raise
            except _lost_connection() as error:
                # Before the commit was sent, nothing can have been written. A timeout has been waited for already.
                harmless = repeatable or not progress.committing
                if attempt >= _ATTEMPTS or isinstance(error, TimeoutError) or not harmless:
                    raise self._unavailable(error, progress) from error
            except _collisions() as error:
                if attempt >= _ATTEMPTS:
                    raise self._unavailable(error, progress) from error
        raise AssertionError("unreachable")

    async def _attempt(self, start: Callable[[], Script[Value]], write: bool, progress: _Progress) -> Value:
        pool = await self._opened()
        async with pool.acquire(timeout=self._timeout) as connection:
            # What a read finds in its statements belongs together; a write locks the session that it is about.
            transaction = connection.transaction(
                isolation="read_committed" if write else "repeatable_read", readonly=not write
            )
            await transaction.start()
            try:
                value = await _drive(connection, start())
            except BaseException:
                with suppress(*_lost_connection()):
                    await transaction.rollback()
                raise
            progress.committing = True
            await transaction.commit()
            return value

    async def _opened(self) -> asyncpg.Pool:
        self._check_open()
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # A pool belongs to its loop: after `asyncio.run()` ended, its connections are gone.
            old, self._pool = self._pool, None
            self._loop, self._opening = loop, asyncio.Lock()
            if old is not None:
                _drop(old)
        opening = self._opening
        assert opening is not None
        if self._pool is None:
            async with opening:
                if self._pool is None:
                    self._pool = await self._open()
        return self._pool

    async def _open(self) -> asyncpg.Pool:
        import asyncpg

        smallest, largest = self._sizes
        pool = asyncpg.create_pool(
            self._dsn,
            min_size=smallest,
            max_size=largest,
            timeout=self._timeout,
            command_timeout=self._timeout,
        )
        try:
            await pool
            async with pool.acquire(timeout=self._timeout) as connection, connection.transaction():
                key = zlib.crc32(f"graphwright:{self._scripts.prefix}".encode())
                await connection.execute("SELECT pg_advisory_xact_lock($1)", key)
                await _drive(connection, migrate(self._scripts, _DIALECT))
            self._check_open()  # it may have been closed meanwhile
        except BaseException:
            pool.terminate()
            raise
        return pool

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"the conversation store at {self._place} is closed; make a new one")

    @property
    def _place(self) -> str:
        """Where the database is, without the credentials of its address."""
        parts = urlsplit(self._dsn)
        return repr(f"{parts.hostname}:{parts.port or 5432}{parts.path}") if parts.hostname else "the given dsn"

    def _unavailable(self, error: BaseException, progress: _Progress) -> StoreUnavailable:
        result = "whether it was written is unknown" if progress.committing else "nothing was written"
        reason = str(error) or type(error).__name__
        return StoreUnavailable(f"the conversation store at {self._place} cannot be used: {reason}; {result}")


class _Progress:
    """How far a transaction has come."""

    committing = False


async def _drive(connection: Any, script: Script[Value]) -> Value:
    rows: Any = None
    try:
        while True:
            statement = script.send(rows)
            sql = _numbered(statement.sql)
            if statement.many:
                rows = []
                await _insert(connection, sql, statement.args)
            else:
                rows = await connection.fetch(sql, *statement.args)
    except StopIteration as end:
        value: Value = end.value
        return value


async def _insert(connection: Any, sql: str, rows: Sequence[Any]) -> None:
    if len(rows) == 1:
        await connection.fetch(sql, *rows[0])
    elif rows:
        await connection.executemany(sql, rows)


@lru_cache(maxsize=256)
def _numbered(sql: str) -> str:
    places = count(1)
    return re.sub(r"\?", lambda _: f"${next(places)}", sql)


def _lost_connection() -> tuple[type[BaseException], ...]:
    import asyncpg

    return (
        OSError,  # also TimeoutError
        asyncpg.PostgresConnectionError,
        asyncpg.InterfaceError,
        asyncpg.exceptions.InternalClientError,
        asyncpg.OperatorInterventionError,
        asyncpg.InsufficientResourcesError,
    )


def _collisions() -> tuple[type[BaseException], ...]:
    import asyncpg

    return (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


def _drop(pool: asyncpg.Pool) -> None:
    with suppress(Exception):  # its loop is closed, and with it everything that could be ended in order
        pool.terminate()
