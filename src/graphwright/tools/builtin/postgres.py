"""A tool for one PostgreSQL database, which reads or, when told so, writes."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from graphwright._internal.optional import is_installed
from graphwright.exceptions import MissingExtraError, ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count, checked_seconds
from graphwright.tools.builtin._rows import Dsn, Parameter, Rows, checked_dsn, dsn_of, only_reads

__all__ = ["PostgreSQLTool"]

_READS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN"})
_ROWS_AT_ONCE = 50


class PostgreSQLTool(BuiltinTool):
    """Query the PostgreSQL database at `dsn`, or change it with `write=True`. Needs the extra `postgres`.

    Each call is one statement in a connection and a transaction of its own, which is read-only unless `write` is on.
    Some functions of PostgreSQL act outside of a transaction, so give the login of a role that may do no more than the
    tool is for.
    """

    tool_name = "postgresql"

    def __init__(
        self,
        dsn: Dsn,
        *,
        write: bool = False,
        max_rows: int = 200,
        max_chars: int = 50_000,
        statement_timeout: float = 10.0,
        connect_timeout: float = 10.0,
        name: str | None = None,
    ) -> None:
        self._dsn = checked_dsn(dsn, "postgresql", "postgres")
        self._write = write
        self._max_rows = checked_count(max_rows, "max_rows")
        self._max_chars = checked_count(max_chars, "max_chars")
        self._seconds = checked_seconds(statement_timeout, "statement_timeout")
        self._connect_seconds = checked_seconds(connect_timeout, "connect_timeout")
        self.risk_level = 2 if write else 1
        self.idempotent = not write
        super().__init__(name=name or ("postgresql_write" if write else "postgresql"))
        if not is_installed("asyncpg"):
            raise MissingExtraError("PostgreSQLTool", extra="postgres", package="asyncpg")

    async def call(self, statement: str, parameters: list[Parameter] | None = None) -> dict[str, Any]:
        """Run one SQL statement on the PostgreSQL database and return its rows.

        Args:
            statement: One statement, with $1, $2 where parameters go.
            parameters: The values for them, in order.
        """
        asyncpg: Any = import_module("asyncpg")

        if not self._write:
            only_reads(statement, _READS, self.name)
        connection = await self._connect()
        try:
            async with asyncio.timeout(self._seconds + 5):
                async with connection.transaction(readonly=not self._write):
                    # From the first query on, no statement can make a read-only transaction a writing one.
                    await connection.execute("SELECT 1")
                    result = await self._run(connection, statement, parameters or [])
            await connection.close(timeout=5)
            return result
        except asyncpg.QueryCanceledError:
            raise self._too_long() from None
        except TimeoutError:
            raise self._too_long() from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise ToolError(f"the statement failed: {error}") from None
        except OSError as error:
            raise ToolError(f"the connection to the database broke ({type(error).__name__})") from None
        finally:
            if not connection.is_closed():
                connection.terminate()

    async def _connect(self) -> Any:
        asyncpg: Any = import_module("asyncpg")

        settings = {
            "default_transaction_read_only": "off" if self._write else "on",
            "statement_timeout": str(int(self._seconds * 1000)),
        }
        try:
            return await asyncpg.connect(
                await dsn_of(self._dsn),
                timeout=self._connect_seconds,
                server_settings=settings,
                statement_cache_size=0,
            )
        except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            # The text of the error may name the host and the user.
            raise ToolError(f"the database cannot be reached ({type(error).__name__}); try later") from None

    async def _run(self, connection: Any, statement: str, parameters: list[Parameter]) -> dict[str, Any]:
        # The protocol of a prepared statement takes one statement, and refuses a second one after a semicolon.
        prepared = await connection.prepare(statement)
        rows = Rows(
            [entry.name for entry in prepared.get_attributes()], max_rows=self._max_rows, max_chars=self._max_chars
        )
        if not prepared.get_attributes():
            await prepared.fetch(*parameters)
            return {"status": prepared.get_statusmsg()}
        cursor = await prepared.cursor(*parameters)
        while page := await cursor.fetch(_ROWS_AT_ONCE):
            if not rows.take(tuple(row.values()) for row in page):
                break
        return rows.result()

    def _too_long(self) -> ToolError:
        return ToolError(f"the statement took longer than {self._seconds:g} s and was stopped; make it smaller")
