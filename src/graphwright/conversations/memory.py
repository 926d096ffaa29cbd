"""Conversations in the memory of this process, for tests and prototypes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from graphwright.conversations._checks import check_count, check_owner_id, check_page, now_micros, session_changes
from graphwright.conversations._rows import Row, check_session_id, from_micros, message_of, rows_of, unpack, unpack_text
from graphwright.conversations._scripts import check_owner
from graphwright.conversations._window import newest
from graphwright.conversations.base import ANY_OWNER, Message, SessionInfo
from graphwright.exceptions import ConversationConflict

__all__ = ["InMemoryConversationStore"]


@dataclass
class _Session:
    session_id: str
    created_at: int
    updated_at: int
    user_id: str | None = None
    title: str | None = None
    metadata: str = "{}"
    expires_at: int | None = None
    version: int = 0
    rows: list[Row] = field(default_factory=list)

    def info(self) -> SessionInfo:
        """Return what is known of the session, as values of the reader's own."""
        return SessionInfo(
            session_id=self.session_id,
            user_id=self.user_id,
            title=self.title,
            message_count=len(self.rows),
            created_at=from_micros(self.created_at),
            updated_at=from_micros(self.updated_at),
            metadata=unpack(self.metadata),
            expires_at=None if self.expires_at is None else from_micros(self.expires_at),
            version=self.version,
        )


