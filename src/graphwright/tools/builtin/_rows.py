"""What the database tools share: rows within a size, and a look at what kind of statement is asked for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from graphwright.exceptions import ConfigurationError, ToolError

Dsn = str | Callable[[], str | Awaitable[str]]
"""Where a database is and how to log in, or a function that says so anew for each call."""

Parameter = str | int | float | bool | None

_BEFORE_THE_FIRST_WORD = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*(?![!M]).*?\*/|\()*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")


def first_word(statement: str) -> str:
    """Return the word that a statement begins with, in capitals; comments and brackets before it are left out."""
    begin = _BEFORE_THE_FIRST_WORD.match(statement)
    word = _WORD.match(statement, begin.end() if begin else 0)
    return word.group().upper() if word else ""


def only_reads(statement: str, words: frozenset[str], tool: str) -> None:
    """Refuse a statement that does not begin as a reading one does.

    This is for a clear message; it is the read-only transaction that keeps the data safe.
    """
    word = first_word(statement)
    if word not in words:
        raise ToolError(
            f"{tool!r} only reads, and {word or statement[:20]!r} is not one of {', '.join(sorted(words))}; "
            "use another tool to change data"
        )


class Rows:
    """The rows of one answer, taken until there are enough."""

    def __init__(self, columns: Sequence[str], *, max_rows: int, max_chars: int) -> None:
        self._columns = list(columns)
        self._rows: list[list[Any]] = []
        self._max_rows = max_rows
        self._left = max_chars
        self._cell = max(100, max_chars // 4)
        self.full = False

    def take(self, rows: Iterable[Sequence[Any]]) -> bool:
        """Add rows, and return whether there is room for more."""
        for row in rows:
            cells = [self._plain(value) for value in row]
            self._left -= sum(len(str(cell)) for cell in cells)
            if len(self._rows) >= self._max_rows or (self._left < 0 and self._rows):
                self.full = True
                return False
            self._rows.append(cells)
        return True

    def result(self) -> dict[str, Any]:
        """Return what the model reads."""
        shown: dict[str, Any] = {"columns": self._columns, "rows": self._rows}
        if self.full:
            shown["truncated"] = f"only the first {len(self._rows)} rows are shown; ask for fewer, or for a later part"
        return shown

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"<{len(value)} bytes>"
        if isinstance(value, (datetime, date, time)):
            return value.isoformat()
        text = str(value)
        # Fewer digits would be another number.
        if isinstance(value, Decimal) or len(text) <= self._cell:
            return text
        return f"{text[: self._cell]}[cut: {len(text) - self._cell} more characters]"


async def dsn_of(dsn: Dsn) -> str:
    """Return where the database is, asking the developer's function when it was given as one."""
    if isinstance(dsn, str):
        return dsn
    value = dsn()
    return await value if inspect.isawaitable(value) else value


def checked_dsn(dsn: Any, *schemes: str) -> Dsn:
    """Return the DSN, or refuse one that names no such database; it is not shown, since it may hold a password."""
    if callable(dsn):
        return dsn  # type: ignore[no-any-return]
    if not isinstance(dsn, str) or not dsn.startswith(tuple(f"{scheme}://" for scheme in schemes)):
        raise ConfigurationError(f"dsn is no address of the form {schemes[0]}://user:password@host/name")
    return dsn
