"""What the SQL stores do, as scripts that know statements and no database.

A script yields a `Statement` and is sent its rows. The SQLite store runs a whole one in its thread, the PostgreSQL
store awaits each; both in one transaction, which an exception from the script rolls back.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from graphwright.conversations._rows import Row, from_micros, message_of, pack_text, unpack, unpack_text
from graphwright.conversations._window import Window, window_of
from graphwright.conversations.base import ANY_OWNER, Message, SessionInfo
from graphwright.exceptions import ConfigurationError, ConversationConflict, SessionAccessDenied

__all__ = ["Script", "Scripts", "Statement", "check_owner", "check_prefix"]

_PREFIX = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]{0,39})?")
_COLUMNS = "session_id, user_id, title, metadata, message_count, version, created_at, updated_at, expires_at"

Value = TypeVar("Value")


class Statement(NamedTuple):
    """One statement, with `?` where its values go."""

    sql: str
    args: Sequence[Any] = ()
    many: bool = False
    """Whether `args` are the values of many executions."""


Script = Generator[Statement, list[Any], Value]


def check_prefix(prefix: str) -> str:
    """Return a prefix of table names, or refuse one that is no plain identifier."""
    if not _PREFIX.fullmatch(prefix):
        raise ConfigurationError(
            f"table_prefix {prefix!r} cannot be used; give up to 40 letters, digits and underscores, no digit first"
        )
    return prefix


def check_owner(session_id: str, actual: str | None, wanted: Any) -> None:
    """Refuse a session that is not the wanted owner's, without saying whose it is.

    Raises:
        SessionAccessDenied: it belongs to another owner, or to nobody.
    """
    if wanted is not ANY_OWNER and actual != wanted:
        raise SessionAccessDenied(
            f"session {session_id!r} is not this caller's; use the id of a session of their own, or a new one"
        )


@dataclass(frozen=True, kw_only=True)
class Scripts:
    """The scripts for the tables of one prefix."""

    prefix: str
    lock: str = ""
    """What makes a SELECT lock its row, where a transaction does not lock the whole database."""
    limit: int = 0
    """How many messages a session keeps; 0 for all."""
    ttl: int = 0
    """Microseconds that a session lives after it was last written to; 0 for ever."""

    @property
    def sessions(self) -> str:
        return f"{self.prefix}sessions"

    @property
    def messages(self) -> str:
        return f"{self.prefix}messages"

    def append(
        self, session_id: str, rows: list[Row], *, expected: int | None, owner: Any, title: str | None, now: int
    ) -> Script[int]:
        """Add rows at the end; return the new version."""
        info = yield from self._opened(session_id, None if owner is ANY_OWNER else owner, now)
        check_owner(session_id, info.user_id, owner)
        if expected is not None and info.version != expected:
            if (yield from self._arrived(session_id, rows, expected)):
                return expected + len(rows)
            raise ConversationConflict(session_id, expected=expected, actual=info.version)
        yield self._insert(session_id, rows, info.version)
        version = info.version + len(rows)
        count = info.message_count + len(rows)
        if self.limit and count > self.limit:
            count = yield from self._trim(session_id)
        yield from self._written(session_id, version, count, now, title)
        return version

    def save(self, session_id: str, rows: list[Row], *, now: int) -> Script[None]:
        """Put rows in the place of those that are there."""
        info = yield from self._opened(session_id, None, now)
        yield Statement(f"DELETE FROM {self.messages} WHERE session_id = ?", (session_id,))
        yield self._insert(session_id, rows, info.version)
        count = len(rows)
        if self.limit and count > self.limit:
            count = yield from self._trim(session_id)
        yield from self._written(session_id, info.version + max(len(rows), 1), count, now, None)

    def load(self, session_id: str, *, last: int | None, after: int, now: int) -> Script[list[Message]]:
        """Return the messages of a session that has not expired."""
        window = Window(after + 1, 0)
        if last is not None:
            window = yield from self._window(session_id, last, after)
        found = yield Statement(
            f"SELECT m.seq, m.role, m.content, m.metadata, m.created_at FROM {self.messages} m "
            f"JOIN {self.sessions} s ON s.session_id = m.session_id "
            "WHERE m.session_id = ? AND (m.seq >= ? OR m.seq = ?) AND (s.expires_at IS NULL OR s.expires_at > ?) "
            "ORDER BY m.seq",
            (session_id, window.start, window.question, now),
        )
        return [message_of(*row) for row in found]

    def get(self, session_id: str, *, now: int) -> Script[SessionInfo | None]:
        """Return a session that has not expired."""
        info = yield from self._info(session_id)
        return None if info is None or _is_over(info, now) else info

    def claim(self, session_id: str, owner: str | None, *, adopt: bool, now: int) -> Script[SessionInfo]:
        """Make a session the owner's where it is new, or nobody's and `adopt` is given."""
        info = yield from self._opened(session_id, owner, now)
        if adopt and info.user_id is None and owner is not None:
            yield Statement(
                f"UPDATE {self.sessions} SET user_id = ? WHERE session_id = ?", (pack_text(owner), session_id)
            )
            info.user_id = owner
        check_owner(session_id, info.user_id, owner)
        return info

    def update(self, session_id: str, changes: dict[str, Any], *, now: int) -> Script[bool]:
        """Set columns; return whether there is such a session."""
        info = yield from self._info(session_id, self.lock)
        if info is None or _is_over(info, now):
            return False
        columns = {**changes, "updated_at": now}
        setters = ", ".join(f"{name} = ?" for name in columns)
        yield Statement(f"UPDATE {self.sessions} SET {setters} WHERE session_id = ?", (*columns.values(), session_id))
        return True

    def delete(self, session_id: str, *, now: int) -> Script[bool]:
        """Delete a session with its messages."""
        info = yield from self._info(session_id, self.lock)
        if info is None:
            return False
        yield from self._remove("session_id = ?", session_id)
        return not _is_over(info, now)

    def page(
        self, *, user_id: str | None, unowned: bool, limit: int, offset: int, now: int
    ) -> Script[list[SessionInfo]]:
        """Return a page of sessions, the one written last first."""
        where, args = "", (now,)
        if unowned:
            where = " AND user_id IS NULL"
        elif user_id is not None:
            where, args = " AND user_id = ?", (now, pack_text(user_id))  # type: ignore[assignment]
        # The inner query walks an index that holds all it needs, so a late page costs little more than the first.
        rows = yield Statement(
            f"SELECT {', '.join('s.' + name for name in _COLUMNS.split(', '))} FROM {self.sessions} s JOIN "
            f"(SELECT session_id FROM {self.sessions} WHERE (expires_at IS NULL OR expires_at > ?){where} "
            "ORDER BY updated_at DESC, session_id DESC LIMIT ? OFFSET ?) page ON page.session_id = s.session_id "
            "ORDER BY s.updated_at DESC, s.session_id DESC",
            (*args, limit, offset),
        )
        return [_session(row) for row in rows]

    def cleanup(self, *, now: int) -> Script[int]:
        """Delete the sessions whose time is over."""
        return (yield from self._purge("expires_at <= ?", now))

    def purge_user(self, user_id: str) -> Script[int]:
        """Delete the sessions of one owner."""
        return (yield from self._purge("user_id = ?", pack_text(user_id)))

    def _purge(self, where: str, value: Any) -> Script[int]:
        found = yield Statement(
            f"SELECT session_id FROM {self.sessions} WHERE {where} ORDER BY session_id{self.lock}", (value,)
        )
        for (session_id,) in found:
            yield from self._remove("session_id = ?", session_id)
        return len(found)

    def _remove(self, where: str, value: Any) -> Script[None]:
        yield Statement(f"DELETE FROM {self.messages} WHERE {where}", (value,))
        yield Statement(f"DELETE FROM {self.sessions} WHERE {where}", (value,))

    def _info(self, session_id: str, lock: str = "") -> Script[SessionInfo | None]:
        rows = yield Statement(f"SELECT {_COLUMNS} FROM {self.sessions} WHERE session_id = ?{lock}", (session_id,))
        return _session(rows[0]) if rows else None

    def _opened(self, session_id: str, owner: str | None, now: int) -> Script[SessionInfo]:
        """Return the session, locked until the end of the transaction; a missing or expired one is made anew."""
        while True:
            info = yield from self._info(session_id, self.lock)
            if info is not None and not _is_over(info, now):
                return info
            if info is not None:
                yield from self._remove("session_id = ?", session_id)
            yield Statement(
                f"INSERT INTO {self.sessions} ({_COLUMNS}) VALUES (?, ?, NULL, '{{}}', 0, 0, ?, ?, ?) "
                "ON CONFLICT (session_id) DO NOTHING",
                (session_id, None if owner is None else pack_text(owner), now, now, self._expiry(now)),
            )

    def _insert(self, session_id: str, rows: list[Row], version: int) -> Statement:
        return Statement(
            f"INSERT INTO {self.messages} (session_id, seq, role, content, metadata, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [(session_id, version + row.seq, *row[1:]) for row in rows],
            many=True,
        )

    def _arrived(self, session_id: str, rows: list[Row], expected: int) -> Script[bool]:
        """Return whether exactly these rows were written at that version: the writer has lost the answer."""
        if not rows:
            return False
        found = yield Statement(
            f"SELECT seq, role, content, metadata, created_at FROM {self.messages} "
            "WHERE session_id = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (session_id, expected, expected + len(rows)),
        )
        return [tuple(row) for row in found] == [(expected + row.seq, *row[1:]) for row in rows]

    def _trim(self, session_id: str) -> Script[int]:
        """Delete what is outside the window; return how many messages are left."""
        window = yield from self._window(session_id, self.limit, 0)
        yield Statement(
            f"DELETE FROM {self.messages} WHERE session_id = ? AND seq < ? AND seq <> ?",
            (session_id, window.start, window.question),
        )
        rows = yield Statement(f"SELECT COUNT(*) FROM {self.messages} WHERE session_id = ?", (session_id,))
        return int(rows[0][0])

    def _window(self, session_id: str, limit: int, after: int) -> Script[Window]:
        newest = yield Statement(
            f"SELECT seq, role FROM {self.messages} WHERE session_id = ? AND seq > ? ORDER BY seq DESC LIMIT ?",
            (session_id, after, limit + 1),
        )
        if len(newest) <= limit:
            return Window(after + 1, 0)
        question = yield from self._newest(session_id, after, "role = 'user'")
        head = yield from self._newest(session_id, after, "role <> 'tool'")
        return window_of([tuple(row) for row in newest], limit, question=question, head=head)

    def _newest(self, session_id: str, after: int, where: str) -> Script[int]:
        rows = yield Statement(
            f"SELECT seq FROM {self.messages} WHERE session_id = ? AND seq > ? AND {where} ORDER BY seq DESC LIMIT 1",
            (session_id, after),
        )
        return int(rows[0][0]) if rows else 0

    def _written(self, session_id: str, version: int, count: int, now: int, title: str | None) -> Script[None]:
        changes: dict[str, Any] = {"version": version, "message_count": count, "updated_at": now}
        if self.ttl:
            changes["expires_at"] = self._expiry(now)
        setters = ", ".join(f"{name} = ?" for name in changes)
        if title is not None:
            setters += ", title = COALESCE(title, ?)"
            changes["title"] = pack_text(title)
        yield Statement(f"UPDATE {self.sessions} SET {setters} WHERE session_id = ?", (*changes.values(), session_id))

    def _expiry(self, now: int) -> int | None:
        return now + self.ttl if self.ttl else None


def _session(row: Sequence[Any]) -> SessionInfo:
    session_id, user_id, title, metadata, count, version, created_at, updated_at, expires_at = row
    return SessionInfo(
        session_id=session_id,
        user_id=None if user_id is None else unpack_text(user_id),
        title=None if title is None else unpack_text(title),
        message_count=count,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        metadata=unpack(metadata),
        expires_at=None if expires_at is None else from_micros(expires_at),
        version=version,
    )


def _is_over(info: SessionInfo, now: int) -> bool:
    return info.expires_at is not None and info.expires_at <= from_micros(now)
