"""A tool for one MySQL database, which reads or, when told so, writes."""

from __future__ import annotations

import re
import ssl
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

from graphwright._internal.optional import is_installed
from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import MissingExtraError, ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count, checked_seconds
from graphwright.tools.builtin._rows import Dsn, Parameter, Rows, checked_dsn, dsn_of, only_reads

__all__ = ["MySQLTool"]

_READS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN"})
# These act on files, locks or comments that are code, which a read-only transaction does not stop.
_ACTS = re.compile(
    r"/\*!|/\*M!|\b(?:outfile|dumpfile|load_file|get_lock|release_lock|release_all_locks)\b", re.IGNORECASE
)
_ROWS_AT_ONCE = 50


class MySQLTool(BuiltinTool):
    """Query the MySQL database at `dsn`, or change it with `write=True`. Needs the extra `mysql`.

    Each call is one statement in a connection and a transaction of its own, which is read-only unless `write` is on.
    """

    tool_name = "mysql"

    def __init__(
        self,
        dsn: Dsn,
        *,
        write: bool = False,
        max_rows: int = 200,
        max_chars: int = 50_000,
        statement_timeout: float = 10.0,
        tls: bool = True,
        name: str | None = None,
    ) -> None:
        self._dsn = checked_dsn(dsn, "mysql")
        self._write = write
        self._tls = tls
        self._max_rows = checked_count(max_rows, "max_rows")
        self._max_chars = checked_count(max_chars, "max_chars")
        self._seconds = checked_seconds(statement_timeout, "statement_timeout")
        self.risk_level = 2 if write else 1
        self.idempotent = not write
        super().__init__(name=name or ("mysql_write" if write else "mysql"))
        if not is_installed("pymysql"):
            raise MissingExtraError("MySQLTool", extra="mysql", package="pymysql")

    async def call(self, statement: str, parameters: list[Parameter] | None = None) -> dict[str, Any]:
        """Run one SQL statement on the MySQL database and return its rows.

        Args:
            statement: One statement, with %s where a parameter goes.
            parameters: The values for them, in order.
        """
        if not self._write:
            only_reads(statement, _READS, self.name)
            acts = _ACTS.search(statement)
            if acts:
                raise ToolError(f"the statement holds {acts.group()!r}, which does more than read; leave it out")
        dsn = await dsn_of(self._dsn)
        return await run_in_thread(self._run, dsn, statement, parameters)

    def _run(self, dsn: str, statement: str, parameters: list[Parameter] | None) -> dict[str, Any]:
        pymysql: Any = import_module("pymysql")

        connection = self._connect(dsn)
        cursor = connection.cursor()
        kind = "READ WRITE" if self._write else "READ ONLY"
        try:
            cursor.execute(f"SET SESSION TRANSACTION {kind}")
            cursor.execute(f"START TRANSACTION {kind}")
            cursor.execute(statement, parameters or None)
            result = self._result(cursor)
            if self._write:
                cursor.close()  # reads the rest: what a statement returned must be read before it is committed
                connection.commit()
            return result
        except pymysql.MySQLError as error:
            raise ToolError(f"the statement failed: {error.args[-1] if error.args else error}") from None
        except (TypeError, ValueError) as error:  # the parameters do not fit the %s in the statement
            raise ToolError(f"the parameters do not fit the statement: {error}") from None
        finally:
            # Closing reads all the rows that are left, however many, so the connection is dropped instead.
            if cursor._result is not None:
                cursor._result.unbuffered_active = False
            connection._force_close()

    def _connect(self, dsn: str) -> Any:
        pymysql: Any = import_module("pymysql")

        place = urlsplit(dsn)
        try:
            return pymysql.connect(
                host=place.hostname or "localhost",
                port=place.port or 3306,
                user=unquote(place.username or ""),
                password=unquote(place.password or ""),
                database=unquote(place.path.lstrip("/")) or None,
                charset="utf8mb4",
                cursorclass=pymysql.cursors.SSCursor,
                connect_timeout=max(1, int(self._seconds)),
                read_timeout=self._seconds,
                write_timeout=self._seconds,
                local_infile=False,
                ssl=ssl.create_default_context() if self._tls else None,
            )
        except (pymysql.MySQLError, OSError, ValueError) as error:
            # The text of the error may name the host and the user.
            raise ToolError(f"the database cannot be reached ({type(error).__name__}); try later") from None

    def _result(self, cursor: Any) -> dict[str, Any]:
        if cursor.description is None:
            return {"changed_rows": cursor.rowcount}
        rows = Rows([entry[0] for entry in cursor.description], max_rows=self._max_rows, max_chars=self._max_chars)
        while page := cursor.fetchmany(_ROWS_AT_ONCE):
            if not rows.take(page):
                break
        return rows.result()