class InMemoryConversationStore:
    """Keeps conversations until the process ends. What it hands out is never what it keeps."""

    def __init__(self, max_sessions: int = 0, max_messages_per_session: int = 0, *, ttl: int = 0) -> None:
        """Keep at most `max_sessions`, dropping the one that was written longest ago (0: all of them).

        `max_messages_per_session` keeps about the newest ones (0: all), `ttl` the seconds that a session lives
        after it was last written to (0: for ever).
        """
        self._most = check_count("max_sessions", max_sessions)
        self._limit = check_count("max_messages_per_session", max_messages_per_session)
        self._ttl = check_count("ttl", ttl) * 1_000_000
        # In the order of their last write, so that the oldest is the first.
        self._sessions: dict[str, _Session] = {}

    def session_count(self) -> int:
        """Return the number of sessions that have not expired."""
        now = now_micros()
        return sum(not _is_over(session, now) for session in self._sessions.values())

    async def load_messages(
        self, session_id: str, *, last: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Load the messages of a session: all, those after a sequence number, or about the `last` ones."""
        check_session_id(session_id)
        first = check_count("after", after or 0)
        session = self._found(session_id)
        if session is None or (last is not None and check_count("last", last) == 0):
            return []
        rows = session.rows[bisect_right(session.rows, first, key=attrgetter("seq")) :]
        if last is not None:
            rows = newest(rows, last)
        return [message_of(*row) for row in rows]

    async def save_messages(self, session_id: str, messages: Sequence[Message]) -> None:
        """Replace the messages of a session, creating it if it is new."""
        check_session_id(session_id)
        rows = rows_of(messages)
        session = self._opened(session_id, None)
        session.rows = _numbered(rows, session.version)
        self._written(session, session.version + max(len(rows), 1), None)

    async def append_messages(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        expected_version: int | None = None,
        owner: str | None = ANY_OWNER,
        title: str | None = None,
    ) -> int:
        """Add messages at the end and return the session's new version; see `AppendingStore`."""
        check_session_id(session_id)
        rows = rows_of(messages)
        wanted = owner if owner is ANY_OWNER else check_owner_id(owner)
        there = self._found(session_id)
        version = there.version if there is not None else 0
        if there is not None:
            check_owner(session_id, there.user_id, wanted)
        if expected_version is not None and version != check_count("expected_version", expected_version):
            added = _numbered(rows, expected_version)
            if added and there and [row for row in there.rows if added[0].seq <= row.seq <= added[-1].seq] == added:
                return expected_version + len(rows)
            raise ConversationConflict(session_id, expected=expected_version, actual=version)
        session = self._opened(session_id, None if wanted is ANY_OWNER else wanted)
        session.rows.extend(_numbered(rows, version))
        self._written(session, version + len(rows), title)
        return session.version

    async def claim_session(self, session_id: str, owner: str | None, *, adopt: bool = False) -> SessionInfo:
        """Return the session of this owner, creating it if it is new; see `AppendingStore`."""
        check_session_id(session_id)
        check_owner_id(owner)
        there = self._found(session_id)
        if there is not None and adopt and there.user_id is None:
            there.user_id = owner
        if there is not None:
            check_owner(session_id, there.user_id, owner)
        return self._opened(session_id, owner).info()

    async def get_session(self, session_id: str) -> SessionInfo | None:
        """Return what is known of a session, or `None`."""
        session = self._found(check_session_id(session_id))
        return None if session is None else session.info()

    async def list_sessions(
        self, *, user_id: str | None = None, limit: int = 50, offset: int = 0, unowned: bool = False
    ) -> list[SessionInfo]:
        """List sessions, the one written last first: all, those of `user_id`, or those that nobody owns."""
        check_page(limit, offset)
        now = now_micros()
        found = [session for session in self._sessions.values() if not _is_over(session, now)]
        if unowned:
            found = [session for session in found if session.user_id is None]
        elif user_id is not None:
            found = [session for session in found if session.user_id == user_id]
        found.sort(key=lambda session: (session.updated_at, session.session_id), reverse=True)
        return [session.info() for session in found[offset : offset + limit]]

    async def update_session(
        self,
        session_id: str,
        *,
        user_id: Any = ...,
        title: Any = ...,
        metadata: Any = ...,
        expires_at: Any = ...,
    ) -> bool:
        """Change what is given and leave the rest; return whether there is such a session."""
        changes = session_changes(session_id, user_id=user_id, title=title, metadata=metadata, expires_at=expires_at)
        session = self._found(session_id)
        if session is None:
            return False
        for name, value in changes.items():
            plain = unpack_text(value) if name in ("user_id", "title") and value is not None else value
            setattr(session, name, plain)
        session.updated_at = now_micros()
        self._sessions[session_id] = self._sessions.pop(session_id)
        return True

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with its messages; return whether there was one."""
        there = self._found(check_session_id(session_id)) is not None
        self._sessions.pop(session_id, None)
        return there

    async def cleanup_expired(self) -> int:
        """Delete the sessions whose time is over; return how many there were."""
        now = now_micros()
        return self._remove([key for key, session in self._sessions.items() if _is_over(session, now)])

    async def purge_user(self, user_id: str) -> int:
        """Delete every session of this owner; return how many there were."""
        check_owner_id(user_id)
        return self._remove([key for key, session in self._sessions.items() if session.user_id == user_id])

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _found(self, session_id: str) -> _Session | None:
        session = self._sessions.get(session_id)
        return None if session is None or _is_over(session, now_micros()) else session

    def _opened(self, session_id: str, owner: str | None) -> _Session:
        session = self._found(session_id)
        if session is None:
            now = now_micros()
            session = _Session(session_id, now, now, user_id=owner, expires_at=self._expiry(now))
            self._sessions.pop(session_id, None)
            self._sessions[session_id] = session
            self._evict()
        return session

    def _written(self, session: _Session, version: int, title: str | None) -> None:
        now = now_micros()
        session.version = version
        session.updated_at = now
        if self._ttl:
            session.expires_at = self._expiry(now)
        if session.title is None:
            session.title = title
        if self._limit:
            session.rows = newest(session.rows, self._limit)
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)

    def _evict(self) -> None:
        while self._most and len(self._sessions) > self._most:
            del self._sessions[next(iter(self._sessions))]

    def _expiry(self, now: int) -> int | None:
        return now + self._ttl if self._ttl else None

    def _remove(self, session_ids: list[str]) -> int:
        for session_id in session_ids:
            del self._sessions[session_id]
        return len(session_ids)


def _is_over(session: _Session, now: int) -> bool:
    return session.expires_at is not None and session.expires_at <= now


def _numbered(rows: list[Row], version: int) -> list[Row]:
    return [row._replace(seq=version + row.seq) for row in rows]
