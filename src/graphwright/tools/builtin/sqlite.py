"""A tool for one SQLite file, which reads or, when told so, writes."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from graphwright.exceptions import ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count, checked_seconds
from graphwright.tools.builtin._rows import Parameter, Rows

__all__ = ["SQLiteTool"]

_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
# ATTACH (which VACUUM INTO needs too) reaches other files; a transaction would outlive its statement.
_NEVER = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT})
_PRAGMAS = frozenset(
    {"foreign_key_list", "index_info", "index_list", "index_xinfo", "table_info", "table_list", "table_xinfo"}
)
_FUNCTIONS_REFUSED = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
_STEPS_BETWEEN_LOOKS = 10_000
_LARGEST_VALUE = 10_000_000


class SQLiteTool(BuiltinTool):
    """Query the SQLite file at `path`, or change it with `write=True`.

    A reading tool opens the file read-only and refuses every statement that does anything else. A writing one may
    not attach other files, load extensions or set pragmas. It creates a missing file; a reading one does not.
    """

    tool_name = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        write: bool = False,
        max_rows: int = 200,
        max_chars: int = 50_000,
        statement_timeout: float = 10.0,
        name: str | None = None,
    ) -> None:
        self._write = write
        self._max_rows = checked_count(max_rows, "max_rows")
        self._max_chars = checked_count(max_chars, "max_chars")
        self._seconds = checked_seconds(statement_timeout, "statement_timeout")
        self.risk_level = 2 if write else 0
        self.idempotent = not write
        super().__init__(name=name or ("sqlite_write" if write else "sqlite"))
        self._path = os.path.abspath(path)

    def call(self, statement: str, parameters: list[Parameter] | None = None) -> dict[str, Any]:
        """Run one SQL statement on the SQLite database and return its rows.

        Args:
            statement: One statement, with ? where a parameter goes.
            parameters: The values for the question marks, in order.
        """
        deadline = time.monotonic() + self._seconds
        try:
            with closing(self._connect()) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
                connection.set_authorizer(self._authorize)
                return self._run(connection, statement, parameters or [])
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
            raise self._problem(error, timed_out=time.monotonic() > deadline) from None

    def _connect(self) -> sqlite3.Connection:
        mode = "rwc" if self._write else "ro"
        connection = sqlite3.connect(
            f"{Path(self._path).as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=self._seconds
        )
        try:
            if not self._write:
                connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _run(self, connection: sqlite3.Connection, statement: str, parameters: list[Parameter]) -> dict[str, Any]:
        before = connection.total_changes
        cursor = connection.execute(statement, parameters)
        if cursor.description is None:
            return {"changed_rows": connection.total_changes - before}
        rows = Rows([column[0] for column in cursor.description], max_rows=self._max_rows, max_chars=self._max_chars)
        if self._write:
            # A statement with RETURNING takes effect as a whole only when it has been read to its end.
            rows.take(cursor)
            for _ in cursor:
                pass
            return {**rows.result(), "changed_rows": connection.total_changes - before}
        rows.take(cursor)
        return rows.result()

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action in _NEVER:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA:
            return sqlite3.SQLITE_OK if (first or "").lower() in _PRAGMAS else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION:
            refused = (second or "").lower() in _FUNCTIONS_REFUSED
            return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK
        return sqlite3.SQLITE_OK if self._write or action in _READS else sqlite3.SQLITE_DENY

    def _problem(self, error: Exception, *, timed_out: bool) -> ToolError:
        text = str(error)
        if timed_out and "interrupted" in text:
            return ToolError(f"the statement took longer than {self._seconds:g} s and was stopped; make it smaller")
        if "authoriz" in text or "prohibited" in text or "readonly" in text:
            allowed = "reads and changes rows and tables of its own file" if self._write else "only reads"
            return ToolError(f"the statement is refused ({text}): {self.name!r} {allowed}")
        return ToolError(f"the statement failed: {text}")
