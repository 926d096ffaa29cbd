"""The tables of the SQL stores: made on first use, and brought up to date where older ones are found.

Tables that another library left under the same prefix are read by the names of their columns and written anew, in
one transaction: the messages of a session keep the order in which they were written, not that of their clocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graphwright.conversations._rows import micros, pack, pack_text
from graphwright.conversations._scripts import Script, Scripts, Statement
from graphwright.exceptions import ConfigurationError

__all__ = ["Dialect", "migrate"]

VERSION = 1

_Columns = dict[str, str]
"""Names and types."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one database spells what is needed to look at its tables."""

    number: str
    """Type of a whole number of 64 bits."""
    columns: str
    """Statement that returns the name and type of each column of a table; its value is the table's name."""
    row_order: str
    """Column that tells in which order rows were written, where the table has none of its own."""


def migrate(scripts: Scripts, dialect: Dialect) -> Script[None]:
    """Make the tables of this version, from nothing or from what is there."""
    version_table = f"{scripts.prefix}schema"
    if (yield Statement(dialect.columns, (version_table,))):
        found = yield Statement(f"SELECT MAX(version) FROM {version_table}")
        _check_version(scripts, found[0][0])
        return
    sessions = {row[0]: row[1] for row in (yield Statement(dialect.columns, (scripts.sessions,)))}
    messages = {row[0]: row[1] for row in (yield Statement(dialect.columns, (scripts.messages,)))}
    for table, columns in ((scripts.messages, messages), (scripts.sessions, sessions)):
        if columns:
            yield Statement(f"ALTER TABLE {table} RENAME TO {table}_before")
    yield from _create(scripts, dialect)
    if messages or sessions:
        yield from _copy(scripts, dialect, sessions, messages)
    for table, columns in ((scripts.messages, messages), (scripts.sessions, sessions)):
        if columns:
            yield Statement(f"DROP TABLE {table}_before")
    yield from _index(scripts)
    yield Statement(f"CREATE TABLE {version_table} (version {dialect.number} NOT NULL)")
    yield Statement(f"INSERT INTO {version_table} (version) VALUES (?)", (VERSION,))


def _check_version(scripts: Scripts, found: int | None) -> None:
    if found != VERSION:
        raise ConfigurationError(
            f"the tables {scripts.prefix!r} have the schema version {found!r} and this release knows {VERSION}; "
            "use the release that wrote them, or another table_prefix"
        )


def _create(scripts: Scripts, dialect: Dialect) -> Script[None]:
    number = dialect.number
    yield Statement(
        f"CREATE TABLE {scripts.sessions} (session_id TEXT PRIMARY KEY, user_id TEXT, title TEXT, "
        f"metadata TEXT NOT NULL, message_count {number} NOT NULL, version {number} NOT NULL, "
        f"created_at {number} NOT NULL, updated_at {number} NOT NULL, expires_at {number})"
    )
    yield Statement(
        f"CREATE TABLE {scripts.messages} (session_id TEXT NOT NULL, seq {number} NOT NULL, role TEXT NOT NULL, "
        f"content TEXT NOT NULL, metadata TEXT NOT NULL, created_at {number} NOT NULL, PRIMARY KEY (session_id, seq))"
    )


def _index(scripts: Scripts) -> Script[None]:
    table = scripts.sessions
    yield Statement(f"CREATE INDEX {table}_recent ON {table} (updated_at DESC, session_id DESC, expires_at)")
    yield Statement(f"CREATE INDEX {table}_owned ON {table} (user_id, updated_at DESC, session_id DESC, expires_at)")
    yield Statement(f"CREATE INDEX {table}_expiring ON {table} (expires_at)")


def _copy(scripts: Scripts, dialect: Dialect, sessions: _Columns, messages: _Columns) -> Script[None]:
    ids: dict[str, None] = {}
    for table, columns in ((scripts.sessions, sessions), (scripts.messages, messages)):
        if "session_id" in columns:
            ids.update((row[0], None) for row in (yield Statement(f"SELECT DISTINCT session_id FROM {table}_before")))
    for session_id in ids:
        written = 0
        if "session_id" in messages:
            written = yield from _copy_messages(scripts, dialect, session_id, messages)
        yield from _copy_session(scripts, session_id, sessions, written)


def _copy_messages(scripts: Scripts, dialect: Dialect, session_id: str, columns: _Columns) -> Script[int]:
    names = [name for name in ("role", "content", "metadata", "created_at") if name in columns]
    # Numbers that were given in the order of writing tell more than clocks and places in a file.
    counted = [name for name in ("seq", "position", "id") if "int" in columns.get(name, "").lower()]
    order = counted[0] if counted else dialect.row_order
    found = yield Statement(
        f"SELECT {', '.join(names)} FROM {scripts.messages}_before WHERE session_id = ? ORDER BY {order}", (session_id,)
    )
    rows = []
    for seq, values in enumerate(found, 1):
        old = dict(zip(names, values, strict=True))
        content, metadata = pack_text(old.get("content") or ""), _metadata(old.get("metadata"))
        rows.append((session_id, seq, old.get("role") or "user", content, metadata, _time(old.get("created_at"))))
    yield Statement(
        f"INSERT INTO {scripts.messages} (session_id, seq, role, content, metadata, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        rows,
        many=True,
    )
    return len(rows)


def _copy_session(scripts: Scripts, session_id: str, columns: _Columns, written: int) -> Script[None]:
    wanted = ("user_id", "title", "metadata", "created_at", "updated_at", "expires_at")
    names = [name for name in wanted if name in columns]
    old: dict[str, Any] = {}
    if names and "session_id" in columns:
        found = yield Statement(
            f"SELECT {', '.join(names)} FROM {scripts.sessions}_before WHERE session_id = ?", (session_id,)
        )
        old = dict(zip(names, found[0], strict=True)) if found else {}
    user_id, title, expires_at = old.get("user_id"), old.get("title"), old.get("expires_at")
    yield Statement(
        f"INSERT INTO {scripts.sessions} (session_id, user_id, title, metadata, message_count, version, created_at, "
        "updated_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session_id,
            None if user_id is None else pack_text(user_id),
            None if title is None else pack_text(title),
            _metadata(old.get("metadata")),
            written,
            written,
            _time(old.get("created_at")),
            _time(old.get("updated_at")),
            None if expires_at is None else _time(expires_at),
        ),
    )


def _metadata(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except ValueError:
            value = {"text": value}
    if not value:
        return "{}"
    return pack(value if isinstance(value, dict) else {"value": value}, "the metadata of an older message")


def _time(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = float(value)
    if isinstance(value, datetime):
        return micros(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
    if isinstance(value, (int, float)):
        return int(value * 1_000_000)
    return micros(datetime.now(UTC))
